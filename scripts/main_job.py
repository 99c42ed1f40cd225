#!/usr/bin/env python3
"""The main job: every cell run, crashed, recovered and verified; then a table, plots and a report.

Cells without a log and a few others, which all figures are read against, are measured three times first, in rounds.

run.sh calls it after the build. Per cell with a log: a measured run to a clean end and its recovery, then a
run that is killed with SIGKILL at a random time and its recovery; both recoveries are verified. Cells without
a log run only. Results are appended to OUT/results.jsonl step by step, so that nothing is lost by Ctrl-C.
"""
from __future__ import annotations

import argparse
import contextlib
import dataclasses
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stop
if __name__ == "__main__":
    stop.install()
import cells as cells_module
import host
from cells import Cell, Point, Settings
from child import KillClock
from experiment import records, summary
from pairs import list_pairs, matrix_of
from progress import Progress

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STEP_TIMEOUT_SECONDS = 300
KILL_ATTEMPTS = 4
# When a run is killed, as shares of what its cell's measured run took. Hundreds of flushes are enough to crash among:
# all that was run until then is replayed twice, once by a single thread.
KILL_SHARES = (0.02, 0.25)
ACK_FILE = "acknowledged"
ACK_FILE_BYTES = 64 << 20  # upper estimate, for the free-space check


