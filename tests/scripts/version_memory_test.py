"""The long run's arithmetic: what counts as growth, what does not, and when there is no verdict."""
import csv
import os
import subprocess
import sys
import tempfile
import unittest

from support import FAKE_RUNDB, REPOSITORY
import version_memory
from version_memory import MIB, Sample, by_minute, growth, minute_line, verdict

SCRIPT = os.path.join(REPOSITORY, "scripts", "version_memory.py")


def minutes(*mebibytes):
    """One sample a minute."""
    return [[value * MIB] for value in mebibytes]


class ArithmeticTest(unittest.TestCase):
    def test_samples_go_into_the_minute_that_they_were_taken_in(self):
        samples = [Sample(5, 1), Sample(59.9, 2), Sample(60, 3), Sample(185, 4)]
        self.assertEqual(by_minute(samples), [[1, 2], [3], [], [4]])
        self.assertEqual(by_minute([]), [])

    def test_growth_is_from_the_median_of_the_second_minute_to_that_of_the_last(self):
        self.assertAlmostEqual(growth([[10], [90, 100, 500], [400], [1, 103, 104]]), 0.03)
        self.assertAlmostEqual(growth(minutes(10, 100, 80)), -0.2)

    def test_the_first_minute_and_those_between_do_not_count(self):
        self.assertEqual(growth(minutes(1, 100, 900, 100)), 0)

    def test_two_per_cent_are_too_much_and_less_is_not(self):
        holds, text = verdict(minutes(800, 1000, 1010, 1019))
        self.assertTrue(holds)
        self.assertEqual(text, "from the second minute to the last: +19.0 MiB, +1.90 %, below 2 %")
        holds, text = verdict(minutes(800, 1000, 1010, 1020))
        self.assertFalse(holds)
        self.assertIn("+2.00 %, not below 2 %", text)

    def test_a_minute_without_a_sample_is_passed_over(self):
        stalled = [[1], [], [100 * MIB], [101 * MIB], []]
        self.assertEqual(verdict(stalled), (True, "from the second minute to the last: +1.0 MiB, +1.00 %, below 2 %"))
        self.assertEqual(minute_line(2, []), "minute 2: no sample")

    def test_too_few_minutes_give_no_verdict(self):
        for known in ([], minutes(1, 100), [[1], [], [100]]):
            with self.assertRaisesRegex(ValueError, "3 minutes"):
                verdict(known)

    def test_a_minutes_line_has_its_median_and_its_span(self):
        self.assertEqual(minute_line(3, [MIB, 2 * MIB, 2048 * MIB]), "minute 3: 2.0 MiB resident, 1.0 to 2,048.0")

    def test_what_is_resident_is_read_from_the_process(self):
        self.assertGreater(version_memory.resident_bytes(os.getpid()), MIB)
        self.assertEqual(version_memory.resident_bytes(1 << 30), 0)


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.csv = os.path.join(folder.name, "made", "memory.csv")

    def call(self, *words, **environment):
        command = [sys.executable, SCRIPT, f"--binary={FAKE_RUNDB}", f"--csv={self.csv}", "--minute_seconds=0.7",
                   "--every=0.1", *words]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=60)

    def test_a_run_leaves_a_line_a_minute_a_verdict_and_all_samples(self):
        done = self.call("--minutes=3", "--", "--isolation_level=SNAPSHOT", "--cc=NO_WAIT")
        # A host that is busy may start the stand-in as late as in the second minute, where it grows.
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        self.assertIn("--cc=NO_WAIT --seconds=2.1", lines[0])
        self.assertNotIn("HEKATON", lines[0])
        self.assertEqual([line.split(":")[0] for line in lines[1:-2]], ["minute 1", "minute 2", "minute 3"])
        self.assertIn("3.0 MiB for versions", lines[-2])
        self.assertRegex(lines[-1], r"^(PASS|FAIL): from the second minute to the last: ")
        with open(self.csv, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertGreater(len(rows), 3)
        self.assertTrue(all(int(row["resident_bytes"]) > 0 for row in rows))

    def test_a_run_that_fails_gives_no_verdict(self):
        done = self.call("--minutes=3", FAKE_FAIL="run")
        self.assertEqual(done.returncode, 4)
        self.assertIn("pretended failure", done.stderr)
        self.assertNotIn("PASS", done.stdout)

    def test_too_short_a_run_is_refused(self):
        self.assertEqual(self.call("--minutes=2").returncode, 2)


if __name__ == "__main__":
    unittest.main()
