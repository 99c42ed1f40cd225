"""Experiments: what figure files say, plans that share runs, resumed runs, medians and intervals, verdicts, the report."""
import csv
import json
import os
import re
import tempfile
import unittest
from unittest import mock

import support
import cells
import exp
import looks
import plot_style
from exp_case import ExpCase
from experiment import (captions, ceiling, claims, data, drawing, host_scale, listing, origin, page, planning, running,
                        spec)
from experiment.data import FigureData, Line

HOST = host_scale.HostScale("cores", 2)


OKABE_ITO = {"#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7"}


def plan_of(*names, scale="smoke", host=HOST, **more):
    series = spec.load_series()
    return planning.make_plan(spec.select_figures(list(names), series), series, spec.load_scale(scale), host, **more)


def config_values(flags):
    """What config.h has of them, as a figure file would write it."""
    with open(os.path.join(spec.REPOSITORY, "config.h"), encoding="utf-8") as file:
        defaults = dict(re.findall(r"^#define (\w+) (.+)$", file.read(), re.MULTILINE))
    values = {}
    for flag in flags:
        value = defaults[{"log": "LOG_ALGORITHM", "cc": "CC_ALG"}.get(flag, flag.upper())]
        shifted = re.fullmatch(r"\((\d+) << 10\)", value)
        values[flag] = f"{shifted[1]}K" if shifted else int(value) if value.isdigit() else value
    return values


def look(series):
    return series.colour, series.marker, series.dashed


