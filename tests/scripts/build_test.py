"""scripts/build.py over small makefiles."""
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

from support import REPOSITORY

MAKEFILE = """
    MAKEFLAGS += --no-builtin-rules
    .PHONY: all
    all: a.o pairs/b.o program
    %.o:
    \t@mkdir -p $(@D)
    \ttouch -c -d now $@; touch $@ # -o $@
    pairs/bad.o:
    \techo "bad.cpp:3: error: no such thing" >&2; false # -o $@
    program: a.o
    \tcp a.o $@ # -o $@
    """


class BuildTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        with open(os.path.join(self.directory, "Makefile"), "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(MAKEFILE))

    def build(self, *arguments):
        return subprocess.run([sys.executable, os.path.join(REPOSITORY, "scripts/build.py"), *arguments],
                              cwd=self.directory, capture_output=True, text=True, timeout=60, check=False)

    def test_each_target_is_a_step_and_commands_go_to_the_log(self):
        for jobs in ("-j1", "-j2", "-j8"):
            for name in ("a.o", "pairs/b.o", "program"):
                if os.path.exists(os.path.join(self.directory, name)):
                    os.unlink(os.path.join(self.directory, name))
            built = self.build(jobs)
            self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
            lines = built.stdout.splitlines()
            self.assertEqual(len(lines), 3, built.stdout)
            for name in ("a.o", "pairs/b.o", "program"):
                self.assertEqual(sum(f"] {name}: built" in line for line in lines), 1, built.stdout)
            self.assertTrue(lines[-1].startswith("[3/3] "), built.stdout)
            with open(os.path.join(self.directory, "build/build.log"), encoding="utf-8") as log:
                self.assertEqual(log.read().count(" -o "), 3)

    def test_nothing_to_do_is_nothing_said(self):
        self.build()
        again = self.build()
        self.assertEqual((again.returncode, again.stdout, again.stderr), (0, "", ""))

    def test_a_failure_shows_what_the_compiler_said_and_ends_as_make_does(self):
        built = self.build("pairs/bad.o")
        self.assertEqual(built.returncode, 2)
        self.assertIn("bad.cpp:3: error: no such thing", built.stdout)
        self.assertIn("build/build.log", built.stdout.splitlines()[-1])
        self.assertNotIn("built", built.stdout)

    def test_an_unknown_target_fails_too(self):
        built = self.build("nothing_of_the_kind")
        self.assertEqual(built.returncode, 2)
        self.assertIn("No rule to make target", built.stdout)


if __name__ == "__main__":
    unittest.main()
