#!/usr/bin/env python3
"""Does what CONTRIBUTING.md, "A new log scheme", says, in a copy of the tree: its commands as they stand, its edits,
step by step. What it quotes of their output must come.

A phase of the full test, as it compiles the engine once more. What takes minutes even then is planned only (PLANNED);
that each edit finds its place, tutorial_test.py finds out without a compiler.
"""
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tutorial
from scratch_tree import scratch_copy
from support import REPOSITORY

COMMAND_SECONDS_MAX = 900

# How a command begins that builds the engine a third time, or measures for minutes -> what is added so that it says
# what it would do, its exit status then, and what it then says. An unknown option shows that all others are known.
UNKNOWN = "--no_such_option"
PLANNED = {
    "make -j2 torture ": ("-n", 0, "-o build/simulation/torture "),
    "make -j2 rundb-all ": ("-n", 0, "-o rundb-all "),
    "scripts/torture ": (UNKNOWN, 2, f"error: unrecognized arguments: {UNKNOWN}\n"),
    "python3 tests/mutants/score.py ": (UNKNOWN, 2, f"error: unrecognized arguments: {UNKNOWN}\n"),
    "python3 scripts/main_job.py ": ("--list_cells", 0, "YCSB/NO_WAIT/LOG_TOUR/LOG_COMMAND\n"),
}

# How a command begins -> what it says when it has done its work, and not just nothing.
SAYS = {
    "git diff": r"^\+.*LOG_TOUR",
    "./log_dump ": r"^  lsn \d+ command",
    "build/all_tests ": r"^\[  PASSED  \] \d{2,} tests",
}


def steps_of_the_document() -> list[tutorial.Step]:
    with open(os.path.join(REPOSITORY, "CONTRIBUTING.md"), encoding="utf-8") as file:
        return tutorial.steps_of(file.read())


class TutorialCheck(unittest.TestCase):
    broken = ""  # the step that failed: all behind it stands on it

    @classmethod
    def setUpClass(cls):
        cls.tree = scratch_copy(cls.addClassCleanup)
        # The tutorial's own copy is a work tree, in which it can see and take back changes.
        for command in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", *command], cwd=cls.tree, check=True, capture_output=True)

    def setUp(self):
        if TutorialCheck.broken:
            self.skipTest(f"'{TutorialCheck.broken}' failed")

    def walk(self, step):
        TutorialCheck.broken = step.title
        said = ""
        for action in step.actions:
            if isinstance(action, tutorial.Edit):
                tutorial.apply(action, self.tree)
            else:
                said += self.follow(action)
        for claim in step.claims("verified:"):
            self.assertIn(claim, said)
        TutorialCheck.broken = ""

    def follow(self, command):
        for start, (added, status, says) in PLANNED.items():
            if command.line.startswith(start):
                done = self.call(f"{command.line} {added}")
                self.assertEqual(done.returncode, status, self.shown(command, done))
                self.assertIn(says, done.stdout, self.shown(command, done))
                return ""
        done = self.call(command.line)
        self.assertEqual(done.returncode != 0, bool(command.fails), self.shown(command, done))
        self.assertIn(command.fails, done.stdout, self.shown(command, done))
        for start, says in SAYS.items():
            if command.line.startswith(start) and not command.fails:
                self.assertRegex(done.stdout, re.compile(says, re.MULTILINE), self.shown(command, done))
        return done.stdout

    def call(self, line):
        # As in a shell of one's own: not a recursion of a make that runs this, and no pager.
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        return subprocess.run(["bash", "-c", line], cwd=self.tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=COMMAND_SECONDS_MAX,
                              env={**environment, "GIT_PAGER": "cat"})

    def shown(self, command, done):
        return f"{command.line}\n{done.stdout[-4000:]}\nexit status {done.returncode}"

    # ---- what the tutorial takes for granted ----

    def test_that_a_second_log_is_refused(self):
        self.assertEqual(self.call("./rundb -Ln2").returncode, 2)

    def test_that_log_dump_names_the_scheme(self):
        self.assertIn("log 0 of 1, tour, command", self.call("./log_dump --records=3 logs/run-*/log-00.log").stdout)

    def test_that_the_list_knows_the_pair(self):
        self.assertIn("| NO_WAIT | 0 | LOG_TOUR | LOG_COMMAND | SERIALIZABLE | supported |", self.call("./rundb --list").stdout)


# Tests run in the order of their names, so steps come first, and in theirs.
for one in steps_of_the_document():
    setattr(TutorialCheck, f"test_{one.number:02d}_" + re.sub(r"\W+", "_", one.title.lower()),
            lambda self, step=one: self.walk(step))


if __name__ == "__main__":
    unittest.main(verbosity=2)
