"""Runs the engine: as it is, on this host (./rundb-all), and on the cores of the model (build/lines/line_transfers)."""
from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass

from child import run_child
from lines.structures import KINDS, Namer, by_structure

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENGINE = os.path.join(REPOSITORY, "rundb-all")
MODEL = os.path.join(REPOSITORY, "build", "lines", "line_transfers")
BENCH = os.path.join(REPOSITORY, "build", "micro", "line_bench")
BUILT_BY = {ENGINE: "make rundb-all LOCK_TABLES=", MODEL: "make line_transfers LOCK_TABLES=",
            BENCH: "make build/micro/line_bench"}
TIMEOUT_SECONDS = 170
# Look-ahead hides what the model charges: neither the host's runs nor the model's have it.
COMMON_FLAGS = ["--lookahead=0", "--log_overwrite"]
HEAP_BYTES = "1G"  # LOG_WBL: by default it has room for few versions of many workers
CALLS_PER_WORKER = 20_000  # on the model: as many as a run needs, or they take longer to make than to run
CACHE_WAYS = 16
SHARED_MIN = 0.5  # transfers of one line per transaction: fewer are no "once per transaction"
LINE_BYTES = 64

# Medians of all pairs of cores within one socket, by compare and exchange, as this tool measures:
# github.com/nviennot/core-to-core-latency, README.md.
PRESETS = {
    "cascade_lake": (47.0, "Intel Xeon Platinum 8275CL, 24 cores"),
    "ice_lake": (51.0, "Intel Xeon Platinum 8375C, 32 cores"),
    "milan_near": (23.0, "AMD EPYC 7R13, 48 cores, within a core complex"),
    "milan_far": (107.0, "AMD EPYC 7R13, 48 cores, between core complexes"),
}


class Failure(Exception):
    """One line for the user."""


@dataclass(frozen=True)
class Cell:
    cc: str
    log: str
    log_type: str  # "-": nothing is logged

    @property
    def name(self) -> str:
        return f"{self.cc}/{self.log}/{self.log_type}"

    def flags(self, workers: int, log_dir: str) -> list[str]:
        kind = [] if self.log_type == "-" else [f"--log_type={self.log_type}"]
        if self.log == "LOG_WBL":
            kind.append(f"--heap_bytes={HEAP_BYTES}")
        return [f"--cc={self.cc}", f"--log={self.log}", *kind, f"-t{workers}", f"--log_dir={log_dir}", *COMMON_FLAGS]


def parse_cell(name: str) -> Cell:
    parts = name.split("/")
    if len(parts) != 3 or not all(parts):
        raise Failure(f"'{name}' is no cell; write NO_WAIT/LOG_TAURUS/LOG_COMMAND, or NO_WAIT/LOG_NO/-")
    return Cell(*parts)


def parse_pairs(text: str) -> list[Cell]:
    """The pairs that `--list` shows as supported, with locks in rows."""
    rows = re.findall(r"^\| (\w+) \| 0 \| (\w+) \| (\S+) \| [^|]* \| supported", text, re.MULTILINE)
    return [Cell(*row) for row in rows]


def check_binaries(*binaries: str) -> None:
    for binary in binaries:
        if not os.access(binary, os.X_OK):
            raise Failure(f"{binary} is missing; build it with `{BUILT_BY[binary]}`")


def output_of(command: list[str]) -> str:
    outcome = run_child(command, TIMEOUT_SECONDS)
    if outcome.timed_out:
        raise Failure(f"no end after {TIMEOUT_SECONDS} s: {' '.join(command)}")
    if outcome.exit_status != 0:
        raise Failure(f"exit status {outcome.exit_status}: {outcome.last_line()}: {' '.join(command)}")
    return outcome.output


def pairs() -> list[Cell]:
    return parse_pairs(output_of([MODEL, "--", "--list"]))


def host_costs(transfers_alone: bool = False) -> dict:
    return json.loads(output_of([BENCH, "--transfers"] if transfers_alone else [BENCH]))


def throughput(record: dict) -> float:
    """Executed transactions per second: acknowledgements lag behind in a run of milliseconds."""
    return record["metrics"]["throughput_executed"]


def last_record(path: str) -> dict:
    with open(path, encoding="utf-8") as file:
        record = json.loads(file.readlines()[-1])
    os.unlink(path)
    return record


