"""One summary per cell from the rows of results.jsonl, and the table on the terminal.

Used by main_job.py, bars.py and cells_page.py: every figure that is shown anywhere is derived here, once.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Optional

import host
from experiment.cells import Cell, all_cells, cell_from_dict
from experiment.records import lookup
from experiment.stats import microseconds, percent, plain, share_of, spread, thousands

TABLE_WIDTH_MAX = 120


@dataclass
class CellSummary:
    cell: Cell
    steps: dict[str, dict] = field(default_factory=dict)
    # Rows of the rounds by look-ahead (None: the engine's default), then by round.
    rounds: dict[Optional[int], dict[int, dict]] = field(default_factory=dict)
    of_none: Optional[float] = None      # acknowledged throughput over that of the same CC without a log
    of_floor: Optional[float] = None     # YCSB: acknowledged throughput over the host's floor
    of_device: Optional[float] = None    # log bytes/s over the device's bandwidth

    def metrics(self, step: str) -> dict:
        return self.steps.get(step, {}).get("record", {}).get("metrics", {})

    def measured(self, lookahead: Optional[int] = None) -> dict[int, dict]:
        """Metrics of what counts as its measured run, by round: of the rounds, or of the one run that there is."""
        rows = self.rounds.get(lookahead, {})
        if not rows and lookahead is None and "run" in self.steps:
            rows = {0: self.steps["run"]}
        return {number: metrics for number, row in rows.items()
                if row["status"] == "ok" and (metrics := row.get("record", {}).get("metrics"))}

    def rates(self, lookahead: Optional[int] = None) -> dict[int, float]:
        """Acknowledged transactions per second, by round."""
        found = {number: metrics.get("throughput_acknowledged") for number, metrics in self.measured(lookahead).items()}
        return {number: float(rate) for number, rate in found.items() if rate is not None}

    def run(self, path: str) -> Optional[float]:
        """The median of a metric of its measured run; dots lead into nested objects."""
        values = [float(value) for metrics in self.measured().values() if (value := lookup(metrics, path)) is not None]
        return median(values) if values else None

    @property
    def config(self) -> dict:
        rows = [*self.rounds.get(None, {}).values(), self.steps.get("run", {})]
        return next((row["record"]["config"] for row in rows if row.get("record", {}).get("config")), {})

    def bytes_per_txn(self, name: str) -> Optional[float]:
        """Of the bytes of the whole log that are of this kind."""
        value, txns = self.run(name), self.run("logged_txns")
        return value / txns if value is not None and txns else None

    def recovery(self, name: str) -> Optional[float]:
        value = self.metrics("recover").get(name)
        return None if value is None else float(value)

    def verdict(self, step: str) -> str:
        """'ok' with the checks made, 'FAILED', 'skipped', or '' where the step has not been run."""
        row = self.steps.get(step)
        if row is None and step == "run" and self.rounds.get(None):
            # A failed one, if there is any.
            row = min(self.rounds[None].values(), key=lambda one: one["status"] == "ok")
        if row is None:
            return ""
        if row["status"] != "ok":
            return "FAILED" if row["status"] == "failed" else "skipped"
        return "ok " + row.get("record", {}).get("verification", {}).get("verified", "").replace(",", "")


def summarise(rows: list[dict]) -> list[CellSummary]:
    """One summary per cell, in the order of all cells: rounds have one of their own."""
    by_cell: dict[Cell, CellSummary] = {}
    for row in rows:
        if "cell" not in row:
            continue
        cell = cell_from_dict(row["cell"])
        item = by_cell.setdefault(cell, CellSummary(cell))
        if row["step"] == "round":
            item.rounds.setdefault(row["lookahead"], {})[row["round"]] = row
        else:
            item.steps[row["step"]] = row
    order = {cell: number for number, cell in enumerate(all_cells())}
    summaries = sorted(by_cell.values(), key=lambda item: order.get(item.cell, len(order)))
    device = host.device_write_rate(rows)
    for item in summaries:
        throughput = item.run("throughput_acknowledged")
        if throughput is None:
            continue
        base = by_cell.get(item.cell.without_log)
        if base and item.cell.logs:
            item.of_none = share_of(item.rates(), base.rates())
        if item.cell.workload == "YCSB":
            floor = host.ycsb_floor(rows, int(item.config.get("THREAD_CNT", 1)))
            item.of_floor = throughput / floor if floor else None
        bytes_per_second = item.run("log_bytes_per_second")
        if device and bytes_per_second and item.cell.logs:
            item.of_device = bytes_per_second / device
    return summaries


def after_kill(item: CellSummary) -> str:
    """Check c (every acknowledged transaction was recovered) passed, or the step failed: nothing between."""
    verdict = item.verdict("crash_recover")
    if verdict.startswith("ok"):
        return "ok lost=0"
    return item.verdict("crash") if verdict in ("", "skipped") and item.verdict("crash") == "FAILED" else verdict


# Heading and unit of each column, and its text for a cell.
COLUMNS = (
    ("", "", lambda s: s.cell.workload),
    ("", "", lambda s: s.cell.cc_label),
    ("log", "", lambda s: s.cell.scheme_label),
    ("ack'd", "k/s", lambda s: thousands(s.run("throughput_acknowledged"))),
    ("exec'd", "k/s", lambda s: thousands(s.run("throughput_executed"))),
    ("of", "none", lambda s: percent(s.of_none)),
    ("of", "floor", lambda s: percent(s.of_floor)),
    ("ack", "p50", lambda s: microseconds(s.run("latency_us.p50")) if s.cell.logs else "-"),
    ("ack", "p99", lambda s: microseconds(s.run("latency_us.p99")) if s.cell.logs else "-"),
    ("log", "B/txn", lambda s: plain(s.run("bytes_per_txn")) if s.cell.logs else "-"),
    ("log", "MB/s", lambda s: plain(s.run("log_bytes_per_second"), 1e6) if s.cell.logs else "-"),
    ("recov.", "k/s", lambda s: thousands(s.recovery("throughput"))),
    ("recov.", "MB/s", lambda s: plain(s.recovery("bytes_per_second"), 1e6)),
    ("clean end", "verified", lambda s: s.verdict("recover") if s.cell.logs else s.verdict("run").split()[0]),
    ("killed", "recovered", lambda s: after_kill(s) if s.cell.logs else "-"),
)
TEXT_COLUMNS = (0, 1, 2, 13, 14)


# The same of the second table: what a logged transaction costs in bytes, and where its time to acknowledgement goes.
COMMIT_COLUMNS = (
    ("", "", lambda s: s.cell.workload),
    ("", "", lambda s: s.cell.cc_label),
    ("log", "", lambda s: s.cell.scheme_label),
    ("record", "B/txn", lambda s: plain(s.run("bytes_per_txn"))),
    ("of it fixed", "B/record", lambda s: plain(s.run("fixed_record_bytes"))),
    ("void", "B/txn", lambda s: plain(s.bytes_per_txn("void_bytes"))),
    ("PAD", "B/txn", lambda s: plain(s.bytes_per_txn("pad_bytes"))),
    ("anchors, marks", "B/txn", lambda s: plain(s.bytes_per_txn("anchor_bytes"))),
    ("order", "mean", lambda s: microseconds(s.run("commit_parts_us.order"))),
    ("append", "mean", lambda s: microseconds(s.run("commit_parts_us.append"))),
    ("flush", "mean", lambda s: microseconds(s.run("commit_parts_us.flush"))),
    ("dependencies", "mean", lambda s: microseconds(s.run("commit_parts_us.dependency"))),
    ("ack", "mean", lambda s: microseconds(s.run("latency_us.mean"))),
)


def cells_of_table(item: CellSummary) -> list[str]:
    texts = [column[2](item) for column in COLUMNS]
    if item.verdict("run") == "FAILED":
        texts[3] = "FAILED"
    return texts


def table(rows: list[dict]) -> str:
    """The table, at most 120 columns wide: the workload stands above its cells, not beside each."""
    lines = [[c[0] for c in COLUMNS], [c[1] for c in COLUMNS]]
    lines += [cells_of_table(item) for item in summarise(rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    shown, workload = [], ""
    for line in lines:
        texts = [text.ljust(widths[i]) if i in TEXT_COLUMNS else text.rjust(widths[i]) for i, text in enumerate(line)]
        if line[0] != workload:
            workload = line[0]
            shown.append(f"{workload} ".ljust(sum(widths[1:]) + len(widths) - 2, "-"))
        shown.append(" ".join(texts[1:]).rstrip())
    return "\n".join(shown + repeated_table(rows) + [""] + notes(rows))


def repeated(rows: list[dict]) -> list[tuple[str, str, str, str, str]]:
    """Of each cell that rounds have measured: its name, medians (lowest-highest) and shares of no log, with look-ahead
    and without."""
    items = summarise(rows)
    by_cell = {item.cell: item for item in items}
    lines = []
    for item in (one for one in items if one.rounds):
        base = by_cell.get(item.cell.without_log)
        shares = [percent(share_of(item.rates(ahead), base.rates(ahead))) if base and item.cell.logs else "-"
                  for ahead in (None, 0)]
        lines.append((item.cell.label, spread(item.rates().values()), shares[0], spread(item.rates(0).values()),
                      shares[1]))
    return lines


REPEATED_HEADINGS = ("repeated in rounds: k/s", "median (lowest-highest)", "of none", "look-ahead 0", "of none")


def repeated_table(rows: list[dict]) -> list[str]:
    lines = repeated(rows)
    if not lines:
        return []
    lines = [REPEATED_HEADINGS, *lines]
    widths = [max(len(line[i]) for line in lines) for i in range(len(REPEATED_HEADINGS))]
    texts = [line[0].ljust(widths[0]) + "".join("  " + text.rjust(width) for text, width in zip(line[1:], widths[1:]))
             for line in lines]
    return ["", *texts]


def _records(rows: list[dict]) -> list[dict]:
    return [row["record"] for row in rows if row.get("record")]


def _profiles(environments: list[dict]) -> str:
    names = {directory["emulation"]["profile"] for environment in environments
             for directory in environment.get("log_directories", []) if "emulation" in directory}
    return f" ({', '.join(sorted(names))})" if names else ""


def _labels(rows: list[dict]) -> list[tuple[str, str]]:
    """What holds of these rows and bends their figures: a word for a plot, a sentence for a reader."""
    environments = [record.get("environment", {}) for record in _records(rows)]
    kinds = {d.get("kind") for e in environments for d in e.get("log_directories", [])}
    labels = (
        ("ram" in kinds, "logs on a RAM disk",
         "the logs lay in RAM: nothing here says how a disk would do, or survives a power cut"),
        ("emulated" in kinds, f"emulated log device{_profiles(environments)}",
         f"the log device was emulated{_profiles(environments)}"),
        (any(e.get("oversubscribed") for e in environments), "more threads than cores",
         "more threads (workers and log writers) than cores: figures with several threads are disturbed"),
        (any(str(e.get("virtualisation", "none")) not in ("none", "", "None") for e in environments),
         "virtual machine", "a virtual machine: neighbours and the host's disk cache are part of these figures"),
        (any(r.get("metrics", {}).get("unsynced") for r in _records(rows)), "UNSYNCED",
         "UNSYNCED: log writes were not synced; acknowledged does not mean durable here"),
        (any(e.get("dirty") for e in environments), "uncommitted changes",
         "built from a tree with uncommitted changes"),
    )
    return [(short, long) for holds, short, long in labels if holds]


def caption(rows: list[dict]) -> str:
    """For a plot, which may be seen without anything else."""
    described = next((row for row in rows if row.get("step") == "host"), {})
    settings = described.get("settings", {})
    known = [f"{settings['threads']} workers on {described['cores']} cores"] if settings else []
    count = rounds_of(rows)
    runs = f"medians of {count} runs where they were repeated, else one run per cell" if count else "one run per cell"
    return "; ".join(known + [short for short, _ in _labels(rows)] + [runs])


def rounds_of(rows: list[dict]) -> int:
    return max((row["round"] for row in rows if row.get("step") == "round"), default=0)


def notes(rows: list[dict]) -> list[str]:
    """What a reader must know to take the figures for what they are."""
    lines = []
    records = _records(rows)
    device = host.device_write_rate(rows)
    threads = max((int(r.get("config", {}).get("THREAD_CNT", 0)) for r in records), default=0)
    floor = host.ycsb_floor(rows, threads)
    if floor or device:
        lines.append("host limits, just measured: " + "; ".join(
            ([f"YCSB floor with {threads} threads {floor / 1e6:.2f} M txn/s"] if floor else []) +
            ([f"log device {device / 1e6:,.0f} MB/s durable"] if device else [])))
    lines += [long for _, long in _labels(rows)]
    count = rounds_of(rows)
    if count:
        lines.append(f"cells without a log and a few others were measured {count} times, in alternation: medians")
    lines.append(f"one run of {'every other' if count else 'a'} cell: expect 5-25 % from one run to the next")
    if any((share or 0) > 1.005 for item in summarise(rows) for share in (item.of_none, item.of_floor)):
        lines.append("a share above 100 % (!) says that the scatter between runs exceeds the compared difference")
    return ["note: " + line for line in lines]


def step_line(row: dict) -> str:
    """What a finished step says in the progress."""
    metrics = row.get("record", {}).get("metrics", {})
    if row["step"] in ("run", "round") and metrics:
        latency = metrics.get("latency_us", {}).get("p99")
        return (f"{thousands(metrics.get('throughput_acknowledged'))} k txn/s acknowledged"
                + (f", p99 {microseconds(latency)}" if latency and row["cell"]["log"] != "LOG_NO" else "")
                + (", stopped at the log limit" if metrics.get("stop_reason") == "log_limit" else ""))
    if row["step"] == "crash":
        return f"killed {row['kill_after_seconds']:.2f} s after its first acknowledgement"
    verified = row.get("record", {}).get("verification", {}).get("verified", "")
    recovered = "nothing to replay" if metrics.get("heap") else f"{metrics.get('recovered_txns', 0):,} txns recovered"
    return f"{recovered}, verified: {verified}"
