"""Figures that are derived once and shown everywhere: shares, verdicts, texts, the estimate of the time left."""
import dataclasses
import io
import os
import tempfile
import unittest
from unittest import mock

import support  # noqa: F401  (puts scripts/ on the path)
import child
import host
import progress
import pairs
import pairs_matrix
from experiment import cells, cells_page, records, spec, stats, summary
from experiment.cells import (
    FOR_PEERS, HEADLINES, WORKLOADS, Cell, Settings, all_cells, cell_from_dict, command, points_of_a_round,
    select_cells,
)


def run_row(cell, **metrics):
    return {"cell": cell.as_dict(), "step": "run", "status": "ok",
            "record": {"config": {"THREAD_CNT": 2}, "metrics": metrics, "environment": {}}}


NONE, DATA = Cell("YCSB", "NO_WAIT", "LOG_NO"), Cell("YCSB", "NO_WAIT", "LOG_SERIAL", "LOG_DATA")
LIMITS = {"step": "limits", "limits": {"ycsb_floor_prefetch_per_s": {"1": 5e6, "2": 1e7}, "devices": [
    {"writes": [{"bytes_per_s": 2e9}, {"bytes_per_s": 4e9}], "read_bytes_per_s": 3e9}]}}


class SummaryTest(unittest.TestCase):
    def test_shares_are_of_the_same_cc_without_a_log_the_floor_and_the_device(self):
        rows = [LIMITS, run_row(NONE, throughput_acknowledged=4e6),
                run_row(DATA, throughput_acknowledged=1e6, log_bytes_per_second=1e9)]
        _, data = summary.summarise(rows)
        self.assertEqual((data.of_none, data.of_floor, data.of_device), (0.25, 0.1, 0.25))

    def test_a_floor_of_another_thread_count_is_not_used(self):
        self.assertEqual(host.ycsb_floor([LIMITS], 4), 0)

    def test_a_cell_without_its_base_has_no_share(self):
        (data,) = summary.summarise([run_row(DATA, throughput_acknowledged=1e6)])
        self.assertIsNone(data.of_none)

    def test_lost_is_zero_only_if_the_recovery_after_the_kill_passed(self):
        row = {"cell": DATA.as_dict(), "step": "crash_recover", "status": "failed", "why": "exit status 7"}
        (data,) = summary.summarise([row])
        self.assertEqual(summary.after_kill(data), "FAILED")

    def test_a_cut_last_line_is_left_out_and_a_bad_one_before_it_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.write('{"step": "host"}\n{"step": "ru')
            self.assertEqual(len(records.load(path, strict=True)), 1)
            with open(path, "a", encoding="utf-8") as file:
                file.write('\n{"step": "host"}\n')
            with self.assertRaisesRegex(ValueError, "line 2"):
                records.load(path, strict=True)

    def test_a_plot_says_itself_what_bends_its_figures(self):
        row = run_row(DATA, unsynced=True)
        self.assertEqual(summary.caption([row]), "UNSYNCED; one run per cell")
        row["record"]["environment"] = {"oversubscribed": True, "log_directories": [{"kind": "ram"}]}
        host_row = {"step": "host", "cores": 2, "settings": {"threads": 4}}
        self.assertEqual(summary.caption([host_row, row]), "4 workers on 2 cores; logs on a RAM disk; "
                         "more threads than cores; UNSYNCED; one run per cell")
        self.assertIn("note: the logs lay in RAM: nothing here says how a disk would do, or survives a power cut",
                      summary.notes([row]))

    def test_an_emulated_device_is_named_in_plots_and_notes(self):
        row = run_row(DATA)
        row["record"]["environment"] = {"log_directories": [{"kind": "emulated", "emulation": {"profile": "hdd:0.5"}}]}
        self.assertEqual(summary.caption([row]), "emulated log device (hdd:0.5); one run per cell")
        self.assertIn("note: the log device was emulated (hdd:0.5)", summary.notes([row]))

    def test_the_report_names_the_figures_of_an_emulated_device_and_its_channel(self):
        device = {"profile": "disk29", "bytes_per_second": 29e6, "flush_us": 4170, "seek_us": 6300, "queue_depth": 32}
        words = " disk29: 29 MB/s, flush 4170 us, seek 6300 us, depth 32"
        for channel, more in (({}, ""), ({"channel_bytes_per_second": 0}, ""),
                              ({"channel_bytes_per_second": 160e6}, ", one channel 160 MB/s")):
            self.assertEqual(cells_page._device_words({"emulation": {**device, **channel}}), words + more)

    def test_units_follow_the_size(self):
        self.assertEqual([stats.microseconds(v) for v in (None, 4.2, 340, 1700, 250000)],
                         ["-", "4.2us", "340us", "1.7ms", "250ms"])
        self.assertEqual([stats.thousands(v) for v in (None, 99200, 1234567)], ["-", "99.2", "1,235"])

    def test_unsynced_and_ram_are_said(self):
        row = run_row(DATA, unsynced=True)
        row["record"]["environment"] = {"log_directories": [{"kind": "ram"}], "oversubscribed": True}
        text = "\n".join(summary.notes([row]))
        for words in ("UNSYNCED", "in RAM", "more threads"):
            self.assertIn(words, text)


    @staticmethod
    def round_row(cell, number, rate, lookahead=None):
        return {**run_row(cell, throughput_acknowledged=rate), "step": "round", "round": number, "lookahead": lookahead,
                "why": ""}

    def test_a_repeated_cell_is_shown_by_its_medians_and_shares_are_those_within_a_round(self):
        rows = [self.round_row(cell, number, rate) for cell, rates in ((NONE, (4e6, 2e6, 8e6)), (DATA, (1e6, 1e6, 1e6)))
                for number, rate in enumerate(rates, 1)]
        rows.append(run_row(DATA, throughput_acknowledged=3e6))
        none, data = summary.summarise(rows)
        self.assertEqual((none.run("throughput_acknowledged"), data.run("throughput_acknowledged")), (4e6, 1e6))
        self.assertEqual(data.of_none, 0.25)
        self.assertEqual(none.verdict("run"), "ok ")
        self.assertIn("measured 3 times, in alternation", "\n".join(summary.notes(rows)))

    def test_a_cell_that_was_not_repeated_is_held_against_the_median(self):
        rows = [self.round_row(NONE, number, rate) for number, rate in enumerate((4e6, 2e6, 8e6), 1)]
        _, data = summary.summarise(rows + [run_row(DATA, throughput_acknowledged=1e6)])
        self.assertEqual(data.of_none, 0.25)

    def test_cells_stand_in_their_order_whatever_that_of_the_rounds_was(self):
        rows = [self.round_row(cell, 1, 1e6) for cell in reversed(all_cells())]
        self.assertEqual([item.cell for item in summary.summarise(rows)], all_cells())

    def test_a_failed_round_leaves_the_others_and_is_told(self):
        rows = [self.round_row(NONE, number, rate) for number, rate in enumerate((4e6, 2e6), 1)]
        rows.append({"cell": NONE.as_dict(), "step": "round", "round": 3, "lookahead": None, "status": "failed",
                     "why": "exit status 4", "record": {}})
        (none,) = summary.summarise(rows)
        self.assertEqual((none.run("throughput_acknowledged"), none.verdict("run")), (3e6, "FAILED"))

    def test_without_look_ahead_stands_beside_it(self):
        rows = [self.round_row(cell, number, rate / (2 - (ahead is None)), ahead) for number in (1, 2, 3)
                for cell, rate in ((NONE, 4e6), (DATA, 1e6)) for ahead in (None, 0)]
        self.assertEqual(summary.repeated(rows)[1], ("YCSB NO_WAIT serial data", "1,000 (1,000-1,000)", "25%",
                                                     "500 (500-500)", "25%"))
        table = summary.table(rows)
        self.assertIn("look-ahead 0", table)
        self.assertLessEqual(max(map(len, summary.repeated_table(rows))), summary.TABLE_WIDTH_MAX)

    def test_a_share_above_one_hundred_percent_is_marked(self):
        rows = [run_row(NONE, throughput_acknowledged=1e6), run_row(DATA, throughput_acknowledged=1.2e6)]
        self.assertIn("120%!", summary.table(rows))
        self.assertIn("a share above 100 % (!)", "\n".join(summary.notes(rows)))

    def test_the_widest_table_fits(self):
        figures = {"throughput_acknowledged": 9.999e6, "throughput_executed": 9.999e6, "bytes_per_txn": 1396,
                   "log_bytes_per_second": 9.999e9, "latency_us": {"p50": 23600, "p99": 48200}}
        recovered = {"throughput": 9.999e6, "bytes_per_second": 1.348e9}
        rows = []
        for cell in all_cells():
            rows += [run_row(cell, **figures), {**run_row(cell, **recovered), "step": "recover"},
                     {**run_row(cell), "step": "crash_recover"}]
            for row in rows[-2:]:
                row["record"]["verification"] = {"verified": "b,d"}
        lines = summary.table(rows).split("\n\n")[0].splitlines()
        self.assertEqual([line.split(" -")[0] for line in lines if line.endswith("---")], list(WORKLOADS))
        self.assertLessEqual(max(map(len, lines)), summary.TABLE_WIDTH_MAX)


