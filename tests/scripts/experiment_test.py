"""Experiments run: resumed runs, ceilings, captions, benchmarks, rows, the page."""
import contextlib
import csv
import io
import json
import os
import tempfile
import unittest
from unittest import mock

import support
import exp
from exp_case import ExpCase, plan_of
from experiment import captions, ceiling, data, drawing, figures_page, origin, page, planning, records, running, spec
from experiment.data import FigureData, Line
from experiment.results import require_programs


class RunTest(ExpCase):
    def test_a_run_leaves_points_plots_and_a_page_and_deletes_its_logs(self):
        status, said = self.exp("run", "taurus/fig14", draw=True)
        self.assertEqual(status, 0, said)
        self.assertEqual({row["status"] for row in self.rows()}, {"ok"})
        there = set(os.listdir(self.results()))
        self.assertLessEqual({"taurus-fig14_transaction_length.csv", "report.html", "plots"}, there)
        self.assertEqual([name for name in os.listdir(self.out) if name.startswith(running.WORK_PREFIX)], [])

    def test_runs_end_by_their_transactions_and_series_have_figures_of_their_own(self):
        status, said = self.exp("run", "differential/fig06")
        self.assertEqual(status, 0, said)
        runs = [row["command"] for row in self.rows() if row["step"] == "run"]
        self.assertTrue(all("--max_txns_per_thread=15000" in run and "--seconds" not in run for run in runs), runs)
        self.assertFalse(any("--log_device" in run for run in runs))
        recoveries = [row["command"] for row in self.rows() if row["step"] == "recover"]
        self.assertTrue(all("--log_device=disk29,channel=160000000" in one for one in recoveries), recoveries)
        with open(os.path.join(self.results(), "differential-fig06_breakdown.csv"), encoding="utf-8") as file:
            medians = {point["series"]: float(point["median"]) for point in csv.DictReader(file)}
        self.assertEqual(medians, {"pl2p": 1.5, "pl2p_lr": 0.5, "pl2p_lp": 1.0, "dl1p": 1.5, "dl1p_lr": 0.5,
                                   "dl1p_lp": 1.0})

    def test_what_is_there_is_not_run_again_and_what_failed_is(self):
        with mock.patch.dict(os.environ, {"FAKE_FAIL": "recover"}):
            status, said = self.exp("run", "taurus/fig11_ram_disk_recovery")
        self.assertEqual(status, 1)
        self.assertIn("pretended failure of recover", said)
        self.assertEqual({row["status"] for row in self.rows() if row["step"] == "recover"}, {"failed"})
        self.assertEqual(self.exp("run", "taurus/fig11_ram_disk_recovery")[0], 0)
        self.assertEqual({row["status"] for row in self.rows()}, {"ok"})
        lines = self.lines()
        self.exp("run", "taurus/fig11_ram_disk_recovery")
        self.assertEqual(self.lines(), lines)

    def test_an_instruction_that_the_processor_lacks_is_skipped_and_said(self):
        with mock.patch.dict(os.environ, {"FAKE_LACKS": "CLWB"}):
            status, said = self.exp("run", "write_behind/fig22")
        self.assertEqual(status, 0, said)
        self.assertIn("skipped: this processor has no CLWB", said)
        self.assertEqual({row["status"] for row in self.rows() if "--flush=CLWB" in row["command"]}, {"skipped"})
        self.assertIn("series wbl_clwb: nothing at 0.1, 0.5, 0.9 (this processor has no CLWB; doctor names the "
                      "instructions that it has)", self.page())
        self.assertIn("wbl_clwb has no figure", self.page())

    def test_a_recovery_that_fails_leaves_the_others_their_figures(self):
        with mock.patch.dict(os.environ, {"FAKE_FAIL": "recover of 1"}):
            status, said = self.exp("run", "taurus/fig11_ram_disk_recovery")
        self.assertEqual(status, 1)
        told = {row["status"]: row["command"] for row in self.rows() if row["step"] == "recover"}
        self.assertIn("--thread_cnt=1", told["failed"])
        self.assertIn("--thread_cnt=2", told["ok"])

    def test_recoveries_of_a_run_that_failed_are_failures_too_and_the_page_tells_of_the_run_alone(self):
        with mock.patch.dict(os.environ, {"FAKE_FAIL": "run"}):
            self.assertEqual(self.exp("run", "taurus/fig11_ram_disk_recovery")[0], 1)
        self.assertEqual({row["why"] for row in self.rows() if row["step"] == "recover"}, {"the run failed"})
        runs = {row["job"] for row in self.rows() if row["step"] == "run"}
        self.assertEqual(self.page().count("pretended failure of run"), len(runs))

    def test_other_seconds_are_another_run(self):
        self.exp("run", "eleda/fig20")
        self.assertEqual(self.exp("run", "eleda/fig20", seconds=0.02)[0], 0)
        self.assertEqual(self.lines(), 4)
        self.assertIn("; 2 rows that were made with other settings are left out</p>", self.page())

    def test_what_another_build_did_is_run_again_and_said(self):
        self.exp("run", "eleda/fig20")
        self.change_rows(lambda row: row.update(build="of another"))
        said = self.exp("run", "eleda/fig20")[1]
        self.assertIn("2 steps of another build (0123abc; this one is 0123abc) are run again\n", said)
        self.assertEqual(self.lines(), 4)
        self.assertEqual({row["build"] for row in self.rows()}, {origin.digest(support.FAKE_RUNDB)})
        self.assertNotIn("again", self.exp("run", "eleda/fig20")[1])

    def test_rows_of_another_host_are_not_gone_on_with(self):
        self.exp("run", "eleda/fig20")
        self.change_rows(lambda row: row["record"]["environment"].update(cpu="Their CPU", cores=64))
        status, said = self.exp("run", "eleda/fig20")
        self.assertEqual(status, 2)
        self.assertRegex(said, r"error: .* rows of another host \(64 cores, Their CPU; this one is \d.*another --out\n")
        self.assertEqual(self.exp("report", "eleda/fig20")[0], 0)
        self.assertIn("Measured on 64 cores, Their CPU; commit 0123abc.", self.page())

    def test_the_page_names_all_builds_that_figures_are_of(self):
        self.exp("run", "eleda/fig20")
        dirty = iter((True, False))
        self.change_rows(lambda row: row["record"]["environment"].update(dirty=next(dirty)))
        self.assertIn("1 steps of 0123abc; 1 steps of 0123abc-dirty", self.exp("report", "eleda/fig20")[1])
        self.assertIn("These figures are of 2 builds", self.page())

    def test_points_without_a_figure_are_named_after_all_was_drawn_and_fail(self):
        def forget(row):
            del row["record"]["metrics"]["central_log"]
        self.exp("run", "eleda/fig20")
        self.change_rows(forget)
        status, said = self.exp("report", "eleda/fig20")
        self.assertEqual(status, 1)
        gap = "panel YCSB, series eleda: nothing at 1, 2 (no central_log.crawling_ratio in the record)"
        self.assertEqual(said.splitlines()[-1], f"error: eleda/fig20_crawling: {gap}")
        self.assertIn(gap, self.page())

    def test_logs_lie_in_each_of_several_real_directories(self):
        disks = [os.path.join(self.out, name) for name in ("a", "b")]
        for disk in disks:
            os.mkdir(disk)
        job = planning.Job({"workload": "YCSB", "cc": "NO_WAIT", "log": "LOG_TAURUS", "thread_cnt": 1,
                            "log_limit": "1M"}, planning.Place("disk", "", 2), 0.01, {"key": {"thread_cnt": 1}})
        rows = os.path.join(self.out, "rows.jsonl")
        with mock.patch.object(running, "Progress"), mock.patch.object(running, "drop_caches", return_value="dropped"):
            running.Runner([(0, job)], set(), 1, support.FAKE_RUNDB, rows, disks, "/nowhere").run()
        with open(rows, encoding="utf-8") as file:
            commands = [json.loads(line)["command"] for line in file]
        self.assertEqual(len(commands), 2)
        work = running.WORK_PREFIX + r"\w+"
        for command in commands:
            self.assertRegex(command, rf"--log_dir={disks[0]}/{work}/d0,{disks[1]}/{work}/d1")
        self.assertEqual([os.listdir(disk) for disk in disks], [[], []])

    def test_each_directory_needs_the_space(self):
        disks = [os.path.join(self.out, name) for name in ("a", "b")]
        job = planning.Job({"log": "LOG_TAURUS", "log_limit": "512M"}, planning.Place("disk", "", 2), 1)
        words = exp.parse_arguments(["plan", "eleda/fig20", "--devices=off", f"--log_dir={','.join(disks)}"])
        with mock.patch.object(running, "free_bytes", lambda path: (1 << 40) if path == disks[0] else 1 << 20), \
                self.assertRaisesRegex(running.Refused, f"{disks[1]} has 1 MiB free, the plan needs 563 MiB; "
                                       "name another --log_dir"):
            exp.Experiment(words)._require_space([job])

    def test_a_directory_that_takes_no_logs_is_named(self):
        status, said = self.exp("run", "eleda/fig20", devices="off", log_dir="/proc/nowhere")
        self.assertEqual((status, "no logs can be written to /proc/nowhere" in said), (2, True), said)

    def test_jobs_that_were_run_alone_are_collected_with_the_others(self):
        status, said = self.exp("jobs", "eleda/fig20")
        jobs = said.split()
        self.assertEqual((status, len(jobs)), (0, 2))
        for job in jobs:
            self.assertEqual(self.exp("job", job, "eleda/fig20")[0], 0)
        self.assertEqual({f"{row['job']}-{row['repeat']}" for row in self.rows()}, set(jobs))

    def test_a_plan_starts_nothing_and_tells_of_each_figure_what_it_adds(self):
        status, said = self.exp("plan", "taurus/fig05", "taurus/fig07")
        self.assertEqual(status, 0)
        self.assertRegex(said, r"taurus/fig05\S+ +\d+ points, +\d+ steps, +\d+:\d\d\n")
        self.assertRegex(said, r"taurus/fig07\S+ +(\d+) points, +\1 steps, +\d+:\d\d, \d+ shared with those above")
        self.assertEqual(self.rows(), [])

    def test_a_plan_needs_no_program_and_writes_nothing(self):
        status, said = self.exp("plan", "taurus/fig05", devices="throughput", binary="/nowhere/rundb-all")
        self.assertEqual(status, 0)
        self.assertIn("log devices to be scaled to this host, which `run` measures first", said)
        self.assertEqual(os.listdir(self.out), [])

    def test_the_host_is_measured_under_the_lock_and_once(self):
        def measured(*_):
            with self.assertRaises(running.Busy), running.HostLock():
                pass
            return 1e6
        with mock.patch.object(running, "measure_per_core", side_effect=measured) as measure:
            for _ in range(2):
                self.assertEqual(self.exp("run", "eleda/fig20", devices="throughput")[0], 0)
        measure.assert_called_once()
        self.assertIn("of 1,000 k txn/s", self.exp("plan", "eleda/fig20", devices="throughput")[1])

    def test_what_was_never_run_is_not_reported(self):
        status, said = self.exp("report", "eleda/fig20", devices="throughput")
        self.assertEqual(status, 2)
        self.assertIn("has no results with --devices throughput; `scripts/exp run` makes them", said)

    def test_without_the_engine_it_is_said_how_to_build_it(self):
        status, said = self.exp("run", "eleda/fig20", devices="throughput", binary="/nowhere/rundb-all")
        self.assertEqual(status, 2)
        self.assertEqual(said, "error: /nowhere/rundb-all is missing; make rundb-all rundb-timed rundb-charged micro builds it\n")

    def test_a_program_older_than_its_sources_is_named(self):
        folder = tempfile.mkdtemp(dir=self.out)
        program, source = os.path.join(folder, "rundb-all"), os.path.join(folder, "logging", "log.h")
        os.makedirs(os.path.dirname(source))
        for path, time in ((source, 1000), (program, 2000)):
            with open(path, "w", encoding="utf-8"):
                pass
            os.utime(path, (time, time))
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            require_programs([program])
            self.assertEqual(said.getvalue(), "")
            os.utime(source, (3000, 3000))
            require_programs([program])
        self.assertEqual(said.getvalue(), "notice: rundb-all was built before logging/log.h was changed; make rundb-all "
                                          "rundb-timed rundb-charged micro builds it anew\n")

    def test_jobs_that_failed_are_told_apart(self):
        jobs = self.exp("jobs", "eleda/fig20")[1].split()
        with mock.patch.dict(os.environ, {"FAKE_FAIL": "run"}):
            self.assertEqual(self.exp("job", jobs[0], "eleda/fig20")[0], 1)
        self.assertEqual(self.exp("job", jobs[1], "eleda/fig20")[0], 0)
        self.assertEqual(self.exp("jobs", "eleda/fig20", "--failed")[1].split(), jobs[:1])
        self.assertEqual(self.exp("job", "none-0", "eleda/fig20")[0], 2)

    def test_a_real_device_is_measured_once(self):
        found = ceiling.Ceiling(self.out, 5e8, "fio")
        with mock.patch.object(ceiling, "measure", return_value=found) as measure:
            for _ in range(2):
                self.assertEqual(self.exp("run", "eleda/fig20", devices="off")[0], 0)
        measure.assert_called_once()
        with open(os.path.join(self.results("off"), "ceiling.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), [vars(found)])

    def test_a_program_that_is_not_built_is_named_before_anything_runs(self):
        status, said = self.exp("run", "taurus/fig15")
        self.assertEqual(status, 2)
        self.assertIn("rundb-timed is missing; make", said)
        self.assertEqual(self.rows(), [])

    def test_two_at_a_time_are_refused(self):
        with running.HostLock():
            status, said = self.exp("run", "taurus/fig14")
        self.assertEqual(status, 2)
        self.assertIn("another experiment runs", said)

    def test_a_figure_of_ours_is_reported_as_such(self):
        status, said = self.exp("run", "ablation/latency_hiding")
        self.assertEqual(status, 0, said)
        self.assertIn("ablation/latency_hiding: latency hiding is ahead: paper -, ours ", said)
        self.assertIn('<h2 id="ablation-latency_hiding">what latency hiding gives Taurus (ours)</h2>', self.page())

    def test_the_page_tells_what_differs_between_series_and_fetches_nothing(self):
        self.exp("run", "taurus/fig14")
        page = self.page()
        self.assertIn("LOG_ALGORITHM=LOG_TAURUS", page)
        self.assertNotIn("src=\"http", page)

    def test_what_changes_along_a_line_is_not_taken_for_shared(self):
        directories = iter(range(100))

        def row(**config):
            return {"record": {"config": {**config, "LOG_DIR": next(directories)}}}
        figure = spec.select_figures(["taurus/fig09_number"], spec.load_series())[0]
        lines = {("YCSB", "plover"): Line({}, {1: [row(A=1, B=2, C=1, D=5)], 2: [row(A=1, B=2, C=2, D=5)]}),
                 ("YCSB", "taurus_data"): Line({}, {1: [row(A=1, B=3, C=1, D=5)], 2: [row(A=1, B=3, C=1, D=6)]})}
        self.assertEqual(page.configuration_difference(figures_page.configurations(FigureData(figure, lines, []))),
                         ({"A": "1"}, {"plover": {"B": "2"}, "taurus_data": {"B": "3"}}, {"C": "1, 2", "D": "5, 6"}))


class CeilingTest(unittest.TestCase):
    def row(self, directories, kind="ram", **metrics):
        bytes_of_it = {"record_bytes": 800, "void_bytes": 150, "anchor_bytes": 50, "executed_txns": 10}
        record = {"metrics": {**bytes_of_it, **metrics}, "environment": {"log_directories": directories}}
        return {"place": {"kind": kind, "directories": len(directories)}, "record": record}

    def emulated(self, directories=2, **metrics):
        return self.row([{"emulation": {"bytes_per_second": 3e6}}] * directories, **metrics)

    def test_emulated_devices_take_what_their_profile_says(self):
        self.assertEqual(ceiling.transactions_per_second(self.emulated()), 6e4)
        self.assertEqual(ceiling.log_bytes_per_second(self.emulated()), 6e6)
        self.assertEqual(ceiling.of_row(self.emulated()).source, "emulated profile")

    def test_a_channel_that_emulated_devices_share_limits_their_sum(self):
        for rate, channel, both in ((3e6, 5e6, 5e6), (3e6, 9e6, 6e6), (3e6, 0, 6e6), (0, 5e6, 5e6), (0, 0, None)):
            row = self.row([{"emulation": {"bytes_per_second": rate, "channel_bytes_per_second": channel}}] * 2)
            self.assertEqual(ceiling.log_bytes_per_second(row), both, (rate, channel))

    def test_a_ram_disk_and_an_emulation_without_a_limit_have_none(self):
        self.assertIsNone(ceiling.transactions_per_second(self.row([{}]), [ceiling.Ceiling(".", 1e6, "fio")]))
        self.assertIsNone(ceiling.of_row(self.row([{"emulation": {"bytes_per_second": 0}}])))
        self.assertIsNone(ceiling.of_row(self.row([{"kind": "ram"}], kind="disk"), [ceiling.Ceiling(".", 1e6, "fio")]))

    def test_real_devices_take_what_was_measured_of_those_that_have_logs(self):
        devices = [ceiling.Ceiling(directory, 2e6, "fio") for directory in ("a", "b")]
        for used, rate in ((1, 2e4), (2, 4e4), (3, None)):
            row = self.row([{}] * used, kind="disk")
            self.assertEqual(ceiling.transactions_per_second(row, devices), rate)
        self.assertIsNone(ceiling.transactions_per_second(self.row([{}], kind="disk")))

    def test_each_series_has_its_own(self):
        plan = plan_of("taurus/fig14")
        figure = spec.select_figures(["taurus/fig14"], spec.load_series())[0]
        points = [p for p in plan.points[figure.name] if p.x == 2 and p.series in ("taurus_data", "taurus_command")]
        rows = []
        for point, size in zip(points, (8000, 800)):
            row = self.emulated(record_bytes=size - 200, throughput_acknowledged=1.0)
            rows.append({**row, "job": point.job, "recovery": "", "repeat": 0, "status": "ok"})
        found = data.collect(figure, plan, rows)
        self.assertEqual([found.line("YCSB", point.series).ceiling for point in points],
                         [{2: 6e7 / 8000}, {2: 6e7 / 800}])
        self.assertEqual(found.ceiling_source, "emulated profile")

    def test_fio_may_talk_before_its_figures(self):
        self.assertEqual(ceiling.fio_rate('note: "x"\n{"jobs": [{"write": {"bw_bytes": 7}}]}'), 7)
        for output in ("", "{}", '{"jobs": []}', "no figures"):
            with self.assertRaises(ValueError):
                ceiling.fio_rate(output)

    def test_the_larger_figure_counts_and_none_is_no_line(self):
        limits = {"step": "limits", "limits": {"devices": [{"writes": [{"bytes_per_s": 5.0}]}]}}
        nothing = {"step": "limits", "limits": {}}
        by_fio = ceiling.Ceiling(".", 9.0, "fio")
        for measured, fio, best in ((limits, None, 5.0), (limits, by_fio, 9.0), (nothing, by_fio, 9.0), (nothing, None, 0)):
            with mock.patch.object(ceiling.host, "measure_limits", return_value=measured), \
                    mock.patch.object(ceiling.shutil, "which", return_value="fio"), \
                    mock.patch.object(ceiling, "_measure_by_fio", return_value=fio):
                found = ceiling.measure(".", "host_limits")
                self.assertEqual(found.bytes_per_second if found else 0, best)

    def test_what_was_measured_elsewhere_is_measured_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ceiling.json")
            found = [ceiling.Ceiling("there", 1.0, "fio"), ceiling.Ceiling("here", 2.0, "fio")]
            ceiling.save(path, found)
            self.assertEqual(ceiling.load(path, ["there", "here"]), found)
            for others in (["there"], ["here", "there"], []):
                self.assertEqual(ceiling.load(path, others), [])

    def test_where_one_directory_cannot_be_measured_there_is_no_line(self):
        found = ceiling.Ceiling("a", 1.0, "fio")
        for second, wanted in ((found, [found, found]), (None, [])):
            with mock.patch.object(ceiling, "measure", side_effect=[found, second]):
                self.assertEqual(ceiling.measure_all(["a", "b"], "host_limits"), wanted)

    def test_bandwidth_has_the_devices_own_line(self):
        figure = spec.select_figures(["eleda/fig16_log_size"], spec.load_series())[0]
        plan = plan_of("eleda/fig16_log_size")
        point = plan.points[figure.name][0]
        row = {**self.emulated(log_bytes_per_second=5e6), "job": point.job, "recovery": "", "repeat": 0, "status": "ok"}
        line = data.collect(figure, plan, [row]).line(point.panel, point.series)
        self.assertEqual(line.ceiling, {point.x: 6e6})

    def test_the_line_is_drawn_where_it_is_near_and_stands_in_the_csv(self):
        figure = spec.select_figures(["taurus/fig14"], spec.load_series())[0]
        for rate, drawn in ((100.0, True), (500.0, False)):
            line = Line({2: [90.0], 20: [40.0]}, ceiling={2: rate, 20: rate})
            points = FigureData(figure, {("YCSB", "taurus_data"): line}, [])
            plot = drawing.draw(points, spec.load_series(), "")
            labels = [text.get_text() for axes in plot.axes if axes.get_legend() for text in axes.get_legend().texts]
            self.assertEqual("device ceiling" in labels, drawn)
            drawing.plt.close(plot)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "points.csv")
                data.write_csv(points, path)
                with open(path, encoding="utf-8") as file:
                    self.assertIn(f"YCSB,taurus_data,2,90.0,,,,{rate},90", file.read())


class DrawingTest(unittest.TestCase):
    def test_texts_stand_in_the_order_of_the_plan_even_where_a_point_is_missing(self):
        figure = spec.select_figures(["ablation/stripe_unit"], spec.load_series())[0]
        values = {x: [9.0] for x in figure.x.values}
        lines = {("YCSB", "serial_data_raid0"): Line({**values, figure.x.values[0]: []}),
                 ("YCSB", "serial_command_raid0"): Line(values)}
        plot = drawing.draw(FigureData(figure, lines, []), spec.load_series(), "")
        self.addCleanup(drawing.plt.close, plot)
        axes = plot.axes[0]
        ticks = sorted(zip(axes.get_xticks(), (label.get_text() for label in axes.get_xticklabels())))
        self.assertEqual([text for _, text in ticks], figure.x.values)


class CaptionTest(unittest.TestCase):
    def row(self, *directories, kind="ram", step="run", metrics=None, **more):
        """Planned for a RAM disk, unless `kind` says otherwise; its logs lay in `directories`."""
        environment = {"cpu": "CPU", "cores": 2, "commit": "0a", "virtualisation": "none", **more.pop("told", {}),
                       "log_directories": directories}
        return {"place": {"kind": kind, "device": "", "directories": len(directories)}, "step": step,
                "record": {"environment": environment, "metrics": metrics or {}}, **more}

    def emulated(self, over):
        return {"kind": "emulated", "emulation": {"profile": "nvme:0.5", "over": over}}

    def caption(self, rows, values=((1.0,),), figure="taurus/fig14", **other_series):
        figure = spec.select_figures([figure], spec.load_series())[0]
        lines = {"none": Line(dict(enumerate(map(list, values))), {0: rows}),
                 **{name: Line({0: [1.0]}, {0: more}) for name, more in other_series.items()}}
        return captions.caption_of(FigureData(figure, {("YCSB", name): line for name, line in lines.items()}, []),
                                   spec.load_series())

    def test_it_counts_what_the_points_have(self):
        for values, text in (([[1.0]], "one run a point"), ([[1.0, 2.0], [1.0, 2.0]], "medians of 2 runs"),
                             ([[1.0], [], [1.0, 2.0, 3.0]], "medians of 1 to 3 runs")):
            self.assertIn(text, self.caption([self.row()], values))

    def test_it_names_lines_that_leave_the_backup_out(self):
        told = self.caption([self.row()], figure="taurus/fig11_ram_disk_recovery", differential=[self.row()])
        self.assertIn("the passes over the logs alone, without the backup", told)
        self.assertNotIn("without the backup", self.caption([self.row()], figure="taurus/fig05_logging",
                                                            differential=[self.row()]))

    def test_a_benchmark_has_no_log_directory(self):
        self.assertEqual(self.caption([self.row(kind="none")]), "2 cores, CPU; one run a point")
        self.assertIn("2 log directories as they are", self.caption([self.row(*[{"kind": "real"}] * 2, kind="disk")]))

    def test_where_logs_lay_is_what_the_record_tells_and_not_the_plan(self):
        for kind, directory, text in (("ram", self.emulated("ram"), "emulated device nvme:0.5 over a RAM disk, 1 of"),
                                      ("ram", self.emulated("real"), "emulated device nvme:0.5 over a disk as it is"),
                                      ("ram", {"kind": "real"}, "; log directory as it is;"),
                                      ("disk", {"kind": "ram"}, "; RAM disk;")):
            self.assertIn(text, self.caption([self.row(directory, kind=kind)]))

    def test_caches_are_told_of_recoveries_from_disks(self):
        for caches, text in (("dropped", "page cache dropped before each recovery"),
                             ("kept: Permission denied", "page cache kept (Permission denied)")):
            self.assertIn(text, self.caption([self.row({"kind": "real"}, kind="disk", caches=caches)]))
            self.assertNotIn("page cache", self.caption([self.row({"kind": "ram"}, kind="disk", caches=caches)]))
        self.assertNotIn("page cache", self.caption([self.row({"kind": "real"}, caches="as they are"), self.row()]))

    def test_all_hosts_and_builds_are_named(self):
        other = self.row(told={"cpu": "Other", "cores": 1, "dirty": True})
        self.assertIn("1 core, Other and 2 cores, CPU; builds 0a and 0a-dirty", self.caption([self.row(), other]))

    def test_what_bends_figures_is_told_with_its_series(self):
        unsynced, busy = self.row(metrics={"unsynced": True}), self.row(told={"oversubscribed": True})
        self.assertIn("log writes UNSYNCED in all runs", self.caption([unsynced, unsynced], taurus_data=[unsynced]))
        self.assertIn("log writes UNSYNCED in all runs of Taurus data",
                      self.caption([self.row()], taurus_data=[unsynced]))
        text = "more threads than cores in all runs of Taurus command and in some runs of Taurus data"
        self.assertIn(text, self.caption([self.row()], taurus_data=[self.row(), busy], taurus_command=[busy]))
        self.assertNotIn("runs of", self.caption([self.row()], taurus_data=[self.row()]))

    def test_the_csv_names_the_device_of_each_point(self):
        for directory, name in ((self.emulated("ram"), "nvme:0.5"), ({"kind": "ram"}, "ram"),
                                ({"kind": "real"}, "none")):
            figure = spec.select_figures(["taurus/fig14"], spec.load_series())[0]
            line = Line({2: [9.0], 20: [4.0]}, {2: [self.row(directory)], 20: [self.row()]})
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "points.csv")
                data.write_csv(FigureData(figure, {("YCSB", "taurus_data"): line}, []), path)
                with open(path, encoding="utf-8") as file:
                    devices = [(point["req_per_query"], point["device"]) for point in csv.DictReader(file)]
            self.assertEqual(devices, [("2", name), ("20", "")])


