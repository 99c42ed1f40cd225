"""Transfers of cache lines: which structure a place in the code belongs to, when a run counts, when the model may be
shown; and, where the tool is built, a small run of it.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from support import REPOSITORY
from lines import prediction, runs, structures
from lines.structures import Frame

SCRIPT = os.path.join(REPOSITORY, "scripts", "line_transfers.py")
NEAR = {"transfer_nanos": 40.0, "far_nanos": 16.0, "miss_nanos": 15.0}
FAR = {"transfer_nanos": 120.0, "far_nanos": 118.0, "miss_nanos": 15.0}
ADDR2LINE = """0x0000000000001233
std::__atomic_base<unsigned long>::fetch_add(unsigned long, std::memory_order)
/usr/include/c++/12/bits/atomic_base.h:618
dbx::LogStream::TakePlace(unsigned int, unsigned int)
./logging/log_stream.h:96
0x000000000000ffff
??
??:0
"""


def place(at, written_at=0, **counts):
    return {"at": at, "written_at": written_at, **dict.fromkeys(structures.KINDS, 0), **counts}


class StructureTest(unittest.TestCase):
    def test_the_innermost_function_that_a_rule_knows_names_the_structure(self):
        frames = structures.parse_addr2line(ADDR2LINE)
        self.assertEqual([frame.file for frame in frames[0x1233]],
                         ["/usr/include/c++/12/bits/atomic_base.h:618", "logging/log_stream.h:96"])
        self.assertEqual(structures.structure_of(frames[0x1233]), "log tail")
        self.assertEqual(structures.structure_of(frames[0xffff]), structures.OTHER)
        copy = [Frame("dbx::RacyCopy(void*)", "seam/base/racy.h:15"), Frame("Silo::Read", "concurrency_control/silo.h:9")]
        self.assertEqual(structures.structure_of(copy), "row data")

    def test_each_structure_has_a_place(self):
        for file, function, structure in (
                ("concurrency_control/row_locks.h:54", "RowLocks<L>::TryShared(Row*)", "lock words"),
                ("logging/lsn_vector.h:66", "dbx::lv::RaiseShared(unsigned long*)", "LVs"),
                ("logging/payload.h:26", "dbx::CommandPayload::Encode<T>", "log buffer"),
                ("base/epoch.h:80", "dbx::Epochs::Enter()", "epoch"),
                ("concurrency_control/snapshot_clock.h:30", "dbx::SnapshotClock::Draw()", "timestamp counter"),
                ("storage/hash_index.h:212", "dbx::HashIndex::FindIn(unsigned long)", "index"),
                ("storage/tuple.h:96", "dbx::TupleWriter<T>::SetAt()", "row data"),
                ("storage/version_store.cpp:9", "dbx::VersionStore::Take()", "versions"),
                ("system/transaction/ack_queue.h:9", "dbx::AckQueue<L>::Poll()", "acknowledgement")):
            self.assertEqual(structures.structure_of([Frame(function, file)]), structure, file)

    def test_false_sharing_is_that_of_the_structure_that_was_written(self):
        names = {1: "index", 2: "lock words"}
        sums = structures.by_structure([place(1, 2, dirty=10, false_sharing=10), place(1, 2, dirty=3)], names)
        self.assertEqual((sums["lock words"]["dirty"], sums["index"]["dirty"]), (10, 3))

    def test_a_shared_line_is_one_that_all_workers_transfer_about_once_per_transaction(self):
        class Names:
            structures = staticmethod(lambda places: {place["at"]: "log tail" for place in places})
            code = staticmethod(lambda at: f"code {at}")

        lines = [{"transfers": 100, "cores": 4, "at": 1}, {"transfers": 50, "cores": 5, "at": 2},
                 {"transfers": 100, "cores": 3, "at": 3}, {"transfers": 49, "cores": 4, "at": 4}]
        found = runs.shared_lines(lines, 4, 100, Names())
        self.assertEqual([(line["code"], line["transfers"], line["cores"]) for line in found],
                         [("code 1", 1.0, 4), ("code 2", 0.5, 5)])
        self.assertEqual(runs.shared_lines([{"transfers": 100, "cores": 1, "at": 1}], 1, 100, Names()), [])

    def test_the_code_of_a_place_is_the_engines_and_not_that_of_the_library_or_the_seam(self):
        namer = structures.Namer("")
        lock = [Frame("std::atomic::load", "/usr/include/atomic:1"), Frame("dbx::Mutex::lock()", "tests/seam/base/host.h:30"),
                Frame("dbx::CentralLog::Reserve(int)", "logging/eleda/central_log.cpp:7")]
        namer.known.update({1: lock, 2: lock[:1]})
        self.assertEqual(namer.code(1), "logging/eleda/central_log.cpp:7  dbx::CentralLog::Reserve")
        self.assertEqual(namer.code(2), "/usr/include/atomic:1  std::atomic::load")
        self.assertEqual(namer.code(3), "?  ?")

    def test_what_nothing_happened_to_is_left_out(self):
        self.assertEqual(structures.by_structure([place(1)], {1: "index"}), {})


class CellTest(unittest.TestCase):
    def test_the_list_of_pairs_has_those_with_locks_in_rows(self):
        text = ("| SILO | 0 | LOG_NO | - | SERIALIZABLE | supported |\n| SILO | 1 | LOG_NO | - | SERIALIZABLE | supported |\n"
                "| SILO | 0 | LOG_WBL | LOG_DATA | SERIALIZABLE | refused: no |\n")
        self.assertEqual([cell.name for cell in runs.parse_pairs(text)], ["SILO/LOG_NO/-"])

    def test_a_cell_without_a_log_has_no_type(self):
        self.assertNotIn("--log_type=-", runs.parse_cell("SILO/LOG_NO/-").flags(1, "d"))
        with self.assertRaises(runs.Failure):
            runs.parse_cell("SILO/LOG_NO")


class PredictionTest(unittest.TestCase):
    def test_private_caches_end_where_the_processors_have_one_in_common(self):
        self.assertEqual(prediction.private_bytes({**NEAR, "level2_bytes": 1 << 20}), 1 << 20)
        self.assertEqual(prediction.private_bytes({**FAR, "level2_bytes": 1 << 20}), 0)

    def test_a_run_counts_only_if_the_host_stayed_the_same(self):
        self.assertEqual(prediction.mode_of(NEAR, NEAR), "near")
        self.assertEqual(prediction.mode_of(FAR, FAR), "far")
        self.assertIsNone(prediction.mode_of(NEAR, FAR))
        self.assertIsNone(prediction.mode_of(NEAR, {**NEAR, "transfer_nanos": 20.0}))

    def test_a_point_has_the_best_runs_of_its_mode(self):
        rounds = [{"cell": "a", "1": 3.0, "2": 5.0, "costs": [NEAR, NEAR, NEAR]},
                  {"cell": "a", "1": 4.0, "2": 9.0, "costs": [NEAR, NEAR, FAR]}]
        self.assertEqual([(p["mode"], p["one"], p["two"]) for p in prediction.points_of(rounds)], [("near", 4.0, 5.0)])

    def test_the_model_is_shown_from_ten_close_cells_on(self):
        points = [{"cell": str(i), "mode": "near", "error": 0.15} for i in range(9)]
        points += [{"cell": "far off", "mode": "near", "error": -0.16}, {"cell": "9", "mode": "far", "error": 0.0}]
        self.assertFalse(prediction.verdict(points)[0])
        holds, text = prediction.verdict([*points, {"cell": "9", "mode": "near", "error": -0.15}])
        self.assertTrue(holds)
        self.assertIn("10 of 11 cells whose cores are near, 1 of 1 cells whose cores are far", text)


class CommandTest(unittest.TestCase):
    def run_script(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)

    def check_refused(self, message, *arguments):
        with tempfile.TemporaryDirectory() as out:
            done = self.run_script(*arguments, "--out", out)
        self.assertEqual(done.returncode, 2)
        self.assertIn(message, done.stderr)

    def test_a_plot_needs_a_validation(self):
        self.check_refused("error: the model has not been compared with this host", "plot")

    def test_a_plot_of_a_model_that_does_not_predict_is_refused(self):
        with tempfile.TemporaryDirectory() as out:
            with open(os.path.join(out, "validation.json"), "w", encoding="utf-8") as file:
                json.dump([{"cell": "a", "mode": "near", "error": 0.5}], file)
            done = self.run_script("plot", "--out", out)
        self.assertEqual(done.returncode, 2)
        self.assertIn("error: no plot of a model that does not predict this host: within 15% of", done.stderr)

    def test_results_with_other_flags_are_not_mixed(self):
        with tempfile.TemporaryDirectory() as out:
            with open(os.path.join(out, "flags.txt"), "w", encoding="utf-8") as file:
                file.write("-Ln4\n")
            done = self.run_script("sweep", "--out", out, "--flags=-Ln2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("has results with --flags='-Ln4': give another --out", done.stderr)

    def test_shared_lines_are_printed_by_cell_for_the_most_workers(self):
        line = {"structure": "log tail", "code": "logging/log_stream.h:96  TakePlace", "transfers": 1.5, "cores": 65}
        rows = [{"cell": "SILO/LOG_SERIAL/LOG_COMMAND", "workers": n, "shared_lines": [line] * (n // 32)}
                for n in (1, 32, 64)]
        with tempfile.TemporaryDirectory() as out:
            with open(os.path.join(out, "sweep.jsonl"), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            done = self.run_script("shared", "--workers", "1,32", "--out", out)
        self.assertEqual((done.returncode, done.stdout.splitlines()[2:]), (
            0, ["| SILO/LOG_SERIAL/LOG_COMMAND | log tail | 1.50 | `logging/log_stream.h:96  TakePlace` |"]))
        self.check_refused("no sweep has 64 workers", "shared")

    def test_wrong_numbers_of_workers_are_refused(self):
        self.check_refused("is no list of numbers from 1 to 64", "sweep", "--workers", "1,65")


@unittest.skipUnless(os.access(runs.MODEL, os.X_OK), "build/lines/line_transfers is not built")
class ToolTest(unittest.TestCase):
    """Of YCSB, with as many rows as in the default."""

    def simulate(self, workers, **costs):
        with tempfile.TemporaryDirectory() as log_dir:
            plan = runs.Plan(costs, seconds=0.0005, warmup=20, log_dir=log_dir)
            return runs.simulate(runs.pairs()[0], workers, plan, structures.Namer(runs.MODEL))

    def test_two_workers_transfer_lines_and_one_passes_nothing_to_another(self):
        one, two = self.simulate(1), self.simulate(2)
        self.assertGreater(two["transactions"], 100)
        self.assertGreater(two["dirty"], one["dirty"])
        self.assertGreater(sum(counts["dirty"] for counts in two["structures"].values()), 0)

    def test_the_same_run_counts_the_same_twice_and_a_dearer_transfer_makes_it_slower(self):
        first = self.simulate(2, transfer_nanos=40)
        self.assertEqual(first, self.simulate(2, transfer_nanos=40))
        self.assertLess(self.simulate(2, transfer_nanos=400)["modelled_throughput"], first["modelled_throughput"])

    def test_flags_that_are_none_are_one_line_and_status_2(self):
        for flags in (["--cores=x", "--"], ["--cores=129", "--"], ["--speed=1", "--"], []):
            done = subprocess.run([runs.MODEL, *flags], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), flags)
            self.assertTrue(done.stderr.startswith("error: "), done.stderr)


if __name__ == "__main__":
    unittest.main()
