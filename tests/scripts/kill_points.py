"""Runs that are killed at named points: before, in or after a certain call on a certain file. For kill_loop.py.

A point is called CELL/SCENARIO/WHEN:CALL:PATH:N, say taurus/continue/before:sync:run-0001/frozen.tmp:2. A scenario's
points come from a trace of its calls; build/kill_at.so traces and kills (tests/kill_points/kill_at.cpp). A run that
serves does not write its logs and its frontier the same way every time, so a write there may be missed: the run then
ends well, which is examined too. Any other point that never comes is a fault.
"""
from __future__ import annotations

import collections
import functools
import os
import random
import shutil
import tempfile
from dataclasses import dataclass

from killed_runs import REPOSITORY, SIGKILLED, Runs, Wrong

KILLER = os.path.join(REPOSITORY, "build", "kill_at.so")
# Of the same calls on the same file, which may be hundreds, only the first and the last are points.
FIRST_CALLS, LAST_CALLS = 5, 2
# After any other call is before the next one.
KILLED_AFTER = ("rename", "unlink")
# Small files, and many small flushes.
COMMON = ["--thread_cnt=2", "--log_limit=4M", "--flush_block_size=16K", "--log_flush_interval=100us"]


@dataclass(frozen=True)
class Cell:
    load: tuple[str, ...]            # what a run that continues takes from the log
    every_run: tuple[str, ...] = ()  # what it is told again
    transactions: int = 400          # of each of two threads
    stripes: int = 1                 # log directories
    by_clock: bool = False           # its checkpoints come by time: any point may be missed
    on_continue: tuple[str, ...] = ()  # what a run is told that continues another
    in_place: bool = False           # what continues it goes on in the same run, and takes no checkpoint


YCSB = ("--log_type=LOG_DATA", "--workload=YCSB", "--synth_table_size=500")
# Workers that wait for each transaction see many epochs, and many flushes where otherwise all is over in a few.
WAIT = "--latency_hiding=0"
OFTEN = ("--checkpoint_interval=1ms",)
CELLS = {
    "taurus": Cell(("--cc=NO_WAIT", "--log=LOG_TAURUS", "--num_logger=2", *YCSB)),
    "silo_r": Cell(("--cc=SILO", "--log=LOG_BATCH", "--num_logger=2", *YCSB), (WAIT, "--epoch_period=1"), 60),
    "plover": Cell(("--cc=NO_WAIT", "--log=LOG_PLOVER", "--num_logger=2", *YCSB), (WAIT,), 100),
    "eleda": Cell(("--cc=NO_WAIT", "--log=LOG_ELEDA", *YCSB), (WAIT,), 100),
    "differential": Cell(("--cc=NO_WAIT", "--log=LOG_DIFFERENTIAL", "--num_logger=2", *YCSB),
                         (WAIT, *OFTEN, "--log_buffer_size=64K", "--max_log_entry_size=16K"), by_clock=True),
    "serial": Cell(("--cc=SILO", "--log=LOG_SERIAL", "--log_type=LOG_COMMAND", "--workload=TPCC", "--tpcc_small=1"),
                   ("--io_engine=pwrite",)),
    "rows": Cell(("--cc=NO_WAIT", "--log=LOG_TAURUS", "--num_logger=2", *YCSB), (WAIT, *OFTEN), by_clock=True),
    "striped_rows": Cell(("--cc=HEKATON", "--log=LOG_SERIAL", *YCSB), (WAIT, *OFTEN), stripes=2, by_clock=True),
    "heap": Cell(("--cc=HEKATON", "--log=LOG_WBL", *YCSB), (WAIT,), 100, in_place=True),
    "heap_tpcc": Cell(("--cc=HEKATON", "--log=LOG_WBL", "--log_type=LOG_DATA", "--workload=TPCC", "--tpcc_small=1"),
                      (WAIT,), 40, in_place=True),
    "heap_under_locks": Cell(("--cc=NO_WAIT", "--log=LOG_WBL", *YCSB), (WAIT, "--adopt_on_demand=0"), 100,
                             in_place=True),
    "instant": Cell(("--cc=HEKATON", "--log=LOG_INSTANT", *YCSB), (WAIT,), 100, on_continue=("--redo=ON_DEMAND",)),
    "striped": Cell(("--cc=NO_WAIT", "--log=LOG_SERIAL", "--log_type=LOG_DATA", "--workload=TEST"), stripes=2),
}


@dataclass(frozen=True)
class Scenario:
    flags: tuple[str, ...]  # () starts from nothing, anything else from a run that was killed
    calls_under: str = ""   # only calls on paths with this in them are points


