// What each worker did when: the stages of every trial as bars.
import {axis, Chart, legend, tip} from "./chart.js";
import {changeText, secondsText, stageWord} from "./words.js";

const STAGES = ["STAGE_PREFLIGHT", "STAGE_STATIC_CHECK", "STAGE_BUILD", "STAGE_VALIDATE", "STAGE_MEASURE", "STAGE_PROFILE"];

const length = iteration => (iteration.stages ?? []).reduce((sum, stage) => sum + (stage.seconds ?? 0), 0);

// Bars [worker's row, begin, end, stage, iteration] in seconds. By the clock where the stages fit into the time between
// the iterations; a replay is faster than what it replays, and its trials then stand one after another.
export function bars(iterations) {
  const trials = iterations.filter(iteration => iteration.endTime && length(iteration) > 0);
  const workers = [...new Set(trials.map(iteration => iteration.worker ?? ""))].sort();
  const first = Math.min(...trials.map(iteration => Date.parse(iteration.endTime) / 1000 - length(iteration)));
  const span = Math.max(...trials.map(iteration => Date.parse(iteration.endTime) / 1000)) - first;
  const busiest = Math.max(0, ...workers.map(worker =>
    trials.filter(iteration => (iteration.worker ?? "") === worker).reduce((sum, iteration) => sum + length(iteration), 0)));
  const byClock = busiest <= span * 1.02 + 0.5;
  const free = new Map(workers.map(worker => [worker, 0]));
  const made = [];
  for (const iteration of [...trials].sort((a, b) => (a.number ?? 0) - (b.number ?? 0))) {
    const worker = iteration.worker ?? "";
    let at = byClock ? Date.parse(iteration.endTime) / 1000 - length(iteration) - first : free.get(worker);
    for (const stage of iteration.stages) {
      const end = at + (stage.seconds ?? 0);
      made.push({row: workers.indexOf(worker), begin: at, end, stage: stage.stage, iteration});
      at = end;
    }
    free.set(worker, at);
  }
  return {workers, byClock, made};
}

export function timelineChart({iterations, open}) {
  const draw = (params, api) => {
    const row = api.value(0), begin = api.coord([api.value(1), row]), end = api.coord([api.value(2), row]);
    const height = Math.min(26, api.size([0, 1])[1] * 0.6);
    const area = params.coordSys;
    const left = Math.max(begin[0], area.x), right = Math.min(end[0], area.x + area.width);
    if (right < left) return undefined;
    // A gap of half a pixel sets bars apart where there is room.
    return {type: "rect", shape: {x: left, y: begin[1] - height / 2, width: Math.max(right - left - (right - left > 3 ? 0.5 : 0), 0.6), height},
            style: {fill: api.visual("color")}};
  };
  const option = (palette, width) => {
    const {workers, byClock, made} = bars(iterations());
    const narrow = width < 600;
    return {
      grid: {left: narrow ? 8 : 130, right: 16, top: narrow ? 56 : 34, bottom: made.length > 600 ? 74 : 44},
      legend: {...legend(palette), itemGap: narrow ? 8 : 16, data: STAGES.filter(stage => made.some(bar => bar.stage === stage)).map(stageWord)},
      tooltip: {
        trigger: "item",
        formatter: ({data}) => tip(`${data.bar.iteration.number ?? 0}  ${changeText(data.bar.iteration.change)}`, [
          ["stage", stageWord(data.bar.stage)],
          ["took", secondsText(data.bar.end - data.bar.begin)],
          ["worker", data.bar.iteration.worker],
        ]),
      },
      dataZoom: made.length > 600 ? [{type: "inside"}, {type: "slider", height: 18, bottom: 6, showDetail: false, brushSelect: false,
        borderColor: palette.line, handleStyle: {color: palette.quiet}}] : [],
      xAxis: axis(palette, {type: "value", name: byClock ? "seconds since the first trial" : "seconds as recorded, one trial after another",
                            nameGap: 26, min: 0, max: Math.max(...made.map(bar => bar.end), 0.01), axisLabel: {showMaxLabel: false},
                            splitLine: {show: false}}),
      yAxis: axis(palette, {type: "category", data: workers.map(worker => worker.replace("workers/", "")), inverse: true,
                            axisLabel: {width: 112, overflow: "truncate", show: !narrow}, axisTick: {show: false}, splitLine: {show: false}}),
      series: STAGES.filter(stage => made.some(bar => bar.stage === stage)).map(stage => ({
        name: stageWord(stage), type: "custom", renderItem: draw, encode: {x: [1, 2], y: 0}, clip: true, cursor: "pointer",
        itemStyle: {color: palette.series[STAGES.indexOf(stage)]},
        data: made.filter(bar => bar.stage === stage).map(bar => ({value: [bar.row, bar.begin, bar.end], bar})),
      })),
    };
  };
  const describe = () => {
    const {workers, made} = bars(iterations());
    chart.element.style.height = `${Math.min(600, 110 + 34 * Math.max(1, workers.length))}px`;
    return `Timeline: ${made.length} stages on ${workers.length} worker${workers.length === 1 ? "" : "s"}: ${workers.map(shortName).join(", ")}`;
  };
  const chart = new Chart("timeline", option, describe).on("click", ({data}) => data?.bar && open(data.bar.iteration));
  return chart;
}

const shortName = name => name.replace("workers/", "");
