#!/usr/bin/env python3
"""pawl-fleet over a real Slurm, with replay workers: they come when there are trials, work through a requeue, a TERM, a drained
node, and a killed controller and orchestrator, and go when there is nothing to do; no trial is lost or judged twice.

  slurm_test.py [--workers N] [--speed S] [--csv FILE]     FILE gets queue, workers and jobs once a second
"""
import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time

import slurm_cluster
from service import BIN, SKIPPED, SOURCE, Service, until

IDLE = 20  # seconds


class Recorder(threading.Thread):
    """What there was, once a second."""

    def __init__(self, service, cluster):
        super().__init__(daemon=True)
        self.service, self.cluster, self.rows, self.done = service, cluster, [], threading.Event()
        self.begin = time.monotonic()

    def run(self):
        while not self.done.wait(1):
            try:
                metrics = self.service.metrics()
                states = self.cluster.run("squeue", "--noheader", "--format=%T").split()
            except (AssertionError, OSError, subprocess.SubprocessError):
                continue  # one of them is being restarted
            total = lambda name: sum(metrics.get(name, {}).values())
            self.rows.append([round(time.monotonic() - self.begin, 1), total("pawl_trials_queued"), total("pawl_trials_leased"),
                              total("pawl_workers"), states.count("RUNNING"), states.count("PENDING")])


def start_fleet(service, cluster, workers, speed):
    log = open(service.path / "fleet.log", "a")
    env = {**cluster.env, "PAWL_WORKER": str(BIN / "pawl-worker"), "PAWL_DEVICE": "replay", "PAWL_REPLAY_SPEED": str(speed),
           "PAWL_LOG_LEVEL": "info"}
    return subprocess.Popen(
        [BIN / "pawl-fleet", "slurm", "--orchestrator", service.address, "--http", service.url, "--partition", "gpu", "--gpu",
         "replay=gpu:replay:1", "--max", str(workers), "--exit-when-idle", f"{IDLE}s", "--script",
         SOURCE / "packaging/slurm/pawl-worker.sbatch", "--", "--cpus-per-task=1", f"--output={service.path}/job-%j.log"],
        stderr=log, env=env)


def check_campaign(service, campaign):
    """Every trial that was planned ended once, and the iterations are without a gap."""
    lines = [json.loads(line) for line in service.pawl("history", campaign, "--json").splitlines()]
    numbers = [line["number"] for line in lines]
    assert numbers == list(range(len(numbers))), f"{campaign}: {numbers}"
    assert json.loads(service.pawl("show", campaign, "--json"))["state"] == "FINISHED", campaign
    return len(numbers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=int(os.environ.get("PAWL_FLEET_WORKERS", "12")))
    parser.add_argument("--speed", type=float, default=2, help="of the replay; many workers take a while to come")
    parser.add_argument("--csv")
    options = parser.parse_args()
    reason = slurm_cluster.missing()
    if reason:
        print(f"skipped: {reason}")
        return SKIPPED
    workers = options.workers
    with Service() as service, slurm_cluster.Cluster(workers) as cluster:
        recorder = Recorder(service, cluster)
        recorder.start()
        fleet = start_fleet(service, cluster, workers, options.speed)
        try:
            time.sleep(12)
            assert not cluster.jobs(), "nobody asked for workers"
            begin = time.monotonic()
            campaigns = [service.pawl("submit", "attention", "--goal", "9", "--iterations", "6") for _ in range(workers)]
            until(lambda: service.value("pawl_workers") > 0, 30, "a worker")
            print(f"the first worker came after {time.monotonic() - begin:.1f} s")
            enough = workers if workers <= 20 else workers * 9 // 10
            until(lambda: service.value("pawl_workers") >= enough, 60 + workers * 2, f"{enough} workers")
            print(f"{service.value('pawl_workers'):.0f} workers after {time.monotonic() - begin:.1f} s")

            # What an operator and a cluster do to them. The controller and the orchestrator are killed meanwhile.
            running = cluster.jobs()
            cluster.run("scontrol", "requeue", str(running[0]))
            cluster.run("scancel", "--signal=TERM", str(running[1]))
            cluster.run("scontrol", "update", f"nodename={cluster.node}", "state=drain", "reason=test")
            fleet.kill()
            fleet.wait()
            service.restart()
            time.sleep(5)
            cluster.run("scontrol", "update", f"nodename={cluster.node}", "state=resume")
            fleet = start_fleet(service, cluster, workers, options.speed)
            until(lambda: running[0] in cluster.jobs("PENDING"), 60, "the requeued job in the queue")
            cluster.run("scontrol", "update", f"jobid={running[0]}", "starttime=now")  # Slurm would wait for two minutes
            requeued = f"workers/slurm-{running[0]}-{cluster.node}-r1-replay"
            until(lambda: f'"{requeued}"' in service.get("/api/workers")[1], 60, f"{requeued}, of the requeued job")

            def ended():
                states = [campaign["state"] for campaign in json.loads(service.get("/api/campaigns?page_size=1000")[1])["campaigns"]]
                return all(state == "FINISHED" for state in states)

            until(ended, 300 + workers * 4, "the end of the campaigns")
            print(f"{len(campaigns)} campaigns ended after {time.monotonic() - begin:.1f} s")
            most = max(row[4] + row[5] for row in recorder.rows)
            assert most <= workers + 1, f"{most} jobs, and --max is {workers}"  # one that is requeued may show twice
            last = time.monotonic()
            until(lambda: service.value("pawl_workers") == 0, IDLE + 30, "the end of the workers")
            print(f"the last worker left {time.monotonic() - last:.1f} s later")
            until(lambda: not cluster.jobs("RUNNING,PENDING"), 60, "the end of the jobs")
            iterations = sum(check_campaign(service, campaign) for campaign in campaigns)
            text = (service.path / "fleet.log").read_text()
            assert "warning" not in text.replace("orchestrator does not answer", ""), text
            print(f"{iterations} iterations, each judged once")

            # A partition without such GPUs: refused, said once, no storm.
            fleet.send_signal(signal.SIGTERM)
            assert fleet.wait(10) == 0
            service.pawl("submit", "attention", "--goal", "9", "--iterations", "1")
            once = subprocess.run([BIN / "pawl-fleet", "slurm", "--orchestrator", service.address, "--http", service.url, "--partition",
                                   "plain", "--gpu", "any=gpu:b300:1", "--max", "5", "--once", "--script",
                                   SOURCE / "packaging/slurm/pawl-worker.sbatch"], env=cluster.env, capture_output=True, text=True, timeout=60)
            assert "Requested node configuration is not available" in once.stderr, once.stderr
        except BaseException:
            print((service.path / "fleet.log").read_text()[-4000:], file=sys.stderr)
            for file in sorted(service.path.glob("job-*.log"))[:2]:
                print(file.name, file.read_text()[-1000:], file=sys.stderr)
            raise
        finally:
            recorder.done.set()
            if fleet.poll() is None:
                fleet.kill()
            fleet.wait()
            if options.csv:
                with open(options.csv, "w", newline="") as file:
                    csv.writer(file).writerows([["seconds", "queued", "leased", "workers", "running jobs", "pending jobs"], *recorder.rows])
    return 0


sys.exit(main())
