"""The papers' claims: ratios, directions and shares, medians and intervals, and what decides nothing."""
import unittest

import support  # where the scripts are
from experiment import claims, data, drawing, spec, stats
from experiment.data import FigureData, Line


class SharesTest(unittest.TestCase):
    def test_bars_are_made_up_of_the_parts(self):
        figure = spec.select_figures(["taurus/fig15"], spec.load_series())[0]
        panel = next(iter(figure.panels))
        lines = {(panel, part): Line({2: [share]}) for part, share in (("work", 0.25), ("rest", 0.75))}
        plot = drawing.draw(FigureData(figure, lines, []), spec.load_series(), "")
        tops = sorted(bar.get_y() + bar.get_height() for bar in plot.axes[0].patches)
        self.assertEqual(tops[0], 25.0)
        self.assertEqual(tops[-1], 100.0)
        drawing.plt.close(plot)

    def test_a_panel_has_a_file_of_its_own_in_which_nothing_is_clipped(self):
        for figure in spec.select_figures(["taurus/fig15", "taurus/fig13", "eleda/fig08"], spec.load_series()):
            lines = {(panel, name): Line({1: [2e6], 2: [3e4]}) for panel in figure.panels for name in figure.series}
            for panel in figure.panels:
                plot = drawing.draw_column(FigureData(figure, lines, []), spec.load_series(), panel, "a host; " * 20)
                self.assertFalse(support.clipped_texts(plot), f"{figure.name}, {panel}")
                drawing.plt.close(plot)

    def test_a_share_is_nowhere_larger(self):
        for largest, verdict in ((0.04, claims.HOLDS), (0.06, claims.CONTRADICTED)):
            found = figure_data({"taurus_data": {2: [0.01], 20: [largest]}})
            judged = claims.judge(found, {"claim": "c", "of": "taurus_data", "below": 0.05}, 2)
            self.assertEqual(judged.verdict, verdict)
            self.assertIn(f"{100 * largest:.1f} %", judged.ours)


def figure_data(lines):
    """Of {series: {x: values}} in the panels of figure 14."""
    figure = spec.select_figures(["taurus/fig14"], spec.load_series())[0]
    return FigureData(figure, {("YCSB", name): Line(values) for name, values in lines.items()}, [])


def point_rows(count, name="acknowledged_txns"):
    return [{"record": {"metrics": {name: count}}}]


