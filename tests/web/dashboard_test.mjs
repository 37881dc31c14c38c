// Every page of the dashboard in a real browser, with a replayed campaign. Exit code 77: chromium is not installed.
import assert from "node:assert/strict";
import {existsSync, mkdirSync} from "node:fs";
import {createRequire} from "node:module";
import {join} from "node:path";
import {after, before, test} from "node:test";
import {Service} from "./service.mjs";

const CHROMIUM = "/usr/bin/chromium";
if (!existsSync(CHROMIUM)) {
  console.log(`skipped: ${CHROMIUM} is not there; scripts/setup installs it`);
  process.exit(77);
}
const source = process.env.PAWL_SOURCE_DIR ?? process.cwd();
const {chromium} = createRequire(join(source, "web/package.json"))("playwright-core");
const shots = process.env.PAWL_SCREENSHOTS ?? join(source, "build/screenshots");
mkdirSync(shots, {recursive: true});

const SLOWDOWN = Number(process.env.PAWL_SLOWDOWN ?? 1);  // of an instrumented build
const PATIENCE = 60_000 * SLOWDOWN;                       // the machine may have other things to do
const SIZES = [["1280", {width: 1280, height: 900}], ["400", {width: 400, height: 860}]];
const PAGES = {
  campaigns: "/", campaign: "/campaigns/1", start: "/campaigns/1/iterations/0",
  "compare-campaigns": "/compare?a=campaigns%2F1&b=campaigns%2F2", compare: "/compare",
  explore: "/explore?campaign=1&x=occupancy&y=timeUs&color=TILE_M", workers: "/workers", patterns: "/patterns",
};

let service, browser;
let chosen;  // number of an iteration that was kept for a finding: it has everything to show
const complaints = [];

// In a context of its own.
async function newPage(options) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(PATIENCE);
  return page;
}

async function open(path, {scheme = "light", viewport = SIZES[0][1], prepare} = {}) {
  const page = await newPage({viewport, colorScheme: scheme, reducedMotion: "reduce"});
  page.on("console", message => ["error", "warning"].includes(message.type()) && complaints.push(`${path}: ${message.text()}`));
  page.on("pageerror", error => complaints.push(`${path}: ${error.stack}`));
  await prepare?.(page);
  await page.goto(service.url + path);
  await page.locator("main[data-ready]").waitFor();
  return page;
}

const close = page => page.context().close();
const points = async (page, chart) => JSON.parse(await page.locator(`[data-chart=${chart}][data-points]`).getAttribute("data-points"));
// Of what the recording lacks, as the page and `pawl history` tell it.
const untried = iteration => iteration.untried === true;
const trailRows = page => page.locator("table:has(caption:text-is('Decision trail')) tbody tr");
const total = counts => Object.values(counts).reduce((sum, count) => sum + count, 0);