SCENARIOS = {
    "run": Scenario(()),
    "continue": Scenario(("--continue",)),
    "checkpoint": Scenario(("--continue", "--checkpoint", "--drop_old_runs", "--verify")),
    "overwrite": Scenario(("--log_overwrite",), calls_under="run-0001"),
}


def flags_of(cell: str, scenario: str) -> list[str]:
    flags = SCENARIOS[scenario].flags
    load = CELLS[cell].on_continue if "--continue" in flags else CELLS[cell].load
    transactions = f"--max_txns_per_thread={CELLS[cell].transactions}"
    return [*load, *CELLS[cell].every_run, *COMMON, transactions, *flags]


def with_killer(runs: Runs, variable: str, value: str) -> tuple[str, ...]:
    return ("env", f"LD_PRELOAD={KILLER}", f"DBX_KILL_UNDER={os.path.realpath(runs.logs)}", f"{variable}={value}")


class NamedPoints:
    def __init__(self, binary: str, directory: str):
        self.binary_ = binary
        self.directory_ = directory

    def list(self) -> list[str]:
        return [f"{cell}/{scenario}/{name}" for cell in CELLS for scenario in SCENARIOS
                if not (CELLS[cell].in_place and "--checkpoint" in SCENARIOS[scenario].flags)
                for name in self._names_of(cell, scenario)]

    def kill(self, point: str, seed: int) -> bool:
        """Kills a run there and examines what it left; false if it came to its end instead. Raises Wrong."""
        cell, scenario, name = point.split("/", 2)
        rng = random.Random(seed)
        runs = self._start(cell, scenario)
        try:
            outcome = runs.run(flags_of(cell, scenario), with_killer(runs, "DBX_KILL_AT", name))
            if outcome.exit_status != SIGKILLED and not (CELLS[cell].by_clock or may_be_missed(name)):
                raise Wrong("the run was not killed there")
            is_there = runs.examine(rng)
            runs.end_well(flags_of(cell, "continue" if is_there else "run"), rng)
        except Wrong as wrong:
            raise Wrong("\n    ".join([str(wrong), *runs.lines])) from None
        shutil.rmtree(runs.directory)
        return outcome.exit_status == SIGKILLED

    def _empty(self, cell: str) -> Runs:
        return Runs(self.binary_, tempfile.mkdtemp(prefix="point-", dir=self.directory_), CELLS[cell].stripes,
                    in_place=CELLS[cell].in_place)

    @functools.cache
    def _killed_run(self, cell: str) -> Runs:
        """Killed in the middle of a write, with some transactions acknowledged and others not. How many writes that
        takes is different every time; a heap is killed before one of its records is
        durable. Scenarios start here that do not start from nothing."""
        for write in (30, 20, 15, 12, 10, 8, 6, 5, 4, 3):
            runs = self._empty(cell)
            at = f"before:sync:gaps.log:{write}" if CELLS[cell].in_place else f"middle:write:log-00.log:{write}"
            outcome = runs.run(flags_of(cell, "run"), with_killer(runs, "DBX_KILL_AT", at))
            if outcome.exit_status == SIGKILLED and runs.acknowledged and runs.examine(random.Random(0)):
                return runs
            shutil.rmtree(runs.directory)
        raise Wrong(f"{cell}: no run was killed after its first acknowledgement")

    def _start(self, cell: str, scenario: str) -> Runs:
        runs = self._empty(cell)
        return self._killed_run(cell).copy(runs.directory) if SCENARIOS[scenario].flags else runs

    def _names_of(self, cell: str, scenario: str) -> list[str]:
        runs = self._start(cell, scenario)
        trace = os.path.join(runs.directory, "trace")
        runs.run(flags_of(cell, scenario), with_killer(runs, "DBX_KILL_TRACE", trace))
        with open(trace, encoding="utf-8") as file:
            calls = collections.Counter(tuple(line.split()) for line in file)
        shutil.rmtree(runs.directory)
        return [name for (verb, path), count in calls.items()
                if verb != "dsync" and SCENARIOS[scenario].calls_under in path  # that is a write
                for name in names(verb, path, count)]


def may_be_missed(name: str) -> bool:
    _, verb, path, _ = name.split(":")
    name = os.path.basename(path)
    return verb == "write" and name.startswith(("log-", "frontier")) or name in ("heap.pm", "gaps.log")


def names(verb: str, path: str, count: int) -> list[str]:
    """The points at `count` calls of one kind on one file."""
    moments = ["before"] + ["middle"] * (verb in ("write", "punch")) + ["after"] * (verb in KILLED_AFTER)
    numbers = [n for n in range(1, count + 1) if n <= FIRST_CALLS or n > count - LAST_CALLS]
    return [f"{moment}:{verb}:{path}:{number}" for number in numbers for moment in moments]
