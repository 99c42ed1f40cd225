"""Draws a sweep: transfers per transaction by data structure, a panel per log and bars per number of workers, one file
for each concurrency control; and the curve of throughput. Every title says that it is modelled.
"""
from __future__ import annotations

import os

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import looks
from lines.structures import STRUCTURES

# Okabe and Ito's colours, two tints and two greys: one for each of STRUCTURES, in their order.
COLOURS = ("#d55e00", "#8c510a", "#cc79a7", "#0072b2", "#56b4e9", "#6a3d9a", "#009e73", "#e69f00", "#f0e442", "#b2182b",
           "#8a8a8a", "#cccccc")
PANELS_PER_ROW = 4
PANEL_INCHES = (3.1, 2.5)
LEGEND_INCHES = 1.6  # of an entry


def short_name(cell: str) -> str:
    """Of the log: "TAURUS command"; "no log"."""
    _, log, log_type = cell.split("/")
    if log_type == "-":
        return "no log"
    return f"{log.removeprefix('LOG_')} {log_type.removeprefix('LOG_').lower()}"


def transfers(row: dict, structure: str) -> float:
    counts = row["structures"].get(structure, {})
    return counts.get("dirty", 0) + counts.get("upgrades", 0)


def groups_of(rows: list[dict]) -> dict[str, dict[str, list[dict]]]:
    """By concurrency control and cell, in order of workers; of a number of workers the last row that was appended."""
    groups: dict[str, dict[str, dict[int, dict]]] = {}
    for row in rows:
        groups.setdefault(row["cell"].split("/")[0], {}).setdefault(row["cell"], {})[row["workers"]] = row
    return {cc: {cell: [by_workers[n] for n in sorted(by_workers)] for cell, by_workers in sorted(cells.items())}
            for cc, cells in sorted(groups.items())}


def panels(count: int):
    columns = min(count, PANELS_PER_ROW)
    lines = -(-count // columns)
    width, height = PANEL_INCHES
    figure, axes = plt.subplots(lines, columns, figsize=(max(width * columns, 6), height * lines + 1.3), squeeze=False)
    flat = list(axes.flat)
    for unused in flat[count:]:
        unused.set_visible(False)
    return figure, flat[:count]


def cost_text(rows: list[dict]) -> str:
    return " / ".join(sorted({f"{row['transfer_nanos']:g} ns per transfer ({row['preset']})" for row in rows}))


def draw_bars(cc: str, cells: dict[str, list[dict]], path: str) -> None:
    figure, axes = panels(len(cells))
    used = [s for s in STRUCTURES if any(transfers(row, s) >= 0.005 for rows in cells.values() for row in rows)]
    for axis, (cell, rows) in zip(axes, cells.items()):
        bottoms = [0.0] * len(rows)
        for structure in used:
            heights = [transfers(row, structure) for row in rows]
            axis.bar(range(len(rows)), heights, bottom=bottoms, color=COLOURS[STRUCTURES.index(structure)],
                     label=structure, width=0.75)
            bottoms = [bottom + height for bottom, height in zip(bottoms, heights)]
        axis.set_xticks(range(len(rows)), [str(row["workers"]) for row in rows])
        axis.set_title(short_name(cell), fontsize=9)
        axis.tick_params(labelsize=8)
    finish(figure, axes, f"{cc}, modelled: line transfers and upgrades per transaction", "workers",
           [row for rows in cells.values() for row in rows], path)


def draw_curves(cc: str, cells: dict[str, list[dict]], path: str) -> None:
    figure, axis = plt.subplots(figsize=(7, 5.2))
    for cell, rows in cells.items():
        _, log, log_type = cell.split("/")
        colour, marker = looks.of_scheme(log, "" if log_type == "-" else log_type)
        axis.plot([row["workers"] for row in rows], [row["modelled_throughput"] / 1e6 for row in rows], color=colour,
                  marker=marker, label=short_name(cell), linewidth=1.2, markersize=4)
    axis.set_xscale("log", base=2)
    axis.set_ylabel("M transactions per second, modelled", fontsize=9)
    axis.set_ylim(bottom=0)
    ticks = sorted({row["workers"] for rows in cells.values() for row in rows})
    axis.set_xticks(ticks, [str(n) for n in ticks])
    axis.minorticks_off()
    finish(figure, [axis], f"{cc}, modelled throughput", "workers", [row for rows in cells.values() for row in rows], path)


def finish(figure, axes, title: str, below: str, rows: list[dict], path: str) -> None:
    figure.suptitle(f"{title}\n{cost_text(rows)}", fontsize=10)
    for axis in axes:
        axis.set_xlabel(below, fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    columns = int(figure.get_figwidth() / LEGEND_INCHES)
    figure.legend(handles, labels, loc="lower center", ncols=columns, fontsize=7, frameon=False)
    room = 0.2 * (-(-len(labels) // columns) + 1) / figure.get_figheight()
    figure.tight_layout(rect=(0, room, 1, 0.98))
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw(rows: list[dict], folder: str, validation: str) -> list[str]:
    """Returns the files; `validation` goes into a text beside them."""
    written = []
    for cc, cells in groups_of(rows).items():
        for name, function in (("transfers", draw_bars), ("throughput", draw_curves)):
            path = os.path.join(folder, f"{name}_{cc}.png")
            function(cc, cells, path)
            written.append(path)
    path = os.path.join(folder, "captions.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"Modelled, not measured. {validation}.\n")
    return [*written, path]