before(async () => {
  service = await Service.start();
  service.worker("fast");
  service.submit("attention", "--goal", "5", "--iterations", "40");
  service.submit("softmax", "--iterations", "12");
  for (const name of ["campaigns/1", "campaigns/2"]) {
    await service.until(`${name} ends`, async () => (await service.get(name)).state === "FINISHED");
  }
  chosen = service.history("campaigns/1").find(iteration => iteration.verdict === "KEPT" && iteration.finding && iteration.change?.variable).number;
  PAGES.iteration = `/campaigns/1/iterations/${chosen}`;
  PAGES["compare-iterations"] = `/compare?a=campaigns%2F1%2Fiterations%2F0&b=campaigns%2F1%2Fiterations%2F${chosen}`;
  browser = await chromium.launch({executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"]});
});

after(async () => {
  await browser?.close();
  service?.stop();
});

test("every page loads, is no wider than its window at both widths, and follows light and dark", async () => {
  const page = await open("/");
  for (const [name, path] of Object.entries(PAGES)) {
    await page.setViewportSize(SIZES[0][1]);
    await page.emulateMedia({colorScheme: "light"});
    await page.goto(service.url + path);
    await page.locator("main[data-ready]").waitFor();
    assert.ok((await page.locator("main h1").first().textContent()).trim(), `${name} has no title`);
    for (const [[width, viewport], scheme] of [[SIZES[0], "light"], [SIZES[0], "dark"], [SIZES[1], "dark"], [SIZES[1], "light"]]) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({colorScheme: scheme});
      const seen = await page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(() => resolve({
        scroll: document.documentElement.scrollWidth, client: document.documentElement.clientWidth,
        back: getComputedStyle(document.body).backgroundColor,
        narrow: [...document.querySelectorAll("[data-chart] canvas")].filter(canvas => canvas.clientWidth > document.documentElement.clientWidth).length,
      })))));
      assert.ok(seen.scroll <= seen.client, `${name} at ${width}: ${seen.scroll} wide in ${seen.client}`);
      assert.equal(seen.narrow, 0, `${name} at ${width}: a chart is wider than the window`);
      assert.equal(Number(seen.back.match(/\d+/)[0]) < 100, scheme === "dark", `${name} in ${scheme}: ${seen.back}`);
      if (scheme === (width === "1280" ? "light" : "dark")) await page.screenshot({path: join(shots, `${name}-${width}-${scheme}.png`), fullPage: true});
    }
  }
  await close(page);
});

test("the charts of a campaign have the points that the database has", async () => {
  const iterations = service.history("campaigns/1").filter(iteration => !untried(iteration));
  const page = await open("/campaigns/1");
  const count = verdict => iterations.filter(iteration => iteration.verdict === verdict).length;
  const journey = await points(page, "journey");
  assert.ok(count("KEPT") > 3 && count("REVERTED") > 3);
  assert.deepEqual([journey.kept, journey.reverted, journey.rejected], [count("KEPT"), count("REVERTED"), count("REJECTED")]);
  const stages = iterations.reduce((sum, iteration) => sum + (iteration.stages ?? []).length, 0);
  assert.equal(total(await points(page, "timeline")), stages);
  const {roofline} = await service.get("campaigns/1/report?fields=roofline");
  const {roof, ...drawn} = await points(page, "roofline");
  assert.equal(roof, 3);
  assert.equal(total(drawn), roofline.points.length);
  assert.equal(drawn.start, 1);
  assert.equal(await trailRows(page).count(), Math.min(25, iterations.length));
  await close(page);
});

test("counts are those of the campaign on every page", async () => {
  const campaign = await service.get("campaigns/1"), counts = {tried: 0, kept: 0, reverted: 0, rejected: 0, untried: 0, ...campaign.counts};
  assert.equal(counts.tried, counts.kept + counts.reverted + counts.rejected);
  assert.ok(counts.untried > 5 && counts.tried >= 25, JSON.stringify(counts));
  const cells = async (page, row) => page.locator(row).evaluate(found => [...found.cells].map(cell => cell.innerText));
  let page = await open("/");
  const index = await page.locator("table thead th").evaluateAll(all => all.findIndex(cell => cell.innerText === "tried"));
  assert.equal((await cells(page, "tbody tr:has(a[href='/campaigns/1'])"))[index].replace(/\s+/g, " "), `${counts.tried} ${counts.kept} kept`);
  await close(page);
  page = await open("/campaigns/1");
  const text = await page.locator(".figure:has-text('changes tried')").innerText();
  assert.ok(text.includes(`${counts.kept} kept, ${counts.reverted} reverted, ${counts.rejected} rejected; the recording lacks ${counts.untried} others`), text);
  assert.equal(await page.locator(".figure:has-text('changes tried') b").textContent(), String(counts.tried));
  await close(page);
  page = await open("/compare?a=campaigns%2F1&b=campaigns%2F2");
  const rows = Object.fromEntries(await page.locator("table:has(caption:text-is('Differences')) tbody tr")
    .evaluateAll(all => all.map(row => [row.cells[0].innerText, row.cells[1].innerText])));
  assert.equal(rows.tried, String(counts.tried));
  for (const [name, count] of [["kept", "kept"], ["reverted", "reverted"], ["rejected", "rejected"], ["not in the recording", "untried"]]) {
    if (name in rows) assert.equal(rows[name], String(counts[count]), name);  // else it is the same in both
  }
  await close(page);
});