def measure(cell: Cell, workers: int, seconds: float, log_dir: str) -> float:
    """On this host."""
    path = os.path.join(log_dir, "record.json")
    output_of([ENGINE, *cell.flags(workers, log_dir), f"--seconds={seconds:g}", f"--json={path}"])
    return throughput(last_record(path))


def model_flags(costs: dict, cores: int, private_bytes: int) -> list[str]:
    """`private_bytes` 0: no limit."""
    known = ("access_nanos", "transfer_nanos", "miss_nanos", "following_share", "pause_nanos", "yield_nanos",
             "wake_nanos", "write_nanos", "write_nanos_per_kib")
    flags = [f"--{name}={costs[name]:.6g}" for name in known if name in costs]
    sets = max(private_bytes // (LINE_BYTES * CACHE_WAYS), 1)
    return [*flags, f"--cores={cores}", f"--cache_sets={sets}", f"--cache_ways={CACHE_WAYS if private_bytes else 0}"]


@dataclass
class Plan:
    costs: dict
    cores: int = 0          # 0: one for each thread
    private_bytes: int = 0  # 0: no limit
    seconds: float = 0.004  # of the model
    warmup: int = 300       # transactions per worker
    log_dir: str = ""


def simulate(cell: Cell, workers: int, plan: Plan, namer: Namer | None = None) -> dict:
    """A row: throughput, and events per transaction; with a `namer` by structure too."""
    return row_of(cell, workers, *reports_of(cell, workers, plan), namer)


def reports_of(cell: Cell, workers: int, plan: Plan) -> tuple[dict, dict]:
    """The engine's record, and the instrument's report."""
    path, report_path = (os.path.join(plan.log_dir, name) for name in ("record.json", "report.json"))
    output_of([MODEL, *model_flags(plan.costs, plan.cores, plan.private_bytes), f"--report={report_path}", "--",
               *cell.flags(workers, plan.log_dir), f"--seconds={plan.seconds:g}", f"--warmup={plan.warmup}",
               f"--query_list_len={CALLS_PER_WORKER}", f"--json={path}"])
    return last_record(path), last_record(report_path)


def row_of(cell: Cell, workers: int, record: dict, report: dict, namer: Namer | None) -> dict:
    transactions = record["metrics"]["executed_txns"]
    if transactions == 0:
        raise Failure(f"{cell.name} with {workers} workers executed nothing: make the run longer (--model_ms)")
    row = {"cell": cell.name, "workers": workers, "modelled_throughput": throughput(record),
           "transactions": transactions, "abort_rate": record["metrics"]["abort_rate"],
           "accesses": report["accesses"] / transactions, "memory": report["memory"] / transactions,
           "waited_nanos": report["waited_nanos"] / transactions}
    for kind in ("dirty", "upgrades", "clean", "false_sharing"):
        row[kind] = sum(place[kind] for place in report["places"]) / transactions
    if namer is not None:
        sums = by_structure(report["places"], namer.structures(report["places"]))
        row["structures"] = {structure: {kind: count / transactions for kind, count in counts.items()}
                             for structure, counts in sums.items()}
        row["shared_lines"] = shared_lines(report["lines"], workers, transactions, namer)
    return row


def shared_lines(lines: list[dict], workers: int, transactions: int, namer: Namer) -> list[dict]:
    """Single lines that every worker fetched from others or took from them, at least SHARED_MIN times per transaction."""
    structures = namer.structures([{"at": line["at"], "written_at": 0} for line in lines])
    return [{"structure": structures[line["at"]], "code": namer.code(line["at"]),
             "transfers": line["transfers"] / transactions, "cores": line["cores"]}
            for line in lines if line["cores"] >= workers > 1 and line["transfers"] >= SHARED_MIN * transactions]


def places_of(report_places: list[dict], transactions: int, namer: Namer) -> list[dict]:
    """Lines of code, most events first, with what they find per transaction."""
    structures = namer.structures(report_places)
    sums: dict[tuple[str, str], dict] = {}
    for place in report_places:
        code = namer.code(place["at"])
        entry = sums.setdefault((code, structures[place["at"]]),
                                {"code": code, "structure": structures[place["at"]], **dict.fromkeys(KINDS, 0.0)})
        for kind in KINDS:
            entry[kind] += place[kind] / transactions
    return sorted(sums.values(), key=lambda entry: -entry["dirty"] - entry["upgrades"])
