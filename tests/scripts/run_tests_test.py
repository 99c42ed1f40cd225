"""How run_tests.py counts what a phase did, and what it shows of one that failed; and GoogleTest programs in shards."""
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import support
import run_tests

SHARDS = os.path.join(support.REPOSITORY, "scripts", "shards.py")
GTEST = """[ RUN      ] A.Holds
[       OK ] A.Holds (0 ms)
[ RUN      ] A.Breaks
file.cpp:7: Failure
Expected: 1
[  FAILED  ] A.Breaks, where GetParam() = 3 (0 ms)
[ RUN      ] A.HoldsToo
[       OK ] A.HoldsToo (0 ms)
[  FAILED  ] 1 test, listed below:
[  FAILED  ] A.Breaks, where GetParam() = 3
"""


class CountersTest(unittest.TestCase):
    phase = run_tests.Phase("none of that name", ["true"])

    def test_sum_line(self):
        self.assertEqual(run_tests.count_sum_line(1, "x\n7 passed, 2 failed\n", self.phase), run_tests.Count(7, 2))

    def test_unittest_leaves_out_what_was_skipped(self):
        output = "Ran 10 tests in 1.0s\n\nFAILED (failures=1, errors=1, skipped=2)\n"
        self.assertEqual(run_tests.count_unittest(1, output, self.phase), run_tests.Count(6, 2))

    def test_a_phase_that_counts_nothing_fails(self):
        phase = run_tests.Phase("counts nothing", ["true"], kind="sum")
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(run_tests, "LOG_DIR", folder):
            count, reason = run_tests.run_phase(phase)
        self.assertEqual(count, run_tests.Count(0, 1))
        self.assertTrue(reason)


FAKE = """#!/usr/bin/env python3
import os, sys
tests = {tests}
if "--gtest_list_tests" in sys.argv:
    print("A.")
    for name in tests: print("  " + name)
    sys.exit(0)
index, shards = int(os.environ["GTEST_SHARD_INDEX"]), int(os.environ["GTEST_TOTAL_SHARDS"])
mine = list(tests.items())[index::shards]
print(f"[==========] Running {{len(mine)}} tests from 1 test suite.")
for name, end in mine:
    print(f"[ RUN      ] A.{{name}}", flush=True)
    if end == "dies": os._exit(7)
    print(f"{{end}} (0 ms)".replace("]", f"] A.{{name}}"), flush=True)
print("[==========] done")
sys.exit(any("FAILED" in end for _, end in mine))
"""
OK, FAILED, SKIPPED = "[       OK ]", "[  FAILED  ]", "[  SKIPPED ]"


class ShardsTest(unittest.TestCase):
    def run_fake(self, jobs: int, **tests: str) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tests")
            with open(path, "w", encoding="utf-8") as file:
                file.write(FAKE.format(tests=repr(tests)))
            os.chmod(path, 0o755)
            done = subprocess.run([sys.executable, SHARDS, str(jobs), path], stdout=subprocess.PIPE, text=True,
                                  check=False)
        return done.returncode, done.stdout

    def test_each_test_counts_once_whatever_the_number_of_processes(self):
        for jobs in (1, 2, 9):
            status, output = self.run_fake(jobs, a=OK, b=OK, c=SKIPPED, d=OK)
            self.assertEqual((status, output.splitlines()[-1]), (0, "3 passed, 0 failed"), output)
            self.assertIn("Running 4 tests", output)

    def test_a_failure_is_counted_and_shown_whole(self):
        status, output = self.run_fake(2, a=OK, b=FAILED, c=OK)
        self.assertEqual((status, output.splitlines()[-1]), (1, "2 passed, 1 failed"))
        self.assertIn("[ RUN      ] A.b\n[  FAILED  ] A.b (0 ms)\n", output)

    def test_what_runs_when_a_process_dies_has_failed_and_so_has_what_is_left_of_its_share(self):
        status, output = self.run_fake(2, a=OK, b=OK, c="dies", d=OK, e=OK)
        self.assertEqual((status, output.splitlines()[-1]), (1, "3 passed, 2 failed"), output)
        self.assertIn("[  FAILED  ] A.c: the process ended with 7", output)

    def test_a_program_without_tests_fails(self):
        self.assertEqual(self.run_fake(2)[0], 1)


class ExcerptTest(unittest.TestCase):
    def test_a_failed_test_of_googletest_is_shown_with_its_message(self):
        lines = run_tests.excerpt(GTEST)
        self.assertIn("Expected: 1", lines)
        self.assertIn("[  FAILED  ] A.Breaks", lines)
        self.assertFalse([line for line in lines if "Holds" in line])

    def test_lines_that_begin_with_failed_are_not_lost_in_a_long_output(self):
        output = "FAILED with --seed 3\n" + "cycle\n" * 200 + "9 passed, 1 failed\n"
        self.assertEqual(run_tests.excerpt(output)[0], "FAILED with --seed 3")
        self.assertEqual(run_tests.excerpt(output)[-1], "9 passed, 1 failed")

    def test_else_the_last_lines_are_shown(self):
        self.assertEqual(run_tests.excerpt("\n".join(map(str, range(99))))[-1], "98")
        self.assertEqual(len(run_tests.excerpt("\n".join(map(str, range(99))))), run_tests.TAIL_LINES)


if __name__ == "__main__":
    unittest.main()
