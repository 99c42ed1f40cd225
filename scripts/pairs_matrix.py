#!/usr/bin/env python3
"""Keeps the matrix of docs/pairs.md equal to what `rundb-all --list` prints: a line per log, a column per concurrency
control with the isolation levels that it claims, and the sentences of the rules that refuse the rest below.

    scripts/pairs_matrix.py           writes the table between the markers of docs/pairs.md
    scripts/pairs_matrix.py --check   exits 1 if it differs (test.sh does this)
"""
from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pairs import Pair, list_pairs, matrix_of

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(REPOSITORY, "docs", "pairs.md")
BEGIN, END = "<!-- matrix: begin (scripts/pairs_matrix.py writes it) -->", "<!-- matrix: end -->"


def with_matrix(text: str, matrix: str) -> str:
    """`text` with `matrix` between the markers. Raises ValueError where they are not there, once each."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError("docs/pairs.md has not one pair of matrix markers")
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{matrix.strip()}\n{END}{rest.split(END)[1]}"


def table_of(pairs: list[Pair]) -> str:
    """Raises ValueError, see matrix_of."""
    matrix = matrix_of(pairs)
    lines = ["| | " + " | ".join(matrix.controls) + " |", "|---" * (len(matrix.controls) + 1) + "|"]
    for name, cells in {"ISOLATION_LEVEL": matrix.levels, **matrix.lines}.items():
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines + [""] + [f"{number}. {reason}" for number, reason in enumerate(matrix.reasons, 1)])


def main() -> int:
    binary = os.environ.get("DBX_BINARY", os.path.join(REPOSITORY, "rundb-all"))
    with open(PAGE, encoding="utf-8") as file:
        old = file.read()
    try:
        new = with_matrix(old, table_of(list_pairs(binary)))
    except ValueError as error:
        sys.exit(f"pairs_matrix.py: {error}")
    if new == old:
        return 0
    if "--check" in sys.argv:
        print("docs/pairs.md: the supported pairs differ from rundb-all --list; run scripts/pairs_matrix.py")
        return 1
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
