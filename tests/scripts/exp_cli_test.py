"""scripts/exp at its edges: wrong arguments, foreign results, places that cannot be written to, results side by side."""
import os
import tempfile
import unittest

import support  # noqa: F401 (sets the path)
import exp
from exp_case import ExpCase
from experiment import host_scale, planning, running, spec


class RefusalTest(ExpCase):
    def assertRefused(self, done, text):
        status, said = done
        self.assertEqual(status, 2, said)
        self.assertRegex(said, rf"\Aerror: [^\n]*{text}[^\n]*\n\Z")

    def test_numbers_that_no_run_can_have_are_refused(self):
        for seconds in ("inf", "nan", "-5", "0", "600"):
            self.assertRefused(self.exp("plan", "taurus/fig05", seconds=seconds), "--seconds is a number above 0")
        for repeats in ("-2", "0"):
            self.assertRefused(self.exp("plan", "taurus/fig05", f"--repeats={repeats}"), "--repeats is 1 or more")

    def test_log_directories_without_a_name_are_refused(self):
        for action in ("plan", "run"):
            self.assertRefused(self.exp(action, "taurus/fig05", devices="off", log_dir=","), "--log_dir names no dir")

    def test_an_out_that_cannot_be_written_to_is_named(self):
        file = os.path.join(self.out, "file")
        with open(file, "w", encoding="utf-8"):
            pass
        for out in (file, "/proc/nowhere"):
            for words in (("run", "eleda/fig20"), ("job", "a-0", "eleda/fig20")):
                self.assertRefused(self.exp(*words, out=out), f"no results can be written to {out}")

    def test_rows_of_others_are_refused(self):
        with open(os.path.join(self.out, "results.jsonl"), "w", encoding="utf-8") as file:
            file.write('{"step": "host", "status": "ok"}\n')
        with self.assertRaisesRegex(running.Refused, f"{self.out} has rows that scripts/exp did not write"):
            running.load_rows(self.out)

    def test_what_was_never_run_is_not_reported_in_any_way(self):
        for devices in host_scale.WAYS:
            self.assertRefused(self.exp("report", "eleda/fig20", devices=devices), "has no results with --devices")
        self.assertEqual(os.listdir(self.out), [])


class FigureFileTest(unittest.TestCase):
    def figure(self, base="{workload: YCSB}", panels="{a: {}}"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "fig.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"figure: 1\ntitle: t\nsection: s\ndevice: ram\nstep: run\nbase: {base}\nseries: [none]\n"
                           "x: {flag: thread_cnt, values: [1], label: n}\ny: {metric: m, label: l}\n"
                           f"panels: {panels}\n")
            return spec.load_figure(path, spec.load_series())

    def test_what_ought_to_be_a_mapping_is_named(self):
        for more, text in (({"panels": "{a: }"}, "panel a: a mapping of flags"), ({"panels": "[a]"}, "panels: a mapping"),
                           ({"base": ""}, "base: a mapping"), ({"base": "[a]"}, "base: a mapping")):
            with self.assertRaisesRegex(spec.SpecError, f"fig.yaml: {text}"):
                self.figure(**more)

    def test_a_run_needs_a_workload(self):
        with self.assertRaisesRegex(spec.SpecError, "neither base nor the panel has a workload"):
            planning.make_plan([self.figure(base="{}")], spec.load_series(), spec.load_scale("smoke"),
                               host_scale.HostScale("cores", 2))


class LayoutTest(ExpCase):
    def test_each_way_has_a_directory_and_the_default_has_the_scales_name(self):
        for devices, folder in (("throughput", "smoke"), ("cores", "smoke-cores"), ("off", "smoke-off")):
            words = exp.parse_arguments(["plan", "eleda/fig20", f"--devices={devices}", f"--out={self.out}"])
            self.assertEqual(exp.Experiment(words).out, os.path.join(self.out, folder))

    def test_the_report_keeps_the_figures_that_were_run_before(self):
        self.exp("run", "eleda/fig20")
        self.exp("run", "taurus/fig14")
        for name in ("eleda-fig20_crawling", "taurus-fig14_transaction_length"):
            self.assertIn(f'<h2 id="{name}">', self.page())
        self.assertEqual(self.page().count("<h2 id="), 2)
        self.assertIn("2 figures at scale smoke", self.page())

    def test_a_figure_that_another_one_gave_points_to_is_not_reported(self):
        words = exp.parse_arguments(["plan", "taurus/fig05_logging", "--devices=cores", f"--out={self.out}"])
        experiment = exp.Experiment(words)  # its runs are those of taurus/fig07, whose recoveries are missing
        names = [figure.name for figure in experiment._figures_of_page(
            [{"job": job, "recovery": ""} for job in experiment.plan.jobs])]
        self.assertIn("taurus/fig05_logging_nvme_2pl", names)
        self.assertNotIn("taurus/fig07_recovery_nvme_2pl", names)


if __name__ == "__main__":
    unittest.main()