class SpecTest(unittest.TestCase):
    def test_every_figure_file_can_be_planned_at_every_scale(self):
        for scale in ("smoke", "laptop", "paper"):
            plan = plan_of("all", scale=scale)
            self.assertTrue(all(plan.points.values()), scale)

    def test_every_claim_is_about_series_and_panels_that_are_drawn(self):
        for figure in spec.select_figures([], spec.load_series()):
            for claim in figure.claims:
                panels = claims._panels(FigureData(figure, {}, []), claim)
                self.assertTrue(panels, claim)
                for name in [claim["of"], *spec.baselines(claim)]:
                    for panel in panels:
                        self.assertIn(name, figure.drawn_in(figure.panel_of(panel, name)), claim)

    def test_points_that_claims_name_are_planned(self):
        for name in ("smoke", "laptop", "paper"):
            for figure in spec.select_figures([], spec.load_series()):
                if name == "smoke" and figure.x.values == "threads":  # of which it has few
                    continue
                xs = planning.swept(figure, spec.load_scale(name), 96)
                for claim in figure.claims:
                    named = {claim.get(key) for key in ("at", "from", "to")} - {None, "first", "last", "peaks"}
                    self.assertLessEqual(named, set(xs), (name, figure.name, claim))

    def test_figures_that_claims_compare_with_have_what_they_ask_for(self):
        figures = {figure.name: figure for figure in spec.select_figures([], spec.load_series())}
        for claim in [claim for figure in figures.values() for claim in figure.claims if "than" in claim]:
            other, panel = figures[claim["than"]["figure"]], claim["than"]["panel"]
            for name in [claim["of"], *spec.baselines(claim)]:
                self.assertIn(name, other.drawn_in(other.panel_of(panel, name)), claim)

    def test_series_of_a_figure_differ_in_look_and_label(self):
        series = spec.load_series()
        for figure in spec.select_figures([], series):
            drawn = [series[name] for name in figure.series]
            self.assertEqual(len({look(one) for one in drawn}), len(drawn), figure.name)
            self.assertEqual(len({one.label for one in drawn}), len(drawn), figure.name)

    def test_a_look_stands_for_one_configuration_and_the_other_way_round(self):
        of_look, of_flags = {}, {}
        series = spec.load_series().values()
        default = {name: value for one in series for name, value in config_values(one.flags).items()}
        for one in series:
            configuration = json.dumps([{**default, **one.flags}, one.logs], sort_keys=True)
            self.assertEqual(of_look.setdefault(look(one), configuration), configuration, one.name)
            if one.flags:
                self.assertEqual(of_flags.setdefault(configuration, one.name), one.name)
            self.assertIn(one.colour, OKABE_ITO | {"#8a8a8a"}, one.name)

    def test_the_main_jobs_plots_and_the_figures_draw_a_scheme_alike(self):
        series, alike = spec.load_series(), set()
        for (log, log_type), (colour, _) in looks.SCHEME_STYLE.items():
            self.assertIn(colour, OKABE_ITO | {"#8a8a8a"}, log)
            for stripes in (1, 2):
                cell = cells.Cell("YCSB", "NO_WAIT", log, log_type, stripes)
                kinds = ("striped",) if stripes > 1 else ("none", "one_disk", "each")
                one = next((one for one in series.values() if one.logs in kinds and
                            (one.flags.get("log"), one.flags.get("log_type", "")) == (log, log_type)), None)
                if one:
                    self.assertEqual(plot_style.scheme_style(cell), (one.colour, one.marker), one.name)
                    alike.add(one.name)
        self.assertEqual(alike, {"none", "serial_data", "serial_data_raid0", "serial_command", "serial_command_raid0",
                                 "plover", "silo_r", "taurus_data", "taurus_command", "eleda"})

    def test_bars_of_a_striped_log_have_a_look_of_their_own(self):
        bars = set()
        for stripes in (1, 2):
            cell = cells.Cell("YCSB", "NO_WAIT", "LOG_SERIAL", "LOG_DATA", stripes)
            bars.add((plot_style.scheme_style(cell)[0], plot_style.hatch(cell)))
        self.assertEqual(len(bars), 2)

    def test_a_claim_that_is_not_understood_is_refused(self):
        ratio = "of: none, over: none"
        kinds = "over, expect, above, below, which takes one"
        for wrong, why in (("of: none", f"none of {kinds}"), (f"{ratio}, at: lost", "at is one of first, last, peaks"),
                           (f"{ratio}, wher: 1", "wher not known beside over: none"), ("over: none", "of is missing"),
                           (f"{ratio}, 1: 1", "1 not known beside over"),
                           ("of: nobody, over: none", "the figure has no nobody"), ("of: none, over: []", "over names"),
                           (f"{ratio}, panels: [other]", "the figure has no other"),
                           (f"{ratio}, panels: [[a]]", "panels names one or several"),
                           (f"{ratio}, than: {{figure: a}}", "than is {figure, panel}"),
                           (f"{ratio}, than: 5", "than is {figure, panel}"), (f"{ratio}, paper: -2", "a ratio above 0"),
                           ("of: none, expect: grows", "expect is one of rises, falls, flat, inverse"),
                           (f"{ratio}, expect: falls", f"expect and over of {kinds}"),
                           ("of: none, expect: falls, at: last", "at not known beside expect: falls"),
                           ("of: none, above: 0.1, below: 1", f"above and below of {kinds}"),
                           ("of: none, expect: inverse, from: 1", "from not known beside expect: inverse"),
                           ("of: none, below: 5%", "below must be numbers"),
                           ("of: none, above: true", "above must be numbers"),
                           ("of: none, expect: rises, to: last", "to must be numbers")):
            with self.assertRaisesRegex(spec.SpecError, f"claim 'c': .*{re.escape(why)}", msg=wrong):
                self.load_figure(f"claims: [{{claim: c, {wrong}}}]")
        for no_list in ("[text]", "{a: 1}", "5"):
            with self.assertRaisesRegex(spec.SpecError, "claims: a list of mappings is expected"):
                self.load_figure(f"claims: {no_list}")

    def test_a_figure_of_no_paper_says_so(self):
        for number, heading in (("7", "Fig. 7: t"), ("none", "t (not in the paper)")):
            self.assertEqual(self.load_figure("claims: []", number=number).heading, heading)
        for number in ("seven", "true", "0", "[]"):
            with self.assertRaisesRegex(spec.SpecError, "figure is the number in the paper, or none"):
                self.load_figure("claims: []", number=number)

    def test_a_heading_is_no_wider_than_its_plot(self):
        for figure in spec.select_figures([], spec.load_series()):
            columns = min(drawing.PANELS_PER_LINE, len(figure.panels))
            self.assertLessEqual(len(figure.heading), 60 * max(1, 0.7 * columns), figure.name)

    def test_a_device_that_the_papers_machine_lacks_is_refused(self):
        for paper, device in (("eleda", "hdd"), ("mine", "nvme")):
            with self.assertRaisesRegex(spec.SpecError, f"a machine of {paper} with {device} had is not known"):
                self.load_figure("claims: []", device=device, paper=paper)
        with self.assertRaisesRegex(spec.SpecError, "device is one of hdd, nvme, ram, real"):
            self.load_figure("claims: []", device="ssd")

    def test_a_panel_draws_what_it_names(self):
        figure = self.load_figure("claims: []", panels="{a: {cc: SILO}, b: {cc: SILO, series: []}}")
        self.assertEqual((figure.drawn_in("a"), figure.drawn_in("b")), (("none",), ()))
        self.assertEqual(figure.panels["b"], {"cc": "SILO"})
        self.assertEqual(figure.panel_of("b", "none"), "a")
        with self.assertRaisesRegex(spec.SpecError, "panel a: the figure's series have no eleda"):
            self.load_figure("claims: []", panels="{a: {series: [eleda]}}")

    def load_figure(self, claims_text, panels="{a: {}}", number="1", device="ram", paper="taurus"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, paper, "fig.yaml")
            os.mkdir(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"figure: {number}\ntitle: t\nsection: s\ndevice: {device}\nstep: run\nbase: {{}}\n"
                           "series: [none]\nx: {flag: thread_cnt, values: [1], label: n}\ny: {metric: m, label: l}\n"
                           f"panels: {panels}\n{claims_text}\n")
            return spec.load_figure(path, spec.load_series())

    def test_an_unknown_key_is_named_with_its_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "fig.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("figure: 1\nx: {flag: thread_cnt, values: [1], label: n, colour: red}\ny: {}\n")
            with self.assertRaisesRegex(spec.SpecError, "fig.yaml: x: unknown colour"):
                spec.load_figure(path, {})

    def test_a_figure_that_is_not_there_is_told_with_those_that_are(self):
        with self.assertRaisesRegex(spec.SpecError, "(?s)'fig99'.*taurus/fig05"):
            spec.select_figures(["fig99"], spec.load_series())


