#!/usr/bin/env python3
"""`pawl archive` and `pawl restore`: campaigns leave the database whole and come back whole; killed at any moment, nothing is
lost or half there; and what is no archive is refused without a change."""
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

from service import BIN, SOURCE, Service, until

TABLES = {"campaigns": "number", "events": "sequence", "iterations": "sequence", "blobs": "hash"}


def rows(database, campaigns=None):
    """All rows of the tables that belong to campaigns, or those of these campaigns alone, without blobs."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    found = {}
    for table, order in TABLES.items():
        where = ""
        if campaigns is not None:
            if table == "blobs":
                continue
            where = f"WHERE {'number' if table == 'campaigns' else 'campaign'} IN ({', '.join(map(str, campaigns))})"
        found[table] = connection.execute(f"SELECT * FROM {table} {where} ORDER BY {order}").fetchall()
    connection.close()
    return found


def check(database):
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    triggers = connection.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'").fetchone()[0]
    assert triggers == 3, "the event log is protected again"
    connection.close()


class ArchiveTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """A stopped database with three ended campaigns, two of the same bundle, and one that has not ended."""
        cls.service = Service()
        cls.service.worker()
        for bundle in ["attention", "attention", "softmax"]:
            cls.service.pawl("submit", bundle, "--goal", "9", "--iterations", "5", "--wait", check=False)
        cls.service.pawl("submit", "softmax", "--gpu", "B300")
        cls.service.orchestrator.send_signal(signal.SIGTERM)
        cls.service.orchestrator.wait(40)
        cls.made = cls.service.path / "pawl.db"

    @classmethod
    def tearDownClass(cls):
        cls.service.__exit__()

    def setUp(self):
        self.folder = self.service.path / f"copy-{self.id().rsplit('.', 1)[1]}"
        self.folder.mkdir()
        self.database = self.folder / "pawl.db"
        shutil.copy(self.made, self.database)
        self.archive_file = self.folder / "old.pawl"

    def run_pawl(self, *arguments, env=None):
        return subprocess.run([BIN / "pawl", *map(str, arguments), "--database", self.database], capture_output=True, text=True,
                              timeout=60, env={**os.environ, **(env or {})})

    def move(self, *campaigns):
        done = self.run_pawl("archive", *campaigns, "--output", self.archive_file)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused(self, done, text, code=1):
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn(text, done.stderr)

    def test_leaves_whole_and_comes_back_whole(self):
        before, size = rows(self.database), self.database.stat().st_size
        self.assertIn("moved campaigns 1, 2 with", self.move(1, "campaigns/2"))
        check(self.database)
        left = rows(self.database)
        self.assertEqual(rows(self.database, [3, 4]), rows(self.made, [3, 4]))
        self.assertEqual([row[0] for row in left["campaigns"]], [3, 4])
        self.assertLess(len(left["blobs"]), len(before["blobs"]), "blobs that nobody else needs are gone")
        self.assertLess(self.database.stat().st_size, size)
        page = sqlite3.connect(self.archive_file).execute("SELECT page FROM reports WHERE campaign = 1").fetchone()[0]
        self.assertIn("<html", page)
        self.refused(self.run_pawl("show", 1), f"there is no campaigns/1 here: it was archived to {self.archive_file}")
        done = self.run_pawl("restore", self.archive_file)
        self.assertEqual(done.returncode, 0, done.stderr)
        check(self.database)
        self.assertEqual(rows(self.database), before)

    def test_keeps_blobs_that_another_campaign_needs(self):
        bundle = rows(self.database)["blobs"]
        self.move(1)
        connection = sqlite3.connect(self.database)
        self.assertEqual(connection.execute("SELECT count(*) FROM blobs WHERE kind = 5").fetchone()[0], 2, "both bundles")
        connection.close()
        self.assertEqual(self.run_pawl("history", 2).returncode, 0)
        self.assertEqual(self.run_pawl("restore", self.archive_file).returncode, 0)
        self.assertEqual(rows(self.database)["blobs"], bundle)

    def test_gives_no_number_again(self):
        connection = sqlite3.connect(self.database)
        last = connection.execute("SELECT max(sequence) FROM events").fetchone()[0]
        connection.close()
        done = self.run_pawl("cancel", 4)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.move(3, 4)
        done = self.run_pawl("run", "softmax", "--device", "replay", "--iterations", "2", "--no-progress")
        self.assertEqual([row[0] for row in rows(self.database)["campaigns"]], [1, 2, 5], done.stderr)
        connection = sqlite3.connect(self.database)
        first = connection.execute("SELECT min(sequence) FROM events WHERE campaign = 5").fetchone()[0]
        connection.close()
        self.assertGreater(first, last)
        self.assertEqual(self.run_pawl("restore", self.archive_file).returncode, 0)
        check(self.database)
        self.assertEqual([row[0] for row in rows(self.database)["campaigns"]], [1, 2, 3, 4, 5])

    def test_keeps_what_is_new_and_what_is_best(self):
        keep = ["archive", "--output", self.archive_file, "--keep"]
        self.assertIn("nothing was moved", self.run_pawl(*keep, "1h").stdout)
        self.assertFalse(self.archive_file.exists())
        self.refused(self.run_pawl(*keep, "soon"), "expected days or hours", code=2)
        self.refused(self.run_pawl("archive", "--output", self.archive_file), "name the campaigns", code=1)
        done = self.run_pawl(*keep, "0h", "--keep-best")  # of two campaigns with attention the faster one stays
        self.assertEqual(done.returncode, 0, done.stderr)
        left = [row[0] for row in rows(self.database)["campaigns"]]
        self.assertIn(left, ([1, 3, 4], [2, 3, 4]))
        self.archive_file = self.folder / "rest.pawl"
        done = self.run_pawl("archive", "--keep", "0h", "--output", self.archive_file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row[0] for row in rows(self.database)["campaigns"]], [4], "it has not ended")

    def test_refuses_what_it_can_not_move(self):
        before = rows(self.database)
        self.refused(self.run_pawl("archive", 4, "--output", self.archive_file), "campaigns/4 has not ended")
        self.refused(self.run_pawl("archive", 99, "--output", self.archive_file), "campaigns/99 is not in the database")
        self.refused(self.run_pawl("archive", "one", "--output", self.archive_file), "\"one\" is not a campaign", code=2)
        self.assertFalse(self.archive_file.exists())
        self.archive_file.write_text("mine")
        self.refused(self.run_pawl("archive", 1, "--output", self.archive_file), "nothing is overwritten")
        self.assertEqual(self.archive_file.read_text(), "mine")
        self.assertEqual(rows(self.database), before)
        self.assertEqual(sorted(file.name for file in self.folder.iterdir() if "part" in file.name), [])

    def test_refuses_what_is_no_whole_archive(self):
        self.move(1)
        before = rows(self.database)
        whole = self.archive_file.read_bytes()
        bad = self.folder / "bad.pawl"
        for text, content in [("is no archive of Pawl", b"hello"), ("is no archive of Pawl", self.made.read_bytes()),
                              ("is damaged or truncated", whole[:len(whole) // 2]),
                              ("is damaged or truncated", whole[:-4096])]:
            bad.write_bytes(content)
            self.refused(self.run_pawl("restore", bad), text)
        shutil.copy(self.archive_file, bad)
        connection = sqlite3.connect(bad)
        connection.execute("UPDATE events SET time_us = time_us + 1 WHERE sequence = (SELECT max(sequence) FROM events)")
        connection.commit()
        connection.close()
        self.refused(self.run_pawl("restore", bad), "its content is not what its hash says")
        shutil.copy(self.archive_file, bad)
        connection = sqlite3.connect(bad)
        connection.execute("PRAGMA user_version = 9")
        connection.close()
        self.refused(self.run_pawl("restore", bad), "is an archive of format 9")
        self.refused(self.run_pawl("restore", self.folder / "nothing"), "there is no file")
        self.assertEqual(rows(self.database), before)
        self.assertEqual(self.run_pawl("restore", self.archive_file).returncode, 0)
        self.refused(self.run_pawl("restore", self.archive_file), "campaigns/1 is in the database already")

    def test_needs_a_database_that_nobody_serves(self):
        server = subprocess.Popen([BIN / "pawl-orchestrator", "--listen", f"unix:{self.folder}/socket", "--database", self.database],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        server.stdout.readline()
        self.refused(self.run_pawl("archive", 1, "--output", self.archive_file), "Stop it first")
        server.terminate()
        server.wait(40)
        server.stdout.close()

    def whole_somewhere(self, campaign):
        """Where the campaign is whole: in the database, in the file, or in both."""
        in_database = rows(self.database, [campaign]) == rows(self.made, [campaign])
        if not in_database:
            self.assertFalse(any(rows(self.database, [campaign]).values()), "nothing is half there")
        in_file = self.archive_file.exists() and rows(self.archive_file, [campaign]) == rows(self.made, [campaign])
        self.assertTrue(in_database or in_file, "nothing is lost")
        return in_database, in_file

    def test_loses_nothing_when_it_is_killed(self):
        for fault, database, file in [("before-commit", True, True), ("after-commit", False, True)]:
            done = self.run_pawl("archive", 1, "--output", self.archive_file, env={"PAWL_FAULT": fault})
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(self.whole_somewhere(1), (database, file))
            if database:
                self.archive_file.unlink()
        for fault, database in [("before-commit", False), ("after-commit", True)]:
            self.assertNotEqual(self.run_pawl("restore", self.archive_file, env={"PAWL_FAULT": fault}).returncode, 0)
            self.assertEqual(self.whole_somewhere(1), (database, True))
        check(self.database)

    def test_loses_nothing_when_it_is_killed_at_random(self):
        generator, times = random.Random(7), 100 if os.environ.get("PAWL_SOAK") == "full" else 12
        for _ in range(times):
            there = bool(rows(self.database, [1])["campaigns"])
            if there and self.archive_file.exists():
                self.archive_file.unlink()
            verb = ["--archive", "1", "--output", self.archive_file] if there else ["--restore", self.archive_file]
            process = subprocess.Popen([BIN / "pawl-orchestrator", "--database", self.database, *verb],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(generator.uniform(0, 0.15))
            process.kill()
            process.wait()
            self.whole_somewhere(1)
        check(self.database)


class BackupTest(unittest.TestCase):
    def test_backups_of_the_timer_are_restored(self):
        """The unit's own command, while a campaign runs; then as docs/operating.md restores one."""
        unit = (SOURCE / "packaging/systemd/pawl-backup.service").read_text()
        self.assertIn("\nStateDirectoryMode=0700\n", unit, "systemd would give the folder another mode with each backup")
        command = re.search(r"^ExecStart=/bin/sh -ec '(.*)'$", unit, re.MULTILINE).group(1).replace("%%", "%")
        with Service() as service:
            command = command.replace("/opt/pawl/bin", str(BIN)).replace("/var/lib/pawl", str(service.path))
            self.assertIn("\nEnvironment=PAWL_DATABASE=%S/pawl/pawl.db\nEnvironmentFile=-/etc/pawl/orchestrator.env\n", unit)
            environment = {**os.environ, "PAWL_DATABASE": str(service.path / "pawl.db")}
            service.worker("--replay-speed", "5")
            campaign = service.pawl("submit", "attention", "--goal", "9", "--iterations", "12")
            for _ in range(9):  # one a second: its name is the time
                subprocess.run(["/bin/sh", "-ec", command], check=True, capture_output=True, timeout=60, env=environment)
                time.sleep(1)
            backups = sorted((service.path / "backups").iterdir())
            self.assertEqual(len(backups), 7, "the newest stay")
            self.assertEqual({backup.stat().st_mode & 0o777 for backup in backups}, {0o600})
            until(lambda: json.loads(service.pawl("show", campaign, "--json"))["state"] == "FINISHED", 120, "the campaign's end")
            history = [json.loads(line)["variant"] for line in service.pawl("history", campaign, "--json").splitlines()]

            service.orchestrator.terminate()
            service.orchestrator.wait(40)
            aside = service.path / "damaged"
            aside.mkdir()
            for file in service.path.glob("pawl.db*"):
                file.rename(aside / file.name)
            shutil.copy(backups[0], service.path / "pawl.db")
            service.start(service.address, service.url.rsplit(":", 1)[1])
            until(lambda: json.loads(service.pawl("show", campaign, "--json"))["state"] == "FINISHED", 120, "its end after the restore")
            again = [json.loads(line)["variant"] for line in service.pawl("history", campaign, "--json").splitlines()]
            self.assertEqual(again, history, "it went on from the copy, and chose the same")


if __name__ == "__main__":
    unittest.main(verbosity=2)
