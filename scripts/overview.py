#!/usr/bin/env python3
"""All log schemes and concurrency controls side by side, as in docs/figures.md: medians of rounds of short runs.

    scripts/overview.py                     writes the tables to the terminal, in Markdown; 45 minutes on 2 cores
    scripts/overview.py --tables schemes    only what is asked for: schemes, controls, controls_0
    scripts/overview.py --log_dir DIR       where logs go; default: a RAM disk, so that the engine is what is measured

Each round runs every configuration once, in an order of its own, so that a host whose speed drifts treats all alike.
Recoveries, one each of the last round's logs, are confined to the first processor and to the first two, all their
threads counted. Nothing else should run on the host meanwhile; scripts/doctor tells what distorts figures.

Lines with "look-ahead 0", and controls_0, are for comparison with engines that take one transaction at a time: here a
worker prefetches for the calls that are queued behind the current one, unless it is told not to.
"""
from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
from dataclasses import dataclass, field

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import registry
import stop
if __name__ == "__main__":
    stop.install()
from child import is_missing, run_child
from experiment.records import load, lookup
from host import positive
from progress import Progress

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TIMEOUT_SECONDS = 300

YCSB = ("--workload=YCSB", "--synth_table_size=1000000")
TPCC = ("--workload=TPCC", "--num_wh=4")
FULL_MIX = (*TPCC, "--tpcc_full_mix=1")
CONTENDED = (*YCSB, "--zipf_theta=0.9", "--req_per_query=10")
SERIAL, TAURUS, ELEDA = ("--log=LOG_SERIAL",), ("--log=LOG_TAURUS",), ("--log=LOG_ELEDA",)
PLOVER, SILO_R, SILO = ("--log=LOG_PLOVER",), ("--cc=SILO", "--log=LOG_BATCH"), ("--cc=SILO",)
COMMAND = ("--log_type=LOG_COMMAND",)
NOT_AHEAD = ("--lookahead=0",)


def logs(count: int) -> tuple[str]:
    return (f"--num_logger={count}",)


# Of the table of log schemes: a line's name and flags; shares are of the last line above it without a log.
SCHEMES = {
    "NO_WAIT, no log": (),
    "serial command": (*SERIAL, *COMMAND),
    "ELEDA command": (*ELEDA, *COMMAND),
    "ELEDA command, mutex": (*ELEDA, *COMMAND, "--central_log=MUTEX"),
    "ELEDA command, consolidation array": (*ELEDA, *COMMAND, "--central_log=CONSOLIDATION"),
    "Taurus command, 1 log": (*TAURUS, *COMMAND),
    "Taurus command, 2 logs": (*TAURUS, *COMMAND, *logs(2)),
    "Taurus command, 16 logs": (*TAURUS, *COMMAND, *logs(16)),
    "serial data": SERIAL,
    "ELEDA data": ELEDA,
    "ELEDA data, mutex": (*ELEDA, "--central_log=MUTEX"),
    "ELEDA data, consolidation array": (*ELEDA, "--central_log=CONSOLIDATION"),
    "Taurus data, 1 log": TAURUS,
    "Taurus data, 2 logs": (*TAURUS, *logs(2)),
    "Plover, 1 log": PLOVER,
    "Plover, 2 logs": (*PLOVER, *logs(2)),
    "SILO, no log": SILO,
    "Taurus command, 2 logs, SILO": (*SILO, *TAURUS, *COMMAND, *logs(2)),
    "Silo-R, 1 log": SILO_R,
    "Silo-R, 2 logs": (*SILO_R, *logs(2)),
    "HEKATON, no log": ("--cc=HEKATON",),
    "Taurus command, 2 logs, HEKATON": ("--cc=HEKATON", *TAURUS, *COMMAND, *logs(2)),
    "NO_WAIT, no log, look-ahead 0": NOT_AHEAD,
    "serial command, look-ahead 0": (*NOT_AHEAD, *SERIAL, *COMMAND),
    "Taurus command, 1 log, look-ahead 0": (*NOT_AHEAD, *TAURUS, *COMMAND),
    "Taurus command, 2 logs, look-ahead 0": (*NOT_AHEAD, *TAURUS, *COMMAND, *logs(2)),
    "serial data, look-ahead 0": (*NOT_AHEAD, *SERIAL),
    "Taurus data, 1 log, look-ahead 0": (*NOT_AHEAD, *TAURUS),
    "Taurus data, 2 logs, look-ahead 0": (*NOT_AHEAD, *TAURUS, *logs(2)),
    "SILO, no log, look-ahead 0": (*NOT_AHEAD, *SILO),
    "Silo-R, 1 log, look-ahead 0": (*NOT_AHEAD, *SILO_R),
}
SCHEME_WORKLOADS = {"YCSB": YCSB, "TPC-C": TPCC, "TPC-C, full mix": FULL_MIX}
OF_FULL_MIX = tuple(line + ahead for ahead in ("", ", look-ahead 0") for line in (
    "NO_WAIT, no log", "serial command", "Taurus command, 1 log", "Taurus command, 2 logs", "serial data",
    "Taurus data, 1 log"))