class PlanTest(unittest.TestCase):
    def test_a_recovery_figure_adds_recoveries_to_the_runs_of_the_others(self):
        alone, both = plan_of("taurus/fig05"), plan_of("taurus/fig05", "taurus/fig07")
        self.assertEqual(set(alone.jobs), set(both.jobs))
        self.assertEqual(sum(len(job.recoveries) for job in alone.jobs.values()), 0)
        self.assertEqual({len(job.recoveries) for job in both.jobs.values() if job.recoveries}, {2})

    def test_more_threads_than_cores_are_left_out(self):
        scale = spec.load_scale("laptop")
        self.assertEqual(planning.thread_counts(scale, 6), [1, 2, 4, 6])

    def logs_of(self, *names, **more):
        """(scheme, logs, directories) of the runs."""
        return {(job.flags["log"], job.flags["num_logger"], job.place.directories)
                for job in plan_of(*names, **more).jobs.values() if job.logs}

    def test_one_log_lies_on_one_disk_or_is_striped_where_others_have_a_log_for_each_device(self):
        self.assertEqual(self.logs_of("taurus/fig05_logging"), {("LOG_SERIAL", 1, 1), ("LOG_SERIAL", 1, 8),
                                                                ("LOG_PLOVER", 8, 8), ("LOG_TAURUS", 8, 8)})
        self.assertEqual(self.logs_of("eleda/fig08_threads", "eleda/fig16"), {("LOG_ELEDA", 1, 2), ("LOG_ELEDA", 1, 1)})

    def test_parallel_schemes_have_as_many_logs_on_a_ram_disk(self):
        self.assertEqual(self.logs_of("taurus/fig11_ram_disk"), {("LOG_SERIAL", 1, 1), ("LOG_PLOVER", 8, 1),
                                                                 ("LOG_BATCH", 8, 1), ("LOG_TAURUS", 8, 1)})

    def test_real_directories_have_equally_many_logs(self):
        off = host_scale.HostScale("off", 2)
        for directories, logs in ((1, 8), (3, 9), (8, 8)):
            found = self.logs_of("taurus/fig05_logging", host=off, real_directories=directories)
            self.assertEqual(found, {("LOG_SERIAL", 1, 1), ("LOG_SERIAL", 1, directories),
                                     ("LOG_PLOVER", logs, directories), ("LOG_TAURUS", logs, directories)})

    def test_one_log_has_the_buffer_of_all_parallel_ones(self):
        for figure, of_each, of_one in (("taurus/fig09", "2M", "16M"), ("taurus/fig05_logging", None, "64M"),
                                        ("eleda/fig08_threads", None, None)):
            jobs = [job for job in plan_of(figure).jobs.values() if job.logs]
            for job in jobs:
                one = job.flags["log"] in ("LOG_SERIAL", "LOG_ELEDA")
                self.assertEqual(job.flags.get("log_buffer_size"), of_one if one else of_each, job.flags)

    def test_the_buffer_that_is_multiplied_is_the_engines(self):
        with open(os.path.join(spec.REPOSITORY, "config.h"), encoding="utf-8") as file:
            factor, shift = re.search(r"#define LOG_BUFFER_SIZE \((\d+) << (\d+)\)", file.read()).groups()
        self.assertEqual(planning.LOG_BUFFER_BYTES, int(factor) << int(shift))

    def test_flushes_wait_as_long_in_all_runs_of_a_figure(self):
        intervals = {}
        for figure in spec.select_figures([], spec.load_series()):
            jobs = plan_of(figure.name).jobs.values()
            intervals[figure.name] = {job.flags["log_flush_interval"] for job in jobs if job.logs}
            self.assertLessEqual(len(intervals[figure.name]), 1, figure.name)
        self.assertEqual(intervals["taurus/fig09_number_of_disks"], {"1600us"})
        self.assertEqual(intervals["eleda/fig08_threads"], {"200us"})
        for cores, interval in ((87, "1600us"), (88, "200us")):  # 80 workers and eight writers
            jobs = plan_of("taurus/fig05_logging", scale="paper", host=host_scale.HostScale("cores", cores)).jobs
            self.assertEqual({job.flags["log_flush_interval"] for job in jobs.values() if job.logs}, {interval})

    def test_the_interval_that_is_multiplied_is_the_engines(self):
        self.assertEqual(planning.FLUSH_INTERVAL_US, config_values(["log_flush_interval"])["log_flush_interval"])

    def test_a_new_scale_takes_what_laptop_has(self):
        mine = spec.Scale(**{**vars(spec.load_scale("smoke")), "name": "mine"})
        series = spec.load_series()
        jobs = planning.make_plan(spec.select_figures(["eleda/fig12"], series), series, mine, HOST).jobs.values()
        self.assertEqual({job.flags["num_wh"] for job in jobs}, {32})

    def test_there_is_a_warehouse_for_each_log(self):
        for name in ("smoke", "laptop", "paper"):
            scale = spec.load_scale(name)
            self.assertGreaterEqual(scale.workloads["TPCC"]["num_wh"], scale.devices, name)

    def test_disks_are_swept_and_logs_stay_as_many(self):
        plan = plan_of("taurus/fig09_number")
        points = plan.points["taurus/fig09_number_of_disks"]
        for point in points:
            job = plan.jobs[point.job]
            self.assertEqual(job.place.directories, point.x)
            self.assertEqual(job.flags["num_logger"], 1 if job.flags["log"] == "LOG_SERIAL" else 8)
            self.assertNotIn("devices", job.flags)
        self.assertEqual({point.x for point in points}, {1, 2, 4, 8})
        off = host_scale.HostScale("off", 2)
        jobs = plan_of("taurus/fig09_number", host=off, real_directories=2).jobs.values()
        self.assertEqual({job.place.directories for job in jobs}, {1, 2})

    def test_every_device_of_a_figure_is_that_of_its_paper(self):
        for figure in spec.select_figures([], spec.load_series()):
            self.assertEqual(bool(HOST.device_flag(figure.device, figure.paper)), figure.device != "ram", figure.name)

    def test_the_io_unit_is_that_of_the_paper(self):
        for name, plan in ((name, plan_of(name)) for name in (f"eleda/fig{n:02}" for n in (8, 9, 12, 13, 19, 20, 21))):
            self.assertEqual({job.flags["flush_block_size"] for job in plan.jobs.values()}, {"64K"}, name)
        for name in ("eleda/fig14", "eleda/fig16"):
            units = {job.flags["flush_block_size"] for job in plan_of(name).jobs.values()
                     if job.flags.get("latency_hiding") is None}
            self.assertEqual(units, {"512K"}, name)

    def test_a_flag_may_have_a_value_for_each_scale(self):
        for scale, warehouses in (("smoke", 8), ("laptop", 32), ("paper", 32)):
            jobs = plan_of("eleda/fig12", scale=scale).jobs.values()
            self.assertEqual({job.flags["num_wh"] for job in jobs}, {warehouses})

    def test_panels_of_data_and_of_commands_share_a_workload_and_no_run(self):
        points = plan_of("taurus/fig09").points["taurus/fig09_logging_hdd"]
        drawn = {(point.panel, point.series) for point in points}
        self.assertIn(("YCSB, data", "silo_r"), drawn)
        self.assertNotIn(("YCSB, command", "silo_r"), drawn)
        self.assertEqual(len({point.job for point in points}), len(points))

    def test_devices_are_scaled_to_the_host(self):
        self.assertEqual(HOST.device_flag("nvme", "taurus"), "nvme:0.025")
        self.assertEqual(HOST.device_flag("hdd", "taurus"), "hdd:0.0357")  # the machine with hard disks has 56 workers
        self.assertEqual(HOST.device_flag("nvme", "eleda"), "nvme:0.117")  # 3.5 GiB/s instead of 2 GB/s, 32 workers
        faster = host_scale.HostScale("throughput", 2, per_core=2 * host_scale.DBX1000_PER_CORE)
        self.assertEqual(faster.device_flag("nvme", "taurus"), "nvme:0.05")
        self.assertEqual(host_scale.HostScale("off", 2).device_flag("hdd", "taurus"), "")


