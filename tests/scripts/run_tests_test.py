"""How run_tests.py counts what a phase did, and what it shows of one that failed."""
import tempfile
import unittest
from unittest import mock

import support  # noqa: F401  (puts scripts/ on the path)
import run_tests

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

    def test_a_binary_that_died_counts_what_had_passed_and_one_failure(self):
        output = "[       OK ] A.B (0 ms)\n[ RUN      ] A.C\n"
        self.assertEqual(run_tests.count_gtest(-11, output, self.phase), run_tests.Count(1, 1))

    def test_a_phase_that_counts_nothing_fails(self):
        phase = run_tests.Phase("counts nothing", ["true"], kind="sum")
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(run_tests, "LOG_DIR", folder):
            count, reason = run_tests.run_phase(phase)
        self.assertEqual(count, run_tests.Count(0, 1))
        self.assertTrue(reason)


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
