#!/usr/bin/env python3
"""Random failures of a whole service, and what must hold after them (promises 1 to 3 and 13 to 22 together).

  tests/promises/chaos/chaos.py --bin DIR [--seconds N] [--workers N] [--campaigns N] [--seed N] [--folder DIR] [--json FILE]

Runs an orchestrator with replay workers and keeps so many campaigns unfinished. Meanwhile it kills (SIGKILL), stops
(SIGSTOP) and ends (SIGTERM) orchestrator and workers, sets their clock forward and back, takes backups, restores them,
and moves, replaces and truncates the database's files. Then it lets the campaigns end and checks every one of them:

- lost: a submission that was acknowledged is missing, unless a backup from before it was restored after it
- doubled: a submission, an iteration or a variant of a campaign is there twice, or a trial has two results
- wrongly rejected: no recorded variant fails, so a rejected trial or a campaign that failed or ran out of time is wrong
- wrong trial: an iteration's first pair is not the one that its trial's name and its recorded variants give

Also broken: something is acknowledged while the database's files are harmed, a daemon ends by itself or does not end when it
must, an orchestrator does not serve again, a campaign does not end. Exit code 1: something was broken; the last line says what
was done, and --json writes it as a row for scripts/soak. The folder is kept then.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

from recordings import Recording, variant_text

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUNDLES = {name: ROOT / "kernels" / name for name in ("softmax", "reduce_sum", "transpose", "rmsnorm", "attention")}
BUNDLES["layernorm"] = ROOT / "docs/tutorial/layernorm"
REPLAY_SPEED = 0.5  # a trial takes 2 to 6 s
ITERATIONS = 25
SUBMITTERS = 4
FIRST_MINUTES = 10_000  # a submission is known by its limit of minutes, which none uses up
# How long a daemon may take on a machine that is busy with other things as well.
END_PATIENCE = 60
START_PATIENCE = 120
STALL = 300  # without any progress, once nothing is disturbed any more

ACTIONS = {  # weights
    "kill a worker": 10, "stop a worker": 8, "end a worker": 6, "kill many workers": 2, "stop all workers": 1,
    "kill the orchestrator": 6, "stop the orchestrator": 5, "end the orchestrator": 4,
    "set the clock": 8, "take a backup": 6, "restore a backup": 2, "restore a backup over a log": 1,
    "move the database": 1, "move the log": 1, "replace the database": 1, "truncate the database": 2, "truncate the log": 1,
}


def used_bytes(file):
    """Of a -wal: up to the first frame of an earlier turn of the log, which nobody misses. Of a database: all."""
    content = file.read_bytes()
    if content[:4] not in (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"):
        return len(content)
    end, frame = 32, 24 + int.from_bytes(content[8:12], "big")
    while content[end + 8 : end + 16] == content[16:24]:  # its salts are the log's
        end += frame
    return end


class Broken(Exception):
    """Nothing can be checked any more."""


class Orchestrator:
    """One process after another on the same database."""

    def __init__(self, chaos):
        self.chaos = chaos
        self.database = chaos.folder / "pawl.db"
        self.log = chaos.folder / "orchestrator.log"
        self.process = None
        self.slowest = 0.0

    def _spawn(self):
        command = [self.chaos.bin / "pawl-orchestrator", "--listen", self.chaos.address, "--database", self.database,
                   "--reports", "none", "--log-level", "info"]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.chaos.daemon_env)

    def start(self):
        begin = time.monotonic()
        self._spawn()
        while not self.chaos.pawl("campaigns", "--json", "--page-size", "1")[0] == 0:
            if self.process.poll() is not None:
                raise Broken(f"the orchestrator did not start (exit code {self.process.returncode}): {self.last_line()}")
            if time.monotonic() - begin > START_PATIENCE:
                raise Broken(f"the orchestrator does not serve after {START_PATIENCE} s")
            time.sleep(0.05)
        self.slowest = max(self.slowest, time.monotonic() - begin)

    def must_refuse(self, what):
        self._spawn()
        if self.wait() != 1:
            self.chaos.broke(f"an orchestrator was started on {what} (exit code {self.process.returncode})")
            self.process.kill()
            self.process.wait()

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        """Its exit code; None: it goes on."""
        until = time.monotonic() + END_PATIENCE
        while self.process.poll() is None and time.monotonic() < until:
            self.chaos.pass_time(0.1)
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.signal(signal.SIGTERM)
        if (code := self.wait()) != 0:
            self.chaos.broke(f"an orchestrator that was told to end did so with {code}: {self.last_line()}")
            self.kill()

    def ended_by_itself(self):
        return self.process.poll() is not None

    def last_line(self):
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


class Workers:
    def __init__(self, chaos, count):
        self.chaos = chaos
        self.processes = [None] * count
        self.start_at = [0.0] * count
        self.continue_at = {}  # by place
        self.told_to_end = set()

    def look(self):
        """Starts those that were ended, and continues those that were stopped long enough."""
        now = time.monotonic()
        for place, process in enumerate(self.processes):
            if place in self.continue_at and now >= self.continue_at[place]:
                process.send_signal(signal.SIGCONT)
                del self.continue_at[place]
            if process is not None and process.poll() is not None:
                expected = -signal.SIGKILL if place not in self.told_to_end else 0
                if process.returncode not in (expected, -signal.SIGKILL):
                    self.chaos.broke(f"worker {place} ended with {process.returncode}: see worker-{place}.log")
                self.told_to_end.discard(place)
                self.processes[place] = None
                self.start_at[place] = now + self.chaos.random.uniform(0, 4)
            if self.processes[place] is None and now >= self.start_at[place]:
                self._start(place)

    def _start(self, place):
        command = [self.chaos.bin / "pawl-worker", "--orchestrator", self.chaos.address, "--device", "replay", "--recordings",
                   ROOT / "profiles/recordings", "--replay-speed", str(REPLAY_SPEED), "--name", f"chaos-{place}", "--log-level", "info"]
        with open(self.chaos.folder / f"worker-{place}.log", "a") as log:
            self.processes[place] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                     env=self.chaos.daemon_env)

    def some(self, count):
        there = [place for place, process in enumerate(self.processes) if process is not None]
        return self.chaos.random.sample(there, min(count, len(there)))

    def kill(self, count):
        for place in self.some(count):
            self.processes[place].kill()
            self.continue_at.pop(place, None)

    def stop(self, count, seconds):
        for place in self.some(count):
            self.processes[place].send_signal(signal.SIGSTOP)
            self.continue_at[place] = time.monotonic() + seconds

    def end(self):
        for place in self.some(1):
            if place not in self.continue_at:
                self.told_to_end.add(place)
                self.processes[place].terminate()

    def continue_all(self):
        self.continue_at = {place: 0 for place in self.continue_at}

    def kill_all(self):
        for process in self.processes:
            if process is not None:
                process.kill()
                process.wait()


class Submission:
    def __init__(self, number, bundle):
        self.bundle = bundle
        self.minutes = FIRST_MINUTES + number
        self.begin = time.monotonic()
        self.end = None  # when it was acknowledged
        self.campaign = None


class Chaos:
    def __init__(self, options, folder):
        self.bin = options.bin.resolve()
        self.folder = folder
        self.address = f"unix:{folder}/socket"
        self.random = random.Random(options.seed)
        self.wanted = options.campaigns
        self.did = collections.Counter()
        self.problems = []
        self.submissions = []
        self.restores = []  # (begin of the backup, time of the restore)
        self.harms = []     # (from, to) when nothing may be acknowledged
        self.backups = []   # (begin, file)
        self.unfinished = 0
        self.pausing = threading.Event()
        self.lock = threading.Lock()
        self.clock = self._make_clock()
        self.env = {**os.environ, "HOME": str(folder)}
        self.env.pop("PAWL_ORCHESTRATOR", None)
        self.daemon_env = {**self.env, "LD_PRELOAD": str(folder / "set_clock.so"), "PAWL_CLOCK_OFFSET": str(self.clock)}
        self.orchestrator = Orchestrator(self)
        self.workers = Workers(self, options.workers)

    def _make_clock(self):
        source = pathlib.Path(__file__).with_name("set_clock.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", self.folder / "set_clock.so", source, "-ldl"], check=True)
        file = self.folder / "clock"
        file.write_bytes(struct.pack("=q", 0))
        return file

    def say(self, text):
        with open(self.folder / "chaos.log", "a") as log:
            print(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}", file=log)

    def broke(self, text):
        print(f"chaos: BROKEN: {text}", file=sys.stderr, flush=True)
        self.say(f"BROKEN: {text}")
        with self.lock:
            self.problems.append(text)

    def pawl(self, *arguments):
        try:
            done = subprocess.run([str(self.bin / "pawl"), *map(str, arguments), "--orchestrator", self.address], env=self.env,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150)
            return done.returncode, done.stdout
        except subprocess.TimeoutExpired:
            return -1, ""

    def campaigns(self):
        """All, or nothing when nobody answers."""
        code, output = self.pawl("campaigns", "--json", "--page-size", "1000")
        return [json.loads(line) for line in output.splitlines()] if code == 0 else None

    # What submits.

    def submit(self):
        while not self.pausing.is_set():
            with self.lock:
                full = self.unfinished >= self.wanted
                if not full:
                    self.unfinished += 1
                    submission = Submission(len(self.submissions), self.random.choice(list(BUNDLES)))
                    self.submissions.append(submission)
            if full:
                time.sleep(0.2)
                continue
            code, output = self.pawl("submit", BUNDLES[submission.bundle], "--json", "--iterations", ITERATIONS, "--goal", 1000,
                                     "--minutes", submission.minutes)
            if code == 0:
                submission.campaign = json.loads(output)["name"]
                submission.end = time.monotonic()

    def count(self):
        """Keeps count of the unfinished campaigns."""
        while not self.pausing.wait(3):
            campaigns = self.campaigns()
            if campaigns is None:
                continue
            with self.lock:
                self.unfinished = sum(each["state"] in ("WAITING", "RUNNING", "PAUSED") for each in campaigns)

    # What goes wrong. The orchestrator runs before each of these and after it.

    def act(self, action):
        self.did[action] += 1
        self.say(action)
        getattr(self, action.replace(" ", "_"))()

    def kill_a_worker(self):
        self.workers.kill(1)

    def kill_many_workers(self):
        self.workers.kill(6)

    def stop_a_worker(self):
        self.workers.stop(1, self.random.choice([1, 5, 20, 40]))

    def stop_all_workers(self):
        self.workers.stop(len(self.workers.processes), 25)

    def end_a_worker(self):
        self.workers.end()

    def kill_the_orchestrator(self):
        self.orchestrator.kill()
        time.sleep(self.random.choice([0, 0, 1, 3, 10]))
        self.orchestrator.start()

    def stop_the_orchestrator(self):
        self.orchestrator.signal(signal.SIGSTOP)
        self.pass_time(self.random.choice([1, 3, 8, 20]))
        self.orchestrator.signal(signal.SIGCONT)

    def end_the_orchestrator(self):
        self.orchestrator.end()
        self.orchestrator.start()

    def set_the_clock(self):
        offset = self.random.choice([-86400 * 3, -3600, -20, 0, 20, 3600, 86400 * 3])
        with open(self.clock, "r+b") as file:
            file.write(struct.pack("=q", offset))

    def take_a_backup(self):
        file = self.folder / f"backup-{self.did['take a backup']}.db"
        begin = time.monotonic()
        done = subprocess.run([self.bin / "pawl-orchestrator", "--database", self.orchestrator.database, "--backup", file],
                              env=self.env, capture_output=True, text=True)
        if done.returncode != 0:
            return self.broke(f"a backup failed: {done.stderr.strip()}")
        self.backups.append((begin, file))
        for _, old in self.backups[:-4]:
            old.unlink(missing_ok=True)
        self.backups = self.backups[-4:]

    def restore_a_backup(self):
        self._stop_for_restore()
        aside = self.folder / "aside"
        aside.mkdir(exist_ok=True)
        names = ["pawl.db", "pawl.db-wal", "pawl.db-shm"] + self.random.choice([[], ["pawl.db.lock"]])
        for name in names:
            if (self.folder / name).exists():
                os.replace(self.folder / name, aside / name)
        self._restore()
        self.orchestrator.start()

    def restore_a_backup_over_a_log(self):
        """As the documentation says not to."""
        if not self.backups:
            return self.take_a_backup()
        self.orchestrator.kill()
        wal = self.folder / "pawl.db-wal"
        holds = wal.exists() and wal.stat().st_size > 0
        self._restore()
        if holds:
            self.orchestrator.must_refuse("a backup beside the log of another database")
            os.replace(wal, self.folder / "aside-wal")
            (self.folder / "pawl.db-shm").unlink(missing_ok=True)
        self.orchestrator.start()

    def _stop_for_restore(self):
        if not self.backups:
            self.take_a_backup()
        self.random.choice([self.orchestrator.kill, self.orchestrator.end])()

    def _restore(self):
        begin, file = self.random.choice(self.backups)
        self.restores.append((begin, time.monotonic()))
        shutil.copyfile(file, self.orchestrator.database)
        self.say(f"restored {file.name}")

    def _harm(self, what, harm, mend, refuses=True):
        """The orchestrator is stopped while its files are harmed, so that what is put back belongs to the rest."""
        self.orchestrator.signal(signal.SIGSTOP)
        harm()
        begin = time.monotonic()
        self.orchestrator.signal(signal.SIGCONT)
        if (code := self.orchestrator.wait()) != 1:
            self.broke(f"{what}: the orchestrator ended with {code}, expected 1")
            self.orchestrator.kill()
        if refuses:
            self.orchestrator.must_refuse(what)
        mend()
        self.harms.append((begin, time.monotonic()))
        self.orchestrator.start()

    def move_the_database(self):
        database, aside = self.orchestrator.database, self.folder / "moved"
        self._harm("a database that was moved away", lambda: os.replace(database, aside), lambda: os.replace(aside, database))

    def move_the_log(self):
        log, aside = self.folder / "pawl.db-wal", self.folder / "moved-wal"
        self._harm("a log that was moved away", lambda: os.replace(log, aside), lambda: os.replace(aside, log), refuses=False)

    def replace_the_database(self):
        database, aside = self.orchestrator.database, self.folder / "moved"

        def harm():
            os.replace(database, aside)
            shutil.copyfile(aside, database)

        self._harm("another file in the database's place", harm, lambda: os.replace(aside, database))

    def truncate_the_database(self):
        self._truncate(self.orchestrator.database, "a truncated database")

    def truncate_the_log(self):
        self._truncate(self.folder / "pawl.db-wal", "a truncated log")

    def _truncate(self, file, what):
        aside, length = self.folder / "whole", self.random.choice([0, 0.5])

        def harm():
            shutil.copyfile(file, aside)
            os.truncate(file, int(used_bytes(aside) * length))

        self._harm(what, harm, lambda: shutil.copyfile(aside, file), refuses=length == 0 and file == self.orchestrator.database)

    def pass_time(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.workers.look()
            time.sleep(0.05)

    def run(self, seconds):
        self.orchestrator.start()
        threads = [threading.Thread(target=self.submit) for _ in range(SUBMITTERS)] + [threading.Thread(target=self.count)]
        for thread in threads:
            thread.start()
        try:
            self.pass_time(10)
            actions, weights = list(ACTIONS), list(ACTIONS.values())
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                self.pass_time(self.random.expovariate(1 / 2))
                if self.orchestrator.ended_by_itself():
                    self.broke(f"the orchestrator ended by itself: {self.orchestrator.last_line()}")
                    self.orchestrator.start()
                self.act(self.random.choices(actions, weights)[0])
        finally:
            self.pausing.set()
            for thread in threads:
                thread.join()
        self.workers.continue_all()
        self.finish()

    def finish(self):
        """Until every campaign has ended."""
        seen, since = None, time.monotonic()
        while True:
            self.pass_time(2)
            campaigns = self.campaigns() or []
            open_ones = [each for each in campaigns if each["state"] in ("WAITING", "RUNNING", "PAUSED")]
            if campaigns and not open_ones:
                return
            for each in open_ones:
                if each["state"] == "PAUSED":
                    self.did["pauses"] += 1
                    self.say(f"{each['name']} is paused: {each['message']}")
                    self.pawl("resume", each["name"])
            now = [each["lastSequence"] for each in campaigns]
            if now != seen:
                seen, since = now, time.monotonic()
            if time.monotonic() - since > STALL:
                raise Broken(f"{len(open_ones)} campaigns do not end: {[each['name'] for each in open_ones[:5]]}")

    # What must hold.

    def check(self):
        campaigns = self.campaigns()
        events = Events(self.orchestrator.database)
        by_minutes = collections.defaultdict(list)
        for each in campaigns:
            by_minutes[round(each["spec"]["budget"]["minutes"])].append(each)
        lost = self.check_submissions(by_minutes)
        recordings = {each.bundle: each for each in map(Recording, (ROOT / "profiles/recordings").glob("*.jsonl.gz"))}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            checks = list(pool.map(lambda each: CampaignCheck(self, each, events, recordings[each["bundle"]]), campaigns))
        doubled = sum(each.doubled for each in checks) + sum(len(found) - 1 for found in by_minutes.values())
        rejected = sum(each.rejected for each in checks)
        wrong = sum(each.wrong for each in checks)
        if (damage := sqlite3.connect(f"file:{self.orchestrator.database}?mode=ro", uri=True).execute(
                "PRAGMA integrity_check").fetchone()[0]) != "ok":
            self.broke(f"the database is damaged: {damage}")
        acknowledged = sum(each.end is not None for each in self.submissions)
        self.did["acknowledged submissions"] = acknowledged
        self.did["iterations checked"] = sum(each.checked for each in checks)
        return (f"{acknowledged} acknowledged submissions, {len(campaigns)} campaigns and {sum(each.checked for each in checks)} "
                f"iterations checked, {events.leases_lost} leases lost: {lost} lost, {doubled} doubled, "
                f"{rejected} wrongly rejected, {wrong} results under the wrong trial")

    def check_submissions(self, by_minutes):
        lost = 0
        for each in self.submissions:
            if each.end is None:
                continue
            # The reply came between its begin and its end: it may be in no backup that had begun by then.
            gone = any(each.end > backup and each.begin < restored for backup, restored in self.restores)
            if each.minutes not in by_minutes and not gone:
                lost += 1
                self.broke(f"{each.campaign} ({each.minutes} minutes) was acknowledged and is lost")
            if any(each.begin > begin and each.end < end for begin, end in self.harms):
                self.broke(f"{each.campaign} was acknowledged while the database's files were harmed")
        for minutes, found in by_minutes.items():
            if len(found) > 1:
                self.broke(f"the submission of {minutes} minutes is there {len(found)} times")
        return lost


def fields(message):
    """Of a protobuf message, by number; the values are integers or bytes."""
    found, at = collections.defaultdict(list), 0

    def varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = message[at]
            value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            found[key >> 3].append(varint())
            continue
        length = varint() if key & 7 == 2 else {1: 8, 5: 4}[key & 7]
        found[key >> 3].append(message[at:at + length])
        at += length
    return found


class Events:
    """What the log of the database says of every campaign's trials; numbers of fields as in proto/pawl/v1/event.proto."""
    PLANNED, LOST, FINISHED = 5, 7, 8
    PURPOSE_ITERATION = 1
    RESULT, PAIRS, LOG_RATIO = 4, 3, 3

    def __init__(self, database):
        self.trials = {}  # of (campaign, iteration)
        self.finished = []  # (campaign, trial)
        self.log_ratios = {}  # the first pair's, of (campaign, trial)
        self.leases_lost = 0
        rows = sqlite3.connect(f"file:{database}?mode=ro", uri=True).execute(
            "SELECT campaign, kind, payload FROM events WHERE kind IN (?, ?, ?)", (self.PLANNED, self.LOST, self.FINISHED))
        for campaign, kind, payload in rows:
            event = fields(fields(payload)[kind][0])
            if kind == self.LOST:
                self.leases_lost += 1
            elif kind == self.PLANNED and event[2][0] == self.PURPOSE_ITERATION:
                self.trials[campaign, (event[3] or [0])[0]] = event[1][0]
            elif kind == self.FINISHED:
                self.finished.append((campaign, event[1][0]))
                pairs = fields(event[self.RESULT][0])[self.PAIRS] if event[self.RESULT] else []
                if pairs:
                    ratio = fields(pairs[0])[self.LOG_RATIO]
                    self.log_ratios[campaign, event[1][0]] = struct.unpack("<d", ratio[0])[0] if ratio else 0.0


