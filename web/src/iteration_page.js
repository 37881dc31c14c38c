// One iteration: verdict, prediction, samples, findings, evidence compared with its parent's, source difference.
import {get, getText} from "./api.js";
import {differenceView, lineDifference, macros, patchView} from "./difference.js";
import {facts, h, loading, notice, replace, section} from "./element.js";
import {launchesOf, launchRows} from "./evidence.js";
import {campaignPath, changeCode, comparePath, iterationLink, iterationPath, verdictBadge} from "./links.js";
import {code, findingsTable, scoreColumns, scoreNote} from "./report_sections.js";
import {samplesChart} from "./samples.js";
import {table} from "./table.js";
import {bytesText, changeText, checkWord, comparisonWord, countsOf, dateText, effectText, gainText, gateActionWord, numberText, predictionTexts, speedupText, stagesText, stageWord, timeText} from "./words.js";

export async function iterationPage({main, signal, path, title}) {
  const campaign = `campaigns/${path[1]}`, number = Number(path[3]);
  const name = `${campaign}/iterations/${path[3]}`;
  replace(main, h("h1", {}, `Iteration ${path[3]}`), loading(name));
  const [iteration, summary, {metrics: known = []}] = await Promise.all([
    get(name, {}, signal), get(campaign, {}, signal), get("metrics", {}, signal)]);
  const parent = iteration.parent === undefined ? null : await get(`${campaign}/iterations/${iteration.parent}`, {}, signal).catch(() => null);
  title(`${number} ${changeText(iteration.change)} · ${campaign}`);

  const samples = (iteration.pairs?.length ?? 0) + (iteration.confirmingPairs?.length ?? 0) > 0 ? samplesChart(iteration) : null;
  if (samples) signal.addEventListener("abort", () => samples.dispose());
  const {interval, prediction, failure} = iteration;
  const [predicted, outcome] = prediction ? predictionTexts(prediction, iteration.speedupOverParent) : [];
  replace(main,
    h("p.crumbs", {}, h("a", {href: campaignPath(campaign)}, `${summary.bundle} · ${campaign}`)),
    h("div.title", {}, h("h1", {}, `Iteration ${number}: `, changeCode(iteration.change)), verdictBadge(iteration.verdict),
      h("nav.actions", {"aria-label": "Iterations"},
        number > 0 && h("a.button", {href: iterationPath(campaign, number - 1), rel: "prev"}, "Previous"),
        number < countsOf(summary).tried + countsOf(summary).untried && h("a.button", {href: iterationPath(campaign, number + 1), rel: "next"}, "Next"),
        parent && h("a.button", {href: comparePath(`${campaign}/iterations/${iteration.parent}`, name)}, "Compare with its parent"))),
    h("p.why", {}, iteration.reason),
    failure && notice("error", `Failed ${stageWord(failure.stage)}: ${checkWord(failure.check)}${failure.size ? ` at ${failure.size}` : ""}`, failure.message),
    h("div.figures", {},
      parent && figure(speedupText(iteration.speedupOverParent), "over its parent", iterationLink(campaign, parent, `iteration ${iteration.parent}`)),
      figure(speedupText(iteration.speedupOverStart), "over the start"),
      figure(speedupText(iteration.speedupOverBaseline), "over the baseline"),
      figure(timeText(iteration.timeUs), "time per call", parent && iteration.parentTimeUs > 0 ? `parent in the same run: ${timeText(iteration.parentTimeUs)}` : "")),
    facts([
      ["device", iteration.device], ["worker", iteration.worker], ["chosen by", iteration.author],
      ["comparison", iteration.comparison ? comparisonWord(iteration.comparison) : ""],
      ["99 % prediction interval", interval?.pairs ? `${gainText(interval.lower ?? 0)} to ${gainText(interval.upper ?? 0)}` : "",
       interval?.pairs ? ` ${interval.pairs} pairs, ${interval.discarded ?? 0} discarded` : ""],
      ["warm", iteration.warmUs > 0 ? timeText(iteration.warmUs) : ""], ["cold", iteration.coldUs > 0 ? timeText(iteration.coldUs) : ""],
      ["started", dateText(iteration.createTime)], ["ended", dateText(iteration.endTime)],
      ["stages", stagesText(iteration)],
      ["notes", iteration.notes],
      ["compute-sanitizer", iteration.unsanitized && iteration.verdict === "KEPT" ? "has not run over it yet" : ""],
    ]),
    iteration.sizes?.length && section("By size", table("Times by size", [
      {name: "size", cell: at => at.size}, {name: "weight", number: true, cell: at => numberText(at.weight)},
      {name: "time", number: true, cell: at => timeText(at.timeUs)}, {name: "parent", number: true, cell: at => timeText(at.parentTimeUs)},
      {name: "over its parent", number: true, cell: at => at.interval ? speedupText(Math.exp(at.interval.meanLogRatio ?? 0)) : "–"},
      {name: "99 % prediction interval", cell: at => at.interval?.pairs ? `${gainText(at.interval.lower ?? 0)} to ${gainText(at.interval.upper ?? 0)}` : "–"},
    ], iteration.sizes)),
    iteration.failedGates?.length && section("Failed gates", table("Gates", [
      {name: "gate", cell: gate => gate.gate}, {name: "action", cell: gate => gateActionWord(gate.action)}, {name: "message", wide: true, cell: gate => gate.text},
      {name: "value", number: true, cell: gate => numberText(gate.value ?? 0)}, {name: "threshold", number: true, cell: gate => numberText(gate.threshold ?? 0)},
    ], iteration.failedGates)),
    h("div.columns", {},
      section("Why this change", h("p", {}, iteration.why || "No reason is recorded."), facts([
        ["rule", iteration.finding?.rule], ["finding", iteration.finding?.text], ["effect", effectText(iteration.effect)],
        ["predicted", predicted || prediction?.text], ["outcome", outcome],
      ])),
      section("Samples", samples ? samples.element : h("p.empty", {}, "This iteration was not timed."))),
    section("Source difference", await sourceDifference(summary, iteration, parent, signal)),
    section("Findings", h("p.quiet", {}, parent ? `From the evidence of iteration ${iteration.parent}, on which this change was chosen.`
      : "Findings are listed with the iterations that were chosen from them."), findingsTable(iteration.findings ?? [])),
    section("Changes considered", considered(iteration)),
    section("Evidence", evidence(campaign, iteration, parent, known)),
    iteration.errors?.length && section("Outputs against the reference", table("Outputs", [
      {name: "tensor", cell: error => error.tensor}, {name: "elements", number: true, cell: error => numberText(Number(error.elements ?? 0))},
      {name: "largest difference", number: true, cell: error => numberText(error.maxAbsolute ?? 0)},
      {name: "mean difference", number: true, cell: error => numberText(error.meanAbsolute ?? 0)},
      {name: "relative", number: true, cell: error => numberText(error.relative ?? 0)}, {name: "wrong elements", number: true, cell: error => numberText(Number(error.wrong ?? 0))},
    ], iteration.errors)),
    (iteration.build || iteration.blobs?.length) && section("Build", iteration.build && code(iteration.build), blobs(iteration)));
  main.dataset.ready = "true";
}

