// Shows the page that the address names, and goes from one to the next without reloading.
import {get, setToken, token} from "./api.js";
import {campaignPage} from "./campaign_page.js";
import {campaignsPage} from "./campaigns_page.js";
import {comparePage} from "./compare_page.js";
import {keepLooking} from "./connection.js";
import {h, notice, replace} from "./element.js";
import {explorePage} from "./explore_page.js";
import {iterationPage} from "./iteration_page.js";
import {patternsPage} from "./patterns_page.js";
import {workersPage} from "./workers_page.js";

const PAGES = [
  [/^\/$/, "Campaigns", campaignsPage],
  [/^\/campaigns$/, "Campaigns", campaignsPage],
  [/^\/campaigns\/\d+$/, "Campaign", campaignPage],
  [/^\/campaigns\/\d+\/iterations\/\d+$/, "Iteration", iterationPage],
  [/^\/compare$/, "Compare", comparePage],
  [/^\/explore$/, "Explore", explorePage],
  [/^\/workers$/, "Workers", workersPage],
  [/^\/patterns$/, "Patterns", patternsPage],
];

const main = document.getElementById("main");
let shown = null;  // aborts what the previous page still does
let about = null;

const title = text => document.title = `${text} · Pawl`;

async function show() {
  shown?.abort();
  const {signal} = shown = new AbortController();
  const {pathname, search} = location;
  const found = PAGES.find(([pattern]) => pattern.test(pathname));
  for (const link of document.querySelectorAll("header nav a")) {
    const here = new URL(link.href).pathname;
    const current = here === pathname || (here === "/" && pathname.startsWith("/campaigns"));
    if (current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  for (const name of Object.keys(main.dataset)) delete main.dataset[name];
  if (!found) {
    title("Page not found");
    replace(main, h("h1", {}, "Page not found"), h("p", {}, "The dashboard has no page at ", h("code", {}, pathname), "."),
      h("p", {}, h("a", {href: "/"}, "All campaigns")));
    main.dataset.ready = "true";
    return;
  }
  const [, name, page] = found;
  title(name);
  try {
    about ??= await get("about", {}, signal);
    await page({main, signal, about, go, title, path: pathname.split("/").filter(Boolean), parameters: new URLSearchParams(search)});
    if (!signal.aborted) main.dataset.ready = "true";
  } catch (error) {
    if (signal.aborted) return;
    if (error.status === 401 || (error.status === 403 && token())) return askForToken(error);
    if (error.status === undefined) console.error(error);
    replace(main, notice("error", error.status === 404 ? "Not found" : "This page could not be loaded", `${error.message}. ${error.fix ?? ""}`),
      h("p", {}, h("button", {type: "button", click: show}, "Try again"), " ", h("a", {href: "/"}, "All campaigns")));
    main.dataset.failed = error.status === 0 ? "unreachable" : "refused";
  }
}

function askForToken(error) {
  const input = h("input", {type: "password", autocomplete: "off", required: true, size: 40, name: "token"});
  replace(main, h("h1", {}, "Sign in"), h("p", {}, error.message),
    h("form.filters", {submit: event => {
      event.preventDefault();
      setToken(input.value.trim());
      about = null;
      show();
    }}, h("label", {}, "Token", input), h("button", {type: "submit"}, "Sign in")),
    h("p.quiet", {}, "The token is kept until this tab is closed."));
  input.focus();
}

// keep: the same page with other settings; focus and scroll position stay.
function go(path, {keep = false} = {}) {
  history[keep ? "replaceState" : "pushState"]({}, "", path);
  if (keep) {
    const name = document.activeElement?.name;
    return show().then(() => name && main.querySelector(`[name="${name}"]`)?.focus());
  }
  scrollTo(0, 0);
  main.focus({preventScroll: true});
  return show();
}

document.addEventListener("click", event => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const to = new URL(link.href);
  if (to.origin !== location.origin || link.hasAttribute("download") || to.pathname.startsWith("/api/") || link.classList.contains("skip")) return;
  event.preventDefault();
  go(to.pathname + to.search);
});
addEventListener("go", event => go(event.detail));
addEventListener("popstate", show);
keepLooking(() => {
  about = null;  // it may be another orchestrator
  if (main.dataset.failed === "unreachable") show();
});
show();
