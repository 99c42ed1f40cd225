"""Rows to what is drawn: the values of each point over its repeats, medians, 95 % intervals, and CSV.

An interval is of the median, by bootstrap with a fixed seed; below kRepeatsForInterval repeats there is none.
"""
from __future__ import annotations

import csv
from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from experiment.planning import Plan
from experiment.spec import Figure, lookup

REPEATS_FOR_INTERVAL = 6
RESAMPLES = 2000


@dataclass
class Line:
    """One series in one panel."""

    values: dict[object, list[float]] = field(default_factory=dict)  # by x, in its order
    rows: list[dict] = field(default_factory=list)                   # that gave them

    def median(self, x) -> Optional[float]:
        values = self.values.get(x)
        return float(np.median(values)) if values else None

    def interval(self, x) -> Optional[tuple[float, float]]:
        return interval_of(self.values.get(x, []))

    def xs(self) -> list:
        return [x for x, values in self.values.items() if values]


@dataclass
class FigureData:
    figure: Figure
    lines: dict[tuple[str, str], Line]  # by (panel, series)
    failures: list[dict]
    missing: int = 0                    # points without a value

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


def collect(figure: Figure, plan: Plan, rows: list[dict]) -> FigureData:
    by_step: dict[tuple[str, str], list[dict]] = {}
    for row in rows:
        by_step.setdefault((row["job"], row["recovery"]), []).append(row)
    data = FigureData(figure, {}, [])
    for point in plan.points[figure.name]:
        line = data.lines.setdefault((point.panel, point.series), Line())
        of_job = by_step.get((point.job, ""), [])
        of_point = by_step.get((point.job, point.recovery), [])
        good = [row for row in of_point if row["status"] == "ok"]
        metric = f"{figure.y.metric}.{point.series}.{point.x}" if figure.step == "bench" else figure.y.metric
        values = [lookup(row["record"].get("metrics"), metric) for row in good]
        line.values[point.x] = [float(value) for value in values if value is not None]
        line.rows += good
        failed = [row for row in {id(r): r for r in of_job + of_point}.values() if row["status"] == "failed"]
        data.failures += [row for row in failed if row not in data.failures]
        data.missing += not line.values[point.x]
    return data


def write_csv(data: FigureData, path: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["panel", "series", data.figure.x.flag, "median", "low", "high", "values"])
        for (panel, series), line in data.lines.items():
            for x, values in line.values.items():
                low, high = line.interval(x) or ("", "")
                writer.writerow([panel, series, x, line.median(x) if values else "", low, high,
                                 " ".join(f"{value:g}" for value in values)])


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
