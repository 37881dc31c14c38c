// Two iterations or two campaigns: only what differs.
import {allIterations, get} from "./api.js";
import {bestSoFar} from "./best_so_far.js";
import {differenceView, lineDifference} from "./difference.js";
import {h, loading, replace, section} from "./element.js";
import {launchesOf, launchRows} from "./evidence.js";
import {sourceOf} from "./iteration_page.js";
import {journeysChart} from "./journey.js";
import {comparePath, iterationPath, campaignPath} from "./links.js";
import {table} from "./table.js";
import {changeText, countsOf, numberOf, numberText, objectiveText, secondsText, speedupText, stateWord, stopText, tierWord, timeText, valueText, verdictWord} from "./words.js";

const NAME = /^campaigns\/\d+(\/iterations\/\d+)?$/;

export async function comparePage({main, signal, parameters, go}) {
  const names = ["a", "b"].map(which => parameters.get(which) ?? "");
  replace(main, h("h1", {}, "Compare"), form(names, go));
  const host = h("div");
  main.append(host);
  if (names.some(name => !name)) {
    replace(host, h("p.empty", {}, "Enter two iterations (campaigns/1/iterations/4, or 1/4 for short) or two campaigns (campaigns/1, or 1)."));
    return;
  }
  if (names.some(name => !NAME.test(name)) || names[0].includes("/iterations/") !== names[1].includes("/iterations/")) {
    replace(host, h("p.error", {role: "alert"}, "Enter two iterations, such as campaigns/1/iterations/4, or two campaigns, such as campaigns/1."));
    return;
  }
  replace(host, loading(names.join(" and ")));
  const [a, b] = await Promise.all(names.map(name => get(name, {}, signal)));
  replace(host, ...names[0].includes("/iterations/") ? await iterations(a, b, signal) : await campaigns(a, b, signal));
  main.dataset.ready = "true";
}

// 1/4 for campaigns/1/iterations/4, 1 for campaigns/1.
export function fullName(text) {
  const short = text.trim().match(/^(\d+)(?:[\/ ](\d+))?$/);
  return !short ? text.trim() : `campaigns/${short[1]}` + (short[2] === undefined ? "" : `/iterations/${short[2]}`);
}

function form(names, go) {
  const field = (at, label) => h("label", {}, label, h("input", {name: label, type: "text", value: names[at], size: 28, required: true, spellcheck: "false", placeholder: at ? "1/4" : "1/0"}));
  const made = h("form.filters", {submit: event => {
    event.preventDefault();
    const [a, b] = [...made.querySelectorAll("input")].map(input => fullName(input.value));
    go(comparePath(a, b));
  }}, field(0, "First"), field(1, "Second"), h("button", {type: "submit"}, "Compare"));
  return made;
}

function differences(a, b, rows, links) {
  const differing = rows.filter(([, first, second]) => first !== second);
  return table("Differences", [
    {name: "", cell: ([name]) => name},
    {name: h("a", {href: links[0]}, a), number: true, cell: ([, first]) => first || "–"},
    {name: h("a", {href: links[1]}, b), number: true, cell: ([, , second]) => second || "–"},
    {name: "ratio", number: true, cell: ([, , , one, other]) => one > 0 && other > 0 ? `${Number((other / one).toPrecision(3))}×` : ""},
  ], differing, "No differences.");
}

const figure = (name, text, one, other) => [name, text(one ?? 0), text(other ?? 0), one, other];

