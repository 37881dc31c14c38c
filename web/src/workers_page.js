// The workers and what each is running.
import {get} from "./api.js";
import {h, loading, notice, replace} from "./element.js";
import {startWorker} from "./first_steps.js";
import {table} from "./table.js";
import {agoText, dateText, workerStateWord} from "./words.js";

const FRESH = 3000;

const COLUMNS = [
  {name: "worker", cell: worker => worker.name},
  {name: "state", cell: worker => h(`span.badge.${workerStateWord(worker.state)}`, {}, workerStateWord(worker.state))},
  {name: "device", wide: true, cell: worker => worker.device?.label ?? ""},
  {name: "running", cell: worker => (worker.trials ?? []).map(trial => h("div", {}, h("a", {href: `/campaigns/${trial.split("/")[1]}`}, trial)))},
  {name: "completed", number: true, cell: worker => Number(worker.completed ?? 0)},
  {name: "host faults", number: true, cell: worker => worker.hostFaults ?? 0},
  {name: "counters", cell: worker => worker.device?.counters ? "yes" : "no"},
  {name: "sandbox", cell: worker => worker.device?.sandboxed ? "yes" : "no"},
  {name: "driver", cell: worker => worker.device?.gpu?.driverVersion ?? "–"},
  {name: "last seen", cell: worker => h("time", {datetime: worker.lastSeen, title: dateText(worker.lastSeen)}, agoText(worker.lastSeen))},
  {name: "version", cell: worker => worker.version ?? ""},
];

export async function workersPage({main, signal, about}) {
  let gone = false;
  const host = h("div");
  const draw = async () => {
    const {workers = []} = await get("workers", {gone_too: gone ? "true" : undefined}, signal);
    if (workers.length) return replace(host, h("section", {}, table("Workers", COLUMNS, workers)));
    const none = notice("empty", gone ? "No worker has registered yet." : "No worker is connected.");
    none.append(...startWorker(about));
    return replace(host, none);
  };
  replace(host, loading("workers"));
  replace(main, h("h1", {}, "Workers"),
    h("div.filters", {}, h("label.check", {}, h("input", {type: "checkbox", change: event => (gone = event.target.checked, draw())}), "Show workers that are gone")), host);
  await draw();
  main.dataset.ready = "true";
  const timer = setInterval(() => document.hidden || draw().catch(() => {}), FRESH);
  signal.addEventListener("abort", () => clearInterval(timer));
}
