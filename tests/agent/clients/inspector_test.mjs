// The official inspector's command line against `pawl mcp` and `/mcp`.
import assert from "node:assert/strict";
import {mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {dirname, join} from "node:path";
import {after, before, test} from "node:test";
import {Service} from "../../web/service.mjs";
import {bin, folder, inInstalledNode, node, run} from "./environment.mjs";

inInstalledNode();
const INSPECTOR = join(folder, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
let service, home;

before(async () => {
  home = mkdtempSync(join(tmpdir(), "pawl-inspector-"));
  service = await Service.start();
  service.worker("replay");
  const campaign = service.submit("softmax", "--iterations", "3");
  await service.until("the campaign ends", async () => (await service.get(campaign)).state === "FINISHED");
});
after(() => {
  service?.stop();
  rmSync(home, {recursive: true, force: true});
});

function inspect(target, ...words) {
  const env = {...process.env, HOME: home, PATH: `${dirname(node)}:${process.env.PATH}`};
  const {status, out, err} = run(node, [INSPECTOR, "--cli", ...target, ...words], {env, cwd: home});
  assert.equal(status, 0, `${words.join(" ")}: ${out}${err}`);
  return JSON.parse(out);
}

const TARGETS = {
  stdio: () => [join(bin, "pawl"), "mcp", "--orchestrator", service.address],
  http: () => [`${service.url}/mcp`],
};
for (const [name, target] of Object.entries(TARGETS)) {
  test(`the inspector over ${name}`, {timeout: 120_000}, () => {
    const {tools} = inspect(target(), "--method", "tools/list", "--strict");
    assert.deepEqual(tools.map(tool => tool.name), ["submit", "campaigns", "situation", "propose", "wait", "explain", "history", "diff", "best", "check"]);
    const history = inspect(target(), "--method", "tools/call", "--tool-name", "history", "--tool-arg", "campaign=1", "order=oldest");
    assert.equal(history.structuredContent.iterations[0].change, "start");
    assert.ok(inspect(target(), "--method", "resources/list").resources.length >= 4);
    assert.match(inspect(target(), "--method", "resources/read", "--uri", "pawl://guide").contents[0].text, /name: pawl/);
    assert.deepEqual(inspect(target(), "--method", "prompts/list").prompts.map(prompt => prompt.name), ["bring_kernel_in", "optimise"]);
  });
}
