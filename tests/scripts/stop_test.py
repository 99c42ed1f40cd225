"""SIGINT and SIGTERM at a hundred random moments: each script ends within seconds, by that signal, and leaves nothing.

The scripts run in forks of this process, which has their modules loaded, so that a moment costs little. DBX_STOP_SEED
makes the moments of a failure again.
"""
import contextlib
import functools
import os
import random
import signal
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import support
import exp
import main_job
import run_tests
import stop
import torture
from experiment import claims, data, planning, running  # noqa: F401  (loaded here once)

MOMENTS = 100
AT_A_TIME = 4
DELAY_MAX_SECONDS = 0.5
END_SECONDS_MAX = 20  # of a loaded machine; a hang lasts for ever
FAKE_ENVIRONMENT = {"FAKE_RUN_SECONDS": "0.05"}


def start_exp(folder):
    running.LOCK_PATH = os.path.join(folder, "lock")
    return exp.main, ["run", "eleda/fig20", "--seconds=30", "--devices=cores", f"--binary={support.FAKE_RUNDB}",
                      f"--ram_dir={folder}", f"--log_dir={folder}", f"--out={folder}/out"]


def start_main_job(folder):
    words = support.main_job_command(folder, "--cells=YCSB/NO_WAIT/LOG_TAURUS/LOG_DATA", "--no_limits", "--no_report")[2:]
    return main_job.main, [word for word in words if word not in ("--short", "--seconds=0.1")] + ["--seconds=30"]


def start_torture(folder):
    return torture.main, ["--seconds=60", "--jobs=2", f"--state={folder}/state.json",
                          f"--torture={os.path.relpath(support.FAKE_TORTURE, support.REPOSITORY)}"]


def start_run_tests(folder):
    # Its phase starts a process of its own, whose command line names the folder.
    line = f"{sys.executable} -c 'import time; time.sleep(60)' {folder} & wait"
    run_tests.LOG_DIR = os.path.join(folder, "log")
    run_tests.plan = lambda quick, nightly: [run_tests.Phase("sleeps", ["bash", "-c", line])]
    return run_tests.main, []


SCRIPTS = (start_exp, start_main_job, start_torture, start_run_tests)


def processes_with(word: str) -> list[str]:
    """Command lines of living processes that contain it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            line = file.read().replace(b"\0", b" ").decode("utf-8", "replace")
            if word in line:
                found.append(line)
    return found


def run_script(start, folder: str, ready: int) -> None:
    """In the fork: as if it were the script's own process. Does not return."""
    output = os.open(os.path.join(folder, "output"), os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(output, 1), os.dup2(output, 2)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    running.Progress = functools.partial(running.Progress, stream=sys.stdout)
    status = 99
    try:
        os.environ.update(FAKE_ENVIRONMENT)
        main, words = start(folder)
        sys.argv = ["script", *words]
        stop.install()
        os.write(ready, b"x")
        stop.run(main)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 98
    except BaseException as error:  # a traceback of the script's
        print(f"Traceback: {error!r}", file=sys.stderr)
    finally:
        sys.stdout.flush()
        os._exit(status)


class Moment:
    """One script, one signal, one moment."""

    def __init__(self, number: int, rng: random.Random):
        self.start_ = SCRIPTS[number % len(SCRIPTS)]
        self.signal_ = rng.choice((signal.SIGINT, signal.SIGTERM))
        self.delay_ = rng.uniform(0, DELAY_MAX_SECONDS)
        self.what = f"{self.start_.__name__}, {self.signal_.name} after {self.delay_:.4f} s"

    def run(self) -> str:
        """What went wrong, or ''."""
        with tempfile.TemporaryDirectory(prefix="stop-") as folder:
            ready, told = os.pipe()
            child = os.fork()
            if child == 0:
                run_script(self.start_, folder, told)
            os.read(ready, 1)
            os.close(ready), os.close(told)
            time.sleep(self.delay_)
            os.kill(child, self.signal_)
            status = wait_for(child)
            wrong = self._judge(status, folder)
            with open(os.path.join(folder, "output"), encoding="utf-8") as file:
                said = file.read()
            return f"{self.what}: {wrong}\n{said[-2000:]}" if wrong or "Traceback" in said else ""

    def _judge(self, status, folder: str) -> str:
        if status is None:
            return f"no end after {END_SECONDS_MAX} s"
        if status != 128 + self.signal_:
            return f"exit status {status}"
        logs = [path for path, _, files in os.walk(folder) for name in files if name == "run.json"]
        work = [name for name in os.listdir(folder) if name.startswith(running.WORK_PREFIX)]
        jobs = os.listdir(os.path.join(folder, "logs")) if os.path.isdir(os.path.join(folder, "logs")) else []
        if logs or work or jobs:
            return f"it left {logs + work + jobs}"
        deadline = time.monotonic() + 5  # what was killed takes a moment to go
        while (left := processes_with(folder)) and time.monotonic() < deadline:
            time.sleep(0.02)
        return f"still there: {left}" if left else ""


def wait_for(child: int):
    """Its exit status; None if it had to be killed."""
    deadline = time.monotonic() + END_SECONDS_MAX
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


class StopTest(unittest.TestCase):
    def test_a_signal_at_any_moment_ends_a_script_and_leaves_nothing(self):
        seed = int(os.environ.get("DBX_STOP_SEED", time.time_ns() % 1_000_000))
        rng = random.Random(seed)
        moments = [Moment(number, rng) for number in range(MOMENTS)]
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            wrong = [text for text in pool.map(Moment.run, moments) if text]
        self.assertFalse(wrong, f"DBX_STOP_SEED={seed}\n" + "\n".join(wrong))


if __name__ == "__main__":
    unittest.main()
