"""Rows to what is drawn: the values of each point over its repeats, medians, 95 % intervals, and CSV."""
from __future__ import annotations

import csv
import math
from dataclasses import dataclass, field
from statistics import median
from typing import Iterable, Optional, Sequence

from experiment import ceiling as ceiling_module, formula, origin
from experiment.ceiling import Ceiling
from experiment.planning import Plan, Point
from experiment.records import lookup
from experiment.spec import Figure, is_number
from experiment.stats import interval_of


@dataclass
class Line:
    """One series in one panel."""

    values: dict[object, list[float]] = field(default_factory=dict)  # by x, in its order
    rows_of: dict[object, list[dict]] = field(default_factory=dict)  # that gave them, by x
    ceiling: dict[object, float] = field(default_factory=dict)       # what the devices allow it, by x
    parts: dict[str, Line] = field(default_factory=dict)             # of which the values are the sums

    def median(self, x) -> Optional[float]:
        values = self.values.get(x)
        return median(values) if values else None

    def interval(self, x) -> Optional[tuple[float, float]]:
        return interval_of(self.values.get(x, []))

    @property
    def rows(self) -> list[dict]:
        return [row for rows in self.rows_of.values() for row in rows]

    def xs(self) -> list:
        return [x for x, values in self.values.items() if values]


@dataclass
class Gap:
    """The points of one series in one panel that have no figure."""

    panel: str
    series: str
    xs: list = field(default_factory=list)
    whys: set[str] = field(default_factory=set)
    excused: str = ""  # why this host cannot have them; then it is no fault

    def __str__(self) -> str:
        why = self.excused or ", ".join(sorted(self.whys))
        return f"panel {self.panel}, series {self.series}: nothing at {', '.join(map(str, self.xs))} ({why})"


@dataclass(frozen=True)
class ModelledLine:
    """One series in one panel by an instrument's model (modelled.py). It is no Line: nothing measured comes of it."""

    how: str                  # the model, in words
    points: dict[int, float]  # by threads, ascending


@dataclass
class Modelled:
    lines: dict[tuple[str, str], ModelledLine] = field(default_factory=dict)  # by (panel, series)
    missing: list[str] = field(default_factory=list)                          # what is absent, or which command makes it

    def in_panel(self, panel: str) -> dict[str, ModelledLine]:
        return {name: line for (of, name), line in self.lines.items() if of == panel}


@dataclass
class FigureData:
    figure: Figure
    lines: dict[tuple[str, str], Line]  # by (panel, series)
    failures: list[dict]
    gaps: dict[tuple[str, str], Gap] = field(default_factory=dict)
    ceiling_source: str = ""
    modelled: Modelled = field(default_factory=Modelled)

    @property
    def faults(self) -> list[Gap]:
        """Gaps that ought not to be."""
        return [gap for gap in self.gaps.values() if not gap.excused]

    def repeats(self) -> tuple[int, int]:
        """The least and the most values that a point has."""
        counts = [len(line.values[x]) for line in self.lines.values() for x in line.xs()]
        return min(counts, default=0), max(counts, default=0)

    def line(self, panel: str, series: str) -> Line:
        return self.lines.get((panel, series), Line())

    def modelled_beyond(self, panel: str, series: str) -> dict[int, float]:
        """Modelled points that are shown: those of more threads than were measured."""
        line = self.modelled.lines.get((panel, series))
        most = max(self.line(panel, series).xs(), default=0)
        return {x: y for x, y in line.points.items() if x > most} if line else {}

    def rows(self) -> list[dict]:
        return [row for line in self.lines.values() for row in line.rows]


def _point_metric(figure: Figure, point: Point) -> str:
    """Where the record has the point's value: benchmarks and shares of time tell several series at once."""
    if figure.step == "bench":
        return f"{figure.y.metric}.{point.series}.{point.x}"
    metric = figure.y.metric_of(point.series)
    return f"{metric}.{point.series}" if figure.draw == "shares" else point.metric or metric


def _numbers(values: Iterable) -> list[float]:
    return [float(value) for value in values if is_number(value) and math.isfinite(value)]


def _add_parts(line: Line, parts: dict[str, str], x, rows: list[dict]) -> list[float]:
    """Returns their sums; a record that lacks one gives none of them."""
    of_rows = [[formula.evaluate(row["record"].get("metrics"), text) for text in parts.values()]
               for row in rows]
    whole = [values for values in of_rows if len(_numbers(values)) == len(values)]
    for i, name in enumerate(parts):
        line.parts.setdefault(name, Line()).values[x] = [values[i] for values in whole]
    return [sum(values) for values in whole]