class VerdictTest(unittest.TestCase):
    def verdict(self, lines, cores=2, **claim):
        return claims.judge(figure_data(lines), {"claim": "c", **claim}, cores)

    def judge(self, lines, cores=2, **claim):
        return self.verdict(lines, cores, **claim).verdict

    def test_ratios(self):
        for ours, paper, verdict in ((9.5, 9.9, claims.HOLDS), (2.0, 9.9, claims.SHAPE),
                                     (0.5, 9.9, claims.CONTRADICTED), (1.1, 9.9, claims.UNKNOWN)):
            lines = {"taurus_data": {2: [ours]}, "none": {2: [1.0]}}
            self.assertEqual(self.judge(lines, of="taurus_data", over="none", paper=paper), verdict, ours)

    def test_a_loss_is_to_be_no_larger_than_there(self):
        for ours, verdict in ((0.9, claims.HOLDS), (0.85, claims.HOLDS), (0.14, claims.CONTRADICTED)):
            lines = {"taurus_data": {2: [ours]}, "none": {2: [1.0]}}
            self.assertEqual(self.judge(lines, of="taurus_data", over="none", paper=0.88), verdict, ours)

    def test_the_largest_ratio_counts_unless_the_last_is_asked_for(self):
        lines = {"taurus_data": {2: [4.0], 20: [0.5]}, "none": {2: [1.0], 20: [1.0]}}
        self.assertEqual(self.judge(lines, of="taurus_data", over="none"), claims.HOLDS)
        self.assertEqual(self.judge(lines, of="taurus_data", over="none", at="last"), claims.CONTRADICTED)

    def test_an_interval_that_holds_one_decides_nothing(self):
        lines = {"taurus_data": {2: [1, 2, 3, 4, 5, 6]}, "none": {2: [1, 2, 3, 4, 5, 5]}}
        self.assertEqual(self.judge(lines, of="taurus_data", over="none", paper=2.0), claims.UNKNOWN)

    def test_lines_rise_and_fall(self):
        lines = {"taurus_data": {2: [4.0], 2000: [1.0]}}
        ends = {"of": "taurus_data", "from": 2, "to": 2000}
        self.assertEqual(self.judge(lines, **ends, expect="falls"), claims.HOLDS)
        self.assertEqual(self.judge(lines, **ends, expect="rises"), claims.CONTRADICTED)

    def test_what_needs_more_cores_is_not_judged(self):
        lines = {"taurus_data": {2: [4.0]}, "none": {2: [1.0]}}
        self.assertEqual(self.judge(lines, of="taurus_data", over="none", needs_cores=8), claims.UNKNOWN)

    def test_without_figures_nothing_is_claimed(self):
        self.assertEqual(self.judge({}, of="taurus_data", over="none"), claims.UNKNOWN)

    def test_one_run_decides_less_than_six(self):
        for repeats, verdict in ((1, claims.UNKNOWN), (6, claims.HOLDS)):
            lines = {"taurus_data": {2: [1.1] * repeats}, "none": {2: [1.0] * repeats}}
            self.assertEqual(self.judge(lines, of="taurus_data", over="none"), verdict, repeats)

    def test_a_verdict_on_fewer_than_three_runs_is_indicative(self):
        for runs, text in ((1, "holds, indicative (one run a point)"), (2, "holds, indicative (2 runs a point)"),
                           (3, "holds")):
            lines = {"taurus_data": {2: [4.0] * 3}, "none": {2: [1.0] * runs}}
            self.assertEqual(self.verdict(lines, of="taurus_data", over="none").text, text)

    def test_what_is_not_measurable_is_not_indicative(self):
        lines = {"taurus_data": {2: [1.01]}, "none": {2: [1.0]}}
        self.assertEqual(self.verdict(lines, of="taurus_data", over="none").text, claims.UNKNOWN)

    def test_a_verdict_that_single_runs_turn_round_is_at_the_edge(self):
        lines = {"taurus_data": {2: [1.0, 1.5, 2.0]}, "none": {2: [1.0, 1.0, 1.3]}}
        found = self.verdict(lines, of="taurus_data", over="none")
        self.assertEqual(found.verdict, claims.HOLDS)
        self.assertIn("1.50x, 0.77 to 2.00", found.ours)
        self.assertEqual(found.why, "at the edge: within these runs it could also be 'contradicted'")
        lines["taurus_data"] = {2: [1.6, 1.7, 2.0]}
        self.assertEqual(self.verdict(lines, of="taurus_data", over="none").why, "")

    def test_an_interval_that_holds_the_papers_ratio_is_at_the_edge(self):
        lines = {"taurus_data": {2: [8.5, 8.5, 8.5, 9.5, 9.5, 9.5]}, "none": {2: [1.0] * 6}}
        found = self.verdict(lines, of="taurus_data", over="none", paper=10)
        self.assertEqual(found.verdict, claims.HOLDS)
        lines["taurus_data"] = {2: [6.0, 6.0, 7.0, 9.5, 9.5, 9.5]}
        found = self.verdict(lines, of="taurus_data", over="none", paper=10)
        self.assertIn("at the edge: within the interval it could also be 'same shape'", found.why)

    def test_a_change_and_a_share_may_be_at_the_edge(self):
        lines = {"taurus_data": {2: [4.0, 1.0, 3.0], 2000: [2.0, 1.0, 3.5]}}
        found = self.verdict(lines, of="taurus_data", expect="falls")
        self.assertIn("at the edge", found.why)
        found = self.verdict({"taurus_data": {2: [0.01, 0.04, 0.06]}}, of="taurus_data", below=0.05)
        self.assertEqual((found.verdict, found.why), (claims.HOLDS, "at the edge: single runs lie on the other side"))

    def test_the_other_figure_counts_as_well(self):
        claim = {"claim": "c", "of": "taurus_command", "over": "taurus_data", "at": "last",
                 "than": {"figure": "other", "panel": "YCSB"}}
        mine = figure_data({"taurus_command": {2: [2.0] * 3}, "taurus_data": {2: [1.0] * 3}})
        other = figure_data({"taurus_command": {2: [4.0]}, "taurus_data": {2: [1.0]}})
        found = claims.judge(mine, claim, 2, {"other": other})
        self.assertEqual(found.text, "holds, indicative (one run a point)")

    def test_equal_within_the_scatter(self):
        for ours, verdict in ((1.08, claims.HOLDS), (1.25, claims.UNKNOWN), (1.5, claims.CONTRADICTED)):
            lines = {"taurus_data": {2: [1.0], 20: [ours]}, "none": {2: [1.0], 20: [1.0]}}
            self.assertEqual(self.judge(lines, of="taurus_data", over="none", at="last", paper=1), verdict, ours)
            self.assertEqual(self.judge(lines, of="taurus_data", expect="flat"), verdict, ours)

    def test_the_last_point_is_that_of_the_plan(self):
        lines = {"taurus_data": {2: [4.0], 20: []}, "none": {2: [1.0], 20: [1.0]}}
        self.assertEqual(self.judge(lines, of="taurus_data", over="none", at="last"), claims.UNKNOWN)
        self.assertEqual(self.judge(lines, of="taurus_data", over="none", at="first"), claims.HOLDS)
        self.assertEqual(self.judge(lines, of="taurus_data", **{"from": 2, "to": 20}, expect="falls"), claims.UNKNOWN)

    def test_a_point_that_is_missing_may_be_the_one_that_shows_it(self):
        lines = {"taurus_data": {2: [0.5], 20: []}, "none": {2: [1.0], 20: [1.0]}}
        self.assertEqual(self.judge(lines, of="taurus_data", over="none"), claims.UNKNOWN)

    def test_a_share_of_which_points_are_missing_does_not_hold(self):
        for first, verdict in ((0.01, claims.UNKNOWN), (0.06, claims.CONTRADICTED)):
            self.assertEqual(self.judge({"taurus_data": {2: [first], 20: []}}, of="taurus_data", below=0.05), verdict)

    def test_a_run_that_stalled_has_no_rate(self):
        for name in ("acknowledged_txns", "recovered_txns"):
            stalled = Line({2: [1.0], 20: [100.0]}, {2: point_rows(1, name), 20: point_rows(10**6, name)})
            found = figure_data({"taurus_data": {2: [300.0], 20: [200.0]}})
            found.lines["YCSB", "none"] = stalled
            claim = {"claim": "c", "of": "taurus_data", "over": "none"}
            self.assertTrue(claims.judge(found, claim, 2).ours.startswith("2.00x"))
            judged = claims.judge(found, {**claim, "at": "first"}, 2)
            self.assertEqual((judged.verdict, judged.why),
                             (claims.UNKNOWN,
                              "none did only 1 transactions (accesses per transaction 2), which is no rate"))
            self.assertEqual(claims.judge(found, {**claim, "at": "first", "least_txns": 1}, 2).verdict, claims.HOLDS)

    def test_of_several_baselines_the_fastest_counts(self):
        lines = {"taurus_data": {2: [4.0]}, "none": {2: [1.0]}, "taurus_command": {2: [2.0]}}
        judged = self.verdict(lines, of="taurus_data", over=["none", "taurus_command"])
        self.assertEqual(judged.ours, "2.00x (accesses per transaction 2, over taurus_command)")

    def test_peaks_may_lie_at_different_points(self):
        lines = {"taurus_data": {2: [1.0], 20: [6.0]}, "none": {2: [2.0], 20: [1.0]}}
        self.assertTrue(self.verdict(lines, of="taurus_data", over="none", at="peaks").ours.startswith("3.00x"))

    def test_what_was_found_is_the_reason_where_a_claim_does_not_hold(self):
        where = "found on 2 cores at scale smoke, --devices throughput"
        for ours, why in ((9.5, ""), (2.0, f"it is ahead here too, by less; {where}: small host")):
            lines = {"taurus_data": {2: [ours]}, "none": {2: [1.0]}}
            judged = self.verdict(lines, of="taurus_data", over="none", paper=9.9, found="small host")
            self.assertEqual(judged.why, why)

    def test_what_was_found_on_a_small_host_is_told_of_no_larger_one_and_of_nothing_that_was_not_judged(self):
        for ours, cores, told in ((2.0, 2, True), (0.5, 2, True), (2.0, 3, False), (1.0, 2, False), (9.5, 2, False)):
            lines = {"taurus_data": {2: [ours]}, "none": {2: [1.0]}}
            judged = self.verdict(lines, cores, of="taurus_data", over="none", paper=9.9, found="small host")
            self.assertEqual("small host" in judged.why, told, (ours, cores))
        judged = self.verdict({}, of="taurus_data", over="none", found="small host")
        self.assertEqual(judged.why, "no figures for it here")

    def test_a_claim_that_names_a_point_is_judged_there_alone(self):
        lines = {"taurus_data": {2: [4.0], 20: [1.0]}, "none": {2: [1.0], 20: [2.0]}}
        self.assertEqual(self.judge(lines, of="taurus_data", over="none", at=2), claims.HOLDS)
        self.assertEqual(self.judge(lines, of="taurus_data", over="none", at=20), claims.CONTRADICTED)
        for claim in ({"over": "none", "at": 32}, {"expect": "falls", "from": 32}, {"expect": "falls", "to": 32},
                      {"above": 0.5, "at": 32}):
            judged = self.verdict(lines, of="taurus_data", **claim)
            self.assertEqual((judged.verdict, judged.why),
                             (claims.UNKNOWN, "accesses per transaction 32 is no point of this plan"), claim)
        self.assertIn("one point alone", self.verdict(lines, of="taurus_data", expect="falls", **{"from": 20}).why)

    def test_the_baseline_may_have_a_point_of_its_own(self):
        lines = {"taurus_data": {2: [4.0], 20: [9.0]}, "none": {2: [1.0], 20: [8.0]}}
        for point, ours in (({"over_at": 2}, "9.00x (accesses per transaction 20 over 2)"),
                            ({"over_at": "first"}, "9.00x (accesses per transaction 20 over 2)"),
                            ({"over_at": "last"}, "1.12x (accesses per transaction 20)"),
                            ({}, "1.12x (accesses per transaction 20)")):
            self.assertEqual(self.verdict(lines, of="taurus_data", over="none", at="last", **point).ours, ours)
        judged = self.verdict(lines, of="taurus_data", over="none", at="last", over_at=32)
        self.assertEqual(judged.why, "accesses per transaction 32 is no point of this plan")
        lines["none"] = {2: [], 20: [8.0]}
        judged = self.verdict(lines, of="taurus_data", over="none", at="last", over_at=2)
        self.assertEqual(judged.why, "none has no figure (accesses per transaction 2)")
        alone = {"taurus_data": {2: [4.0]}}
        self.assertEqual(self.judge(alone, of="taurus_data", over="none", at=2, over_at=2), claims.UNKNOWN)

    def test_the_inverse_of_the_length_is_more_than_a_fall(self):
        for last, verdict in ((0.9, claims.HOLDS), (2.4, claims.CONTRADICTED), (2.1, claims.UNKNOWN),
                              (0.4, claims.CONTRADICTED)):
            judged = self.verdict({"taurus_data": {2: [10.0], 20: [last]}}, of="taurus_data", expect="inverse")
            self.assertEqual(judged.verdict, verdict, last)
        self.assertEqual(judged.ours, "the product differs by 2.50x (YCSB, accesses per transaction 2 and 20)")
        for values in ([], [0.0]):
            self.assertEqual(self.judge({"taurus_data": {2: [1.0], 20: values}}, of="taurus_data", expect="inverse"),
                             claims.UNKNOWN)
        for x in (0, "none"):
            judged = self.verdict({"taurus_data": {x: [1.0], 20: [1.0]}}, of="taurus_data", expect="inverse")
            self.assertEqual(judged.why, "accesses per transaction is no number above 0 everywhere")

    def test_of_panels_one_that_is_not_inverse_is_not_hidden_by_one_that_scatters_more(self):
        figure = spec.select_figures(["taurus/fig05_logging"], spec.load_series())[0]
        claim = {"claim": "c", "of": "plover", "expect": "inverse", "panels": ["YCSB", "Payment"]}
        for scatter, verdict in (((0.5, 0.001), claims.CONTRADICTED), ((0.5, 0.5), claims.UNKNOWN)):
            lines = {}
            for panel, middle, width in zip(claim["panels"], (2.3, 2.25), scatter):
                last = [middle * (1 + width * offset) for offset in (-1, -0.5, -0.1, 0.1, 0.5, 1)]
                lines[panel, "plover"] = Line({1: [10.0] * 6, 10: last})
            self.assertEqual(claims.judge(FigureData(figure, lines, []), claim, 2).verdict, verdict)

    def test_a_product_that_scatters_about_the_limit_decides_nothing(self):
        for scatter, verdict in ((0.01, claims.CONTRADICTED), (0.5, claims.UNKNOWN)):
            last = [2.4 * (1 + scatter * offset) for offset in (-1, -0.5, -0.1, 0.1, 0.5, 1)]
            self.assertEqual(self.judge({"taurus_data": {2: [10.0] * 6, 20: last}}, of="taurus_data",
                                        expect="inverse"), verdict, scatter)

    def test_a_rise_is_held_against_the_papers(self):
        for last, verdict in ((6.5, claims.HOLDS), (2.0, claims.SHAPE), (0.5, claims.CONTRADICTED)):
            lines = {"taurus_data": {2: [1.0], 20: [last]}}
            self.assertEqual(self.judge(lines, of="taurus_data", expect="rises", paper=6.8), verdict, last)

    def test_a_share_is_larger_where_it_is_asked_for(self):
        for first, verdict in ((0.6, claims.HOLDS), (0.4, claims.CONTRADICTED)):
            judged = self.verdict({"taurus_data": {2: [first], 20: [0.1]}}, of="taurus_data", above=0.5, at="first")
            self.assertEqual(judged.verdict, verdict, first)
            self.assertEqual(judged.ours, f"{100 * first:.1f} % at least (accesses per transaction 2)")
        self.assertEqual(self.judge({"taurus_data": {2: [0.6], 20: [0.1]}}, of="taurus_data", above=0.5),
                         claims.CONTRADICTED)


