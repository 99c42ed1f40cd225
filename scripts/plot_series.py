#!/usr/bin/env python3
"""Draws what a run did over time: a file of `./rundb --series=FILE`, as FILE.png or as --out says.

    ./rundb-all --log=LOG_SERIAL --log_type=LOG_DATA --seconds=10 --checkpoint_interval=2s --series=run.csv
    scripts/plot_series run.csv                      run.png
    scripts/plot_series run.csv --out dents.pdf      or .svg

One above the other: throughput, latency to acknowledgement (p50 and p99, on a logarithmic axis), log bandwidth. Grey
bands are steps in which a checkpoint ran; a bar at the bottom of a panel is a step in which workers waited, for space
in a log's buffer or for acknowledgements, the darker the larger the share of their time. Exit status: 2 if the file
cannot be drawn.
"""
from __future__ import annotations

import argparse
import csv
import math
import os
import sys
from dataclasses import dataclass
from typing import Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import plot_file
from plot_file import ENDINGS, Refused

PANEL_INCHES, LEGEND_INCHES = 1.9, 0.45
COLUMNS = ("begin_s", "end_s", "acknowledged", "executed", "aborts", "acknowledged_per_s", "executed_per_s", "p50_us",
           "p99_us", "log_bytes", "log_mb_per_s", "flushes", "mean_flush_us", "checkpoints_begun", "checkpoints_ended",
           "log_full_waits", "log_full_ms", "ack_waits", "ack_wait_ms")
MAY_BE_EMPTY = ("p50_us", "p99_us", "log_bytes", "log_mb_per_s", "mean_flush_us")


@dataclass(frozen=True)
class Mark:
    """A time in which something was going on; `weight` from 0 to 1."""

    begin: float
    end: float
    weight: float = 1.0


Step = dict[str, Optional[float]]  # by column; None: empty


