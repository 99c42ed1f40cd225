"""The papers' claims beside ours. In a figure file:

  claims:
    - {claim: TEXT, paper: 9.9, of: taurus_data, over: serial_data}   ratio of y, the largest of all x and panels
    - {claim: TEXT, of: taurus_data, over: serial_data, at: last}     at the largest x of the plan (first: the smallest;
                                                                      peaks: of the largest y, wherever each has it)
    - {claim: TEXT, of: dl1p, over: pl2p, at: 8, over_at: 1}   of the one at 8 over the other at 1
    - {claim: TEXT, of: taurus_command, from: 0.6, to: 1.4, expect: falls}   how a line goes: rises, falls, flat
    - {claim: TEXT, of: metadata, below: 0.05}                           a share of time that is nowhere larger
    - {claim: TEXT, of: A, over: B, at: last, than: {figure: taurus/fig09_logging_hdd, panel: NAME}}   the ratio is
                                                                         smaller than that of the other figure
    - {claim: TEXT, of: taurus_data, expect: inverse}    y times x is the same at all x, within a factor of INVERSE,
                                                       with its interval, or 15 % without
    - {claim: TEXT, of: eleda, above: 0.5, at: first}    a share that is larger there
    - {claim: TEXT, of: hybrid, at_most: 0.5, at: first}   y itself is no larger there
  from, to and a number as `at` or `over_at` name points of the plan; no others are judged in their stead. Without from
  or to, the plan's ends. over: a list stands for the fastest of them at each point; panels: [NAME], only these panels;
  needs_cores: N, what a host must have to show it; paper: what the paper says, with rises and falls by how much; found:
  what was found where the claim does not hold, as FOUND says, and why; shown on no more cores; least_txns: N, instead
  of FEW.

With `at` or `expect`, all panels have to show it: the least convincing one counts. Verdicts: holds (at least nine
tenths of the paper's ratio, on a logarithmic scale above 1; or the direction that is expected), same shape (the same
side of 1), contradicted, not measurable (and why). Ratios below 1 are losses. A ratio whose interval comes within 5 %
of 1 decides nothing; without intervals, within 15 %, because single runs differ by as much. A point that is missing is
not passed over for another one, and one of fewer than FEW transactions is no rate: its run stalled.

A verdict on points of fewer than ENOUGH runs is only indicative, and says so. One that would be another at an end of
its interval (below stats.REPEATS_FOR_INTERVAL repeats: at the lowest or highest that single runs give) is at the edge,
and says that.
"""
from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import Callable, Mapping, Optional

from experiment.data import FigureData, Line
from experiment.records import lookup
from experiment.spec import baselines, is_number
from experiment.stats import ratio_interval, ratio_span

HOLDS, SHAPE, CONTRADICTED, UNKNOWN = "holds", "same shape", "contradicted", "not measurable"
FLAT = 0.05
FLAT_WITHOUT_INTERVAL = 0.15
NEARLY = 0.9
FEW = 1000  # transactions of a run
ENOUGH = 3  # runs of a point, for more than an indication
INVERSE = 2.0
FOUND_CORES = 2  # of the host that the texts were written on: larger ones may do otherwise for other reasons
FOUND = f"found on {FOUND_CORES} cores at scale smoke, --devices throughput"


class Unmeasured(Exception):
    """Why a claim cannot be judged."""


@dataclass(frozen=True)
class Verdict:
    claim: str
    paper: str
    ours: str
    verdict: str
    why: str = ""
    runs: int = ENOUGH  # of the point that has fewest

    @property
    def text(self) -> str:
        """As it is shown."""
        if self.verdict == UNKNOWN or self.runs >= ENOUGH:
            return self.verdict
        return f"{self.verdict}, indicative ({'one run' if self.runs == 1 else f'{self.runs} runs'} a point)"


