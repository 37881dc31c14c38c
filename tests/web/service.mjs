// A real orchestrator with its dashboard, replaying workers, and `pawl`, for the length of a test.
import {spawn, spawnSync} from "node:child_process";
import {mkdtempSync, openSync, readFileSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join, resolve} from "node:path";
import {createInterface} from "node:readline";

const PATIENCE = 60_000 * Number(process.env.PAWL_SLOWDOWN ?? 1);

const bin = process.env.PAWL_BIN_DIR ?? "build/release/bin";
const source = process.env.PAWL_SOURCE_DIR ?? process.cwd();

export class Service {
  #children = [];
  #orchestrator = null;

  static async start() {
    const service = new Service();
    service.folder = mkdtempSync(join(tmpdir(), "pawl-web-"));
    service.address = `unix:${service.folder}/socket`;
    await service.#serve("0");
    return service;
  }

  async #serve(port) {
    const child = this.#spawn("pawl-orchestrator", ["--listen", this.address, "--database", `${this.folder}/pawl.db`, "--http", port]);
    this.url = "";
    for await (const line of createInterface({input: child.stdout})) {
      const found = line.match(/^dashboard at (.*)$/);
      if (found) this.url = found[1].replace(/\/$/, "");
      if (this.url) break;
    }
    if (!this.url) throw new Error(`pawl-orchestrator did not say where its dashboard is\n${this.#log()}`);
    this.#orchestrator = child;
  }

  async kill() {
    const ended = new Promise(resolve => this.#orchestrator.once("exit", resolve));
    this.#orchestrator.kill("SIGKILL");
    await ended;
  }

  // After kill: the same database at the same addresses.
  restart() {
    return this.#serve(new URL(this.url).port);
  }

  // A command line, as a reader would paste it into a shell that finds Pawl's programs; runs until `stop` or by itself.
  shell(line) {
    const child = spawn("/bin/bash", ["-c", `exec ${line}`], {
      stdio: ["ignore", "pipe", openSync(join(this.folder, "log"), "a")], env: {...process.env, PATH: `${resolve(bin)}:${process.env.PATH}`}, cwd: this.folder,
    });
    this.#children.push(child);
    return child;
  }

  // Without arguments it answers at once; --replay-speed lets a campaign take its time. An environment may come before them.
  worker(name, ...more) {
    const {env} = typeof more[0] === "object" ? more.shift() : {};
    const device = more.includes("--device") ? [] : ["--device", "replay"];
    return this.#spawn("pawl-worker", ["--orchestrator", this.address, ...device, "--name", name, ...more], env);
  }

  pawl(...words) {
    const {status, stdout, stderr} = spawnSync(join(bin, "pawl"), [...words, "--orchestrator", this.address], {encoding: "utf8", timeout: PATIENCE, maxBuffer: 1 << 28});
    if (status !== 0) throw new Error(`pawl ${words.join(" ")} ended with ${status}: ${stderr}`);
    return stdout;
  }

  submit(bundle, ...more) {
    return this.pawl("submit", resolve(source, "kernels", bundle), ...more).match(/campaigns\/\d+/)[0];
  }

  // Every iteration of the database, as `pawl history --json` prints it.
  history(campaign) {
    return this.pawl("history", campaign.split("/")[1], "--json").split("\n").filter(Boolean).map(line => JSON.parse(line));
  }

  async get(path) {
    const response = await fetch(`${this.url}/api/${path}`);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  async until(what, done, patience = PATIENCE) {
    for (const end = Date.now() + patience; Date.now() < end;) {
      const found = await done();
      if (found) return found;
      await new Promise(resolve => setTimeout(resolve, 50));
    }
    throw new Error(`not within ${patience / 1000} s: ${what}\n${this.#log()}`);
  }

  // The last lines that the daemons wrote.
  #log() {
    return readFileSync(join(this.folder, "log"), "utf8").split("\n").slice(-20).join("\n");
  }

  #spawn(program, words, env = {}) {
    const child = spawn(join(bin, program), words, {stdio: ["ignore", "pipe", openSync(join(this.folder, "log"), "a")], env: {...process.env, ...env}});
    this.#children.push(child);
    return child;
  }

  stop() {
    for (const child of this.#children.reverse()) child.kill("SIGKILL");
    rmSync(this.folder, {recursive: true, force: true});
  }
}
