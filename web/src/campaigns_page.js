// All campaigns, newest first.
import {get} from "./api.js";
import {h, loading, notice, replace} from "./element.js";
import {campaignLink, stateBadge} from "./links.js";
import {firstSteps} from "./first_steps.js";
import {table} from "./table.js";
import {countsOf, dateText, dollarsText, objectiveText, secondsText, speedupText, tierWord, timeText} from "./words.js";

const FRESH = 3000;  // ms between two updates

const COLUMNS = [
  {name: "campaign", cell: campaign => campaignLink(campaign)},
  {name: "kernel", cell: campaign => h("span", {}, campaign.bundle, h("small.under", {}, objectiveText(campaign.spec?.goal)))},
  {name: "state", cell: campaign => [stateBadge(campaign.state), campaign.waitingFor && h("small.under", {}, `waits: ${campaign.message}`)]},
  {name: "best over baseline", number: true, cell: campaign => [h("strong", {}, campaign.baselineUs > 0 ? speedupText(campaign.speedupOverBaseline) : "–"),
    campaign.spec?.goal?.speedup > 0 && h("small.under", {}, `goal ${campaign.spec.goal.speedup}×`)]},
  {name: "over start", number: true, cell: campaign => speedupText(campaign.speedupOverStart)},
  {name: "tier", cell: campaign => tierWord(campaign.tier)},
  {name: "best time", number: true, cell: campaign => timeText(campaign.bestUs)},
  {name: "tried", number: true, cell: campaign => h("span", {}, countsOf(campaign).tried, h("small.under", {}, `${countsOf(campaign).kept} kept`))},
  {name: "GPU time", number: true, cell: campaign => secondsText(campaign.gpuSeconds ?? 0)},
  {name: "cost", number: true, cell: campaign => dollarsText(campaign.dollars)},
  {name: "device", wide: true, cell: campaign => campaign.device ?? "–"},
  {name: "submitted", wraps: true, cell: campaign => h("time", {datetime: campaign.createTime}, dateText(campaign.createTime))},
];

// Nothing where trials are leased as usual.
function maintenanceNotice(maintenance) {
  if (!maintenance.on) return null;
  const running = Number(maintenance.leased ?? 0);
  return notice("warning", `Maintenance since ${dateText(maintenance.since)}${maintenance.reason ? `: ${maintenance.reason}` : ""}`,
    `No trial is leased; ${running === 0 ? "none runs" : `${running} still run`}. `, h("code", {}, "pawl maintenance off"), " ends it.");
}

export async function campaignsPage({main, signal, about}) {
  replace(main, h("h1", {}, "Campaigns"), loading("campaigns"));
  const host = h("div");
  const older = [];  // pages after the first
  let [first, maintenance] = await Promise.all([get("campaigns", {page_size: 100}, signal), get("maintenance", {}, signal)]);
  let last = first;
  const draw = () => {
    const rows = [...first.campaigns ?? [], ...older];
    replace(host,
      maintenanceNotice(maintenance),
      rows.length === 0
        ? firstSteps(about)
        : h("section", {}, table("Campaigns", COLUMNS, rows)),
      last.nextPageToken && h("p.pager", {}, h("button", {type: "button", click: more}, "Show older campaigns")));
  };
  const more = async () => {
    last = await get("campaigns", {page_size: 100, page_token: last.nextPageToken}, signal);
    older.push(...last.campaigns ?? []);
    draw();
  };
  replace(main, h("h1", {}, "Campaigns"), host);
  draw();
  const timer = setInterval(async () => {
    if (document.hidden) return;
    try {
      const [news, now] = await Promise.all([get("campaigns", {page_size: 100}, signal), get("maintenance", {}, signal)]);
      const same = JSON.stringify([news.campaigns, now]) === JSON.stringify([first.campaigns, maintenance]);
      maintenance = now;
      if (same) return;
      // A new campaign moves one off the first page: start again from the first page.
      if (older.length && news.campaigns?.[0]?.name !== first.campaigns?.[0]?.name) older.length = 0, last = news;
      if (last === first) last = news;
      first = news;
      draw();
    } catch (error) {
      if (error.name !== "AbortError") host.dataset.stale = "true";
    }
  }, FRESH);
  signal.addEventListener("abort", () => clearInterval(timer));
}