CONTROLS = {control.name: (f"--cc={control.name}",) for control in registry.controls()}
CONTROLS["HEKATON, SNAPSHOT"] = ("--cc=HEKATON", "--isolation_level=SNAPSHOT")
CONTROLS["NO_WAIT over B+trees"] = ("--cc=NO_WAIT", "--index=IDX_BTREE")
CONTROL_WORKLOADS = {"YCSB": YCSB, "YCSB, theta 0.9, 10 accesses": CONTENDED, "TPC-C": TPCC,
                     "TPC-C, full mix": FULL_MIX}
CONTROLS_0 = {name: (*flags, *NOT_AHEAD) for name, flags in CONTROLS.items()}
TABLES = {"schemes": (SCHEMES, SCHEME_WORKLOADS), "controls": (CONTROLS, CONTROL_WORKLOADS),
          "controls_0": (CONTROLS_0, CONTROL_WORKLOADS)}
HEADINGS = {"controls": "k/s (lowest-highest)", "controls_0": "look-ahead 0: k/s (lowest-highest)"}


def is_wanted(table: str, line: str, workload: str) -> bool:
    return table != "schemes" or workload != "TPC-C, full mix" or line in OF_FULL_MIX


@dataclass
class Point:
    """One configuration under one workload: the metrics of its runs and recoveries."""

    table: str
    line: str
    workload: str
    runs: list = field(default_factory=list)
    recoveries: list = field(default_factory=list)  # transactions per second, on one processor, then on two

    @property
    def flags(self) -> tuple[str, ...]:
        lines, workloads = TABLES[self.table]
        return (*workloads[self.workload], *lines[self.line])

    @property
    def logs(self) -> bool:
        return any(flag.startswith("--log=") for flag in self.flags)

    def median(self, metric: str) -> float:
        return statistics.median(lookup(run, metric) for run in self.runs)

    def rates(self) -> list[float]:
        return [run["throughput_acknowledged"] for run in self.runs]


class Overview:
    def __init__(self, arguments: argparse.Namespace):
        self.arguments_ = arguments
        self.directory_ = tempfile.mkdtemp(prefix="overview-", dir=arguments.log_dir)
        self.json_ = os.path.join(self.directory_, "record.json")
        self.points_ = [Point(table, line, workload) for table in arguments.tables for line in TABLES[table][0]
                        for workload in TABLES[table][1] if is_wanted(table, line, workload)]
        self.processors_ = [n for n in (1, 2) if n <= len(os.sched_getaffinity(0))]
        order = random.Random(arguments.seed)
        self.rounds_ = [order.sample(self.points_, len(self.points_)) for _ in range(arguments.rounds)]
        steps: list[tuple[str, float]] = []
        for points in self.rounds_:
            for point in points:
                steps.append(("run", 2.0 + arguments.seconds))
                steps += [("recovery", 4.0)] * len(self.processors_) * self._is_recovered(point, points)
        self.progress_ = Progress(steps, stream=sys.stderr)

    def _is_recovered(self, point: Point, points: list[Point]) -> bool:
        # Recovery does not depend on how far the workers looked ahead.
        return point.logs and not set(NOT_AHEAD) & set(point.flags) and points is self.rounds_[-1]

    def measure(self) -> list[Point]:
        """All rounds. Raises SystemExit with the command that failed."""
        for points in self.rounds_:
            for point in points:
                point.runs.append(self._run(point))
                if self._is_recovered(point, points):
                    self._recover(point)
        self.progress_.close()
        return self.points_

    def close(self) -> None:
        shutil.rmtree(self.directory_, ignore_errors=True)

    def _run(self, point: Point) -> dict:
        return self._step(point, [f"--thread_cnt={self.arguments_.threads}", f"--seconds={self.arguments_.seconds:g}",
                                  "--log_overwrite", *point.flags])

    def _recover(self, point: Point) -> None:
        for count in self.processors_:
            processors = ",".join(map(str, sorted(os.sched_getaffinity(0))[:count]))
            metrics = self._step(point, ["-Lr1", f"--thread_cnt={count}"], ("taskset", "-c", processors))
            point.recoveries.append(metrics["throughput"])

    def _step(self, point: Point, flags: list[str], prefix: tuple[str, ...] = ()) -> dict:
        command = [*prefix, self.arguments_.binary, *flags, f"--log_dir={self.directory_}", f"--json={self.json_}"]
        self.progress_.begin(f"{point.workload} {point.line}")
        outcome = run_child(command, TIMEOUT_SECONDS, self.progress_.draw)
        rows = load(self.json_)
        if outcome.exit_status != 0 or not rows:
            why = "no end in time" if outcome.timed_out else outcome.last_line()
            sys.exit(f"error: {why}\n  again: {' '.join(command)}")
        metrics = rows[-1]["metrics"]
        os.unlink(self.json_)
        rate = metrics.get("throughput_acknowledged") or metrics["throughput"]
        self.progress_.finish(f"{thousands(rate)} k/s")
        return metrics