def load(path: str) -> list[Step]:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            lacking = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if lacking:
                raise Refused(f"{path} is no series: it has no column {lacking[0]}")
            steps = [_step(path, number, row) for number, row in enumerate(reader, 2)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Refused(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if not steps:
        raise Refused(f"{path} has no steps")
    return steps


def _step(path: str, line: int, row: dict) -> Step:
    step: Step = {}
    for name in COLUMNS:
        text = row[name]
        if text == "" and name in MAY_BE_EMPTY:
            step[name] = None
            continue
        try:
            step[name] = float(text)
        except (TypeError, ValueError):
            raise Refused(f"{path}:{line}: {name} is '{text or ''}', not a number") from None
        if not math.isfinite(step[name]):
            raise Refused(f"{path}:{line}: {name} is '{text}', not a finite number")
    return step


def checkpoints(steps: list[Step]) -> list[Mark]:
    """From the step in which one begins to that in which it ends; one may run when the series begins, or ends."""
    running = 1 if _ends_first(steps) else 0
    marks: list[Mark] = []
    for step in steps:
        if running + step["checkpoints_begun"] > 0:
            if marks and running > 0 and marks[-1].end == step["begin_s"]:
                marks[-1] = Mark(marks[-1].begin, step["end_s"])
            else:
                marks.append(Mark(step["begin_s"], step["end_s"]))
        running += step["checkpoints_begun"] - step["checkpoints_ended"]
    return marks


def _ends_first(steps: list[Step]) -> bool:
    begun = 0
    for step in steps:
        begun += step["checkpoints_begun"] - step["checkpoints_ended"]
        if begun < 0:
            return True
    return False


def stalls(steps: list[Step], column: str) -> list[Mark]:
    """Steps in which workers waited; the weight is the time that they waited in all, up to a worker's whole time."""
    marks = []
    for step in steps:
        seconds = step["end_s"] - step["begin_s"]
        if step[column] > 0 and seconds > 0:
            marks.append(Mark(step["begin_s"], step["end_s"], min(1.0, step[column] / 1000 / seconds)))
    return marks


def draw(steps: list[Step], title: str):
    """A matplotlib figure; close it when done."""
    from experiment import style  # matplotlib takes a second to load
    colours = style.apply("light")
    has_log = any(step["log_mb_per_s"] is not None for step in steps)
    panels = 3 if has_log else 2
    figure = style.plt.figure(layout="constrained", figsize=(7.2, PANEL_INCHES * panels + 1.0))
    grid = figure.add_gridspec(panels + 1, 1, height_ratios=[PANEL_INCHES] * panels + [LEGEND_INCHES])
    axes = [figure.add_subplot(grid[0])]
    axes += [figure.add_subplot(grid[i], sharex=axes[0]) for i in range(1, panels)]
    # The first one lies below the other, from which it differs little as a rule.
    lines = [("executed_per_s", "executed", "#8a8a8a"), ("acknowledged_per_s", "acknowledged", "#0072b2")]
    _panel(axes[0], steps, lines, "transactions/s")
    _panel(axes[1], steps, [("p50_us", "p50", "#009e73"), ("p99_us", "p99", "#d55e00")], "latency, us",
           is_logarithmic=any(step["p50_us"] for step in steps))
    if has_log:
        _panel(axes[2], steps, [("log_mb_per_s", "log", "#6a3d9a")], "log, MB/s")
    _mark(axes, steps)
    axes[0].yaxis.set_major_formatter(style.tick)
    axes[-1].set_xlabel("seconds of the measured interval")
    axes[-1].set_xlim(steps[0]["begin_s"], steps[-1]["end_s"])
    handles = {label: handle for one in axes for handle, label in zip(*one.get_legend_handles_labels())}
    below = figure.add_subplot(grid[panels])
    below.axis("off")
    below.legend(handles.values(), handles.keys(), loc="center", ncol=4, fontsize=8)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold", color=colours["text"])
    return figure


def _panel(axes, steps: list[Step], lines: list[tuple[str, str, str]], label: str, is_logarithmic=False) -> None:
    """Steps, as they are: each holds its value from its beginning to its end, and one without a value leaves a gap."""
    edges = [step["begin_s"] for step in steps] + [steps[-1]["end_s"]]
    for column, name, colour in lines:
        values = [math.nan if step[column] is None else step[column] for step in steps]
        axes.stairs(values, edges, baseline=None, label=name, color=colour, linewidth=1.4)
    axes.set_ylabel(label)
    if is_logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.grid(True, axis="y")


def _mark(axes, steps: list[Step]) -> None:
    """The same in all panels, as a dent in one has its cause in another."""
    kinds = (("log_full_ms", "log buffer full", "#b2182b", 0.03), ("ack_wait_ms", "waits for acknowledgements",
                                                                   "#e69f00", 0.06))
    for panel in axes:
        for i, mark in enumerate(checkpoints(steps)):
            panel.axvspan(mark.begin, mark.end, color="#bdbdbd", alpha=0.45, linewidth=0, zorder=0,
                          label="checkpoint" if i == 0 else None)
        for column, name, colour, top in kinds:
            for i, mark in enumerate(stalls(steps, column)):
                panel.axvspan(mark.begin, mark.end, ymin=top - 0.025, ymax=top, color=colour, linewidth=0,
                              alpha=0.25 + 0.75 * mark.weight, label=name if i == 0 else None)


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="plot_series", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE", help="of ./rundb --series")
    parser.add_argument("--out", help="the plot, .png, .pdf or .svg (default: FILE's name with .png)")
    parser.add_argument("--title", help="above it (default: FILE's name)")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    arguments = parse_arguments(argv)
    out = arguments.out or os.path.splitext(arguments.file)[0] + ".png"

    def figure():
        if not out.endswith(ENDINGS):
            raise Refused(f"--out ends in {', '.join(ENDINGS)}, not as {out} does")
        return draw(load(arguments.file), arguments.title or os.path.basename(arguments.file))

    return plot_file.run(out, figure)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
