#!/usr/bin/env python3
"""The program pawl-fleet, with commands of Slurm that are scripts: what it asks of them, TLS and tokens, restarts, wrong usage."""
import json
import os
import pathlib
import subprocess
import unittest

from service import BIN, SOURCE, Service

SBATCH = """#!/usr/bin/env python3
import json, os, pathlib, sys, time
file = pathlib.Path({file!r})
jobs = json.loads(file.read_text())["jobs"]
name = next(word for word in sys.argv if word.startswith("--job-name=")).split("=", 1)[1]
jobs.append({{"job_id": len(jobs) + 1, "name": name, "user_id": os.geteuid(), "job_state": {state!r}, "state_reason": "None",
             "start_time": int(time.time()) - 1, "end_time": int(time.time()), "standard_output": "/tmp/job.log", "words": sys.argv[1:]}})
file.write_text(json.dumps({{"jobs": jobs}}))
print(len(jobs))
"""


class FleetCase(unittest.TestCase):
    def setUp(self):
        self.service = Service()
        self.fake = self.service.path / "fake"
        self.fake.mkdir()
        self.file = self.fake / "jobs.json"
        self.file.write_text('{"jobs": []}')
        self.command("squeue", f"#!/bin/sh\ncat {self.file}\n")
        self.command("scancel", "#!/bin/sh\n")
        self.command("sbatch", SBATCH.format(file=str(self.file), state="PENDING"))

    def tearDown(self):
        self.service.__exit__()

    def command(self, name, text):
        (self.fake / name).write_text(text)
        (self.fake / name).chmod(0o755)

    def fleet(self, *arguments, http=None, script=SOURCE / "packaging/slurm/pawl-worker.sbatch", cwd=None):
        words = ["--orchestrator", self.service.address, "--http", http or self.service.url, "--partition", "gpu", "--max", "9",
                 "--script", script, "--once", *arguments]
        return subprocess.run([BIN / "pawl-fleet", "slurm", *words], capture_output=True, text=True, timeout=60, cwd=cwd,
                              env={**os.environ, "PATH": f"{self.fake}:{os.environ['PATH']}"})

    def jobs(self):
        return json.loads(self.file.read_text())["jobs"]

    def submit(self, count):
        for _ in range(count):
            self.service.pawl("submit", "softmax", "--gpu", "H200")


