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

// The checks that a scenario made.
function checksOf(version, scenario, url) {
  const output = mkdtempSync(join(results, "run-"));
  const program = join(folder, "node_modules", SUITE_OF[version], "dist/index.js");
  const words = [program, "server", "--url", `${url}/mcp`, "--scenario", scenario, "-o", output, "--spec-version", version];
  const {status, out, err} = run(node, words, {cwd: output});
  const made = readdirSync(output, {recursive: true}).filter(name => name.endsWith("checks.json"));
  assert.equal(made.length, 1, `${scenario} ended with ${status}: ${out}${err}`);
  return JSON.parse(readFileSync(join(output, made[0]), "utf8"));
}

function complaints(checks) {
  return checks.filter(check => check.status === "FAILURE" || check.status === "WARNING")
    .map(check => `${check.id} (${check.status}): ${check.errorMessage}`);
}

for (const [version, scenarios] of Object.entries(OWN)) {
  for (const scenario of scenarios) {
    test(`${version} ${scenario} at /mcp`, {timeout: 90_000}, () => {
      const checks = checksOf(version, scenario, service.url);
      // What the suite could only see with a tool of its own is no complaint.
      const seen = checks.filter(check => check.details?.untestable !== true);
      assert.ok(seen.some(check => check.status === "SUCCESS"), JSON.stringify(checks));
      assert.deepEqual(complaints(seen), []);
    });
  }
}
for (const [version, scenarios] of Object.entries(SUITE)) {
  for (const scenario of scenarios) {
    test(`${version} ${scenario}`, {timeout: 90_000}, () => {
      const checks = checksOf(version, scenario, suite.url);
      assert.ok(checks.some(check => check.status === "SUCCESS"), JSON.stringify(checks));
      assert.deepEqual(complaints(checks), []);
    });
  }
}
test("2025-11-25 server-session-lifecycle at /mcp, of the later suite", {timeout: 90_000}, () => {
  const output = mkdtempSync(join(results, "run-"));
  const program = join(folder, "node_modules/conformance-2026/dist/index.js");
  const {status, out, err} = run(node, [program, "server", "--url", `${service.url}/mcp`, "--scenario", "server-session-lifecycle", "--spec-version", "2025-11-25"],
    {cwd: output});
  assert.equal(status, 0, out + err);
});
