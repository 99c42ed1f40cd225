"""Rows to what is drawn: the values of each point over its repeats, medians, 95 % intervals, and CSV.

An interval is of the median, by bootstrap with a fixed seed; below kRepeatsForInterval repeats there is none.
"""
from __future__ import annotations

import csv
from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from experiment import ceiling as ceiling_module
from experiment.ceiling import Ceiling
from experiment.planning import Plan
from experiment.spec import Figure, lookup

REPEATS_FOR_INTERVAL = 6
RESAMPLES = 2000


@dataclass
class Line:
    """One series in one panel."""

    values: dict[object, list[float]] = field(default_factory=dict)  # by x, in its order
    rows_of: dict[object, list[dict]] = field(default_factory=dict)  # that gave them, by x
    ceiling: dict[object, float] = field(default_factory=dict)       # what the devices allow it, by x

    def median(self, x) -> Optional[float]:
        values = self.values.get(x)
        return float(np.median(values)) if values else None

    def interval(self, x) -> Optional[tuple[float, float]]:
        return interval_of(self.values.get(x, []))

    @property
    def rows(self) -> list[dict]:
        return [row for rows in self.rows_of.values() for row in rows]

    def xs(self) -> list:
        return [x for x, values in self.values.items() if values]


@dataclass
class FigureData:
    figure: Figure
    lines: dict[tuple[str, str], Line]  # by (panel, series)
    failures: list[dict]
    missing: int = 0                    # points without a value
    ceiling_source: str = ""

    def line(self, panel: str, series: str) -> Line:
        return self.lines.get((panel, series), Line())

    def rows(self) -> list[dict]:
        return [row for line in self.lines.values() for row in line.rows]


def interval_of(values: list[float]) -> Optional[tuple[float, float]]:
    if len(values) < REPEATS_FOR_INTERVAL:
        return None
    medians = np.median(_resampled(values, 1), axis=1)
    return float(np.percentile(medians, 2.5)), float(np.percentile(medians, 97.5))


def ratio_interval(above: list[float], below: list[float]) -> Optional[tuple[float, float]]:
    """Of the ratio of the medians."""
    if min(len(above), len(below)) < REPEATS_FOR_INTERVAL:
        return None
    ratios = np.median(_resampled(above, 1), axis=1) / np.median(_resampled(below, 2), axis=1)
    return float(np.percentile(ratios, 2.5)), float(np.percentile(ratios, 97.5))


def _resampled(values: list[float], seed: int):
    return np.random.default_rng(seed).choice(np.asarray(values, dtype=float), size=(RESAMPLES, len(values)))


def _point_metric(figure: Figure, series: str, x) -> str:
    """Where the record has the point's value: benchmarks and shares of time tell several series at once."""
    if figure.step == "bench":
        return f"{figure.y.metric}.{series}.{x}"
    return f"{figure.y.metric}.{series}" if figure.draw == "shares" else figure.y.metric


def _add_ceilings(data: FigureData, measured: Optional[Ceiling]) -> None:
    if data.figure.step != "run" or not data.figure.y.metric.startswith("throughput"):
        return
    for line in data.lines.values():
        for x in line.xs():
            rates = [ceiling_module.transactions_per_second(row, measured) for row in line.rows_of[x]]
            if all(rates):
                line.ceiling[x] = float(np.median(rates))
                data.ceiling_source = ceiling_module.of_row(line.rows_of[x][0], measured).source


def collect(figure: Figure, plan: Plan, rows: list[dict], measured: Optional[Ceiling] = None) -> FigureData:
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
        metric = _point_metric(figure, point.series, point.x)
        values = [lookup(row["record"].get("metrics"), metric) for row in good]
        line.values[point.x] = [float(value) for value in values if value is not None]
        line.rows_of[point.x] = good
        failed = [row for row in {id(r): r for r in of_job + of_point}.values() if row["status"] == "failed"]
        data.failures += [row for row in failed if row not in data.failures]
        data.missing += not line.values[point.x]
    _add_ceilings(data, measured)
    return data


def write_csv(data: FigureData, path: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["panel", "series", data.figure.x.flag, "median", "low", "high", "device_ceiling", "values"])
        for (panel, series), line in data.lines.items():
            for x, values in line.values.items():
                low, high = line.interval(x) or ("", "")
                writer.writerow([panel, series, x, line.median(x) if values else "", low, high,
                                 line.ceiling.get(x, ""), " ".join(f"{value:g}" for value in values)])


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
