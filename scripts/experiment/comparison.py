"""Two results beside each other: medians of the steps that were asked for in both, and their ratio.

A step is what was asked for: the device's name, and not what the host's speed made of its bandwidth, nor what its cores
made of the flush interval: a plan gives that with its unit, and a figure that sweeps it a bare number, which is part of
the step. A recovery is that of a certain run.
"""
from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field
from statistics import median

from experiment import running
from experiment.records import lookup
from experiment.running import Refused

FLUSH_INTERVAL = "--log_flush_interval"
OF_ONE_STEP = ("--log_dir", "--seed", FLUSH_INTERVAL)  # of a command, differ from one repeat or one host to another


@dataclass
class Step:
    values: list[float] = field(default_factory=list)
    devices: set[str] = field(default_factory=set)
    intervals: set[str] = field(default_factory=set)


def _asked_for(command: str) -> str:
    """A command without what is of one step alone, and without the factor of the device."""
    program, *flags = shlex.split(command)
    if program == "taskset":  # -c PROCESSORS; a recovery has as many threads
        program, *flags = flags[2:]
    words = []
    for word in flags:
        name, _, value = word.partition("=")
        if name not in OF_ONE_STEP or (name == FLUSH_INTERVAL and value.isdecimal()):
            words.append(re.sub(r":[^,]*", "", word) if name == "--log_device" else word)
    return " ".join([os.path.basename(program), *sorted(words)])


def _steps(directory: str) -> dict[tuple, Step]:
    rows = running.load_rows(directory)
    runs = {(row["job"], row["repeat"]): row["command"] for row in rows if row["step"] == "run"}
    steps: dict[tuple, Step] = {}
    for row in rows:
        metrics = row["record"].get("metrics", {})
        value = lookup(metrics, "throughput_acknowledged") or lookup(metrics, "throughput")
        run = runs.get((row["job"], row["repeat"]))
        if row["status"] != "ok" or not value or not run:
            continue
        recovery = _asked_for(row["command"]) if row["recovery"] else ""
        step = steps.setdefault((_asked_for(run), recovery, row["place"]["kind"], row["place"]["directories"]), Step())
        step.values.append(value)
        step.devices.add(row["place"]["device"])
        step.intervals |= {word.partition("=")[2] for word in shlex.split(run) if word.startswith(FLUSH_INTERVAL)}
    if not steps:
        raise Refused(f"{directory} has no results of runs")
    return steps


def _label(key: tuple) -> str:
    run, recovery, kind, directories = key
    return " ".join([run, *([f"THEN {recovery}"] * bool(recovery)), f"({kind}, {directories})"])


def compare(first: str, second: str) -> str:
    """Lines of a table, then what has no partner and which emulated devices differ."""
    a, b = _steps(first), _steps(second)
    both = sorted(a.keys() & b.keys(), key=_label)
    if not both:
        raise Refused(f"{first} and {second} have no step in common")
    lines = []
    for key in both:
        of_a, of_b = (median(steps[key].values) for steps in (a, b))
        lines.append(f"{of_a / 1e3:10,.1f} k  {of_b / 1e3:10,.1f} k  {of_b / of_a:6.2f}x  {_label(key)}")
    lines += [f"without a partner: {len(mine) - len(both)} of {len(mine)} steps of {directory}"
              for directory, mine in ((first, a), (second, b))]
    for what, name in (("devices", "devices"), ("intervals", "flush intervals")):
        pairs = {tuple(", ".join(sorted(getattr(steps[key], what))) for steps in (a, b)) for key in both}
        lines += [f"note: {name} differ: {x} and {y}" for x, y in sorted(pairs) if x != y]
    return "\n".join(lines)