def _lacking_parts(parts: dict[str, str], rows: list[dict]) -> str:
    return ", ".join(name for name, text in parts.items()
                     if any(formula.evaluate(row["record"].get("metrics"), text) is None for row in rows))


def _allowed(figure: Figure):
    """What tells, from a row, how large the figure's y can be on its devices; None where they do not limit it."""
    metric = str(figure.y.metric)
    if figure.step == "run" and metric.startswith("throughput"):
        return ceiling_module.transactions_per_second
    if figure.step == "run" and metric == "log_bytes_per_second":
        return ceiling_module.log_bytes_per_second
    return None


def _add_ceilings(data: FigureData, measured: Sequence[Ceiling]) -> None:
    allowed = _allowed(data.figure)
    if allowed is None:
        return
    for line in data.lines.values():
        for x in line.xs():
            rates = [allowed(row, measured) for row in line.rows_of[x]]
            if all(rates):
                line.ceiling[x] = median(rates)
                data.ceiling_source = ceiling_module.of_row(line.rows_of[x][0], measured).source


def collect(figure: Figure, plan: Plan, rows: list[dict], measured: Sequence[Ceiling] = ()) -> FigureData:
    """`measured`: what real devices take."""
    by_step: dict[tuple[str, str], list[dict]] = {}
    for row in rows:
        by_step.setdefault((row["job"], row["recovery"]), []).append(row)
    data = FigureData(figure, {}, [])
    for point in plan.points[figure.name]:
        line = data.lines.setdefault((point.panel, point.series), Line())
        of_job = by_step.get((point.job, ""), [])
        of_point = by_step.get((point.job, point.recovery), [])
        good = [row for row in of_point if row["status"] == "ok"]
        if figure.y.parts:
            parts = figure.y.parts_of(point.series)
            metric = _lacking_parts(parts, good)
            line.values[point.x] = _add_parts(line, parts, point.x, good)
        else:
            metric = _point_metric(figure, point)
            line.values[point.x] = _numbers(lookup(row["record"].get("metrics"), metric) for row in good)
        line.rows_of[point.x] = good
        # What was not started, as its run had failed, has no command: the run's failure tells of it.
        failed = [row for row in {id(r): r for r in of_job + of_point}.values()
                  if row["status"] == "failed" and row["command"]]
        data.failures += [row for row in failed if row not in data.failures]
        _count(data, point, of_point, good, metric)
    _add_ceilings(data, measured)
    return data


def _count(data: FigureData, point: Point, rows: list[dict], good: list[dict], metric: str) -> None:
    """The point in its line's gap, if it has no figure."""
    line = data.lines[point.panel, point.series]
    no_latencies = data.figure.draw == "cdf" and not latency_cdf(good)
    if line.values[point.x] and not no_latencies:
        return
    gap = data.gaps.setdefault((point.panel, point.series), Gap(point.panel, point.series))
    gap.xs.append(point.x)
    refused = [why for row in good for why in row["record"].get("skipped", []) if f"={point.series}:" in why]
    refused += [row["why"] for row in rows if row["status"] == "skipped"]
    if refused:
        gap.excused = refused[0]
    elif not good:
        gap.whys.add("failed" if rows else "not run")
    else:
        gap.whys.add(f"no {'latencies' if no_latencies else metric} in the record")


def write_csv(data: FigureData, path: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["panel", "series", data.figure.x.flag, "median", "low", "high", "device", "device_ceiling",
                         "values", "modelled"])
        for (panel, series), line in data.lines.items():
            for x in line.values:
                devices = sorted({origin.device_of(row) for row in line.rows_of.get(x, [])} - {""})
                for name, one in [(series, line)] + [(f"{series}: {part}", of) for part, of in line.parts.items()]:
                    values, (low, high) = one.values[x], one.interval(x) or ("", "")
                    writer.writerow([panel, name, x, one.median(x) if values else "", low, high,
                                     " and ".join(devices), one.ceiling.get(x, ""),
                                     " ".join(f"{value:g}" for value in values), ""])
        for panel, series in data.modelled.lines:
            for x, value in data.modelled_beyond(panel, series).items():
                writer.writerow([panel, f"{series}: modelled", x, *[""] * 6, f"{value:g}"])


def latency_cdf(rows: list[dict]) -> list[tuple[float, float]]:
    """(microseconds, share of transactions) from the histograms of all rows."""
    counts: dict[float, int] = {}
    for row in rows:
        for upper_ns, count in row["record"].get("latency_histogram") or []:
            counts[upper_ns] = counts.get(upper_ns, 0) + count
    total, below, points = sum(counts.values()), 0, []
    for upper_ns in sorted(counts):
        below += counts[upper_ns]
        points.append((upper_ns / 1e3, below / total))
    return points
