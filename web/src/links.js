// Links between the pages, and what stands in them.
import {h} from "./element.js";
import {changeText, numberOf, stateWord, verdictWord} from "./words.js";

export const campaignPath = name => `/campaigns/${numberOf(name)}`;
export const iterationPath = (campaign, number) => `${campaignPath(campaign)}/iterations/${number}`;
export const comparePath = (a, b) => `/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`;

export const campaignLink = (campaign, text) => h("a", {href: campaignPath(campaign.name)}, text ?? campaign.name);
export const iterationLink = (campaign, iteration, text) =>
  h("a", {href: iterationPath(campaign, iteration.number ?? 0)}, text ?? String(iteration.number ?? 0));

export const verdictBadge = verdict => h(`span.badge.${verdictWord(verdict) === "–" ? "none" : verdictWord(verdict)}`, {}, verdictWord(verdict));
export const stateBadge = state => h(`span.badge.${stateWord(state) || "none"}`, {}, stateWord(state) || "unknown");
export const changeCode = change => h("code", {}, changeText(change));
