// Codex, driven by a scripted model on loopback, optimises campaigns through `pawl agent`: a replayed one by values of variables, and one on a
// stand-in for a GPU by edits of the source.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {dirname, join, resolve} from "node:path";
import {after, before, test} from "node:test";
import {Service} from "../../web/service.mjs";
import {bin, folder, inInstalledNode, node, source} from "./environment.mjs";
import {resultOf, startModelServer} from "./model_server.mjs";

inInstalledNode();
const CODEX = join(folder, "node_modules/.bin/codex");
let service, home;

before(async () => {
  home = mkdtempSync(join(tmpdir(), "pawl-codex-"));
  service = await Service.start();
});
after(() => {
  service?.stop();
  rmSync(home, {recursive: true, force: true});
});

// `pawl agent` to its end. It must not block this process, which serves the model.
async function agent(campaign, script, ...limits) {
  const model = await startModelServer(script);
  mkdirSync(join(home, ".codex"), {recursive: true});
  writeFileSync(join(home, ".codex/config.toml"),
    `model = "scripted"\nmodel_provider = "scripted"\n[model_providers.scripted]\nname = "scripted"\nbase_url = "${model.url}"\nwire_api = "responses"\n`);
  const work = mkdtempSync(join(home, "run-"));
  const words = ["agent", campaign, "--command", `${CODEX} exec`, "--json", "--folder", work, "--orchestrator", service.address, ...limits];
  const env = {...process.env, HOME: home, CODEX_HOME: join(home, ".codex"), PATH: `${dirname(node)}:${process.env.PATH}`};
  const child = spawn(join(bin, "pawl"), words, {env, stdio: ["ignore", "pipe", "pipe"]});
  let out = "", err = "";
  child.stdout.on("data", piece => (out += piece));
  child.stderr.on("data", piece => (err += piece));
  const code = await new Promise(done => child.on("exit", done));
  model.stop();
  const said = name => { try { return readFileSync(join(work, name), "utf8"); } catch { return ""; } };
  const all = `${out}${err}${said("agent-1.out")}${said("agent-1.err")}`;
  assert.ok(out.startsWith("{"), all);
  return {code, result: JSON.parse(out), all, work};
}

// Situation, the first untried change, its verdict, and again until proposals are refused.
function tuner(outputs) {
  const last = outputs.length === 0 ? null : outputs[outputs.length - 1];
  const result = last && resultOf(last);
  if (last === null) return {tool: "situation", arguments: {}};
  if (result?.proposal) return {tool: "wait", arguments: {proposal: result.proposal, timeoutSeconds: 20}};
  if (result?.done === false) return {tool: "wait", arguments: {proposal: JSON.parse(outputs.findLast(each => resultOf(each)?.proposal).match(/\{.*\}/s)[0]).proposal}};
  if (result?.done) return {tool: "situation", arguments: {}};
  if (result?.engineWouldTry?.length > 0) {
    const [, variable, value] = result.engineWouldTry[0].change.match(/^(\w+) .*→(-?\d+)$/);
    return {tool: "propose", arguments: {variable, value: Number(value), why: "ranked first"}};
  }
  return "The proposals are used up; the history has what was kept.";
}

test("codex tunes a replayed campaign", {timeout: 300_000}, async () => {
  service.worker("replay");
  const campaign = service.submit("softmax", "--chooser", "outside", "--wait-for-proposal", "1000", "--goal", "1000").split("/")[1];
  await service.until("the start is measured", async () => service.history(`campaigns/${campaign}`).length > 0);
  const {code, result, all, work} = await agent(campaign, tuner, "--proposals", "8", "--minutes", "4");
  assert.equal(code, 0, all);
  assert.equal(result.stopReason, "proposals", all);
  assert.equal(result.agents[0].proposals, 8);
  assert.match(result.agents[0].author, /^codex-[0-9a-f]{4}$/);
  assert.equal(result.agents[0].end, "exited with code 0", all);
  assert.ok(result.kept > 0 && result.timeUs < result.timeUsBefore, all);
  assert.ok(result.agents[0].tokens > 8000, all);
  const history = service.history(`campaigns/${campaign}`);
  assert.equal(history.filter(each => each.author === result.agents[0].author).length, 8);
  assert.match(readFileSync(join(work, "agent-1.out"), "utf8"), /mcp_tool_call/);
});

