"""Figures of several masters: their command lines, times and captions, and series that are measures of one run."""
import dataclasses
import os
import re
import unittest

import support
from exp_case import HOST, ExpCase, plan_of
from experiment import captions, claims, data, drawing, planning, running, spec

MESSAGES, ROW_LOCKS = "taurus_mm/fig09_lock_messages", "taurus_mm/fig09_row_locks"
LOG, MASTERS = "taurus_mm/appendix_a_log_bytes", "taurus_mm/fig07_real_masters"


def plan_here(*names):
    """The plan of ExpCase.exp, whose runs are shorter."""
    series, scale = spec.load_series(), spec.load_scale("smoke")
    return planning.make_plan(spec.select_figures(list(names), series), series, dataclasses.replace(scale, seconds=0.01),
                              HOST)


def figure_of(name):
    return spec.select_figures([name], spec.load_series())[0]


def clusters_switches():
    """Those that the engine honours with --masters."""
    with open(os.path.join(spec.REPOSITORY, "system", "command_line", "parse_cluster.cpp"), encoding="utf-8") as file:
        return set(re.findall(r'"(\w+)"', file.read().partition("kOfClusters = {")[2].partition("};")[0]))


class PlanTest(unittest.TestCase):
    def test_the_engine_takes_all_that_a_cluster_is_given(self):
        for scale in ("smoke", "laptop", "paper"):
            for job in plan_of("taurus_mm", scale=scale).jobs.values():
                self.assertLessEqual(set(job.flags), clusters_switches())

    def test_a_cluster_has_one_directory_on_a_device_as_it_is(self):
        for job in plan_of("taurus_mm").jobs.values():
            self.assertTrue(job.is_cluster and job.logs)
            self.assertEqual((job.place.kind, job.place.device, job.place.directories), ("ram", "", 1))

    def test_series_that_are_measures_of_one_run_share_it(self):
        plan = plan_of(MESSAGES, ROW_LOCKS)
        self.assertEqual(len(plan.jobs), 3)
        self.assertEqual([len(points) for points in plan.points.values()], [9, 9])

    def test_the_warm_up_and_the_start_of_the_processes_take_time(self):
        plan = plan_of(MESSAGES)
        for job in plan.jobs.values():
            alone = planning.Job({"log": "LOG_NO"}, job.place, job.seconds).expected_seconds()
            self.assertAlmostEqual(job.expected_seconds() - alone, planning.CLUSTER_OVERHEAD_SECONDS + 3)
            self.assertAlmostEqual(job.log_bytes(), planning.CLUSTER_LOG_BYTES_PER_SECOND * (job.seconds + 3))

    def test_a_step_is_described_by_its_masters(self):
        said = {running.describe(job) for job in plan_of(MESSAGES).jobs.values()}
        self.assertEqual(said, {f"SYSBENCH 4 masters -t2 sharing={x} sysbench_mix=READ_WRITE" for x in (0, 50, 100)})

    def test_what_clusters_cannot_be_is_refused(self):
        series, figure = spec.load_series(), figure_of(MASTERS)
        for change, why in (({"device": "nvme"}, "one directory .*, on a device as it is"),
                            ({"series": ("sharing_0", "taurus_data")}, "one directory"),
                            ({"step": "recover"}, "several masters are runs of rundb-all"),
                            ({"program": "rundb-timed"}, "several masters are runs of rundb-all")):
            with self.assertRaisesRegex(spec.SpecError, f"here: several masters.*{why.split('masters ')[-1]}"):
                spec._check_clusters(dataclasses.replace(figure, **change), "here", series)


class MeasureTest(unittest.TestCase):
    def test_a_part_that_a_series_lacks_is_none_of_it(self):
        parts = figure_of(MESSAGES).y.parts_of("hybrid")
        self.assertEqual(parts, {"page_lock_messages": "page_lock_messages_per_txn", "row_lock_messages": "",
                                 "first_row_lock_messages": ""})
        self.assertEqual(figure_of(ROW_LOCKS).y.metric_of("glm_keep"), "row_locks_kept_messages_per_txn")

    def test_measures_are_of_series_that_are_drawn(self):
        series, figure = spec.load_series(), figure_of(ROW_LOCKS)
        for metric, why in (({"hybrid": "a"}, "one for each series"),
                            ({name: "a" for name in (*figure.series, "none")}, "the figure has no series none")):
            changed = dataclasses.replace(figure, y=dataclasses.replace(figure.y, metric=metric))
            with self.assertRaisesRegex(spec.SpecError, f"here: y: metric: {why}"):
                spec._check_measure(changed, "here", series)
        figure = figure_of(MESSAGES)
        for part, why in (({"none": "a"}, "the figure has no series none"), ({"hybrid": "a * b"}, "names with")):
            changed = dataclasses.replace(figure, y=dataclasses.replace(figure.y, parts={"row_lock_messages": part}))
            with self.assertRaisesRegex(spec.SpecError, f"here: y: row_lock_messages: {why}"):
                spec._check_measure(changed, "here", series)


