"""Rows as JSON lines, one per step: a command becomes a row, rows go to a file and come back.

Used by all that measures: the main job, experiments, the overview and version_memory.py.
"""
from __future__ import annotations

import json
import os
from typing import Callable, Optional

from child import Outcome, run_child, shell_line


def run(row: dict, command: list[str], json_file: str = "", timeout: float = 60,
        tick: Callable[[], None] = lambda: None, kill_when: Optional[Callable[[], bool]] = None) -> Outcome:
    """Runs a step, and notes in its row the command, how it ended and, with a `json_file`, the record that it left."""
    row["command"] = shell_line(command)
    if json_file:
        command = [*command, f"--json={json_file}"]
        if os.path.exists(json_file):
            os.unlink(json_file)
    outcome = run_child(command, timeout, tick, kill_when)
    row.update(exit_status=outcome.exit_status, wall_seconds=round(outcome.seconds, 3), status="ok", why="")
    if json_file:
        row["record"] = (load(json_file) or [{}])[-1]
    if outcome.timed_out:
        row.update(status="failed", why=f"no end after {timeout:g} s")
    elif outcome.exit_status != 0 and not outcome.killed:
        row.update(status="failed", why=f"exit status {outcome.exit_status}: {outcome.last_line()}")
    elif json_file and not row["record"]:
        row.update(status="failed", why="it left no JSON record")
    refuse_deaths(row)
    return outcome


def refuse_deaths(row: dict) -> None:
    """A cluster's run goes on without a process that has died, and ends well; what it measured is no figure."""
    deaths = (row.get("record") or {}).get("deaths")
    if row.get("status") == "ok" and deaths:
        died = ", ".join(f"{death['process']} after {death['seconds']:.1f} s ({death['how']})" for death in deaths)
        row.update(status="failed", why=f"no figure comes from a run in which processes died: {died}")


def append(path: str, row: dict) -> dict:
    with open(path, "ab+") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                file.write(b"\n")  # after a line that was cut off, this one would be lost with it
        file.write(json.dumps(row).encode() + b"\n")
    return row


def load(path: str, strict: bool = False) -> list[dict]:
    """Rows of a file, if it is there, in their order; a line that was cut off is left out. `strict`: only the last one
    can be (nothing was appended after it), and any other raises ValueError."""
    if not os.path.exists(path):
        return []
    found = []
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = list(file)
    for number, line in enumerate(lines, 1):
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            if strict and number < len(lines):
                raise ValueError(f"{path}, line {number}: no JSON") from None
    return found


def lookup(record: Optional[dict], path: str, missing=None):
    """record['a']['b'] for 'a.b'; None where it is null, or in what is; `missing` where there is none."""
    value = record
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return missing
        value = value[part]
        if value is None:
            return None
    return value


def is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
