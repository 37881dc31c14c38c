// The journey: every iteration's speedup, its verdict, and the best so far.
import {bestSoFar, overBaseline, speedupOf} from "./best_so_far.js";
import {axis, Chart, legend, tip, verdictLook} from "./chart.js";
import {changeText, speedupText, timeText, verdictWord} from "./words.js";

const VERDICTS = ["KEPT", "REVERTED", "REJECTED"];
const MANY = 2000;

// Up to a round figure for the end of an axis.
const roundUp = value => value < 4 ? Math.ceil(value * 2) / 2 : value < 10 ? Math.ceil(value) : Math.ceil(value / 5) * 5;

export function journeyChart({campaign, iterations, open}) {
  const option = (palette, width) => {
    const now = campaign(), all = iterations();
    const goal = now.spec?.goal?.speedup ?? 0;
    const lines = [];
    if (overBaseline(now)) {
      lines.push({yAxis: 1, label: {formatter: "baseline", position: "insideStartTop"}});
      if (goal > 0) lines.push({yAxis: goal, label: {formatter: `goal ${goal}×`, position: "insideStartTop"}});
    }
    const top = Math.max(goal > 0 && overBaseline(now) ? goal : 0, ...all.map(iteration => speedupOf(now, iteration)), 1);
    return {
      grid: {left: 52, right: 16, top: 34, bottom: all.length > 200 ? 78 : 44},
      legend: {...legend(palette), icon: undefined, data: [{name: "best so far", icon: "path://M0 6h16v3H0z"}, ...VERDICTS.map(verdictWord)]},
      tooltip: {
        trigger: "item",
        formatter: ({data}) => {
          const iteration = data.iteration;
          if (!iteration) return tip(`best at iteration ${data[0]}`, [["speedup", speedupText(data[1])]]);
          return tip(`${iteration.number ?? 0}  ${changeText(iteration.change)}`, [
            ["verdict", verdictWord(iteration.verdict)],
            ["over the parent", speedupText(iteration.speedupOverParent)],
            ["over the start", speedupText(iteration.speedupOverStart)],
            ["over the baseline", speedupText(iteration.speedupOverBaseline)],
            ["time", timeText(iteration.timeUs)],
          ]);
        },
      },
      dataZoom: all.length > 200 ? [{type: "inside"}, {type: "slider", height: 20, bottom: 8, showDetail: false,
        brushSelect: false, borderColor: palette.line, handleStyle: {color: palette.quiet}}] : [],
      xAxis: axis(palette, {type: "value", name: "iteration", nameGap: 26, minInterval: 1, max: all.at(-1)?.number ?? 1,
                            splitLine: {show: false}}),
      yAxis: axis(palette, {type: "value", name: overBaseline(now) ? "speedup over the baseline" : "speedup over the start",
                            nameGap: 38, min: 0, max: roundUp(top * 1.02), axisLabel: {formatter: "{value}×"}}),
      series: [
        {
          name: "best so far", type: "line", step: "end", showSymbol: false, data: bestSoFar(now, all), z: 1,
          lineStyle: {width: 2, color: palette.kept}, itemStyle: {color: palette.kept},
          markLine: lines.length === 0 ? undefined : {
            silent: true, symbol: "none", data: lines, lineStyle: {color: palette.quiet, type: "dashed", width: 1},
            label: {color: palette.quiet, fontSize: width < 500 ? 10 : 12},
          },
        },
        ...VERDICTS.map(verdict => ({
          name: verdictWord(verdict), type: "scatter", z: verdict === "KEPT" ? 3 : 2,
          data: all.filter(iteration => iteration.verdict === verdict)
            .map(iteration => ({value: [iteration.number ?? 0, speedupOf(now, iteration)], iteration})),
          ...verdictLook(palette, verdictWord(verdict), all.length > MANY),
          large: all.length > MANY, largeThreshold: MANY, cursor: "pointer",
        })),
      ],
    };
  };
  const describe = () => {
    const all = iterations(), best = bestSoFar(campaign(), all).at(-1);
    return `Journey: speedup of ${all.length} iterations` + (best ? `; the best is ${speedupText(best[1])}` : "");
  };
  return new Chart("journey", option, describe).on("click", ({data}) => data?.iteration && open(data.iteration));
}

// The best-so-far curves of several campaigns: [{campaign, iterations}, ...].
export function journeysChart(journeys) {
  const option = palette => ({
    grid: {left: 52, right: 16, top: 34, bottom: 44},
    legend: legend(palette),
    tooltip: {trigger: "item", formatter: ({seriesName, data}) =>
      tip(seriesName, [["iteration", data[0]], ["speedup", speedupText(data[1])]])},
    xAxis: axis(palette, {type: "value", name: "iteration", nameGap: 26, minInterval: 1, splitLine: {show: false}}),
    yAxis: axis(palette, {type: "value", name: "best speedup", nameGap: 38, min: 0, axisLabel: {formatter: "{value}×"}}),
    series: journeys.map(({campaign, iterations}, at) => ({
      name: campaign.name, type: "line", step: "end", symbol: "circle", symbolSize: 6, data: bestSoFar(campaign, iterations),
      lineStyle: {width: 2, color: palette.series[at]}, itemStyle: {color: palette.series[at]},
    })),
  });
  return new Chart("journeys", option, () => `Best speedup so far of ${journeys.map(one => one.campaign.name).join(" and ")}`);
}
