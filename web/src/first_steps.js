// What to run first: commands that reach the orchestrator of this page as they are printed.
import {h, notice} from "./element.js";

// An orchestrator on all interfaces is reached by the name under which this page was.
function address({orchestrator = ""}) {
  return orchestrator.replace(/^(0\.0\.0\.0|\[::\]):/, `${location.hostname}:`);
}

const command = (program, about) => {
  const flags = [["orchestrator", address(about)], about.tls && ["tls-ca", "CA_FILE"],
                 about.tokens ? ["token-file", "TOKEN_FILE"] : about.tls && ["tls-cert", "CERTIFICATE_FILE"], about.tls && !about.tokens && ["tls-key", "KEY_FILE"]];
  return h("pre", {tabindex: "0"}, [program, ...flags.filter(Boolean).map(([name, value]) => `--${name} ${quoted(value)}`)].join(" "));
};

// As a shell reads it.
const quoted = text => /^[\w@%+=:,./[\]-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

// Only the reader knows where these files are.
const security = about => about.tls || about.tokens ? [h("p", {}, "Replace the names in capitals by your own files: docs/security.md says which.")] : [];

export const startWorker = about => [
  h("p", {}, "Start a worker on the GPU's machine; without a GPU it replays the recordings that ship with Pawl:"),
  command("pawl-worker", about), ...security(about)];

export const firstSteps = about => {
  const made = notice("empty", "This database has no campaigns yet.");
  made.append(...startWorker(about), h("p", {}, "Submit a bundle, for example the attention kernel that ships with Pawl:"), command("pawl submit attention", about));
  return made;
};
