#!/usr/bin/env python3
"""Maintenance of a service as an operator does it, with real workers; and the flags of the limits by author."""
import json
import subprocess
import unittest

from service import BIN, Service, until


class MaintenanceTest(unittest.TestCase):
    def test_drains_survives_a_restart_and_resumes(self):
        with Service() as service:
            worker = service.worker("--replay-speed", "20", "--name", "one")
            campaign = service.pawl("submit", "attention", "--goal", "9", "--iterations", "8")
            other = service.pawl("submit", "attention", "--goal", "9", "--iterations", "2")
            service.pawl("pause", other, "--reason", "mine")
            until(lambda: service.value("pawl_trials_leased") == 1, what="a lease")
            self.assertIn("no trial is leased", service.pawl("maintenance", "on", "--reason", "new driver"))
            until(lambda: json.loads(service.pawl("maintenance", "status", "--json"))["leased"] == 0, what="the drain")
            self.assertIn("none runs any more", service.pawl("maintenance", "status"))
            iterations = len(service.pawl("history", campaign, "--json").splitlines())

            service.restart()
            self.assertEqual(service.get("/readyz"), (200, "ready: maintenance, no trial is leased; 0 still run\n"))
            self.assertEqual(service.value("pawl_maintenance"), 1)
            self.assertEqual(service.value("pawl_trials_held"), 1)
            self.assertEqual(service.value("pawl_trials_queued"), 0)
            self.assertEqual(service.value("pawl_campaigns_waiting", **{"for": "maintenance"}), 1)
            self.assertTrue(json.loads(service.get("/api/maintenance")[1])["on"])
            later = service.pawl("submit", "attention", "--goal", "9", "--iterations", "2")
            for waits in (campaign, later):
                self.assertIn("(new driver): no trial is leased until pawl maintenance off", service.pawl("show", waits))
            listed = subprocess.run([BIN / "pawl", "campaigns", "--orchestrator", service.address], capture_output=True, text=True, timeout=60)
            self.assertIn("3, 1 wait: maintenance since", listed.stderr)
            watch = subprocess.Popen([BIN / "pawl", "watch", campaign, "--orchestrator", service.address], stdout=subprocess.PIPE, text=True)
            service.children.append(watch)
            for line in watch.stdout:
                if "maintenance since" in line:
                    break
            else:
                self.fail("pawl watch does not say that it waits for maintenance")

            # The worker outlives all of that and has not measured anything.
            until(lambda: service.value("pawl_workers", state="idle") == 1, what="the worker")
            self.assertIsNone(worker.poll(), worker.log.read_text())
            self.assertEqual(len(service.pawl("history", campaign, "--json").splitlines()), iterations)
            self.assertIn("maintenance is off", service.pawl("maintenance", "off"))
            until(lambda: service.value("pawl_campaigns_ended_total", state="finished") == 2, 60, "the end of both campaigns")
            self.assertEqual(watch.wait(30), 0)
            watch.stdout.close()
            self.assertIn(f"{other} paused: mine", service.pawl("show", other))
            self.assertEqual(service.get("/readyz"), (200, "ready\n"))


class LimitFlagsTest(unittest.TestCase):
    def test_wrong_ones_are_refused(self):
        with Service("--limit-gpu-seconds", "*=100,ann=7", "--limit-dollars", "a=b=1.5", "--limit-window", "12h",
                     "--share", "ann=0.01,bob=100"):
            pass
        for arguments, text in [(["--share", "ann=0.009"], "--share: \"ann=0.009\"; expected AUTHOR=WEIGHT"),
                                (["--share", "ann=100.1"], "a weight from 0.01 to 100"),
                                (["--limit-gpu-seconds", "ann"], "--limit-gpu-seconds: \"ann\"; expected AUTHOR=SECONDS"),
                                (["--limit-gpu-seconds", "ann=0"], "a number above 0"),
                                (["--limit-dollars", "ann=-1"], "--limit-dollars: \"ann=-1\"; expected AUTHOR=DOLLARS"),
                                (["--limit-dollars", "=5"], "expected AUTHOR=DOLLARS"),
                                (["--limit-window", "30"], "expected days or hours, as in 30d or 12h"),
                                (["--limit-window", ""], "expected days or hours"),
                                (["--limit-window", "0d"], "expected days or hours")]:
            with Service() as service:
                done = subprocess.run([BIN / "pawl-orchestrator", "--listen", "127.0.0.1:0", "--database", service.path / "other.db", *arguments],
                                      capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
