// One campaign: journey, roofline, timeline, decision trail; live while it runs.
import {allIterations, follow, get} from "./api.js";
import {campaignActions} from "./actions.js";
import {facts, h, loading, notice, put, replace, say, section} from "./element.js";
import {journeyChart} from "./journey.js";
import {campaignPath, iterationPath, stateBadge} from "./links.js";
import {reportSections, speedOfLight} from "./report_sections.js";
import {revised} from "./revision.js";
import {rooflineChart, trafficText} from "./roofline.js";
import {timelineChart} from "./timeline.js";
import {Trail} from "./trail.js";
import {besideBaselineText, changeText, countsOf, countsText, dateText, dollarsText, ended, numberOf, objectiveText, secondsText, speedupText, stageWord, stopText, tierWord, timeText, untried, verdictWord} from "./words.js";

const DRAWN = "name,number,verdict,untried,change,reason,failure,speedupOverParent,speedupOverStart,speedupOverBaseline,timeUs";
const TIMED = "number,parent,change,stages,beside,builtAhead,worker,endTime";
const TIMED_MOST = 500;  // trials in the timeline: the latest
const REPORT = "summary,path,roofline,speedOfLight,changes,sizes,stages,next,findings,patterns,gpu,toolchain,host,build,rebuild,version,variables";

export async function campaignPage({main, signal, path, about, go, title}) {
  const name = `campaigns/${path[1]}`;
  replace(main, h("h1", {}, name), loading(name));
  const model = {campaign: await get(name, {}, signal), drawn: new Map(), timed: new Map(), all: false, report: null, reportError: null};
  title(`${model.campaign.bundle} · ${name}`);
  const bundle = await get(`${name}/bundle`, {fields: "variables"}, signal).catch(() => ({}));
  const variables = (bundle.variables ?? []).map(variable => variable.name);

  const head = h("div"), progress = h("p.progress", {hidden: true}), rest = h("div");
  const drawn = () => [...model.drawn.values()].filter(iteration => model.all || !untried(iteration)), timed = () => [...model.timed.values()];
  const open = iteration => go(iterationPath(name, iteration.number ?? 0));
  const journey = journeyChart({campaign: () => model.campaign, iterations: drawn, open});
  const timeline = timelineChart({iterations: timed, open});
  const roofline = rooflineChart({roofline: () => model.report?.roofline ?? {}, open: number => go(iterationPath(name, number))});
  const rooflineHost = h("div"), rooflineNote = h("p.quiet"), light = h("div");
  const switches = [0, 1].map(() => untriedSwitch(model, () => {
    drawSwitches();
    journey.draw();
    trail.begin();
  }));
  const drawSwitches = () => switches.forEach(one => one.draw());
  const trail = new Trail(name, variables, signal, () => !model.all, switches[1].element);
  signal.addEventListener("abort", () => [journey, timeline, roofline].forEach(chart => chart.dispose()));

  const drawHead = () => replace(head, ...heading(model, about, renew));
  const drawReport = () => {
    const shown = model.report?.roofline?.points?.length > 0;
    if (!shown) {
      replace(rooflineHost, h("p.empty", {}, model.reportError ? `No roofline: ${model.reportError.message}.`
        : "No roofline: the bundle's [work] section declares no floating-point operations, or nothing has been measured yet."));
    } else if (rooflineHost.firstChild !== roofline.element) {
      replace(rooflineHost, roofline.element);
    }
    replace(rooflineNote, shown ? trafficText(model.report.roofline) : "");
    if (shown) roofline.draw();
    replace(light, speedOfLight(model.report, model.reportError));
    replace(rest, ...reportSections(model));
  };
  const renew = async () => {
    model.campaign = await get(name, {}, signal);
    drawHead();
    drawSwitches();
    journey.draw();
  };
  const loadReport = async () => {
    try {
      model.report = await get(`${name}/report`, {fields: REPORT}, signal);
      model.reportError = null;
    } catch (error) {
      if (error.name === "AbortError") return;
      model.reportError = error;
    }
    drawReport();
  };
  const draw = iteration => {
    model.drawn.set(iteration.number ?? 0, iteration);
  };
  const add = iteration => {
    draw(iteration);
    model.timed.set(iteration.number ?? 0, iteration);
    for (const number of model.timed.keys()) {
      if (model.timed.size <= TIMED_MOST) break;
      model.timed.delete(number);
    }
  };
  const revise = revision => {
    const number = revision.number ?? 0;
    for (const all of [model.drawn, model.timed]) {
      if (all.has(number)) all.set(number, revised(all.get(number), revision));
    }
  };

  replace(main, head, progress,
    section("Journey", switches[0].element, journey.element),
    h("div.columns", {}, section("Roofline", rooflineHost, rooflineNote), section("Speed of light", light)),
    section("Timeline of stages and workers", timeline.element),
    section("Decision trail", trail.element), rest);
  drawHead();
  drawReport();
  await Promise.all([
    allIterations(name, {fields: DRAWN}, signal, all => {
      const first = model.drawn.size === 0;
      for (const iteration of all.slice(model.drawn.size)) draw(iteration);
      if (first) journey.draw();  // the rest is drawn once all of it has arrived
    }).then(() => (drawHead(), drawSwitches(), journey.draw())),
    get(`${name}/iterations`, {order: "ITERATION_ORDER_NUMBER_DESCENDING", page_size: TIMED_MOST, fields: TIMED}, signal).then(page => {
      for (const iteration of (page.iterations ?? []).reverse()) model.timed.set(iteration.number ?? 0, iteration);
      timeline.draw();
    }),
    trail.load(),
    loadReport(),
  ]);
  main.dataset.ready = "true";

  const soon = throttle(500, signal, () => {
    renew().catch(() => {});
    timeline.draw();
    trail.news();
  });
  const later = throttle(4000, signal, loadReport);
  const message = ({event, progress: where}) => {
    if (where) return showProgress(progress, where);
    const judged = event.finished?.iteration;
    if (judged) {
      add(judged);
      if (!untried(judged)) say(`Iteration ${judged.number ?? 0}, ${changeText(judged.change)}: ${verdictWord(judged.verdict)}`);
    }
    for (const revision of event.finished?.revised ?? []) revise(revision);
    if (event.ended) progress.hidden = true;
    main.dataset.sequence = event.sequence;
    soon();
    if (judged || event.ended) later();
  };
  if (ended(model.campaign) && !model.campaign.verifying) return;
  follow(name, model.campaign.lastSequence ?? 0, signal, {message, state: (state, error) => {
    main.dataset.stream = state;
    if (state !== "refused") progress.hidden = true;
    if (state === "ended") later();
    if (state === "refused") progress.hidden = false, replace(progress, `Live updates are off: ${error.message}`);
  }});
}

