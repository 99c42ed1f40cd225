#!/usr/bin/env python3
"""The walk of CONTRIBUTING.md, "A new log scheme", in a copy of the tree: made, built, run, recovered, killed, tested.

A phase of the full test, as it compiles the engine once more. What needs no compiler is in new_scheme_test.py.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from scratch_tree import copy_tree, need_git, new_scheme  # puts scripts/ on the path
from child import KillClock, run_child

COMPILER = os.environ.get("CXX", "g++")
PAIR = ["LOG_ALGORITHM=LOG_TOUR", "LOG_TYPE=LOG_COMMAND"]
HELD = "PAIRS=NO_WAIT:0:LOG_TOUR:LOG_COMMAND"
TESTED = "TESTS=tests/logging/tour tests/system/crash_test.cpp"
BUILD_SECONDS_MAX = 1200


class TutorialCheck(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_git()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.tree = os.path.join(folder.name, "tree")
        copy_tree(cls.tree)
        made = new_scheme(cls.tree, "tour")
        assert made.returncode == 0, made.stderr
        command = ["make", "--no-print-directory", f"-j{os.environ.get('DBX_JOBS', '2')}", f"CXX={COMPILER}", *PAIR,
                   HELD, TESTED, "rundb", "log_dump", "tests"]
        built = subprocess.run(command, cwd=cls.tree, capture_output=True, text=True, timeout=BUILD_SECONDS_MAX)
        assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-4000:]

    def setUp(self):
        self.logs = os.path.join(self.tree, "logs")
        shutil.rmtree(self.logs, ignore_errors=True)

    def call(self, *command, status=0):
        done = subprocess.run(command, cwd=self.tree, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, status, done.stdout[-2000:] + done.stderr[-2000:])
        return done.stdout

    def test_a_run_recovers_to_the_same_state(self):
        self.assertIn("txn_cnt=2000,", self.call("./rundb", "-t2", "-Gx1000", "--write_perc=1", "--read_perc=0", "--verify"))
        self.assertIn("verified: a,b", self.call("./rundb", "-Lr1", "--verify"))

    def test_log_dump_names_the_scheme_and_shows_its_records(self):
        self.call("./rundb", "-t2", "-Gx100")
        said = self.call("./log_dump", "--verify", "--records=3", "logs/run-0001/log-00.log")
        self.assertIn("log 0 of 1, tour, command", said)
        self.assertEqual(len(re.findall(r"^  lsn \d+ command", said, re.MULTILINE)), 3, said)
        self.assertIn("verified: 1 logs", said)

    def test_a_killed_run_loses_nothing_that_it_acknowledged(self):
        acks = os.path.join(self.tree, "acks")
        ended = run_child(["./rundb", "-t2", "--seconds=60", "--log_limit=1G", "--query_list_len=10000",
                           f"--ack_file={acks}"], 120, kill_when=KillClock(acks, 0.5), cwd=self.tree)
        self.assertTrue(ended.killed, ended.output)
        self.assertIn("verified: a,c", self.call("./rundb", "-Lr1", "--verify", "--ack_file=acks"))

    def test_its_own_tests_and_those_over_every_pair_pass(self):
        said = self.call("build/all_tests", "--gtest_brief=1", "--gtest_filter=-*Slow*")
        passed = re.search(r"\[  PASSED  \] (\d+) tests", said)
        self.assertTrue(passed and int(passed[1]) > 40, said)

    def test_a_second_log_is_refused(self):
        self.call("./rundb", "-Ln2", status=2)

    def test_the_list_knows_the_pair(self):
        self.assertIn("| NO_WAIT | 0 | LOG_TOUR | LOG_COMMAND | SERIALIZABLE | supported |", self.call("./rundb", "--list"))


if __name__ == "__main__":
    unittest.main()