class StepLineTest(unittest.TestCase):
    def line(self, **metrics) -> str:
        return summary.step_line({"step": "recover", "record": {"metrics": metrics, "verification": {"verified": "a,d"}}})

    def test_a_replay_tells_its_transactions_and_a_heap_has_none(self):
        self.assertEqual(self.line(recovered_txns=1234, heap=None), "1,234 txns recovered, verified: a,d")
        self.assertEqual(self.line(recovered_txns=0, heap={"used_bytes": 1}), "nothing to replay, verified: a,d")


class CellsTest(unittest.TestCase):
    SETTINGS = Settings("rundb-all", 1, 2, 2, 1 << 30, 1, 1000, 2)

    def cells(self, workload):
        return [c for c in all_cells() if c.workload == workload]

    def test_both_workloads_have_twenty_three_cells_of_which_seventeen_log(self):
        for workload in ("YCSB", "TPCC"):
            cells = self.cells(workload)
            self.assertEqual((len(cells), sum(c.logs for c in cells)), (23, 17))

    def test_the_full_mix_of_tpcc_runs_under_every_concurrency_control_by_a_switch_of_its_own(self):
        cells = self.cells("TPCC_FULL")
        self.assertEqual({c.cc for c in cells if c.logs}, {c.cc for c in self.cells("TPCC")})
        words = command(cells[0], "run", self.SETTINGS, "logs")
        self.assertIn("--workload=TPCC", words)
        self.assertIn("--tpcc_full_mix=1", words)

    def test_a_snapshot_cell_is_another_than_the_serializable_one_and_says_so(self):
        (cell,) = [c for c in all_cells() if c.isolation and c.logs]
        self.assertEqual((cell.label, cell.path), ("TPCC_FULL HEKATON SI Taurus command",
                                                   "TPCC_FULL/HEKATON/SNAPSHOT/LOG_TAURUS/LOG_COMMAND"))
        self.assertIn("--isolation_level=SNAPSHOT", command(cell, "run", self.SETTINGS, "logs"))
        self.assertIn(dataclasses.replace(cell, isolation=""), all_cells())

    def test_scans_run_over_the_tree_of_a_database_of_the_same_size(self):
        for cell in self.cells("YCSB_SCAN"):
            words = command(cell, "run", self.SETTINGS, "logs")
            self.assertLessEqual({"--index=IDX_BTREE", "--scan_perc=0.1", "--synth_table_size=1000"}, set(words))

    def test_no_two_cells_are_one_and_each_has_its_base(self):
        cells = all_cells()
        self.assertEqual(len(cells), len({c.path for c in cells}))
        self.assertLessEqual({c.without_log for c in cells}, set(cells))

    def test_what_was_written_down_is_the_same_cell_again(self):
        self.assertEqual([cell_from_dict(c.as_dict()) for c in all_cells()], all_cells())
        self.assertEqual(cell_from_dict({"workload": "YCSB", "cc": "SILO", "log": "LOG_NO"}),
                         Cell("YCSB", "SILO", "LOG_NO"))

    def test_a_round_has_all_that_is_compared_with_and_some_of_it_without_look_ahead(self):
        paths = {cell.path for cell in all_cells()}
        self.assertLessEqual({*HEADLINES, *FOR_PEERS}, paths)
        points = points_of_a_round(all_cells())
        self.assertEqual({p.cell for p in points if not p.cell.logs}, {c for c in all_cells() if not c.logs})
        self.assertEqual({p.cell.path for p in points if p.lookahead == 0}, set(FOR_PEERS))
        for point in points:
            words = command(point.cell, "round", self.SETTINGS, "logs", lookahead=point.lookahead)
            self.assertEqual("--lookahead=0" in words, point.lookahead == 0)
            self.assertNotIn("--verify", words)

    def test_a_file_that_cannot_be_used_is_refused_with_its_name(self):
        for change, why in (({"base": {"threds": 1}}, "the engine has no switch threds"),
                            ({"more": {}}, "expected are"),
                            ({"steps": {"run": {"name": "run"}}}, "missing 1 required positional argument: 'took'")):
            declared = {**spec.load(os.path.join(spec.FOLDER, "main_job.yaml")), **change}
            with mock.patch.object(spec, "load", return_value=declared):
                with self.assertRaisesRegex(spec.SpecError, f"main_job.yaml.*{why}"):
                    cells._declared()

    def test_patterns_select_by_any_part(self):
        self.assertEqual({c.cc for c in select_cells("SILO")}, {"SILO"})
        self.assertEqual(len(select_cells("YCSB/*/LOG_TAURUS/*,TPCC/*/LOG_NO")), 14)


