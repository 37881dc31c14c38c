// What a campaign's report adds to its page.
import {facts, h, notice, section} from "./element.js";
import {changeCode, iterationLink} from "./links.js";
import {table} from "./table.js";
import {bytesText, effectText, lossesText, numberText, percentText, phaseWord, secondsText, signedText, speedupText, stageWord, timeText} from "./words.js";

export function reportSections({campaign, report}) {
  if (!report) return [];
  const made = [];
  const add = (title, rows, ...content) => rows?.length && made.push(section(title, ...content));
  const path = new Set(report.path ?? []);
  if (path.size > 1) {
    made.push(section("Kept changes from start to best", h("p.path", {}, [...path].map((number, at) =>
      [at ? " → " : "", iterationLink(campaign.name, {number})]))));
  }
  const right = [];
  const beside = (title, rows, content) => rows?.length && right.push(section(title, content));
  const losses = lossesText(report.sizes);
  const weights = campaign.spec?.goal?.sizes ?? {};
  add("Sizes", report.sizes, losses && notice("error", "The best variant is slower at", losses), table("Times by size", [
    {name: "size", cell: row => weights[row.size] ? `${row.size} (${numberText(weights[row.size])})` : row.size},
    {name: "start", number: true, cell: row => timeText(row.startUs)},
    {name: "best", number: true, cell: row => timeText(row.bestUs)},
    {name: "baseline", number: true, cell: row => timeText(row.baselineUs)},
    {name: "over start", number: true, cell: row => speedupText(row.startUs / row.bestUs)},
    {name: "over baseline", number: true, cell: row => speedupText(row.baselineUs / row.bestUs)},
    {name: "memory, start", number: true, cell: row => bytesText(Number(row.startBytes))},
    {name: "memory, best", number: true, cell: row => bytesText(Number(row.bestBytes))},
  ], report.sizes ?? []));
  beside("Stage times: planned and actual", report.stages, table("Stages", [
    {name: "stage", cell: row => stageWord(row.stage)},
    {name: "times", number: true, cell: row => row.times ?? 0},
    {name: "planned", number: true, cell: row => row.plannedSeconds > 0 ? secondsText(row.plannedSeconds) : "–"},
    {name: "actual", number: true, cell: row => row.actualSeconds > 0 ? secondsText(row.actualSeconds) : "–"},
    {name: "difference", number: true, cell: row => row.plannedSeconds > 0 ? percentText((row.actualSeconds / row.plannedSeconds - 1) * 100) : "–"},
    {name: "total", number: true, cell: row => secondsText(row.totalSeconds ?? 0)},
  ], report.stages ?? []));
  beside("Untried changes", report.next, [scoreNote(), table("Untried changes", [
    {name: "change", cell: row => changeCode(row.change)},
    {name: "from", number: true, cell: row => row.parent ?? 0},
    ...scoreColumns,
    {name: "finding", cell: row => row.finding ?? "–"},
  ], (report.next ?? []).slice(0, 12))]);
  const left = report.changes?.length ? [section("Before and after", beforeAfter("Before and after", report.changes))] : [];
  if (left.length || right.length) made.push(h("div.columns", {}, h("div.stack", {}, left), h("div.stack", {}, right)));
  add("Findings of the best variant", report.findings, findingsTable(report.findings ?? []));
  const gpu = report.gpu ?? {}, tools = report.toolchain ?? {};
  made.push(section("Environment", facts([
    ["GPU", gpu.name], ["SMs", gpu.smCount], ["driver", gpu.driverVersion], ["NVRTC", tools.nvrtc], ["nvcc", tools.nvcc],
    ["ncu", tools.ncu], ["compute-sanitizer", tools.computeSanitizer], ["PyTorch", tools.pytorch], ["host", report.host], ["Pawl", report.version],
  ]), report.build && [h("h3", {}, "Build command of the best variant"), code(report.build)],
  report.rebuild?.length > 0 && [h("h3", {}, "Export and verify the best variant"), code(report.rebuild.join("\n"))]));
  return made;
}

// What the parts of a score are: see Score of proto/pawl/v1/campaign.proto.
export const scoreNote = () => h("p.quiet", {}, "Expected log speedup over the best variant of that time. The improvement counts a loss as zero and allows for failing a check. " +
  "Mean and sd are those of the posterior; rules and patterns are the prior's part of the mean, and the model's part is what the campaign's measurements add to it.");
const mean = score => (score?.rules ?? 0) + (score?.model ?? 0) + (score?.patterns ?? 0);
const term = of => row => row.score ? of(row.score) : "";
export const scoreColumns = [
  {name: "improvement", number: true, cell: term(score => score.sd ? (score.gain ?? 0).toFixed(4) : "–")},
  {name: "mean", number: true, cell: term(score => signedText(mean(score)))},
  {name: "sd", number: true, cell: term(score => score.sd ? score.sd.toFixed(3) : "–")},
  {name: "rules", number: true, cell: term(score => signedText(score.rules))},
  {name: "model", number: true, cell: term(score => signedText(score.model))},
  {name: "patterns", number: true, cell: term(score => signedText(score.patterns))},
];
export const code = text => h("pre", {tabindex: "0", role: "region", "aria-label": "Commands"}, text);

export function findingsTable(findings) {
  return table("Findings", [
    {name: "rule", cell: finding => h("span", {}, finding.rule, finding.roof ? h("small", {}, " hardware limit") : null)},
    {name: "phase", cell: finding => phaseWord(finding.phase)},
    {name: "message", wide: true, cell: finding => finding.text},
    {name: "observed", cell: finding => (finding.seen ?? []).map(seen =>
      h("div.seen", {}, `${seen.metric} ${numberText(seen.value ?? 0)} ${seen.operator} ${numberText(seen.threshold ?? 0)}`))},
    {name: "asks for", wraps: true, cell: finding => (finding.wants ?? []).map(effectText).join(", ")},
    {name: "advice", wide: true, cell: finding => finding.advice},
  ], findings, "No rule matched the evidence.");
}

const value = (row, which) => row[which] === undefined ? "–" : numberText(row[which]);
const metricName = {name: "metric", cell: row => h("span", {title: row.meaning}, row.metric, " ", h("small", {}, row.unit))};

function beforeAfter(caption, rows) {
  return table(caption, [
    metricName,
    {name: "start", number: true, cell: row => value(row, "start")},
    {name: "best", number: true, cell: row => value(row, "best")},
    {name: "ratio", number: true, cell: row => row.start > 0 && row.best > 0 ? `${Number((row.best / row.start).toPrecision(3))}×` : ""},
  ], rows);
}

// Shares of the GPU's peaks, start over best.
export function speedOfLight(report, error) {
  if (!report?.speedOfLight?.length) {
    return h("p.empty", {}, error ? `No report: ${error.message}.` : "Nothing has been profiled yet.");
  }
  const bar = (share, kind) => {
    const made = h("span.bar." + kind);
    made.style.width = `${Math.max(0, Math.min(100, share ?? 0))}%`;
    return h("div.track", {"aria-hidden": "true"}, made);
  };
  return [
    table("Speed of light", [
      metricName,
      {name: h("span", {}, h("i.key.before"), "start"), number: true, cell: row => value(row, "start")},
      {name: h("span", {}, h("i.key.after"), "best"), number: true, cell: row => value(row, "best")},
      {name: "of the peak", cell: row => h("div.bars", {}, bar(row.start, "before"), bar(row.best, "after"))},
    ], report.speedOfLight),
  ];
}
