"""The plots of the main job: throughput, latency, log bytes per transaction, recovery throughput.

Used by main_job.py (files under out/plots) and cells_page.py (the same panels as SVG). A panel shows one metric of
one workload, a line per cell; the host's limits are drawn beside it where they mean something.
"""
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Callable, Optional, Sequence

import host
from experiment import style
from experiment.cells import WORKLOADS
from experiment.stats import microseconds
from experiment.style import plt
from experiment.summary import CellSummary, caption, summarise

@dataclass(frozen=True)
class Metric:
    name: str   # of its files
    title: str
    axis: str   # with the unit of what is drawn
    draw: Callable
    mark: str = ""  # what a mark beside a bar says


def _rate_text(value: float) -> str:
    if value >= 999.5e3:  # not "1000 k"
        return f"{value / 1e6:.2f} M"
    return f"{value / 1e3:.0f} k" if value >= 1e4 else f"{value / 1e3:.1f} k"


def _bars(axes, items: list[CellSummary], values: list[Optional[float]], text: Callable, colours: dict,
          limits: Sequence[Optional[float]] = (), room: float = 1.19) -> None:
    """Horizontal bars with their value behind each; 'n/a' where a step failed or was not run.

    A short mark stands at a bar's own limit, where that lies within the axis; the figure goes behind it.
    """
    top = max((v for v in values if v), default=1.0)
    room = 1 + (room - 1) * style.text_room()
    right = top * room
    for row, (item, value) in enumerate(zip(items, values)):
        colour = style.visible(style.scheme_style(item.cell)[0], colours)
        if value is None:
            axes.text(top * 0.01, row, "n/a", va="center", color=colours["soft"])
            continue
        axes.barh(row, value, height=0.68, color=colour, hatch=style.hatch(item.cell), linewidth=0)
        limit = limits[row] if row < len(limits) else None
        at = value
        if limit and limit < right * 0.99:
            axes.plot([limit, limit], [row - 0.42, row + 0.42], color=colours["text"], linewidth=2)
            at = limit if value <= limit < value + top * (room - 1) * 0.8 else value
        # On the background: the host's limit may lie behind the figure.
        axes.text(at + top * 0.012, row, text(item, value), va="center", fontsize=style.points(8.5), zorder=4,
                  bbox={"facecolor": colours["background"], "edgecolor": "none", "pad": 0.8})
        right = max(right, at * room)
    axes.set_xlim(0, right)
    axes.grid(axis="x")


def _limit_line(axes, value: float, label: str, colours: dict) -> None:
    """A vertical line at a limit; where it lies far outside, a word at the edge instead."""
    left, right = axes.get_xlim()
    if value <= 0:
        return
    if value < right * 1.6:
        axes.set_xlim(left, max(right, value * 1.12))
        axes.axvline(value, color=colours["text"], linestyle=(0, (4, 3)), linewidth=1.1, zorder=1.5)
        axes.annotate(label, (value, 1), xycoords=("data", "axes fraction"), xytext=(-3, 3),
                      textcoords="offset points", ha="right", fontsize=style.points(8), color=colours["soft"])
    else:
        axes.annotate(label + " \u2192", (1, 1), xycoords="axes fraction", xytext=(0, 3),
                      textcoords="offset points", ha="right", fontsize=style.points(8), color=colours["soft"])


def _device_limit(rate: Optional[float], bytes_per_second: Optional[float], device: float) -> Optional[float]:
    """What a device of that many bytes/s admits when `rate` transactions/s cost `bytes_per_second`."""
    return rate * device / bytes_per_second if rate and bytes_per_second and device else None


def _draw_throughput(axes, items, rows, colours) -> None:
    device = host.device_write_rate(rows)
    # Read-only transactions cost no bytes but are part of the throughput, so of its limit.
    limits = [_device_limit(item.run("throughput_executed"), item.run("log_bytes_per_second"), device)
              if item.cell.logs else None for item in items]
    _bars(axes, items, [item.run("throughput_acknowledged") for item in items], lambda _, v: _rate_text(v), colours,
          limits)
    if items[0].cell.workload == "YCSB":
        threads = int(items[0].config.get("THREAD_CNT", 1))
        floor = host.ycsb_floor(rows, threads)
        _limit_line(axes, floor, f"bare row copies, {threads} threads: {_rate_text(floor)}", colours)


def _draw_latency(axes, items, rows, colours) -> None:
    axes.set_xscale("log")
    lowest, highest = float("inf"), 0.0
    for row, item in enumerate(items):
        points = [item.run(f"latency_us.{name}") for name in ("p50", "p99", "p999")]
        if any(p is None or p <= 0 for p in points):
            axes.annotate("n/a", (0.01, row), xycoords=("axes fraction", "data"), va="center", color=colours["soft"])
            continue
        lowest, highest = min(lowest, points[0]), max(highest, points[2])
        colour, marker = style.scheme_style(item.cell)
        colour = style.visible(colour, colours)
        face = colour if item.cell.cc == "NO_WAIT" else colours["background"]
        axes.plot([points[0], points[2]], [row, row], color=colour, linewidth=2, solid_capstyle="round", zorder=2)
        for point, size in zip(points, (8, 6, 4.5)):
            axes.plot(point, row, marker=marker, color=colour, markerfacecolor=face, markersize=size, zorder=3)
        axes.annotate(" / ".join(microseconds(p) for p in points), (points[2], row), xytext=(7, 0),
                      textcoords="offset points", va="center", fontsize=style.points(8))
    if highest > 0:
        # Room on the right for the text, which is about as wide as 40 % of the axis.
        span = max(highest / lowest, 10.0)
        axes.set_xlim(lowest / 1.6, highest * span ** (0.9 * style.text_room()))
    axes.grid(axis="x", which="major")
    # Powers of ten with their unit; minor labels would run into each other.
    axes.xaxis.set_major_formatter(plt.FuncFormatter(lambda value, _: _duration(value)))
    axes.xaxis.set_minor_formatter(plt.NullFormatter())


