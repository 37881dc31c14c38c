// The roofline: what memory bandwidth and peak arithmetic allow, and where the variants are.
import {axis, Chart, legend, tip} from "./chart.js";
import {numberText} from "./words.js";

// 1e-3 as 0.001, 1e6 as 1e6.
const tick = value => value >= 1e-3 && value < 1e6 ? String(Number(value.toPrecision(2))) : value.toExponential(0).replace("+", "");

// All points of a roofline count traffic the same way; this says how.
const counted = ({points = []}) => points.length > 0 && points.every(point => point.counted);
export const trafficText = roofline => counted(roofline)
  ? "Traffic is the DRAM traffic that ncu counted, for every point. Data found in the L2 cache is not included."
  : "Traffic is the bytes that the bundle's [work] section says must move, for every point: ncu did not count DRAM traffic for all of them.";

export function rooflineChart({roofline, open}) {
  const option = palette => {
    const {points = [], bandwidthGbS = 0, peakGflopS = 0, peak = ""} = roofline();
    const ridge = bandwidthGbS > 0 ? peakGflopS / bandwidthGbS : 1;
    const xs = points.map(point => point.intensity ?? 0).filter(x => x > 0), ys = points.map(point => point.gflopS ?? 0).filter(y => y > 0);
    const low = 10 ** Math.floor(Math.log10(Math.min(ridge / 10, ...xs))), high = 10 ** Math.ceil(Math.log10(Math.max(ridge * 10, ...xs)));
    const bottom = 10 ** Math.floor(Math.log10(Math.min(low * bandwidthGbS || 1, ...ys)));
    const role = at => at === 0 ? "start" : at === points.length - 1 ? "final" : "kept";
    const look = {
      start: {color: palette.surface, borderColor: palette.text, borderWidth: 2}, kept: {color: palette.kept}, final: {color: palette.kept, borderColor: palette.text, borderWidth: 2},
    };
    const series = name => ({
      name, type: "scatter", symbolSize: name === "kept" ? 8 : 12, cursor: "pointer", z: 3,
      data: points.map((point, at) => ({point, at})).filter(({at}) => role(at) === name)
        .map(({point}) => ({value: [point.intensity, point.gflopS], point})),
      itemStyle: look[name],
      label: {show: name !== "kept", formatter: name, position: name === "start" ? "bottom" : "top", color: palette.text},
    });
    return {
      grid: {left: 62, right: 20, top: 34, bottom: 46},
      legend: {...legend(palette), data: ["start", "kept", "final"]},
      tooltip: {
        trigger: "item",
        formatter: ({data}) => !data.point ? "" : tip(`iteration ${data.point.iteration ?? 0}`, [
          ["intensity", `${numberText(data.point.intensity)} flop/byte`],
          ["speed", `${numberText(data.point.gflopS)} GFLOP/s`],
        ]),
      },
      xAxis: axis(palette, {type: "log", name: counted(roofline()) ? "flop per byte of DRAM traffic" : "flop per byte that must move", nameGap: 28, min: low, max: high, axisLabel: {formatter: tick, hideOverlap: true}}),
      yAxis: axis(palette, {type: "log", name: "GFLOP/s", nameGap: 46, min: bottom, max: 10 ** Math.ceil(Math.log10(peakGflopS * 1.01 || 10)),
                            axisLabel: {formatter: tick, hideOverlap: true}}),
      series: [
        {
          name: "roof", type: "line", showSymbol: false, silent: true, z: 1,
          data: [...bandwidthGbS > 0 ? [[low, low * bandwidthGbS]] : [], [bandwidthGbS > 0 ? ridge : low, peakGflopS], [high, peakGflopS]],
          lineStyle: {color: palette.quiet, width: 2}, itemStyle: {color: palette.quiet},
          endLabel: {show: true, formatter: `${peak} ${numberText(peakGflopS / 1000)} TFLOP/s`, color: palette.quiet,
                     align: "right", verticalAlign: "bottom", offset: [-8, -4]},
        },
        ...["start", "kept", "final"].map(series),
      ],
    };
  };
  const describe = () => {
    const {points = [], bandwidthGbS, peakGflopS} = roofline();
    return `Roofline with ${points.length} variants under ${numberText(bandwidthGbS)} GB/s and ${numberText(peakGflopS)} GFLOP/s`;
  };
  return new Chart("roofline", option, describe).on("click", ({data}) => data?.point && open(data.point.iteration ?? 0));
}
