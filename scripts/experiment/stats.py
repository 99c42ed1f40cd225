"""Figures from repeated measurements: medians, spreads, shares and intervals, and the texts in which they are shown.

A table, a plot and a page that show the same figure have it from here. An interval is of the median, by bootstrap with
a fixed seed; below REPEATS_FOR_INTERVAL repeats there is none, only the span from the lowest to the highest.
"""
from __future__ import annotations

from statistics import median
from typing import Iterable, Optional

REPEATS_FOR_INTERVAL = 6
RESAMPLES = 2000


def share_of(rates: dict[int, float], base: dict[int, float]) -> Optional[float]:
    """By round: the median over the rounds that both have; without such rounds, of the medians."""
    common = [number for number in rates if base.get(number)]
    if common:
        return median(rates[number] / base[number] for number in common)
    return median(rates.values()) / median(base.values()) if rates and base and median(base.values()) else None


def interval_of(values: list[float]) -> Optional[tuple[float, float]]:
    return _ends(_medians(values, 1)) if len(values) >= REPEATS_FOR_INTERVAL else None


def ratio_interval(above: list[float], below: list[float]) -> Optional[tuple[float, float]]:
    """Of the ratio of the medians."""
    if min(len(above), len(below)) < REPEATS_FOR_INTERVAL:
        return None
    return _ends(_medians(above, 1) / _medians(below, 2))


def ratio_span(above: list[float], below: list[float]) -> Optional[tuple[float, float]]:
    """The interval of the ratio; with fewer repeats, but at least two of each, the least and the largest that single
    runs give."""
    if min(len(above), len(below)) < 2 or min(below) <= 0:
        return None
    return ratio_interval(above, below) or (min(above) / max(below), max(above) / min(below))


def _medians(values: list[float], seed: int):
    """Of resamples."""
    import numpy as np  # here: a table needs none
    chosen = np.random.default_rng(seed).choice(np.asarray(values, dtype=float), size=(RESAMPLES, len(values)))
    return np.median(chosen, axis=1)


def _ends(resampled) -> tuple[float, float]:
    import numpy as np
    return float(np.percentile(resampled, 2.5)), float(np.percentile(resampled, 97.5))


def thousands(value: Optional[float]) -> str:
    """1234567 -> '1,235' (thousands per second), '-' where there is nothing."""
    if value is None:
        return "-"
    return f"{value / 1e3:,.0f}" if value >= 1e5 else f"{value / 1e3:.1f}"


def percent(value: Optional[float], unit: str = "%") -> str:
    """A share above 100 % is marked: no run is faster for its log, or faster than its host's limit, so the scatter
    between runs exceeds the difference that is compared."""
    return "-" if value is None else f"{100 * value:.0f}{unit}" + "!" * (round(100 * value) > 100)


def spread(rates: Iterable[float]) -> str:
    rates = list(rates)
    return f"{thousands(median(rates))} ({thousands(min(rates))}-{thousands(max(rates))})" if rates else "-"


def microseconds(value: Optional[float]) -> str:
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value / 1000:.1f}ms" if value < 1e5 else f"{value / 1000:.0f}ms"
    return f"{value:.0f}us" if value >= 10 else f"{value:.1f}us"


def plain(value: Optional[float], scale: float = 1.0) -> str:
    if value is None:
        return "-"
    scaled = value / scale
    return f"{scaled:,.0f}" if scaled >= 10 else f"{scaled:.1f}"
