// The official suites and clients, as scripts/setup installs them, and the Node that they need: Debian's is too old.
import {spawnSync} from "node:child_process";
import {existsSync} from "node:fs";
import {dirname, join, resolve} from "node:path";
import {fileURLToPath} from "node:url";

export const folder = dirname(fileURLToPath(import.meta.url));
export const node = join(folder, "node_modules", `node-linux-${process.arch}`, "bin/node");
export const bin = resolve(process.env.PAWL_BIN_DIR ?? "build/release/bin");
export const source = resolve(process.env.PAWL_SOURCE_DIR ?? join(folder, "../../.."));

// Goes on in that Node. Where it is not installed the test is skipped, but not in CI.
export function inInstalledNode() {
  if (!existsSync(node) || !existsSync(join(folder, "node_modules/.package-lock.json"))) {
    console.log(`${process.env.CI ? "failed" : "skipped"}: ${folder}/node_modules is not there; scripts/setup installs it`);
    process.exit(process.env.CI ? 1 : 77);
  }
  if (process.execPath === node) return;
  const {status} = spawnSync(node, process.argv.slice(1), {stdio: "inherit"});
  process.exit(status ?? 1);
}

// A program to its end.
export function run(program, words, options = {}) {
  const result = spawnSync(program, words, {encoding: "utf8", timeout: 120_000, maxBuffer: 1 << 28, ...options});
  return {status: result.status, out: result.stdout ?? "", err: result.stderr ?? ""};
}
