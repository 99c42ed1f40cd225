"""A colour and a marker per log scheme, for all plots: those of the main job and, by experiments/series.yaml, figures.

Colours are those of Okabe and Ito, which colour-blind readers tell apart, a grey and a brown; black is white on a dark
page (experiment/style.py). A marker and a label always say the same as the colour. Without matplotlib, which takes a
second to load.
"""
from __future__ import annotations

# (scheme, payload) -> colour, marker. A scheme keeps its pair in every plot, whatever else is drawn.
SCHEME_STYLE = {
    ("LOG_NO", ""): ("#8a8a8a", "o"),
    ("LOG_SERIAL", "LOG_DATA"): ("#0072b2", "s"),
    ("LOG_SERIAL", "LOG_COMMAND"): ("#56b4e9", "D"),
    ("LOG_TAURUS", "LOG_DATA"): ("#d55e00", "^"),
    ("LOG_TAURUS", "LOG_COMMAND"): ("#e69f00", "v"),
    ("LOG_ELEDA", "LOG_DATA"): ("#cc79a7", "<"),
    ("LOG_ELEDA", "LOG_COMMAND"): ("#f0e442", ">"),
    ("LOG_BATCH", "LOG_DATA"): ("#000000", "P"),
    ("LOG_PLOVER", "LOG_DATA"): ("#009e73", "X"),
    ("LOG_DIFFERENTIAL", "LOG_DATA"): ("#8c510a", "p"),
    ("LOG_WBL", "LOG_DATA"): ("#6a3d9a", "8"),
    ("LOG_INSTANT", "LOG_DATA"): ("#b2182b", "H"),
}
# Where a scheme's one log is drawn both on one disk and over several: the latter's marker, dashed, or hatched in bars.
STRIPED_MARKERS = {("LOG_SERIAL", "LOG_DATA"): "h", ("LOG_SERIAL", "LOG_COMMAND"): "H"}
UNKNOWN_STYLE = ("#8a8a8a", "*")


def of_scheme(log: str, log_type: str, striped: bool = False) -> tuple[str, str]:
    """Colour and marker; `log_type` is empty where nothing is logged."""
    colour, marker = SCHEME_STYLE.get((log, log_type), UNKNOWN_STYLE)
    return colour, STRIPED_MARKERS.get((log, log_type), marker) if striped else marker
