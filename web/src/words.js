// How figures and names of the messages are written, as `pawl` writes them.

const lower = (name, prefix) => (name ?? "").replace(prefix, "").replaceAll("_", " ").toLowerCase();

export const verdictWord = verdict => !verdict || verdict === "VERDICT_UNSPECIFIED" ? "–" : verdict.toLowerCase();
export const stateWord = state => lower(state, "CAMPAIGN_STATE_");
export const workerStateWord = state => lower(state, "WORKER_STATE_");
export const stageWord = stage => lower(stage, "STAGE_");
export const checkWord = check => lower(check, "CHECK_");
export const phaseWord = phase => lower(phase, "PHASE_");
export const tierWord = tier => !tier ? "" : lower(tier, "SUCCESS_TIER_");
export const outcomeWord = outcome => !outcome || outcome === "OUTCOME_UNSPECIFIED" ? "open" : lower(outcome, "");
const MOVES = {DIRECTION_MORE: ["rises", "rise"], DIRECTION_LESS: ["falls", "fall"]};

// [what was predicted, how it went]: "1.10–4.00×, waves rises" and "failed: 1.500× as predicted, waves did not rise (0.015 → 0.015)".
export function predictionTexts(prediction, speedup) {
  const {low = 0, high = 0, metric = "", direction, before, after, outcome, timeOutcome, metricOutcome} = prediction;
  const [moves, move] = MOVES[direction] ?? ["changes", "change"];
  const range = high > 0 ? `${low.toFixed(2)}–${high.toFixed(2)}×` : "";
  const predicted = [range, metric && `${metric} ${moves}`].filter(Boolean).join(", ");
  // A part that went as the whole did needs no words.
  const how = part => part === outcome ? "" : part === "CAME_TRUE" ? " as predicted" : ` ${outcomeWord(part)}`;
  const parts = [];
  if (range && speedup > 0) {
    parts.push(speedupText(speedup) + (timeOutcome !== "FAILED" ? how(timeOutcome)
      : speedup < low ? ` is below the predicted ${low.toFixed(2)}×` : ` is above the predicted ${high.toFixed(2)}×`));
  }
  const values = before === undefined || after === undefined ? "" : `${numberText(before)} → ${numberText(after)}`;
  if (metric && !values) parts.push(`${metric} ${outcomeWord(metricOutcome)}`);
  else if (metric) parts.push(metricOutcome === "FAILED" ? `${metric} did not ${move} (${values})` : `${metric} ${values}${how(metricOutcome)}`);
  return [predicted, [outcomeWord(outcome), parts.join(", ")].filter(Boolean).join(": ")];
}

export const comparisonWord = result => !result || result.startsWith("COMPARISON") ? "not compared" : lower(result, "");
export const gateActionWord = action => lower(action, "GATE_ACTION_");

const STOPS = {
  GOAL: "the goal is reached",
  ITERATIONS: "the iterations are used up",
  MINUTES: "the minutes are used up",
  DOLLARS: "the dollars are spent",
  SPACE: "no change is left to try",
  REVERTS: "too many reverts in a row",
  START: "the start variant did not pass",
  CANCELLED: "cancelled",
  ROOF: "the best variant is at a limit of the GPU",
  GAIN: "no change is expected to gain enough",
};
export const stopText = reason => STOPS[(reason ?? "").replace("STOP_REASON_", "")] ?? "";

export function changeText(change) {
  if (!change) return "start";
  if (change.source) return `edit ${change.source.name ?? ""}`;
  if (!change.variable) return "start";
  const from = change.fromWord || change.from, to = change.toWord || change.to;
  return from === undefined ? `${change.variable} →${to}` : `${change.variable} ${from}→${to}`;
}

// "build 1.2 s, validate 0.4 s": what each stage took in all, in the order in which they began.
export function stagesText(iteration) {
  const took = new Map();
  for (const {stage, seconds = 0} of iteration.stages ?? []) took.set(stage, (took.get(stage) ?? 0) + seconds);
  return [...took].map(([stage, seconds]) => `${stageWord(stage)} ${secondsText(seconds)}`).join(", ");
}

// The value of a variable as the bundle has it: a number or a word.
export const valueText = (iteration, name) => String(iteration.words?.[name] ?? iteration.variant?.[name] ?? "");

export const effectText = effect => !effect ? "" :
  lower(effect.resource, "RESOURCE_").replaceAll(" ", "_") + (effect.direction === "DIRECTION_LESS" ? "−" : "+");

