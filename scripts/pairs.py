"""The pairs of concurrency control and log scheme, as `rundb-all --list` prints them."""
from __future__ import annotations

import subprocess
from dataclasses import dataclass

REFUSED = "refused: "


@dataclass(frozen=True)
class Pair:
    cc: str
    lock_table: bool
    log: str
    log_type: str  # "-" without a log
    isolation: tuple[str, ...]  # the levels that it runs at, as --isolation_level takes them
    verdict: str   # "supported", or why it is refused

    @property
    def supported(self) -> bool:
        return not self.verdict.startswith(REFUSED)

    def flags(self) -> list[str]:
        return ([f"--cc={self.cc}", f"--log={self.log}"] + [f"--log_type={self.log_type}"] * (self.log_type != "-")
                + ["--use_locktable=1"] * self.lock_table)


@dataclass
class Matrix:
    """A line per log, a column per concurrency control; a cell is "yes" or the number of the reason against it."""

    controls: list[str]
    levels: list[str]  # of the control above: the isolation levels that it claims
    lines: dict[str, list[str]]  # by log
    reasons: list[str]  # from 1 on


def matrix_of(pairs: list[Pair]) -> Matrix:
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
    if len(verdicts) != len(logs) * len(controls):
        raise ValueError("this rundb-all holds only some of the pairs; build them all: make rundb-all")
    lines = {log: [verdicts[log, control] for control in controls] for log in sorted(logs)}
    return Matrix(controls, [levels[control] for control in controls], lines, reasons)


def parse_pairs(listed: str) -> list[Pair]:
    """Of the lines '| CC | lock table | log | type | isolation levels | verdict |'."""
    pairs = []
    for line in listed.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|", 5)]
        if len(cells) == 6 and cells[1] in ("0", "1"):
            pairs.append(Pair(cells[0], cells[1] == "1", cells[2], cells[3], tuple(cells[4].split(", ")), cells[5]))
    return pairs


def list_pairs(binary: str) -> list[Pair]:
    """What `binary` can run and what it refuses."""
    listed = subprocess.run([binary, "--list"], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return parse_pairs(listed.stdout)
