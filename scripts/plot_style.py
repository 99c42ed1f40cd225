"""One look for every plot: a colour and a marker per scheme, light and dark, embedded fonts.

Used by plots.py. Colours are those of Okabe and Ito, which colour-blind readers tell apart; a marker and a
label always say the same as the colour. Works with matplotlib 3.6 and later, without a display.
"""
from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from cells import Cell

# (scheme, payload) -> colour, marker. A scheme keeps its pair in every plot, whatever else is drawn.
SCHEME_STYLE = {
    ("LOG_NO", ""): ("#8a8a8a", "o"),
    ("LOG_SERIAL", "LOG_DATA"): ("#0072b2", "s"),
    ("LOG_SERIAL", "LOG_COMMAND"): ("#56b4e9", "D"),
    ("LOG_TAURUS", "LOG_DATA"): ("#d55e00", "^"),
    ("LOG_TAURUS", "LOG_COMMAND"): ("#e69f00", "v"),
    ("LOG_ELEDA", "LOG_DATA"): ("#7a5195", "<"),
    ("LOG_ELEDA", "LOG_COMMAND"): ("#b79fcc", ">"),
    ("LOG_BATCH", "LOG_DATA"): ("#cc79a7", "P"),
    ("LOG_PLOVER", "LOG_DATA"): ("#009e73", "X"),
}
# One log over several directories.
STRIPED_STYLE = {"LOG_DATA": ("#004c80", "h"), "LOG_COMMAND": ("#8fd0f5", "H")}
UNKNOWN_STYLE = ("#b0a000", "*")
# A concurrency control other than NO_WAIT is hatched, so that a bar never needs a second colour.
CC_HATCH = {"NO_WAIT": "", "WAIT_DIE": "..", "DL_DETECT": "xx", "SILO": "////", "TICTOC": "\\\\\\\\",
            "HEKATON": "||||"}

THEMES = {
    "light": {"text": "#1c1c1c", "soft": "#6a6a6a", "grid": "#e3e3e3", "background": "#ffffff"},
    "dark": {"text": "#ececec", "soft": "#a8a8a8", "grid": "#3a3d42", "background": "#1b1d21"},
}


def scheme_style(cell: Cell) -> tuple[str, str]:
    if cell.stripes > 1:
        return STRIPED_STYLE[cell.log_type]
    return SCHEME_STYLE.get((cell.log, cell.log_type if cell.logs else ""), UNKNOWN_STYLE)


def hatch(cell: Cell) -> str:
    return CC_HATCH.get(cell.cc, "....")


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
