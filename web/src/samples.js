// The pairs behind a verdict: how much faster the candidate was than its parent in each.
import {axis, Chart, legend, tip} from "./chart.js";
import {gainText, timeText} from "./words.js";

// The pairs of each process that measured the comparison, as [name, pairs] in the order of measuring. Version 0.1.0 had one
// confirming process, and did not number it.
function byProcess(iteration) {
  const groups = new Map();
  const add = (number, pair) => {
    const name = `process ${number + 1}`;
    groups.set(name, [...groups.get(name) ?? [], pair]);
  };
  for (const pair of iteration.pairs ?? []) add(0, pair);
  for (const pair of iteration.confirmingPairs ?? []) add(Math.max(pair.process ?? 0, 1), pair);
  return [...groups];
}

export function samplesChart(iteration) {
  const gain = logRatio => (Math.exp(logRatio) - 1) * 100;
  const option = palette => {
    const groups = byProcess(iteration);
    let count = 0;
    const {lower, upper} = iteration.interval ?? {};
    const series = groups.map(([name, pairs], at) => ({
      name, type: "scatter", symbolSize: 8, itemStyle: {color: palette.series[at]},
      data: pairs.map(pair => ({value: [++count, gain(pair.logRatio ?? 0)], pair})),
      markLine: at > 0 || lower === undefined ? undefined : {
        silent: true, symbol: "none", lineStyle: {color: palette.quiet, type: "dashed", width: 1}, label: {show: false},
        data: [{yAxis: gain(lower)}, {yAxis: gain(upper ?? 0)}],
      },
    }));
    return {
      grid: {left: 62, right: 16, top: 34, bottom: 44},
      legend: legend(palette),
      tooltip: {trigger: "item", formatter: ({seriesName, data}) => tip(`pair ${data.value[0]}, ${seriesName}`, [
        [iteration.parent === undefined ? "one run" : "parent", timeText(data.pair.parentUs)],
        [iteration.parent === undefined ? "the other" : "candidate", timeText(data.pair.candidateUs)],
        ["faster by", gainText(data.pair.logRatio ?? 0)],
        ["SM clock", data.pair.after?.smClockMhz ? `${data.pair.after.smClockMhz} MHz` : ""],
      ])},
      xAxis: axis(palette, {type: "value", name: "pair", nameGap: 26, min: 0, max: count + 1, minInterval: 1,
                            axisLabel: {formatter: value => value > 0 && value <= count ? value : "", hideOverlap: true}, splitLine: {show: false}}),
      yAxis: axis(palette, {type: "value", name: iteration.parent === undefined ? "one run against another" : "faster than the parent", nameGap: 48, scale: true,
                            axisLabel: {formatter: value => `${Number(value.toFixed(3))} %`}}),
      series,
    };
  };
  return new Chart("samples", option, () =>
    `Samples: ${byProcess(iteration).map(([name, pairs]) => `${pairs.length} pairs in ${name}`).join(", ")}`);
}
