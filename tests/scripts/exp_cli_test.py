"""scripts/exp at its edges: wrong arguments, places that cannot be written to, killed runs, results side by side."""
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import support
import exp
from exp_case import ExpCase
from experiment import comparison, host_scale, planning, running, spec

SCRIPTS = os.path.join(support.REPOSITORY, "scripts")


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

    def test_a_ram_disk_that_is_too_small_is_named_with_its_flag(self):
        with mock.patch.object(running, "free_bytes", return_value=64 << 20):
            status, said = self.exp("run", "eleda/fig20", ram_dir=os.path.join(self.out, "ram"))
        self.assertEqual(status, 2)
        self.assertRegex(said, "error: .*/ram has 64 MiB free, the plan needs 563 MiB; name another --ram_dir\n")

    def test_rows_of_others_are_refused(self):
        with open(os.path.join(self.out, "results.jsonl"), "w", encoding="utf-8") as file:
            file.write('{"step": "host", "status": "ok"}\n')
        with self.assertRaisesRegex(running.Refused, f"{self.out} has rows that scripts/exp did not write"):
            running.load_rows(self.out)

    def test_what_was_never_run_is_not_reported_in_any_way(self):
        for devices in host_scale.WAYS:
            self.assertRefused(self.exp("report", "eleda/fig20", devices=devices), "has no results with --devices")
        self.assertEqual(os.listdir(self.out), [])