export function timeText(us) {
  if (!(us > 0)) return "–";
  const digits = us < 10 ? 3 : us < 100 ? 2 : us < 1000 ? 1 : 0;
  return `${us.toFixed(digits)} µs`;
}

export const speedupText = speedup => speedup > 0 ? `${speedup.toFixed(3)}×` : "–";

// "at main"; of several sizes, the heaviest first: "over main (0.6), large (0.4)".
export function objectiveText(goal = {}) {
  const sizes = Object.entries(goal.sizes ?? {});
  if (sizes.length < 2) return `at ${goal.size ?? ""}`;
  return `over ${sizes.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([size, weight]) => `${size} (${numberText(weight)})`).join(", ")}`;
}

// Where the best variant is slower than the start or the baseline; "" where it is not. A few pairs do not tell less than
// a percent from noise.
export function lossesText(sizes = []) {
  return sizes.map(({size, startUs, bestUs, baselineUs}) => {
    const slower = [["start", startUs], ["baseline", baselineUs]].filter(([, us]) => us > 0 && bestUs > 0 && us / bestUs < 0.99);
    return slower.length ? `${size}: ${slower.map(([than, us]) => `${speedupText(us / bestUs)} the ${than}'s speed`).join(", ")}` : "";
  }).filter(Boolean).join("; ");
}

// The bounds of the best variant's speed over the baseline, where both were timed interleaved; "" where they were not.
export function besideBaselineText({best, totalGain}) {
  const interval = totalGain?.besideBaseline?.interval;
  if (totalGain?.iteration !== best || !(interval?.pairs > 1)) return "";
  return `${speedupText(Math.exp(interval.lower ?? 0))} to ${speedupText(Math.exp(interval.upper ?? 0))}, interleaved with it`;
}

export function numberText(value) {
  if (value === undefined || value === null || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000 && size < 1e8) return Math.round(value).toLocaleString("en-US").replaceAll(",", "\u202f");
  return String(Number(value.toPrecision(4)));
}

export function secondsText(seconds) {
  if (!(seconds >= 0)) return "–";
  if (seconds < 10) return `${seconds.toFixed(2)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor(whole / 60) % 60).padStart(2, "0")} min`;
}

export function bytesText(bytes) {
  if (!(bytes > 0)) return "–";
  const units = ["B", "KiB", "MiB", "GiB"];
  const step = Math.min(3, Math.floor(Math.log2(bytes) / 10));
  return `${Number((bytes / 1024 ** step).toPrecision(4))} ${units[step]}`;
}

export const dollarsText = dollars => dollars > 0 ? `$${dollars.toFixed(dollars < 1 ? 3 : 2)}` : "–";
export const percentText = share => `${share >= 0 ? "+" : "−"}${Math.abs(share).toFixed(2)} %`;
// Of a mean log ratio: how much faster, in per cent.
export const gainText = logRatio => percentText((Math.exp(logRatio) - 1) * 100);
export const signedText = value => !value ? "0" : `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(3)}`;

// In the reader's time zone, which it names: 2026-11-15 14:03:21 UTC+01:00.
export function dateText(timestamp) {
  if (!timestamp) return "–";
  const date = new Date(timestamp);
  const two = number => String(number).padStart(2, "0");
  const ahead = -date.getTimezoneOffset(), minutes = Math.abs(ahead);
  const zone = ahead === 0 ? "" : `${ahead > 0 ? "+" : "−"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
    `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())} UTC${zone}`;
}

export function agoText(timestamp, now = Date.now()) {
  if (!timestamp) return "–";
  const seconds = Math.max(0, (now - Date.parse(timestamp)) / 1000);
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

export const extentText = extent => extent ? `${extent.x ?? 0} × ${extent.y ?? 0} × ${extent.z ?? 0}` : "–";
export const ended = campaign => ["FINISHED", "FAILED", "CANCELLED"].includes(campaign.state);
// A recording lacks the variant: nothing was tried. The pages leave these out unless they are asked for, as `pawl` does.
export const untried = iteration => iteration.untried ?? false;
// A campaign's counts of changes, which the engine computes; the start is in none of them.
export const countsOf = campaign => ({tried: 0, kept: 0, reverted: 0, rejected: 0, untried: 0, running: 0, ...campaign.counts});
export const countsText = ({kept, reverted, rejected, untried}) =>
  `${kept} kept, ${reverted} reverted, ${rejected} rejected${untried > 0 ? `; the recording lacks ${untried} others` : ""}`;
// A campaign's or an iteration's own number, of campaigns/7 or campaigns/7/iterations/12.
export const numberOf = name => Number((name ?? "").split("/").pop());
