"""Modelled series in figures: which results of the instruments they take, how they are shown, and that no verdict is
made of them.
"""
import contextlib
import csv
import io
import json
import os
import stat
import tempfile
import unittest
from dataclasses import replace
from unittest import mock

import support  # where the scripts are
from exp_case import ExpCase, plan_of
from experiment import captions, claims, data, drawing, figures_page, modelled, replays, spec
from experiment.data import FigureData, Line, Modelled, ModelledLine
from experiment.planning import Plan, Point

SERIES = spec.load_series()
CLOSE = [{"cell": str(i), "mode": "near", "error": 0.1} for i in range(10)]
CELLS = ("NO_WAIT/LOG_NO/-", "NO_WAIT/LOG_SERIAL/LOG_DATA", "NO_WAIT/LOG_SERIAL/LOG_COMMAND")
PARALLEL = ("NO_WAIT/LOG_PLOVER/LOG_DATA", "NO_WAIT/LOG_TAURUS/LOG_DATA", "NO_WAIT/LOG_TAURUS/LOG_COMMAND")


def figure_of(name):
    return spec.select_figures([name], SERIES)[0]


def sweep_row(cell, workers, throughput):
    return {"cell": cell, "workers": workers, "modelled_throughput": throughput, "modelled": True, "transfer_nanos": 40.0,
            "preset": "this host"}


def replay_of(order, limit):
    """A replay that scales up to `limit` threads."""
    times = [{"threads": n, "speedup": min(n, limit)} for n in (64, 2, 1)] + [{"threads": "unlimited", "speedup": limit}]
    return {"kind": "replay_parallelism", "modelled": True, "orders": [{"order": order, "times": times}]}


class FolderCase(unittest.TestCase):
    """With a folder of the instruments' results."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def write_sweep(self, folder, cells, flags="", at=((1, 1e6), (2, 2e6), (64, 8e6)), points=CLOSE):
        rows = [sweep_row(cell, n, (i + 1) * y) for i, cell in enumerate(cells) for n, y in at]
        self.write(f"{folder}/sweep.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        self.write(f"{folder}/flags.txt", flags + "\n")
        self.write(modelled.VALIDATION, json.dumps(points))

    def added(self, name, lines=None, plan=None):
        """The figure's data, measured as `lines` by (panel, series) say, with the modelled series."""
        found = FigureData(figure_of(name), lines or {}, [])
        modelled.add(found, plan or Plan({}, {name: []}), SERIES, self.folder)
        return found


