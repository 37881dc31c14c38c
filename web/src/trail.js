// The decision trail: the iterations of a campaign a page at a time, as the orchestrator filters and orders them.
import {get} from "./api.js";
import {h, loading, option, replace} from "./element.js";
import {changeCode, iterationLink, verdictBadge} from "./links.js";
import {pager, table} from "./table.js";
import {predictionTexts, speedupText, timeText, untried} from "./words.js";

const SIZE = 25;
const LOOK = 200;  // iterations at a time when it is only asked whether one is left to be shown
const FIELDS = "name,number,parent,change,finding,prediction,verdict,untried,reason,failure,timeUs,speedupOverParent,speedupOverStart," +
  "speedupOverBaseline,author,failedGates";

function predicted(iteration) {
  const prediction = iteration.prediction;
  if (!prediction) return "–";
  const range = prediction.high > 0 ? `${prediction.low?.toFixed(2) ?? "0"}–${prediction.high.toFixed(2)}×` : "–";
  return h("span", {title: prediction.text}, range,
    prediction.metric && h("small.under", {}, `${prediction.metric} ${prediction.direction === "DIRECTION_LESS" ? "↓" : "↑"}`));
}

function measured(iteration) {
  const {outcome} = iteration.prediction ?? {};
  return h("span", {}, speedupText(iteration.speedupOverParent),
    outcome && outcome !== "UNCHECKED" && outcome !== "OUTCOME_UNSPECIFIED"
      ? h("small.under.breaks", {title: predictionTexts(iteration.prediction, iteration.speedupOverParent)[1]}, outcome === "CAME_TRUE" ? "as predicted" : failedPart(iteration.prediction))
      : null);
}

// What a prediction got wrong, in a few words.
function failedPart({metric, timeOutcome, metricOutcome}) {
  return [timeOutcome === "FAILED" && "speedup", metricOutcome === "FAILED" && metric].filter(Boolean).join(" and ").concat(" not as predicted").trim();
}

const columns = campaign => [
  {name: "#", number: true, cell: iteration => iterationLink(campaign, iteration)},
  {name: "verdict", cell: iteration => verdictBadge(iteration.verdict)},
  {name: "change", cell: iteration => h("span", {}, changeCode(iteration.change),
    iteration.parent !== undefined && iteration.parent !== (iteration.number ?? 0) - 1 ? h("small.under", {}, `from iteration ${iteration.parent}`) : null,
    iteration.author && iteration.author !== "pawl" ? h("small.under", {}, `proposed by ${iteration.author}`) : null)},
  {name: "finding", cell: iteration => h("span", {title: iteration.finding?.text}, iteration.finding?.rule ?? "–")},
  {name: "predicted", cell: predicted},
  {name: "over parent", number: true, cell: measured},
  {name: "over start", number: true, cell: iteration => speedupText(iteration.speedupOverStart)},
  {name: "over baseline", number: true, cell: iteration => speedupText(iteration.speedupOverBaseline)},
  {name: "time", number: true, cell: iteration => timeText(iteration.timeUs)},
  {name: "reason", wide: true, cell: iteration => h("span.clip", {title: iteration.reason}, iteration.reason)},
];

export class Trail {
  // `hides()`: whether iterations that the recording lacks are left out. `note` is shown above the table.
  constructor(campaign, variables, signal, hides, note) {
    this.campaign = campaign;
    this.signal = signal;
    this.hides = hides;
    this.filter = {order: "ITERATION_ORDER_NUMBER_DESCENDING", verdict: "", variable: "", finding: ""};
    this.tokens = [""];  // of the pages up to this one
    this.host = h("div");
    const choose = (name, label, options) => h("label", {}, label, h("select", {change: event => {
      this.filter[name] = event.target.value;
      this.tokens = [""];
      this.load();
    }}, options));
    this.element = h("div", {},
      h("div.filters", {},
        choose("order", "Order", [option("ITERATION_ORDER_NUMBER_DESCENDING", "newest first"), option("ITERATION_ORDER_NUMBER", "oldest first"),
                                  option("ITERATION_ORDER_SPEEDUP", "fastest first")]),
        choose("verdict", "Verdict", [option("", "all"), option("KEPT", "kept"), option("REVERTED", "reverted"), option("REJECTED", "rejected")]),
        choose("variable", "Variable", [option("", "all"), ...variables.map(name => option(name))]),
        h("label", {}, "Finding", h("input", {type: "text", placeholder: "all", size: 16, spellcheck: "false", change: event => {
          this.filter.finding = event.target.value.trim();
          this.tokens = [""];
          this.load();
        }}))),
      note, this.host);
  }

  // From the first page again: what is shown has changed.
  begin() {
    this.tokens = [""];
    return this.load();
  }

  ask(page_size, page_token, fields) {
    return get(`${this.campaign}/iterations`, {...this.filter, page_size, page_token, fields}, this.signal);
  }

  // As many rows as a page has, and the token of what follows them; none where nothing that is shown does.
  async page(token) {
    const hides = this.hides();
    const shown = page => (page.iterations ?? []).filter(iteration => !hides || !untried(iteration));
    const rows = [];
    do {
      const page = await this.ask(SIZE - rows.length, token, FIELDS);
      rows.push(...shown(page));
      token = page.nextPageToken;
    } while (token && rows.length < SIZE);
    for (let next = hides && token; next;) {
      const page = await this.ask(LOOK, next, "untried");
      if (shown(page).length > 0) break;
      if (!(next = page.nextPageToken)) token = "";
    }
    return {rows, token};
  }

  async load() {
    if (!this.host.hasChildNodes()) replace(this.host, loading("iterations"));
    const asked = this.asked = {};
    let page;
    try {
      page = await this.page(this.tokens.at(-1));
    } catch (error) {
      if (error.name !== "AbortError") replace(this.host, h("p.error", {role: "alert"}, `${error.message}. ${error.fix ?? ""}`));
      return;
    }
    if (this.asked !== asked) return;  // a later one is under way
    const {rows, token} = page;
    const back = this.tokens.length > 1 && (() => (this.tokens.pop(), this.load()));
    const on = token && (() => (this.tokens.push(token), this.load()));
    const begin = (this.tokens.length - 1) * SIZE;
    replace(this.host, table("Decision trail", columns(this.campaign), rows, "No matching iterations."),
      back || on ? pager(`${begin + 1}–${begin + rows.length}`, back, on) : null);
  }

  // There is a new iteration: it is on the first page when the newest come first, and may be on others.
  news() {
    if (this.tokens.length === 1) this.load();
  }
}