test("what the recording lacks is left out of the journey and the trail, counted, and shown on demand", async () => {
  const iterations = service.history("campaigns/1");
  const lacking = iterations.filter(untried).length, tried = iterations.length - lacking;
  assert.ok(lacking > 5 && tried > 25, `${lacking} lacking, ${tried} tried`);
  const page = await open("/campaigns/1");
  const drawn = async () => {
    const {["best so far"]: _, ...counts} = await points(page, "journey");
    return total(counts);
  };
  // Numbers of every page of the trail, oldest first.
  const listed = async () => {
    const numbers = [];
    for (;;) {
      const rows = await trailRows(page).evaluateAll(all => all.map(row => Number(row.cells[0].textContent)));
      numbers.push(...rows);
      const next = page.getByRole("button", {name: "Next"});
      if (await next.count() === 0 || await next.isDisabled()) return numbers;
      assert.equal(rows.length, 25, "a page has as many rows as it can");
      await next.click();
      await page.waitForFunction(last => document.querySelector("table caption")
        && ![...document.querySelectorAll("section[aria-labelledby=section-decision-trail] tbody tr")].some(row => Number(row.cells[0].textContent) === last), rows.at(-1));
    }
  };
  const order = page.locator("label:has-text('Order') select");
  const numbers = all => all.map(iteration => iteration.number ?? 0);
  await order.selectOption("ITERATION_ORDER_NUMBER");
  await page.waitForFunction(() => document.querySelector("section[aria-labelledby=section-decision-trail] tbody tr")?.cells[0].textContent === "0");
  assert.equal(await drawn(), tried);
  assert.deepEqual(await listed(), numbers(iterations.filter(iteration => !untried(iteration))));
  assert.equal(await page.locator(".figure:has-text('changes tried') b").textContent(), String(tried - 1), "the start is no change");

  const boxes = page.getByRole("checkbox", {name: `Show ${lacking} changes that the recording lacks`});
  assert.equal(await boxes.count(), 2);
  await boxes.first().check();
  assert.ok(await boxes.last().isChecked(), "one switch at two places");
  assert.equal(await drawn(), iterations.length);
  const missing = numbers(iterations.filter(untried))[0];
  await page.locator(`section[aria-labelledby=section-decision-trail] a[href$="/iterations/${missing}"]`).waitFor();
  assert.deepEqual(await listed(), numbers(iterations));
  await boxes.last().uncheck();
  assert.equal(await drawn(), tried);

  await page.goto(`${service.url}/campaigns/2`);
  await page.locator("main[data-ready]").waitFor();
  assert.equal(service.history("campaigns/2").filter(untried).length, 0);
  assert.equal(await page.getByText("that the recording lacks").filter({visible: true}).count(), 0, "nothing to be shown, no switch");
  await close(page);
});

test("an iteration shows its samples, evidence, findings and source difference", async () => {
  const one = JSON.parse(service.pawl("show", "1", String(chosen), "--json"));
  const page = await open(PAGES.iteration);
  const samples = await points(page, "samples");
  const processes = {"process 1": one.pairs.length};
  for (const {process = 1} of one.confirmingPairs ?? []) processes[`process ${process + 1}`] = (processes[`process ${process + 1}`] ?? 0) + 1;
  assert.deepEqual(samples, processes);
  assert.equal(await page.locator(".difference ins").count(), 1);
  assert.match(await page.locator(".difference ins").textContent(), new RegExp(`#define ${one.change.variable} ${one.change.to}`));
  const evidence = await page.locator("table:has(caption:text-is('Evidence of attention_forward')) tbody tr").count();
  assert.ok(evidence >= Object.keys(one.evidence.launches[0].metrics).length, `${evidence} rows`);
  assert.equal(await page.locator("table:has(caption:text-is('Findings')) tbody tr").count(), (one.findings ?? []).length);
  await close(page);
});