def _duration(value_us: float) -> str:
    if value_us >= 1e6:
        return f"{value_us / 1e6:g} s"
    return f"{value_us / 1e3:g} ms" if value_us >= 1e3 else f"{value_us:g} us"


def _draw_bytes(axes, items, rows, colours) -> None:
    _bars(axes, items, [item.run("bytes_per_txn") for item in items], lambda _, v: f"{v:,.0f} B", colours)


def _draw_recovery(axes, items, rows, colours) -> None:
    def text(item, value):
        rate = item.recovery("bytes_per_second")
        return f"{_rate_text(value)}, {rate / 1e6:,.0f} MB/s" if rate else _rate_text(value)

    values = [item.recovery("throughput") for item in items]
    device = host.device_read_rate(rows)
    limits = [_device_limit(v, i.recovery("bytes_per_second"), device) for v, i in zip(values, items)]
    _bars(axes, items, values, text, colours, limits, room=1.42)


METRICS = (
    Metric("throughput", "Acknowledged throughput", "transactions per second", _draw_throughput,
           "mark: what the log device admits"),
    Metric("latency", "Latency to acknowledgement", "p50, p99 and p99.9, logarithmic", _draw_latency),
    Metric("log_bytes", "Log bytes per logged transaction", "bytes in records", _draw_bytes),
    Metric("recovery", "Recovery throughput", "transactions replayed per second", _draw_recovery,
           "mark: what reading the device admits"),
)


def items_of(rows: list[dict], metric: Metric, workload: str) -> list[CellSummary]:
    """The cells that a panel shows; without a log there is nothing to acknowledge, write or recover."""
    items = [item for item in summarise(rows) if item.cell.workload == workload]
    return items if metric.name == "throughput" else [item for item in items if item.cell.logs]


def workloads_of(rows: list[dict]) -> list[str]:
    seen = dict.fromkeys(item.cell.workload for item in summarise(rows))
    return list(seen)


def title_of(metric: Metric, workload: str) -> str:
    """On two lines: the longest is wider than a panel."""
    return f"{WORKLOADS[workload].title}\n{metric.title}"


def draw_panel(axes, rows: list[dict], metric: Metric, workload: str, colours: dict, lines: int = 0) -> None:
    """With room for so many lines, if they are more than its own: bars are equally high in panels side by side."""
    items = items_of(rows, metric, workload)
    axes.set_yticks(range(len(items)), [f"{i.cell.scheme_label}, {i.cell.cc_label}" for i in items])
    axes.set_ylim(max(len(items), lines) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    metric.draw(axes, items, rows, colours)
    axes.set_title(title_of(metric, workload), loc="left", pad=16)
    axes.set_xlabel(metric.axis)
    if metric.name != "latency":
        axes.xaxis.set_major_locator(plt.MaxNLocator(5 if style.text_room() == 1 else 4))
        axes.xaxis.set_major_formatter(plt.FuncFormatter(style.tick))


def _sign(figure, metric: Metric, rows: list[dict], colours: dict) -> None:
    style.sign(figure, "; ".join(filter(None, (metric.mark, caption(rows)))), colours)


def draw_alone(rows: list[dict], metric: Metric, workload: str, theme: str):
    """A matplotlib figure of one panel; close it when done."""
    colours = style.apply(theme)
    count = len(items_of(rows, metric, workload))
    figure, axes = plt.subplots(figsize=(5.9, 1.25 + 0.33 * count), layout="constrained")
    draw_panel(axes, rows, metric, workload, colours)
    return figure


def panel_svg(rows: list[dict], metric: Metric, workload: str, theme: str) -> str:
    """Without its sign, which the page says once."""
    return style.svg_of(draw_alone(rows, metric, workload, theme))


def write_plots(rows: list[dict], directory: str) -> list[str]:
    """One PNG per metric, the workloads side by side, and a PDF for each workload, as wide as a column of a paper.
    Returns the paths."""
    os.makedirs(directory, exist_ok=True)
    paths = []
    for metric in METRICS:
        workloads = [w for w in workloads_of(rows) if items_of(rows, metric, w)]
        if not workloads:
            continue
        colours = style.apply("light")
        count = max(len(items_of(rows, metric, w)) for w in workloads)
        figure, panels = plt.subplots(1, len(workloads), figsize=(5.9 * len(workloads), 1.25 + 0.33 * count),
                                      layout="constrained", squeeze=False)
        for axes, workload in zip(panels[0], workloads):
            draw_panel(axes, rows, metric, workload, colours, count)
        _sign(figure, metric, rows, colours)
        paths.append(style.save(figure, os.path.join(directory, f"{metric.name}.png")))
        paths += [style.save(draw_column(rows, metric, workload),
                             os.path.join(directory, f"{metric.name}-{workload}.pdf")) for workload in workloads]
    return paths


def draw_column(rows: list[dict], metric: Metric, workload: str):
    """The same, as wide as a column of a paper."""
    colours = style.apply("light", style.COLUMN_SCALE)
    height = style.points(1.45 + 0.33 * len(items_of(rows, metric, workload)))
    figure, axes = plt.subplots(figsize=(style.COLUMN_INCHES, height), layout="constrained")
    draw_panel(axes, rows, metric, workload, colours)
    # A column has no room for it above the axis alone.
    axes.set_title("", loc="left")
    figure.suptitle(title_of(metric, workload), x=0.01, ha="left", fontsize=style.points(10.5), fontweight="bold")
    _sign(figure, metric, rows, colours)
    return figure
