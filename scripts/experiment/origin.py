"""Where rows come from: which host, which build of the programs. Rows of several are never mixed without a word.

A host is its processor and the cores that may be used: hosts of one kind, as in a cluster, are one host here. A build
is the program's digest, which also tells two builds of uncommitted sources apart; for readers, it is the commit.
"""
from __future__ import annotations

import functools
import hashlib
import os
from collections import Counter
from dataclasses import dataclass
from typing import Iterable, Optional

import host
from child import run_child

NAMELESS = "unknown"  # the engine's word where the kernel does not name the processor


@dataclass(frozen=True)
class Host:
    cpu: str
    cores: int

    def __str__(self) -> str:
        return f"{self.cores} core{'s' * (self.cores != 1)}, {self.cpu}"

    def is_like(self, other: Host) -> bool:
        return self.cores == other.cores and (self.cpu == other.cpu or NAMELESS in (self.cpu, other.cpu))


def this_host() -> Host:
    machine = host.machine()
    return Host(machine["cpu"], machine["cores"])


def _environment(row: dict) -> dict:
    return row["record"].get("environment", {})


def host_of(row: dict) -> Optional[Host]:
    environment = _environment(row)
    known = "cpu" in environment and "cores" in environment and not _is_confined(row)
    return Host(environment["cpu"], environment["cores"]) if known else None


def _is_confined(row: dict) -> bool:
    """To some processors (running.PROCESSORS): it saw no others."""
    return "processors" in row


def commit_of(row: dict) -> str:
    environment = _environment(row)
    return environment.get("commit", "?") + ("-dirty" if environment.get("dirty") else "")


def log_directories(row: dict) -> list[dict]:
    """Where its logs lay, as its record tells; none where nothing was logged. Of a cluster, whose record does not tell,
    as it was planned."""
    if row["record"].get("kind") == "cluster":
        return [{"kind": "ram" if row.get("place", {}).get("kind") == "ram" else "real"}]
    logged = row["record"].get("config", {}).get("LOG_ALGORITHM") != "LOG_NO"
    return _environment(row).get("log_directories", []) if logged else []


def device_of(row: dict) -> str:
    """The emulated device under its logs, "ram", or "none" for real ones untouched; empty where nothing was logged."""
    names = {directory["emulation"]["profile"] if "emulation" in directory else
             "ram" if directory.get("kind") == "ram" else "none" for directory in log_directories(row)}
    return " and ".join(sorted(names))


def hosts_of(rows: Iterable[dict]) -> list[Host]:
    """Each once; what failed may tell none."""
    return sorted({found for row in rows if (found := host_of(row))}, key=str)


def commits_of(rows: Iterable[dict]) -> list[str]:
    return sorted({commit_of(row) for row in rows if _environment(row)})


def warnings(rows: list[dict]) -> list[str]:
    """What a reader has to know before comparing the rows with each other."""
    told = []
    for what, name in (("hosts", lambda row: "" if _is_confined(row) else str(host_of(row) or "?")),
                       ("builds", commit_of)):
        counts = Counter(found for row in rows if _environment(row) and (found := name(row)))
        if len(counts) > 1:
            told.append(f"These figures are of {len(counts)} {what}: "
                        + "; ".join(f"{count} steps of {one}" for one, count in sorted(counts.items())))
    return told


@functools.lru_cache(maxsize=None)
def digest(program: str) -> str:
    """Of the file; empty if there is none."""
    value = hashlib.sha256()
    try:
        with open(program, "rb") as file:
            while block := file.read(1 << 20):
                value.update(block)
    except OSError:
        return ""
    return value.hexdigest()[:16]


@functools.lru_cache(maxsize=None)
def version(binary: str) -> str:
    """The commit that rundb-all was built from, "-dirty" where there was more than that; "?" if it cannot say."""
    try:
        outcome = run_child([binary, "--version"], 10)
    except OSError:
        return "?"
    words = outcome.output.split()
    return words[1] if outcome.exit_status == 0 and len(words) > 1 else "?"


ENGINE_FOLDERS = ("base", "benchmarks", "concurrency_control", "logging", "multi_master", "storage", "system")


def newer_source(program: str) -> str | None:
    """A source of the engine that was changed after the program, which lies beside it, was built."""
    root = os.path.dirname(program)
    sources = [os.path.join(root, "config.h")]
    for folder in ENGINE_FOLDERS:
        for path, _, names in os.walk(os.path.join(root, folder)):
            sources += [os.path.join(path, name) for name in names if name.endswith((".h", ".cpp"))]
    built = os.path.getmtime(program)
    newer = [source for source in sources if os.path.exists(source) and os.path.getmtime(source) > built]
    return os.path.relpath(max(newer, key=os.path.getmtime), root) if newer else None


def bench_environment(binary: str, context: dict) -> dict:
    """For a micro-benchmark, which tells of itself only google-benchmark's context; it is built with `binary`."""
    commit = version(binary)
    return {**host.machine(), "commit": commit.removesuffix("-dirty"), "dirty": commit.endswith("-dirty"),
            "benchmark": {key: context[key] for key in ("num_cpus", "mhz_per_cpu", "cpu_scaling_enabled", "load_avg",
                                                        "library_build_type") if key in context}}
