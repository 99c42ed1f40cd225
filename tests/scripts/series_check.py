#!/usr/bin/env python3
"""The series and the counters of a real ./rundb-all: its CSV adds up to the JSON record, and can be drawn.

As cli_check.py. Run by test.sh; prints a line per failure and 'N passed, M failed'.
"""
from __future__ import annotations

import csv
import json
import os
import subprocess
import sys

import cli_check
from cli_check import BINARY, REPOSITORY, SMALL, TAURUS, TIMEOUT_SECONDS, Failed, expect, run_checks, rundb

# Column of the CSV -> metric of the record.
TOTALS = {"acknowledged": "acknowledged_txns", "executed": "executed_txns", "aborts": "abort_cnt",
          "log_bytes": "interval_log_bytes"}
SERIAL_ROWS = ["--cc=NO_WAIT", "--log=LOG_SERIAL", "--log_type=LOG_DATA"]
FEW_ROWS = ["--workload=YCSB", "--synth_table_size=50", "--thread_cnt=2"]
TIMED = ["--seconds=0.3", "--log_limit=512M"]
RUNS = (
    ("Timed", [*SERIAL_ROWS, *FEW_ROWS, *TIMED, "--interval=20"]),
    ("TimedWithWarmUp", [*SERIAL_ROWS, *FEW_ROWS, *TIMED, "--interval=20", "--warmup=100", "--warmup_seconds=0.1"]),
    ("WithCheckpoints", [*SERIAL_ROWS, *FEW_ROWS, *TIMED, "--interval=10", "--checkpoint_interval=20"]),
    ("Counted", [*TAURUS, "--interval=1"]),
    ("OneStep", [*TAURUS, "--interval=3600s"]),
    ("DefaultInterval", ["--cc=SILO", "--log=LOG_NO", *FEW_ROWS, "--seconds=0.25"]),
    ("OfAHeap", ["--cc=HEKATON", "--log=LOG_WBL", "--log_type=LOG_DATA", *SMALL, "--interval=1"]),
)
PROCESSOR = {"cycles", "instructions", "llc_misses", "dtlb_load_misses"}


class Checks(cli_check.Checks):
    """One method per group; each yields (name, callable)."""

    def run_with(self, arguments: list[str], *more: str) -> tuple[str, dict, list[dict], str]:
        """The directory of a run, its metrics, its steps and what it printed."""
        directory = self.fresh("series")
        series, record = os.path.join(directory, "s.csv"), os.path.join(directory, "r.json")
        os.mkdir(os.path.join(directory, "logs"))
        done = rundb([*arguments, f"--log_dir={directory}/logs", f"--series={series}", f"--json={record}", *more],
                     directory)
        expect(done, 0)
        with open(record, encoding="utf-8") as file:
            metrics = json.loads(file.read())["metrics"]
        with open(series, encoding="utf-8") as file:
            return directory, metrics, list(csv.DictReader(file)), done.stdout

    def sums(self):
        for name, arguments in RUNS:
            yield f"StepsAddUp_{name}", lambda a=arguments: self._adds_up(a)

    def _adds_up(self, arguments: list[str]) -> None:
        directory, metrics, steps, _ = self.run_with(arguments)
        for column, name in TOTALS.items():
            found = sum(int(step[column] or 0) for step in steps)
            if found != metrics[name]:
                raise Failed(f"{column} add up to {found}, {name} is {metrics[name]}")
        if metrics["acknowledged_txns"] == 0:
            raise Failed("nothing was acknowledged")
        series = metrics["series"]
        if (series["file"], series["steps"]) != (os.path.join(directory, "s.csv"), len(steps)):
            raise Failed(f"the record says {series}, there are {len(steps)} steps")
        ends = [0.0] + [float(step["end_s"]) for step in steps]
        if [float(step["begin_s"]) for step in steps] != ends[:-1] or abs(ends[-1] - metrics["seconds"]) > 1e-6:
            raise Failed(f"steps end at {ends[1:]}, the run after {metrics['seconds']} s")

    def marks(self):
        yield "CheckpointsAreMarked", self._checkpoints
        yield "ASeriesIsWrittenAnew", self._written_anew
        yield "ASeriesThatCannotBeWrittenIsRefusedBeforeTheRun", self._unwritable
        yield "ItCanBeDrawn", self._drawn

    def _checkpoints(self) -> None:
        arguments = [*SERIAL_ROWS, *FEW_ROWS, *TIMED, "--interval=10", "--checkpoint_interval=20"]
        _, metrics, steps, _ = self.run_with(arguments)
        begun, ended = (sum(int(step[f"checkpoints_{what}"]) for step in steps) for what in ("begun", "ended"))
        complete = metrics["checkpoints"]["complete"]
        # One may begin before the interval, and the last one may end after it.
        if begun == 0 or not ended <= complete + metrics["checkpoints"]["failed"] <= ended + 2:
            raise Failed(f"{begun} begun, {ended} ended, {complete} complete")

    def _written_anew(self) -> None:
        directory, _, first, _ = self.run_with([*TAURUS, "--interval=3600s"])
        expect(rundb([*TAURUS, "--interval=3600s", f"--log_dir={directory}/logs", f"--series={directory}/s.csv"],
                     directory), 0)
        with open(os.path.join(directory, "s.csv"), encoding="utf-8") as file:
            if len(list(csv.DictReader(file))) != len(first):
                raise Failed("the steps of an older run are still there")

    def _unwritable(self) -> None:
        directory = self.fresh("unwritable")
        expect(rundb([*TAURUS, f"--log_dir={directory}", "--series=/no/such/s.csv"], directory), 4,
               ["cannot write /no/such/s.csv"])
        if os.listdir(directory):
            raise Failed(f"it created {os.listdir(directory)}")

    def _drawn(self) -> None:
        directory, *_ = self.run_with([*SERIAL_ROWS, *FEW_ROWS, *TIMED, "--interval=20", "--checkpoint_interval=50"])
        done = subprocess.run([os.path.join(REPOSITORY, "scripts", "plot_series"), "s.csv"], cwd=directory,
                              capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        if (done.returncode, done.stdout) != (0, "s.png\n") or not os.path.getsize(os.path.join(directory, "s.png")):
            raise Failed(f"exit status {done.returncode}: {done.stdout}{done.stderr}")

    def counters(self):
        yield "EachCounterIsThereOrMissing", self._counters

    def _counters(self) -> None:
        _, metrics, _, said = self.run_with(TAURUS, "--perf")
        perf = metrics["perf"]
        if set(perf["counters"]) | set(perf["missing"]) != PROCESSOR or set(perf["counters"]) & set(perf["missing"]):
            raise Failed(f"counters: {perf['counters']}, missing: {perf['missing']}")
        if not perf["task_clock_seconds"] > 0 or not all(perf["missing"].values()):
            raise Failed(f"the record says {perf}")
        lines = [line for line in said.splitlines() if line.startswith("perf: ")]
        if len(lines) != 1 or not all(name in lines[0] for name in PROCESSOR):
            raise Failed(f"it printed {lines}")

    def all(self):
        for group in (self.sums, self.marks, self.counters):
            yield from group()


if __name__ == "__main__":
    sys.exit(run_checks(Checks, "series-", {BINARY: "rundb-all"}))