test("explore draws a metric of every iteration that has it", async () => {
  const {iterations} = await service.get("campaigns/1/iterations?page_size=1000&metrics=occupancy");
  const have = iterations.filter(iteration => iteration.metrics?.occupancy !== undefined && iteration.timeUs > 0).length;
  assert.ok(have > 5, `${have} have the metric`);
  const page = await open(PAGES.explore);
  assert.equal(total(await points(page, "explore")), have);
  await page.locator("select[name=x]").selectOption("number");
  await page.locator("main[data-ready]").waitFor();
  await page.waitForFunction(timed => Object.values(JSON.parse(document.querySelector("[data-chart=explore]")?.dataset.points ?? "{}"))
    .reduce((sum, one) => sum + one, 0) === timed, iterations.filter(iteration => iteration.timeUs > 0).length);
  await close(page);
});

test("explore's selectors and plot agree after another campaign is chosen", async () => {
  const page = await open("/explore?campaign=1&x=variable%3ATILE_M&y=timeUs&color=TILE_M");
  await page.locator("select[name=campaign]").selectOption("2");
  await page.waitForURL("**/explore?campaign=2&**");
  await page.locator("main[data-ready] [data-chart=explore]").waitFor();
  const chosen = Object.fromEntries(await page.locator("select").evaluateAll(all => all.map(one => [one.name, one.value])));
  assert.equal(chosen.campaign, "2");
  const {variables} = await service.get("campaigns/2/bundle?fields=variables");
  assert.ok(!variables.some(({name}) => name === "TILE_M") && variables.some(({name}) => name === chosen.color), chosen.color);
  const drawn = await points(page, "explore");
  assert.ok(Object.keys(drawn).length > 0);
  for (const group of Object.keys(drawn)) assert.ok(group.startsWith(`${chosen.color} = `) && !group.endsWith("–"), group);
  const {iterations} = await service.get(`campaigns/2/iterations?page_size=1000&metrics=${chosen.x}`);
  assert.equal(total(drawn), iterations.filter(iteration => iteration.metrics?.[chosen.x] !== undefined && iteration.timeUs > 0).length);
  assert.match(await page.locator("[data-chart=explore]").getAttribute("aria-label"), new RegExp(`against ${chosen.x}\\b.*coloured by ${chosen.color}$`));
  await close(page);
});