// Iterations that the recording lacks carry no result and crowd out the others: says how many there are, and shows them on demand.
function untriedSwitch(model, changed) {
  const box = h("input", {type: "checkbox", change: () => {
    model.all = box.checked;
    changed();
  }});
  const text = h("span"), element = h("label.switch", {hidden: true}, box, text);
  return {element, draw: () => {
    const lacking = countsOf(model.campaign).untried;
    element.hidden = lacking === 0;
    box.checked = model.all;
    replace(text, lacking === 1 ? "Show 1 change that the recording lacks: it was passed over"
      : `Show ${lacking} changes that the recording lacks: they were passed over`);
  }};
}

function throttle(ms, signal, act) {
  let timer = null;
  return () => {
    timer ??= setTimeout(() => {
      timer = null;
      if (!signal.aborted) act();
    }, ms);
  };
}

function showProgress(element, {iteration, stage, step, steps, text, secondsLeft, worker}) {
  element.hidden = false;
  replace(element, h("strong", {}, `iteration ${numberOf(iteration)}`), ` ${text || stageWord(stage)}`,
    steps ? h("progress", {max: steps, value: step ?? 0, "aria-label": "steps"}) : null, steps ? ` step ${step ?? 0} of ${steps}` : "",
    secondsLeft > 0 ? `, about ${secondsText(secondsLeft)} left` : "", worker ? h("small", {}, ` on ${worker}`) : null);
}

function heading(model, about, renew) {
  const {campaign} = model;
  const goal = campaign.spec?.goal ?? {}, budget = campaign.spec?.budget ?? {};
  const why = campaign.message || stopText(campaign.stopReason);
  return [
    h("div.title", {}, h("h1", {}, `${campaign.bundle} ${objectiveText(goal)}`), stateBadge(campaign.state),
      h("span.quiet", {}, campaign.name), campaignActions(campaign, about, renew)),
    why && h("p.why", {}, why),
    campaign.state === "FAILED" && notice("error", "The start variant did not pass validation, so no change was tried.", why),
    h("div.figures", {},
      figure(campaign.baselineUs > 0 ? speedupText(campaign.speedupOverBaseline) : "–", "over the baseline",
             [besideBaselineText(campaign), campaign.baseline].filter(Boolean).join("; ") || (campaign.baselineUs > 0 ? "" : "no baseline")),
      figure(speedupText(campaign.speedupOverStart), "over the start", campaign.totalGain?.speedupOverStart > 0 ? "measured directly against the start" : ""),
      figure(timeText(campaign.bestUs), "best time", campaign.best === undefined ? "" : h("a", {href: `${campaignPath(campaign.name)}/iterations/${campaign.best}`}, `iteration ${campaign.best}`)),
      figure(String(countsOf(campaign).tried), "changes tried", countsText(countsOf(campaign)))),
    facts([
      ["device", campaign.device],
      ["goal", goal.speedup > 0 ? `${goal.speedup}×` : ""],
      ["tier", tierWord(campaign.tier)],
      ["start", campaign.startUs > 0 ? timeText(campaign.startUs) : ""],
      ["baseline", campaign.baselineUs > 0 ? timeText(campaign.baselineUs) : ""],
      ["time used", campaign.minutes > 0 ? secondsText(campaign.minutes * 60) : "", ` of ${budget.minutes || 60} min`],
      ["GPU time", secondsText(campaign.gpuSeconds ?? 0)],
      ["GPU busy", campaign.gpuBusy > 0 ? `${(100 * campaign.gpuBusy).toFixed(0)} %` : ""],
      ["cost", campaign.dollars > 0 ? dollarsText(campaign.dollars) : "", budget.dollars > 0 ? ` of ${dollarsText(budget.dollars)}` : ""],
      ["submitted", dateText(campaign.createTime)],
      ["ended", campaign.endTime ? dateText(campaign.endTime) : ""],
      ["hardware limits reached", (campaign.roof ?? []).join(", ")],
    ]),
  ];
}

const figure = (value, name, note) => put(h("div.figure"), h("b", {}, value), h("span", {}, name), note ? h("small", {}, note) : null);
