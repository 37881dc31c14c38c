// Any metric against any other, coloured by a variable.
import {allIterations, get} from "./api.js";
import {axis, Chart, legend, tip, verdictLook} from "./chart.js";
import {h, loading, option, replace} from "./element.js";
import {iterationPath} from "./links.js";
import {changeText, numberText, speedupText, timeText, valueText, verdictWord} from "./words.js";

const FIELDS = "number,verdict,variant,words,change,timeUs,speedupOverParent,speedupOverStart,speedupOverBaseline,metrics";
// Fields of the iteration itself; metrics come from its evidence.
const OWN = {
  number: {text: "iteration", unit: ""},
  timeUs: {text: "time per call", unit: "us"},
  speedupOverStart: {text: "speedup over the start", unit: "×"},
  speedupOverBaseline: {text: "speedup over the baseline", unit: "×"},
  speedupOverParent: {text: "speedup over the parent", unit: "×"},
};
const MANY = 2000;

export async function explorePage({main, signal, parameters, go}) {
  replace(main, h("h1", {}, "Explore"), loading("campaigns"));
  const [{campaigns = []}, {metrics = []}] = await Promise.all([get("campaigns", {page_size: 1000, fields: "name,bundle,spec"}, signal), get("metrics", {}, signal)]);
  if (!campaigns.length) return replace(main, h("h1", {}, "Explore"), h("p.empty", {}, "This database has no campaigns yet."));
  const asked = parameters.get("campaign");
  const campaign = asked ? `campaigns/${asked}` : campaigns[0].name;
  if (!campaigns.some(one => one.name === campaign)) campaigns.push(await get(campaign, {fields: "name,bundle,spec"}, signal));
  const {variables = []} = await get(`${campaign}/bundle`, {fields: "variables"}, signal);
  const known = new Map(metrics.map(metric => [metric.metric, metric]));
  // Another campaign may lack the variable that was chosen: selector and plot then both fall back to the default.
  const choice = (name, possible, fallback) => possible.includes(parameters.get(name)) ? parameters.get(name) : fallback;
  const names = variables.map(({name}) => name);
  const axes = [...Object.keys(OWN), ...names.map(name => `variable:${name}`), ...known.keys()];
  const chosen = {
    x: choice("x", axes, "occupancy"), y: choice("y", axes, "timeUs"),
    color: choice("color", ["verdict", ...names], names[0] ?? "verdict"), log: choice("log", ["x", "y", "xy"], ""),
  };
  const label = name => {
    const own = OWN[name], metric = known.get(name);
    const unit = own?.unit ?? metric?.unit ?? "";
    return (own?.text ?? name.replace("variable:", "")) + (unit && unit !== "×" ? `, ${unit.replace("us", "µs")}` : "");
  };
  const axisOptions = which => [
    h("optgroup", {label: "Iteration"}, Object.entries(OWN).map(([name, {text}]) => option(name, text, chosen[which]))),
    h("optgroup", {label: "Variables"}, variables.map(({name}) => option(`variable:${name}`, name, chosen[which]))),
    h("optgroup", {label: "Metrics"}, metrics.map(metric => option(metric.metric, metric.metric, chosen[which]))),
  ];
  const choose = (name, text, options) => h("label", {}, text, h("select", {name, change: () => {
    const next = new URLSearchParams([...form.querySelectorAll("select")].map(select => [select.name, select.value]).filter(([, value]) => value));
    go(`/explore?${next}`, {keep: true});
  }}, options));
  const form = h("form.filters", {submit: event => event.preventDefault()},
    choose("campaign", "Campaign", campaigns.map(one => option(one.name.split("/")[1], `${one.name.split("/")[1]}  ${one.bundle}`, campaign.split("/")[1]))),
    choose("x", "X axis", axisOptions("x")), choose("y", "Y axis", axisOptions("y")),
    choose("color", "Colour", [option("verdict", "verdict", chosen.color), ...variables.map(({name}) => option(name, name, chosen.color))]),
    choose("log", "Scale", [option("", "linear", chosen.log), option("x", "log x", chosen.log), option("y", "log y", chosen.log), option("xy", "log both", chosen.log)]));
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
  const left = h("p.quiet", {}, `${points.length} of ${all.length} iterations are drawn` + (all.length > points.length ? "; the others lack one of the two values." : "."));
  if (!points.length) {
    replace(host, h("p.empty", {}, all.length ? "No iteration has both values. Recordings without counters and iterations that were not profiled have no metrics." : "No iterations yet."));
    main.dataset.ready = "true";
    return;
  }
  const group = iteration => chosen.color === "verdict" ? verdictWord(iteration.verdict) : `${chosen.color} = ${valueText(iteration, chosen.color) || "–"}`;
  const groups = [...new Set(points.map(({iteration}) => group(iteration)))].sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
  const chart = new Chart("explore", (palette, width) => {
    const tick = {formatter: number => numberText(number), hideOverlap: true};
    return {
      grid: {left: 70, right: 20, top: width < 600 ? 30 + 22 * Math.ceil(groups.length / 3) : 40, bottom: 48},
      legend: {...legend(palette), icon: chosen.color === "verdict" ? undefined : "circle"},
      tooltip: {trigger: "item", formatter: ({data}) => tip(`${data.iteration.number ?? 0}  ${changeText(data.iteration.change)}`, [
        [label(chosen.x), numberText(data.value[0])], [label(chosen.y), numberText(data.value[1])],
        ["colour", group(data.iteration)], ["time", timeText(data.iteration.timeUs)], ["over the start", speedupText(data.iteration.speedupOverStart)],
      ])},
      xAxis: axis(palette, {type: log("x") ? "log" : "value", scale: true, name: label(chosen.x), nameGap: 28, axisLabel: tick}),
      yAxis: axis(palette, {type: log("y") ? "log" : "value", scale: true, name: label(chosen.y), nameGap: 52, axisLabel: tick}),
      series: groups.map((name, at) => ({
        name, type: "scatter", cursor: "pointer", large: points.length > MANY, largeThreshold: MANY,
        ...chosen.color === "verdict" ? verdictLook(palette, name, points.length > MANY)
          : {symbolSize: points.length > MANY ? 4 : 9, itemStyle: {color: palette.series[at % palette.series.length], opacity: 0.85}},
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
