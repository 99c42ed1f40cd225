"""The second opinion: which pairs a smoke tries, how verdicts are compared, and what a blind checker comes to."""
import os
import stat
import tempfile
import unittest

import support  # noqa: F401  (puts scripts/ on the path)
import second_opinion
from killed_runs import Wrong
from pairs import Pair

# Says of each file what its name asks for.
FAKE = """#!/bin/sh
for file; do case $file in *.json) case $file in
  *says-true*) echo "$file\ttrue";; *says-unknown*) echo "$file\tunknown";; *) echo "$file\tfalse";; esac;; esac; done
"""


class JudgeTest(unittest.TestCase):
    def setUp(self):
        self.directory_ = tempfile.TemporaryDirectory()
        self.adya_ = self.path("adya")
        self.write("adya", FAKE)
        os.chmod(self.adya_, stat.S_IRWXU)

    def tearDown(self):
        self.directory_.cleanup()

    def path(self, name):
        return os.path.join(self.directory_.name, name)

    def write(self, name, text=""):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def failed(self, *names):
        for name in names:
            self.write(name)
        judge = second_opinion.Judge(self.adya_)
        judge.compare("tests", self.directory_.name)
        return judge.failed

    def test_equal_verdicts_agree(self):
        self.assertEqual(self.failed("serializable-right-says-true.json", "snapshot-wrong-x.json",
                                     "serializable-right-says-unknown.json"), 0)

    def test_a_history_that_only_the_other_finds_wrong_fails(self):
        self.write("serializable-right-x.why", "no excuse")
        self.assertEqual(self.failed("serializable-right-x.json"), 1)

    def test_a_wrong_history_that_the_other_passes_fails_unless_it_says_why(self):
        self.assertEqual(self.failed("serializable-wrong-says-true.json", "snapshot-wrong-says-unknown.json"), 2)
        self.write("serializable-wrong-says-true.why", "because")
        self.write("snapshot-wrong-says-unknown.why", "because")
        self.assertEqual(self.failed(), 0)

    def test_a_checker_that_finds_everything_wrong_is_refused(self):
        with self.assertRaises(Wrong):
            second_opinion.check_known(self.adya_, self.directory_.name)

    def test_a_checker_that_says_nothing_is_refused(self):
        self.write("adya", "#!/bin/sh\n")
        with self.assertRaises(Wrong):
            self.failed("serializable-right-x.json")


class ChosenTest(unittest.TestCase):
    def test_a_smoke_tries_each_concurrency_control_once(self):
        pairs = [Pair(cc, table, log, "LOG_DATA", ("SERIALIZABLE",), "supported")
                 for cc, table in (("NO_WAIT", False), ("NO_WAIT", True), ("SILO", False))
                 for log in ("LOG_NO", "LOG_SERIAL", "LOG_TAURUS")]
        smoke = second_opinion.chosen(pairs, True)
        self.assertEqual([(pair.cc, pair.lock_table) for pair in smoke],
                         [("NO_WAIT", False), ("NO_WAIT", True), ("SILO", False)])
        self.assertNotIn("LOG_NO", [pair.log for pair in smoke])
        self.assertEqual(len(second_opinion.chosen(pairs, False)), 6)


if __name__ == "__main__":
    unittest.main()
