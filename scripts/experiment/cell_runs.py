"""Runs the main job: rounds of the cells that others are read against, then each cell's steps, a row each.

Used by main_job.py. Steps are those of experiments/main_job.yaml. The logs of a step that failed are kept, and steps
that would need them are skipped; an interruption loses no row. Single-threaded.
"""
from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import host
from child import KillClock, Outcome
from experiment import cells, records, summary
from experiment.cells import STEPS, Cell, Settings
from pairs import list_pairs, matrix_of
from progress import Progress

STEP_TIMEOUT_SECONDS = 300
KILL_ATTEMPTS = 4
ACK_FILE = "acknowledged"
ACK_FILE_BYTES = 64 << 20  # upper estimate, for the free-space check


class CellRunner:
    def __init__(self, arguments: argparse.Namespace):
        self.arguments_ = arguments
        self.settings_ = Settings(**{name: getattr(arguments, name) for name in Settings.__dataclass_fields__})
        self.cells_ = cells.select_cells(arguments.cells)
        self.random_ = random.Random(arguments.seed)
        self.results_path_ = os.path.join(arguments.out, "results.jsonl")
        self.work_dir_ = os.path.join(arguments.log_dir, f"main_job-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
        self.ack_file_ = os.path.join(self.work_dir_, ACK_FILE)
        points = cells.points_of_a_round(self.cells_) if arguments.rounds > 1 else []
        # Each round in an order of its own: a host whose speed drifts treats all alike.
        self.rounds_ = [self.random_.sample(points, len(points)) for _ in range(arguments.rounds if points else 0)]
        self.unfinished_: set[str] = set()  # directories of logs that an interruption deletes
        steps = ["limits"] * (not arguments.no_limits) + ["round" for points in self.rounds_ for _ in points]
        steps += [step for cell in self.cells_ for step in self._steps(cell)]
        self.progress_ = Progress([(step, STEPS[step].expected_seconds(arguments.seconds)) for step in steps])

    def _steps(self, cell: Cell) -> list[str]:
        """Rounds have measured all there is of a cell without a log."""
        return cell.steps() if cell.logs or not self.rounds_ else []

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

    def run(self) -> bool:
        """False if a step failed."""
        arguments = self.arguments_
        self.progress_.note(
            f"{len(self.cells_)} cells, {arguments.threads} workers, {arguments.seconds:g} s a run, seed "
            f"{arguments.seed}; logs in {arguments.log_dir}, results in {arguments.out}; "
            f"about {max(1, round(self.progress_.seconds_left() / 60))} min")
        records.append(self.results_path_, host.describe(arguments, self.settings_))
        self._note_pairs()
        if not arguments.no_limits:
            self._run_limits()
        good = [self._run_round(number, point) for number, points in enumerate(self.rounds_, 1) for point in points]
        for cell in self.cells_:
            left: dict = {}
            good += [self._run_step(cell, step, left) for step in self._steps(cell)]
            self._tidy(os.path.join(self.work_dir_, cell.path.replace("/", "-")))
        return all(good)

    def _note_pairs(self) -> None:
        """Which pairs the binary has, and why not the others, for the report."""
        matrix = {}
        with contextlib.suppress(OSError, ValueError, subprocess.CalledProcessError):
            matrix = dataclasses.asdict(matrix_of(list_pairs(self.arguments_.binary)))
        records.append(self.results_path_, {"schema_version": 1, "step": "pairs", "status": "ok", "why": "",
                                            "matrix": matrix})

    def _run_limits(self) -> None:
        self.progress_.begin(STEPS["limits"].name)
        row = host.measure_limits(self.arguments_.host_limits, self.work_dir_, self.progress_.draw)
        records.append(self.results_path_, row)
        failed = row["status"] == "failed"
        self.progress_.finish(row["why"] if failed else "ok", failed)

    def _run_round(self, number: int, point: cells.Point) -> bool:
        self.progress_.begin(f"round {number}: {point.label}")
        row = {**_row(point.cell, "round"), "round": number, "lookahead": point.lookahead}
        directory = self._log_dir(point.cell, STEPS["round"].writes)
        self._execute(row, cells.command(point.cell, "round", self.settings_, directory, lookahead=point.lookahead))
        self._delete_logs(row, directory)
        self._tidy(os.path.dirname(directory))
        return self._finish(row)

    def _run_step(self, cell: Cell, name: str, left: dict) -> bool:
        """`left`: the logs that earlier steps of the cell have left, and its run's seconds."""
        step = STEPS[name]
        self.progress_.begin(f"{cell.label}: {step.name}")
        row = _row(cell, name)
        if step.reads and step.reads not in left:
            row.update(status="skipped", why="the run before it failed")
            records.append(self.results_path_, row)
            self.progress_.finish("skipped")
            return False
        if step.reads:
            self._recover(cell, name, row, left[step.reads])
        elif step.kill_at:
            directory = self._kill(cell, name, row, left.get("seconds", self.settings_.seconds))
        else:
            directory = self._log_dir(cell, step.writes)
            self._execute(row, cells.command(cell, name, self.settings_, directory))
            left["seconds"] = row["record"].get("metrics", {}).get("seconds") or self.settings_.seconds
        if step.writes and row["status"] == "ok":
            left[step.writes] = directory
        return self._finish(row)

    def _execute(self, row: dict, command: list[str], **how) -> Outcome:
        """A run that is to be killed leaves no record."""
        json_file = "" if how else os.path.join(self.work_dir_, "record.json")
        return records.run(row, command, json_file, STEP_TIMEOUT_SECONDS, self.progress_.draw, **how)

    def _kill(self, cell: Cell, name: str, row: dict, seconds: float) -> str:
        """Where the killed run's logs lie. A log that reaches its limit ends the run cleanly, so the kill has to come
        before: a run that was too fast for the kill's clock gets more room, and an earlier kill."""
        delay = seconds * self.random_.uniform(*STEPS[name].kill_at)
        for attempt in range(KILL_ATTEMPTS):
            directory = self._log_dir(cell, STEPS[name].writes)
            if os.path.exists(self.ack_file_):
                os.unlink(self.ack_file_)
            settings = dataclasses.replace(self.settings_, log_limit=self.settings_.log_limit << attempt)
            outcome = self._execute(row, cells.command(cell, name, settings, directory, ack_file=self.ack_file_),
                                    kill_when=KillClock(self.ack_file_, delay))
            if row["status"] == "failed":
                return directory
            if outcome.killed and outcome.exit_status == -signal.SIGKILL:
                row["kill_after_seconds"] = round(delay, 4)
                row["command"] += f" & sleep {delay:.3f}; kill -9 $!"
                return directory
            shutil.rmtree(directory)
            delay /= 3
        row.update(status="failed", why=f"the run ended {KILL_ATTEMPTS} times before it could be killed")
        return directory

    def _recover(self, cell: Cell, name: str, row: dict, directory: str) -> None:
        """Exit status 0 is not enough: the checks that this step is about must have been made."""
        self._execute(row, cells.command(cell, name, self.settings_, directory, ack_file=self.ack_file_))
        verified = row["record"].get("verification", {}).get("verified", "")
        absent = [check for check in STEPS[name].checks if check not in verified.split(",")]
        if row["status"] == "ok" and absent:
            row.update(status="failed", why=f"check {' and '.join(absent)} was not made (verified: {verified})")
        self._delete_logs(row, directory)

    def _finish(self, row: dict) -> bool:
        records.append(self.results_path_, row)
        failed = row["status"] == "failed"
        self.progress_.finish(f"FAILED: {row['why']}" if failed else summary.step_line(row), failed)
        if failed:
            self.unfinished_.clear()  # the logs of a failed step stay
            self.progress_.note(f"    again: {row['command']}")
        return not failed

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
        if row["status"] == "ok" and not self.arguments_.keep_logs and os.path.exists(directory):
            shutil.rmtree(directory)

    @staticmethod
    def _tidy(directory: str) -> None:
        with contextlib.suppress(OSError):  # logs that were kept are in it, or it never was
            os.rmdir(directory)

    def close(self) -> None:
        """Leaves what is to be kept, and says where."""
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


def _row(cell: Cell, step: str) -> dict:
    return {"schema_version": 1, "cell": cell.as_dict(), "step": step, "status": "ok", "why": ""}
