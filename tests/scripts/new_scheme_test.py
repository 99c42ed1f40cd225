"""scripts/new_scheme in a copy of the tree: what it refuses, that it then writes nothing, and what it leaves
(new_part_case.py has the tests that are of scripts/new_cc too).
"""
import re
import subprocess
import sys
import unittest

from new_part_case import NewPartCase, SharedTests


class NewSchemeTest(SharedTests, NewPartCase):
    SCRIPT, NAME, FILE = "new_scheme", "tour", "logging/@"
    LISTS = (("Makefile", "LOGS :=", "SCHEMES :="), ("logging/schemes.h", "});\n", "}});\n"),
             ("system/pairs/configured.h", "#undef LOG_NO\n", ""),
             ("experiments/main_job.yaml", "schemes:\n", "log_schemes:\n"),
             ("scripts/looks.py", "SCHEME_STYLE = {", "STYLES = {"),
             ("scripts/run_tests.py", "SANITISED_PAIRS = (", "SANITISED = ("),
             ("docs/pairs.md", "<!-- matrix: begin", "<!-- table: begin"))
    VALUES = (("LOG_ALGORITHM=LOG_TOUR", True), ("LOG_ALGORITHM=LOG_SERIAL", True), ("LOG_ALGORITHM=LOG_DETOUR", False))

    def test_a_name_that_is_taken_is_refused(self):
        for name, by in (("serial", "logging/serial"), ("device", "logging/device"), ("batch", "LOG_BATCH"),
                         ("wbl", "LOG_WBL"), ("write_behind", "logging/write_behind"), ("type", "LOG_TYPE"), ("limit_low", "LOG_LIMIT"), ("dir", "LOG_DIR"),
                         ("last", "kLast"), ("lane", "LaneRecovery"), ("total_order", "TotalOrderLog")):
            self.assertIn(by, self.assert_refused(name, f"'{name}' is taken"))

    def test_a_second_scheme_takes_the_next_number_and_another_look(self):
        self.make()
        self.make("lap_2")
        config = self.text("config.h")
        tour, lap = (int(re.search(rf"^#define {name} (\d+)$", config, re.MULTILINE)[1]) for name in
                     ("LOG_TOUR", "LOG_LAP_2"))
        self.assertEqual(lap, tour + 1)
        self.assertIn("kLast = kLap2,", self.text("logging/format.h"))
        styles = re.findall(r'\): \("(#\w+)", "(.)"\)', self.text("scripts/looks.py"))
        self.assertEqual(len(styles), len(set(marker for _, marker in styles)))

    def test_a_scheme_for_which_no_look_is_spare_gets_that_of_unknown_ones(self):
        for name in ("one", "two", "three", "four"):
            self.make(name)
        self.assertIn('("LOG_FOUR", "LOG_COMMAND"): ("#8a8a8a", "*"),', self.text("scripts/looks.py"))

    def test_the_matrix_is_sorted_and_has_a_row_for_each_payload(self):
        self.make()
        logs = re.findall(r"^\| (LOG_[^|]*) \|", self.text("docs/pairs.md"), re.MULTILINE)
        self.assertEqual(logs, sorted(logs))
        self.assertEqual([log for log in logs if "TOUR" in log], ["LOG_TOUR, LOG_COMMAND", "LOG_TOUR, LOG_DATA"])

    def test_the_main_jobs_cells_and_the_kills_know_it(self):
        self.make()
        script = ("from experiment import cells; "
                  "print([c.label for c in cells.all_cells() if c.log == 'LOG_TOUR'], cells.ONE_LOG)")
        said = subprocess.run([sys.executable, "-c", script], cwd=self.path("scripts"), capture_output=True, text=True)
        self.assertIn("'YCSB NO_WAIT tour data', 'YCSB NO_WAIT tour command', 'TPCC", said.stdout, said.stderr)
        self.assertIn("'LOG_TOUR'", said.stdout.split("] ")[1])


if __name__ == "__main__":
    unittest.main()