class ArgumentTest(ExpCase):
    def figures_of(self, *words):
        status, said = self.exp("plan", *words)
        self.assertEqual(status, 0, said)
        return [line.split()[0] for line in said.splitlines()[1:]]

    def test_flags_may_stand_before_the_names_of_figures(self):
        self.assertEqual(self.figures_of("--scale", "laptop", "eleda/fig20"), ["eleda/fig20_crawling"])
        self.assertEqual(self.figures_of("eleda/fig20", "--scale=laptop", "fig21_b"),
                         ["eleda/fig20_crawling", "eleda/fig21_bitmap"])

    def test_a_figures_number_needs_no_zero(self):
        self.assertEqual(self.figures_of("fig9"), self.figures_of("fig09"))
        self.assertEqual(self.figures_of("eleda/fig9"), ["eleda/fig09_latency"])
        self.assertEqual(self.exp("plan", "fig1")[0], 2)  # and is no beginning of fig12

    def test_without_names_the_papers_figures_are_planned(self):
        self.assertEqual(self.figures_of(), self.figures_of("all"))
        self.assertFalse([name for name in self.figures_of() if name.startswith("ablation/")])

    def test_a_whole_name_is_no_part_of_another(self):
        self.assertEqual(self.figures_of("eleda/fig08_threads"), ["eleda/fig08_threads"])
        self.assertEqual(self.figures_of("fig08_threads"), ["eleda/fig08_threads"])
        self.assertEqual(self.figures_of("fig08_thr"), ["eleda/fig08_threads", "eleda/fig08_threads_tmpfs"])

    def test_what_an_action_lacks_is_told_before_it_begins(self):
        with mock.patch.object(exp.util, "find_spec", side_effect=lambda name: None if name == "matplotlib" else True):
            self.assertEqual(self.figures_of("eleda/fig20"), ["eleda/fig20_crawling"])
            self.assertEqual(self.exp("run", "eleda/fig20"),
                             (2, "error: `exp run` needs matplotlib; scripts/setup.sh installs it\n"))

    def test_a_plan_loads_no_drawing_library(self):
        code = ("import sys; sys.modules['matplotlib'] = sys.modules['numpy'] = None; import exp; "
                f"sys.exit(exp.main(['plan', 'all', '--out={self.out}']))")
        done = subprocess.run([sys.executable, "-c", code], cwd=SCRIPTS, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_reader_that_leaves_is_no_traceback(self):
        line = f"{sys.executable} {SCRIPTS}/exp.py list --table | true; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (141, ""))

    def test_a_damaged_result_is_a_line(self):
        os.makedirs(self.results())
        path = os.path.join(self.results(), "host-cores.json")
        for text in (b"\xff\xfe", b'{"way": "cores", "cores": 2, "per_core": NaN}', b"[]", b'{"nix": 1}'):
            with open(path, "wb") as file:
                file.write(text)
            status, said = self.exp("plan", "eleda/fig20")
            self.assertEqual((status, said), (2, f"error: {path} is damaged; without it the host is measured again\n"))

    def test_a_result_that_is_no_number_is_a_gap_and_no_traceback(self):
        self.exp("run", "eleda/fig20")

        def to_nan(row):
            row["record"]["metrics"]["central_log"] = {"crawling_ratio": float("nan")}
        self.change_rows(to_nan)
        with open(os.path.join(self.results(), "results.jsonl"), "ab") as file:
            file.write(b"\xff\xfe\x00\n")
        status, said = self.exp("report", "eleda/fig20", draw=True)
        self.assertEqual(status, 1, said)
        self.assertIn("error: eleda/fig20_crawling: panel", said)


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
        for more, text in (({"panels": "{a: }"}, "panel a: a mapping of flags"),
                           ({"panels": "[a]"}, "panels: a mapping"), ({"base": ""}, "base: a mapping"), ({"base": "[a]"}, "base: a mapping")):
            with self.assertRaisesRegex(spec.SpecError, f"fig.yaml: {text}"):
                self.figure(**more)

    def test_switches_that_the_engine_has_not_are_refused(self):
        for more in ({"base": "{workload: YCSB, zipf_thta: 1}"}, {"panels": "{a: {zipf_thta: 1}}"}):
            with self.assertRaisesRegex(spec.SpecError, "fig.yaml: the engine has no switch zipf_thta"):
                self.figure(**more)

    def test_numbers_that_are_none_are_refused(self):
        for value in (".nan", ".inf", "-.inf", "[1, .nan]"):
            with self.assertRaisesRegex(spec.SpecError, "fig.yaml.*is not a number that can be used"):
                self.figure(base=f"{{workload: YCSB, zipf_theta: {value}}}")

    def test_a_file_that_is_no_text_is_refused_in_a_line(self):
        for content in (b"\x00\x01", b"\xff\xfe\xfd", b"\x80", b"{" * 5000, b"a: 9999-99-99"):
            with tempfile.NamedTemporaryFile(suffix=".yaml") as file:
                file.write(content)
                file.flush()
                with self.assertRaises(spec.SpecError) as refused:
                    spec.load_figure(file.name, {})
            self.assertNotIn("\n", str(refused.exception))

    def test_a_run_needs_a_workload(self):
        with self.assertRaisesRegex(spec.SpecError, "neither base nor the panel has a workload"):
            planning.make_plan([self.figure(base="{}")], spec.load_series(), spec.load_scale("smoke"),
                               host_scale.HostScale("cores", 2))


class ReproduceTest(unittest.TestCase):
    """scripts/reproduce.sh beside stand-ins that write down how they are called."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "scripts")
        os.mkdir(self.folder)
        shutil.copy(os.path.join(SCRIPTS, "reproduce.sh"), self.folder)
        called = f'echo "${{0##*/}} $*" >> {self.folder}/called\n'
        self.stand_in("setup.sh", f'[ "$1" != --python ] || exit $NO_PYTHON\n{called}')
        self.stand_in("exp", f'{called}case "$*" in *fig99*) echo "error: no figure" >&2; exit 2;; esac\n')
        self.stand_in("build.py", called)

    def stand_in(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)

    def reproduce(self, *words, no_python=0):
        """Exit status, what was said, what was called."""
        done = subprocess.run([os.path.join(self.folder, "reproduce.sh"), *words], capture_output=True, text=True,
                              env={**os.environ, "NO_PYTHON": str(no_python)})
        called = os.path.join(self.folder, "called")
        if not os.path.exists(called):
            return done.returncode, done.stdout + done.stderr, []
        with open(called, encoding="utf-8") as file:
            return done.returncode, done.stdout + done.stderr, file.read().splitlines()

    def test_a_wrong_argument_is_told_before_anything_is_installed_or_built(self):
        self.assertEqual(self.reproduce("fig99"), (2, "error: no figure\n", ["exp plan fig99"]))

    def test_without_python_it_is_told_before_anything_is_built(self):
        self.assertEqual(self.reproduce("fig99", no_python=1),
                         (2, "error: no figure\n", ["setup.sh ", "exp plan fig99"]))

    def test_help_starts_nothing_wherever_it_stands(self):
        status, said, called = self.reproduce("taurus/fig05", "--help")
        self.assertEqual((status, "scripts/reproduce.sh all" in said, called), (0, True, []))

    def test_what_is_right_is_built_and_run(self):
        status, _, called = self.reproduce("fig05")
        self.assertEqual((status, called[-1]), (0, "exp run fig05"))
        self.assertIn("build.py", " ".join(called))


class LockTest(ExpCase):
    def in_another_process(self, code, **how):
        os.chmod(self.out, 0o755)
        program = f"import sys; sys.path.insert(0, {SCRIPTS!r}); from experiment import running; {code}"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, **how)
        return done.stdout + done.stderr

    def test_it_is_the_same_whatever_tmpdir_says(self):
        found = self.in_another_process("print(running.LOCK_PATH)", env={**os.environ, "TMPDIR": self.out})
        self.assertEqual(found, "/tmp/dbx1000-durable.lock\n")

    @unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
    def test_another_user_may_take_it_next_and_not_now(self):
        before = os.umask(0o077)
        self.addCleanup(os.umask, before)
        take = "running.HostLock().__enter__(); print('taken')"
        environment = {**os.environ, "DBX_EXPERIMENT_LOCK": running.LOCK_PATH}
        with running.HostLock():
            self.assertIn("another experiment runs on this host",
                          self.in_another_process(take, env=environment, user=65534))
        self.assertEqual(os.stat(running.LOCK_PATH).st_mode & 0o777, 0o666)
        os.chmod(running.LOCK_PATH, 0o644)  # as earlier builds left it
        self.assertEqual(self.in_another_process(take, env=environment, user=65534), "taken\n")

    def test_one_that_cannot_be_opened_is_a_line(self):
        with mock.patch.object(running, "LOCK_PATH", "/proc/nowhere/lock"):
            status, said = self.exp("run", "eleda/fig20")
        self.assertEqual((status, said.splitlines()[-1]), (2, "error: /proc/nowhere/lock, which keeps two experiments "
                         "apart, cannot be opened: No such file or directory; its owner or root can delete it"))


class KilledRunTest(ExpCase):
    def work(self):
        return [name for name in os.listdir(self.out) if name.startswith(running.WORK_PREFIX)]

    def test_sigterm_leaves_no_logs(self):
        command = [sys.executable, os.path.join(SCRIPTS, "exp.py"), "run", "eleda/fig20", "--seconds=60",
                   "--devices=cores", f"--binary={support.FAKE_RUNDB}", f"--ram_dir={self.out}",
                   f"--out={self.out}/out"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, "DBX_EXPERIMENT_LOCK": running.LOCK_PATH}) as child:
            deadline = time.monotonic() + 30
            while not self.work() and time.monotonic() < deadline:
                time.sleep(0.02)
            self.assertTrue(self.work())
            child.terminate()
            said = child.communicate(timeout=30)[0]
        self.assertEqual((child.returncode, self.work()), (143, []), said)
        self.assertIn("interrupted; the same command goes on where it stopped", said)

    def test_the_next_run_removes_what_a_killed_one_left_and_nothing_else(self):
        results = running.WORK_PREFIX + "results"
        for name in (running.WORK_PREFIX + "left/d0", results, "exp-others"):
            os.makedirs(os.path.join(self.out, name))
        with open(os.path.join(self.out, running.WORK_PREFIX + "left", running.WORK_MARKER), "w", encoding="ascii"):
            pass
        with running.work_directory(self.out) as held:
            self.assertEqual(self.exp("run", "eleda/fig20")[0], 0)
            self.assertEqual(sorted(self.work()), sorted([os.path.basename(held), results]))
        self.assertIn("exp-others", os.listdir(self.out))

    def test_after_a_line_that_was_cut_off_rows_are_kept(self):
        self.exp("run", "eleda/fig20")
        with open(os.path.join(self.results(), "results.jsonl"), "r+b") as file:
            file.truncate(os.path.getsize(file.name) - 10)
        self.assertEqual(len(self.rows()), 1)
        self.exp("run", "eleda/fig20")
        self.assertEqual(len(self.rows()), 2)


class CompareTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, *steps, factor="0.5", interval="200us"):
        """A result. `steps`: (scheme, repeat, what it ran at, what its recovery by 2 threads ran at)."""
        os.mkdir(os.path.join(self.folder, name))
        with open(os.path.join(self.folder, name, "results.jsonl"), "w", encoding="utf-8") as file:
            for scheme, repeat, *rates in steps:
                device = f"nvme:{factor}"
                of_all = f"--log_dir=/{name}/{repeat} --log_device={device} --log_flush_interval={interval}"
                for step, rate, flags in zip(("run", "recover"), rates, (f"--log={scheme} --seed={repeat}", "-t2")):
                    row = {"job": scheme + factor, "recovery": "r" * (step == "recover"), "repeat": repeat,
                           "step": step, "status": "ok", "command": f"/{name}/rundb-all {flags} {of_all}",
                           "place": {"kind": "ram", "device": device, "directories": 2},
                           "record": {"metrics": {"throughput": rate}}}
                    file.write(json.dumps(row) + "\n")
        return os.path.join(self.folder, name)

    def test_steps_match_by_what_was_asked_for_and_not_by_the_hosts_speed(self):
        a = self.write("a", ("LOG_TAURUS", 0, 1e6, 4e6), ("LOG_TAURUS", 1, 3e6, 4e6))
        b = self.write("b", ("LOG_TAURUS", 0, 4e6, 2e6), factor="0.7", interval="1600us")
        run, recovery, *rest = comparison.compare(a, b).splitlines()
        label = "rundb-all --log=LOG_TAURUS --log_device=nvme"
        self.assertEqual(run, f"   2,000.0 k     4,000.0 k    2.00x  {label} (ram, 2)")
        self.assertEqual(recovery, f"   4,000.0 k     2,000.0 k    0.50x  {label} THEN rundb-all --log_device=nvme -t2 "
                                   "(ram, 2)")
        self.assertEqual(rest[-2:], ["note: devices differ: nvme:0.5 and nvme:0.7",
                                     "note: flush intervals differ: 200us and 1600us"])

    def test_figures_of_a_device_other_than_its_factor_are_part_of_the_step(self):
        a = self.write("a", ("LOG_TAURUS", 0, 1e6), factor="0.5,channel=160M")
        b = self.write("b", ("LOG_TAURUS", 0, 1e6), factor="0.7,channel=160M")
        self.assertIn(" --log_device=nvme,channel=160M ", comparison.compare(a, b))
        without = self.write("without", ("LOG_TAURUS", 0, 1e6))
        with self.assertRaisesRegex(running.Refused, "have no step in common"):
            comparison.compare(a, without)

    def test_a_flush_interval_that_was_swept_is_part_of_the_step(self):
        a = self.write("a", ("LOG_TAURUS", 0, 1e6), interval="100")
        self.assertIn("--log_flush_interval=100 ", comparison.compare(a, a))
        b = self.write("b", ("LOG_TAURUS", 0, 1e6), interval="200")
        with self.assertRaisesRegex(running.Refused, "have no step in common"):
            comparison.compare(a, b)

    def test_steps_without_a_partner_are_counted(self):
        a = self.write("a", ("LOG_TAURUS", 0, 1e6), ("LOG_SERIAL", 0, 1e6), ("LOG_PLOVER", 0, 1e6))
        b = self.write("b", ("LOG_TAURUS", 0, 1e6), ("LOG_ELEDA", 0, 1e6))
        self.assertEqual(comparison.compare(a, b).splitlines()[1:], [
            f"without a partner: 2 of 3 steps of {a}", f"without a partner: 1 of 2 steps of {b}"])

    def test_results_that_have_nothing_to_compare_are_refused(self):
        a, b = self.write("a", ("LOG_TAURUS", 0, 1e6)), self.write("b", ("LOG_ELEDA", 0, 1e6))
        with self.assertRaisesRegex(running.Refused, "have no step in common"):
            comparison.compare(a, b)
        with self.assertRaisesRegex(running.Refused, f"{self.folder}/none has no results of runs"):
            comparison.compare(a, os.path.join(self.folder, "none"))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(exp.main(["compare", a, a]), 0)
        self.assertIn("1.00x", said.getvalue())


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
