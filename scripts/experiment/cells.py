"""The cells of the main job (workload x concurrency control x log scheme x payload), as experiments/main_job.yaml has
them, and the commands of their steps.

Used by cell_runs.py, which runs them, and by summary.py, bars.py and cells_page.py, which name them. A cell is a value;
its command lines are functions of it, so that every line can be printed and run again by hand. Raises SpecError where
the file cannot be used.
"""
from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass, field
from typing import Optional

import registry
from experiment import spec
from experiment.spec import SpecError

PAYLOAD_NAMES = {"LOG_DATA": "data", "LOG_COMMAND": "command"}
# Behind a concurrency control's name.
ISOLATION_NAMES = {"": "", "SNAPSHOT": " SI"}
SECTIONS = {"schemes", "workloads", "cells", "headlines", "for_peers", "base", "logged", "steps"}


@dataclass(frozen=True)
class Scheme:
    label: str
    payloads: tuple[str, ...]


@dataclass(frozen=True)
class Workload:
    title: str
    flags: dict


@dataclass(frozen=True)
class Step:
    name: str
    took: tuple[float, float]
    flags: dict = field(default_factory=dict)
    logged: dict = field(default_factory=dict)  # flags where there is a log
    writes: str = ""
    reads: str = ""
    checks: str = ""
    kill_at: tuple[float, float] = ()

    def expected_seconds(self, measured: float) -> float:
        return self.took[0] + self.took[1] * measured


def striped_directories(log_dir: str, stripes: int) -> list[str]:
    return [log_dir] if stripes == 1 else [f"{log_dir}/d{i}" for i in range(stripes)]


@dataclass(frozen=True)
class Cell:
    workload: str
    cc: str
    log: str
    log_type: str = ""
    stripes: int = 1  # directories that the one log is striped over (RAID-0)
    isolation: str = ""  # as --isolation_level takes it; the default, if empty

    @property
    def logs(self) -> bool:
        return self.log != "LOG_NO"

    @property
    def scheme_label(self) -> str:
        name = SCHEMES[self.log].label if self.log in SCHEMES else self.log
        if not self.logs:
            return name
        striped = " RAID-0" if self.stripes > 1 else ""
        return f"{name}{striped} {PAYLOAD_NAMES.get(self.log_type, self.log_type)}"

    @property
    def label(self) -> str:
        return f"{self.workload} {self.cc_label} {self.scheme_label}"

    @property
    def cc_label(self) -> str:
        return self.cc + ISOLATION_NAMES.get(self.isolation, f" {self.isolation}")

    @property
    def without_log(self) -> Cell:
        """What its throughput is compared with."""
        return Cell(self.workload, self.cc, "LOG_NO", isolation=self.isolation)

    @property
    def path(self) -> str:
        """What --cells patterns are matched against, and the name of the cell's log directory."""
        parts = [self.workload, self.cc] + [self.isolation] * bool(self.isolation) + [self.log]
        parts += [self.log_type] if self.logs else []
        return "/".join(parts + ([f"RAID{self.stripes}"] if self.stripes > 1 else []))

    def directories(self, log_dir: str) -> list[str]:
        """Where its logs lie, in a directory of its own."""
        return striped_directories(log_dir, self.stripes)

    def steps(self) -> list[str]:
        return CELL_STEPS if self.logs else CELL_STEPS[:1]

    def as_dict(self) -> dict:
        return {"workload": self.workload, "cc": self.cc, "log": self.log, "log_type": self.log_type,
                "stripes": self.stripes, "isolation": self.isolation}


def cell_from_dict(value: dict) -> Cell:
    return Cell(value["workload"], value["cc"], value["log"], value.get("log_type", ""), value.get("stripes", 1),
                value.get("isolation", ""))

def cell_of_path(path: str) -> Cell:
    workload, cc, *rest = path.split("/")
    isolation = "" if rest[0].startswith("LOG_") else rest.pop(0)
    log, *rest = rest
    log_type = rest.pop(0) if rest and rest[0].startswith("LOG_") else ""
    return Cell(workload, cc, log, log_type, int(rest[0].removeprefix("RAID")) if rest else 1, isolation)


def _declared() -> dict:
    path = os.path.join(spec.FOLDER, "main_job.yaml")
    where, found = os.path.relpath(path), spec.load(path)
    if set(found) != SECTIONS:
        raise SpecError(f"{where}: expected are {', '.join(sorted(SECTIONS))}")
    for section, kind in (("schemes", Scheme), ("workloads", Workload), ("steps", Step)):
        found[section] = {name: spec.checked(kind, f"{where}: {name}", values)
                          for name, values in found[section].items()}
    for flags in (found["base"], found["logged"], *(one.flags for one in found["workloads"].values()),
                  *(flags for step in found["steps"].values() for flags in (step.flags, step.logged))):
        spec.check_switches(where, flags)
    return found