test("dashboard and report give verdicts and running the same colours, which are seen in light and dark", async () => {
  const palette = async scheme => {
    const page = await open("/campaigns/1", {scheme});
    const read = () => ["kept", "reverted", "rejected", "running"].map(name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
    const dashboard = await page.evaluate(read);
    const surface = await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--surface").trim());
    const badges = await page.locator("section[aria-labelledby=section-decision-trail] .badge").evaluateAll(all => all.map(badge =>
      [badge.textContent, getComputedStyle(badge, "::before").content.replaceAll(/[^●○✕]/g, "")].join(" ")));
    assert.ok(badges.includes("kept ●") && badges.includes("reverted ○"), badges.join());
    const html = await (await fetch(`${service.url}/api/campaigns/1/report?format=REPORT_FORMAT_HTML`)).text();
    await page.goto("about:blank");
    await page.setContent(html);
    assert.deepEqual(await page.evaluate(read), dashboard);
    await close(page);
    return [dashboard, surface];
  };
  const light = color => {
    const [r, g, b] = [1, 3, 5].map(at => parseInt(color.slice(at, at + 2), 16) / 255).map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  for (const scheme of ["light", "dark"]) {
    const [colours, surface] = await palette(scheme);
    for (const color of colours) {
      const [low, high] = [light(color), light(surface)].sort((a, b) => a - b);
      assert.ok((high + 0.05) / (low + 0.05) > 4, `${color} on ${surface}`);
    }
    const channels = colours.map(color => [1, 3, 5].map(at => parseInt(color.slice(at, at + 2), 16)));
    const most = ([r, g, b]) => Math.max(r, g, b) - Math.min(r, g, b) < 32 ? "grey" : g > r && g > b ? "green" : r > b ? "red" : "blue";
    assert.deepEqual(channels.map(most), ["green", "grey", "red", "blue"], scheme);
  }
});

test("a report has nothing clipped at 1280 and 800 pixels", async () => {
  const page = await newPage();
  for (const campaign of [1, 2]) {
    await page.setContent(await (await fetch(`${service.url}/api/campaigns/${campaign}/report?format=REPORT_FORMAT_HTML`)).text());
    for (const width of [1280, 800]) {
      await page.setViewportSize({width, height: 900});
      const clipped = await page.evaluate(() => {
        const boxes = [...document.querySelectorAll("html, .scroll, pre, td, dd")].filter(box => box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0)
          .map(box => `${box.closest("section")?.id}: ${box.className || box.tagName} ${box.scrollWidth} in ${box.clientWidth}`);
        const texts = [...document.querySelectorAll("svg")].filter(svg => svg.clientWidth > 0).flatMap(svg => {
          const frame = svg.getBoundingClientRect();
          return [...svg.querySelectorAll("text")].filter(text => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
          }).map(text => `${svg.getAttribute("aria-label")}: ${text.textContent}`);
        });
        return [...boxes, ...texts];
      });
      assert.deepEqual(clipped, [], `campaign ${campaign} at ${width}`);
      await page.screenshot({path: join(shots, `report-${campaign}-${width}.png`), fullPage: true});
    }
  }
  await page.close();
});

test("every time of day names its zone", async () => {
  for (const [timezoneId, zone] of [["UTC", /^ UTC(?![+−])/], ["Asia/Kolkata", /^ UTC\+05:30/], ["America/Bogota", /^ UTC−05:00/]]) {
    for (const path of ["/", "/campaigns/1", PAGES.iteration]) {
      const page = await newPage({timezoneId, viewport: SIZES[0][1]});
      await page.goto(service.url + path);
      await page.locator("main[data-ready]").waitFor();
      const text = await page.locator("main").textContent();
      const times = [...text.matchAll(/\d\d:\d\d:\d\d/g)];
      assert.ok(times.length > 0, path);
      for (const found of times) assert.match(text.slice(found.index + 8, found.index + 20), zone, `${path}: ${found[0]}`);
      const tables = await page.locator(".scroll").evaluateAll(all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.getAttribute("aria-label")));
      assert.deepEqual(path === "/" ? tables : [], [], "the list of campaigns is not clipped");
      await page.close();
    }
  }
});

test("a failed prediction says what failed", async () => {
  const history = service.history("campaigns/1").map(({number = 0, prediction}) => ({number, prediction})).filter(({prediction}) => prediction?.outcome === "FAILED");
  assert.ok(history.length > 0, "no prediction failed");
  const page = await open("/campaigns/1");
  for (const {number, prediction} of history.slice(0, 3)) {
    await page.goto(`${service.url}/campaigns/1/iterations/${number}`);
    await page.locator("main[data-ready]").waitFor();
    const outcome = await page.locator("dt:text-is('outcome') + dd").textContent();
    assert.match(outcome, /^failed: /);
    if (prediction.timeOutcome === "FAILED") assert.match(outcome, /is (below|above) the predicted [\d.]+×/);
    if (prediction.metricOutcome === "FAILED") assert.match(outcome, new RegExp(`${prediction.metric} did not (rise|fall|change)`));
  }
  await close(page);
});