class SweepTest(FolderCase):
    NAME = "taurus/fig05_logging_nvme_2pl"

    def test_each_series_has_the_line_of_its_cell_in_the_sweep_with_its_flags(self):
        self.write_sweep("lines", CELLS)
        self.write_sweep("lines_8_logs", PARALLEL, "-Ln8")
        found = self.added(self.NAME).modelled
        self.assertEqual(found.missing, [])
        self.assertEqual(found.lines["YCSB", "serial_data"].points, {1: 2e6, 2: 4e6, 64: 16e6})
        self.assertEqual(found.lines["YCSB", "taurus_command"].points, {1: 3e6, 2: 6e6, 64: 24e6})
        self.assertEqual({panel for panel, _ in found.lines}, {"YCSB"})

    def test_of_several_rows_of_a_point_the_last_counts_and_what_is_not_marked_as_modelled_is_none(self):
        self.write_sweep("lines", CELLS, at=((2, 1e6), (2, 3e6)))
        unmarked = {**sweep_row(CELLS[0], 64, 9e9), "modelled": False}
        with open(os.path.join(self.folder, "lines", "sweep.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(unmarked) + "\n")
        self.assertEqual(self.added(self.NAME).modelled.lines["YCSB", "none"].points, {2: 3e6})

    def test_what_is_absent_is_not_drawn_and_its_command_is_named(self):
        self.write_sweep("lines", CELLS[:2])
        found = self.added(self.NAME).modelled
        self.assertEqual({name for _, name in found.lines}, {"none", "serial_data"})
        out = os.path.join(self.folder, "lines_8_logs")
        self.assertEqual(found.missing, [
            "scripts/line_transfers sweep --cells 'NO_WAIT/LOG_SERIAL/LOG_COMMAND'",
            f"scripts/line_transfers sweep --out {out} --flags='-Ln8' --cells '{','.join(PARALLEL)}'"])

    def test_a_sweep_with_other_flags_is_not_taken(self):
        self.write_sweep("lines", CELLS, "-z0.9")
        found = self.added(self.NAME).modelled
        self.assertEqual(found.lines, {})
        self.assertIn("is a sweep with --flags='-z0.9', not ''", found.missing[0])

    def test_a_model_that_was_not_found_to_predict_this_host_is_not_shown(self):
        self.write_sweep("lines", CELLS, points=CLOSE[:9])
        self.check_refused("does not predict this host: within 15% of this host's second worker: 9 of 9 cells")
        self.write(modelled.VALIDATION, "{")
        self.check_refused("is damaged")
        os.unlink(os.path.join(self.folder, modelled.VALIDATION))
        self.check_refused("has not been compared with this host: scripts/line_transfers validate")

    def check_refused(self, why):
        found = self.added(self.NAME).modelled
        self.assertEqual((found.lines, len(found.missing)), ({}, 1))
        self.assertIn(why, found.missing[0])


class ReplayTest(FolderCase):
    NAME = "taurus/fig07_recovery_nvme_2pl"
    ORDERS = {"taurus_command": replay_of("lanes", 32), "serial_command": replay_of("total", 1)}

    def setUp(self):
        super().setUp()
        names = ["taurus_command", "serial_command"]
        self.plan = Plan({}, {self.NAME: [Point("YCSB", name, x, f"job of {name}") for name in names for x in (1, 2)]})
        row = {"record": {"metrics": {"recovered_txns": 1000, "replay_seconds": 0.002, "parallelism": 0.5}}}
        self.lines = {("YCSB", name): Line({1: [7e5], 2: [9e5]}, {1: [row], 2: []}) for name in names}

    def write_replays(self, names):
        rows = [{"job": f"job of {name}", "modelled": True, "replay": self.ORDERS[name]} for name in names]
        self.write(modelled.REPLAYS, "".join(json.dumps(row) + "\n" for row in rows))

    def test_a_line_is_the_rate_of_one_thread_while_it_replays_times_the_speedup(self):
        self.write_replays(self.ORDERS)
        found = self.added(self.NAME, self.lines, self.plan).modelled
        self.assertEqual(found.lines["YCSB", "taurus_command"].points, {1: 1e6, 2: 2e6, 64: 32e6})
        self.assertEqual(found.lines["YCSB", "serial_command"].points, {1: 1e6, 2: 1e6, 64: 1e6})
        self.assertEqual(found.missing, [])

    def test_what_is_absent_is_made_by_model(self):
        self.write_replays(["serial_command"])
        found = self.added(self.NAME, self.lines, self.plan).modelled
        self.assertEqual(list(found.lines), [("YCSB", "serial_command")])
        self.assertEqual(found.missing, [f"scripts/exp model {self.NAME}"])

    def test_without_a_measured_thread_there_is_no_line(self):
        self.write_replays(self.ORDERS)
        self.assertEqual(self.added(self.NAME, {}, self.plan).modelled.lines, {})

    def test_each_scheme_of_the_figures_has_an_order_of_replay(self):
        for figure in spec.select_figures([], SERIES):
            for entry in figure.modelled if figure.step == "recover" else ():
                self.assertLessEqual({SERIES[name].flags["log"] for name in entry["series"]}, set(modelled.ORDER_OF))


class VerdictTest(unittest.TestCase):
    """A modelled point has no part in a verdict on measured ones."""

    CLAIMS = ({"of": "taurus_data", "over": "none", "paper": 9.9}, {"of": "taurus_data", "over": "none", "at": 64},
              {"of": "taurus_data", "over": "none", "at": "last"}, {"of": "taurus_data", "over": "none", "at": "peaks"},
              {"of": "taurus_data", "over": ["none", "serial_data"]}, {"of": "taurus_data", "expect": "rises"},
              {"of": "taurus_data", "expect": "flat", "from": 2, "to": 64}, {"of": "taurus_data", "expect": "inverse"},
              {"of": "taurus_data", "over": "none", "at": 64, "over_at": 2}, {"of": "taurus_data", "above": 0.5},
              {"of": "taurus_data", "over": "none", "needs_cores": 64}, {"of": "serial_data", "over": "none"})

    @staticmethod
    def data_of(names, factor):
        """Measured at 1 and 2 threads, modelled up to 64, where every claim would come out as another one."""
        figure = figure_of("taurus/fig05")
        lines = {("YCSB", name): Line({1: [1.0 * (i + 1)] * 3, 2: [3.0 * (i + 1)] * 3}) for i, name in enumerate(names)}
        found = FigureData(figure, lines, [])
        for i, name in enumerate(("none", "taurus_data", "serial_data") if factor else ()):
            found.modelled.lines["YCSB", name] = ModelledLine("a model", {1: 1e6, 2: 1e6, 64: 1e6 * factor ** i})
        return found

    def test_every_claim_is_judged_as_without_modelled_points(self):
        for names in ((), ("none",), ("none", "taurus_data"), ("none", "taurus_data", "serial_data")):
            for claim in self.CLAIMS:
                claim = {"claim": "c", "panels": ["YCSB"], **claim}
                measured = claims.judge(self.data_of(names, 0), claim, 2)
                for factor in (0.001, 1000):
                    self.assertEqual(claims.judge(self.data_of(names, factor), claim, 2), measured, claim)

    def test_without_a_measured_point_a_claim_stays_unmeasured(self):
        claim = {"claim": "c", "of": "taurus_data", "over": "none", "paper": 2, "panels": ["YCSB"]}
        self.assertEqual(claims.judge(self.data_of((), 1000), claim, 64).verdict, claims.UNKNOWN)

    def test_no_row_repeat_or_gap_counts_a_modelled_point(self):
        with_model, without = self.data_of(("none",), 2), self.data_of(("none",), 0)
        self.assertEqual((with_model.rows(), with_model.repeats(), with_model.gaps),
                         (without.rows(), without.repeats(), without.gaps))
        self.assertFalse(set(ModelledLine.__dataclass_fields__) & set(Line.__dataclass_fields__))


class BesideTest(unittest.TestCase):
    def beside(self, points, **claim):
        found = FigureData(figure_of("eleda/fig08_threads_tmpfs"), {}, [])
        for name, line in points.items():
            found.modelled.lines["tmpfs", name] = ModelledLine("a model", line)
        return modelled.beside(found, {"claim": "c", **claim})

    def test_the_ratio_is_that_of_the_most_threads_or_of_the_claims(self):
        points = {"eleda": {1: 1.0, 32: 30.0, 64: 60.0}, "mutex": {1: 1.0, 32: 10.0}}
        self.assertEqual(self.beside(points, of="eleda", over="mutex"), "32 threads: 3.00x")
        self.assertEqual(self.beside(points, of="eleda", over="mutex", at=1), "1 threads: 1.00x")
        self.assertEqual(self.beside(points, of="eleda", over="mutex", at=64), "")

    def test_of_several_rivals_the_fastest_counts(self):
        points = {"eleda": {64: 60.0}, "mutex": {64: 10.0}, "consolidation": {64: 30.0}}
        self.assertEqual(self.beside(points, of="eleda", over=["mutex", "consolidation"]), "64 threads: 2.00x")

    def test_a_change_is_between_the_claims_ends(self):
        points = {"eleda": {1: 1.0, 4: 4.0, 32: 2.0}}
        self.assertEqual(self.beside(points, of="eleda", expect="falls", **{"from": 4}), "4 to 32 threads: 0.50x")
        self.assertEqual(self.beside(points, of="eleda", expect="falls", **{"from": 5}), "")

    def test_what_the_model_lacks_has_no_ratio(self):
        self.assertEqual(self.beside({"eleda": {64: 1.0}}, of="eleda", over="vanilla"), "")


def modelled_data():
    figure = replace(figure_of("taurus/fig06"), panels={"YCSB": {"workload": "YCSB"}})
    lines = {("YCSB", name): Line({1: [1e6], 2: [2e6]}, {1: [], 2: []}) for name in figure.series}
    found = FigureData(figure, lines, [])
    for name, most in (("silo_r", 4e6), ("taurus_command", 1.2e7)):
        found.modelled.lines["YCSB", name] = ModelledLine("line transfers", {1: 1e6, 2: 2e6, 4: 3e6, 64: most})
    return found


class ShownTest(unittest.TestCase):
    def test_modelled_lines_are_dashed_labelled_and_begin_beyond_what_was_measured(self):
        plot = drawing.draw(modelled_data(), SERIES, "a host")
        self.addCleanup(drawing.plt.close, plot)
        dashed = [line for line in plot.axes[0].get_lines() if line.is_dashed() and line.get_markerfacecolor() == "#ffffff"]
        self.assertEqual([list(line.get_xdata()) for line in dashed], [[4, 64], [4, 64]])
        legend = [text.get_text() for text in plot.axes[-1].get_legend().get_texts()]
        self.assertIn("modelled", legend)
        self.assertEqual(support.clipped_texts(plot), [])

    def test_a_figure_without_a_model_is_drawn_as_ever(self):
        found = modelled_data()
        found.modelled = Modelled(missing=["scripts/line_transfers sweep"])
        plot = drawing.draw(found, SERIES, "a host")
        self.addCleanup(drawing.plt.close, plot)
        self.assertEqual((plot.axes[0].get_xscale(), plot.axes[0].get_yscale()), ("linear", "linear"))
        self.assertNotIn("modelled", [text.get_text() for text in plot.axes[-1].get_legend().get_texts()])

    def test_the_caption_has_the_modelled_ratio_beside_the_papers(self):
        text = modelled.caption_of(modelled_data())
        self.assertEqual(text, "modelled, not measured (thin dashes): line transfers; Taurus command over Silo-R: "
                               "64 threads: 3.00x, beside the paper's 2.8x")
        self.assertEqual(modelled.caption_of(FigureData(figure_of("taurus/fig06"), {}, [])), "")

    def test_every_row_of_a_modelled_point_says_so_and_has_no_median(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "points.csv")
            data.write_csv(modelled_data(), path)
            with open(path, encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
        found = [row for row in rows if row["modelled"]]
        self.assertEqual([(row["series"], row["thread_cnt"], row["modelled"]) for row in found],
                         [("silo_r: modelled", "4", "3e+06"), ("silo_r: modelled", "64", "4e+06"),
                          ("taurus_command: modelled", "4", "3e+06"), ("taurus_command: modelled", "64", "1.2e+07")])
        self.assertEqual({(row["median"], row["low"], row["high"], row["values"]) for row in found}, {("",) * 4})
        self.assertEqual(len(rows) - len(found), 8)

    def test_the_page_shows_it_in_a_column_without_a_verdict(self):
        found = modelled_data()
        verdicts = [claims.judge(found, claim, 2) for claim in found.figure.claims]
        table = figures_page._claims_table(found, verdicts)
        self.assertIn("modelled, no verdict", table)
        self.assertIn("64 threads: 3.00x", table)
        found.modelled = Modelled()
        self.assertNotIn("modelled", figures_page._claims_table(found, verdicts))


class CommandTest(ExpCase):
    def test_a_run_without_the_models_names_what_makes_them_and_goes_on(self):
        status, said = self.exp("run", "taurus/fig06")
        self.assertEqual(status, 0, said)
        self.assertIn("note: taurus/fig06_logging_nvme_occ: no modelled series: the model of line transfers has not been "
                      "compared with this host: scripts/line_transfers validate\n", said)

    def test_model_makes_the_replays_of_a_figures_logs_once(self):
        calls = os.path.join(self.out, "calls")
        dump = os.path.join(self.out, "log_dump")
        with open(dump, "w", encoding="utf-8") as file:
            file.write("#!/usr/bin/env python3\nimport json, sys\n"
                       f"open({calls!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
                       "order = next(w for w in sys.argv if w.startswith('--orders=')).partition('=')[2]\n"
                       f"record = {replay_of('ORDER', 8)!r}\nrecord['orders'][0]['order'] = order\n"
                       "path = next(w for w in sys.argv if w.startswith('--json=')).partition('=')[2]\n"
                       "open(path, 'w').write(json.dumps(record) + '\\n')\n")
        os.chmod(dump, os.stat(dump).st_mode | stat.S_IXUSR)
        with mock.patch.object(replays, "LOG_DUMP", dump):
            for _ in range(2):
                status, said = self.exp("model", "taurus/fig11_ram_disk_recovery")
                self.assertEqual(status, 0, said)
        with open(calls, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 6)
        self.assertTrue(all("--parallelism" in line and "/run-0001" in line for line in lines), lines)
        with open(os.path.join(self.out, modelled.REPLAYS), encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        self.assertEqual((len(rows), {row["modelled"] for row in rows}), (6, {True}))
        self.exp("run", "taurus/fig11_ram_disk_recovery")
        with open(os.path.join(self.results(), "taurus-fig11_ram_disk_recovery.csv"), encoding="utf-8") as file:
            modelled_rows = [row for row in csv.DictReader(file) if row["modelled"]]
        self.assertEqual({row["series"] for row in modelled_rows if row["thread_cnt"] == "64"},
                         {f"{name}: modelled" for name in ("serial_data", "serial_command", "plover", "silo_r",
                                                           "taurus_data", "taurus_command")})

    def test_model_names_the_program_that_is_missing(self):
        with mock.patch.object(replays, "LOG_DUMP", "/nowhere/log_dump"):
            status, said = self.exp("model", "taurus/fig11_ram_disk_recovery")
        self.assertEqual(status, 2)
        self.assertIn("/nowhere/log_dump is missing", said)


class SpecTest(unittest.TestCase):
    def check_refused(self, why, figure, entry):
        with self.assertRaisesRegex(spec.SpecError, why):
            spec._check_modelled(replace(figure_of(figure), modelled=entry), "a file")

    def test_an_entry_that_is_not_understood_is_refused(self):
        entry = {"panels": ["YCSB"], "series": ["none"]}
        self.check_refused("a list of mappings", "taurus/fig06", {"by": "lines"})
        self.check_refused("panels, series, sweep are expected and flags possible", "taurus/fig06", [entry])
        self.check_refused("panels, replay, series are expected$", "taurus/fig08", [{**entry, "sweep": "lines"}])
        self.check_refused("the figure has no Nowhere", "taurus/fig06", [{**entry, "panels": ["Nowhere"], "sweep": "l"}])
        self.check_refused("the figure has no plover", "taurus/fig06", [{**entry, "series": ["plover"], "sweep": "l"}])
        self.check_refused("is for lines over thread_cnt", "taurus/fig14", [{**entry, "sweep": "lines"}])


if __name__ == "__main__":
    unittest.main()
