"""The papers' claims beside ours. In a figure file:

  claims:
    - {claim: TEXT, paper: 9.9, of: taurus_data, over: serial_data}   ratio of y, the largest over x and panels
    - {claim: TEXT, of: taurus_data, over: serial_data, at: last}     at the largest x; at: min, the smallest ratio
    - {claim: TEXT, of: taurus_command, from: 0.6, to: 1.4, expect: falls}   how a line goes: rises, falls, flat
    - {claim: TEXT, of: metadata, below: 0.05}                           a share of time that is nowhere larger
  panels: [NAME], only these panels; needs_cores: N, what a host must have to show it; paper: what the paper says.

Verdicts: holds (at least nine tenths of the paper's ratio, on a logarithmic scale above 1; or the direction that is
expected), same shape (the same side of 1), contradicted, not measurable (and why). Ratios below 1 are losses. A ratio within 5 % of 1, or whose interval
holds 1, decides nothing.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional

from experiment.data import FigureData, ratio_interval
from experiment.spec import SpecError

HOLDS, SHAPE, CONTRADICTED, UNKNOWN = "holds", "same shape", "contradicted", "not measurable"
FLAT = 0.05
NEARLY = 0.9
KEYS = {"claim", "paper", "of", "over", "at", "from", "to", "expect", "panels", "needs_cores", "below"}


@dataclass(frozen=True)
class Verdict:
    claim: str
    paper: str
    ours: str
    verdict: str
    why: str = ""


@dataclass(frozen=True)
class Ratio:
    value: float
    interval: Optional[tuple[float, float]]
    where: str

    def __str__(self) -> str:
        text = f"{self.value:.2f}x"
        if self.interval:
            text += f" [{self.interval[0]:.2f}, {self.interval[1]:.2f}]"
        return f"{text} ({self.where})"

    def decides_nothing(self) -> bool:
        low, high = self.interval or (self.value * (1 - FLAT), self.value * (1 + FLAT))
        return low <= 1 <= high


def judge(data: FigureData, claim: dict, cores: int) -> Verdict:
    unknown = set(claim) - KEYS
    if unknown or "claim" not in claim or "of" not in claim:
        raise SpecError(f"{data.figure.name}: a claim has {', '.join(sorted(unknown)) or 'no claim or no of'}")
    paper = f"{claim['paper']:g}x" if isinstance(claim.get("paper"), (int, float)) else str(claim.get("paper", "-"))
    if "below" in claim:
        return _judge_share(data, claim, paper)  # a share needs no more cores than there are
    ratio = _change(data, claim) if "expect" in claim else _best_ratio(data, claim)
    if ratio is None:
        return Verdict(claim["claim"], paper, "-", UNKNOWN, "no figures for it here")
    needed = claim.get("needs_cores", 0)
    if cores < needed:
        return Verdict(claim["claim"], paper, str(ratio), UNKNOWN, f"needs {needed} cores, this host has {cores}")
    if "expect" in claim:
        return Verdict(claim["claim"], paper, str(ratio), *_judge_change(ratio, claim["expect"]))
    return Verdict(claim["claim"], paper, str(ratio), *_judge_ratio(ratio, claim.get("paper")))


def _judge_share(data: FigureData, claim: dict, paper: str) -> Verdict:
    found = [(data.line(panel, claim["of"]).median(x), _where(data, panel, x)) for panel in _panels(data, claim)
             for x in data.line(panel, claim["of"]).xs()]
    if not found:
        return Verdict(claim["claim"], paper, "-", UNKNOWN, "no figures for it here")
    largest, where = max(found)
    ours = f"{100 * largest:.1f} % at most ({where})"
    return Verdict(claim["claim"], paper, ours, *((HOLDS, "") if largest < claim["below"] else
                                                  (CONTRADICTED, "it takes a larger share here")))


def _judge_ratio(ratio: Ratio, paper) -> tuple[str, str]:
    expected = float(paper) if isinstance(paper, (int, float)) else None
    if expected is not None and abs(math.log(expected)) < FLAT:
        return (HOLDS, "") if abs(math.log(ratio.value)) < 2 * FLAT else (CONTRADICTED, "they are not equal here")
    if ratio.decides_nothing():
        return UNKNOWN, "the two do not differ here beyond their scatter"
    above = expected is None or expected > 1
    if (ratio.value > 1) != above:
        return CONTRADICTED, "the other is ahead here"
    if expected is not None and expected < 1:  # a loss, which is to be no larger than there
        return (HOLDS, "") if ratio.value >= NEARLY * expected else (CONTRADICTED, "it loses more here")
    if expected is None or math.log(ratio.value) >= NEARLY * math.log(expected):
        return HOLDS, ""
    return SHAPE, ""


def _judge_change(ratio: Ratio, expect: str) -> tuple[str, str]:
    if expect == "flat":
        return (HOLDS, "") if abs(math.log(ratio.value)) < 2 * FLAT else (CONTRADICTED, "it is not flat here")
    if ratio.decides_nothing():
        return UNKNOWN, "it does not change here beyond its scatter"
    return (HOLDS, "") if (ratio.value > 1) == (expect == "rises") else (CONTRADICTED, "it goes the other way here")


def _panels(data: FigureData, claim: dict) -> list[str]:
    return claim.get("panels") or list(data.figure.panels)


def _best_ratio(data: FigureData, claim: dict) -> Optional[Ratio]:
    found = []
    for panel in _panels(data, claim):
        above, below = data.line(panel, claim["of"]), data.line(panel, claim["over"])
        xs = [x for x in above.xs() if below.median(x)]
        if claim.get("at") == "last":
            xs = xs[-1:]
        found += [Ratio(above.median(x) / below.median(x), ratio_interval(above.values[x], below.values[x]),
                        _where(data, panel, x)) for x in xs]
    choose = min if claim.get("at") == "min" else max
    return choose(found, key=lambda ratio: ratio.value, default=None)


def _change(data: FigureData, claim: dict) -> Optional[Ratio]:
    """The least convincing of the panels."""
    found = []
    for panel in _panels(data, claim):
        line = data.line(panel, claim["of"])
        xs = line.xs()
        ends = [_nearest(xs, claim.get(end), fallback) for end, fallback in (("from", 0), ("to", -1))]
        if not xs or ends[0] == ends[1] or not line.median(ends[0]):
            continue
        found.append(Ratio(line.median(ends[1]) / line.median(ends[0]),
                           ratio_interval(line.values[ends[1]], line.values[ends[0]]),
                           f"{panel}, {data.figure.x.label} {ends[0]} to {ends[1]}"))
    choose = max if claim["expect"] == "falls" else min
    return choose(found, key=lambda ratio: ratio.value, default=None)


def _nearest(xs: list, wanted, fallback: int):
    if not xs:
        return None
    return xs[fallback] if wanted is None else min(xs, key=lambda x: abs(float(x) - wanted))


def _where(data: FigureData, panel: str, x) -> str:
    label = data.figure.x.label
    return f"{panel}, {label} {x}" if len(data.figure.panels) > 1 else f"{label} {x}"