class RunTest(ExpCase):
    def test_bars_of_one_run_are_its_measures(self):
        status, said = self.exp("run", MESSAGES, ROW_LOCKS)
        self.assertEqual(status, 0, said)
        self.assertEqual(self.lines(), 3)
        for row in self.rows():
            self.assertIn("--masters=4", row["command"])
            self.assertIn("--log_dir=", row["command"])
            self.assertNotRegex(row["command"], "--cc|--log=|--log_limit|--num_logger|--log_device")
        self.assertIn("with nothing shared, hybrid locks send none after the warm-up: paper none, ours 0", said)
        self.assertIn("at 100 %, hybrid locks against row locks kept alone: paper 1.33x, ours 2.08x", said)
        found = data.collect(figure_of(MESSAGES), plan_here(MESSAGES), self.rows())
        panel = next(iter(found.figure.panels))
        self.assertEqual({name: found.line(panel, name).values[50] for name in found.figure.series},
                         {"hybrid": [25.0], "glm_keep": [79.0], "glm_release": [825.0]})
        self.assertEqual(found.line(panel, "glm_keep").parts["first_row_lock_messages"].values[50], [4.0])

    def test_the_caption_names_the_network_and_the_shared_cores(self):
        self.exp("run", LOG)
        found = data.collect(figure_of(LOG), plan_here(LOG), self.rows())
        caption = captions.caption_of(found, spec.load_series())
        self.assertIn("RAM disk", caption)
        self.assertIn("network: TCP, loopback", caption)
        self.assertIn("all masters share this host's cores in all runs", caption)
        for panel in found.figure.panels:
            plot = drawing.draw_column(found, spec.load_series(), panel, caption)
            self.assertFalse(support.clipped_texts(plot), panel)
            drawing.plt.close(plot)

    def test_each_bar_has_its_label_and_x_stands_below_the_one_in_the_middle(self):
        self.exp("run", MESSAGES)
        found = data.collect(figure_of(MESSAGES), plan_here(MESSAGES), self.rows())
        plot = drawing.draw(found, spec.load_series(), "")
        self.addCleanup(drawing.plt.close, plot)
        texts = [one.get_text() for one in plot.axes[0].get_xticklabels()]
        self.assertEqual(texts[:3], ["hybrid\nlocks", "rows\nkept\n\n0", "rows\nreleased"])
        self.assertEqual(len(texts), 9)

    def test_what_was_not_counted_is_a_gap(self):
        self.exp("run", ROW_LOCKS)

        def forget(row):
            row["record"]["metrics"]["row_locks_kept_messages_per_txn"] = None
        self.change_rows(forget)
        found = data.collect(figure_of(ROW_LOCKS), plan_here(ROW_LOCKS), self.rows())
        self.assertEqual({gap.series for gap in found.faults}, {"glm_keep"})


class LimitTest(unittest.TestCase):
    def judge(self, values, limit=0.5):
        figure = figure_of(ROW_LOCKS)
        panel = next(iter(figure.panels))
        line = data.Line({0: values, 50: [9.0], 100: [9.0]}, {x: [] for x in (0, 50, 100)})
        claim = {"claim": "c", "of": "hybrid", "at_most": limit, "at": 0}
        return claims.judge(data.FigureData(figure, {(panel, "hybrid"): line}, []), claim, 2)

    def test_the_median_is_held_against_the_limit(self):
        for values, verdict in (([0.1, 0.2, 0.1], claims.HOLDS), ([0.5], claims.HOLDS), ([0.6], claims.CONTRADICTED),
                                ([], claims.UNKNOWN)):
            self.assertEqual(self.judge(values).verdict, verdict, values)

    def test_single_runs_on_the_other_side_are_told(self):
        self.assertIn("at the edge", self.judge([0.1, 0.2, 0.9]).why)
        self.assertNotIn("at the edge", self.judge([0.1, 0.2, 0.3]).why)


if __name__ == "__main__":
    unittest.main()
