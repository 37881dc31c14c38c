// Actions on a campaign: pause, resume, cancel, submit again, download the report. They need the same role as the API calls;
// without it the buttons are not shown.
import {get, getFile, post} from "./api.js";
import {h, replace} from "./element.js";
import {campaignPath} from "./links.js";
import {ended, numberOf} from "./words.js";

export function campaignActions(campaign, about, renew) {
  const says = h("p.error", {role: "alert"});
  const act = (text, what, message, sure) => h("button", {type: "button", click: async event => {
    if (sure && !confirm(sure)) return;
    event.target.disabled = true;
    replace(says);
    try {
      await post(`${campaign.name}/${what}`, message);
      await renew();
    } catch (error) {
      if (error.name !== "AbortError") replace(says, `${error.message}. ${error.fix ?? ""}`);
      event.target.disabled = false;
    }
  }}, text);
  const report = (text, format, ending) => h("button", {type: "button", click: async () => {
    replace(says);
    try {
      const file = URL.createObjectURL(await getFile(`${campaign.name}/report`, {format}));
      h("a", {href: file, download: `campaign-${numberOf(campaign.name)}.${ending}`}).click();
      setTimeout(() => URL.revokeObjectURL(file), 10_000);
    } catch (error) {
      replace(says, `${error.message}. ${error.fix ?? ""}`);
    }
  }}, text);
  const may = about.maySubmit, over = ended(campaign);
  return h("div.actions", {},
    may && !over && (campaign.state === "PAUSED" ? act("Resume", "resume", {}) : act("Pause", "pause", {reason: "paused from the dashboard"})),
    may && !over && act("Cancel", "cancel", {reason: "cancelled from the dashboard"}, `Cancel ${campaign.name}? Its results so far are kept.`),
    report("Report (HTML)", "REPORT_FORMAT_HTML", "html"), report("Report (Markdown)", "REPORT_FORMAT_MARKDOWN", "md"),
    h("a.button", {href: `/explore?campaign=${numberOf(campaign.name)}`}, "Explore"),
    may && h("button", {type: "button", click: event => event.target.closest(".title").after(submitForm(campaign)) || event.target.remove()}, "Submit again…"),
    says);
}

// The same bundle again, with another goal or budget.
function submitForm(campaign) {
  const {goal = {}, budget = {}, gpu = ""} = campaign.spec ?? {};
  const says = h("p.error", {role: "alert"});
  const field = (name, label, value, more) => h("label", {}, label, h("input", {name, value: value ?? "", ...more}));
  const form = h("form.submit", {"aria-label": "Submit again", submit: async event => {
    event.preventDefault();
    const data = new FormData(form), number = name => Number(data.get(name)) || 0;
    const send = form.querySelector("button");
    send.disabled = true;
    try {
      const made = await post("campaigns", {
        bundle: await get(`${campaign.name}/bundle`),
        spec: {
          ...campaign.spec,
          // Another size than the one that stands for several is a goal of its own.
          goal: {...(data.get("size") === goal.size ? goal : {}), size: data.get("size"), speedup: number("speedup")},
          budget: {...budget, iterations: Math.round(number("iterations")), minutes: number("minutes"), dollars: number("dollars")},
          gpu: data.get("gpu"),
        },
        requestId: crypto.getRandomValues(new Uint32Array(4)).join("-"),
      });
      window.dispatchEvent(new CustomEvent("go", {detail: campaignPath(made.name)}));
    } catch (error) {
      replace(says, `${error.message}. ${error.fix ?? ""} `, error.problems?.join("; "));
      send.disabled = false;
    }
  }},
  field("size", "Size", goal.size, {required: true}),
  field("speedup", "Goal (× baseline speed)", goal.speedup, {type: "number", step: "any", min: 0}),
  field("iterations", "Iterations (0: no limit)", budget.iterations || 0, {type: "number", min: 0, step: 1}),
  field("minutes", "Minutes", budget.minutes || 60, {type: "number", min: 0, step: "any"}),
  field("dollars", "Dollars (0: no limit)", budget.dollars || 0, {type: "number", min: 0, step: "any"}),
  field("gpu", "GPU name contains", gpu),
  h("button", {type: "submit"}, "Submit"), says);
  queueMicrotask(() => form.querySelector("input").focus());
  return form;
}
