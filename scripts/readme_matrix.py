#!/usr/bin/env python3
"""Keeps README's matrix of pairs equal to what `rundb-all --list` prints: a line per log, a column per concurrency
control with the isolation levels that it claims, and the sentences of the rules that refuse the rest below.

    scripts/readme_matrix.py           writes the table between the markers of README.md
    scripts/readme_matrix.py --check   exits 1 if it differs (test.sh does this)
"""
from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pairs import REFUSED, Pair, list_pairs

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README = os.path.join(REPOSITORY, "README.md")
BEGIN, END = "<!-- matrix: begin (scripts/readme_matrix.py writes it) -->", "<!-- matrix: end -->"


def with_matrix(text: str, matrix: str) -> str:
    """`text` with `matrix` between the markers. Raises ValueError where they are not there, once each."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError("README.md has not one pair of matrix markers")
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{matrix.strip()}\n{END}{rest.split(END)[1]}"


def matrix_of(pairs: list[Pair]) -> str:
    """Raises ValueError where a pair has no verdict, as in a binary that was built with PAIRS='...'."""
    verdicts, logs, controls, reasons, levels = {}, [], [], [], {}
    for pair in pairs:
        control = pair.cc + " + lock table" * pair.lock_table
        log = pair.log if pair.log_type == "-" else f"{pair.log}, {pair.log_type}"
        reason = "" if pair.supported else pair.verdict.removeprefix(REFUSED)
        for value, seen in ((control, controls), (log, logs), (reason, reasons)):
            if value and value not in seen:
                seen.append(value)
        levels[control] = ", ".join(pair.isolation)
        verdicts[log, control] = str(reasons.index(reason) + 1) if reason else "yes"
    lines = ["| | " + " | ".join(controls) + " |", "|---" * (len(controls) + 1) + "|"]
    if len(verdicts) != len(logs) * len(controls):
        raise ValueError("this rundb-all holds only some of the pairs; build them all: make rundb-all")
    lines.append("| ISOLATION_LEVEL | " + " | ".join(levels[control] for control in controls) + " |")
    lines += [f"| {log} | " + " | ".join(verdicts[log, control] for control in controls) + " |"
              for log in sorted(logs)]
    return "\n".join(lines + [""] + [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)])


def main() -> int:
    binary = os.environ.get("DBX_BINARY", os.path.join(REPOSITORY, "rundb-all"))
    with open(README, encoding="utf-8") as file:
        old = file.read()
    try:
        new = with_matrix(old, matrix_of(list_pairs(binary)))
    except ValueError as error:
        sys.exit(f"readme_matrix.py: {error}")
    if new == old:
        return 0
    if "--check" in sys.argv:
        print("README.md: the supported pairs differ from rundb-all --list; run scripts/readme_matrix.py")
        return 1
    with open(README, "w", encoding="utf-8") as file:
        file.write(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
