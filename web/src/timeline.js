// What each worker did when: the stages of every trial as bars, and below them what went on beside.
import {axis, Chart, legend, tip} from "./chart.js";
import {bars} from "./timeline_bars.js";
import {changeText, secondsText, stageWord} from "./words.js";

const STAGES = ["STAGE_PREFLIGHT", "STAGE_STATIC_CHECK", "STAGE_BUILD", "STAGE_VALIDATE", "STAGE_MEASURE", "STAGE_PROFILE"];
const BESIDE = {BUILD_AHEAD: "build ahead", SANITIZER: "compute-sanitizer", PYTHON_START: "import of PyTorch",
                TOTAL: "total speedup", END: "end of an expedition"};
const KINDS = [...STAGES, ...Object.keys(BESIDE)];
const COLOURS = [0, 1, 2, 3, 4, 5, 2, 6, 7, 4, 4];  // of the palette's series: building ahead is building, and the last two measure
const kindWord = kind => BESIDE[kind] ?? stageWord(kind);
const shortName = name => name.replace("workers/", "");

export function timelineChart({iterations, open}) {
  const draw = (params, api) => {
    const row = api.value(0), begin = api.coord([api.value(1), row]), end = api.coord([api.value(2), row]);
    const slots = api.value(4), lane = Math.min(26, api.size([0, 1])[1] * 0.6), height = lane / slots;
    const top = begin[1] - lane / 2 + api.value(3) * height;
    const area = params.coordSys;
    const left = Math.max(begin[0], area.x), right = Math.min(end[0], area.x + area.width);
    if (right < left) return undefined;
    // A gap of half a pixel sets bars apart where there is room.
    return {type: "rect", shape: {x: left, y: top, width: Math.max(right - left - (right - left > 3 ? 0.5 : 0), 0.6), height: height - (slots > 1 ? 0.5 : 0)},
            style: {fill: api.visual("color"), opacity: api.value(5)}};
  };
  const option = (palette, width) => {
    const {rows, byClock, made} = bars(iterations());
    const narrow = width < 600, kinds = KINDS.filter(kind => made.some(bar => bar.kind === kind));
    return {
      grid: {left: narrow ? 8 : 130, right: 16, top: narrow ? 56 : 34, bottom: made.length > 600 ? 74 : 44},
      legend: {...legend(palette), itemGap: narrow ? 8 : 16, data: kinds.map(kindWord)},
      tooltip: {trigger: "item", formatter: ({data}) => tip(...tipOf(data.bar))},
      dataZoom: made.length > 600 ? [{type: "inside"}, {type: "slider", height: 18, bottom: 6, showDetail: false, brushSelect: false,
        borderColor: palette.line, handleStyle: {color: palette.quiet}}] : [],
      xAxis: axis(palette, {type: "value", name: byClock ? "seconds since the first trial" : "seconds as recorded, one trial after another",
                            nameGap: 26, min: 0, max: Math.max(...made.map(bar => bar.end), 0.01), axisLabel: {showMaxLabel: false},
                            splitLine: {show: false}}),
      yAxis: axis(palette, {type: "category", data: rows.map(row => row.beside ? `${shortName(row.worker)}, beside` : shortName(row.worker)), inverse: true,
                            axisLabel: {width: 112, overflow: "truncate", show: !narrow}, axisTick: {show: false}, splitLine: {show: false}}),
      series: kinds.map(kind => ({
        name: kindWord(kind), type: "custom", renderItem: draw, encode: {x: [1, 2], y: 0}, clip: true, cursor: "pointer",
        itemStyle: {color: palette.series[COLOURS[KINDS.indexOf(kind)]]},
        // A build ahead that nobody came for is pale.
        data: made.filter(bar => bar.kind === kind).map(bar => ({
          value: [bar.row, bar.begin, bar.end, bar.slot, rows[bar.row].slots, bar.kind === "BUILD_AHEAD" && !bar.used ? 0.45 : 1], bar,
        })),
      })),
    };
  };
  const describe = () => {
    const {workers, rows, made} = bars(iterations());
    chart.element.style.height = `${Math.min(600, 110 + 34 * Math.max(1, rows.length))}px`;
    const stages = made.filter(bar => !(bar.kind in BESIDE)).length, ahead = made.filter(bar => bar.kind === "BUILD_AHEAD");
    return `Timeline: ${stages} stages on ${workers.length} worker${workers.length === 1 ? "" : "s"}: ${workers.map(shortName).join(", ")}` +
      (ahead.length > 0 ? `; ${ahead.length} builds ahead, ${ahead.filter(bar => bar.used).length} of them used` : "");
  };
  const chart = new Chart("timeline", option, describe).on("click", ({data}) => data?.bar && open(data.bar.iteration));
  return chart;
}

function tipOf({kind, iteration, begin, end, change, parent, used}) {
  const trial = `${iteration.number ?? 0}  ${changeText(iteration.change)}`, took = ["took", secondsText(end - begin)], worker = ["worker", iteration.worker];
  if (kind !== "BUILD_AHEAD") return [trial, [[kind in BESIDE ? "beside its stages, or later" : "stage", kindWord(kind)], took, worker]];
  return [`build ahead: ${changeText(change)}`, [["from iteration", parent ?? 0], ["used", used ? "yes" : "no"], ["beside", trial], took, worker]];
}