class RunTest(ExpCase):
    def test_a_run_leaves_points_plots_and_a_page_and_deletes_its_logs(self):
        status, said = self.exp("run", "taurus/fig14", draw=True)
        self.assertEqual(status, 0, said)
        self.assertEqual({row["status"] for row in self.rows()}, {"ok"})
        there = set(os.listdir(self.results()))
        self.assertLessEqual({"taurus-fig14_transaction_length.csv", "report.html", "plots"}, there)
        self.assertEqual([name for name in os.listdir(self.out) if name.startswith(running.WORK_PREFIX)], [])

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
        self.assertEqual(said, "error: /nowhere/rundb-all is missing; make rundb-all rundb-timed micro builds it\n")

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
        self.assertEqual(page.configuration_difference(FigureData(figure, lines, [])),
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


class CaptionTest(unittest.TestCase):
    def row(self, *directories, kind="ram", step="run", metrics=None, **more):
        """Planned for a RAM disk, unless `kind` says otherwise; its logs lay in `directories`."""
        environment = {"cpu": "CPU", "cores": 2, "commit": "0a", "virtualisation": "none", **more.pop("told", {}),
                       "log_directories": directories}
        return {"place": {"kind": kind, "device": "", "directories": len(directories)}, "step": step,
                "record": {"environment": environment, "metrics": metrics or {}}, **more}

    def emulated(self, over):
        return {"kind": "emulated", "emulation": {"profile": "nvme:0.5", "over": over}}

    def caption(self, rows, values=((1.0,),), **other_series):
        figure = spec.select_figures(["taurus/fig14"], spec.load_series())[0]
        lines = {"none": Line(dict(enumerate(map(list, values))), {0: rows}),
                 **{name: Line({0: [1.0]}, {0: more}) for name, more in other_series.items()}}
        return captions.caption_of(FigureData(figure, {("YCSB", name): line for name, line in lines.items()}, []),
                                   spec.load_series())

    def test_it_counts_what_the_points_have(self):
        for values, text in (([[1.0]], "one run a point"), ([[1.0, 2.0], [1.0, 2.0]], "medians of 2 runs"),
                             ([[1.0], [], [1.0, 2.0, 3.0]], "medians of 1 to 3 runs")):
            self.assertIn(text, self.caption([self.row()], values))

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
                mock.patch.object(running, "run_child", return_value=running.Outcome(exit_status, 1, told)):
            rows = os.path.join(folder, "rows")
            running.Runner([(0, job)], set(), 1, support.FAKE_RUNDB, rows, [folder], folder).run()
            return running.load_rows_of(rows)[0]

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


class ListTest(unittest.TestCase):
    def test_the_artifact_has_the_table_of_figures(self):
        with open(os.path.join(spec.REPOSITORY, "ARTIFACT.md"), encoding="utf-8") as file:
            text = file.read()
        table = listing.table(spec.select_figures([], spec.load_series()))
        self.assertTrue(table in text, "ARTIFACT.md's table is not what `scripts/exp list --table` prints")


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