@dataclass(frozen=True)
class Ratio:
    value: float
    interval: Optional[tuple[float, float]]
    where: str
    missing: str = ""  # of the points that it is the best of, one that could not be measured
    span: Optional[tuple[float, float]] = None  # the interval or, with fewer runs, the lowest and the highest

    def __str__(self) -> str:
        text = f"{self.value:.2f}x"
        if self.interval:
            text += f" [{self.interval[0]:.2f}, {self.interval[1]:.2f}]"
        elif self.span:
            text += f", {self.span[0]:.2f} to {self.span[1]:.2f}"
        return f"{text} ({self.where})"

    def at(self, value: float) -> Ratio:
        """As if it were known to be this."""
        return replace(self, value=value, interval=(value, value), span=None)

    @property
    def flat(self) -> float:
        return FLAT if self.interval else FLAT_WITHOUT_INTERVAL

    def decides_nothing(self) -> bool:
        low, high = self.interval or (self.value, self.value)
        return low / (1 + self.flat) <= 1 <= high * (1 + self.flat)

    def over(self, other: Ratio) -> Ratio:
        """Its interval is that of the ends that lie farthest apart."""
        return Ratio(self.value / other.value, _quotient(self.interval, other.interval), self.where,
                     span=_quotient(self.span, other.span))


def _quotient(above: Optional[tuple[float, float]], below: Optional[tuple[float, float]]):
    return (above[0] / below[1], above[1] / below[0]) if above and below else None


def _with_edge(ratio: Ratio, judge_ratio: Callable[[Ratio], tuple[str, str]]) -> tuple[str, str]:
    """The verdict, and whether it would be another one at an end of the interval."""
    verdict, why = judge_ratio(ratio)
    if verdict == UNKNOWN or not ratio.span:
        return verdict, why
    others = sorted({judge_ratio(ratio.at(end))[0] for end in ratio.span} - {verdict})
    return (verdict, _join(why, f"at the edge: within {'the interval' if ratio.interval else 'these runs'} it could "
                                f"also be '{' or '.join(others)}'")) if others else (verdict, why)