test("an empty dashboard's commands work as they are printed, and a page says so while its orchestrator is gone", async () => {
  const own = await Service.start();
  const page = await newPage();
  try {
    await page.goto(own.url);
    await page.getByText("This database has no campaigns yet.").waitFor();
    await page.screenshot({path: join(shots, "empty.png")});
    const commands = await page.locator("main pre").allTextContents();
    assert.equal(commands.length, 2);
    for (const command of commands) own.shell(command);
    await own.until("the campaign of the printed commands ends", async () => ((await own.get("campaigns")).campaigns ?? [])[0]?.state === "FINISHED");
    await page.locator("table a[href='/campaigns/1']").waitFor();

    const banner = page.getByText("The orchestrator does not answer.");
    for (const path of ["/campaigns/1/iterations/0", "/workers"]) {
      await page.goto(own.url + path);
      await page.locator("main[data-ready]").waitFor();
      assert.equal(await banner.isVisible(), false);
      const shown = await page.locator("main").textContent();
      await own.kill();
      await banner.waitFor({state: "visible"});
      await page.screenshot({path: join(shots, "away.png")});
      assert.ok((await page.locator("main").textContent()).includes(shown.slice(0, 40)), "what was shown stays");
      await own.restart();
      await banner.waitFor({state: "hidden"});
    }
    await own.kill();
    await page.getByRole("link", {name: "Patterns"}).click();
    await page.getByText("This page could not be loaded").waitFor();
    await own.restart();
    await page.locator("main[data-ready] h1:text-is('Patterns')").waitFor();
  } finally {
    await page.close();
    own.stop();
  }
});

test("comparing shows only what differs", async () => {
  const page = await open(PAGES["compare-iterations"]);
  const rows = await page.locator("table:has(caption:text-is('Differences')) tbody tr").evaluateAll(all => all.map(row => [...row.cells].slice(1, 3).map(cell => cell.textContent)));
  assert.ok(rows.length > 3);
  for (const [one, other] of rows) assert.notEqual(one, other);
  await page.goto(`${service.url}/compare?a=campaigns%2F1%2Fiterations%2F0&b=campaigns%2F1%2Fiterations%2F0`);
  await page.getByText("No differences.").waitFor();
  await close(page);
});

test("maintenance is said on the list of campaigns, and so is its end", async () => {
  service.pawl("maintenance", "on", "--reason", "new driver");
  const page = await open("/");
  await page.locator(".notice.warning", {hasText: "new driver"}).waitFor();
  await page.getByText("No trial is leased").waitFor();
  service.pawl("maintenance", "off");
  await page.locator(".notice.warning").waitFor({state: "detached"});
  await close(page);
});

test("a running campaign is live, and can be cancelled from its page", async () => {
  // An instrumented orchestrator takes minutes to send a page of 60 iterations after each of them.
  const name = service.submit("attention", "--goal", "9", "--iterations", SLOWDOWN > 1 ? "10" : "60", "--gpu", "H200");
  service.pawl("pause", "3");
  const page = await open("/campaigns/3");
  await page.locator("main[data-stream=live]").waitFor();
  const here = await page.evaluate(() => performance.timeOrigin);
  const seen = async () => total(await points(page, "journey")) - (await points(page, "journey"))["best so far"];
  const first = await seen();
  service.pawl("resume", "3");
  await service.until("its points appear by themselves", async () => await seen() > first);
  assert.equal(await page.evaluate(() => performance.timeOrigin), here, "the page was reloaded");
  await service.until("it has ended", async () => (await service.get(name)).state === "FINISHED");
  await page.locator(".title .badge.finished").waitFor();
  await service.until("all its points are there", async () => await seen() === service.history(name).filter(iteration => !untried(iteration)).length);

  const slow = service.submit("attention", "--goal", "9");
  service.pawl("pause", "4");
  await page.goto(`${service.url}/campaigns/4`);
  await page.locator(".title .badge.paused").waitFor();
  page.on("dialog", dialog => dialog.accept());
  await page.getByRole("button", {name: "Cancel"}).click();
  await page.locator(".title .badge.cancelled").waitFor();
  assert.equal((await service.get(slow)).state, "CANCELLED");
  await page.goto(`${service.url}/campaigns/2`);
  await page.getByRole("button", {name: "Submit again…"}).click();
  await page.getByRole("spinbutton", {name: "Iterations"}).fill("3");
  await page.getByRole("button", {name: "Submit", exact: true}).click();
  await page.waitForURL("**/campaigns/5");
  await service.until("the new one ends", async () => (await service.get("campaigns/5")).state === "FINISHED");
  assert.equal((await service.get("campaigns/5")).bundle, "softmax");
  await close(page);
});