class FleetProgramTest(FleetCase):
    def test_starts_a_job_for_each_trial_and_doubles_none(self):
        self.submit(3)
        for _ in range(3):  # each is a new process
            done = self.fleet("--gpu", "H200=gpu:h200:1", "--worker-token-file", "/shared/token", "--", "--time=60", "--account=a")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(self.jobs()), 3)
        words = self.jobs()[0]["words"]
        self.assertEqual(words[:7], ["--parsable", "--job-name=pawl-worker:H200", "--partition=gpu",
                                     f"--output={os.getcwd()}/pawl-worker-%j.log", "--gres=gpu:h200:1", "--time=60", "--account=a"])
        self.assertEqual(words[8:], ["--orchestrator", self.service.address, "--exit-when-idle", "120s", "--token-file", "/shared/token"])

    def test_starts_nothing_for_a_gpu_that_the_partition_lacks(self):
        self.submit(2)
        self.assertEqual(self.fleet("--gpu", "L4=gpu:l4:1").returncode, 0)
        self.assertEqual(self.jobs(), [])

    def test_holds_back_where_jobs_die_at_once(self):
        self.command("sbatch", SBATCH.format(file=str(self.file), state="FAILED"))
        self.submit(4)
        self.fleet()
        self.assertEqual(len(self.jobs()), 4)
        for _ in range(3):  # each finds in squeue what happened to the process before it
            done = self.fleet()
            self.assertIn("worker jobs fail at once, the last one was 4 (None): see /tmp/job.log", done.stderr)
        self.assertEqual(len(self.jobs()), 4)

    def test_holds_back_where_jobs_end_well_and_reach_no_orchestrator(self):
        self.command("sbatch", SBATCH.format(file=str(self.file), state="COMPLETED"))
        self.submit(4)
        self.fleet()
        self.assertEqual(len(self.jobs()), 4)
        self.assertIn("worker jobs end without reaching the orchestrator, the last one was 4: see /tmp/job.log", self.fleet().stderr)
        self.assertEqual(len(self.jobs()), 4)
        # The same with workers that did: they are gone by now.
        for job in self.jobs():
            worker = self.service.worker("--name", f"slurm-{job['job_id']}-node-cuda0", "--max-trials", "1", "--exit-when-idle", "1s")
            self.assertEqual(worker.wait(30), 0)
        self.assertNotIn("without reaching", self.fleet().stderr)
        self.assertEqual(len(self.jobs()), 8)

    def test_says_what_is_wrong(self):
        self.submit(1)
        self.command("squeue", "#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact slurm controller' >&2\nexit 1\n")
        done = self.fleet()
        self.assertIn("Unable to contact slurm controller", done.stderr)
        self.assertEqual(done.returncode, 1, "cron is to notice")
        self.command("squeue", "#!/bin/sh\necho no JSON\n")
        self.assertIn("squeue --json did not print a list of jobs", self.fleet().stderr)
        self.command("squeue", f"#!/bin/sh\ncat {self.file}\n")
        self.command("sbatch", "#!/bin/sh\necho 'sbatch: error: invalid partition specified: gpu' >&2\nexit 1\n")
        self.assertIn("invalid partition specified: gpu", self.fleet().stderr)
        self.service.orchestrator.kill()
        done = self.fleet()
        self.assertIn("the orchestrator does not answer at", done.stderr)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.jobs(), [])

    def test_refuses_wrong_usage(self):
        for done, text in [(self.fleet("--gpu", "H200"), "expected NAME=GRES"), (self.fleet("--min", "10"), "--min is above --max"),
                           (self.fleet(script="/nowhere"), "there is no file /nowhere"),
                           (self.fleet(cwd="/"), "name one that the nodes have and this user may write: --logs FOLDER"),
                           (self.fleet(http="head:7466"), "expected http://")]:
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text, done.stderr)

    def test_ends_on_term_and_leaves_its_jobs(self):
        self.submit(1)
        process = subprocess.Popen([BIN / "pawl-fleet", "slurm", "--orchestrator", self.service.address, "--http", self.service.url,
                                    "--partition", "gpu", "--max", "2", "--script", SOURCE / "packaging/slurm/pawl-worker.sbatch"],
                                   stderr=subprocess.PIPE, text=True, env={**os.environ, "PATH": f"{self.fake}:{os.environ['PATH']}"})
        process.stderr.readline()  # its first decision
        process.terminate()
        self.assertEqual(process.wait(40), 0)
        process.stderr.close()
        self.assertEqual(len(self.jobs()), 1)


class FleetTlsTest(FleetCase):
    def setUp(self):
        super().setUp()
        certificates = self.service.path / "certificates"
        subprocess.run([SOURCE / "scripts/make-certificates", certificates, "--host", "localhost"], check=True, capture_output=True)
        tokens = {role: f"{role}-token-0123456789" for role in ["read", "submit", "work"]}
        for role, token in {**tokens, "all": "\n".join(f"{role} {token}" for role, token in tokens.items())}.items():
            file = pathlib.Path(self.service.path / f"{role}.token")
            file.write_text(token + "\n")
            file.chmod(0o600)
        self.service.orchestrator.kill()
        self.service.orchestrator.wait()
        self.service.arguments = ["--tls-cert", certificates / "orchestrator.crt", "--tls-key", certificates / "orchestrator.key",
                                  "--tls-ca", certificates / "ca.crt", "--tokens", self.service.path / "all.token"]
        self.service.start("0.0.0.0:0", "0.0.0.0:0")
        self.ca = certificates / "ca.crt"
        self.url = self.service.url.replace("0.0.0.0", "localhost")
        self.service.address = self.service.address.replace("0.0.0.0", "localhost")

    def submit(self, count):
        for _ in range(count):
            self.service.pawl("submit", "softmax", "--gpu", "H200", "--tls-ca", self.ca, "--token-file", self.service.path / "submit.token")

    def test_needs_the_authority_and_a_token(self):
        self.submit(2)
        token = ["--token-file", str(self.service.path / "read.token")]
        self.assertIn("is not trusted: name the authority that signed it with --tls-ca", self.fleet(*token, http=self.url).stderr)
        token += ["--tls-ca", str(self.ca)]
        wrong = ["--token-file", str(self.service.path / "work.token"), "--tls-ca", str(self.ca)]
        self.assertIn("must hold a token of the role read", self.fleet(*wrong, http=self.url).stderr)
        self.assertEqual(self.jobs(), [])
        done = self.fleet(*token, http=self.url)
        self.assertEqual(len(self.jobs()), 2, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
