// Whether the orchestrator answers. Every request reports how it went, and a heartbeat asks while nothing else does; a banner
// says so while it does not answer, until it is back.
import {h, replace} from "./element.js";
import {dateText} from "./words.js";

const HEARTBEAT = 5000;  // ms between two looks
const RETRY = 1000;      // while it does not answer
const PATIENCE = 5000;   // for an answer

const banner = document.getElementById("away");
let away = false, timer = null, back = () => {};

export function reached() {
  if (!away) return;
  away = false;
  banner.hidden = true;
  replace(banner);
  plan(HEARTBEAT);
  back();
}

export function lost() {
  if (away) return;
  away = true;
  replace(banner, h("strong", {}, "The orchestrator does not answer."),
    ` This page shows what it received before ${dateText(Date.now())}, and reconnects by itself. `,
    "Check that pawl-orchestrator is running and that a tunnel to it is still open.");
  banner.hidden = false;
  plan(RETRY);
}

function plan(ms) {
  clearTimeout(timer);
  timer = setTimeout(look, ms);
}

async function look() {
  if (!document.hidden) {
    try {
      await fetch("/icon.svg", {method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(PATIENCE)});  // needs no token
      reached();
    } catch {
      lost();
    }
  }
  plan(away ? RETRY : HEARTBEAT);
}

// `returned` is called whenever the orchestrator is back.
export function keepLooking(returned) {
  back = returned;
  document.addEventListener("visibilitychange", () => document.hidden || look());
  plan(HEARTBEAT);
}
