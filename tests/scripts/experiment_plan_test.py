"""What figure files say, and the plans that come of it: runs that figures share, places, devices, flags."""
import dataclasses
import json
import os
import re
import tempfile
import unittest
from unittest import mock

import support
import looks
from exp_case import HOST, plan_of
from experiment import cells, claims, drawing, host_scale, listing, planning, spec, style
from experiment.data import FigureData


OKABE_ITO = {"#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7"}
COLOURS = OKABE_ITO | {"#8a8a8a", "#8c510a", "#6a3d9a", "#b2182b"}


def config_values(flags):
    """What config.h has of them, as a figure file would write it; of a plan's own, and of replicas, nothing."""
    with open(os.path.join(spec.REPOSITORY, "config.h"), encoding="utf-8") as file:
        defaults = dict(re.findall(r"^#define (\w+) (.+)$", file.read(), re.MULTILINE))
    values = {}
    of_replicas = {"replication", "replica_round_trip", "replica_bandwidth"}
    of_clusters = {"masters", "sharing"}
    for flag in set(flags) - set(spec.OF_PLANS) - of_replicas - of_clusters:
        value = defaults[{"log": "LOG_ALGORITHM", "cc": "CC_ALG", "flush": "PM_FLUSH"}.get(flag, flag.upper())]
        shifted = re.fullmatch(r"\((\d+) << 10\)", value)
        values[flag] = f"{shifted[1]}K" if shifted else int(value) if value.isdigit() else value
    return values


def look(series):
    return series.colour, series.marker, series.dashed