def _join(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def judge(data: FigureData, claim: dict, cores: int, others: Optional[Mapping[str, FigureData]] = None) -> Verdict:
    """`others`: the figures at hand by name, for claims that compare two."""
    paper = f"{claim['paper']:g}x" if is_number(claim.get("paper")) else str(claim.get("paper", "-"))
    try:
        ours, verdict, why = _judge(data, claim, others or {})
    except Unmeasured as reason:
        ours, verdict, why = "-", UNKNOWN, str(reason)
    needed = claim.get("needs_cores", 0)
    if cores < needed:
        verdict, why = UNKNOWN, f"needs {needed} cores, this host has {cores}"
    if verdict in (SHAPE, CONTRADICTED) and cores <= FOUND_CORES and "found" in claim:
        why = _join(why, f"{FOUND}: {claim['found']}")
    return Verdict(claim["claim"], paper, ours, verdict, why, _runs(data, claim, others or {}))


def _runs(data: FigureData, claim: dict, others: Mapping[str, FigureData]) -> int:
    """Of the point with fewest, among those of the claim's series."""
    names = [claim["of"], *baselines(claim)]
    lines = [_line(data, panel, name) for panel in _panels(data, claim) for name in names]
    than = claim.get("than")
    if than and than["figure"] in others:
        lines += [_line(others[than["figure"]], than["panel"], name) for name in names]
    return min((len(line.values[x]) for line in lines for x in line.xs()), default=0)


def _judge(data: FigureData, claim: dict, others: Mapping[str, FigureData]) -> tuple[str, str, str]:
    """Ours, the verdict, and why."""
    if {"above", "below"} & set(claim):
        return _judge_share(data, claim)
    if "at_most" in claim:
        return _judge_limit(data, claim)
    if claim.get("expect") == "inverse":
        return _judge_inverse(data, claim)
    if "expect" in claim:
        change = _change(data, claim)
        return str(change), *_with_edge(change, lambda one: _judge_change(one, claim["expect"], claim.get("paper")))
    ratio = _ratio(data, claim)
    if "than" in claim:
        return _judge_advantage(ratio, claim, others)
    return str(ratio), *_with_edge(ratio, lambda one: _judge_ratio(one, claim.get("paper")))


def _judge_share(data: FigureData, claim: dict) -> tuple[str, str, str]:
    points = [(panel, x) for panel in _panels(data, claim) for x in _chosen(data, panel, claim)]
    found = [(line.median(x), _where(data, panel, x), line.values[x]) for panel, x in points
             if (line := _line(data, panel, claim["of"])).median(x) is not None]
    if not found:
        raise Unmeasured("no figures for it here")
    above = "above" in claim
    limit = claim["above" if above else "below"]
    share, where, runs = min(found) if above else max(found)
    ours = f"{100 * share:.1f} % at {'least' if above else 'most'} ({where})"
    kept = [value > limit if above else value < limit for value in runs]
    edge = "at the edge: single runs lie on the other side" if len(set(kept)) > 1 else ""
    if share <= limit if above else share >= limit:
        return ours, CONTRADICTED, _join(f"it takes a {'smaller' if above else 'larger'} share here", edge)
    if len(found) < len(points):
        return ours, UNKNOWN, f"{len(points) - len(found)} of {len(points)} points have no figure"
    return ours, HOLDS, edge


def _judge_limit(data: FigureData, claim: dict) -> tuple[str, str, str]:
    """In y's unit; the largest median of the points counts."""
    points = [(panel, x) for panel in _panels(data, claim) for x in _chosen(data, panel, claim)]
    found = [(line.median(x), _where(data, panel, x), line.values[x]) for panel, x in points
             if (line := _line(data, panel, claim["of"])).median(x) is not None]
    if not found or len(found) < len(points):
        raise Unmeasured("no figures for it here" if not found else "some points have no figure")
    most, where, runs = max(found)
    limit = claim["at_most"]
    edge = "at the edge: single runs lie on the other side" if len({value <= limit for value in runs}) > 1 else ""
    verdict, why = (HOLDS, "") if most <= limit else (CONTRADICTED, f"it is above {limit:g} here")
    return f"{most:.3g} ({where})", verdict, _join(why, edge)


def _judge_inverse(data: FigureData, claim: dict) -> tuple[str, str, str]:
    judged = []
    for panel in _panels(data, claim):
        line = _line(data, panel, claim["of"])
        for x in line.values:
            _check_point(line, claim["of"], x, _where(data, panel, x), claim)
        if not all(is_number(x) and x > 0 for x in line.values):
            raise Unmeasured(f"{data.figure.x.label} is no number above 0 everywhere")
        if len(line.values) < 2:
            raise Unmeasured("no figures for it here")
        factor = _factor_of_products(data, panel, line)
        judged.append((f"the product differs by {factor}", *_with_edge(factor, _judge_factor)))
    return max(judged, key=lambda one: (HOLDS, UNKNOWN, CONTRADICTED).index(one[1]))


def _judge_factor(factor: Ratio) -> tuple[str, str]:
    low, high = factor.interval or (factor.value / (1 + factor.flat), factor.value * (1 + factor.flat))
    if low > INVERSE:
        return CONTRADICTED, "it is not inverse here"
    return (HOLDS, "") if high <= INVERSE else (UNKNOWN, f"too few runs to tell it from {INVERSE:g}x")


def _factor_of_products(data: FigureData, panel: str, line: Line) -> Ratio:
    """The largest y times x over the smallest."""
    least, *_, most = sorted(line.values, key=lambda x: line.median(x) * x)
    interval, span = (of(line.values[most], line.values[least]) for of in (ratio_interval, ratio_span))
    return Ratio(line.median(most) * most / (line.median(least) * least),
                 interval and tuple(end * most / least for end in interval),
                 f"{panel}, {data.figure.x.label} {most} and {least}",
                 span=span and tuple(end * most / least for end in span))


def _judge_advantage(ratio: Ratio, claim: dict, others: Mapping[str, FigureData]) -> tuple[str, str, str]:
    than = claim["than"]
    if than["figure"] not in others:
        raise Unmeasured(f"{than['figure']}, which it is compared with, is not among the figures at hand")
    there = _ratio(others[than["figure"]], {**claim, "panels": [than["panel"]]})
    return f"{ratio}; there {there}", *_with_edge(ratio.over(there), _judge_smaller)


def _judge_smaller(of_both: Ratio) -> tuple[str, str]:
    if of_both.decides_nothing():
        return UNKNOWN, "the two do not differ here beyond their scatter"
    return (HOLDS, "") if of_both.value < 1 else (CONTRADICTED, "it is larger here")


def _judge_ratio(ratio: Ratio, paper) -> tuple[str, str]:
    expected = float(paper) if is_number(paper) else None
    if expected is not None and abs(math.log(expected)) < FLAT:
        return _judge_equal(ratio, "they are not equal here")
    if expected is not None and expected < 1 and ratio.value < 1:  # a loss, which is to be no larger than there
        return (HOLDS, "") if ratio.value >= NEARLY * expected else (CONTRADICTED, "it loses more here")
    if ratio.decides_nothing():
        return UNKNOWN, "the two do not differ here beyond their scatter"
    if (ratio.value > 1) != (expected is None or expected > 1):
        return (UNKNOWN, ratio.missing) if ratio.missing else (CONTRADICTED, "the other is ahead here")
    if expected is None or math.log(ratio.value) >= NEARLY * math.log(expected):
        return HOLDS, ""
    return SHAPE, "it is ahead here too, by less"


def _judge_change(ratio: Ratio, expect: str, paper) -> tuple[str, str]:
    if expect == "flat":
        return _judge_equal(ratio, "it is not flat here")
    if ratio.decides_nothing():
        return UNKNOWN, "it does not change here beyond its scatter"
    if (ratio.value > 1) != (expect == "rises"):
        return CONTRADICTED, "it goes the other way here"
    if is_number(paper) and abs(math.log(ratio.value)) < NEARLY * abs(math.log(paper)):
        return SHAPE, "it does here too, by less"
    return HOLDS, ""


def _judge_equal(ratio: Ratio, otherwise: str) -> tuple[str, str]:
    distance = abs(math.log(ratio.value))
    if distance < 2 * FLAT:
        return HOLDS, ""
    return (UNKNOWN, "too few runs to tell") if distance < 2 * ratio.flat else (CONTRADICTED, otherwise)


def _panels(data: FigureData, claim: dict) -> list[str]:
    """Without a choice, those that draw it."""
    return claim.get("panels") or [panel for panel in data.figure.panels if claim["of"] in data.figure.drawn_in(panel)]


def _line(data: FigureData, panel: str, name: str) -> Line:
    return data.line(data.figure.panel_of(panel, name), name)


def _ratio(data: FigureData, claim: dict) -> Ratio:
    planned = {panel: _chosen(data, panel, claim) for panel in _panels(data, claim)}
    if not all(planned.values()) or not planned:
        raise Unmeasured("no figures for it here")
    at = claim.get("at")
    if at == "peaks":
        return _least([_ratio_of_peaks(data, claim, panel, xs) for panel, xs in planned.items()])
    if at:
        return _least([_ratio_at(data, claim, panel, xs[0], _point_over(data, claim, panel, xs[0]))
                       for panel, xs in planned.items()])
    return _best_ratio(data, claim, planned)


def _chosen(data: FigureData, panel: str, claim: dict) -> list:
    """The points that `at` leaves of those of the plan: one, or all."""
    xs, at = list(_line(data, panel, claim["of"]).values), claim.get("at", "peaks")
    return xs if at == "peaks" or not xs else [_point(data, xs, {"first": xs[0], "last": xs[-1]}.get(at, at))]


def _point_over(data: FigureData, claim: dict, panel: str, x):
    """Where the baselines have theirs, if not at x."""
    if "over_at" not in claim:
        return x
    xs, at = list(_line(data, panel, baselines(claim)[0]).values), claim["over_at"]
    return _point(data, xs, {"first": xs[0], "last": xs[-1]}.get(at, at)) if xs else x


def _least(ratios: list[Ratio]) -> Ratio:
    return min(ratios, key=lambda ratio: ratio.value)


def _best_ratio(data: FigureData, claim: dict, planned: dict[str, list]) -> Ratio:
    found, missing = [], []
    for panel, xs in planned.items():
        for x in xs:
            try:
                found.append(_ratio_at(data, claim, panel, x, x))
            except Unmeasured as reason:
                missing.append(str(reason))
    if not found:
        raise Unmeasured(missing[0])
    best = max(found, key=lambda ratio: ratio.value)
    return replace(best, missing="; ".join(missing[:1]))


def _ratio_at(data: FigureData, claim: dict, panel: str, x, x_over) -> Ratio:
    """Of the points at x over those of the baselines at x_over."""
    where = _where(data, panel, x)
    lines = {name: _line(data, panel, name) for name in [claim["of"], *baselines(claim)]}
    _check_point(lines[claim["of"]], claim["of"], x, where, claim)
    for name in baselines(claim):
        _check_point(lines[name], name, x_over, _where(data, panel, x_over), claim)
    rival = max(baselines(claim), key=lambda name: lines[name].median(x_over))
    if x_over != x:
        where += f" over {x_over}"
    return _ratio_of(lines[claim["of"]].values[x], lines[rival].values[x_over],
                     where if len(baselines(claim)) == 1 else f"{where}, over {rival}")


def _ratio_of(above: list[float], below: list[float], where: str) -> Ratio:
    """Of the medians."""
    return Ratio(statistics.median(above) / statistics.median(below), ratio_interval(above, below), where,
                 span=ratio_span(above, below))


def _ratio_of_peaks(data: FigureData, claim: dict, panel: str, xs: list) -> Ratio:
    peaks = []
    for name in [claim["of"], *baselines(claim)]:
        line = _line(data, panel, name)
        for x in xs:
            _check_point(line, name, x, _where(data, panel, x), claim)
        x = max(xs, key=line.median)
        peaks.append((line.median(x), line.values[x], x))
    above, below = peaks[0], max(peaks[1:], key=lambda peak: peak[0])
    label = data.figure.x.label
    return _ratio_of(above[1], below[1], f"{panel}, {label} {above[2]} and {below[2]}")


def _check_point(line: Line, name: str, x, where: str, claim: dict) -> None:
    """Raises Unmeasured where there is no rate to divide."""
    few = claim.get("least_txns", FEW)
    transactions = _transactions(line, x)
    if transactions < few:
        raise Unmeasured(f"{name} did only {transactions} transactions ({where}), which is no rate")
    if not line.median(x):
        raise Unmeasured(f"{name} has no figure ({where})")


def _transactions(line: Line, x) -> float:
    """Of the run or the recovery of the point that has fewest; benchmarks count none."""
    metrics = [row["record"].get("metrics", {}) for row in line.rows_of.get(x, [])]
    counts = [lookup(of_row, name) for of_row in metrics for name in ("acknowledged_txns", "acknowledged", "recovered_txns")]
    return min((count for count in counts if count is not None), default=math.inf)


def _change(data: FigureData, claim: dict) -> Ratio:
    found = []
    for panel in _panels(data, claim):
        line = _line(data, panel, claim["of"])
        xs = list(line.values)
        if not xs:
            raise Unmeasured("no figures for it here")
        ends = [_point(data, xs, claim.get(end, xs[fallback])) for end, fallback in (("from", 0), ("to", -1))]
        where = f"{panel}, {data.figure.x.label} {ends[0]} to {ends[1]}"
        if ends[0] == ends[1]:
            raise Unmeasured(f"there is one point alone ({data.figure.x.label} {ends[0]})")
        for x in ends:
            _check_point(line, claim["of"], x, _where(data, panel, x), claim)
        found.append(_ratio_of(line.values[ends[1]], line.values[ends[0]], where))
    if not found:
        raise Unmeasured("no figures for it here")
    distance = {"falls": lambda ratio: ratio.value, "rises": lambda ratio: 1 / ratio.value,
                "flat": lambda ratio: abs(math.log(ratio.value))}[claim["expect"]]
    return max(found, key=distance)


def _point(data: FigureData, xs: list, wanted):
    if wanted not in xs:
        raise Unmeasured(f"{data.figure.x.label} {wanted} is no point of this plan")
    return wanted


def _where(data: FigureData, panel: str, x) -> str:
    label = data.figure.x.label
    return f"{panel}, {label} {x}" if len(data.figure.panels) > 1 else f"{label} {x}"
