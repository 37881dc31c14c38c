#!/usr/bin/env python3
"""How busy agents that think keep one GPU: `pawl agent --agents 4` with scripted agents, on a worker whose GPU and compiler are
stand-ins that take their time (tests/promises/fake_gpu).

  bench/busy_agents.py [--agents 4] [--think 3] [--seconds 90] [--build 0.6] [--process 0.25] [--in-flight 1]

Each agent reads the situation and the source, thinks for --think seconds (between a half and one and a half of it, at random),
proposes an edit of its own part of the source, and waits for the verdict; with --in-flight 2 it has up to two proposals that wait. Of
ten edits one does not compile, one is faster and kept, and the others are slower. A build takes --build seconds, a process that times
two variants --process, and each call that validates a tenth of that.

It prints which share of the time, from the first proposal to the last verdict,
- the worker had a trial (leased to finished), and trials were in a stage that uses the GPU;
- the worker had none although a proposal waited, which is Pawl's, and had none because nothing was proposed, which is the agents'.
It fails where the former is more than a tenth."""
import argparse
import calendar
import difflib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(os.environ.get("PAWL_SOURCE_DIR") or pathlib.Path(__file__).resolve().parent.parent)
BIN = pathlib.Path(os.environ.get("PAWL_BIN_DIR") or ROOT / "build/release/bin")
FAKE = ROOT / "tests/promises/fake_gpu"

KERNEL_TOML = """name = "busy"
source = "busy.cu"
compiler = "nvcc"
[goal]
size = "main"
speedup = 1000
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
[[launch]]
entry = "busy"
grid = ["ceil_div(N, 128)"]
block = [128]
arguments = ["in", "out", "N"]
[reference]
source = "reference.cu"
[[reference.launch]]
entry = "busy_reference"
grid = ["ceil_div(N, 128)"]
block = [128]
arguments = ["in", "out", "N"]
[tolerance]
absolute = 0.01
relative = 0.001
"""


def source(build, process, agents):
    lines = [f"#pragma fake nvcc {build}", f"#pragma fake takes {process}", "#pragma fake time 1000"]
    for agent in range(1, agents + 1):
        lines += [f"// part {agent}, line {line}" for line in range(4)] + [f"#pragma fake adds 0 {agent}"]
    return "\n".join(lines) + "\n// the end\n" * 4 + 'extern "C" __global__ void busy(const float* in, float* out, int n) {}\n'


class Pawl:
    def __init__(self):
        server = json.load(open(".mcp.json"))["mcpServers"]["pawl"]
        self.process = subprocess.Popen([server["command"], *server["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.id = 0
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "busy", "version": "1"}})

    def ask(self, method, params):
        self.id += 1
        print(json.dumps({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}), file=self.process.stdin, flush=True)
        message = {}
        while message.get("id") != self.id:
            line = self.process.stdout.readline()
            if not line:
                sys.exit(0)  # the run is over
            message = json.loads(line)
        return message["result"]

    def call(self, tool, **arguments):
        begin = time.time()
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        print(json.dumps({"tool": tool, "seconds": time.time() - begin, "at": time.time(),
                          "iteration": result.get("structuredContent", {}).get("result", {}).get("iteration")}), flush=True)
        if result.get("isError"):
            print(json.dumps({"refused": result["content"][0]["text"]}), flush=True)
            return None
        return result["structuredContent"]


def agent(think, in_flight):
    """One agent: the last argument is the prompt, the folder says which agent this is."""
    pawl = Pawl()
    mine = int(re.search(r"agent-(\d+)", os.getcwd())[1])
    chance = random.Random(mine)
    waiting = []
    while True:
        if pawl.call("situation") is None:
            return
        text = pawl.ask("resources/read", {"uri": "pawl://campaigns/1/files/busy.cu"})["contents"][0]["text"]
        time.sleep(think * chance.uniform(0.5, 1.5))
        before = re.search(rf"#pragma fake adds (\S+) {mine}\n", text)
        kind = chance.choices(["slower", "faster", "broken"], [8, 1, 1])[0]
        adds = float(before[1]) + (chance.uniform(-40, -30) if kind == "faster" else chance.uniform(20, 90))
        after = ("#error broken\n" if kind == "broken" else "") + f"#pragma fake adds {adds:.6f} {mine}\n"
        edited = text.replace(before[0], after)
        patch = "".join(difflib.unified_diff(text.splitlines(True), edited.splitlines(True), "a/busy.cu", "b/busy.cu"))
        proposed = pawl.call("propose", name=f"{kind} {adds:.6f}", patch=patch, why="scripted")
        if proposed:
            waiting.append(proposed["proposal"])
        while len(waiting) >= in_flight:
            answer = pawl.call("wait", proposal=waiting[0], timeoutSeconds=45)
            if answer is None or answer["done"]:
                waiting.pop(0)


def seconds(event):
    whole, _, rest = event["time"].rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + (rest or "0"))


def length(spans):
    """Of the union."""
    total, end = 0.0, float("-inf")
    for begin, until in sorted(spans):
        total += max(0.0, until - max(begin, end))
        end = max(end, until)
    return total


