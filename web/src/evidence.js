// Evidence of two variants side by side, launch by launch.
import {extentText, numberText} from "./words.js";

// [{entry, before, after}] in the order of the launches; one of the two may be missing.
export function launchesOf(after, before) {
  const entries = [...new Set([...after?.launches ?? [], ...before?.launches ?? []].map(launch => launch.entry))];
  const find = (evidence, entry) => evidence?.launches?.find(launch => launch.entry === entry);
  return entries.map(entry => ({entry, before: find(before, entry), after: find(after, entry)}));
}

// What compiler and driver report, under the names of the metrics that report the same where there are any.
const FIXED = [
  ["grid", launch => extentText(launch.geometry?.grid), ""],
  ["block", launch => extentText(launch.geometry?.block), ""],
  ["shared memory requested", launch => (launch.geometry?.sharedBytes ?? 0) + (launch.resources?.staticSharedBytes ?? 0), "byte"],
  ["registers", launch => launch.resources?.registers ?? 0, "register/thread"],
  ["local_bytes", launch => launch.resources?.localBytes ?? 0, "byte/thread"],
  ["blocks_per_sm", launch => launch.resources?.blocksPerSm ?? 0, "block"],
];

function row(name, unit, meaning, before, after) {
  const text = value => value === undefined ? "–" : typeof value === "number" ? numberText(value) : value;
  const differs = before !== undefined && after !== undefined && text(before) !== text(after);
  const ratio = differs && typeof before === "number" && before > 0 && after > 0 ? `${Number((after / before).toPrecision(3))}×` : "";
  return {name, unit, meaning, before: text(before), after: text(after), differs, ratio};
}

// Rows of one launch; `known` is what /api/metrics says of metrics: their order, units and meanings.
export function launchRows(before, after, known) {
  const names = new Set([...Object.keys(before?.metrics ?? {}), ...Object.keys(after?.metrics ?? {})]);
  const rows = FIXED.filter(([name]) => !names.has(name))
    .map(([name, value, unit]) => row(name, unit, "", before && value(before), after && value(after)));
  const listed = known.filter(metric => names.delete(metric.metric));
  for (const {metric, unit = "", meaning = ""} of [...listed, ...[...names].sort().map(metric => ({metric}))]) {
    rows.push(row(metric, unit, meaning, before?.metrics?.[metric], after?.metrics?.[metric]));
  }
  return rows;
}
