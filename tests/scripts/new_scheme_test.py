"""scripts/new_scheme in a copy of the tree: what it refuses, that it then writes nothing, and what it leaves.

Nothing is compiled here but the check of the configuration; tutorial_check.py builds and runs the result.
"""
import os
import re
import shutil
import subprocess
import sys
import unittest

from scratch_tree import new_scheme, run_python, scratch_copy, snapshot


class NewSchemeTest(unittest.TestCase):
    def setUp(self):
        self.tree = scratch_copy(self.addCleanup)

    def path(self, *parts):
        return os.path.join(self.tree, *parts)

    def text(self, path):
        with open(self.path(path), encoding="utf-8") as file:
            return file.read()

    def assert_refused(self, name, says):
        before = snapshot(self.tree)
        done = new_scheme(self.tree, name)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertEqual(snapshot(self.tree), before)
        return done.stderr

    def make(self, name="tour"):
        done = new_scheme(self.tree, name)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    # ---- what is refused ----

    def test_a_name_that_is_not_lower_snake_is_refused(self):
        for name in ("Tour", "my-log", "1st", "_log", "log_", "a__b", "../x", "", "my log", "naïve"):
            self.assert_refused(name, "is no name for a scheme")
        self.assert_refused("a" * 17, "too long")

    def test_a_name_that_is_taken_is_refused(self):
        for name, by in (("serial", "logging/serial"), ("device", "logging/device"), ("batch", "LOG_BATCH"),
                         ("wbl", "LOG_WBL"), ("type", "LOG_TYPE"), ("limit_low", "LOG_LIMIT"), ("dir", "LOG_DIR"),
                         ("last", "kLast"), ("lane", "LaneRecovery"), ("total_order", "TotalOrderLog")):
            self.assertIn(by, self.assert_refused(name, f"'{name}' is taken"))

    def test_the_same_name_a_second_time_is_refused(self):
        self.make()
        self.assert_refused("tour", "there is logging/tour")

    def test_a_list_that_lost_its_shape_is_named_and_nothing_is_written(self):
        for path, found, instead in (("Makefile", "LOGS :=", "SCHEMES :="), ("logging/schemes.h", "});\n", "}});\n"),
                                     ("system/pairs/configured.h", "#undef LOG_NO\n", ""),
                                     ("scripts/looks.py", "SCHEME_STYLE = {", "STYLES = {"),
                                     ("README.md", "<!-- matrix: begin", "<!-- table: begin")):
            text = self.text(path)
            self.assertIn(found, text)
            self.write(path, text.replace(found, instead, 1))
            self.assert_refused("tour", f"{path} has changed its shape")
            self.write(path, text)

    def test_a_list_that_is_there_twice_is_no_place(self):
        self.write("system/pairs/configured.h", self.text("system/pairs/configured.h") + "#undef LOG_NO\n")
        self.assert_refused("tour", "is there 2 times")

    def test_a_missing_file_is_named(self):
        os.unlink(self.path("scripts", "cells.py"))
        self.assert_refused("tour", "cannot read scripts/cells.py")

    def write(self, path, text):
        with open(self.path(path), "w", encoding="utf-8") as file:
            file.write(text)

    # ---- what is made ----

    def test_a_dry_run_writes_nothing_and_says_the_same(self):
        before = snapshot(self.tree)
        dry = new_scheme(self.tree, "tour", "--dry_run")
        self.assertEqual((dry.returncode, snapshot(self.tree)), (0, before))
        self.assertEqual(dry.stdout.replace("would make:", "made:"), self.make())

    def test_every_file_that_it_names_has_changed_and_no_other(self):
        before = snapshot(self.tree)
        said = self.make()
        named = set(re.findall(r"^  (\S+)$", said, re.MULTILINE))
        after = snapshot(self.tree)
        self.assertEqual({path for path in after if after[path] != before.get(path)}, named)

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

    def test_config_h_and_its_copy_gain_the_same(self):
        self.make()
        values = [re.findall(r"^(?:#define LOG_|//   LOG_).*$", self.text(path), re.MULTILINE)
                  for path in ("config.h", "config-std.h")]
        self.assertEqual(values[0], values[1])
        self.assertEqual(sum("LOG_TOUR" in line for line in values[0]), 2)

    def test_the_matrix_is_sorted_and_has_a_row_for_each_payload(self):
        self.make()
        logs = re.findall(r"^\| (LOG_[^|]*) \|", self.text("README.md"), re.MULTILINE)
        self.assertEqual(logs, sorted(logs))
        self.assertEqual([log for log in logs if "TOUR" in log], ["LOG_TOUR, LOG_COMMAND", "LOG_TOUR, LOG_DATA"])

    def test_the_main_jobs_cells_and_the_kills_know_it(self):
        self.make()
        script = "import cells; print([c.label for c in cells.all_cells() if c.log == 'LOG_TOUR'], cells.ONE_LOG)"
        said = subprocess.run([sys.executable, "-c", script], cwd=self.path("scripts"), capture_output=True, text=True)
        self.assertIn("'YCSB NO_WAIT tour data', 'YCSB NO_WAIT tour command', 'TPCC", said.stdout, said.stderr)
        self.assertIn("'LOG_TOUR'", said.stdout.split("] ")[1])

    def test_no_mark_of_the_templates_is_left(self):
        self.make()
        for where in ("logging/tour", "tests/logging/tour"):
            for name in os.listdir(self.path(where)):
                self.assertNotRegex(self.text(f"{where}/{name}"), r"@\w+@")

    def test_the_lints_find_no_more_than_before(self):
        before = run_python(self.tree, "tests/lint/style_ratchet.py").stdout.splitlines()
        self.make("a_name_of_16_chs")
        for lint in ("include_rules", "scheme_names", "one_list"):
            said = run_python(self.tree, f"tests/lint/{lint}.py", self.tree)
            self.assertEqual(said.returncode, 0, said.stdout)
        after = run_python(self.tree, "tests/lint/style_ratchet.py").stdout.splitlines()
        def without_lines(faults):
            return sorted(re.sub(r":\d+:", ":", fault) for fault in faults)
        self.assertEqual(without_lines(after), without_lines(before))

    def test_the_formatter_agrees_whatever_the_length_of_the_name(self):
        if not shutil.which("clang-format-14"):
            self.skipTest("no clang-format-14 (scripts/setup.sh --dev installs it)")
        before = snapshot(self.tree)
        for name in ("q", "a_name_of_16_chs"):
            self.make(name)
        after = snapshot(self.tree)
        changed = [path for path in after if after[path] != before.get(path) and path.endswith((".h", ".cpp"))
                   and not path.startswith("config")]
        done = subprocess.run(["clang-format-14", "--dry-run", "--Werror", *changed], cwd=self.tree,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_configuration_compiles_with_it_and_refuses_what_it_refused(self):
        self.make()
        for value, compiles in (("LOG_TOUR", True), ("LOG_SERIAL", True), ("LOG_WBL", False), ("LOG_DETOUR", False)):
            command = [*os.environ.get("CXX", "g++").split(), "-std=c++20", "-fsyntax-only", "-I.",
                       f"-DLOG_ALGORITHM={value}", "-x", "c++", "-include", "system/pairs/configured.h", "/dev/null"]
            done = subprocess.run(command, cwd=self.tree, capture_output=True, text=True)
            self.assertEqual(done.returncode == 0, compiles, f"{value}: {done.stderr}")


if __name__ == "__main__":
    unittest.main()
