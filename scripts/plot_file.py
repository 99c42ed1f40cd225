"""One plot into one file: what scripts/plot_series and scripts/replay_parallelism have in common."""
from __future__ import annotations

import sys
from importlib import util
from typing import Callable

ENDINGS = (".png", ".pdf", ".svg")


class Refused(Exception):
    """One line about what cannot be drawn."""


def write(path: str, figure) -> None:
    """Takes the figure."""
    from experiment import style  # matplotlib takes a second to load
    if path.endswith(".svg"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(style.svg_of(figure))
    else:
        style.save(figure, path)


def run(path: str, draw: Callable[[], object]) -> int:
    """Writes the figure that `draw` makes, which may raise Refused, and prints the path; or an error. Returns the exit
    status."""
    try:
        if not util.find_spec("matplotlib"):
            raise Refused("the plot needs matplotlib; scripts/setup.sh installs it")
        write(path, draw())
    except Refused as refused:
        print(f"error: {refused}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: cannot write {path}: {error.strerror or error}", file=sys.stderr)
        return 2
    print(path)
    return 0
