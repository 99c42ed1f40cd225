"""A figure's plot: a panel each, a line per series with its median, intervals where there are enough repeats."""
from __future__ import annotations

import io
import os
import textwrap

import plot_style
from plot_style import plt

from experiment.data import FigureData, latency_cdf
from experiment.spec import Series, is_number

PANEL_INCHES = (3.9, 3.0)
PANELS_PER_LINE = 3
CEILING_NEAR = 1.3
LONG_LABEL = 26
CAPTION_CHARACTERS_PER_INCH = 17


def draw(data: FigureData, series: dict[str, Series], caption: str, theme: str = "light"):
    """A matplotlib figure; close it when done."""
    colours = plot_style.apply(theme)
    panels = list(data.figure.panels)
    columns = min(PANELS_PER_LINE, len(panels))
    lines = -(-len(panels) // columns)
    figure = plt.figure(layout="constrained",
                        figsize=(max(PANEL_INCHES[0] * columns, 5.6), PANEL_INCHES[1] * lines + 1.1))
    grid = figure.add_gridspec(lines + 1, columns, height_ratios=[PANEL_INCHES[1]] * lines + [0.45])
    drawn = {}
    for i, panel in enumerate(panels):
        axes = figure.add_subplot(grid[i // columns, i % columns])
        _draw_panel(axes, data, panel, series, colours, drawn)
    below = figure.add_subplot(grid[lines, :])
    below.axis("off")
    below.legend(drawn.values(), drawn.keys(), loc="center", fontsize=8.5,
                 ncol=min(_legend_columns(list(drawn), columns), max(1, len(drawn))))
    figure.suptitle(data.figure.heading, x=0.01, ha="left", fontsize=11, fontweight="bold")
    # Lines are made here: the layout makes room for those that it is given, and for none that it would wrap.
    text = textwrap.fill(caption, int(figure.get_figwidth() * CAPTION_CHARACTERS_PER_INCH))
    figure.supxlabel(text, fontsize=7, color=colours["soft"], x=0.01, ha="left", multialignment="left")
    return figure


def _legend_columns(labels: list[str], panels: int) -> int:
    """Below one panel there is no room for three long labels beside each other."""
    if panels > 1:
        return 4
    return 2 if any(len(label) > LONG_LABEL for label in labels) else 3


def _draw_panel(axes, data: FigureData, panel: str, series: dict[str, Series], colours: dict, drawn: dict) -> None:
    figure = data.figure
    if figure.draw == "shares":
        return _draw_shares(axes, data, panel, series, colours, drawn)
    for name in figure.series:
        line = data.line(panel, name)
        if not line.xs():
            continue
        look = series[name]
        style = {"color": look.colour, "marker": look.marker, "linestyle": "--" if look.dashed else "-",
                 "linewidth": 1.6, "markersize": 5.5, "markeredgecolor": colours["background"], "markeredgewidth": 0.6}
        drawn[look.label] = _draw_cdf(axes, line, style) if figure.draw == "cdf" else _draw_line(axes, line, style)
        _draw_ceiling(axes, line, style, drawn, colours)
    if len(figure.panels) > 1:
        axes.set_title(panel, fontsize=9.5)
    axes.set_ylabel(figure.y.label, fontsize=8.5)
    axes.grid(True, axis="y")
    if figure.draw == "cdf":
        axes.set(xscale="log", ylim=(0, 1.02))
        axes.set_xlabel("microseconds to acknowledgement", fontsize=8.5)
        return
    axes.set_xlabel(figure.x.label, fontsize=8.5)
    if figure.x.log:
        axes.set_xscale("log")
    if figure.y.log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(plt.FuncFormatter(_tick))
    xs = sorted({x for name in figure.series for x in data.line(panel, name).xs()})
    axes.set_xticks(xs, [f"{x:g}" if is_number(x) else str(x) for x in xs])
    axes.xaxis.set_minor_locator(plt.NullLocator())


def _draw_shares(axes, data: FigureData, panel: str, series: dict[str, Series], colours: dict, drawn: dict) -> None:
    """A bar for each x, made up of the series."""
    xs = sorted({x for name in data.figure.series for x in data.line(panel, name).xs()})
    below = [0.0] * len(xs)
    for name in data.figure.series:
        shares = [100 * (data.line(panel, name).median(x) or 0) for x in xs]
        drawn[series[name].label] = axes.bar(range(len(xs)), shares, bottom=below, color=series[name].colour, width=0.7,
                                             edgecolor=colours["background"], linewidth=0.8)
        below = [low + share for low, share in zip(below, shares)]
    axes.set_xticks(range(len(xs)), [f"{x:g}" for x in xs])
    axes.set_xlabel(data.figure.x.label, fontsize=8.5)
    axes.set_ylabel(data.figure.y.label, fontsize=8.5)
    axes.set_ylim(0, 100)
    if len(data.figure.panels) > 1:
        axes.set_title(panel, fontsize=9.5)


def _draw_ceiling(axes, line, style: dict, drawn: dict, colours: dict) -> None:
    """Where the line comes near: what the devices allow it, dotted in its colour."""
    if any(line.median(x) * CEILING_NEAR > rate for x, rate in line.ceiling.items()):
        axes.plot(list(line.ceiling), list(line.ceiling.values()), color=style["color"], linewidth=1.0, linestyle=":",
                  zorder=1, scaley=False)
        drawn["device ceiling"] = plt.Line2D([], [], color=colours["soft"], linewidth=1.0, linestyle=":")


def _draw_line(axes, line, style: dict):
    xs = line.xs()
    medians = [line.median(x) for x in xs]
    handle, = axes.plot(xs, medians, **style)
    for x, median in zip(xs, medians):
        interval = line.interval(x)
        if interval:
            axes.errorbar([x], [median], yerr=[[median - interval[0]], [interval[1] - median]], fmt="none",
                          ecolor=style["color"], elinewidth=1.1, capsize=2.5)
    return handle


def _draw_cdf(axes, line, style: dict):
    last = line.xs()[-1]
    points = latency_cdf(line.rows_of[last])
    handle, = axes.plot([p[0] for p in points], [p[1] for p in points],
                        **{**style, "markevery": max(1, len(points) // 8)})
    return handle


def _tick(value: float, _) -> str:
    if abs(value) >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value / 1e3:g} k" if abs(value) >= 1e3 else f"{value:g}"


def write_files(data: FigureData, series: dict[str, Series], caption: str, directory: str) -> list[str]:
    """PNG and PDF with embedded TrueType fonts. Returns the paths."""
    os.makedirs(directory, exist_ok=True)
    figure = draw(data, series, caption)
    paths = []
    for kind, options in (("png", {"dpi": 160}), ("pdf", {"metadata": {"CreationDate": None}})):
        paths.append(os.path.join(directory, f"{data.figure.name.replace('/', '-')}.{kind}"))
        figure.savefig(paths[-1], **options)
    plt.close(figure)
    return paths


def svg(data: FigureData, series: dict[str, Series], caption: str, theme: str) -> str:
    figure = draw(data, series, caption, theme)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return text.getvalue()
