#!/usr/bin/env python3
"""Scrapes a service that ran a campaign, as Prometheus does; and the alerts, the example configuration and the Grafana
dashboard name only metrics that there are. With Debian's prometheus installed also by promtool and by Prometheus itself."""
import json
import re
import shutil
import subprocess
import tempfile
import pathlib
import unittest
import urllib.error
import urllib.request

from service import SOURCE, Service, until

RULES = SOURCE / "packaging/prometheus/pawl.rules.yml"
NO_PROMETHEUS = "Debian's package prometheus is not installed"


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, f"{command[0]} says: {done.stdout}{done.stderr}"
    return done.stdout


class MetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service()
        cls.service.pawl("submit", "softmax", "--gpu", "B300")  # nobody has one
        cls.service.worker("--name", "replay-1")
        cls.service.pawl("submit", "attention", "--goal", "9", "--iterations", "6", "--wait", check=False)

    @classmethod
    def tearDownClass(cls):
        cls.service.__exit__()

    def test_says_what_happened(self):
        service = self.service
        self.assertGreaterEqual(service.value("pawl_trials_finished_total"), 6)
        self.assertGreaterEqual(service.value("pawl_trials_finished_total", verdict="kept"), 1)
        self.assertEqual(service.value("pawl_campaigns_ended_total", state="finished"), 1)
        self.assertEqual(service.value("pawl_trials_queued", gpu="B300"), 1)
        self.assertEqual(service.value("pawl_trials_unserved", gpu="B300"), 1)
        self.assertEqual(service.value("pawl_workers", state="idle"), 1)
        self.assertGreater(service.value("pawl_stage_seconds_total", stage="measure"), 0)
        self.assertGreater(service.value("pawl_blob_bytes"), 0)
        self.assertGreater(service.value("pawl_commit_seconds_count"), 6)
        self.assertGreater(service.value("pawl_rpc_seconds_count", method="CompleteTrial"), 5)
        self.assertEqual(service.value("pawl_rpc_seconds_count", method="WatchCampaign"), 0, "a stream is no call")

    def test_buckets_rise_to_the_count(self):
        metrics = self.service.metrics()
        buckets = sorted((float(dict(labels)["le"]), value) for labels, value in metrics["pawl_commit_seconds_bucket"].items())
        self.assertEqual([value for _, value in buckets], sorted(value for _, value in buckets))
        self.assertEqual(buckets[-1], (float("inf"), metrics["pawl_commit_seconds_count"][()]))

    def test_says_that_it_is_healthy_and_ready(self):
        self.assertEqual(self.service.get("/healthz"), (200, "ok\n"))
        self.assertEqual(self.service.get("/readyz"), (200, "ready\n"))

    def test_alerts_and_dashboards_name_only_metrics_that_there_are(self):
        known = set(re.findall(r"^# TYPE (\S+)", self.service.get("/metrics")[1], re.MULTILINE))
        known |= {name + end for name in known for end in ("_bucket", "_sum", "_count")}
        board = json.loads((SOURCE / "packaging/grafana/pawl.json").read_text())
        expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        self.assertGreater(len(expressions), 10)
        used = set(re.findall(r"pawl_[a-z_]+", " ".join(expressions) + RULES.read_text()))
        self.assertLessEqual(used, known)

    @unittest.skipUnless(shutil.which("promtool"), NO_PROMETHEUS)
    def test_promtool_accepts_metrics_and_rules(self):
        run("promtool", "check", "metrics", input=self.service.get("/metrics")[1])
        run("promtool", "check", "config", SOURCE / "packaging/prometheus/prometheus.yml")
        with tempfile.TemporaryDirectory() as folder:
            test = pathlib.Path(folder) / "alerts_test.yml"
            test.write_text((SOURCE / "tests/fleet/alerts_test.yml").read_text().replace("RULES", str(RULES)))
            run("promtool", "test", "rules", test)

    @unittest.skipUnless(shutil.which("prometheus"), NO_PROMETHEUS)
    def test_prometheus_scrapes_it(self):
        target = self.service.url.removeprefix("http://")
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "prometheus.yml"
            config.write_text((SOURCE / "packaging/prometheus/prometheus.yml").read_text()
                              .replace("15s", "1s").replace("127.0.0.1:7466", target).replace("[pawl.rules.yml]", f"[{RULES}]"))
            log = open(pathlib.Path(folder) / "log", "w")
            process = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                                        "--web.listen-address=127.0.0.1:0"], stderr=log)
            try:
                def address():
                    found = re.search(r"Listening on\" address=(\S+)", pathlib.Path(log.name).read_text())
                    return found and found.group(1)

                listens = until(address, what="Prometheus")

                def asked():
                    query = f"http://{listens}/api/v1/query?query=pawl_trials_unserved"
                    try:
                        with urllib.request.urlopen(query, timeout=10) as reply:
                            found = json.loads(reply.read())["data"]["result"]
                    except urllib.error.HTTPError:  # it listens before it answers
                        return False
                    return any(series["metric"]["gpu"] == "B300" and series["value"][1] == "1" for series in found)

                until(asked, what="the scraped metric")
            finally:
                process.kill()
                process.wait()


if __name__ == "__main__":
    unittest.main(verbosity=2)