test("everything can be reached by the keyboard, and shows where it is", async () => {
  const page = await open("/campaigns/1");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
  const wanted = await page.evaluate(() => {
    window.reached = new Set([document.activeElement]);
    window.unmarked = [];
    document.addEventListener("focusin", ({target}) => {
      window.reached.add(target);
      if (getComputedStyle(target).outlineStyle === "none") window.unmarked.push(target.outerHTML.slice(0, 100));
    });
    return document.querySelectorAll("a[href], button:not(:disabled), select, input").length;
  });
  // Regions that scroll can be reached, too.
  for (let i = 0; i < wanted + 25; ++i) await page.keyboard.press("Tab");
  assert.deepEqual(await page.evaluate(() => window.unmarked), [], "no outline");
  const missed = await page.evaluate(() => [...document.querySelectorAll("a[href], button:not(:disabled), select, input")]
    .filter(one => !window.reached.has(one)).map(one => one.outerHTML.slice(0, 100)));
  assert.deepEqual(missed, []);
  await page.locator("table:has(caption:text-is('Decision trail')) tbody a").first().focus();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/iterations/*");
  await close(page);
});

test("the timeline shows builds in parallel with measurements", async () => {
  const ahead = (begin, to) => ({kind: "BUILD_AHEAD", begin, seconds: 0.5, parent: 1, change: {variable: "TILE_M", from: 64, to}});
  const made = [[0, 8, []], [1, 12, [{kind: "SANITIZER", begin: 0.6, seconds: 1}, ahead(1, 32), ahead(1.1, 16)]], [2, 14, []]].map(([number, second, beside]) => ({
    name: `campaigns/1/iterations/${number}`, number, parent: Math.max(0, number - 1), verdict: "KEPT", worker: "workers/fast", builtAhead: number === 2,
    change: {variable: "TILE_M", from: 64, to: 32}, endTime: new Date(1e12 + 1000 * second).toISOString(), beside,
    stages: [{stage: "STAGE_BUILD", seconds: 0.4, begin: 0}, {stage: "STAGE_VALIDATE", seconds: 1, begin: 0.4}, {stage: "STAGE_MEASURE", seconds: 0.5, begin: 1.5}],
  }));
  const prepare = page => page.route("**/api/campaigns/1/iterations?*", route =>
    route.fulfill({json: {iterations: new URL(route.request().url()).searchParams.get("order")?.endsWith("DESCENDING") ? [...made].reverse() : made}}));
  const page = await open("/campaigns/1", {prepare});
  assert.deepEqual(await points(page, "timeline"), {build: 3, validate: 3, measure: 3, "build ahead": 2, "compute-sanitizer": 1});
  const chart = page.locator("[data-chart=timeline]");
  assert.equal(await chart.getAttribute("aria-label"), "Timeline: 9 stages on 1 worker: fast; 2 builds ahead, 1 of them used");
  await chart.screenshot({path: join(shots, "timeline-beside.png")});
  await close(page);
});

test("the timeline of a running campaign adds what later trials do, without a reload", async () => {
  const made = [0, 1].map(number => ({
    name: `campaigns/1/iterations/${number}`, number, parent: 0, verdict: "KEPT", worker: "workers/fast", change: {variable: "TILE_M", from: 64, to: 32},
    endTime: new Date(1e12 + 4000 * number).toISOString(), stages: [{stage: "STAGE_BUILD", seconds: 0.4, begin: 0}, {stage: "STAGE_MEASURE", seconds: 0.5, begin: 1.5}],
  }));
  const finished = {trial: 3, revised: [{number: 1, verdict: "REJECTED", reason: "faster; but a race", beside: [{kind: "SANITIZER", begin: 3, seconds: 1}]}]};
  let streams = 0;
  const prepare = async page => {
    await page.route("**/api/campaigns/1/iterations?*", route => route.fulfill({json: {iterations: made}}));
    await page.route(/\/api\/campaigns\/1$/, async route => {
      const response = await route.fetch();
      await route.fulfill({json: {...await response.json(), state: "RUNNING"}});
    });
    await page.route("**/api/campaigns/1/events?*", route => {
      ++streams;
      return route.fulfill({contentType: "text/event-stream", body: `data: ${JSON.stringify({event: {sequence: "9", finished}})}\n\n`});
    });
  };
  const page = await open("/campaigns/1", {prepare});
  const seen = () => points(page, "timeline");
  await service.until("the bar of the sanitizer is there", async () => (await seen())["compute-sanitizer"] === 1);
  await service.until("the event comes again", () => streams > 2);
  assert.deepEqual(await seen(), {build: 2, measure: 2, "compute-sanitizer": 1}, "an event that comes again adds nothing");
  assert.equal((await points(page, "journey")).rejected, 1, "its verdict is the later one");
  await close(page);
});

