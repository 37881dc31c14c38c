// The official clients against `pawl mcp` and `/mcp`, in both eras: a replayed campaign is driven to a verdict by tools only.
import assert from "node:assert/strict";
import {join} from "node:path";
import {after, before, test} from "node:test";
import {Service} from "../../web/service.mjs";
import {bin, inInstalledNode, source} from "./environment.mjs";

inInstalledNode();
const {Client, StreamableHTTPClientTransport} = await import("@modelcontextprotocol/client");
const {StdioClientTransport} = await import("@modelcontextprotocol/client/stdio");
const old = {
  Client: (await import("@modelcontextprotocol/sdk/client/index.js")).Client,
  Stdio: (await import("@modelcontextprotocol/sdk/client/stdio.js")).StdioClientTransport,
  Http: (await import("@modelcontextprotocol/sdk/client/streamableHttp.js")).StreamableHTTPClientTransport,
};

const INFO = {name: "official-client", version: "1.0.0"};
let service;

before(async () => {
  service = await Service.start();
  service.worker("replay");
});
after(() => service?.stop());

const stdio = make => new make({command: join(bin, "pawl"), args: ["mcp", "--orchestrator", service.address], stderr: "inherit"});
const http = make => new make(new URL(`${service.url}/mcp`));

async function connected(transport, mode) {
  const client = new Client(INFO, mode === undefined ? {} : {versionNegotiation: {mode}});
  await client.connect(transport);
  return client;
}

// The structured result, which the client has checked against the tool's schema.
async function ask(client, name, args = {}, options) {
  const result = await client.callTool({name, arguments: args}, ...options ?? []);
  assert.ok(!result.isError, JSON.stringify(result.content));
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  assert.ok(result.content[0].text.length <= 40_000);
  return result.structuredContent;
}

async function refused(client, name, args) {
  const result = await client.callTool({name, arguments: args});
  assert.ok(result.isError, JSON.stringify(result));
  return result.content[0].text;
}

async function untilDone(client, args) {
  for (let i = 0; i < 20; ++i) {
    const answer = await ask(client, "wait", {...args, timeoutSeconds: 20});
    if (answer.done) return answer;
  }
  throw new Error(`not done: ${JSON.stringify(args)}`);
}

async function drive(client) {
  const {tools} = await client.listTools();
  assert.equal(tools.length, 10);
  const checked = await ask(client, "check", client.overHttp ? {files: {"kernel.toml": "name = 7"}} : {bundle: join(source, "kernels/softmax"), gpu: "h200"});
  assert.equal(checked.ok, !client.overHttp);
  let campaign;
  if (client.overHttp) {
    assert.match(await refused(client, "submit", {bundle: "softmax"}), /over HTTP send the bundle's files/);
    campaign = service.submit("softmax", "--chooser", "outside", "--goal", "1000").split("/")[1];
  } else {
    const submitted = await ask(client, "submit", {bundle: "softmax", chooser: "outside", iterations: 20, goal: 1000});
    campaign = submitted.campaign.campaign.split("/")[1];
  }
  assert.equal((await untilDone(client, {campaign})).status, "ready");
  const situation = await ask(client, "situation", {campaign});
  assert.ok(situation.takesProposals);
  assert.ok(situation.best.timeUs > 0);
  const [first] = situation.engineWouldTry;
  const [, variable, value] = first.change.match(/^(\w+) .*→(-?\d+)$/);
  const proposed = await ask(client, "propose", {campaign, variable, value: Number(value), why: `addresses ${first.finding}`});
  const verdict = await untilDone(client, {proposal: proposed.proposal});
  assert.ok(["kept", "reverted", "rejected"].includes(verdict.status), JSON.stringify(verdict));
  assert.equal(verdict.result.author, INFO.name);
  assert.match(await refused(client, "propose", {campaign, variable, value: Number(value)}), /tried before|is not one|already/);
  assert.match(await refused(client, "propose", {campaign, name: "nothing", patch: "nonsense"}), /unified diff|hunk|patch/);
  const explained = await ask(client, "explain", {campaign, iteration: verdict.result.iteration});
  assert.equal(explained.verdict, verdict.status);
  assert.equal((await ask(client, "history", {campaign, order: "oldest"})).iterations[0].change, "start");
  await ask(client, "diff", {campaign, a: 0, b: verdict.result.iteration});
  assert.match((await ask(client, "best", {campaign})).source.text, /__global__/);
  assert.ok((await ask(client, "campaigns")).campaigns.some(each => each.campaign === `campaigns/${campaign}`));
  const {resources} = await client.listResources();
  assert.ok(resources.some(each => each.uri === `pawl://campaigns/${campaign}/source`));
  assert.match((await client.readResource({uri: `pawl://campaigns/${campaign}/report`})).contents[0].text, /softmax/);
  await assert.rejects(client.readResource({uri: "pawl://campaigns/99999/source"}));
  assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 7);
  const {messages} = await client.getPrompt({name: "optimise", arguments: {campaign}});
  assert.match(messages[0].content.text, new RegExp(`campaigns/${campaign}`));
  const completed = await client.complete({ref: {type: "ref/prompt", name: "optimise"}, argument: {name: "campaign", value: campaign}});
  assert.ok(completed.completion.values.includes(campaign));
  await assert.rejects(client.callTool({name: "nothing", arguments: {}}), /there is no tool nothing/);
  return campaign;
}

