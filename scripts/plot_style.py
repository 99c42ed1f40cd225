"""One look for every plot: light and dark, embedded fonts, hatches; colours and markers are in looks.py.

Used by plots.py and experiment/drawing.py. Works with matplotlib 3.6 and later, without a display.
"""
from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import looks
from cells import Cell

# A concurrency control other than NO_WAIT and a log over several directories are hatched, so that a bar never needs a
# second colour.
CC_HATCH = {"NO_WAIT": "", "WAIT_DIE": "..", "DL_DETECT": "xx", "SILO": "////", "TICTOC": "\\\\\\\\",
            "HEKATON": "||||"}

THEMES = {
    "light": {"text": "#1c1c1c", "soft": "#6a6a6a", "grid": "#e3e3e3", "background": "#ffffff"},
    "dark": {"text": "#ececec", "soft": "#a8a8a8", "grid": "#3a3d42", "background": "#1b1d21"},
}


def scheme_style(cell: Cell) -> tuple[str, str]:
    return looks.of_scheme(cell.log, cell.log_type if cell.logs else "", striped=cell.stripes > 1)


def hatch(cell: Cell) -> str:
    return CC_HATCH.get(cell.cc, "....") + ("--" if cell.stripes > 1 else "")


def apply(theme: str) -> dict:
    """Sets matplotlib up for a theme and returns its colours."""
    colours = THEMES[theme]
    plt.rcdefaults()
    plt.rcParams.update({
        "pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "dbx",
        "font.family": "DejaVu Sans", "font.size": 9.5, "axes.titlesize": 10.5, "axes.titleweight": "bold",
        "figure.facecolor": colours["background"], "axes.facecolor": colours["background"],
        "savefig.facecolor": colours["background"], "text.color": colours["text"],
        "axes.labelcolor": colours["text"], "axes.edgecolor": colours["soft"], "xtick.color": colours["text"],
        "ytick.color": colours["text"], "grid.color": colours["grid"], "axes.grid": False,
        "hatch.color": colours["background"], "hatch.linewidth": 1.0, "axes.axisbelow": True,
        "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    })
    return colours
