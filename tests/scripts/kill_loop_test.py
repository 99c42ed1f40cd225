"""What random kills draw: each isolation level that a pair claims, both indexes, scans where they can be."""
import random
import unittest

import support  # noqa: F401  (puts scripts/ on the path)
from kill_loop import WORKLOADS, draw_run
from pairs import Pair

ONE = Pair("SILO", False, "LOG_TAURUS", "LOG_DATA", ("SERIALIZABLE",), "supported")
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

    def test_a_seed_draws_the_rest_as_it_did_before(self):
        rng = random.Random(5)
        flags = draw_run(rng, 5, "TPCC", [ONE])
        self.assertEqual(flags[:-2], [
            "--cc=SILO", "--log=LOG_TAURUS", "--log_type=LOG_DATA", "--workload=TPCC", "--thread_cnt=2",
            "--num_logger=4", "--seed=5", "--seconds=1", "--log_limit=48M", "--query_list_len=10000", "--tpcc_small=1",
            "--num_wh=1", "--tpcc_full_mix=1"])
        self.assertEqual(rng.random(), 0.7759585674357169)


if __name__ == "__main__":
    unittest.main()
