"""A Pawl service for the tests of a fleet: the built orchestrator with its dashboard's port, and replay workers."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

SOURCE = pathlib.Path(os.environ["PAWL_SOURCE_DIR"])
BIN = pathlib.Path(os.environ["PAWL_BIN_DIR"])
SKIPPED = 77  # exit code of a test that can't run here


def until(condition, seconds=30, what="the condition"):
    """The condition's value once it holds."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come within {seconds} s")
        time.sleep(0.1)


def parse_metrics(text):
    """{name: {labels as a sorted tuple: value}}. Strict about what it accepts: every sample belongs to the family above it."""
    metrics, family, kind, seen = {}, None, None, set()
    label = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
    sample = re.compile(rf'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{({label}(?:,{label})*)\}})? (\S+)')
    assert text.endswith("\n"), "the last line is not ended"
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("# HELP "):
            family = line.split(" ", 3)[2]
            assert family not in seen, f"line {number}: {family} comes twice"
            seen.add(family)
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family and kind in ("counter", "gauge", "histogram"), f"line {number}: {line}"
            assert (kind == "counter") == name.endswith("_total"), f"line {number}: {line}"
            continue
        match = sample.fullmatch(line)
        assert match, f"line {number} is no sample: {line}"
        name, labels, value = match.groups()
        own = [family] if kind != "histogram" else [family + end for end in ("_bucket", "_sum", "_count")]
        assert name in own, f"line {number}: {name} is not of the family {family}"
        pairs = tuple(sorted(re.findall(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"', labels or "")))
        series = metrics.setdefault(name, {})
        assert pairs not in series, f"line {number}: {line} comes twice"
        series[pairs] = float(value)
    return metrics


class Service:
    def __init__(self, *arguments):
        self.folder = tempfile.TemporaryDirectory(prefix="pawl-fleet-")
        self.path = pathlib.Path(self.folder.name)
        self.children = []
        self.arguments = arguments
        self.start()

    def start(self, listen="127.0.0.1:0", http="0"):
        self.log = open(self.path / "orchestrator.log", "a")
        self.orchestrator = subprocess.Popen(
            [BIN / "pawl-orchestrator", "--listen", listen, "--http", http, "--database", self.path / "pawl.db",
             "--reports", "none", *self.arguments], stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.orchestrator.stdout.readline()
        assert line.startswith("listening on "), line + (self.path / "orchestrator.log").read_text()[-2000:]
        self.address = line.split()[2]
        self.url = self.orchestrator.stdout.readline().split()[2].rstrip("/")

    def restart(self):
        """As after kill -9, on the same ports."""
        self.orchestrator.kill()
        self.orchestrator.wait()
        self.start(self.address, self.url.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in [*self.children, self.orchestrator]:
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
            child.wait()
        self.folder.cleanup()

    def worker(self, *arguments, env=None):
        log = open(self.path / f"worker-{len(self.children)}.log", "w")
        child = subprocess.Popen([BIN / "pawl-worker", "--orchestrator", self.address, "--device", "replay", *arguments],
                                 stderr=log, env={**os.environ, **(env or {})})
        child.log = pathlib.Path(log.name)
        self.children.append(child)
        return child

    def pawl(self, *arguments, check=True):
        done = subprocess.run([BIN / "pawl", *arguments, "--orchestrator", self.address], capture_output=True, text=True, timeout=60)
        assert not check or done.returncode == 0, f"pawl {arguments}: {done.stderr}"
        return done.stdout.strip()

    def get(self, path, headers=None):
        """Status and body."""
        request = urllib.request.Request(self.url + path, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metrics(self):
        status, text = self.get("/metrics")
        assert status == 200, text
        return parse_metrics(text)

    def value(self, name, **labels):
        """Summed over the series that have these labels; 0: there is none."""
        wanted = set(labels.items())
        return sum(value for pairs, value in self.metrics().get(name, {}).items() if wanted <= set(pairs))
