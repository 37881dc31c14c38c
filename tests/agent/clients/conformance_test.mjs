// The official conformance suites: all that a server can be asked which is Pawl's, at `/mcp`; and everything else about the
// protocol at a server of the same parts that has the tools, resources and prompts the suites know (tests/agent/suite_server.cc).
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {mkdtempSync, readFileSync, readdirSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {createInterface} from "node:readline";
import {after, before, test} from "node:test";
import {Service} from "../../web/service.mjs";
import {bin, folder, inInstalledNode, node, run} from "./environment.mjs";

inInstalledNode();
const SUITE_OF = {"2025-11-25": "conformance-2025", "2026-07-28": "conformance-2026"};
// What needs nothing but a server.
const OWN = {
  "2025-11-25": ["server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection"],
  "2026-07-28": ["server-stateless", "tools-list", "resources-list", "prompts-list", "sep-2164-resource-not-found", "dns-rebinding-protection",
    "caching", "http-header-validation"],
};
// What needs a tool, resource or prompt that the suite knows.
const SUITE = {
  "2025-11-25": ["completion-complete", "tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource",
    "tools-call-mixed-content", "tools-call-error", "tools-call-with-progress", "json-schema-2020-12", "server-sse-multiple-streams", "resources-read-text",
    "resources-read-binary", "resources-templates-read", "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource",
    "prompts-get-with-image"],
  "2026-07-28": ["completion-complete", "tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource",
    "tools-call-mixed-content", "tools-call-error", "tools-call-with-progress", "json-schema-2020-12", "server-sse-multiple-streams", "resources-read-text",
    "resources-read-binary", "resources-templates-read", "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource",
    "prompts-get-with-image"],
};
// Not run: sampling, elicitation, roots and logging (Pawl asks its clients for nothing, and what it logs is not theirs), subscriptions (its lists change
// with campaigns only), streams that are resumed, tasks and skills (extensions), and headers that mirror arguments (no tool asks for them).

let service, suite, results;

before(async () => {
  results = mkdtempSync(join(tmpdir(), "pawl-conformance-"));
  service = await Service.start();
  service.worker("replay");
  const campaign = service.submit("softmax", "--iterations", "2");
  await service.until("the campaign ends", async () => (await service.get(campaign)).state === "FINISHED");
  const child = spawn(join(bin, "../tests/suite_server"), {stdio: ["pipe", "pipe", "inherit"]});
  const line = await createInterface({input: child.stdout})[Symbol.asyncIterator]().next();
  suite = {child, url: line.value.replace(/\/$/, "")};
});
after(() => {
  suite?.child.stdin.end();
  service?.stop();
  rmSync(results, {recursive: true, force: true});
});

// The checks of every scenario of a suite, by its name.
function allChecks(suite, version, url, ...more) {
  const output = mkdtempSync(join(results, "run-"));
  const program = join(folder, "node_modules", suite, "dist/index.js");
  const words = [program, "server", "--url", `${url}/mcp`, "-o", output, "--spec-version", version, ...more];
  const {out, err} = run(node, words, {cwd: output, timeout: 400_000});
  const checks = {};
  for (const name of readdirSync(output)) {
    const scenario = name.match(/^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$/)?.[1];
    if (scenario) checks[scenario] = JSON.parse(readFileSync(join(output, name, "checks.json"), "utf8"));
  }
  assert.ok(Object.keys(checks).length > 0, `${suite} made no checks: ${out}${err}`);
  return checks;
}

function complaints(checks) {
  return checks.filter(check => check.status === "FAILURE" || check.status === "WARNING")
    .map(check => `${check.id} (${check.status}): ${check.errorMessage}`);
}

for (const [version, scenarios] of Object.entries(OWN)) {
  test(`what needs nothing but a server, of ${version}, at /mcp`, {timeout: 450_000}, () => {
    const all = allChecks(SUITE_OF[version], version, service.url, "--suite", "all");
    for (const scenario of scenarios) {
      // What the suite could only see with a tool of its own is no complaint.
      const checks = all[scenario].filter(check => check.details?.untestable !== true);
      assert.ok(checks.some(check => check.status === "SUCCESS"), `${scenario}: ${JSON.stringify(checks)}`);
      assert.deepEqual(complaints(checks), [], scenario);
    }
  });
}
for (const [version, scenarios] of Object.entries(SUITE)) {
  test(`what needs tools that the suite knows, of ${version}`, {timeout: 450_000}, () => {
    const all = allChecks(SUITE_OF[version], version, suite.url, "--suite", "all");
    for (const scenario of [...OWN[version], ...scenarios]) {
      const checks = all[scenario].filter(check => check.details?.untestable !== true);
      assert.ok(checks.some(check => check.status === "SUCCESS"), `${scenario}: ${JSON.stringify(checks)}`);
      assert.deepEqual(complaints(checks), [], scenario);
    }
  });
}
test("how sessions end, at /mcp, by the later suite", {timeout: 120_000}, () => {
  const all = allChecks("conformance-2026", "2025-11-25", service.url, "--scenario", "server-session-lifecycle");
  assert.deepEqual(complaints(all["server-session-lifecycle"]), []);
});
