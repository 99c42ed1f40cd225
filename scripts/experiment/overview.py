"""The overview: tables of all log schemes and concurrency controls, as experiments/overview.yaml has them.

Used by exp.py, which runs its plan as it runs those of figures. A point is a line of a table with a workload.
"""
from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Optional

import registry
from experiment import markdown, spec, stats
from experiment.planning import Job, Place, Plan, Point
from experiment.records import lookup
from experiment.running import PROCESSORS, shuffled

SECTIONS = {"seconds", "repeats", "base", "workloads", "tables"}
NOT_AHEAD = ", look-ahead 0"  # behind a line's name


@dataclass(frozen=True)
class Table:
    workloads: list
    lines: dict
    heading: str = ""
    each_control: bool = False  # a line for each concurrency control that is built
    flags: dict = field(default_factory=dict)
    recover: list = field(default_factory=list)
    only: dict = field(default_factory=dict)
    without_lookahead: list = field(default_factory=list)

    def all_lines(self) -> dict[str, dict]:
        own = {**self._controls(), **self.lines}
        ahead = {name: {**self.flags, **flags} for name, flags in own.items()}
        return {**ahead, **{name + NOT_AHEAD: {**ahead[name], "lookahead": 0} for name in self.without_lookahead}}

    def lines_of(self, workload: str) -> dict[str, dict]:
        wanted = self.only.get(workload, [*self._controls(), *self.lines])
        return {name: flags for name, flags in self.all_lines().items() if name.removesuffix(NOT_AHEAD) in wanted}

    def _controls(self) -> dict[str, dict]:
        return {control.name: {"cc": control.name} for control in registry.controls() if self.each_control}


@dataclass(frozen=True)
class Overview:
    tables: dict[str, Table]
    plan: Plan  # its points' panels are workloads, its series lines
    repeats: int
    seconds: float

    def order(self, repeats: int, seed: int) -> list[tuple[int, Job]]:
        """Logs are recovered in the last repeat alone."""
        return [(repeat, job if repeat == repeats - 1 else replace(job, recoveries={}))
                for repeat, job in shuffled(self.plan, repeats, seed)]


def load(names: list[str], seconds: Optional[float] = None, threads: Optional[int] = None, cores: int = 2) -> Overview:
    """The tables that the names name, without names all. Raises SpecError."""
    path = os.path.join(spec.FOLDER, "overview.yaml")
    where, found = os.path.relpath(path), spec.load(path)
    if set(found) != SECTIONS:
        raise spec.SpecError(f"{where}: expected are {', '.join(sorted(SECTIONS))}")
    tables = {name: spec.checked(Table, f"{where}: {name}", values) for name, values in found["tables"].items()}
    if unknown := sorted(set(names) - set(tables)):
        raise spec.SpecError(f"no table is called '{unknown[0]}'; there are {', '.join(tables)}")
    tables = {name: table for name, table in tables.items() if name in names or not names}
    base = {**found["base"], **({"thread_cnt": threads} if threads else {})}
    plan = Plan({}, {})
    for name, table in tables.items():
        plan.points[name] = [
            _add_point(plan, table, workload, line, {**base, **found["workloads"][workload], **flags},
                       seconds or found["seconds"], [count for count in table.recover if count <= cores])
            for workload in table.workloads for line, flags in table.lines_of(workload).items()]
    for flags in (job.flags for job in plan.jobs.values()):
        spec.check_switches(where, flags)
    return Overview(tables, plan, found["repeats"], seconds or found["seconds"])


def _add_point(plan: Plan, table: Table, workload: str, line: str, flags: dict, seconds: float,
               processors: list[int]) -> Point:
    job = Job(flags, Place("ram", "", 1), seconds)
    job = plan.jobs.setdefault(job.key, job)
    if job.logs and not line.endswith(NOT_AHEAD):
        job.recoveries.update({f"on {count}": {"thread_cnt": count, PROCESSORS: count} for count in processors})
    return Point(workload, line, None, job.key)


def tables_of(overview: Overview, rows: list[dict]) -> str:
    """In Markdown. Raises SpecError where a point was not measured."""
    metrics: dict[tuple[str, str], dict[int, dict]] = {}
    for row in (row for row in rows if row["status"] == "ok"):
        metrics.setdefault((row["job"], row["recovery"]), {})[row["repeat"]] = row["record"].get("metrics", {})
    told: list[str] = []
    for name, table in overview.tables.items():
        points = overview.plan.points[name]
        if missing := [point for point in points if (point.job, "") not in metrics]:
            raise spec.SpecError(f"{name}: {missing[0].series}, {missing[0].panel}, was not measured")
        if table.heading:
            told += markdown.table([table.heading, *table.workloads], (
                [line, *(stats.spread(_rates(metrics, point).values()) for point in points if point.series == line)]
                for line in table.all_lines())) + [""]
        for workload in () if table.heading else table.workloads:
            here = [point for point in points if point.panel == workload]
            columns = [workload, "k/s (lowest-highest)", "of no log", "mean to acknowledgement", "bytes a record",
                       *(["recovery, 1 / 2 CPUs"] if table.recover else [])]
            told += markdown.table(columns, (line[:len(columns)]
                                             for line in _scheme_lines(overview.plan, here, metrics))) + [""]
    return "\n".join(told).rstrip("\n")


def _rates(metrics: dict, point: Point) -> dict[int, float]:
    return {repeat: values["throughput_acknowledged"] for repeat, values in metrics[point.job, ""].items()}


def _scheme_lines(plan: Plan, points: list[Point], metrics: dict) -> list[list[str]]:
    lines, base = [], points[0]
    for point in points:
        job, rates = plan.jobs[point.job], _rates(metrics, point)
        if not job.logs:
            base = point
            lines.append([point.series, stats.spread(rates.values()), "", "", "", ""])
            continue
        latency, size = (median(lookup(run, path) for run in metrics[point.job, ""].values())
                         for path in ("latency_us.mean", "bytes_per_txn"))
        recovered = [metrics.get((point.job, recovery), {}) for recovery in job.recoveries]
        lines.append([point.series, stats.spread(rates.values()),
                      stats.percent(stats.share_of(rates, _rates(metrics, base)), " %"),
                      f"{latency / 1e3:.2g} ms", f"{size:,.0f}",
                      " / ".join(stats.thousands(runs[max(runs)]["throughput"]) for runs in recovered if runs)])
    return lines
