// A chart in the page's colours, light or dark, that follows its width.
import {CustomChart, LineChart, ScatterChart} from "echarts/charts";
import {DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent} from "echarts/components";
import {init, use} from "echarts/core";
import {CanvasRenderer} from "echarts/renderers";
import {h} from "./element.js";

use([CustomChart, LineChart, ScatterChart, DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent,
     TooltipComponent, CanvasRenderer]);

const scheme = matchMedia("(prefers-color-scheme: dark)");

// The page's colours, from its style sheet.
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = name => style.getPropertyValue(`--${name}`).trim();
  return {
    text: of("text"), quiet: of("quiet"), line: of("line"), surface: of("surface"), accent: of("accent"),
    kept: of("kept"), reverted: of("reverted"), rejected: of("rejected"),
    series: [1, 2, 3, 4, 5, 6, 7, 8].map(number => of(`series-${number}`)),
  };
}

export const axis = (palette, more) => {
  const {axisLabel, ...rest} = more;
  return {
    nameTextStyle: {color: palette.quiet},
    nameLocation: "middle",
    axisLine: {lineStyle: {color: palette.line}},
    axisTick: {lineStyle: {color: palette.line}},
    splitLine: {lineStyle: {color: palette.line, opacity: 0.5}},
    axisLabel: {color: palette.quiet, ...axisLabel},
    ...rest,
  };
};

export const legend = palette => ({
  top: 0, left: 0, icon: "circle", itemWidth: 10, itemHeight: 10, itemGap: 16, textStyle: {color: palette.text},
  inactiveColor: palette.line, type: "plain",
});

// How points of a verdict look, by its word: a shape of its own beside the colour. Where there are too many to see a shape, all
// are dots.
const CROSS = "path://M2 0L8 6L14 0L16 2L10 8L16 14L14 16L8 10L2 16L0 14L6 8L0 2Z";
export function verdictLook(palette, word, crowded) {
  const colour = palette[word] ?? palette.quiet;
  if (crowded) return {symbol: "circle", symbolSize: 4, itemStyle: {color: colour, opacity: 0.8}};
  if (word === "reverted") return {symbol: "circle", symbolSize: 8, itemStyle: {color: palette.surface, borderColor: colour, borderWidth: 1.5, opacity: 1}};
  return {symbol: word === "rejected" ? CROSS : "circle", symbolSize: word === "kept" ? 9 : 8, itemStyle: {color: colour, opacity: 1}};
}

// lines: [[name, value], ...] under a title.
export function tip(title, lines) {
  return h("div.tip", {}, h("strong", {}, title),
    h("dl", {}, lines.filter(([, value]) => value !== "" && value !== undefined && value !== null)
      .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}

// `option(palette, width)` gives what to draw; it is called again whenever colours or width change. `describe()` says it in
// words. The element's data-points has the number of points that each series of the drawn chart holds.
export class Chart {
  constructor(name, option, describe) {
    this.option = option;
    this.describe = describe;
    this.element = h("div.chart", {role: "img", "data-chart": name});
    this.observer = new ResizeObserver(() => this.#fit());
    this.observer.observe(this.element);
    this.onScheme = () => this.draw();
    scheme.addEventListener("change", this.onScheme);
  }

  on(event, handler) {
    this.handlers = [...this.handlers ?? [], [event, handler]];
    return this;
  }

  #fit() {
    if (!this.element.clientWidth) return;
    if (!this.instance) {
      this.instance = init(this.element, null, {renderer: "canvas"});
      for (const [event, handler] of this.handlers ?? []) this.instance.on(event, handler);
      this.draw();
    } else if (this.instance.getWidth() !== this.element.clientWidth || this.instance.getHeight() !== this.element.clientHeight) {
      this.instance.resize();
      this.draw();
    }
  }

  draw() {
    this.element.setAttribute("aria-label", this.describe());
    if (!this.instance) return;
    const palette = colours();
    const made = this.option(palette, this.element.clientWidth);
    this.instance.setOption({
      animation: false,
      textStyle: {fontFamily: getComputedStyle(document.body).fontFamily, color: palette.text},
      ...made,
      tooltip: made.tooltip && {
        confine: true, backgroundColor: palette.surface, borderColor: palette.line, textStyle: {color: palette.text},
        transitionDuration: 0, padding: 8, ...made.tooltip,
      },
    }, {replaceMerge: ["series"]});
    const points = {};
    for (const series of this.instance.getOption().series) points[series.name] = series.data?.length ?? 0;
    this.element.dataset.points = JSON.stringify(points);
  }

  dispose() {
    scheme.removeEventListener("change", this.onScheme);
    this.observer.disconnect();
    this.instance?.dispose();
  }
}