const figure = (value, name, note) => h("div.figure", {}, h("b", {}, value), h("span", {}, name), note ? h("small", {}, note) : null);

async function sourceDifference(summary, iteration, parent, signal) {
  if (!parent) return h("p.empty", {}, "This is the start variant: it has no parent to compare with.");
  if (iteration.change?.source) return patchView(iteration.change.source.patch ?? "");
  const made = [h("p.quiet", {}, "The source is unchanged; these macros are passed to the compiler.")];
  made.push(differenceView(lineDifference(macros(parent), macros(iteration)), 20));
  if (iteration.patchedSourceHash && iteration.patchedSourceHash !== parent.patchedSourceHash) {
    const [before, after] = await Promise.all([parent, iteration].map(one => sourceOf(summary.name, one, signal)));
    made.push(differenceView(lineDifference(before, after)));
  }
  return made;
}

export async function sourceOf(campaign, iteration, signal) {
  if (iteration.patchedSourceHash) return getText(`blobs/${iteration.patchedSourceHash}`, signal);
  return (await get(`${campaign}/bundle`, {fields: "source"}, signal)).source?.text ?? "";
}

function considered(iteration) {
  const rows = [...iteration.score ? [{change: iteration.change, score: iteration.score, reason: "chosen"}] : [], ...iteration.passedOver ?? []];
  return [rows.length > 0 && scoreNote(), table("Changes considered", [
    {name: "change", cell: row => changeCode(row.change)},
    ...scoreColumns,
    {name: "why", wide: true, cell: row => row.reason},
  ], rows, "No other change was considered.")];
}

function evidence(campaign, iteration, parent, known) {
  const launches = launchesOf(iteration.evidence, parent?.evidence).filter(({after}) => after);
  if (!launches.length) return h("p.empty", {}, iteration.evidence?.partialReason || "No launch was profiled.");
  return launches.map(({entry, before, after}) => [
    h("h3", {}, h("code", {}, entry)),
    table(`Evidence of ${entry}`, [
      {name: "", cell: row => h("span", {title: row.meaning}, row.name, " ", h("small", {}, row.unit))},
      parent && {name: `parent, ${iteration.parent}`, number: true, cell: row => row.before},
      {name: "this", number: true, cell: row => row.differs ? h("strong", {}, row.after) : row.after},
      parent && {name: "ratio", number: true, cell: row => row.ratio},
      {name: "meaning", wide: true, cell: row => h("span.quiet", {}, row.meaning)},
    ].filter(Boolean), launchRows(before, after, known)),
    after.advice?.length > 0 && h("details", {}, h("summary", {}, `ncu's advice (${after.advice.length})`),
      table("ncu's advice", [
        {name: "rule", cell: advice => advice.rule}, {name: "advice", wide: true, cell: advice => advice.text},
        {name: "estimated", number: true, cell: advice => advice.estimatedSpeedupPercent > 0 ? `${numberText(advice.estimatedSpeedupPercent)} %` : "–"},
      ], after.advice)),
  ]);
}

function blobs(iteration) {
  const stored = iteration.blobs ?? [];
  return stored.length === 0 ? null : h("ul", {}, stored.map(blob => h("li", {},
    h("a", {href: `/api/blobs/${blob.hash}`, download: `${(blob.kind ?? "blob").toLowerCase()}-${blob.hash.slice(0, 12)}`}, (blob.kind ?? "blob").toLowerCase().replace("_", " ")),
    ` ${bytesText(Number(blob.bytes ?? 0))} `, h("code", {}, blob.hash.slice(0, 12)))));
}
