#!/usr/bin/env python3
"""Does what the tutorials of CONTRIBUTING.md say, in a copy of the tree: their commands as they stand, their edits,
step by step. What they quote of their output must come.

A phase of the full test, as it compiles the engine once more; once for both, so their first steps, which add to lists
that much of it includes, are made before anything is compiled. What takes minutes even then is planned only (PLANNED);
that each edit finds its place, tutorial_test.py finds out without a compiler. The tutorial of a concurrency control is
a test of the night (scripts/run_tests.py).
"""
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tutorial
from scratch_tree import copy_objects, scratch_copy
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
    "git diff": r"^\+.*{}",
    "./log_dump ": r"^  lsn \d+ command",
    "build/all_tests ": r"^\[  PASSED  \] \d\d+ tests",
}


# The word of config.h that each tutorial adds.
WORDS = {tutorial.SCHEME: "LOG_TOUR", tutorial.CONTROL: "TREK"}


def steps_of_the_document(title: str) -> list[tutorial.Step]:
    with open(os.path.join(REPOSITORY, "CONTRIBUTING.md"), encoding="utf-8") as file:
        return tutorial.steps_of(file.read(), title)


class TutorialCheck(unittest.TestCase):
    broken: dict[str, str] = {}  # of a tutorial: the step that failed; all behind it stands on it

    @classmethod
    def setUpClass(cls):
        cls.tree = scratch_copy(cls.addClassCleanup)
        copy_objects(cls.tree)
        # The tutorial's own copy is a work tree, in which it can see and take back changes.
        for command in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", *command], cwd=cls.tree, check=True, capture_output=True)

    def need(self, title):
        """What the tutorial has made so far."""
        if title in self.broken:
            self.skipTest(f"'{self.broken[title]}' failed")

    def walk(self, title, step):
        self.need(title)
        self.broken[title] = step.title
        said = ""
        for action in step.actions:
            if isinstance(action, tutorial.Edit):
                tutorial.apply(action, self.tree)
            else:
                said += self.follow(action, WORDS[title])
        for claim in step.claims("verified:"):
            self.assertIn(claim, said)
        del self.broken[title]

    def follow(self, command, word):
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
                self.assertRegex(done.stdout, re.compile(says.format(word), re.MULTILINE), self.shown(command, done))
        return done.stdout

    def call(self, line):
        # As in a shell of one's own: not a recursion of a make that runs this, and no pager.
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        return subprocess.run(["bash", "-c", line], cwd=self.tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=COMMAND_SECONDS_MAX,
                              env={**environment, "GIT_PAGER": "cat"})

    def shown(self, command, done):
        return f"{command.line}\n{done.stdout[-4000:]}\nexit status {done.returncode}"

    # ---- what the tutorials take for granted, with ./rundb as each has left it ----

    def test_1_then_a_second_log_is_refused(self):
        self.need(tutorial.SCHEME)
        self.assertEqual(self.call("./rundb -Ln2").returncode, 2)

    def test_1_then_log_dump_names_the_scheme(self):
        self.need(tutorial.SCHEME)
        self.assertIn("log 0 of 1, tour, command", self.call("./log_dump --records=3 logs/run-*/log-00.log").stdout)

    def test_1_then_the_list_knows_the_pair(self):
        self.need(tutorial.SCHEME)
        self.assertIn("| NO_WAIT | 0 | LOG_TOUR | LOG_COMMAND | SERIALIZABLE | supported |",
                      self.call("./rundb --list").stdout)

    def test_2_then_the_list_knows_the_pair(self):
        self.need(tutorial.CONTROL)
        self.assertIn("| TREK | 0 | LOG_TAURUS | LOG_COMMAND | SERIALIZABLE | supported |",
                      self.call("./rundb --list").stdout)


# Tests run in the order of their names: the first steps of both (0), the rest of the one (1), then of the other (2).
for number, tutorial_title in enumerate(WORDS, 1):
    for one in steps_of_the_document(tutorial_title):
        place = f"0_{number}" if one.number == 1 else f"{number}_{one.number:02d}"
        setattr(TutorialCheck, f"test_{place}_" + re.sub(r"\W+", "_", one.title.lower()),
                lambda self, title=tutorial_title, step=one: self.walk(title, step))


if __name__ == "__main__":
    unittest.main(verbosity=2)