class BenchTest(unittest.TestCase):
    def measure(self, *benchmarks, exit_status=0):
        told = json.dumps({"context": {"num_cpus": 2, "mhz_per_cpu": 9}, "benchmarks": benchmarks})
        job = next(iter(plan_of("taurus/fig16_lv").jobs.values()))
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(running, "Progress"), \
                mock.patch.object(records, "run_child", return_value=records.Outcome(exit_status, 1, told)):
            rows = os.path.join(folder, "rows")
            running.Runner([(0, job)], set(), 1, support.FAKE_RUNDB, rows, [folder], folder).run()
            return records.load(rows)[0]

    def test_it_tells_of_the_host_and_of_the_build(self):
        row = self.measure({"name": "B/0/1", "label": "scalar", "cpu_time": 3.0})
        environment = row["record"]["environment"]
        self.assertEqual(origin.host_of(row), origin.this_host())
        self.assertEqual((environment["commit"], environment["dirty"]), ("0123abc", False))
        self.assertEqual(environment["benchmark"], {"num_cpus": 2, "mhz_per_cpu": 9})
        self.assertEqual(row["record"]["metrics"], {"ns": {"scalar": {"1": 3.0}}})
        self.assertEqual(row["place"]["kind"], "none")

    def test_what_the_processor_lacks_is_no_fault(self):
        lacks = "--simd=avx512: this machine has no AVX-512"
        names = [{"name": f"B/{i}/{x}", "label": name, "cpu_time": 3.0} for x in (1, 2, 4, 8, 16)
                 for i, name in enumerate(("scalar", "avx2"))]
        row = self.measure(*names, {"name": "B/2/1", "error_occurred": True, "error_message": lacks})
        figure = spec.select_figures(["taurus/fig16_lv"], spec.load_series())[0]
        found = data.collect(figure, plan_of("taurus/fig16_lv"), [row])
        self.assertEqual([(gap.series, gap.excused) for gap in found.gaps.values()], [("avx512", lacks)])
        self.assertEqual(found.faults, [])

    def test_one_that_fails_is_a_failure(self):
        self.assertEqual(self.measure(exit_status=1)["status"], "failed")


class RowsTest(unittest.TestCase):
    def test_the_newest_row_of_a_step_counts_wherever_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "jobs"))
            for name, second, status in (("results.jsonl", 2, "ok"), ("jobs/a-0.jsonl", 1, "failed")):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(json.dumps({"job": "a", "recovery": "", "repeat": 0, "status": status,
                                           "time": f"2024-01-01T00:00:0{second}Z"}) + "\n")
            self.assertEqual([row["status"] for row in running.load_rows(folder)], ["ok"])

    def test_a_line_that_was_cut_off_is_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            row = {"job": "a", "recovery": "", "repeat": 0, "status": "ok"}
            with open(os.path.join(folder, "results.jsonl"), "w", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n" + json.dumps(row)[:10])
            self.assertEqual(running.load_rows(folder), [row])


if __name__ == "__main__":
    unittest.main()
