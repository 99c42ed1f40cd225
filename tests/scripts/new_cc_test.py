"""scripts/new_cc in a copy of the tree: what it refuses, that it then writes nothing, and what it leaves
(new_part_case.py has the tests that are of scripts/new_scheme too).
"""
import re
import subprocess
import sys
import unittest

from new_part_case import NewPartCase, SharedTests
from scratch_tree import lay_out


class NewCcTest(SharedTests, NewPartCase):
    SCRIPT, NAME, FILE = "new_cc", "trek", "concurrency_control/@.h"
    LISTS = (("concurrency_control/controls.h", "});\n", "}});\n"),
             ("concurrency_control/controls.h", "enum class CcAlg", "enum class Cc"),
             ("system/pairs/configured.h", "#undef NO_WAIT\n", ""),
             ("scripts/experiment/style.py", "CC_HATCH = {", "HATCH = {"),
             ("scripts/run_tests.py", "SANITISED_PAIRS = (", "SANITISED = ("),
             ("tests/concurrency_control/pairs.cpp", "    add(WaitingPairs());\n", "\n    add(WaitingPairs());\n\n"),
             ("docs/pairs.md", "<!-- matrix: begin", "<!-- table: begin"))
    VALUES = (("CC_ALG=TREK", True), ("CC_ALG=MVCC", True), ("CC_ALG=OCC", False), ("CC_ALG=HIKE", False))

    def test_a_name_that_is_taken_is_refused(self):
        for name, by in (("wait_die", "concurrency_control/wait_die.h"), ("contract", "concurrency_control/contract.h"),
                         ("waiting", "waiting_test.cpp"), ("occ", "OCC"), ("ycsb", "YCSB"),
                         ("thread_cnt_2", "THREAD_CNT"), ("mem_pad", "MEM_PAD"), ("tic_toc", "TicToc"), ("lock_result", "LockResult"),
                         ("worker", "Worker"), ("no_wait_rows", "NoWaitRows"), ("assert", "ASSERT")):
            self.assertIn(by, self.assert_refused(name, f"'{name}' is taken"))

    def test_a_second_control_takes_the_next_number_and_another_hatch(self):
        self.make()
        self.make("hike_2")
        config = self.text("config.h")
        trek, hike = (int(re.search(rf"^#define {name} (\d+)$", config, re.MULTILINE)[1]) for name in
                      ("TREK", "HIKE_2"))
        self.assertEqual(hike, trek + 1)
        self.assertIn("  kTrek,\n  kHike2,\n};", self.text("concurrency_control/controls.h"))
        hatches = dict(re.findall(r'^    "(\w+)": "(.*)",$', self.text("scripts/experiment/style.py"), re.MULTILINE))
        self.assertEqual(len(hatches), len(set(hatches.values())))
        self.assertIn("HIKE_2", hatches)

    def test_the_matrix_is_sorted_and_has_two_columns_more(self):
        before = self.text("docs/pairs.md").splitlines()
        self.make()
        after = self.text("docs/pairs.md").splitlines()
        (head,) = [line for line in after if line.startswith("| | DL_DETECT |")]
        columns = [column.strip() for column in head.strip("|").split("|")][1:]
        self.assertEqual(columns, sorted(columns))
        self.assertEqual([column for column in columns if "TREK" in column], ["TREK", "TREK + lock table"])
        for old, new in zip(before, after, strict=True):
            in_matrix = old.startswith(("| | DL_DETECT |", "|---" * 13, "| ISOLATION_LEVEL", "| LOG_"))
            self.assertEqual(new.count("|"), old.count("|") + 2 * in_matrix)

    def test_it_has_pairs_and_cells_as_other_controls_have(self):
        self.make()
        told = subprocess.run(["make", "-pn", "check-tools"], cwd=self.tree, capture_output=True, text=True).stdout
        pairs = re.search(r"^PAIRS := (.*)$", told, re.MULTILINE)[1].split()
        self.assertEqual([pair.replace("TREK", "WAIT_DIE") for pair in pairs if pair.startswith("TREK:")],
                         [pair for pair in pairs if pair.startswith("WAIT_DIE:")])
        script = "from experiment import cells; print([c.label for c in cells.all_cells() if c.cc == 'TREK'])"
        said = subprocess.run([sys.executable, "-c", script], cwd=self.path("scripts"), capture_output=True, text=True)
        self.assertIn("['YCSB TREK none', 'YCSB TREK Taurus command', 'TPCC TREK none'", said.stdout, said.stderr)

    def test_a_scheme_and_a_control_are_made_side_by_side(self):
        self.make()
        self.assertEqual(lay_out(self.tree, "new_scheme", "trek").returncode, 0)
        self.make("hike")


if __name__ == "__main__":
    unittest.main()