def middle(values):
    return sorted(values)[len(values) // 2] if values else float("nan")


def report(events, history, calls, arguments):
    """Of all trials since the first proposal. Stages are those of iterations: a total gain that is measured meanwhile has none here."""
    proposed = [seconds(e) for e in events if "proposed" in e]
    if not proposed:
        sys.exit("no agent proposed anything")
    begin = min(proposed)
    trials, waits, verdicts = [], [], []
    leased, proposed, planned, judged = {}, {}, {}, {}
    for e in events:
        at = seconds(e)
        if "proposed" in e:
            proposed[e["proposed"]["change"]["source"]["patch"]] = at
        if "planned" in e and "source" in e["planned"].get("change", {}):
            planned[e["planned"]["trial"]] = proposed.pop(e["planned"]["change"]["source"]["patch"])
        if "leased" in e:
            leased[e["leased"]["trial"]] = at
        if "finished" in e and leased.get(e["finished"]["trial"], 0) >= begin:
            trial = e["finished"]["trial"]
            trials.append((leased[trial], at))
            if "iteration" in e["finished"]:
                judged[e["finished"]["iteration"]["number"]] = at
            if trial in planned:
                waits.append((planned[trial], leased[trial]))
                verdicts.append(at - planned[trial])
    stages, ahead, counts = 0.0, 0, {}
    for iteration in history:
        if iteration.get("number", 0) == 0:
            continue
        stages += sum(s.get("seconds", 0) for s in iteration.get("stages", []) if s["stage"] in ("STAGE_VALIDATE", "STAGE_MEASURE", "STAGE_PROFILE"))
        ahead += iteration.get("builtAhead", False)
        verdict = iteration["verdict"].lower()
        counts[verdict] = counts.get(verdict, 0) + 1
    whole, held = max(until for _, until in trials) - begin, length(trials)
    ours = length(trials + waits) - held
    lags = [call["at"] - judged[call["iteration"]] for call in calls if call["tool"] == "wait" and call["iteration"] in judged]
    print(f"{arguments.agents} agents that think for {arguments.think:g} s, {arguments.in_flight} in flight each, {whole:.0f} s: "
          + ", ".join(f"{count} {word}" for word, count in sorted(counts.items())) + f"; {ahead} built ahead")
    print(f"a trial takes {held / len(trials):.2f} s; medians: a verdict comes {middle(verdicts):.2f} s after its proposal, wait answers "
          f"{1000 * middle(lags):.0f} ms after it, situation takes "
          + ", propose ".join(f"{1000 * middle([call['seconds'] for call in calls if call['tool'] == tool]):.0f} ms"
                              for tool in ("situation", "propose")))
    print(f"the worker has a trial  {held / whole:6.1%}\nstages that use the GPU {stages / whole:6.1%}\n"
          f"idle, proposals waited  {ours / whole:6.1%}\nidle, nothing proposed  {1 - (held + ours) / whole:6.1%}")
    return ours / whole <= 0.1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("agents", 4), ("think", 3.0), ("seconds", 90.0), ("build", 0.6), ("process", 0.25), ("in-flight", 1)):
        parser.add_argument(f"--{name}", type=type(usual), default=usual)
    arguments = parser.parse_args()
    fakes = {"PAWL_NVCC": f"{FAKE}/nvcc", "PAWL_NCU": f"{FAKE}/ncu", "PAWL_COMPUTE_SANITIZER": f"{FAKE}/compute-sanitizer",
             "PAWL_NVRTC": "/no/libnvrtc.so", "PAWL_BIN_DIR": str(BIN.parent / "tests/fake_gpu")}
    with tempfile.TemporaryDirectory(prefix="pawl-busy-") as name:
        folder = pathlib.Path(name)
        (folder / "busy").mkdir()
        (folder / "busy/kernel.toml").write_text(KERNEL_TOML)
        (folder / "busy/busy.cu").write_text(source(arguments.build, arguments.process, arguments.agents))
        (folder / "busy/reference.cu").write_text('extern "C" __global__ void busy_reference(const float* in, float* out, int n) {}\n')
        address = f"unix:{folder}/socket"
        log = open(folder / "log", "a")

        def pawl(*words):
            done = subprocess.run([BIN / "pawl", *words, "--orchestrator", address], stdout=subprocess.PIPE, stderr=log, text=True)
            return done.stdout

        orchestrator = subprocess.Popen([BIN / "pawl-orchestrator", "--listen", address, "--database", folder / "pawl.db"],
                                        stdout=log, stderr=log)
        worker = None
        try:
            deadline = time.monotonic() + 60
            while not (folder / "socket").exists():
                if orchestrator.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"the orchestrator did not start: {(folder / 'log').read_text()}")
                time.sleep(0.05)
            worker = subprocess.Popen([BIN / "pawl-worker", "--orchestrator", address, "--device", "cuda:0", "--name", "gpu",
                                       "--allow-unsandboxed"], env={**os.environ, **fakes}, stdout=log, stderr=log)
            pawl("submit", folder / "busy", "--chooser", "outside", "--iterations", "100000", "--minutes", "100000")
            command = f"{pathlib.Path(__file__).resolve()} agent {arguments.think} {arguments.in_flight}"
            pawl("agent", "1", "--command", command, "--agents", str(arguments.agents), "--minutes", str(arguments.seconds / 60),
                 "--folder", folder / "agents", "--json")
            pawl("cancel", "1")
            events, history = ([json.loads(line) for line in pawl(*words, "--json").splitlines()]
                               for words in (["watch", "1"], ["history", "1"]))
            calls = [json.loads(line) for out in (folder / "agents").glob("agent-*.out") for line in out.read_text().splitlines()]
            if not report([e["event"] if "event" in e else e for e in events if "progress" not in e], history,
                          [call for call in calls if "tool" in call], arguments):
                sys.exit("busy_agents.py: proposals waited for an idle worker")
        except BaseException:
            print((folder / "log").read_text()[-4000:], file=sys.stderr)
            raise
        finally:
            for process in (worker, orchestrator):
                if process:
                    process.terminate()
                    process.wait()


if len(sys.argv) > 1 and sys.argv[1] == "agent":
    agent(float(sys.argv[2]), int(sys.argv[3]))
else:
    main()