def thousands(value: float) -> str:
    return f"{value / 1e3:,.0f}"


def spread(values: list[float]) -> str:
    return f"{thousands(statistics.median(values))} ({thousands(min(values))}-{thousands(max(values))})"


def scheme_cells(point: Point, base: Point) -> list[str]:
    if not point.logs:
        return [spread(point.rates()), "", "", "", ""]
    share = statistics.median(rate / without for rate, without in zip(point.rates(), base.rates()))
    return [spread(point.rates()), percent(share), f"{point.median('latency_us.mean') / 1e3:.2g} ms",
            f"{point.median('bytes_per_txn'):,.0f}", " / ".join(map(thousands, point.recoveries))]


def row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def scheme_table(points: list[Point], workload: str) -> list[str]:
    lines = [row([workload, "k/s (lowest-highest)", "of no log", "mean to acknowledgement", "bytes a record",
                  "recovery, 1 / 2 CPUs"]), "|---" * 6 + "|"]
    base = points[0]
    for point in points:
        base = base if point.logs else point
        lines.append(row([point.line, *scheme_cells(point, base)]))
    return lines


def percent(share: float) -> str:
    """No run is faster for its log: then the scatter is larger than what the log costs, and the share is marked."""
    return f"{100 * share:.0f} %" + "!" * (round(100 * share) > 100)


def control_table(points: list[Point], table: str) -> list[str]:
    lines = [row([HEADINGS[table], *CONTROL_WORKLOADS]), "|---" * (1 + len(CONTROL_WORKLOADS)) + "|"]
    for control in CONTROLS:
        lines.append(row([control, *(spread(p.rates()) for p in points if p.line == control)]))
    return lines


def tables(points: list[Point]) -> str:
    lines: list[str] = []
    for workload in SCHEME_WORKLOADS:
        chosen = [p for p in points if p.table == "schemes" and p.workload == workload]
        lines += [*scheme_table(chosen, workload), ""] if chosen else []
    for table in HEADINGS:
        chosen = [p for p in points if p.table == table]
        lines += [*control_table(chosen, table), ""] if chosen else []
    return "\n".join(lines).rstrip("\n")


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="All log schemes and concurrency controls side by side, as in docs/figures.md.")
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--rounds", type=positive(int), default=6, help="of every run (default: 6)")
    parser.add_argument("--seconds", type=positive(float), default=1.2, help="of each run (default: 1.2)")
    parser.add_argument("--threads", type=positive(int), default=2, help="workers (default: 2)")
    parser.add_argument("--log_dir", default="/dev/shm", help="where logs go, 4 GiB at most (default: /dev/shm)")
    parser.add_argument("--seed", type=int, default=1, help="of the order within the rounds (default: 1)")
    parser.add_argument("--binary", default=os.path.join(REPOSITORY, "rundb-all"), help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    arguments = parse_arguments(argv)
    if is_missing(arguments.binary):
        return 4
    try:
        overview = Overview(arguments)
    except OSError as error:
        print(f"error: cannot write logs: {error}", file=sys.stderr)
        return 4
    try:
        points = overview.measure()
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    finally:
        overview.close()
    print(tables(points))
    return 0


if __name__ == "__main__":
    stop.run(main)