test("ten thousand iterations are drawn, and the trail has a page of them", async () => {
  const many = 10_000;
  const made = Array.from({length: many}, (_, number) => ({
    name: `campaigns/1/iterations/${number}`, number, verdict: number % 7 === 0 ? "KEPT" : number % 50 === 1 ? "REJECTED" : "REVERTED", change: {variable: "TILE_M", from: 64, to: 16},
    timeUs: 20 - number / 1000, speedupOverParent: 1.01, speedupOverStart: 1 + number / 1000 + (number % 13) / 10, speedupOverBaseline: 0.3 + number / 3000 + (number % 13) / 30,
    variant: {TILE_M: 16 << (number % 3)}, metrics: {occupancy: number % 100}, worker: "workers/fast", endTime: new Date(1e12 + number * 2000).toISOString(),
    stages: [{stage: "STAGE_BUILD", seconds: 0.4}, {stage: "STAGE_MEASURE", seconds: 0.9}],
  }));
  const prepare = page => page.route("**/api/campaigns/1/iterations?*", route => {
    const asked = new URL(route.request().url()).searchParams;
    const size = Number(asked.get("page_size")), begin = Number(asked.get("page_token") || 0);
    const list = asked.get("order")?.endsWith("DESCENDING") ? [...made].reverse() : made;
    route.fulfill({json: {iterations: list.slice(begin, begin + size), nextPageToken: begin + size < many ? String(begin + size) : ""}});
  });
  const page = await open("/campaigns/1", {prepare});
  const {["best so far"]: best, ...drawn} = await points(page, "journey");
  assert.equal(total(drawn), many);
  assert.ok(best > 1);
  assert.equal(await trailRows(page).count(), 25);
  await page.screenshot({path: join(shots, "ten-thousand-1280-light.png"), fullPage: true});
  await page.goto(`${service.url}${PAGES.explore}`);
  await page.locator("main[data-ready]").waitFor();
  assert.equal(total(await points(page, "explore")), many);
  await page.screenshot({path: join(shots, "ten-thousand-explore.png")});
  await close(page);
});

test("what is not there is said, and no page complained", async () => {
  assert.deepEqual(complaints, []);
  const page = await newPage();
  await page.goto(`${service.url}/campaigns/99`);
  await page.locator("main[data-failed]").waitFor();
  await page.getByText("Not found").waitFor();
  for (const path of ["/nothing", "/campaigns/1/nothing", "/index.html"]) {
    const reply = await page.goto(service.url + path);
    assert.equal(reply.status(), 404, path);
    await page.getByRole("heading", {name: "Page not found"}).waitFor();
    assert.equal(await page.title(), "Page not found · Pawl");
  }
  await page.screenshot({path: join(shots, "not-found.png")});
  await page.getByRole("link", {name: "All campaigns"}).click();
  await page.getByRole("heading", {name: "Campaigns"}).waitFor();
  const reply = await fetch(`${service.url}/api/nothing`, {headers: {Accept: "text/html"}});
  assert.deepEqual([reply.status, (await reply.json()).code], [404, "NOT_FOUND"]);
  await page.close();
});
