"""One look for every plot: light and dark, embedded fonts, hatches, captions, files; colours are in looks.py.

Used by bars.py (the main job) and drawing.py (figures). Works with matplotlib 3.6 and later, without a display.
"""
from __future__ import annotations

import io
import textwrap

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import looks
from experiment.cells import Cell

# In a paper of two columns a plot is one wide, and its text as small as a caption's.
COLUMN_INCHES, COLUMN_SCALE, COLUMN_TEXT_ROOM = 3.4, 0.78, 1.9
CAPTION_CHARACTERS_PER_INCH = 17  # at a text scale of 1
CAPTION_LINES, CAPTION_LINE_INCHES = 3, 0.13  # a plot is as high as it is for so many; each more makes it higher
# A concurrency control other than NO_WAIT and a log over several directories are hatched, so that a bar never needs a
# second colour.
CC_HATCH = {
    "NO_WAIT": "",
    "WAIT_DIE": "..",
    "DL_DETECT": "xx",
    "SILO": "////",
    "TICTOC": "\\\\\\\\",
    "HEKATON": "||||",
}

THEMES = {
    "light": {"text": "#1c1c1c", "soft": "#6a6a6a", "grid": "#e3e3e3", "background": "#ffffff"},
    "dark": {"text": "#ececec", "soft": "#a8a8a8", "grid": "#3a3d42", "background": "#1b1d21"},
}


def scheme_style(cell: Cell) -> tuple[str, str]:
    return looks.of_scheme(cell.log, cell.log_type if cell.logs else "", striped=cell.stripes > 1)


def visible(colour: str, colours: dict) -> str:
    """A scheme's colour on this theme's background."""
    return colours["text"] if colour == "#000000" else colour


def hatch(cell: Cell) -> str:
    return CC_HATCH.get(cell.cc, "....") + ("--" if cell.stripes > 1 else "")


_scale = 1.0  # of text


def points(size: float) -> float:
    """A size of text, or of a line, in the plot that is being drawn."""
    return size * _scale


def text_room() -> float:
    """How much larger a share of the axis its texts take than in a wide plot."""
    return 1.0 if _scale == 1.0 else COLUMN_TEXT_ROOM


def apply(theme: str, scale: float = 1.0) -> dict:
    """Sets matplotlib up for a theme, with text of that scale, and returns its colours."""
    global _scale
    _scale = scale
    colours = THEMES[theme]
    plt.rcdefaults()
    plt.rcParams.update({
        "pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "dbx",
        "font.family": "DejaVu Sans", "font.size": points(9.5),
        "axes.titlesize": points(10.5), "axes.titleweight": "bold",
        "figure.facecolor": colours["background"], "axes.facecolor": colours["background"],
        "savefig.facecolor": colours["background"], "text.color": colours["text"],
        "axes.labelcolor": colours["text"], "axes.edgecolor": colours["soft"], "xtick.color": colours["text"],
        "ytick.color": colours["text"], "grid.color": colours["grid"], "axes.grid": False,
        "hatch.color": colours["background"], "hatch.linewidth": 1.0, "axes.axisbelow": True,
        "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    })
    return colours


def tick(value: float, _) -> str:
    """Of an axis."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value / 1e3:g} k" if abs(value) >= 1e3 else f"{value:g}"


def sign(figure, caption: str, colours: dict) -> None:
    """The caption, below all panels."""
    # Lines are made here: the layout makes room for those that it is given, and for none that it would wrap.
    text = textwrap.fill(caption, int(figure.get_figwidth() * CAPTION_CHARACTERS_PER_INCH / points(1)))
    more = max(0, text.count("\n") + 1 - CAPTION_LINES)
    figure.set_figheight(figure.get_figheight() + more * points(CAPTION_LINE_INCHES))
    figure.supxlabel(text, fontsize=points(7), color=colours["soft"], x=0.01, ha="left", multialignment="left")


def svg_of(figure) -> str:
    """Takes the figure."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return text.getvalue()


def save(figure, path: str) -> str:
    """As the PNG or the PDF that the path names, which it returns. Takes the figure."""
    figure.savefig(path, **({"dpi": 160} if path.endswith(".png") else {"metadata": {"CreationDate": None}}))
    plt.close(figure)
    return path
