"""A figure's plot: a panel each, a line per series with its median, intervals where there are enough repeats; or bars
made up of parts."""
from __future__ import annotations

import os
import re
import textwrap
from dataclasses import dataclass

from experiment import style
from experiment.data import FigureData, latency_cdf
from experiment.spec import Series, is_number
from experiment.style import plt

PANEL_INCHES = (3.9, 3.0)
PANELS_PER_LINE = 3
SVG_INCHES = 5.2
CEILING_NEAR = 1.3
LONG_LABEL = 26
MANY_BARS = 8  # whose labels have room below a panel
BAR_LABEL = 8  # a line's characters below a bar, where there is no room for what is in brackets
MODELLED_DASHES = (0, (2, 2))


def draw(data: FigureData, series: dict[str, Series], caption: str, theme: str = "light"):
    """All panels as a matplotlib figure; close it when done."""
    colours = style.apply(theme)
    columns = min(PANELS_PER_LINE, len(data.figure.panels))
    width = max(PANEL_INCHES[0] * columns, 5.6)
    figure = _draw_panels(data, series, list(data.figure.panels), columns, width, colours)
    figure.suptitle(data.figure.heading, x=0.01, ha="left", fontsize=11, fontweight="bold")
    style.sign(figure, caption, colours)
    return figure


def draw_column(data: FigureData, series: dict[str, Series], panel: str, caption: str):
    """One panel, as wide as a column of a paper; its title is the paper's own caption."""
    colours = style.apply("light", style.COLUMN_SCALE)
    figure = _draw_panels(data, series, [panel], 1, style.COLUMN_INCHES, colours)
    style.sign(figure, caption, colours)
    return figure