class CampaignCheck:
    def __init__(self, chaos, campaign, events, recording):
        self.chaos, self.campaign, self.events, self.recording = chaos, campaign, events, recording
        self.name = campaign["name"]
        self.number = int(self.name.split("/")[1])
        self.doubled = self.rejected = self.wrong = self.checked = 0
        self.iterations = self._lines("history", self.name, "--json")
        self._check_end()
        self._check_doubles()
        for iteration in self.iterations:
            self._check_iteration(iteration, events.trials[self.number, iteration["number"]])

    def _lines(self, *arguments):
        code, output = self.chaos.pawl(*arguments)
        if code != 0:
            raise Broken(f"pawl {' '.join(arguments)} ended with {code}")
        return [json.loads(line) for line in output.splitlines()]

    def _broke(self, text):
        self.chaos.broke(f"{self.name} ({self.campaign['bundle']}): {text}")

    def _check_end(self):
        if self.campaign["state"] != "FINISHED" or self.campaign["stopReason"] == "STOP_REASON_MINUTES":
            self.rejected += 1
            self._broke(f"{self.campaign['state']}, {self.campaign['stopReason']}: {self.campaign['message']}")

    def _check_doubles(self):
        counted = [("iteration", [each["number"] for each in self.iterations]),
                   ("variant", [variant_text(each["variant"]) for each in self.iterations]),
                   ("result of trial", [trial for campaign, trial in self.events.finished if campaign == self.number])]
        for what, values in counted:
            for value, times in collections.Counter(values).items():
                if times > 1:
                    self.doubled += 1
                    self._broke(f"{what} {value} is there {times} times")
        numbers = counted[0][1]
        if sorted(numbers) != list(range(len(numbers))):
            self._broke(f"its iterations are {sorted(numbers)}")

    def _check_iteration(self, iteration, trial):
        number, variant = iteration["number"], variant_text(iteration["variant"])
        recorded = variant in self.recording.variants
        if iteration.get("untried", False):
            if recorded:
                self._broke(f"iteration {number} was passed over, and {variant} is recorded")
                self.wrong += 1
            return
        if iteration["verdict"] == "REJECTED":
            self.rejected += 1
            return self._broke(f"iteration {number} was rejected: {iteration['reason']}")
        self.checked += 1
        parent = None
        if number > 0:
            parent = variant_text(next(each["variant"] for each in self.iterations if each["number"] == iteration["parent"]))
        found = self.events.log_ratios.get((self.number, trial))
        expected = self.recording.first_log_ratio(f"{self.name}/trials/{trial}", variant, parent) if recorded else None
        if found is None or expected is None or abs(found - expected) > 1e-9:
            self.wrong += 1
            self._broke(f"iteration {number}, trial {trial}: the first pair's log ratio is {found}, its own is {expected}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=1800)
    parser.add_argument("--workers", type=int, default=20)
    parser.add_argument("--campaigns", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pawl-chaos-", dir=options.folder))
    print(f"chaos: seed {options.seed}, in {folder}", file=sys.stderr, flush=True)
    chaos = Chaos(options, folder)
    begin = time.monotonic()
    figures = "nothing was checked"
    try:
        chaos.run(options.seconds)
        figures = chaos.check()
    except Broken as broken:
        chaos.broke(str(broken))
    finally:
        chaos.pausing.set()
        chaos.workers.kill_all()
        if chaos.orchestrator.process is not None:
            chaos.orchestrator.kill()
    acts = ", ".join(f"{action} {chaos.did[action]}" for action in ACTIONS if chaos.did[action])
    did = (f"{options.workers} replay workers and {options.campaigns} campaigns at once for {options.seconds / 60:.0f} minutes ({acts}); "
           f"{figures}; the slowest start served after {chaos.orchestrator.slowest:.1f} s; {chaos.did['pauses']} pauses")
    if chaos.problems:
        did += f"; {len(chaos.problems)} problems, the first: {chaos.problems[0]} (seed {options.seed})"
    print(did)
    if options.json:
        options.json.write_text(json.dumps({"did": did, "kept": not chaos.problems, "seconds": round(time.monotonic() - begin, 1)}))
    if not chaos.problems:
        shutil.rmtree(folder)
    return 1 if chaos.problems else 0


if __name__ == "__main__":
    sys.exit(main())