// A wait that reports progress, and one that is given up.
async function waitsWithProgressUntilGivenUp(client, campaign) {
  const {proposal} = await ask(client, "propose", {campaign, ...await untried(client, campaign)});
  const seen = [];
  const answer = await client.callTool({name: "wait", arguments: {proposal, timeoutSeconds: 3}}, {onprogress: each => seen.push(each)});
  assert.ok(!answer.isError, JSON.stringify(answer));
  if (!answer.structuredContent.done) assert.ok(seen.length >= 2, "progress comes every second");
  for (let i = 1; i < seen.length; ++i) assert.ok(seen[i].progress > seen[i - 1].progress);
}

async function untried(client, campaign) {
  const {engineWouldTry} = await ask(client, "situation", {campaign});
  const [, variable, value] = engineWouldTry[0].change.match(/^(\w+) .*→(-?\d+)$/);
  return {variable, value: Number(value)};
}

for (const [name, transport] of [["stdio", () => stdio(StdioClientTransport)], ["http", () => http(StreamableHTTPClientTransport)]]) {
  for (const [era, mode, modern] of [["2025-11-25", "legacy", false], ["2026-07-28", {pin: "2026-07-28"}, true], ["whichever", "auto", true]]) {
    test(`the official client over ${name}, era ${era}`, {timeout: 180_000}, async () => {
      const client = await connected(transport(), mode);
      client.overHttp = name === "http";
      try {
        assert.equal(client.getProtocolEra(), modern ? "modern" : "legacy");
        const campaign = await drive(client);
        await waitsWithProgressUntilGivenUp(client, campaign);
      } finally {
        await client.close();
      }
    });
  }
}

for (const [name, transport] of [["stdio", () => stdio(old.Stdio)], ["http", () => http(old.Http)]]) {
  test(`the official client of the first era over ${name}`, {timeout: 180_000}, async () => {
    const client = new old.Client(INFO, {capabilities: {}});
    await client.connect(transport());
    client.overHttp = name === "http";
    try {
      await drive(client);
    } finally {
      await client.close();
    }
  });
}

test("a wait that its client gives up ends at once, and the server goes on", {timeout: 60_000}, async () => {
  const campaign = service.submit("transpose", "--chooser", "outside", "--wait-for-proposal", "1000", "--goal", "1000").split("/")[1];
  for (const transport of [stdio(StdioClientTransport), http(StreamableHTTPClientTransport)]) {
    const client = await connected(transport, {pin: "2026-07-28"});
    assert.equal((await untilDone(client, {campaign})).status, "ready");
    service.pawl("pause", campaign);
    const {proposal} = await ask(client, "propose", {campaign, ...await untried(client, campaign)}).catch(() => ({}));
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 500);
    const begun = Date.now();
    await assert.rejects(client.callTool({name: "wait", arguments: proposal ? {proposal, timeoutSeconds: 40} : {campaign, timeoutSeconds: 40}}, {signal: controller.signal}));
    assert.ok(Date.now() - begun < 10_000);
    assert.equal((await client.listTools()).tools.length, 10);
    service.pawl("resume", campaign);
    if (proposal) await untilDone(client, {proposal});
    await client.close();
  }
});