def positive(kind):
    def parse(text: str):
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if value <= 0:
            raise argparse.ArgumentTypeError(f"'{text}' must be a number above 0")
        return value
    return parse


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(
        prog=os.environ.get("DBX_PROGRAM", "main_job.py"), allow_abbrev=False,
        description="Builds the engine, then runs, crashes, recovers and verifies every cell of workload x "
                    "concurrency control x log scheme, and leaves a table, out/report.html and out/plots/.")
    parser.add_argument("--seconds", type=positive(float), default=0.5,
                        help="measured seconds of each run (default: %(default)s)")
    parser.add_argument("--rounds", type=positive(int), default=3,
                        help="how often cells without a log and headline cells are measured, in alternation; 1: once, "
                             "and never without look-ahead (default: %(default)s)")
    parser.add_argument("--out", default=os.path.relpath(os.path.join(REPOSITORY, "out")),
                        help="where results, plots and the report go (default: out, in the repository)")
    parser.add_argument("--log_dir", default=os.path.relpath(os.path.join(REPOSITORY, "logs")),
                        help="where log files go; its disk is what is measured (default: logs)")
    parser.add_argument("--log_limit", type=host.parse_bytes, default="1G",
                        help="a run stops cleanly when its logs reach this size in all (default: 1G)")
    parser.add_argument("--cells", default="", metavar="PATTERNS",
                        help="comma-separated patterns such as 'YCSB/*' or '*TAURUS*' (default: all)")
    parser.add_argument("--threads", type=positive(int), default=min(cores, 4),
                        help="worker threads (default: %(default)s)")
    parser.add_argument("--loggers", type=positive(int), default=min(cores, 2),
                        help="log streams of Taurus (default: %(default)s)")
    parser.add_argument("--rows", type=positive(int), default=200_000, help="YCSB rows of 1 KB (default: %(default)s)")
    parser.add_argument("--warehouses", type=positive(int), default=2, help="TPC-C warehouses (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None,
                        help="of the kill times and the calls (default: the time)")
    parser.add_argument("--keep_logs", action="store_true", help="do not delete logs once verified")
    parser.add_argument("--short", action="store_true", help="a few seconds for a try: small tables, short runs")
    parser.add_argument("--list_cells", action="store_true", help="print the cells and leave")
    parser.add_argument("--report_only", action="store_true", help="draw table, plots and report from OUT again")
    parser.add_argument("--no_report", action="store_true", help="a table, but no plots and no report")
    parser.add_argument("--no_limits", action="store_true", help="do not measure the host's limits first")
    parser.add_argument("--parse_only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--binary", default=os.path.join(REPOSITORY, "rundb-all"), help=argparse.SUPPRESS)
    parser.add_argument("--host_limits", default=os.path.join(REPOSITORY, "build/micro/host_limits"),
                        help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.loggers > 16:
        parser.error("--loggers: there are at most 16 log streams")
    if arguments.short:
        arguments.seconds = min(arguments.seconds, 0.3)
        arguments.log_limit = min(arguments.log_limit, 64 << 20)
        arguments.rows = min(arguments.rows, 20_000)
        arguments.rounds = 1
    if arguments.seed is None:
        arguments.seed = int(time.time()) & 0x7FFFFFFF
    return arguments


class MainJob:
    def __init__(self, arguments: argparse.Namespace):
        self.arguments_ = arguments
        self.settings_ = Settings(
            binary=arguments.binary, seconds=arguments.seconds, threads=arguments.threads,
            loggers=arguments.loggers, log_limit=arguments.log_limit, seed=arguments.seed,
            ycsb_rows=arguments.rows, warehouses=arguments.warehouses, tpcc_small=arguments.short)
        self.cells_ = cells_module.select_cells(arguments.cells)
        self.random_ = random.Random(arguments.seed)
        self.results_path_ = os.path.join(arguments.out, "results.jsonl")
        self.work_dir_ = os.path.join(arguments.log_dir, f"main_job-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
        points = cells_module.points_of_a_round(self.cells_) if arguments.rounds > 1 else []
        # Each round in an order of its own: a host whose speed drifts treats all alike.
        self.rounds_ = [self.random_.sample(points, len(points)) for _ in range(arguments.rounds if points else 0)]
        self.unfinished_: set[str] = set()  # directories of logs that an interruption deletes
        expected = [("limits", 12.0)] if not arguments.no_limits else []
        expected += [("round", self._expected_seconds("round")) for points in self.rounds_ for _ in points]
        for cell in self.cells_:
            expected += [(step, self._expected_seconds(step)) for step in self._steps(cell)]
        self.progress_ = Progress(expected)

    def _expected_seconds(self, step: str) -> float:
        seconds = self.settings_.seconds
        return {"round": 0.9 + seconds, "run": 1.0 + seconds, "recover": 0.8 + 1.3 * seconds, "crash": 0.5 + 0.2 * seconds,
                "crash_recover": 0.9 + 0.6 * seconds}[step]

    def _steps(self, cell: Cell) -> tuple[str, ...]:
        """Rounds have measured all there is of a cell without a log."""
        return cell.steps() if cell.logs or not self.rounds_ else ()

    # --- bookkeeping

    def _append(self, row: dict) -> None:
        records.append(self.results_path_, row)

    def prepare(self) -> None:
        """Everything that can be refused is refused here, before anything runs. Raises SystemExit."""
        arguments = self.arguments_
        if not os.access(arguments.binary, os.X_OK):
            sys.exit(f"error: {arguments.binary} is missing; build it with `make rundb-all`, or use ./run.sh")
        try:
            os.makedirs(arguments.out, exist_ok=True)
            os.makedirs(self.work_dir_)
            if os.path.exists(self.results_path_):
                stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(os.path.getmtime(self.results_path_)))
                os.replace(self.results_path_, os.path.join(arguments.out, f"results-{stamp}.jsonl"))
        except OSError as error:
            sys.exit(f"error: cannot write there: {error}")
        logging_cells = sum(1 for cell in self.cells_ if cell.logs)
        kept = 2 * logging_cells if arguments.keep_logs else 1
        needed = (int(kept * arguments.log_limit * 1.1) + ACK_FILE_BYTES) if logging_cells else 0
        free = shutil.disk_usage(self.work_dir_).free
        if free < needed:
            os.rmdir(self.work_dir_)
            sys.exit(f"error: {arguments.log_dir} has {free >> 20} MiB free and the job needs {needed >> 20} MiB; "
                     f"give --log_dir on a larger disk, or a smaller --log_limit (now {arguments.log_limit >> 20}M)")

    # --- steps

    def run_limits(self) -> None:
        self.progress_.begin(cells_module.STEP_NAMES["limits"])
        row = host.measure_limits(self.arguments_.host_limits, self.work_dir_, self.progress_.draw)
        self._append(row)
        failed = row["status"] == "failed"
        self.progress_.finish(row["why"] if failed else "ok", failed)

    def note_pairs(self) -> None:
        """Which pairs the binary has, and why not the others, for the report."""
        matrix = {}
        with contextlib.suppress(OSError, ValueError, subprocess.CalledProcessError):
            matrix = dataclasses.asdict(matrix_of(list_pairs(self.arguments_.binary)))
        self._append({"schema_version": 1, "step": "pairs", "status": "ok", "why": "", "matrix": matrix})

    def run_round(self, number: int, points: list[Point]) -> bool:
        good = True
        for point in points:
            self.progress_.begin(f"round {number}: {point.label}")
            row = {"schema_version": 1, "cell": point.cell.as_dict(), "step": "round", "round": number,
                   "lookahead": point.lookahead, "status": "ok", "why": ""}
            directory = self._log_dir(point.cell, "round")
            self._execute(row, cells_module.round_command(point, self.settings_, directory), "round")
            if point.cell.logs:
                self._delete_logs(row, directory)
            self._tidy(os.path.dirname(directory))
            good = self._finish(row) and good
        return good

    def _finish(self, row: dict) -> bool:
        self._append(row)
        failed = row["status"] == "failed"
        self.progress_.finish(f"FAILED: {row['why']}" if failed else summary.step_line(row), failed)
        if failed:
            self.unfinished_.clear()  # the logs of a failed step stay
            self.progress_.note(f"    again: {row['command']}")
        return not failed

    def run_step(self, cell: Cell, step: str, context: dict) -> bool:
        self.progress_.begin(f"{cell.label}: {cells_module.STEP_NAMES[step]}")
        row = {"schema_version": 1, "cell": cell.as_dict(), "step": step, "status": "ok", "why": ""}
        blocked = context.get("failed") == {"recover": "run", "crash_recover": "crash"}.get(step, "-")
        if blocked:
            row.update(status="skipped", why="the run before it failed")
        else:
            getattr(self, f"_step_{step}")(cell, context, row)
        if blocked:
            self._append(row)
            self.progress_.finish("skipped")
        elif not self._finish(row):
            context["failed"] = step
        return row["status"] == "ok"

    def _execute(self, row: dict, command: list[str], json_name: str = "", **how):
        json_file = os.path.join(self.work_dir_, f"{json_name}.json") if json_name else ""
        return records.run(row, command, json_file, STEP_TIMEOUT_SECONDS, self.progress_.draw, **how)

    def _step_run(self, cell: Cell, context: dict, row: dict) -> None:
        context["clean_dir"] = self._log_dir(cell, "clean")
        self._execute(row, cells_module.run_command(cell, self.settings_, context["clean_dir"]), "run")
        context["seconds"] = row["record"].get("metrics", {}).get("seconds") or self.settings_.seconds

    def _step_recover(self, cell: Cell, context: dict, row: dict) -> None:
        self._execute(row, cells_module.recover_command(cell, self.settings_, context["clean_dir"]), "recover")
        self._judge_recovery(row, required="b")
        self._delete_logs(row, context["clean_dir"])

    def _step_crash(self, cell: Cell, context: dict, row: dict) -> None:
        ack_file = os.path.join(self.work_dir_, ACK_FILE)
        context["ack_file"] = ack_file
        # A log that reaches its limit ends the run cleanly, so the kill has to come before: a run that was
        # too fast for the kill's clock gets more room, and an earlier kill.
        delay = context["seconds"] * self.random_.uniform(*KILL_SHARES)
        for attempt in range(KILL_ATTEMPTS):
            context["crash_dir"] = self._log_dir(cell, "crash")
            if os.path.exists(ack_file):
                os.unlink(ack_file)
            settings = dataclasses.replace(self.settings_, log_limit=self.settings_.log_limit << attempt)
            command = cells_module.run_command(cell, settings, context["crash_dir"], ack_file=ack_file)
            outcome = self._execute(row, command, kill_when=KillClock(ack_file, delay))
            if row["status"] == "failed":
                return
            if outcome.killed and outcome.exit_status == -signal.SIGKILL:
                row["kill_after_seconds"] = round(delay, 4)
                row["command"] += f" & sleep {delay:.3f}; kill -9 $!"
                return
            shutil.rmtree(context["crash_dir"])
            delay /= 3
        row.update(status="failed", why=f"the run ended {KILL_ATTEMPTS} times before it could be killed")

    def _step_crash_recover(self, cell: Cell, context: dict, row: dict) -> None:
        command = cells_module.recover_command(cell, self.settings_, context["crash_dir"], context["ack_file"])
        self._execute(row, command, "crash_recover")
        self._judge_recovery(row, required="ac")
        self._delete_logs(row, context["crash_dir"])
        if row["status"] == "ok" and not self.arguments_.keep_logs:
            os.unlink(context["ack_file"])

    def _judge_recovery(self, row: dict, required: str) -> None:
        """Exit status 0 is not enough: the checks that this step is about must have been made."""
        if row["status"] != "ok":
            return
        verified = row["record"].get("verification", {}).get("verified", "")
        absent = [check for check in required if check not in verified.split(",")]
        if absent:
            row.update(status="failed", why=f"check {' and '.join(absent)} was not made (verified: {verified})")

    def _log_dir(self, cell: Cell, kind: str) -> str:
        """An empty directory for one run's logs; the engine makes none that was named."""
        path = os.path.join(self.work_dir_, cell.path.replace("/", "-"), kind)
        self.unfinished_.add(path)
        for directory in cell.directories(path) if cell.logs else []:
            os.makedirs(directory)
        return path

    def _delete_logs(self, row: dict, directory: str) -> None:
        """Logs of a failed step stay, to look for the reason in them."""
        self.unfinished_.discard(directory)
        if row["status"] == "ok" and not self.arguments_.keep_logs:
            shutil.rmtree(directory)

    # --- the whole

    def run(self) -> bool:
        arguments = self.arguments_
        self.progress_.note(
            f"{len(self.cells_)} cells, {arguments.threads} workers, {arguments.seconds:g} s a run, seed "
            f"{arguments.seed}; logs in {arguments.log_dir}, results in {arguments.out}; "
            f"about {max(1, round(self.progress_.seconds_left() / 60))} min")
        self._append(host.describe(arguments, self.settings_))
        self.note_pairs()
        if not arguments.no_limits:
            self.run_limits()
        good = True
        for number, points in enumerate(self.rounds_, 1):
            good = self.run_round(number, points) and good
        for cell in self.cells_:
            context: dict = {}
            for step in self._steps(cell):
                good = self.run_step(cell, step, context) and good
            self._tidy(os.path.join(self.work_dir_, cell.path.replace("/", "-")))
        return good

    def _tidy(self, directory: str) -> None:
        try:
            os.rmdir(directory)
        except OSError:
            pass  # Logs that were kept are in it, or it never was.

    def close(self) -> None:
        self.progress_.close()
        for directory in self.unfinished_ if not self.arguments_.keep_logs else ():
            shutil.rmtree(directory, ignore_errors=True)
            self._tidy(os.path.dirname(directory))
        kept = any(entry.is_dir() for entry in os.scandir(self.work_dir_))
        for entry in list(os.scandir(self.work_dir_)):
            # What was acknowledged belongs to logs that are kept.
            if entry.is_file() and not (kept and entry.name == ACK_FILE):
                os.unlink(entry.path)
        self._tidy(self.work_dir_)
        if os.path.isdir(self.work_dir_):
            print(f"logs that were kept: {self.work_dir_}")


def draw_all(out: str, with_report: bool) -> None:
    """Table, plots and report from OUT/results.jsonl. The drawing library is loaded only here."""
    rows = records.load(os.path.join(out, "results.jsonl"), strict=True)
    print(summary.table(rows))
    if not with_report:
        return
    try:
        from experiment import bars, cells_page
    except ImportError as error:
        print(f"no plots and no report: {error} (Debian: apt-get install python3-matplotlib)", file=sys.stderr)
        return
    # Side by side: each takes seconds, and both draw everything.
    files = multiprocessing.get_context("fork").Process(
        target=bars.write_plots, args=(rows, os.path.join(out, "plots")))
    files.start()
    try:
        cells_page.write_report(rows, os.path.join(out, "report.html"))
        while files.is_alive():
            files.join(0.1)
            stop.check()
    finally:
        files.kill()  # SIGTERM it would only note
        files.join()
    if files.exitcode != 0:
        raise RuntimeError(f"no plots: their process ended with {files.exitcode}")
    print(f"report: {os.path.join(out, 'report.html')}   plots: {os.path.join(out, 'plots')}   "
          f"records: {os.path.join(out, 'results.jsonl')}")


def main(argv: list[str]) -> int:
    arguments = parse_arguments(argv)
    try:
        cells_module.select_cells(arguments.cells)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if arguments.parse_only:
        return 0
    if arguments.list_cells:
        print("\n".join(cell.path for cell in cells_module.all_cells()))
        return 0
    if arguments.report_only:
        draw_all(arguments.out, with_report=True)
        return 0

    job = MainJob(arguments)
    job.prepare()
    status = 0
    try:
        if not job.run():
            status = 1
    except stop.Stopped:
        job.progress_.note("interrupted: the run in progress was killed; the results so far follow")
    finally:
        job.close()
    draw_all(arguments.out, not arguments.no_report and not stop.requested())
    if status == 1:
        print("some steps FAILED: see the lines above, and the commands to run them again")
    return status


if __name__ == "__main__":
    stop.run(main)