class PanelsTest(unittest.TestCase):
    """Of figure 9, where data and commands have panels of their own."""

    def figure_data(self, lines):
        figure = spec.select_figures(["taurus/fig09"], spec.load_series())[0]
        return FigureData(figure, {key: Line(values) for key, values in lines.items()}, [])

    def test_a_ratio_takes_its_lines_from_panels_of_the_same_flags(self):
        found = self.figure_data({("YCSB, command", "taurus_command"): {2: [9.0]}, ("YCSB, data", "silo_r"): {2: [1.0]},
                                  ("Payment, data", "silo_r"): {2: [5.0]}})
        claim = {"claim": "c", "of": "taurus_command", "over": "silo_r", "panels": ["YCSB, command"]}
        self.assertTrue(claims.judge(found, claim, 2).ours.startswith("9.00x"))

    def test_of_panels_the_least_convincing_counts_at_a_point(self):
        lines = {(f"{panel}, data", "plover"): {2: [1.0]} for panel in ("YCSB", "Payment")}
        found = self.figure_data({**lines, ("YCSB, data", "silo_r"): {2: [2.0]},
                                  ("Payment, data", "silo_r"): {2: [0.5]}})
        claim = {"claim": "c", "of": "silo_r", "over": "plover", "panels": ["YCSB, data", "Payment, data"]}
        self.assertEqual(claims.judge(found, claim, 2).verdict, claims.HOLDS)
        self.assertEqual(claims.judge(found, {**claim, "at": "last"}, 2).verdict, claims.CONTRADICTED)

    def test_an_advantage_is_compared_with_that_of_another_figure(self):
        there = self.figure_data({("YCSB, command", "taurus_command"): {2: [6.0]},
                                  ("YCSB, data", "taurus_data"): {2: [1.0]}})
        claim = {"claim": "c", "of": "taurus_command", "over": "taurus_data", "at": "last",
                 "than": {"figure": "taurus/fig09_logging_hdd", "panel": "YCSB, command"}}
        for here, verdict in ((2.0, claims.HOLDS), (6.5, claims.UNKNOWN), (9.0, claims.CONTRADICTED)):
            found = figure_data({"taurus_command": {2: [here]}, "taurus_data": {2: [1.0]}})
            judged = claims.judge(found, claim, 2, {there.figure.name: there})
            self.assertEqual(judged.verdict, verdict, judged)
        judged = claims.judge(found, claim, 2)
        self.assertEqual(judged.verdict, claims.UNKNOWN)
        self.assertIn("taurus/fig09_logging_hdd", judged.why)


class IntervalTest(unittest.TestCase):
    def test_there_is_none_below_six_repeats(self):
        self.assertIsNone(stats.interval_of([1.0] * 5))

    def test_it_holds_the_median_and_lies_within_the_values(self):
        values = [3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 7.0]
        low, high = stats.interval_of(values)
        self.assertTrue(1.0 <= low <= 4.0 <= high <= 7.0)

    def test_a_distribution_ends_at_one(self):
        histograms = ([[1000, 1], [2000, 3]], [[2000, 4]])
        rows = [{"record": {"latency_histogram": histogram}} for histogram in histograms]
        self.assertEqual(data.latency_cdf(rows), [(1.0, 0.125), (2.0, 1.0)])


if __name__ == "__main__":
    unittest.main()
