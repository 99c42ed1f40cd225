"""Figures whose bars are made up of parts: formulas over a record's metrics, sums, gaps, points and plots."""
import csv
import os
import unittest

import support
from exp_case import ExpCase, plan_of
from experiment import data, drawing, formula, spec

NAME = "write_behind/fig20_footprint"
METRICS = {"memory_bytes": 100.0, "index_bytes": 10, "heap": None, "log_bytes": 60, "pad_bytes": 20,
           "checkpoints": {"bytes": 90, "complete": 2}}
PARTS = {"table": 90.0, "index": 10.0, "log": 40.0, "checkpoint": 45.0}


def footprint():
    return spec.select_figures(["write_behind/fig20"], spec.load_series())[0]


def rows_of(plan, *metrics):
    """Of all points the same."""
    return [{"job": job, "recovery": "", "repeat": i, "status": "ok", "step": "run", "place": {},
             "record": {"metrics": one, "environment": {}}} for job in plan.jobs for i, one in enumerate(metrics)]


def collect(*metrics):
    plan = plan_of("write_behind/fig20")
    return data.collect(footprint(), plan, rows_of(plan, *metrics))


class FormulaTest(unittest.TestCase):
    def test_terms_are_added_subtracted_and_divided(self):
        for text, value in (("memory_bytes", 100), ("memory_bytes - index_bytes + log_bytes", 150),
                            ("checkpoints.bytes / checkpoints.complete", 45),
                            ("memory_bytes - checkpoints.bytes / checkpoints.complete - index_bytes", 45)):
            self.assertEqual(formula.evaluate(METRICS, text), value, text)

    def test_what_a_run_did_not_have_counts_nothing(self):
        for text, value in (("heap", 0), ("heap.used_bytes", 0), ("heap.used_bytes / heap.bytes", 0),
                            ("index_bytes + heap.used_bytes", 10), ("", 0)):
            self.assertEqual(formula.evaluate(METRICS, text), value, text)

    def test_without_a_number_there_is_no_value(self):
        metrics = {**METRICS, "none_yet": 0, "text": "5", "yes": True}
        for text in ("other", "index_bytes + other", "memory_bytes.other", "checkpoints.other", "checkpoints", "text",
                     "yes", "index_bytes / none_yet", "none_yet / none_yet", "index_bytes / heap",
                     "index_bytes / other"):
            self.assertIsNone(formula.evaluate(metrics, text), text)
        for metrics in (None, {}):
            self.assertIsNone(formula.evaluate(metrics, "heap.used_bytes"))

    def test_what_is_no_formula_is_told(self):
        for text in ("a", "a.b_c", "a + b", "a / b", "a - b / c + d"):
            self.assertTrue(formula.is_formula(text), text)
        for text in ("", " a", "a +", "a+b", "- a", "a * b", "a / b / c", "(a)", "2", "a b", 5, None, ["a"]):
            self.assertFalse(formula.is_formula(text), text)


class PartsTest(unittest.TestCase):
    def test_a_point_is_the_sum_of_its_parts(self):
        line = collect(METRICS, {**METRICS, "index_bytes": 30}).line("TPC-C", "nvm_wbl")
        x = line.xs()[0]
        self.assertEqual(line.values[x], [185.0, 185.0])
        self.assertEqual({name: part.values[x][0] for name, part in line.parts.items()}, PARTS)
        self.assertEqual(line.parts["index"].values[x], [10, 30])

    def test_a_record_that_lacks_a_part_counts_in_none(self):
        unfinished = {**METRICS, "checkpoints": {"bytes": 0, "complete": 0}}
        found = collect(METRICS, unfinished)
        line = found.line("TPC-C", "nvm_wbl")
        self.assertEqual([len(one.values[line.xs()[0]]) for one in (line, *line.parts.values())], [1] * 5)
        self.assertEqual(found.faults, [])
        gaps = collect(unfinished).faults
        self.assertEqual({str(gap).partition("(")[2] for gap in gaps}, {"no checkpoint in the record)"})
        self.assertEqual(len(gaps), 4)

    def test_there_is_a_bar_for_each_x_and_series_of_which_the_parts_lie_on_each_other(self):
        found = collect(METRICS)
        plot = drawing.draw(found, spec.load_series(), "")
        self.addCleanup(drawing.plt.close, plot)
        bars = plot.axes[0].patches
        at = sorted({bar.get_x() for bar in bars})
        self.assertEqual((len(at), len(bars)), (4, 16))
        for x in at:
            edges = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in bars if bar.get_x() == x]
            self.assertEqual(edges, [(0, 90), (90, 100), (100, 140), (140, 185)])
        ticks = sorted(zip(plot.axes[0].get_xticks(), (one.get_text() for one in plot.axes[0].get_xticklabels())))
        self.assertEqual([text for _, text in ticks], ["NVM-WAL", "\n40,000", "NVM-WBL", "NVM-WAL", "\n120,000",
                                                       "NVM-WBL"])

    def test_a_bar_that_is_missing_leaves_its_place(self):
        found = collect(METRICS)
        whole, _ = drawing._bars_of_parts(found, "TPC-C", spec.load_series())
        line = found.line("TPC-C", "nvm_wbl")
        for one in (line, *line.parts.values()):
            one.values[line.xs()[0]] = []
        bars, _ = drawing._bars_of_parts(found, "TPC-C", spec.load_series())
        self.assertEqual([bar.at for bar in bars], [bar.at for bar in whole if bar != whole[1]])

    def test_nothing_is_clipped(self):
        found = collect({**METRICS, "memory_bytes": 4e9})
        for panel in footprint().panels:
            plot = drawing.draw_column(found, spec.load_series(), panel, "a host; " * 20)
            self.assertFalse(support.clipped_texts(plot), panel)
            drawing.plt.close(plot)


class FootprintTest(ExpCase):
    def test_points_of_the_parts_stand_below_their_sum(self):
        status, said = self.exp("run", NAME)
        self.assertEqual(status, 0, said)
        with open(os.path.join(self.results(), NAME.replace("/", "-") + ".csv"), encoding="utf-8") as file:
            points = [point for point in csv.DictReader(file) if (point["panel"], point["transactions"]) ==
                      ("TPC-C", "40000")]
        of_series = {point["series"]: float(point["median"]) for point in points}
        for series in footprint().series:
            parts = [f"{series}: {name}" for name in PARTS]
            self.assertEqual(sum(of_series[name] for name in parts), of_series[series], series)
        self.assertEqual([point["series"] for point in points][:5],
                         ["nvm_wal_checkpoints", *(f"nvm_wal_checkpoints: {name}" for name in PARTS)])
        self.assertEqual((of_series["nvm_wbl: log"], of_series["nvm_wbl: checkpoint"]), (0, 0))
        self.assertIn(f"{NAME}: the same (31 % less) on TPC-C: paper 1.45x, ours ", said)

    def test_write_ahead_logging_takes_checkpoints_and_keeps_its_log(self):
        plan = plan_of(NAME)
        for point in plan.points[NAME]:
            flags = plan.jobs[point.job].flags
            self.assertEqual(flags["log"], "LOG_WBL" if point.series == "nvm_wbl" else "LOG_SERIAL")
            wanted = (None, None) if point.series == "nvm_wbl" else ("10ms", 0)
            self.assertEqual((flags.get("checkpoint_interval"), flags.get("log_truncation")), wanted)


if __name__ == "__main__":
    unittest.main()
