// Bundles the page into a folder: node build.js FOLDER
import {copyFileSync, mkdirSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {build} from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "dist");
mkdirSync(out, {recursive: true});
await build({
  entryPoints: [join(here, "src/app.js"), join(here, "src/app.css")],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "none",
  logLevel: "warning",
  outdir: out,
});
for (const file of ["index.html", "icon.svg"]) copyFileSync(join(here, "src", file), join(out, file));
