"""Tables in Markdown: those of the documents, and of `scripts/exp list --table` and `scripts/exp overview`."""
from __future__ import annotations

from typing import Iterable, Sequence


def table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    return [_row(headings), "|---" * len(headings) + "|", *map(_row, lines)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
