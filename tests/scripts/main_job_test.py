"""The main job against stand-ins for the engine: what it runs, keeps, deletes, prints, and what it says in failure."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from support import REPOSITORY, clipped_texts, main_job_command, rows_of, run_main_job
from experiment import bars

ONE_CELL = "--cells=YCSB/NO_WAIT/LOG_TAURUS/LOG_DATA"


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *parts):
        return os.path.join(self.folder, *parts)


class SuccessTest(unittest.TestCase):
    """One good job, looked at from all sides."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        os.makedirs(os.path.join(cls.folder, "logs", "run-0001"))
        cls.done = run_main_job(cls.folder, "--cells=YCSB/NO_WAIT/LOG_TAURUS/LOG_DATA,TPCC/SILO/LOG_NO")

    def read(self, *parts):
        with open(os.path.join(self.folder, "out", *parts), "rb") as file:
            return file.read()

    def test_a_cell_with_a_log_takes_all_four_steps_and_one_without_only_runs(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)
        steps = [row["step"] for row in rows_of(self.folder)]
        self.assertEqual(steps, ["host", "pairs", "limits", "run", "recover", "crash", "crash_recover", "run"])
        self.assertIn("ok lost=0", self.done.stdout)

    def test_verified_logs_are_deleted_and_foreign_ones_stay(self):
        self.assertEqual(os.listdir(os.path.join(self.folder, "logs")), ["run-0001"])

    def test_plots_are_left_with_fonts_embedded_as_truetype(self):
        for name in ("throughput", "latency", "log_bytes", "recovery"):
            self.assertTrue(self.read("plots", f"{name}.png").startswith(b"\x89PNG"))
            pdf = self.read("plots", f"{name}-YCSB.pdf")
            self.assertIn(b"/FontFile2", pdf)
            self.assertNotIn(b"/Type3", pdf)

    def test_nothing_that_a_plot_says_is_clipped(self):
        rows = rows_of(self.folder)
        for metric in bars.METRICS:
            for workload in bars.workloads_of(rows):
                for figure in (bars.draw_column(rows, metric, workload),
                               bars.draw_alone(rows, metric, workload, "dark")):
                    self.assertFalse(clipped_texts(figure), f"{metric.name}, {workload}")
                    bars.plt.close(figure)

    def test_the_report_has_plots_before_tables_and_a_name_for_each_figure_on_a_narrow_page(self):
        page = self.read("report.html").decode()
        self.assertLess(page.index("<h2>Plots</h2>"), page.index("<table"))
        results = page.split("<h2>Results</h2>")[1].split("</table>")[0].split("<tbody>")[1]
        cells = re.findall(r"<td[^>]*>", results)
        self.assertTrue(cells)
        self.assertFalse([cell for cell in cells if "data-label" not in cell and "key" not in cell])

    def test_the_report_stands_alone_and_counts(self):
        page = self.read("report.html").decode()
        self.assertIn("5 of 5 steps succeeded; 2 of 2 recoveries verified", page)
        self.assertNotIn('src="http', page)

    def test_the_report_shows_which_pairs_there_are_and_why_not_others(self):
        report = self.read("report.html").decode()
        self.assertIn('<td class="name key">LOG_PLOVER, LOG_COMMAND</td><td class="name" data-label="NO_WAIT">1</td>',
                      report)
        self.assertIn("<li>rows, not &lt;commands&gt;</li>", report)

    def test_the_table_fits_120_columns(self):
        lines = self.done.stdout.split("clean end", 1)[1].splitlines()
        self.assertLessEqual(max(len(line) for line in lines if not line.startswith(("note", "report"))), 120)


class RoundsTest(FolderTest):
    def job(self, *arguments, **how):
        # Without --short, which leaves the rounds out.
        command = main_job_command(self.folder, "--no_limits", "--no_report", "--log_limit=64M", *arguments)
        command.remove("--short")
        return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=self.folder,
                              env={**os.environ, **how})

    def test_what_is_compared_with_is_measured_three_times_in_alternation(self):
        done = self.job("--cells=YCSB/NO_WAIT/LOG_NO,YCSB/WAIT_DIE/LOG_NO,YCSB/NO_WAIT/LOG_TAURUS/LOG_COMMAND")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = rows_of(self.folder)[2:]
        self.assertEqual([row["round"] for row in rows[:15]], [1] * 5 + [2] * 5 + [3] * 5)
        # Two of them are for peers as well, and only what logs takes further steps.
        self.assertEqual(sorted(row["lookahead"] is None for row in rows[:5]), [False, False, True, True, True])
        self.assertEqual([row["step"] for row in rows[15:]], ["run", "recover", "crash", "crash_recover"])
        self.assertEqual(os.listdir(self.path("logs")), [])
        self.assertIn("look-ahead 0", done.stdout)

    def test_one_round_is_none(self):
        self.job("--cells=YCSB/NO_WAIT/LOG_NO", "--rounds=1")
        self.assertEqual([row["step"] for row in rows_of(self.folder)], ["host", "pairs", "run"])

    def test_a_failed_round_names_its_command(self):
        done = self.job("--cells=YCSB/NO_WAIT/LOG_NO", FAKE_FAIL="run")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: exit status 4: error: pretended failure of run", done.stdout)
        self.assertIn("again:", done.stdout)
        self.assertIn("FAILED", done.stdout.split("clean end", 1)[1])