def _draw_panels(data: FigureData, series: dict[str, Series], panels: list[str], columns: int, width: float,
                 colours: dict):
    """Panels in a grid, and below them one legend of what they draw."""
    lines = -(-len(panels) // columns)
    height = style.points(PANEL_INCHES[1])
    figure = plt.figure(layout="constrained", figsize=(width, height * lines + style.points(1.1)))
    drawn: dict = {}
    grid = figure.add_gridspec(lines + 1, columns, height_ratios=[PANEL_INCHES[1]] * lines + [0.45])
    for i, panel in enumerate(panels):
        axes = figure.add_subplot(grid[i // columns, i % columns])
        _draw_panel(axes, data, panel, series, colours, drawn)
    below = figure.add_subplot(grid[lines, :])
    below.axis("off")
    below.legend(drawn.values(), drawn.keys(), loc="center", fontsize=style.points(8.5), handlelength=1.8,
                 columnspacing=1.2, ncol=min(_legend_columns(list(drawn), columns), max(1, len(drawn))))
    return figure


def _legend_columns(labels: list[str], panels: int) -> int:
    """Below one panel there is no room for three long labels beside each other."""
    if panels > 1:
        return 4
    longest = max(map(len, labels), default=0)
    return 2 if longest > LONG_LABEL or style.text_room() > 1 else 3


def _draw_panel(axes, data: FigureData, panel: str, series: dict[str, Series], colours: dict, drawn: dict) -> None:
    figure = data.figure
    if figure.draw in ("shares", "parts"):
        return _draw_bars(axes, data, panel, series, colours, drawn)
    if figure.draw == "lines":
        _keep_order_of_texts(axes, data, panel)
    for name in figure.series:
        line = data.line(panel, name)
        if not line.xs():
            continue
        look = series[name]
        drawn_as = {"color": style.visible(look.colour, colours), "marker": look.marker,
                    "linestyle": "--" if look.dashed else "-", "linewidth": 1.6, "markersize": 5.5,
                    "markeredgecolor": colours["background"], "markeredgewidth": 0.6}
        drawn[look.label] = (_draw_cdf if figure.draw == "cdf" else _draw_line)(axes, line, drawn_as)
        _draw_ceiling(axes, line, drawn_as, drawn, colours)
        _draw_modelled(axes, data.modelled_beyond(panel, name), drawn_as, drawn, colours)
    if len(figure.panels) > 1:
        axes.set_title(panel, fontsize=style.points(9.5))
    axes.set_ylabel(figure.y.label, fontsize=style.points(8.5))
    axes.grid(True, axis="y")
    if figure.draw == "cdf":
        axes.set(xscale="log", ylim=(0, 1.02))
        axes.set_xlabel("microseconds to acknowledgement", fontsize=style.points(8.5))
        return
    axes.set_xlabel(figure.x.label, fontsize=style.points(8.5))
    goes_on = any(data.modelled_beyond(panel, name) for name in figure.series)
    if figure.x.log or goes_on:
        axes.set_xscale("log")
    if figure.y.log or goes_on:
        axes.set_yscale("log")
        # Within a decade or two powers of ten alone would leave the axis without a figure; over more, others overlap.
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(plt.LogLocator(subs=(1, 2, 3, 5) if high < 1000 * low else (1,)))
        axes.yaxis.set_minor_formatter(plt.NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(plt.FuncFormatter(style.tick))
    xs = sorted({x for name in figure.series
                 for x in [*data.line(panel, name).xs(), *data.modelled_beyond(panel, name)]})
    axes.set_xticks(xs, [f"{x:g}" if is_number(x) else str(x) for x in xs])
    axes.xaxis.set_minor_locator(plt.NullLocator())


def _keep_order_of_texts(axes, data: FigureData, panel: str) -> None:
    """Sizes and durations (64K, 10us) stand in the plan's order, even where the first line lacks a point."""
    planned = list(dict.fromkeys(x for name in data.figure.series for x in data.line(panel, name).values))
    if any(isinstance(x, str) for x in planned):
        axes.xaxis.update_units(planned)


@dataclass(frozen=True)
class Bar:
    at: float
    label: str
    heights: list[float]  # of its parts, upwards


def _bars_of_shares(data: FigureData, panel: str) -> list[Bar]:
    """One for each x, made up of the series."""
    xs = sorted({x for name in data.figure.series for x in data.line(panel, name).xs()})
    return [Bar(i, f"{x:g}", [100 * (data.line(panel, name).median(x) or 0) for name in data.figure.series])
            for i, x in enumerate(xs)]


def _bars_of_parts(data: FigureData, panel: str, series: dict[str, Series]) -> tuple[list[Bar], list[tuple]]:
    """One for each x and series, made up of y's parts, and the places and texts of the xs below them."""
    bars, groups = [], []
    names = data.figure.drawn_in(panel)
    labels = {name: textwrap.fill(series[name].label.split(" (")[0], BAR_LABEL, break_long_words=False,
                                  break_on_hyphens=False) for name in names}
    lines = max(1 + label.count("\n") for label in labels.values())
    below = "\n" * (lines + (lines > 1))
    for i, x in enumerate(dict.fromkeys(x for name in names for x in data.line(panel, name).values)):
        first = i * (len(names) + 0.35)
        groups.append((first + (len(names) - 1) / 2, f"{below}{x:,}" if is_number(x) else f"{below}{x}"))
        for j, name in enumerate(names):
            line = data.line(panel, name)
            if line.values.get(x):
                bars.append(Bar(first + j, labels[name], [of.median(x) for of in line.parts.values()]))
    return bars, groups


def _draw_bars(axes, data: FigureData, panel: str, series: dict[str, Series], colours: dict, drawn: dict) -> None:
    figure = data.figure
    if figure.draw == "shares":
        parts, bars, groups = figure.series, _bars_of_shares(data, panel), []
        axes.set_ylim(0, 100)
    else:
        parts, (bars, groups) = list(figure.y.parts), _bars_of_parts(data, panel, series)
        axes.yaxis.set_major_formatter(plt.FuncFormatter(style.tick))
        axes.tick_params(axis="x", length=0, labelsize=style.points(7.5 * min(1, MANY_BARS / max(1, len(bars)))))
    below = [0.0] * len(bars)
    for i, name in enumerate(parts):
        heights = [bar.heights[i] for bar in bars]
        drawn[series[name].label] = axes.bar([bar.at for bar in bars], heights, bottom=below, width=0.7,
                                             color=series[name].colour, edgecolor=colours["background"], linewidth=0.3)
        below = [low + height for low, height in zip(below, heights)]
    ticks = {bar.at: bar.label for bar in bars}
    for at, text in groups:  # one tick at a place: below a bar in the middle its label comes first
        own = ticks.get(at, "")
        ticks[at] = own + text[own.count("\n"):]
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_xlabel(figure.x.label, fontsize=style.points(8.5))
    axes.set_ylabel(figure.y.label, fontsize=style.points(8.5))
    if len(figure.panels) > 1:
        axes.set_title(panel, fontsize=style.points(9.5))


def _draw_ceiling(axes, line, drawn_as: dict, drawn: dict, colours: dict) -> None:
    """Where the line comes near: what the devices allow it, dotted in its colour."""
    if any(line.median(x) * CEILING_NEAR > rate for x, rate in line.ceiling.items()):
        axes.plot(list(line.ceiling), list(line.ceiling.values()), color=drawn_as["color"], linewidth=1.0,
                  linestyle=":", zorder=1, scaley=False)
        drawn["device ceiling"] = plt.Line2D([], [], color=colours["soft"], linewidth=1.0, linestyle=":")


def _draw_modelled(axes, points: dict[int, float], drawn_as: dict, drawn: dict, colours: dict) -> None:
    """Thin dashes with hollow markers, apart from what was measured."""
    if not points:
        return
    how = {"linestyle": MODELLED_DASHES, "linewidth": 0.9, "markersize": 4, "markerfacecolor": colours["background"],
           "markeredgewidth": 0.8}
    axes.plot(list(points), list(points.values()), color=drawn_as["color"], markeredgecolor=drawn_as["color"],
              marker=drawn_as["marker"], **how)
    drawn["modelled"] = plt.Line2D([], [], color=colours["soft"], marker="o", markeredgecolor=colours["soft"], **how)


def _draw_line(axes, line, drawn_as: dict):
    xs = line.xs()
    medians = [line.median(x) for x in xs]
    handle, = axes.plot(xs, medians, **drawn_as)
    for x, median in zip(xs, medians):
        interval = line.interval(x)
        if interval:
            axes.errorbar([x], [median], yerr=[[median - interval[0]], [interval[1] - median]], fmt="none",
                          ecolor=drawn_as["color"], elinewidth=1.1, capsize=2.5)
    return handle


def _draw_cdf(axes, line, drawn_as: dict):
    last = line.xs()[-1]
    points = latency_cdf(line.rows_of[last])
    handle, = axes.plot([p[0] for p in points], [p[1] for p in points],
                        **{**drawn_as, "markevery": max(1, len(points) // 8)})
    return handle


def write_files(data: FigureData, series: dict[str, Series], caption: str, directory: str) -> list[str]:
    """A PNG of all panels, and a PDF of each with embedded TrueType fonts. Returns the paths."""
    os.makedirs(directory, exist_ok=True)
    name = os.path.join(directory, data.figure.name.replace("/", "-"))
    return [style.save(draw(data, series, caption), f"{name}.png")] + [
        style.save(draw_column(data, series, panel, caption), f"{name}{_suffix(data, panel)}.pdf")
        for panel in data.figure.panels]


def _suffix(data: FigureData, panel: str) -> str:
    """Of a panel's file; a panel alone needs none."""
    return "-" + re.sub(r"[^A-Za-z0-9.]+", "_", panel).strip("_") if len(data.figure.panels) > 1 else ""


def panel_svg(data: FigureData, series: dict[str, Series], panel: str, theme: str) -> str:
    """Without heading and caption, which the page has as text."""
    colours = style.apply(theme)
    return style.svg_of(_draw_panels(data, series, [panel], 1, SVG_INCHES, colours))
