"""What the tests of scripts/new_scheme and of scripts/new_cc share: a copy of the tree in which the script runs, and
what both leave alone or write.

Nothing is compiled here but the check of the configuration; tutorial_check.py builds and runs the results.
"""
import os
import re
import shutil
import subprocess
import unittest

from scratch_tree import lay_out, run_python, scratch_copy, snapshot


class NewPartCase(unittest.TestCase):
    SCRIPT = ""  # new_scheme
    NAME = ""    # of a part that is made
    FILE = ""    # or folder, which it makes; @ stands for the name
    LISTS = ()   # (file, text in it, what it is replaced by): a list then has lost its shape
    VALUES = ()  # (definition, whether the configuration compiles with it) once NAME is there

    def setUp(self):
        self.tree = scratch_copy(self.addCleanup)

    def path(self, *parts):
        return os.path.join(self.tree, *parts)

    def text(self, path):
        with open(self.path(path), encoding="utf-8") as file:
            return file.read()

    def write(self, path, text):
        with open(self.path(path), "w", encoding="utf-8") as file:
            file.write(text)

    def assert_refused(self, name, says):
        before = snapshot(self.tree)
        done = lay_out(self.tree, self.SCRIPT, name)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertEqual(snapshot(self.tree), before)
        return done.stderr

    def make(self, name=""):
        done = lay_out(self.tree, self.SCRIPT, name or self.NAME)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout


class SharedTests:
    """Mixed into a NewPartCase."""

    # ---- what is refused ----

    def test_a_name_that_is_not_lower_snake_is_refused(self):
        for name in ("Tour", "my-log", "1st", "_log", "log_", "a__b", "../x", "", "my log", "naïve"):
            self.assert_refused(name, "is no name for a ")
        self.assert_refused("a" * 17, "too long")

    def test_the_same_name_a_second_time_is_refused(self):
        self.make()
        self.assert_refused(self.NAME, f"there is {self.FILE.replace('@', self.NAME)}")

    def test_a_list_that_lost_its_shape_is_named_and_nothing_is_written(self):
        for path, found, instead in self.LISTS:
            text = self.text(path)
            self.assertIn(found, text)
            self.write(path, text.replace(found, instead, 1))
            self.assert_refused(self.NAME, f"{path} has changed its shape")
            self.write(path, text)

    def test_a_list_that_is_there_twice_is_no_place(self):
        undefined = "#undef LOG_NO\n#undef NO_WAIT\n"
        self.write("system/pairs/configured.h", self.text("system/pairs/configured.h") + undefined)
        self.assertIn(f"scripts/{self.SCRIPT}.py", self.assert_refused(self.NAME, "is there 2 times"))

    def test_a_missing_file_is_named(self):
        os.unlink(self.path("scripts", "run_tests.py"))
        self.assert_refused(self.NAME, "cannot read scripts/run_tests.py")

    # ---- what is made ----

    def test_a_dry_run_writes_nothing_and_says_the_same(self):
        before = snapshot(self.tree)
        dry = lay_out(self.tree, self.SCRIPT, self.NAME, "--dry_run")
        self.assertEqual((dry.returncode, snapshot(self.tree)), (0, before))
        self.assertEqual(dry.stdout.replace("would make:", "made:"), self.make())

    def test_every_file_that_it_names_has_changed_and_no_other(self):
        before = snapshot(self.tree)
        said = self.make()
        named = set(re.findall(r"^  (\S+)$", said, re.MULTILINE))
        after = snapshot(self.tree)
        self.assertEqual({path for path in after if after[path] != before.get(path)}, named)

    def test_config_h_and_its_copy_gain_the_same(self):
        before = self.text("config.h").splitlines()
        self.make()
        gained = [[line for line in self.text(path).splitlines() if line not in before]
                  for path in ("config.h", "config-std.h")]
        self.assertEqual(gained[0], gained[1])
        self.assertEqual(len(gained[0]), 2)

    def test_no_mark_of_the_templates_is_left(self):
        before = snapshot(self.tree)
        self.make()
        for path, text in snapshot(self.tree).items():
            if path not in before:
                self.assertNotRegex(text.decode(), r"@\w+@", path)

    def test_the_lints_find_no_more_than_before(self):
        before = run_python(self.tree, "tests/lint/style_ratchet.py").stdout.splitlines()
        for name in ("q", "a_name_of_16_chs"):
            self.make(name)
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
        for name in ("q", "a_name_of_16_chs", "nameof16letters1"):
            self.make(name)
        after = snapshot(self.tree)
        changed = [path for path in after if after[path] != before.get(path) and path.endswith((".h", ".cpp"))
                   and not path.startswith("config")]
        done = subprocess.run(["clang-format-14", "--dry-run", "--Werror", *changed], cwd=self.tree,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_configuration_compiles_with_it_and_refuses_what_it_refused(self):
        self.make()
        for definition, compiles in self.VALUES:
            command = [*os.environ.get("CXX", "g++").split(), "-std=c++20", "-fsyntax-only", "-I.", f"-D{definition}",
                       "-x", "c++", "-include", "system/pairs/configured.h", "/dev/null"]
            done = subprocess.run(command, cwd=self.tree, capture_output=True, text=True)
            self.assertEqual(done.returncode == 0, compiles, f"{definition}: {done.stderr}")