class KeepingTest(FolderTest):
    def test_keep_logs_keeps_them(self):
        run_main_job(self.folder, ONE_CELL, "--keep_logs", "--no_report")
        (job,) = os.listdir(self.path("logs"))
        kept = os.listdir(self.path("logs", job, "YCSB-NO_WAIT-LOG_TAURUS-LOG_DATA"))
        self.assertEqual(sorted(kept), ["clean", "crash"])

    def test_an_older_result_is_kept_under_its_time(self):
        for _ in range(2):
            run_main_job(self.folder, "--cells=YCSB/SILO/LOG_NO", "--no_limits", "--no_report")
        names = [name for name in os.listdir(self.path("out")) if name.endswith(".jsonl")]
        self.assertEqual(len(names), 2)


class FailureTest(FolderTest):
    def test_a_failed_recovery_names_its_command_and_keeps_its_logs(self):
        done = run_main_job(self.folder, ONE_CELL, "--no_report", fail="recover")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: exit status 4: error: pretended failure of recover", done.stdout)
        self.assertIn("-Lr1", done.stdout)
        self.assertIn("logs that were kept", done.stdout)

    def test_what_follows_a_failed_run_is_skipped_and_the_other_half_goes_on(self):
        run_main_job(self.folder, ONE_CELL, "--no_report", fail="run")
        states = {row["step"]: row["status"] for row in rows_of(self.folder)}
        self.assertEqual([states[s] for s in ("run", "recover", "crash", "crash_recover")],
                         ["failed", "skipped", "ok", "ok"])

    def test_a_failed_crash_run_skips_its_recovery(self):
        run_main_job(self.folder, ONE_CELL, "--no_report", fail="crash")
        self.assertEqual(rows_of(self.folder)[-1]["status"], "skipped")

    def test_the_report_shows_a_failure(self):
        run_main_job(self.folder, ONE_CELL, fail="crash_recover")
        with open(self.path("out", "report.html"), encoding="utf-8") as file:
            self.assertIn("What failed", file.read())

    def test_missing_limits_fail_but_the_cells_run(self):
        done = run_main_job(self.folder, "--cells=YCSB/SILO/LOG_NO", "--no_report", "--host_limits=/nonexistent")
        self.assertEqual(rows_of(self.folder)[-1]["status"], "ok")
        self.assertIn("make micro", done.stdout)

    def test_interrupt_keeps_the_results_so_far(self):
        command = main_job_command(self.folder, ONE_CELL, "--no_limits", "--no_report")
        command[command.index("--short")] = "--seconds=30"
        command.remove("--seconds=0.1")
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        time.sleep(1.5)
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=30)
        self.assertEqual(child.returncode, 130)
        self.assertIn("interrupted", output)
        self.assertEqual([row["step"] for row in rows_of(self.folder)], ["host", "pairs"])


class RefusalTest(FolderTest):
    def assert_refused(self, status, words, *arguments):
        done = run_main_job(self.folder, *arguments)
        self.assertEqual(done.returncode, status)
        self.assertIn(words, done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_unknown_cells_are_named_with_those_there_are(self):
        self.assert_refused(2, "YCSB/NO_WAIT/LOG_NO", "--cells=nix")

    def test_options_are_read_before_yaml_is_installed(self):
        for words, status, why in ((["--parse_only"], 0, ""), (["--threads=0"], 2, "--threads"),
                                   (["--list_cells"], 2, "needs python3-yaml")):
            code = ("import sys; sys.modules['yaml'] = None; import main_job; "
                    f"sys.exit(main_job.main({words}))")
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                  cwd=os.path.join(REPOSITORY, "scripts"))
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(why, done.stderr)

    def test_zero_threads(self):
        self.assert_refused(2, "--threads", "--threads=0")

    def test_a_size_without_sense(self):
        self.assert_refused(2, "512M or 1G", "--log_limit=big")

    def test_too_little_space(self):
        line = "error: .* has [0-9]+ MiB free and the job needs [0-9]+ MiB"
        command = main_job_command(self.folder, ONE_CELL, "--log_limit=1000000G")
        command.remove("--short")
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, line)

    def test_a_missing_binary_names_the_build(self):
        self.assert_refused(1, "make rundb-all", "--binary=/nonexistent")

    def test_an_output_that_is_a_file(self):
        with open(self.path("out"), "w", encoding="utf-8"):
            pass
        self.assert_refused(1, "cannot write", ONE_CELL)


if __name__ == "__main__":
    unittest.main()
