// What differs between two texts, line by line, and between two sets of figures.
import {h} from "./element.js";
import {valueText} from "./words.js";

const MOST = 4_000_000;  // cells of the table below; larger texts are shown as replaced

// [[" " | "-" | "+", line], ...], by the longest common subsequence of what is left between equal ends.
export function lineDifference(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  let top = 0, tail = 0;
  while (top < a.length && top < b.length && a[top] === b[top]) ++top;
  while (tail < a.length - top && tail < b.length - top && a.at(-1 - tail) === b.at(-1 - tail)) ++tail;
  const old = a.slice(top, a.length - tail), made = b.slice(top, b.length - tail);
  const lines = a.slice(0, top).map(line => [" ", line]);
  if (old.length * made.length > MOST) {
    lines.push(...old.map(line => ["-", line]), ...made.map(line => ["+", line]));
  } else {
    const width = made.length + 1;
    const common = new Uint32Array((old.length + 1) * width);
    for (let i = old.length - 1; i >= 0; --i) {
      for (let j = made.length - 1; j >= 0; --j) {
        common[i * width + j] = old[i] === made[j] ? common[(i + 1) * width + j + 1] + 1
          : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
      }
    }
    let i = 0, j = 0;
    while (i < old.length || j < made.length) {
      if (i < old.length && j < made.length && old[i] === made[j]) lines.push([" ", old[i++]]), ++j;
      else if (j === made.length || (i < old.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) lines.push(["-", old[i++]]);
      else lines.push(["+", made[j++]]);
    }
  }
  return [...lines, ...a.slice(a.length - tail).map(line => [" ", line])];
}

// With a few equal lines around each difference.
export function differenceView(lines, around = 3) {
  const near = lines.map(() => false);
  lines.forEach(([kind], at) => {
    if (kind !== " ") for (let i = Math.max(0, at - around); i <= Math.min(lines.length - 1, at + around); ++i) near[i] = true;
  });
  const made = [];
  lines.forEach(([kind, line], at) => {
    if (!near[at]) {
      if (near[at - 1] || at === 0) made.push(h("span.gap", {}, "…"));
      return;
    }
    made.push(h(kind === "+" ? "ins" : kind === "-" ? "del" : "span", {}, `${kind} ${line}`));
  });
  return h("pre.difference", {tabindex: "0", role: "region", "aria-label": "Source difference"}, made);
}

// A unified diff as somebody wrote it.
export function patchView(patch) {
  return h("pre.difference", {tabindex: "0", role: "region", "aria-label": "Source difference"}, patch.split("\n").map(line => {
    const kind = line.startsWith("+") && !line.startsWith("+++") ? "ins" : line.startsWith("-") && !line.startsWith("---") ? "del"
      : line.startsWith("@@") ? "span.gap" : "span";
    return h(kind, {}, line || " ");
  }));
}

// What the compiler is given for a variant: a macro for every variable.
export const macros = iteration => Object.keys(iteration.variant ?? {}).sort().map(name => `#define ${name} ${valueText(iteration, name)}`).join("\n");
