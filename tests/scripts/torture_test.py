"""The torture against a stand-in for its program: what it counts, which seeds it uses, how it ends and goes on."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from support import FAKE_TORTURE, REPOSITORY
import torture
import torture_state
import torture_table

SCRIPT = os.path.join(REPOSITORY, "scripts", "torture.py")


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self, *arguments, state="state.json"):
        return [sys.executable, SCRIPT, f"--torture={FAKE_TORTURE}", f"--state={self.path(state)}", "--jobs=2",
                "--control_seconds=10", f"--kept_file={self.path('kept')}", *arguments]

    def environment(self, fake="", run_seconds=0.002):
        return {**os.environ, "FAKE": fake, "FAKE_CALLS": self.path("calls"), "FAKE_RUN_SECONDS": str(run_seconds)}

    def torture(self, *arguments, fake="", **how):
        return subprocess.run(self.command(*arguments, **how), capture_output=True, text=True, cwd=self.folder,
                              stdin=subprocess.DEVNULL, timeout=60, env=self.environment(fake))

    def start(self, *arguments):
        child = subprocess.Popen(self.command(*arguments), stdout=subprocess.PIPE, text=True, cwd=self.folder,
                                 env=self.environment(run_seconds=0.02))
        deadline = time.monotonic() + 20
        while len(self.calls()) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.3)
        return child

    def state(self):
        with open(self.path("state.json"), encoding="utf-8") as file:
            return json.load(file)

    def calls(self):
        if not os.path.exists(self.path("calls")):
            return []
        with open(self.path("calls"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]


class CountersTest(unittest.TestCase):
    def test_cumulated_reports_add_what_is_new_by_key(self):
        total = {"cycles": 100, "faults": {"EIO": 3}}
        before = {"cycles": 4, "faults": {"EIO": 4}}
        torture_state.add_up(total, {"cycles": 7, "new": 2, "faults": {"EIO": 5, "torn": 1}}, before)
        self.assertEqual(total, {"cycles": 103, "new": 2, "faults": {"EIO": 4, "torn": 1}})

    def test_what_is_no_number_is_passed_over(self):
        total = {}
        torture_state.add_up(total, {"cell": "TEST", "ok": True, "share": 0.5})
        self.assertEqual(total, {"share": 0.5})

    def test_nested_counters_stand_beside_the_others(self):
        self.assertEqual(torture_state.flat({"a": 1, "faults": {"a": 2, "b": 3}}), {"a": 3, "b": 3})


class TableTest(unittest.TestCase):
    def table(self, **changes):
        state = torture_state.new_state(torture.parse_arguments(["--seed", "5"]))
        return torture_table.table({**state, "goal": {"cycles": 1000}, "seconds": 2.0, **changes})

    def test_shares_and_policies_are_derived(self):
        text = self.table(counters={"runs": 100, "cycles": 800, "recovered": 99, "dropped": 1, "sectors torn": 200,
                                    "at an acknowledgement, sectors torn": 8, "in recovery": 9, "third crash": 5})
        self.assertRegex(text, r"dropped +1  1.00 % ")
        self.assertRegex(text, r"in recovery +9 [\s\S]*third crash +5 ")
        self.assertRegex(text, r"kinds of crashes hit: 1 of 7")
        self.assertRegex(text, r"sectors torn +200  25.0 %")
        self.assertRegex(text, r"at an acknowledgement, sectors torn +8  1.0 %")
        self.assertIn("400 cycles/s", text)

    def test_an_unknown_counter_is_a_kind_of_fault(self):
        self.assertRegex(self.table(counters={"runs": 1, "meteorites": 3}), r"faults by kind\n +meteorites +3\n")

    def test_a_long_torture_fails_for_what_it_never_met(self):
        names = ["A/TEST/1", "B/YCSB/2", "C/TPCC/1"]
        counters = {"runs": 9, "cycles": 20_000, "in recovery": 2000, "third crash": 200, "cells": {"A/TEST/1": 3},
                    "faults": {kind: 1 for kind in torture_table.CRASH_KINDS + torture_table.CRASH_POINTS
                                          + torture_table.FAULT_KINDS}}
        state = {**torture_state.new_state(torture.parse_arguments([])), "all_cells": names, "counters": counters}
        self.assertEqual(torture_table.never_met(state), ["B/YCSB/2"])
        self.assertEqual(torture_table.tally(state), (1, 1))
        self.assertRegex(torture_table.table(state), r"cells +1  of 3\n[\s\S]*FAILED: .*met: B/YCSB/2")
        counters["cells"]["B/YCSB/2"] = 1
        self.assertEqual(torture_table.tally(state), (2, 0))
        counters["faults"]["EIO on sync"] = 0
        counters["third crash"] = 199
        self.assertEqual(torture_table.never_met(state), ["EIO on sync", "third crash often enough"])
        counters["cycles"] = 19_999
        self.assertEqual(torture_table.never_met(state), [])
        counters["cycles"] = 80_000
        self.assertEqual(torture_table.never_met(state), ["EIO on sync", "third crash often enough", "C/TPCC/1"])
        counters["cycles"] = 100_000
        self.assertIn("frozen missing", torture_table.never_met(state))
        self.assertEqual(torture_table.never_met({**state, "cells": "SILO"}), [])

    def test_survivors_are_named(self):
        text = self.table(mutants={"killed": 58, "survived": ["one", "two"]})
        self.assertIn("mutants: 58 of 60 killed; survived: one, two", text)


class GoalTest(FolderTest):
    def test_so_many_cycles_are_done_and_all_counters_agree(self):
        done = self.torture("--cycles=2000")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        counters = self.state()["counters"]
        self.assertTrue(2000 <= counters["cycles"] < 2000 + 8 * 4, counters)
        self.assertEqual(counters["faults"]["bit flipped"] * 8, counters["cycles"])
        self.assertTrue(done.stdout.endswith("violations: 0\n1 passed, 0 failed\n"), done.stdout)

    def test_a_time_ends_it(self):
        begin = time.monotonic()
        self.assertEqual(self.torture("--seconds=0.6").returncode, 0)
        self.assertTrue(0.5 < time.monotonic() - begin < 10)

    def test_cells_and_seed_are_passed_and_each_process_has_seeds_of_its_own(self):
        self.torture("--cycles=100", "--cells=SILO", "--seed=42")
        self.assertEqual({call["--cells"] for call in self.calls()}, {"SILO"})
        seeds = sorted(int(call["--seed"]) for call in self.calls())
        self.assertEqual(seeds, [42 + i * torture.SEEDS_PER_SLICE for i in range(len(seeds))])
        firsts = sorted(int(call["--first_cell"]) for call in self.calls())
        self.assertEqual(firsts, list(range(len(seeds))))  # so short a slice may come through one cell only
        self.assertGreaterEqual(len(seeds), 2)

    def test_a_slice_begins_where_the_one_before_will_have_come(self):
        self.torture("--cycles=30000", "--jobs=1")
        firsts = [int(call["--first_cell"]) for call in self.calls()]
        self.assertEqual(firsts[:3], [0, torture.CELLS_PER_SLICE, 2 * torture.CELLS_PER_SLICE])


class ResumeTest(FolderTest):
    def test_counts_add_up_and_no_seed_comes_twice(self):
        self.torture("--cycles=400")
        first = self.state()
        self.torture("--resume", "--cycles=400")
        second = self.state()
        self.assertGreaterEqual(second["counters"]["cycles"], first["counters"]["cycles"] + 400)
        self.assertEqual(second["first_seed"], first["first_seed"])
        seeds = [call["--seed"] for call in self.calls()]
        self.assertEqual(len(set(seeds)), len(seeds))

    def test_a_goal_that_is_reached_leaves_nothing_to_do(self):
        self.torture("--cycles=80")
        calls = len(self.calls())
        self.assertEqual(self.torture("--resume").returncode, 0)
        self.assertEqual(len(self.calls()), calls)

    def test_signals_end_it_in_order_and_resume_goes_on(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            child = self.start("--seconds=2")
            child.send_signal(number)
            output, _ = child.communicate(timeout=20)
            self.assertEqual(child.returncode, 128 + number, output)
            self.assertIn(f"stopped by {number.name}; scripts/torture --resume --state", output)
            self.assertIn("violations: 0", output)
            self.assertGreater(self.state()["counters"]["cycles"], 0)
            os.unlink(self.path("calls"))
        before = self.state()
        self.assertEqual(self.torture("--resume").returncode, 0)
        self.assertGreater(self.state()["counters"]["cycles"], before["counters"]["cycles"])
        self.assertEqual(self.state()["goal"], before["goal"])

    def test_seeds_are_in_the_state_before_they_are_used(self):
        child = self.start("--seconds=20")
        child.kill()
        child.communicate(timeout=20)
        used = max(int(call["--seed"]) for call in self.calls())
        self.assertGreater(self.state()["next_seed"], used)

    def test_cells_and_seeds_come_from_the_state(self):
        self.torture("--cycles=80", "--cells=SILO")
        self.torture("--resume", "--cycles=80")
        self.assertEqual({call["--cells"] for call in self.calls()}, {"SILO"})
        self.assertEqual(self.torture("--resume", "--seed=1").returncode, 2)

    def test_a_new_run_keeps_the_older_state(self):
        self.torture("--cycles=80")
        self.torture("--cycles=80")
        names = [name for name in os.listdir(self.folder) if name.startswith("state") and name.endswith(".json")]
        self.assertEqual(len(names), 2)


class ViolationTest(FolderTest):
    def test_the_shrunk_line_is_printed_and_kept(self):
        done = self.torture("--seconds=20", fake="violation")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^  reproduce: build/simulation/torture --cells .* --txns 1$")
        self.assertEqual(self.state()["violations"][0]["what"], "I1: pretended")

    def test_without_a_shrunk_one_the_first_line_serves(self):
        done = self.torture("--seconds=20", fake="unshrunk")
        self.assertRegex(done.stdout, r"(?m)^  reproduce: build/simulation/torture .* --crashes 8$")

    def test_what_a_fresh_process_does_not_show_is_made_again_by_the_whole_slice(self):
        done = self.torture("--cycles=1000", "--seed=9", "--jobs=1", fake="not_alone")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"reproduce: \S+ --seed 9 --first_cell 0 --cycles 1000\n")

    def test_what_shrinks_for_too_long_is_kept_as_it_was_found(self):
        done = self.torture("--seconds=20", "--hang_seconds=3", fake="long_shrink")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.state()["violations"][0]["what"], "I1: pretended")
        self.assertRegex(self.state()["violations"][0]["reproduce"], "--crashes 8$")

    def test_a_process_that_dies_is_a_violation_of_its_slice(self):
        done = self.torture("--seconds=20", "--seed=9", fake="abort")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ended by SIGABRT: internal check failed: pretended", done.stdout)
        self.assertRegex(done.stdout, r"reproduce: \S+ --seed (9 --first_cell 0|1000009 --first_cell \d+) --cycles 10000\n")

    def test_silence_is_a_violation(self):
        done = self.torture("--cycles=1000", "--hang_seconds=0.5", fake="silence")
        self.assertEqual(done.returncode, 1)
        self.assertIn("it hangs", done.stdout)

    def test_it_goes_on_for_as_many_violations_as_asked(self):
        done = self.torture("--seconds=20", "--max_violations=3", fake="violation")
        self.assertEqual(done.returncode, 1)
        self.assertGreaterEqual(len(self.state()["violations"]), 3)

    def test_a_resumed_run_still_fails_but_goes_on(self):
        self.torture("--cycles=800", fake="violation")
        cycles = self.state()["counters"]["cycles"]
        self.assertEqual(self.torture("--resume").returncode, 1)
        self.assertGreater(self.state()["counters"]["cycles"], cycles)

    def test_kept_seeds_are_tried_first(self):
        with open(self.path("kept"), "w", encoding="utf-8") as file:
            file.write("# I3: what it was\nbuild/simulation/torture --cells SILO --seed 7 --cycles 1  # note\n")
        done = self.torture("--cycles=8", "--kept")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual((self.calls()[0]["--cells"], self.calls()[0]["--seed"]), ("SILO", "7"))
        self.assertIn("kept seeds: 1 of 1 pass", done.stdout)
        self.assertIn("2 passed, 0 failed", done.stdout)


class HarnessTest(FolderTest):
    def test_every_control_must_be_caught_under_some_seed(self):
        done = self.torture("--cycles=0", "--controls")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("control lying_syncs/LOG_SERIAL: ok, seed 3: I1: lost", done.stdout)
        self.assertIn("control lying_syncs/LOG_TAURUS: ok, seed 3: I1: lost", done.stdout)
        self.assertIn("control same seeds/LOG_TAURUS: ok", done.stdout)
        self.assertIn("5 passed, 0 failed", done.stdout)

    def test_a_seed_that_does_not_decide_everything_is_a_failure(self):
        done = self.torture("--cycles=0", "--controls", fake="moody")
        self.assertEqual(done.returncode, 1)
        self.assertIn("control same seeds/LOG_SERIAL: FAILED: {", done.stdout)

    def test_a_control_that_passes_is_a_failure(self):
        done = self.torture("--cycles=0", "--controls", fake="blind")
        self.assertEqual(done.returncode, 1)
        self.assertIn("control no_log: FAILED: the harness is blind", done.stdout)

    def test_a_control_that_never_loses_an_acknowledged_transaction_is_a_failure(self):
        done = self.torture("--cycles=0", "--controls", fake="other")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"FAILED: no I1 under \d+ seeds?, but: lost: no such file")

    def test_a_control_in_which_more_than_acknowledgements_is_wrong_is_a_failure(self):
        done = self.torture("--cycles=0", "--controls", fake="worse")
        self.assertEqual(done.returncode, 1)
        self.assertIn("control no_log: FAILED: more than acknowledged transactions is wrong: I3: more", done.stdout)

    def test_the_mutants_score_stands_in_the_table(self):
        done = self.torture("--cycles=80", "--mutants")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("mutants: 2 of 2 killed", done.stdout)
        self.assertIn("3 passed, 0 failed", done.stdout)

    def test_a_mutant_that_survives_is_named_and_fails(self):
        done = self.torture("--cycles=0", "--mutants", fake="survive")
        self.assertEqual(done.returncode, 1)
        self.assertIn("mutants: 1 of 2 killed; survived: two", done.stdout)

    def test_so_many_mutants_are_tried_as_asked(self):
        self.assertIn("mutants: 1 of 1 killed", self.torture("--cycles=0", "--mutants=1").stdout)


class DetachTest(FolderTest):
    def test_it_goes_on_in_the_background_and_can_be_looked_at_and_ended(self):
        done = self.torture("--detach", "--seconds=30")
        self.assertEqual(done.returncode, 0, done.stderr)
        child = int(done.stdout.split("process ")[1].split()[0])
        try:
            self.assertIn("tail -f", done.stdout)
            self.assertIn("error: another torture writes", self.torture("--resume").stderr)
            self.assertIn("violations: 0", self.torture("--show").stdout)
        finally:
            os.kill(child, signal.SIGTERM)
        deadline = time.monotonic() + 20
        while "passed" not in self.log() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertIn("stopped by SIGTERM", self.log())

    def log(self):
        with open(self.path("state.log"), encoding="utf-8") as file:
            return file.read()

    def test_what_refuses_to_start_is_said_at_once(self):
        done = self.torture("--detach", "--resume")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^error: cannot resume from \S+: No such file or directory\n$")


class RefusalTest(FolderTest):
    def assert_refused(self, status, words, *arguments):
        done = self.torture(*arguments)
        self.assertEqual(done.returncode, status, done.stdout)
        self.assertIn(words, done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_a_program_that_is_no_torture_is_no_success(self):
        self.assert_refused(1, "error: /bin/true --list_cells lists no cells", "--cycles=80", "--torture=/bin/true")

    def test_two_goals(self):
        self.assert_refused(2, "not allowed with", "--cycles=1", "--minutes=1")

    def test_numbers_without_sense(self):
        for word in ("--cycles=-1", "--hours=x", "--seconds=nan", "--jobs=0", "--mutants=0"):
            self.assert_refused(2, "must be a number from", word)

    def test_cells_that_the_program_does_not_know(self):
        self.assert_refused(2, "no cell is named like nix", "--cells=nix")

    def test_a_state_that_is_none(self):
        for text in ("{", "[]", '{"version": 0}'):
            with open(self.path("state.json"), "w", encoding="utf-8") as file:
                file.write(text)
            self.assert_refused(1, "is no state of", "--resume")

    def test_a_missing_program_names_the_build(self):
        self.assert_refused(1, "make torture", "--torture=/nonexistent")

    def test_a_state_that_cannot_be_written(self):
        with open(self.path("file"), "w", encoding="utf-8"):
            pass
        self.assert_refused(1, "error: ", f"--state={self.path('file')}/state.json")


if __name__ == "__main__":
    unittest.main()