const KERNEL = `#pragma fake time 100
extern "C" __global__ void copy(const float* in, float* out, int n) {
  const int i = blockIdx.x * TILE + threadIdx.x;
  if (i < n) out[i] = in[i];
}
`;
const BUNDLE = {
  "kernel.toml": `name = "copy"
source = "copy.cu"
compiler = "nvcc"
[goal]
size = "main"
speedup = 100
[[size]]
name = "tiny"
N = 33
[[size]]
name = "main"
N = 4096
[[tensor]]
name = "in"
type = "f32"
shape = ["N"]
[[tensor]]
name = "out"
type = "f32"
shape = ["N"]
role = "output"
[[variable]]
name = "TILE"
values = [64, 128]
start = 64
[[launch]]
entry = "copy"
grid = ["ceil_div(N, TILE)"]
block = ["TILE"]
arguments = ["in", "out", "N"]
[reference]
source = "reference.cu"
[[reference.launch]]
entry = "copy_reference"
grid = ["ceil_div(N, 128)"]
block = ["128"]
arguments = ["in", "out", "N"]
[tolerance]
absolute = 1e-6
relative = 1e-7
`,
  "copy.cu": KERNEL,
  "reference.cu": `extern "C" __global__ void copy_reference(const float* in, float* out, int n) {}\n`,
};
const patch = (before, after) => `--- a/copy.cu\n+++ b/copy.cu\n@@ -1,2 +1,2 @@\n-${before}\n+${after}\n ${KERNEL.split("\n")[1]}\n`;
// One that is faster, one that is slower, one that does not compile, one that does not fit, and one that is faster again.
const EDITS = [
  {name: "faster", patch: patch("#pragma fake time 100", "#pragma fake time 70")},
  {name: "slower", patch: patch("#pragma fake time 70", "#pragma fake time 90")},
  {name: "broken", patch: patch("#pragma fake time 70", "#error not yet")},
  {name: "stale", patch: patch("#pragma fake time 100", "#pragma fake time 10")},
  {name: "fastest", patch: patch("#pragma fake time 70", "#pragma fake time 40")},
];

function editor(outputs) {
  const last = outputs.length === 0 ? null : outputs[outputs.length - 1];
  const result = last && resultOf(last);
  if (last === null) return {tool: "best", arguments: {}};
  if (result?.proposal) return {tool: "wait", arguments: {proposal: result.proposal, timeoutSeconds: 20}};
  if (result?.done === false) return {tool: "wait", arguments: {proposal: resultOf(outputs.findLast(each => resultOf(each)?.proposal)).proposal}};
  // Proposals so far: those that were taken, and those that were refused.
  const made = outputs.filter(each => resultOf(each)?.proposal || /hunk|apply|fit/.test(resultOf(each) === null ? each : "")).length;
  return made < EDITS.length ? {tool: "propose", arguments: {...EDITS[made], why: "scripted"}} : "All edits are tried.";
}

test("codex edits the kernel of a campaign on a stand-in for a GPU", {timeout: 300_000}, async () => {
  const bundle = mkdtempSync(join(home, "bundle-"));
  for (const [name, text] of Object.entries(BUNDLE)) writeFileSync(join(bundle, name), text);
  const fake = join(source, "tests/promises/fake_gpu");
  service.worker("fake", {env: {PAWL_NVCC: join(fake, "nvcc"), PAWL_NVRTC: "/no/libnvrtc.so", PAWL_NCU: join(fake, "ncu"),
    PAWL_COMPUTE_SANITIZER: join(fake, "compute-sanitizer"), PAWL_BIN_DIR: resolve(bin, "../tests/fake_gpu")}}, "--device", "cuda:0", "--allow-unsandboxed");
  const campaign = service.submit(bundle, "--chooser", "outside", "--wait-for-proposal", "1000").split("/")[1];
  const {code, result, all} = await agent(campaign, editor, "--minutes", "4");
  assert.equal(code, 0, all);
  assert.equal(result.stopReason, "agentsEnded", all);
  const verdicts = Object.fromEntries(service.history(`campaigns/${campaign}`).filter(each => each.author === result.agents[0].author).map(each => [each.change.source.name, each.verdict]));
  assert.deepEqual(verdicts, {faster: "KEPT", slower: "REVERTED", broken: "REJECTED", fastest: "KEPT"}, all);
  assert.equal(result.kept, 2);
  assert.equal(Math.round(result.timeUs), 40);
});
