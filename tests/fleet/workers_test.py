#!/usr/bin/env python3
"""Workers that come and go, as the program itself: they end when they are told to, give back what they can't finish, and no
trial is lost or judged twice."""
import json
import resource
import signal
import socket
import time
import unittest

from service import Service, until

SLOW = ["--replay-speed", "0.0001"]  # a trial takes hours


def iterations(service, campaign):
    lines = service.pawl("history", campaign, "--json").splitlines()
    return [json.loads(line) for line in lines]


class WorkersTest(unittest.TestCase):
    def setUp(self):
        self.service = Service()

    def tearDown(self):
        self.service.__exit__()

    def submit(self, *arguments):
        return self.service.pawl("submit", "attention", "--goal", "9", *arguments)

    def names(self):
        return [worker["name"] for worker in json.loads(self.service.get("/api/workers")[1]).get("workers", [])]

    def test_ends_when_idle_and_not_before(self):
        campaign = self.submit("--iterations", "8")
        worker = self.service.worker("--exit-when-idle", "2s")
        self.assertEqual(worker.wait(60), 0)
        self.assertIn("no trial for", worker.log.read_text())
        self.assertEqual(json.loads(self.service.pawl("show", campaign, "--json"))["state"], "FINISHED")
        self.assertEqual(self.names(), [])

    def test_ends_when_idle_without_an_orchestrator(self):
        self.service.orchestrator.kill()
        begin = time.monotonic()
        self.assertEqual(self.service.worker("--exit-when-idle", "1s").wait(30), 0)
        self.assertLess(time.monotonic() - begin, 20)

    def test_more_connect_than_a_process_may_open_files_at_first(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
        try:
            self.service.restart()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        host, port = self.service.address.rsplit(":", 1)
        connections = [socket.create_connection((host, int(port))) for _ in range(200)]
        self.submit()
        for connection in connections:
            connection.close()

    def test_takes_as_many_trials_as_it_may(self):
        self.submit("--iterations", "20")
        self.assertEqual(self.service.worker("--max-trials", "4").wait(60), 0)
        self.assertEqual(self.service.value("pawl_trials_leased_total"), 4)
        self.assertEqual(self.service.value("pawl_trials_finished_total"), 4)
        self.assertEqual(self.service.value("pawl_leases_lost_total"), 0)

    def test_ends_at_its_time_and_gives_back_what_runs(self):
        self.submit("--iterations", "4")
        worker = self.service.worker("--until", str(int(time.time()) + 4), "--grace", "2s", *SLOW)
        self.assertEqual(worker.wait(60), 0)
        self.assertEqual(self.service.value("pawl_leases_lost_total", reason="given_back"), 1)
        self.assertEqual(self.service.value("pawl_trials_queued"), 1)

    def test_gives_back_within_the_grace(self):
        campaign = self.submit("--iterations", "6")
        worker = self.service.worker("--grace", "4s", *SLOW)
        until(lambda: self.service.value("pawl_trials_leased") == 1, what="the lease")
        begin = time.monotonic()
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(30), 0)
        self.assertLess(time.monotonic() - begin, 4)
        self.assertEqual(self.service.worker("--exit-when-idle", "2s").wait(60), 0)
        numbers = [iteration["number"] for iteration in iterations(self.service, campaign)]
        self.assertEqual(numbers, list(range(len(numbers))), "each was judged once")
        self.assertGreaterEqual(len(numbers), 7)

    def test_names_itself_by_job_and_node(self):
        job = {"SLURM_JOB_ID": "4711", "SLURMD_NODENAME": "node1"}
        first = self.service.worker(env=job)
        until(lambda: self.names() == ["workers/slurm-4711-node1-replay"], what="the worker")
        first.kill()  # the node is taken away, and the job begins again at once
        self.service.worker(env={**job, "SLURM_RESTART_COUNT": "1"})
        until(lambda: "workers/slurm-4711-node1-r1-replay" in self.names(), seconds=10, what="the requeued job's worker")


if __name__ == "__main__":
    unittest.main(verbosity=2)