async function iterations(a, b, signal) {
  const of = valueText;
  const variables = [...new Set([...Object.keys(a.variant ?? {}), ...Object.keys(b.variant ?? {})])].sort();
  const rows = [
    ...variables.map(name => [name, of(a, name), of(b, name)]),
    ["change", changeText(a.change), changeText(b.change)],
    ["source edits", (a.patchedSourceHash ?? "").slice(0, 12), (b.patchedSourceHash ?? "").slice(0, 12)],
    ["verdict", verdictWord(a.verdict), verdictWord(b.verdict)],
    ["device", a.device ?? "", b.device ?? ""],
    figure("time", timeText, a.timeUs, b.timeUs),
    figure("time, warm", timeText, a.warmUs, b.warmUs),
    figure("time, cold", timeText, a.coldUs, b.coldUs),
    figure("speedup over the start", speedupText, a.speedupOverStart, b.speedupOverStart),
    figure("speedup over the baseline", speedupText, a.speedupOverBaseline, b.speedupOverBaseline),
    ["driver", a.gpu?.driverVersion ?? "", b.gpu?.driverVersion ?? ""],
    ["NVRTC", a.toolchain?.nvrtc ?? "", b.toolchain?.nvrtc ?? ""],
  ];
  const {metrics: known = []} = await get("metrics", {}, signal);
  const campaignOf = name => name.split("/iterations/")[0];
  const links = [a, b].map(one => iterationPath(campaignOf(one.name), one.number ?? 0));
  const titles = [a, b].map(one => campaignOf(a.name) === campaignOf(b.name) ? `iteration ${one.number ?? 0}` : `${numberOf(campaignOf(one.name))}/${one.number ?? 0}`);
  const launches = launchesOf(b.evidence, a.evidence).map(({entry, before, after}) => {
    if (!before || !after) return section(entry, h("p", {}, `Only ${before ? titles[0] : titles[1]} launches this kernel.`));
    const differing = launchRows(before, after, known).filter(row => row.differs);
    return section(entry, table(`Evidence of ${entry}`, [
      {name: "", cell: row => h("span", {title: row.meaning}, row.name, " ", h("small", {}, row.unit))},
      {name: titles[0], number: true, cell: row => row.before}, {name: titles[1], number: true, cell: row => row.after},
      {name: "ratio", number: true, cell: row => row.ratio}, {name: "meaning", wide: true, cell: row => h("span.quiet", {}, row.meaning)},
    ], differing, "The evidence does not differ."));
  });
  const sources = await Promise.all([a, b].map(one => sourceOf(campaignOf(one.name), one, signal).catch(() => "")));
  return [
    section("Differences", differences(...titles, rows, links)), ...launches,
    sources[0] !== sources[1] && section("Source", differenceView(lineDifference(...sources))),
  ];
}

async function campaigns(a, b, signal) {
  const rows = [
    ["kernel", a.bundle, b.bundle],
    ["bundle hash", (a.bundleHash ?? "").slice(0, 12), (b.bundleHash ?? "").slice(0, 12)],
    ["size", objectiveText(a.spec?.goal), objectiveText(b.spec?.goal)],
    figure("goal", speedupText, a.spec?.goal?.speedup, b.spec?.goal?.speedup),
    figure("budget, iterations", numberText, a.spec?.budget?.iterations, b.spec?.budget?.iterations),
    figure("budget, minutes", numberText, a.spec?.budget?.minutes, b.spec?.budget?.minutes),
    figure("budget, dollars", numberText, a.spec?.budget?.dollars, b.spec?.budget?.dollars),
    ["device", a.device ?? "", b.device ?? ""],
    ["state", stateWord(a.state), stateWord(b.state)],
    ["stopped because", stopText(a.stopReason), stopText(b.stopReason)],
    ["tier", tierWord(a.tier), tierWord(b.tier)],
    ...[["tried", "tried"], ["kept", "kept"], ["reverted", "reverted"], ["rejected", "rejected"], ["not in the recording", "untried"]]
      .map(([name, count]) => figure(name, numberText, countsOf(a)[count], countsOf(b)[count])),
    figure("start", timeText, a.startUs, b.startUs),
    figure("best time", timeText, a.bestUs, b.bestUs),
    figure("baseline", timeText, a.baselineUs, b.baselineUs),
    figure("speedup over the start", speedupText, a.speedupOverStart, b.speedupOverStart),
    figure("speedup over the baseline", speedupText, a.speedupOverBaseline, b.speedupOverBaseline),
    figure("GPU time", secondsText, a.gpuSeconds, b.gpuSeconds),
  ];
  const fields = "number,verdict,speedupOverStart,speedupOverBaseline";
  const journeys = await Promise.all([a, b].map(async campaign => ({campaign, iterations: await allIterations(campaign.name, {fields, verdict: "KEPT"}, signal)})));
  const made = [section("Differences", differences(a.name, b.name, rows, [a, b].map(one => campaignPath(one.name))))];
  if (journeys.some(({campaign, iterations: all}) => bestSoFar(campaign, all).length)) {
    const chart = journeysChart(journeys);
    signal.addEventListener("abort", () => chart.dispose());
    made.push(section("Journeys", chart.element));
  }
  const best = await Promise.all([a, b].map(one => one.best === undefined ? null : get(`${one.name}/iterations/${one.best}`, {fields: "variant,words"}, signal)));
  if (best[0] && best[1]) {
    const names = [...new Set([...Object.keys(best[0].variant ?? {}), ...Object.keys(best[1].variant ?? {})])].sort();
    made.push(section("Best variants", differences(`best of ${a.name}`, `best of ${b.name}`,
      names.map(name => [name, valueText(best[0], name), valueText(best[1], name)]), [a, b].map(one => iterationPath(one.name, one.best)))));
  }
  return made;
}