class ProgressTest(unittest.TestCase):
    def test_the_estimate_follows_what_steps_took(self):
        with mock.patch("time.monotonic", side_effect=[0.0, 0.0, 20.0, 20.0, 20.0]):
            bar = progress.Progress([("run", 10.0), ("run", 10.0)], io.StringIO())
            bar.begin("first")
            bar.finish("ok")
            left = bar.expected_[1][1] * bar._scale("run")
        self.assertEqual(left, 20.0)

    def test_off_a_terminal_each_step_is_one_line(self):
        out = io.StringIO()
        bar = progress.Progress([("run", 1.0)], out)
        bar.begin("first")
        bar.draw()
        bar.finish("ok")
        self.assertEqual(out.getvalue().count("\n"), 1)


class ChildTest(unittest.TestCase):
    def test_a_child_that_does_not_end_is_killed(self):
        outcome = child.run_child(["sleep", "30"], timeout=0.2)
        self.assertTrue(outcome.timed_out)
        self.assertEqual(outcome.exit_status, -9)

    def test_the_last_line_prefers_the_error(self):
        outcome = child.run_child(["sh", "-c", "echo 'error: why'; echo more; exit 4"], timeout=10)
        self.assertEqual((outcome.exit_status, outcome.last_line()), (4, "error: why"))

    def test_the_kill_clock_waits_for_the_first_acknowledgement(self):
        with tempfile.NamedTemporaryFile() as file:
            clock = child.KillClock(file.name, delay=0)
            self.assertFalse(clock())  # empty
            file.write(b"\0" * 64)
            file.flush()
            self.assertFalse(clock())  # nothing acknowledged
            file.seek(8)
            file.write(b"\1")
            file.flush()
            self.assertTrue(clock())


