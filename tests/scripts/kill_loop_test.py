"""What random kills draw: each isolation level that a pair claims, both indexes, scans where they can be, many logs,
every instruction set and emulated devices."""
import random
import unittest

import support  # noqa: F401  (puts scripts/ on the path)
from kill_loop import DEVICES, WORKLOADS, can_continue, draw_checkpoints, draw_redo, draw_run, host_flags, simd_levels
from pairs import Pair

ONE = Pair("SILO", False, "LOG_TAURUS", "LOG_DATA", ("SERIALIZABLE",), "supported")
SERIAL = Pair("SILO", False, "LOG_SERIAL", "LOG_DATA", ("SERIALIZABLE",), "supported")
MANY = Pair("HEKATON", False, "LOG_TAURUS", "LOG_DATA", ("SERIALIZABLE", "SNAPSHOT"), "supported")


def drawn(pair, seeds=range(300)):
    """Flags by workload."""
    flags = {workload: [] for workload in WORKLOADS}
    for seed in seeds:
        workload = WORKLOADS[seed % len(WORKLOADS)]
        flags[workload].append(draw_run(random.Random(seed), seed, workload, [pair]))
    return flags


class DrawTest(unittest.TestCase):
    def test_every_isolation_level_that_a_pair_claims_is_drawn_and_no_other(self):
        for pair in (ONE, MANY):
            for workload, runs in drawn(pair).items():
                levels = {flag.split("=")[1] for run in runs for flag in run if flag.startswith("--isolation_level=")}
                self.assertEqual(levels, set(pair.isolation), workload)

    def test_both_indexes_are_drawn_under_each_workload(self):
        for runs in drawn(ONE).values():
            self.assertEqual({flag for run in runs for flag in run if flag.startswith("--index=")},
                             {"--index=IDX_HASH", "--index=IDX_BTREE"})

    def test_only_ycsb_over_trees_scans(self):
        for workload, runs in drawn(ONE).items():
            scanning = [run for run in runs if any(flag.startswith("--scan_perc=0.") for flag in run)]
            self.assertEqual(bool(scanning), workload == "YCSB")
            self.assertTrue(all("--index=IDX_BTREE" in run for run in scanning))

    def test_eight_and_sixteen_logs_come_under_each_workload_and_within_a_few_seeds(self):
        for runs in drawn(ONE).values():
            self.assertEqual({flag for run in runs for flag in run if flag.startswith("--num_logger=")},
                             {f"--num_logger={count}" for count in (1, 2, 4, 8, 16)})
        for first in range(20):
            few = drawn(ONE, range(first, first + 4)).values()
            logs = {flag for runs in few for run in runs for flag in run if flag.startswith("--num_logger=")}
            self.assertLessEqual({"--num_logger=8", "--num_logger=16"}, logs)

    def test_a_scheme_of_one_log_has_one(self):
        self.assertTrue(all("--num_logger=1" in run for runs in drawn(SERIAL).values() for run in runs))

    def test_runs_that_take_checkpoints_draw_them_and_others_have_no_such_flag(self):
        with_pages = ["--log=LOG_DIFFERENTIAL"]
        drawn_flags = {flag for seed in range(40) for step in (0, 1) for flag in draw_checkpoints(seed, with_pages, step)}
        self.assertLessEqual({"--checkpoint_interval=0", "--checkpoint_interval=1ms", "--checkpoint_bytes=64K",
                              "--log_truncation=0", "--log_truncation=1", "--checkpoint_cpu_perc=10",
                              "--checkpoint_cpu_perc=100"}, drawn_flags)
        self.assertNotEqual(draw_checkpoints(1, ["--log=LOG_TAURUS", "--log_type=LOG_DATA"], 0), [])
        self.assertEqual(draw_checkpoints(1, ["--log=LOG_TAURUS", "--log_type=LOG_COMMAND"], 0), [])
        self.assertEqual(draw_checkpoints(1, ["--log=LOG_PLOVER", "--log_type=LOG_DATA"], 0), [])

    def test_runs_with_chains_of_rows_are_continued_on_demand_or_not_and_others_have_no_such_flag(self):
        self.assertEqual({tuple(draw_redo(seed, ["--log=LOG_INSTANT"])) for seed in range(20)},
                         {("--redo=ALL",), ("--redo=ON_DEMAND",)})
        self.assertEqual(draw_redo(1, ["--log=LOG_SERIAL"]), [])

    def test_every_device_and_instruction_set_comes_within_a_few_seeds(self):
        levels = ["scalar", "avx2", "avx512"]
        for first in range(20):
            seeds = range(first, first + len(DEVICES))
            self.assertEqual({host_flags(seed, 0, levels)[0] for seed in seeds},
                             {f"--log_device={device}" for device in DEVICES})
            self.assertEqual({host_flags(seed, 0, levels)[1] for seed in seeds}, {f"--simd={level}" for level in levels})

    def test_what_one_instruction_set_wrote_another_recovers_on_the_same_device(self):
        devices, simd = zip(*(host_flags(7, step, ["scalar", "avx2"]) for step in range(4)))
        self.assertEqual(len(set(devices)), 1)
        self.assertEqual(simd, ("--simd=avx2", "--simd=scalar") * 2)

    def test_a_heap_has_room_and_one_of_queues_is_not_continued(self):
        heap = Pair("DL_DETECT", False, "LOG_WBL", "LOG_DATA", ("SERIALIZABLE",), "supported")
        for pair, is_heap in ((heap, True), (SERIAL, False)):
            for workload, runs in drawn(pair).items():
                for flags in runs:
                    self.assertEqual(any(flag.startswith("--heap_bytes=") for flag in flags), is_heap)
                    self.assertEqual(can_continue(flags), not (is_heap and workload == "SMS"))

    def test_every_host_has_an_instruction_set_for_all(self):
        self.assertEqual(simd_levels()[0], "scalar")

    def test_a_seed_draws_the_rest_as_it_did_before(self):
        rng = random.Random(8)
        flags = draw_run(rng, 8, "TPCC", [ONE])
        self.assertEqual(flags[:-2], [
            "--cc=SILO", "--log=LOG_TAURUS", "--log_type=LOG_DATA", "--workload=TPCC", "--thread_cnt=2",
            "--num_logger=2", "--seed=8", "--seconds=1", "--log_limit=48M", "--query_list_len=10000", "--tpcc_small=1",
            "--num_wh=1", "--tpcc_full_mix=0"])
        self.assertEqual(rng.random(), 0.7048169228716079)


if __name__ == "__main__":
    unittest.main()
