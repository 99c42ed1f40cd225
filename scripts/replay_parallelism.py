#!/usr/bin/env python3
"""Draws what `log_dump --parallelism --json=FILE` modelled: speedup by threads, a panel per run, a line per order.

    ./log_dump --parallelism --json=replay.jsonl logs/run-0001
    scripts/replay_parallelism replay.jsonl                     writes out/plots/replay_parallelism.png
    scripts/replay_parallelism replay.jsonl --out replay.pdf    a PNG, PDF or SVG

Each legend has the inherent parallelism of the orders. Exits 0, or 2 if there is nothing to draw, or it cannot be
written.
"""
from __future__ import annotations

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import plot_file
from experiment import records
from plot_file import ENDINGS, Refused

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KIND = "replay_parallelism"
PANEL_INCHES = (4.2, 3.2)
PANELS_PER_LINE = 3
# Colour and marker per order: those of the scheme that replays so (looks.py), and for the lanes its lighter one.
ORDER_STYLE = {
    "lsn_vectors": ("#d55e00", "^"),
    "lanes": ("#e69f00", "v"),
    "partitions": ("#009e73", "X"),
    "newest_wins": ("#000000", "P"),
    "total": ("#0072b2", "s"),
}
UNKNOWN_STYLE = ("#8a8a8a", "*")


def load(paths: list[str]) -> list[dict]:
    """The records of modelled replays that the files hold, each with a number of threads at least."""
    found = []
    for path in paths:
        if not os.path.isfile(path):
            raise Refused(f"cannot read {path}: no such file")
        of_file = [row for row in records.load(path) if isinstance(row, dict) and row.get("kind") == KIND]
        if not of_file:
            raise Refused(f"{path} has no record of log_dump --parallelism")
        found += of_file
    for record in found:
        if not any(points(order) for order in record["orders"]):
            raise Refused(f"run {record['run']} has no times by numbers of threads: leave --threads out")
    return found


def points(order: dict) -> list[tuple[int, float]]:
    """(threads, speedup), ascending; without the time of unlimited threads."""
    return sorted((time["threads"], time["speedup"]) for time in order["times"] if isinstance(time["threads"], int))


def title_of(record: dict) -> str:
    logs = f"{record['logs']} logs" if record["logs"] != 1 else "1 log"
    device = f" at {record['device_mb_per_s']:g} MB/s" if record["device_mb_per_s"] else ""
    return f"{record['scheme']}, {record['payload']}, {logs}{device}: modelled"


def label_of(order: dict) -> str:
    parallelism = order["parallelism"]
    return f"{order['order']} ({parallelism:,.0f})" if parallelism >= 100 else f"{order['order']} ({parallelism:.3g})"


def caption_of(found: list[dict]) -> str:
    costs = sorted({f"{r['replay_ns']:g} ns per change or command and {r['byte_ns']:g} ns per byte" for r in found})
    devices = sorted({f"devices of {r['device_mb_per_s']:g} MB/s" if r["device_mb_per_s"] else "no device limit"
                      for r in found})
    own = " (some procedures have costs of their own)" if any(r["procedure_ns"] for r in found) else ""
    return (f"Modelled by list scheduling, not measured; records cost {' or '.join(costs)}{own}; "
            f"{' or '.join(devices)}.")


def draw(found: list[dict]):
    """The matplotlib figure; close it when done."""
    from experiment import style
    colours = style.apply("light")
    columns = min(PANELS_PER_LINE, len(found))
    lines = -(-len(found) // columns)
    figure, grid = style.plt.subplots(lines, columns, squeeze=False, layout="constrained",
                                      figsize=(max(5.6, PANEL_INCHES[0] * columns), PANEL_INCHES[1] * lines + 0.9))
    for axes in grid.flat[len(found):]:
        axes.axis("off")
    for axes, record in zip(grid.flat, found):
        draw_panel(axes, record, style)
    figure.suptitle("Speedup of replay, modelled", x=0.01, ha="left", fontsize=11, fontweight="bold")
    style.sign(figure, caption_of(found), colours)
    return figure


def draw_panel(axes, record: dict, style) -> None:
    threads = set()
    for order in record["orders"]:
        line = points(order)
        colour, marker = ORDER_STYLE.get(order["order"], UNKNOWN_STYLE)
        axes.plot([x for x, _ in line], [y for _, y in line], color=colour, marker=marker, linewidth=1.6, markersize=5,
                  label=label_of(order))
        threads.update(x for x, _ in line)
    axes.set_title(title_of(record), fontsize=style.points(9.5))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(sorted(threads), [str(x) for x in sorted(threads)])
    axes.xaxis.set_minor_locator(style.plt.NullLocator())
    axes.yaxis.set_major_formatter(style.plt.FuncFormatter(style.tick))
    axes.set_xlabel("threads", fontsize=style.points(8.5))
    axes.set_ylabel("work / time", fontsize=style.points(8.5))
    axes.grid(True, axis="y")
    axes.legend(fontsize=style.points(7.5), title="order (inherent parallelism)", title_fontsize=style.points(7.5))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="of log_dump --parallelism --json=FILE")
    parser.add_argument("--out", default=os.path.join(REPOSITORY, "out", "plots", "replay_parallelism.png"),
                        help="default: out/plots/replay_parallelism.png")
    arguments = parser.parse_args(argv)

    def figure():
        if not arguments.out.endswith(ENDINGS):
            raise Refused(f"--out ends with {', '.join(ENDINGS)}, not as {arguments.out}")
        found = load(arguments.files)
        os.makedirs(os.path.dirname(os.path.abspath(arguments.out)), exist_ok=True)
        return draw(found)

    return plot_file.run(arguments.out, figure)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
