#!/usr/bin/env python3
"""Which lines the tests have run, by folder, from what a coverage build left (make coverage); gcovr counts them.

Looks at logging/ and at recovery. Prints the lines that nothing ran, and fails below --at_least percent.
"""
from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Recovery's part of system/ counts as a folder of its own.
COVERED = {r"system/(recovery|replay|old_runs|log_files|verify)[^/]*": "recovery (system/)",
           r"logging/.*": ""}


def folder_of(path: str) -> str:
    for pattern, name in COVERED.items():
        if re.fullmatch(pattern, path):
            return name or os.path.dirname(path) + "/"
    return ""


def measure(build: str) -> list[dict]:
    """gcovr's list of files. A template's line counts once, however many pairs it was compiled for."""
    command = ["gcovr", "--root", REPOSITORY, "--json", "-", "--exclude-throw-branches",
               *[word for pattern in COVERED for word in ("--filter", pattern)], build]
    return json.loads(subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True).stdout)["files"]


def ranges(numbers: list[int]) -> str:
    """[1, 2, 3, 7] is "1-3 7"."""
    text, start = [], 0
    for i, number in enumerate(numbers):
        if i + 1 < len(numbers) and numbers[i + 1] == number + 1:
            continue
        text.append(str(number) if start == i else f"{numbers[start]}-{number}")
        start = i + 1
    return " ".join(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", help="the folder of the objects")
    parser.add_argument("--at_least", type=float, default=95, help="percent of all lines (95)")
    arguments = parser.parse_args()
    lines, run = collections.Counter(), collections.Counter()
    for file in measure(arguments.build):
        counts = {}
        for line in file["lines"]:
            if line["gcovr/noncode"]:
                continue
            counts[line["line_number"]] = counts.get(line["line_number"], 0) + line["count"]
        folder = folder_of(file["file"])
        lines[folder] += len(counts)
        run[folder] += sum(count > 0 for count in counts.values())
        never = sorted(number for number, count in counts.items() if count == 0)
        if never:
            print(f"{file['file']}: not run: {ranges(never)}")
    for folder in sorted(lines):
        print(f"{100 * run[folder] / lines[folder]:6.1f} %  {run[folder]:5d} of {lines[folder]:5d} lines  {folder}")
    percent = 100 * run.total() / max(lines.total(), 1)
    print(f"{percent:6.1f} %  {run.total():5d} of {lines.total():5d} lines  in all; {arguments.at_least:g} % are wanted")
    return 0 if percent >= arguments.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
