// Any metric against any other, coloured by a variable.
import {allIterations, get} from "./api.js";
import {axis, Chart, legend, tip} from "./chart.js";
import {h, loading, option, replace} from "./element.js";
import {iterationPath} from "./links.js";
import {changeText, numberText, speedupText, timeText, verdictWord} from "./words.js";

const FIELDS = "number,verdict,variant,change,timeUs,speedupOverParent,speedupOverStart,speedupOverBaseline,metrics";
// Of the iteration itself; metrics are of its evidence.
const OWN = {
  number: {text: "iteration", unit: ""},
  timeUs: {text: "time of a call", unit: "us"},
  speedupOverStart: {text: "speedup over the start", unit: "×"},
  speedupOverBaseline: {text: "speedup over the baseline", unit: "×"},
  speedupOverParent: {text: "speedup over the parent", unit: "×"},
};
const MANY = 2000;

export async function explorePage({main, signal, parameters, go}) {
  replace(main, h("h1", {}, "Explore"), loading("campaigns"));
  const [{campaigns = []}, {metrics = []}] = await Promise.all([get("campaigns", {page_size: 1000, fields: "name,bundle,spec"}, signal), get("metrics", {}, signal)]);
  if (!campaigns.length) return replace(main, h("h1", {}, "Explore"), h("p.empty", {}, "There is no campaign in this database yet."));
  const asked = parameters.get("campaign");
  const campaign = asked ? `campaigns/${asked}` : campaigns[0].name;
  const {variables = []} = await get(`${campaign}/bundle`, {fields: "variables"}, signal);
  const chosen = {
    x: parameters.get("x") ?? "occupancy", y: parameters.get("y") ?? "timeUs",
    color: parameters.get("color") ?? variables[0]?.name ?? "verdict", log: parameters.get("log") ?? "",
  };
  const known = new Map(metrics.map(metric => [metric.metric, metric]));
  const label = name => {
    const own = OWN[name], metric = known.get(name);
    const unit = own?.unit ?? metric?.unit ?? "";
    return (own?.text ?? name.replace("variable:", "")) + (unit && unit !== "×" ? `, ${unit.replace("us", "µs")}` : "");
  };
  const axisOptions = which => [
    h("optgroup", {label: "The iteration"}, Object.entries(OWN).map(([name, {text}]) => option(name, text, chosen[which]))),
    h("optgroup", {label: "Variables"}, variables.map(({name}) => option(`variable:${name}`, name, chosen[which]))),
    h("optgroup", {label: "Metrics"}, metrics.map(metric => option(metric.metric, metric.metric, chosen[which]))),
  ];
  const choose = (name, text, options) => h("label", {}, text, h("select", {name, change: () => {
    const next = new URLSearchParams([...form.querySelectorAll("select")].map(select => [select.name, select.value]).filter(([, value]) => value));
    go(`/explore?${next}`, {keep: true});
  }}, options));
  const form = h("form.filters", {submit: event => event.preventDefault()},
    choose("campaign", "Campaign", campaigns.map(one => option(one.name.split("/")[1], `${one.name.split("/")[1]}  ${one.bundle}`, campaign.split("/")[1]))),
    choose("x", "Across", axisOptions("x")), choose("y", "Up", axisOptions("y")),
    choose("color", "Colour", [option("verdict", "verdict", chosen.color), ...variables.map(({name}) => option(name, name, chosen.color))]),
    choose("log", "Scale", [option("", "linear", chosen.log), option("x", "log across", chosen.log), option("y", "log up", chosen.log), option("xy", "log both", chosen.log)]));
  const host = h("div");
  const meanings = [chosen.x, chosen.y].filter(name => known.get(name)?.meaning).map(name => h("p.quiet", {}, h("strong", {}, name), `: ${known.get(name).meaning}`));
  replace(main, h("h1", {}, "Explore"), form, host, ...meanings);
  replace(host, loading("iterations"));
  const wanted = [...new Set([chosen.x, chosen.y])].filter(name => known.has(name) && !(name in OWN));
  const all = await allIterations(campaign, {fields: FIELDS, metrics: wanted}, signal);
  const value = (iteration, name) => {
    if (name === "number") return iteration.number ?? 0;
    if (name in OWN) return iteration[name] > 0 ? iteration[name] : undefined;
    if (name.startsWith("variable:")) return iteration.variant?.[name.slice(9)];
    return iteration.metrics?.[name];
  };
  const log = which => chosen.log.includes(which);
  const points = all.map(iteration => ({iteration, x: value(iteration, chosen.x), y: value(iteration, chosen.y)}))
    .filter(({x, y}) => x !== undefined && y !== undefined && (!log("x") || x > 0) && (!log("y") || y > 0));
  const left = h("p.quiet", {}, `${points.length} of ${all.length} iterations; ${all.length - points.length ? "the others lack one of the two" : "all have both"}.`);
  if (!points.length) {
    replace(host, h("p.empty", {}, all.length ? "No iteration has both: a recording without counters has no metrics, and what was not profiled has none either." : "There is no iteration yet."));
    main.dataset.ready = "true";
    return;
  }
  const group = iteration => chosen.color === "verdict" ? verdictWord(iteration.verdict) : `${chosen.color} = ${iteration.variant?.[chosen.color] ?? "–"}`;
  const groups = [...new Set(points.map(({iteration}) => group(iteration)))].sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
  const chart = new Chart("explore", (palette, width) => {
    const tick = {formatter: number => numberText(number), hideOverlap: true};
    return {
      grid: {left: 70, right: 20, top: width < 600 ? 30 + 22 * Math.ceil(groups.length / 3) : 40, bottom: 48},
      legend: legend(palette),
      tooltip: {trigger: "item", formatter: ({data}) => tip(`${data.iteration.number ?? 0}  ${changeText(data.iteration.change)}`, [
        [label(chosen.x), numberText(data.value[0])], [label(chosen.y), numberText(data.value[1])],
        ["colour", group(data.iteration)], ["time", timeText(data.iteration.timeUs)], ["over the start", speedupText(data.iteration.speedupOverStart)],
      ])},
      xAxis: axis(palette, {type: log("x") ? "log" : "value", scale: true, name: label(chosen.x), nameGap: 28, axisLabel: tick}),
      yAxis: axis(palette, {type: log("y") ? "log" : "value", scale: true, name: label(chosen.y), nameGap: 52, axisLabel: tick}),
      series: groups.map((name, at) => ({
        name, type: "scatter", symbolSize: points.length > MANY ? 4 : 9, cursor: "pointer", large: points.length > MANY, largeThreshold: MANY,
        itemStyle: {color: chosen.color === "verdict" ? palette[name] ?? palette.quiet : palette.series[at % palette.series.length], opacity: 0.85},
        data: points.filter(({iteration}) => group(iteration) === name).map(({iteration, x, y}) => ({value: [x, y], iteration})),
      })),
    };
  }, () => `${label(chosen.y)} against ${label(chosen.x)} of ${points.length} iterations, coloured by ${chosen.color}`);
  chart.on("click", ({data}) => go(iterationPath(campaign, data.iteration.number ?? 0)));
  chart.element.classList.add("tall");
  signal.addEventListener("abort", () => chart.dispose());
  replace(host, chart.element, left);
  main.dataset.ready = "true";
}