class SpecTest(unittest.TestCase):
    def test_every_figure_file_can_be_planned_at_every_scale(self):
        for scale in ("smoke", "laptop", "paper"):
            plan = plan_of(scale=scale)
            self.assertTrue(all(plan.points.values()), scale)

    def test_every_claim_is_about_series_and_panels_that_are_drawn(self):
        for figure in spec.select_figures([], spec.load_series()):
            for claim in figure.claims:
                panels = claims._panels(FigureData(figure, {}, []), claim)
                self.assertTrue(panels, claim)
                for name in [claim["of"], *spec.baselines(claim)]:
                    for panel in panels:
                        self.assertIn(name, figure.drawn_in(figure.panel_of(panel, name)), claim)

    def test_panels_may_have_programs_of_their_own_and_x_the_latency_of_the_memory(self):
        [figure] = spec.select_figures(["write_behind/fig21"], spec.load_series())
        plan = plan_of("write_behind/fig21")
        found = {(point.panel.split(", ")[1], point.x, plan.jobs[point.job].program, plan.jobs[point.job].place.device)
                 for point in plan.points[figure.name]}
        self.assertEqual(found, {(reads, x, program, f"pm,latency={x}") for x in (1, 2, 4)
                                 for reads, program in (("reads free", "rundb-all"), ("reads charged", "rundb-charged"))})
        self.assertTrue(all("pm_latency" not in job.flags for job in plan.jobs.values()))
        with self.assertRaisesRegex(spec.SpecError, "panel .*: program is one of rundb-all, rundb-timed"):
            spec._check_figure(dataclasses.replace(figure, panel_programs={"p": "rundb"}), "here", spec.load_series())

    def test_a_restart_whose_transactions_are_drawn_has_the_load_of_the_run_before(self):
        plan = plan_of("write_behind/fig23")
        for job in plan.jobs.values():
            for flags in job.recoveries.values():
                repeated = set(job.flags) & {"zipf_theta", "isolation_level", "log_flush_interval"}
                self.assertEqual({flag: flags.get(flag) for flag in repeated},
                                 {flag: job.flags[flag] for flag in repeated})

    def test_points_that_claims_name_are_planned(self):
        for name in ("smoke", "laptop", "paper"):
            for figure in spec.select_figures([], spec.load_series()):
                if name == "smoke" and figure.x.values == "threads":  # of which it has few
                    continue
                xs = planning.swept(figure, spec.load_scale(name), 96)
                for claim in figure.claims:
                    named = {claim[key] for key in ("at", "over_at", "from", "to") if key in claim}
                    named -= {"first", "last", "peaks"}
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
            configuration = json.dumps([{**default, **one.flags}, one.logs, one.recover, one.recovered, one.device],
                                       sort_keys=True)
            self.assertEqual(of_look.setdefault(look(one), configuration), configuration, one.name)
            if one.flags:
                self.assertEqual(of_flags.setdefault(configuration, one.name), one.name)
            self.assertIn(one.colour, COLOURS, one.name)

    def test_the_main_jobs_plots_and_the_figures_draw_a_scheme_alike(self):
        series, alike = spec.load_series(), set()
        for (log, log_type), (colour, _) in looks.SCHEME_STYLE.items():
            self.assertIn(colour, COLOURS, log)
            for stripes in (1, 2):
                cell = cells.Cell("YCSB", "NO_WAIT", log, log_type, stripes)
                kinds = ("striped",) if stripes > 1 else ("none", "one_disk", "each")
                one = next((one for one in series.values() if one.logs in kinds and
                            (one.flags.get("log"), one.flags.get("log_type", "")) == (log, log_type)), None)
                if one:
                    self.assertEqual(style.scheme_style(cell), (one.colour, one.marker), one.name)
                    alike.add(one.name)
        self.assertEqual(alike, {"none", "serial_data", "serial_data_raid0", "serial_command", "serial_command_raid0",
                                 "plover", "silo_r", "taurus_data", "taurus_command", "eleda", "differential",
                                 "wbl_ready", "instant_on_demand"})

    def test_no_two_schemes_share_a_colour(self):
        colours = [colour for colour, _ in looks.SCHEME_STYLE.values()]
        self.assertEqual(len(colours), len(set(colours)))

    def test_rates_that_differ_by_tens_have_a_logarithmic_axis(self):
        for figure in spec.select_figures(["taurus/fig13"], spec.load_series()):
            self.assertTrue(figure.y.log, figure.name)

    def test_bars_of_a_striped_log_have_a_look_of_their_own(self):
        bars = set()
        for stripes in (1, 2):
            cell = cells.Cell("YCSB", "NO_WAIT", "LOG_SERIAL", "LOG_DATA", stripes)
            bars.add((style.scheme_style(cell)[0], style.hatch(cell)))
        self.assertEqual(len(bars), 2)

    def test_a_claim_that_is_not_understood_is_refused(self):
        ratio = "of: none, over: none"
        kinds = "over, expect, above, below, at_most, which takes one"
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
                           (f"{ratio}, over_at: 1", "over_at needs at, a point"),
                           (f"{ratio}, at: peaks, over_at: 1", "over_at needs at, a point"),
                           (f"{ratio}, at: 1, over_at: peaks", "over_at is one of first, last"),
                           ("of: none, expect: falls, over_at: 1", "over_at not known beside expect: falls"),
                           ("of: none, above: true", "above must be numbers"),
                           ("of: none, expect: rises, to: last", "to must be numbers")):
            with self.assertRaisesRegex(spec.SpecError, f"claim 'c': .*{re.escape(why)}", msg=wrong):
                self.load_figure(f"claims: [{{claim: c, {wrong}}}]")
        for no_list in ("[text]", "{a: 1}", "5"):
            with self.assertRaisesRegex(spec.SpecError, "claims: a list of mappings is expected"):
                self.load_figure(f"claims: {no_list}")

    def test_what_a_figure_measures_is_a_metric_or_parts_that_it_draws(self):
        either = "y has parts if the figure draws parts, else a metric"
        for measure, draw, why in (("{label: l}", "lines", either), ("{label: l}", "parts", either),
                                   ("{label: l, metric: m}", "parts", either),
                                   ("{label: l, parts: {index: m}}", "lines", either),
                                   ("{label: l, metric: m, parts: {index: m}}", "parts", either),
                                   ("{label: l, parts: [m]}", "parts", "a mapping of formulas"),
                                   ("{label: l, parts: {indices: m}}", "parts", "series.yaml has no indices"),
                                   ("{label: l, parts: {index: m * 2}}", "parts", "y: index: names with"),
                                   ("{metric: m}", "lines", "label")):
            with self.assertRaisesRegex(spec.SpecError, why, msg=measure):
                self.load_figure("claims: []", measure=measure, draw=draw)
        figure = self.load_figure("claims: []", measure="{label: l, parts: {index: m / n}}", draw="parts")
        self.assertEqual(figure.y.parts, {"index": "m / n"})

    def test_a_figure_of_no_paper_says_so(self):
        for number, heading in (("7", "Fig. 7: t"), ("A", "App. A: t"), ("none", "t (not in the paper)")):
            self.assertEqual(self.load_figure("claims: []", number=number).heading, heading)
        for number in ("seven", "true", "0", "[]"):
            with self.assertRaisesRegex(spec.SpecError, "figure is the number in the paper, or none"):
                self.load_figure("claims: []", number=number)

    def test_a_figure_of_ours_says_so_and_has_nothing_of_a_paper(self):
        ours = self.load_ours()
        self.assertEqual((ours.ours, ours.heading, ours.section, ours.number), (True, "t (ours)", "ours", None))
        for more, why in (("figure: 5", "neither figure nor section"), ("section: s", "neither figure nor section"),
                          ("claims: [{claim: c, of: none, above: 1, paper: 2}]", "ours has no paper's value")):
            with self.assertRaisesRegex(spec.SpecError, why):
                self.load_ours(more)

    def test_a_figure_of_ours_names_the_machine_of_its_devices(self):
        with self.assertRaisesRegex(spec.SpecError, "a machine of ablation with nvme had is not known"):
            self.load_ours(device="nvme")
        series, scale = spec.load_series(), spec.load_scale("smoke")
        for machine, directories in (("taurus", 8), ("eleda", 2)):
            figure = self.load_ours(f"machine: {machine}", device="nvme", series="[taurus_data]")
            job = next(iter(planning.make_plan([figure], series, scale, HOST).jobs.values()))
            self.assertEqual((job.place.device, job.place.directories),
                             (HOST.device_flag("nvme", machine), directories))

    def load_ours(self, more="claims: []", device="ram", series="[none]"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, spec.OURS, "name.yaml")
            os.mkdir(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"title: t\ndevice: {device}\nstep: run\nbase: {{workload: YCSB}}\nseries: {series}\n"
                           "x: {flag: thread_cnt, values: [1], label: n}\ny: {metric: m, label: l}\n"
                           f"panels: {{a: {{}}}}\n{more}\n")
            return spec.load_figure(path, spec.load_series())

    def test_all_are_the_figures_of_the_papers_and_ours_are_asked_for_by_name(self):
        def papers_of(*words):
            return {figure.paper for figure in spec.select_figures(list(words), spec.load_series())}
        self.assertEqual(papers_of("all"), {"taurus", "eleda", "differential", "write_behind", "taurus_mm"})
        self.assertEqual(papers_of("ablation"), {"ablation"})
        for several in ((), ("all", "ablation")):
            self.assertEqual(papers_of(*several), set(spec.PAPERS) | {"ablation"})
        for paper in spec.PAPERS:
            self.assertEqual(papers_of(paper), {paper})
        with self.assertRaisesRegex(spec.SpecError, "no figure is called 'fig99'"):
            papers_of("all", "fig99")

    def test_switches_of_the_schemes_are_varied_by_figures_of_ours(self):
        series = spec.load_series()
        varied = set()
        for figure in spec.select_figures(["ablation"], series):
            varied |= {figure.x.flag, *figure.base, *(flag for name in figure.series for flag in series[name].flags)}
        self.assertLessEqual({"abort_penalty", "read_block_size", "stripe_unit", "hopping_distance", "compress_lsn_log",
                              "psn_flush_freq", "epoch_period", "update_simd", "num_logger", "log_flush_interval",
                              "latency_hiding", "use_locktable", "locktable_evict_buffer"}, varied)

    def test_a_heading_is_no_wider_than_its_plot(self):
        for figure in spec.select_figures([], spec.load_series()):
            columns = min(drawing.PANELS_PER_LINE, len(figure.panels))
            self.assertLessEqual(len(figure.heading), 60 * max(1, 0.7 * columns), figure.name)

    def test_a_device_that_the_papers_machine_lacks_is_refused(self):
        for paper, device in (("eleda", "hdd"), ("mine", "nvme")):
            with self.assertRaisesRegex(spec.SpecError, f"a machine of {paper} with {device} had is not known"):
                self.load_figure("claims: []", device=device, paper=paper)
        with self.assertRaisesRegex(spec.SpecError, "device is one of disk29, hdd, nvme, pm, ssd, ram, real"):
            self.load_figure("claims: []", device="tape")
        with self.assertRaisesRegex(spec.SpecError, "a machine of taurus with ssd had is not known"):
            self.load_figure("claims: []", names="[none, ssd_wal]")
        self.load_figure("claims: []", names="[none, ssd_wal]", paper="write_behind")

    def test_where_logs_were_written_is_said_of_recoveries_alone(self):
        for written, why in (("ram", "written_on is for figures of recoveries"), ("disk", "written_on is one of ram")):
            with self.assertRaisesRegex(spec.SpecError, why):
                self.load_figure(f"written_on: {written}")

    def test_flags_of_plans_are_known_of_runs_alone(self):
        for flags in ("disks: 2", "disks_of_each: 2", "transactions: 10"):
            self.load_figure("claims: []", panels=f"{{a: {{{flags}}}}}")
            with self.assertRaisesRegex(spec.SpecError, "the engine has no switch"):
                self.load_figure(f"recover: {{{flags}}}")

    def test_a_scale_leaves_out_series_that_there_are(self):
        with open(os.path.join(spec.FOLDER, "scales.yaml"), encoding="utf-8") as file:
            scales = file.read()
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(spec, "FOLDER", folder):
            for name in ("none", "nobody"):
                with open(os.path.join(folder, "scales.yaml"), "w", encoding="utf-8") as file:
                    file.write(scales + "mine: {seconds: 1, repeats: 1, devices: 1, log_limit: 1M, threads: [1],"
                               f" base: {{}}, workloads: {{}}, without: {{{name}: [a/b, 'a/c, P']}}}}\n")
                with open(os.path.join(folder, "series.yaml"), "w", encoding="utf-8") as file:
                    file.write("none: {label: no log, flags: {log: LOG_NO}}\n")
                if name == "nobody":
                    with self.assertRaisesRegex(spec.SpecError, "scales.yaml: mine: series.yaml has no nobody"):
                        spec.load_scale("mine")
                    continue
                drawn = [spec.load_scale("mine").draws("none", *where) for where in
                         (("a/b", "P"), ("a/bc", "P"), ("a/c", "P"), ("a/c", "Q"), ("a/d", "P"))]
                self.assertEqual(drawn, [False, False, False, True, True])

    def test_a_panel_draws_what_it_names(self):
        figure = self.load_figure("claims: []", panels="{a: {cc: SILO}, b: {cc: SILO, series: []}}")
        self.assertEqual((figure.drawn_in("a"), figure.drawn_in("b")), (("none",), ()))
        self.assertEqual(figure.panels["b"], {"cc": "SILO"})
        self.assertEqual(figure.panel_of("b", "none"), "a")
        with self.assertRaisesRegex(spec.SpecError, "panel a: the figure's series have no eleda"):
            self.load_figure("claims: []", panels="{a: {series: [eleda]}}")

    def load_figure(self, claims_text, panels="{a: {}}", number="1", device="ram", paper="taurus", names="[none]",
                    measure="{metric: m, label: l}", draw="lines"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, paper, "fig.yaml")
            os.mkdir(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"figure: {number}\ntitle: t\nsection: s\ndevice: {device}\nstep: run\nbase: {{}}\n"
                           f"series: {names}\nx: {{flag: thread_cnt, values: [1], label: n}}\n"
                           f"y: {measure}\ndraw: {draw}\npanels: {panels}\n{claims_text}\n")
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
                                                                ("LOG_PLOVER", 8, 8), ("LOG_TAURUS", 8, 8),
                                                                ("LOG_DIFFERENTIAL", 8, 8)})
        self.assertEqual(self.logs_of("eleda/fig08", "eleda/fig16"), {("LOG_ELEDA", 1, 2), ("LOG_ELEDA", 1, 1)})

    def test_parallel_schemes_have_as_many_logs_on_a_ram_disk(self):
        self.assertEqual(self.logs_of("taurus/fig11_ram_disk"), {("LOG_SERIAL", 1, 1), ("LOG_PLOVER", 8, 1),
                                                                 ("LOG_BATCH", 8, 1), ("LOG_TAURUS", 8, 1),
                                                                 ("LOG_DIFFERENTIAL", 8, 1)})

    def test_real_directories_have_equally_many_logs(self):
        off = host_scale.HostScale("off", 2)
        for directories, logs in ((1, 8), (3, 9), (8, 8)):
            found = self.logs_of("taurus/fig05_logging", host=off, real_directories=directories)
            self.assertEqual(found, {("LOG_SERIAL", 1, 1), ("LOG_SERIAL", 1, directories),
                                     ("LOG_PLOVER", logs, directories), ("LOG_TAURUS", logs, directories),
                                     ("LOG_DIFFERENTIAL", logs, directories)})

    def test_one_log_has_the_buffer_of_all_parallel_ones(self):
        for figure, of_each, of_one in (("taurus/fig09", "2M", "16M"), ("taurus/fig05_logging", None, "64M"),
                                        ("eleda/fig08_threads", None, None)):
            jobs = [job for job in plan_of(figure).jobs.values() if job.logs]
            for job in jobs:
                one = job.flags["log"] in cells.ONE_LOG
                self.assertEqual(job.flags.get("log_buffer_size"), of_one if one else of_each, job.flags)

    def test_the_buffer_that_is_multiplied_is_the_engines(self):
        with open(os.path.join(spec.REPOSITORY, "config.h"), encoding="utf-8") as file:
            factor, shift = re.search(r"#define LOG_BUFFER_SIZE \((\d+) << (\d+)\)", file.read()).groups()
        self.assertEqual(planning.LOG_BUFFER_BYTES, int(factor) << int(shift))

    def test_flushes_wait_as_long_in_all_runs_of_a_figure(self):
        intervals, series = {}, spec.load_series()
        for figure in spec.select_figures([], spec.load_series()):
            if figure.x.flag == "log_flush_interval":
                continue
            jobs = plan_of(figure.name).jobs.values()
            intervals[figure.name] = {job.flags["log_flush_interval"] for job in jobs if job.logs and not job.is_cluster}
            devices = {series[name].device for name in figure.series}  # each may have an interval of its own
            self.assertLessEqual(len(intervals[figure.name]), len(devices), figure.name)
        self.assertEqual(intervals["taurus/fig09_number_of_disks"], {"1600us"})
        self.assertEqual(intervals["eleda/fig08_threads"], {"200us"})
        for cores, interval in ((87, "1600us"), (88, "200us")):  # 80 workers and eight writers
            jobs = plan_of("taurus/fig05_logging", scale="paper", host=host_scale.HostScale("cores", cores)).jobs
            self.assertEqual({job.flags["log_flush_interval"] for job in jobs.values() if job.logs}, {interval})

    def test_a_figure_may_sweep_the_flush_interval(self):
        plan = plan_of("ablation/flush_interval_latency")
        for point in plan.points["ablation/flush_interval_latency"]:
            self.assertEqual(plan.jobs[point.job].flags["log_flush_interval"], point.x)

    def test_numbers_and_texts_are_not_swept_together(self):
        figure = spec.select_figures(["ablation/stripe_unit"], spec.load_series())[0]
        mixed = dataclasses.replace(figure, x=dataclasses.replace(figure.x, values=[0, "4K"]))
        with self.assertRaisesRegex(spec.SpecError, "x has numbers and texts"):
            planning.swept(mixed, spec.load_scale("smoke"), 2)

    def test_a_recovery_that_is_swept_reads_the_logs_of_one_run(self):
        jobs = plan_of("ablation/read_block_size").jobs.values()
        self.assertEqual({len(job.recoveries) for job in jobs}, {4})

    def test_the_interval_that_is_multiplied_is_the_engines(self):
        self.assertEqual(planning.FLUSH_INTERVAL_US, config_values(["log_flush_interval"])["log_flush_interval"])

    def test_a_heap_needs_the_bytes_that_it_is_given(self):
        self.assertEqual(plan_of("write_behind/fig16").disk_bytes(), 2560 << 20)
        self.assertEqual(plan_of("write_behind/fig14").disk_bytes(), 512 << 20)

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
            self.assertEqual(bool(HOST.device_flag(figure.device, figure.machine)), figure.device != "ram", figure.name)
            if not figure.ours:
                self.assertEqual(figure.machine, figure.paper)

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