_DECLARED = _declared()
SCHEMES, WORKLOADS, STEPS = (_DECLARED[section] for section in ("schemes", "workloads", "steps"))
HEADLINES, FOR_PEERS = _DECLARED["headlines"], _DECLARED["for_peers"]
CELL_STEPS = [name for name in STEPS if name not in ("limits", "round")]
# Schemes with one log, which is striped where there are several directories.
ONE_LOG = tuple(scheme.name for scheme in registry.schemes() if scheme.one_log)
# Two-phase locking that waits for locks.
WAITING = tuple(control.name for control in registry.controls() if control.locks_rows and control.name != "NO_WAIT")


def all_cells() -> list[Cell]:
    every = [log + f"/{payload}" * bool(payload) for log, scheme in SCHEMES.items() for payload in scheme.payloads]
    return [cell_of_path(f"{workload}/{cc}/{log}") for workload, controls in _DECLARED["cells"].items()
            for word, logs in controls.items() for cc in (WAITING if word == "WAITING" else [word])
            for one in logs for log in (every if one == "ALL" else [one])]


@dataclass(frozen=True)
class Point:
    """What a round measures once."""

    cell: Cell
    lookahead: Optional[int] = None  # calls; None: as many as the engine does by default

    @property
    def label(self) -> str:
        return self.cell.label + ("" if self.lookahead is None else f", look-ahead {self.lookahead}")


def points_of_a_round(cells: list[Cell]) -> list[Point]:
    repeated = [cell for cell in cells if not cell.logs or cell.path in HEADLINES]
    return [Point(cell) for cell in repeated] + [Point(cell, 0) for cell in repeated if cell.path in FOR_PEERS]


def select_cells(patterns: str) -> list[Cell]:
    """Cells that match one of the comma-separated patterns; '' selects all. Raises ValueError for none."""
    cells = all_cells()
    if not patterns:
        return cells
    wanted = [p.strip() for p in patterns.split(",") if p.strip()]
    chosen = [c for c in cells if any(_matches(c, p) for p in wanted)]
    if not chosen:
        listing = "\n  ".join(c.path for c in cells)
        raise ValueError(f"no cell matches '{patterns}'; the cells are\n  {listing}")
    return chosen


def _matches(cell: Cell, pattern: str) -> bool:
    return fnmatch.fnmatchcase(cell.path, pattern) or fnmatch.fnmatchcase(cell.path, f"*{pattern}*")


@dataclass(frozen=True)
class Settings:
    """What all cells of one job share: options of run.sh, and words of main_job.yaml."""

    binary: str
    seconds: float
    threads: int
    loggers: int
    log_limit: int
    seed: int
    rows: int
    warehouses: int
    short: bool = False


def command(cell: Cell, step_name: str, settings: Settings, log_dir: str, **more) -> list[str]:
    """Of a step. `more`: values of further words. rundb-all takes the pair of a recovery from the log, too."""
    step = STEPS[step_name]
    words = {**vars(settings), "lookahead": None, **more}
    if step.reads:
        line, flags = [settings.binary, "-Lr1"], {}
    else:
        line = [settings.binary, f"--cc={cell.cc}", f"--log={cell.log}"]
        line += [f"--isolation_level={cell.isolation}"] * bool(cell.isolation)
        flags = {**WORKLOADS[cell.workload].flags, **_DECLARED["base"]}
        if cell.logs:
            flags.update(log_type=cell.log_type, num_logger=1 if cell.log in ONE_LOG else settings.loggers,
                         **_DECLARED["logged"])
    flags.update(step.flags, **step.logged if cell.logs else {})
    line += [word for name, value in flags.items() for word in _flag(name, value, words)]
    return line + [f"--log_dir={','.join(cell.directories(log_dir))}"] * cell.logs


def _flag(name: str, value, words: dict) -> list[str]:
    """As a word of the command; none where it stands for a word that is not set."""
    if value is None:
        return [f"--{name}"]
    if value in words:
        value = words[value]
        if value is None or value is False:
            return []
    return [f"--{name}={value:g}" if isinstance(value, float) else f"--{name}={int(value)}"
            if isinstance(value, bool) else f"--{name}={value}"]
