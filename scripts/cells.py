"""The cells of the main job (workload x concurrency control x log scheme x payload) and their steps.

Used by main_job.py, which runs them, and by summary.py, bars.py and cells_page.py, which name them. A cell is
a value; its command lines are functions of it, so that every line can be printed and run again by hand.
"""
from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import Optional

import registry


@dataclass(frozen=True)
class Scheme:
    label: str
    log_types: tuple[str, ...] = ("LOG_DATA", "LOG_COMMAND")  # of its cells under NO_WAIT


# In the order of the report.
SCHEMES = {
    "LOG_NO": Scheme("none", log_types=("",)),
    "LOG_SERIAL": Scheme("serial"),
    "LOG_TAURUS": Scheme("Taurus"),
    "LOG_ELEDA": Scheme("ELEDA"),
    "LOG_PLOVER": Scheme("Plover", log_types=("LOG_DATA",)),
    "LOG_BATCH": Scheme("Silo-R", log_types=()),
}
# Schemes with one log, which is striped where there are several directories.
ONE_LOG = tuple(scheme.name for scheme in registry.schemes() if scheme.one_log)
# Two-phase locking that waits for locks.
WAITING = tuple(control.name for control in registry.controls() if control.locks_rows and control.name != "NO_WAIT")
PAYLOAD_NAMES = {"LOG_DATA": "data", "LOG_COMMAND": "command"}
# Behind a concurrency control's name.
ISOLATION_NAMES = {"": "", "SNAPSHOT": " SI"}

# Of a workload's name in a cell: the flags that choose it. YCSB_SCAN is YCSB over a B+tree, in which one access of ten
# scans; TPCC_FULL is the standard's mix of all five transactions.
WORKLOADS = {
    "YCSB": ("--workload=YCSB",),
    "YCSB_SCAN": ("--workload=YCSB", "--index=IDX_BTREE", "--scan_perc=0.1"),
    "TPCC": ("--workload=TPCC",),
    "TPCC_FULL": ("--workload=TPCC", "--tpcc_full_mix=1"),
}

# Of a run that is to be killed, per worker: to make up the calls of a measured one takes longer than such a run lasts.
KILLED_CALLS = 50_000

# Cells whose figures others are read against, beside all without a log: the main job measures them several times, in
# rounds (main_job.py). Of those for peers, which look at one transaction at a time, a round has a run without look-ahead
# too.
HEADLINES = ("YCSB/NO_WAIT/LOG_SERIAL/LOG_DATA", "YCSB/NO_WAIT/LOG_SERIAL/LOG_COMMAND",
             "YCSB/NO_WAIT/LOG_TAURUS/LOG_DATA", "YCSB/NO_WAIT/LOG_TAURUS/LOG_COMMAND",
             "TPCC/NO_WAIT/LOG_SERIAL/LOG_COMMAND", "TPCC/NO_WAIT/LOG_TAURUS/LOG_COMMAND")
FOR_PEERS = ("YCSB/NO_WAIT/LOG_NO", "YCSB/SILO/LOG_NO", "YCSB/NO_WAIT/LOG_TAURUS/LOG_COMMAND", "TPCC/NO_WAIT/LOG_NO",
             "TPCC/SILO/LOG_NO", "TPCC/NO_WAIT/LOG_TAURUS/LOG_COMMAND")

# The steps of a cell, in order. A cell without a log has the first one only.
STEPS = ("run", "recover", "crash", "crash_recover")
STEP_NAMES = {
    "limits": "host limits",
    "round": "measured run of a round",
    "run": "measured run",
    "recover": "recovery, verified",
    "crash": "run, killed",
    "crash_recover": "recovery after the kill, verified",
}


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

    def steps(self) -> tuple[str, ...]:
        return STEPS if self.logs else STEPS[:1]

    def as_dict(self) -> dict:
        return {"workload": self.workload, "cc": self.cc, "log": self.log, "log_type": self.log_type,
                "stripes": self.stripes, "isolation": self.isolation}


def cell_from_dict(value: dict) -> Cell:
    return Cell(value["workload"], value["cc"], value["log"], value.get("log_type", ""), value.get("stripes", 1),
                value.get("isolation", ""))


def all_cells() -> list[Cell]:
    # A log is striped below whatever is in it, so one payload per workload will do there.
    return (_cells_of("YCSB", striped="LOG_DATA") + _with_log("YCSB_SCAN", "NO_WAIT", "LOG_COMMAND")
            + _cells_of("TPCC", striped="LOG_COMMAND") + _full_mix_cells())


