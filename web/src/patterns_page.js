// What all campaigns have learned.
import {get} from "./api.js";
import {h, loading, option, replace} from "./element.js";
import {sortedTable} from "./table.js";
import {effectText, speedupText} from "./words.js";

const share = (part, whole) => whole > 0 ? `${part ?? 0} of ${whole}` : "–";

const COLUMNS = [
  {name: "finding", cell: pattern => pattern.rule || "–", key: pattern => pattern.rule ?? ""},
  {name: "effect", cell: pattern => effectText(pattern.effect), key: pattern => effectText(pattern.effect)},
  {name: "GPU", cell: pattern => pattern.architecture ?? "", key: pattern => pattern.architecture ?? ""},
  {name: "kernel", cell: pattern => pattern.bundle || "all", key: pattern => pattern.bundle ?? ""},
  {name: "tried", number: true, cell: pattern => pattern.tried ?? 0, key: pattern => pattern.tried ?? 0},
  {name: "kept", number: true, cell: pattern => share(pattern.kept, pattern.tried), key: pattern => (pattern.kept ?? 0) / (pattern.tried || 1)},
  {name: "median gain", number: true, cell: pattern => speedupText(pattern.medianGain), key: pattern => pattern.medianGain ?? 0},
  {name: "timed", number: true, cell: pattern => pattern.timed ?? 0, key: pattern => pattern.timed ?? 0},
  {name: "predictions came true", number: true, cell: pattern => share(pattern.cameTrue, pattern.predictions),
   key: pattern => (pattern.cameTrue ?? 0) / (pattern.predictions || 1)},
];

export async function patternsPage({main, signal}) {
  const host = h("div");
  const asked = {};
  const draw = async () => {
    const {patterns = []} = await get("patterns", asked, signal);
    replace(host, h("section", {}, sortedTable("Patterns", COLUMNS, patterns, {empty: "No matching patterns."})));
    return patterns;
  };
  replace(host, loading("patterns"));
  replace(main, h("h1", {}, "Patterns"), host);
  const all = await draw();
  const values = name => [...new Set(all.map(pattern => pattern[name]).filter(Boolean))].sort();
  const choose = (name, label, options) => h("label", {}, label, h("select", {change: event => (asked[name] = event.target.value, draw())}, option("", "all"), options.map(one => option(one))));
  const check = (name, label) => h("label.check", {}, h("input", {type: "checkbox", change: event => (asked[name] = event.target.checked ? "true" : undefined, draw())}), label);
  replace(main, h("h1", {}, "Patterns"),
    h("p.quiet", {}, "Each row says how often changes with this effect were kept, and how much they gained, when a campaign on this GPU architecture made them for this finding."),
    h("div.filters", {}, choose("rule", "Finding", values("rule")), choose("architecture", "GPU", values("architecture")),
      check("by_bundle", "Separate rows for each kernel"), check("own", "Only from this database")),
    host);
  main.dataset.ready = "true";
}