class MatrixTest(unittest.TestCase):
    def test_the_table_replaces_what_stood_between_the_markers(self):
        text = f"a\n{pairs_matrix.BEGIN}\nold\n{pairs_matrix.END}\nb\n"
        self.assertEqual(pairs_matrix.with_matrix(text, "new\n"), text.replace("old", "new"))

    def test_missing_markers_are_an_error(self):
        with self.assertRaises(ValueError):
            pairs_matrix.with_matrix("nothing", "new")

    HEAD = ("| CC_ALG | USE_LOCKTABLE | LOG_ALGORITHM | LOG_TYPE | ISOLATION_LEVEL | |\n"
            "|---|---|---|---|---|---|\n")

    def test_the_matrix_has_a_line_per_log_the_isolation_levels_above_and_the_rules_below(self):
        listed = self.HEAD + ("| NO_WAIT | 1 | LOG_X | LOG_DATA | SERIALIZABLE | supported |\n"
                              "| HEKATON | 1 | LOG_X | LOG_DATA | SERIALIZABLE, SNAPSHOT | refused: no locks |\n"
                              "| NO_WAIT | 1 | LOG_NO | - | SERIALIZABLE | supported |\n"
                              "| HEKATON | 1 | LOG_NO | - | SERIALIZABLE, SNAPSHOT | supported |\n")
        lines = pairs_matrix.table_of(pairs.parse_pairs(listed)).splitlines()
        self.assertEqual(lines[0], "| | NO_WAIT + lock table | HEKATON + lock table |")
        self.assertEqual(lines[2], "| ISOLATION_LEVEL | SERIALIZABLE | SERIALIZABLE, SNAPSHOT |")
        self.assertEqual(lines[3:5], ["| LOG_NO | yes | yes |", "| LOG_X, LOG_DATA | yes | 1 |"])
        self.assertEqual(lines[-1], "1. no locks")

    def test_a_list_of_some_of_the_pairs_is_not_written_down(self):
        listed = self.HEAD + ("| NO_WAIT | 1 | LOG_X | LOG_DATA | SERIALIZABLE | supported |\n"
                              "| SILO | 0 | LOG_NO | - | SERIALIZABLE | supported |\n")
        with self.assertRaisesRegex(ValueError, "make rundb-all"):
            pairs_matrix.table_of(pairs.parse_pairs(listed))


if __name__ == "__main__":
    unittest.main()