class DisksTest(unittest.TestCase):
    """Flags that stand for directories with a log each, and for the number of transactions."""

    def jobs_of(self, name, host=HOST, **more):
        """By series and x: the job and the flags of the recovery."""
        plan = plan_of(name, host=host, **more)
        (points,) = plan.points.values()
        return {(point.series, point.x): (plan.jobs[point.job], plan.jobs[point.job].recoveries.get(point.recovery))
                for point in points}

    def test_each_disk_has_a_log(self):
        jobs = self.jobs_of("differential/fig09_log_disks")
        self.assertEqual({x for _, x in jobs}, {1, 2, 4, 8})
        for (_, x), (job, _) in jobs.items():
            self.assertEqual((job.place.directories, job.flags["num_logger"]), (x, x))
            self.assertEqual(job.place.device, "disk29,channel=160000000")
            self.assertFalse({"disks", "backup_dirs"} & set(job.flags))

    def test_a_series_may_say_how_many(self):
        for (name, _), (job, _) in self.jobs_of("differential/fig09_slot_size").items():
            self.assertEqual(job.flags["num_logger"], int(name[-1]), name)

    def test_as_many_disks_may_be_for_the_backup(self):
        for (_, x), (job, recovery) in self.jobs_of("differential/fig08").items():
            self.assertEqual((job.place.directories, job.flags["num_logger"], job.flags["backup_dirs"]), (2 * x, x, x))
            self.assertNotIn("backup_dirs", recovery)

    def test_what_would_need_more_real_disks_than_there_are_is_left_out(self):
        off = host_scale.HostScale("off", 2)
        for disks, logs in ((1, {1}), (4, {1, 2, 4})):
            jobs = self.jobs_of("differential/fig09_log_disks", off, real_directories=disks)
            self.assertEqual({x for _, x in jobs}, logs)
        self.assertEqual({x for _, x in self.jobs_of("differential/fig08", off, real_directories=4)}, {2})
        ram = self.jobs_of("differential/fig05_log_processing_ram", off)
        self.assertEqual({job.place.directories for job, _ in ram.values()}, {1, 4})

    def test_a_number_of_transactions_ends_a_run_instead_of_a_time(self):
        for (_, x), (job, _) in self.jobs_of("differential/fig05_log_volume").items():
            self.assertEqual(job.flags["max_txns_per_thread"] * job.flags["thread_cnt"], x)
            self.assertTrue(job.is_counted)
            self.assertEqual(job.seconds, x / planning.COUNTED_PER_SECOND)
        self.assertFalse(any(job.is_counted for job in plan_of("taurus").jobs.values()))

    def test_logs_to_be_recovered_need_not_be_written_on_the_emulated_device(self):
        for (_, _), (job, recovery) in self.jobs_of("differential/fig07").items():
            self.assertEqual((job.place.kind, job.place.device), ("ram", ""))
            self.assertEqual(recovery["log_device"], "disk29,channel=160000000")
        both = plan_of("differential/fig05_log_processing", "differential/fig05_log_processing_ram")
        alone = plan_of("differential/fig05_log_processing_ram")
        self.assertEqual(set(both.jobs), set(alone.jobs))
        off = self.jobs_of("differential/fig07", host_scale.HostScale("off", 2), real_directories=4)
        for job, recovery in off.values():
            self.assertEqual((job.place.kind, "log_device" in recovery), ("disk", False))

    def test_a_series_has_its_own_recovery_and_its_own_metric_of_it(self):
        points = plan_of("differential/fig06").points["differential/fig06_breakdown"]
        self.assertEqual({(point.series, point.metric) for point in points},
                         {(name + part, metric) for name in ("pl2p", "dl1p") for part, metric in
                          (("", ""), ("_lr", "restart.log_read_seconds"), ("_lp", "restart.log_play_seconds"))})
        self.assertEqual(len({point.job for point in points}), len(points) / 3)
        plan = plan_of("differential/fig08")
        self.assertEqual({(point.series, plan.jobs[point.job].recoveries[point.recovery]["restart_level"])
                          for point in plan.points["differential/fig08_restart"]},
                         {("pl2p_seq", 2), ("dl1p_seq", 2), ("dl1p_para", 4)})
        runs = plan_of("taurus/fig11_ram_disk").points["taurus/fig11_ram_disk"]
        self.assertEqual({point.metric for point in runs}, {""})

    def test_a_scale_leaves_out_what_it_names(self):
        for scale, panels in (("smoke", {"YCSB"}), ("laptop", {"YCSB", "Payment", "New-Order"})):
            points = plan_of("taurus/fig07", scale=scale).points["taurus/fig07_recovery_nvme_2pl"]
            self.assertEqual({point.panel for point in points if point.series == "differential_runs"}, panels)

    def test_a_series_may_have_a_device_of_its_own_which_is_emulated_in_all_ways(self):
        for way in host_scale.WAYS:
            plan = plan_of("write_behind/fig14", host=host_scale.HostScale(way, 2), real_directories=4)
            for point in plan.points["write_behind/fig14_throughput"]:
                place = plan.jobs[point.job].place
                self.assertEqual((place.kind, place.device, place.directories),
                                 ("ram", {"nvm": "pm", "ssd": "ssd", "hdd": "hdd"}[point.series[:3]], 1), (way, point))
        ram = plan_of("write_behind/fig18")
        self.assertEqual({(job.place.kind, job.place.device) for job in ram.jobs.values()}, {("ram", "")})

    def test_a_series_with_a_device_of_its_own_has_one_log(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(spec, "FOLDER", folder):
            with open(os.path.join(folder, "series.yaml"), "w", encoding="utf-8") as file:
                file.write("mine: {label: l, flags: {log: LOG_TAURUS}, device: ssd}\n")
            with self.assertRaisesRegex(spec.SpecError, "mine: a series with a device of its own has one log"):
                spec.load_series()

    def test_the_disks_of_differential_logging_are_as_they_were(self):
        for way in ("cores", "throughput"):
            self.assertEqual(host_scale.HostScale(way, 2, 1e6).device_flag("disk29", "differential"),
                             "disk29,channel=160000000")
        self.assertEqual(host_scale.HostScale("off", 2).device_flag("disk29", "differential"), "")


class ListTest(unittest.TestCase):
    def test_the_artifact_has_the_table_of_figures(self):
        with open(os.path.join(spec.REPOSITORY, "ARTIFACT.md"), encoding="utf-8") as file:
            text = file.read()
        table = listing.table(spec.select_figures(["all"], spec.load_series()))
        self.assertTrue(table in text, "ARTIFACT.md's table is not what `scripts/exp list all --table` prints")

    def test_the_readme_of_the_experiments_has_the_table_of_ours(self):
        with open(os.path.join(spec.FOLDER, "README.md"), encoding="utf-8") as file:
            text = file.read()
        table = listing.table(spec.select_figures(["ablation"], spec.load_series()))
        self.assertTrue(table in text, "its table is not what `scripts/exp list ablation --table` prints")

    def test_figures_of_ours_are_listed_as_such(self):
        for figure in spec.select_figures([], spec.load_series()):
            self.assertEqual(listing.names([figure]).endswith(" (ours)"), figure.paper == "ablation", figure.name)


if __name__ == "__main__":
    unittest.main()
