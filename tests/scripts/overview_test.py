"""The overview against a stand-in for the engine: every configuration runs in every round, and stands in its table."""
import os
import subprocess
import sys
import tempfile
import unittest

from support import FAKE_RUNDB, REPOSITORY
import overview

OVERVIEW = os.path.join(REPOSITORY, "scripts", "overview.py")


class OverviewTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def overview(self, *words, **environment):
        command = [sys.executable, OVERVIEW, f"--binary={FAKE_RUNDB}", f"--log_dir={self.folder}", "--seconds=0.01",
                   *words]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})

    def test_each_line_has_its_runs_share_and_recoveries(self):
        done = self.overview("--rounds=1", "--tables", "schemes")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in done.stdout.splitlines() if line.startswith("| serial command |")]
        self.assertEqual(len(lines), 3)  # YCSB, TPC-C, the full mix
        self.assertRegex(lines[0], r"^\| serial command \| 4,\d{3} \(.*\) \| (6|7)\d % \| 0\.12 ms \| 78 \| "
                                   r"[34],\d{3}( / [34],\d{3})? \|$")
        self.assertEqual(os.listdir(self.folder), [])

    def test_controls_stand_beside_each_other(self):
        done = self.overview("--rounds=2", "--tables", "controls")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("\n| HEKATON |"), 1)
        self.assertNotIn("of no log", done.stdout)

    def test_what_is_compared_with_other_engines_looks_nowhere_ahead(self):
        done = self.overview("--rounds=1", "--tables", "controls_0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| look-ahead 0: k/s (lowest-highest) | YCSB |", done.stdout)
        for name, (lines, _) in overview.TABLES.items():
            for line, flags in lines.items():
                self.assertEqual("--lookahead=0" in flags, name == "controls_0" or "look-ahead 0" in line, line)

    def test_a_share_above_one_hundred_percent_is_marked(self):
        self.assertEqual([overview.percent(share) for share in (0.5, 1.004, 1.03)], ["50 %", "100 %", "103 %!"])

    def test_a_run_that_fails_ends_it_with_the_command(self):
        done = self.overview("--rounds=1", "--tables", "controls", FAKE_FAIL="run")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("again:", done.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_is_missing_is_said(self):
        self.assertEqual(self.overview("--binary=/nowhere").returncode, 4)
        self.assertIn("cannot write logs", self.overview("--log_dir=/nowhere").stderr)


if __name__ == "__main__":
    unittest.main()
