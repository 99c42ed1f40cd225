"""Which mutants count as killed, against stand-ins for the simulation and for the tests that mutants name."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from support import FAKE_MUTANT_TESTS, FAKE_TORTURE, REPOSITORY
import score
from catalogue import MUTANTS

SCRIPT = os.path.join(REPOSITORY, "tests", "mutants", "score.py")
COMMON = "one\t\tthe first\t\t"
# The simulation finds every mutant but this one, if it is told to.
WITH_A_MODEL = "two\t\tthe second\tModel.FindsIt\t"
WITH_A_TEST = "three\t\tthe third\t\tSuite.FailsUnderIt"


def run_score(mutants, *arguments, test="", tests=FAKE_MUTANT_TESTS):
    environment = {**os.environ, "FAKE": "survive", "FAKE_TEST": test, "FAKE_MUTANTS": "\n".join(mutants)}
    return subprocess.run([sys.executable, SCRIPT, f"--torture={FAKE_TORTURE}", f"--tests={tests}", "--seconds=1",
                           *arguments], capture_output=True, text=True, timeout=60, env=environment)


class ScoreTest(unittest.TestCase):
    def assert_killed(self, how, mutants, **with_tests):
        done = run_score(mutants, **with_tests)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertRegex(done.stdout, rf"(?m)^ok: .*{how}$")
        self.assertIn("1 passed, 0 failed", done.stdout)

    def assert_survived(self, how, mutants, **with_tests):
        done = run_score(mutants, **with_tests)
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        self.assertRegex(done.stdout, rf"(?m)^SURVIVED: .*{how}")
        self.assertIn("0 passed, 1 failed", done.stdout)

    def test_what_the_simulation_finds_is_killed(self):
        self.assert_killed("violation: I1: lost", [COMMON])

    # ---- a mutant that names a test ----

    def test_a_test_that_fails_under_the_mutant_kills_it(self):
        self.assert_killed(r"\(the third\): Suite.FailsUnderIt fails", [WITH_A_TEST])

    def test_so_does_one_that_crashes_under_it(self):
        self.assert_killed("Suite.FailsUnderIt crashes", [WITH_A_TEST], test="crashes")

    def test_and_one_that_hangs(self):
        mutant = score.Mutant(*WITH_A_TEST.split("\t"))
        with mock.patch.object(score, "TEST_SECONDS_MAX", 1), mock.patch.dict(os.environ, FAKE_TEST="hangs"):
            self.assertEqual(score.test_finds(FAKE_MUTANT_TESTS, mutant), (True, "Suite.FailsUnderIt hangs"))

    def test_a_test_that_passes_under_the_mutant_proves_nothing(self):
        self.assert_survived("Suite.FailsUnderIt passes$", [WITH_A_TEST], test="passes")

    def test_neither_does_one_that_fails_without_it_too(self):
        self.assert_survived("Suite.FailsUnderIt fails, without the mutant$", [WITH_A_TEST], test="fails")

    def test_nor_one_that_is_not_there(self):
        self.assert_survived("has none of that name", [WITH_A_TEST], test="none")

    def test_a_missing_program_of_tests_is_named_with_its_target(self):
        self.assert_survived("/nowhere is missing, build it with `make mutant_tests`", [WITH_A_TEST], tests="/nowhere")

    def test_a_program_that_is_older_than_the_mutant_says_so(self):
        done = score.test_finds(FAKE_MUTANT_TESTS, score.Mutant("nix", "", "", "", "Suite.FailsUnderIt"))
        self.assertEqual(done, (False, "Suite.FailsUnderIt is not there: error: DBX_MUTANT: no mutant is called 'nix'"))

    def test_a_mutant_of_the_surroundings_does_not_count(self):
        with mock.patch.dict(os.environ, DBX_MUTANT="nix"):
            self.assertEqual(score.end_of(FAKE_MUTANT_TESTS, "Suite.FailsUnderIt"), score.PASSES)

    # ---- a mutant that names a model ----

    def test_a_model_that_finds_what_the_simulation_does_not_kills_it(self):
        self.assert_killed("Model.FindsIt passes", [WITH_A_MODEL])

    def test_a_model_that_does_not_find_it_leaves_it_alive(self):
        self.assert_survived("Model.FindsIt fails", [WITH_A_MODEL], test="fails")

    def test_a_model_that_is_not_there_leaves_it_alive(self):
        self.assert_survived("has none of that name", [WITH_A_MODEL], test="none")
        self.assert_survived("`make mutant_tests`", [WITH_A_MODEL], tests="/nowhere")

    # ---- the rotation ----

    def test_the_rotation_leaves_out_what_names_a_model_or_a_test(self):
        done = run_score([WITH_A_TEST, COMMON, WITH_A_MODEL], "--rotate=3", tests="/nowhere")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("1 passed, 0 failed", done.stdout)

    def test_nor_does_it_try_what_is_rare_which_otherwise_gets_ten_times_as_long(self):
        rare = sorted(score.RARE)[0]
        done = run_score([COMMON, f"{rare}\t\ta rare one\t\t"], "--rotate=3")
        self.assertIn("1 passed, 0 failed", done.stdout)
        self.assertNotIn(rare, done.stdout)
        with tempfile.NamedTemporaryFile("r") as calls, mock.patch.dict(os.environ, FAKE_CALLS=calls.name):
            run_score([COMMON, f"{rare}\t\ta rare one\t\t"])
            told = {options["--mutant"]: options["--seconds"] for options in map(json.loads, calls)}
        self.assertEqual(told, {"one": "1.0", rare: "10.0"})


class CatalogueTest(unittest.TestCase):
    def test_every_test_that_a_mutant_names_is_there(self):
        sources = ""
        for directory, _, names in os.walk(os.path.join(REPOSITORY, "tests")):
            for name in names:
                if name.endswith("_test.cpp"):
                    with open(os.path.join(directory, name), encoding="utf-8") as file:
                        sources += file.read()
        named = [name for mutant in MUTANTS for name in (mutant.model, mutant.test) if name]
        self.assertGreater(len(named), 20)
        for name in named:
            suite, test = name.split(".")  # Instance/Suite.Test/0, Suite/0.Test or Suite.Test
            suites = [part for part in suite.split("/") if not part.isdigit()]
            test = test.split("/")[0]
            self.assertTrue(any(re.search(rf"\({re.escape(part)},\s*{re.escape(test)}\)", sources) for part in suites),
                            f"no test is called {name}")


if __name__ == "__main__":
    unittest.main()
