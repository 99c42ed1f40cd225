"""The figures in words: for `scripts/exp list`, and with claims and times for ARTIFACT.md."""
from __future__ import annotations

from experiment import markdown, planning, spec
from experiment.host_scale import HostScale
from experiment.spec import Figure
from progress import clock

TABLE_HOST = HostScale("cores", 2)  # ARTIFACT.md's times are of two cores; how devices are scaled changes none of them
TABLE_SCALE = "smoke"


def names(figures: list[Figure]) -> str:
    return "\n".join(f"{figure.name:36} {figure.title}{' (ours)' * figure.ours}" for figure in figures)


def _seconds_alone(figure: Figure, scale: spec.Scale) -> float:
    return planning.make_plan([figure], spec.load_series(), scale, TABLE_HOST).seconds(scale.repeats)


def _claim(claim: dict) -> str:
    paper = claim.get("paper")
    if spec.is_number(paper):
        return f"{claim['claim']}: {paper:g}x"
    return claim["claim"] + (f": {paper}" if paper else "")


def table(figures: list[Figure]) -> str:
    """In Markdown. A time is that of the figure alone: figures share runs."""
    scale = spec.load_scale(TABLE_SCALE)
    whose = "" if any(figure.ours for figure in figures) else "the paper's "
    return "\n".join(markdown.table(
        ["figure", "what it shows", f"{whose}claims that it is held against", "time"],
        [(f"`{figure.name}`", f"{figure.title} ({figure.section})",
          "; ".join(_claim(claim) for claim in figure.claims) or "none", clock(_seconds_alone(figure, scale)))
         for figure in figures]))