def _cells_of(workload: str, striped: str) -> list[Cell]:
    cells = []
    for log, scheme in SCHEMES.items():
        cells += [Cell(workload, "NO_WAIT", log, log_type) for log_type in scheme.log_types]
    cells.append(Cell(workload, "NO_WAIT", "LOG_SERIAL", striped, stripes=2))
    for cc in WAITING:
        cells += _with_log(workload, cc, "LOG_COMMAND")
    cells += [Cell(workload, "SILO", "LOG_NO"), Cell(workload, "SILO", "LOG_BATCH", "LOG_DATA"),
              Cell(workload, "SILO", "LOG_TAURUS", "LOG_COMMAND")]
    cells += _with_log(workload, "TICTOC", "LOG_DATA")
    return cells + _with_log(workload, "HEKATON", "LOG_DATA", "LOG_COMMAND")


def _full_mix_cells() -> list[Cell]:
    cells = _with_log("TPCC_FULL", "NO_WAIT", "LOG_DATA", "LOG_COMMAND")
    cells.append(Cell("TPCC_FULL", "NO_WAIT", "LOG_SERIAL", "LOG_COMMAND"))
    for cc in (*WAITING, "SILO"):
        cells += _with_log("TPCC_FULL", cc, "LOG_COMMAND")
    cells += _with_log("TPCC_FULL", "TICTOC", "LOG_DATA")  # which commits in a logical order
    cells += _with_log("TPCC_FULL", "HEKATON", "LOG_COMMAND")
    return cells + _with_log("TPCC_FULL", "HEKATON", "LOG_COMMAND", isolation="SNAPSHOT")


def _with_log(workload: str, cc: str, *log_types: str, isolation: str = "") -> list[Cell]:
    """Without a log, and with the one that goes with everything."""
    return [Cell(workload, cc, "LOG_NO", isolation=isolation)] + [
        Cell(workload, cc, "LOG_TAURUS", log_type, isolation=isolation) for log_type in log_types]


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
    """What all cells of one job share."""

    binary: str
    seconds: float
    threads: int
    loggers: int
    log_limit: int
    seed: int
    ycsb_rows: int
    warehouses: int
    tpcc_small: bool = False


def load_arguments(cell: Cell, settings: Settings) -> list[str]:
    if cell.workload.startswith("YCSB"):
        return [f"--synth_table_size={settings.ycsb_rows}"]
    return [f"--num_wh={settings.warehouses}"] + (["--tpcc_small=1"] if settings.tpcc_small else [])


def logger_count(cell: Cell, settings: Settings) -> int:
    return 1 if cell.log in ONE_LOG else settings.loggers


def run_command(cell: Cell, settings: Settings, log_dir: str, ack_file: str = "") -> list[str]:
    """A run to a clean end (with its digest in the log) or, with an ack file, one that is meant to be killed."""
    command = _measured_command(cell, settings, log_dir)
    if cell.logs:
        command += [f"--ack_file={ack_file}", f"--query_list_len={KILLED_CALLS}"] if ack_file else ["--verify"]
    return command


def round_command(point: Point, settings: Settings, log_dir: str) -> list[str]:
    """A run that is measured alone: nothing is made of its logs."""
    ahead = [] if point.lookahead is None else [f"--lookahead={point.lookahead}"]
    return _measured_command(point.cell, settings, log_dir) + ahead


def _measured_command(cell: Cell, settings: Settings, log_dir: str) -> list[str]:
    command = [settings.binary, f"--cc={cell.cc}", f"--log={cell.log}", *WORKLOADS[cell.workload],
               f"--thread_cnt={settings.threads}", f"--seconds={settings.seconds:g}", f"--seed={settings.seed}"]
    command += [f"--isolation_level={cell.isolation}"] * bool(cell.isolation) + load_arguments(cell, settings)
    if cell.logs:
        command += [f"--log_type={cell.log_type}", f"--num_logger={logger_count(cell, settings)}", "--time_enable=1",
                    f"--log_limit={settings.log_limit}", f"--log_dir={','.join(cell.directories(log_dir))}"]
    return command


def recover_command(cell: Cell, settings: Settings, log_dir: str, ack_file: str = "") -> list[str]:
    """Recovery takes workload, sizes and scheme from the log; rundb-all takes the pair from there too.

    After a kill the reference replays everything again; after a clean end the run's own digest is the proof, and the
    tests read such logs with the reference.
    """
    command = [settings.binary, "-Lr1", f"--log_dir={','.join(cell.directories(log_dir))}",
               f"--thread_cnt={settings.threads}", "--verify"]
    return command + [f"--ack_file={ack_file}" if ack_file else "--reference=0"]
