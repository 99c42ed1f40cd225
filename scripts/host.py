"""What the machine is and what it can do at most: description, measured limits, and how to read them.

Used by main_job.py (to measure) and by summary.py, plots.py and report.py (to relate results to limits).
build/micro/host_limits prints one JSON object {"limits": [{"name", "threads", "value", "unit"}, ...]}.
"""
from __future__ import annotations

import json
import os
import platform
import shutil
import time

from cells import Settings, shell_line
from child import run_child

LIMITS_TIMEOUT_SECONDS = 120
RAM_FILE_SYSTEMS = ("tmpfs", "ramfs", "devtmpfs")


def file_system_of(path: str) -> str:
    """The type of the file system that holds `path` (ext4, tmpfs, ...), by the longest mount point above it."""
    real = os.path.realpath(path)
    best, kind = "", "unknown"
    try:
        with open("/proc/self/mounts", encoding="utf-8") as file:
            for line in file:
                _, mount, mount_kind = line.split()[:3]
                mount = mount.encode().decode("unicode_escape")
                inside = real == mount or real.startswith(mount.rstrip("/") + "/")
                if inside and len(mount) >= len(best):
                    best, kind = mount, mount_kind
    except OSError:
        pass
    return kind


def _cpu_info() -> tuple[str, bool]:
    model, hypervisor = platform.machine(), False
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    model = value.strip()
                elif key.strip() == "flags":
                    hypervisor = " hypervisor" in value
    except OSError:
        pass
    return model, hypervisor


def describe(arguments, settings: Settings) -> dict:
    """The first line of results.jsonl: the machine, and what was asked of it."""
    model, hypervisor = _cpu_info()
    file_system = file_system_of(arguments.log_dir)
    return {
        "schema_version": 1, "step": "host", "status": "ok",
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpu": model, "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(), "virtualised": hypervisor,
        "log_dir": arguments.log_dir, "file_system": file_system,
        "log_device": "ram" if file_system in RAM_FILE_SYSTEMS else "real",
        "settings": {"threads": settings.threads, "loggers": settings.loggers, "seconds": settings.seconds,
                     "log_limit": settings.log_limit, "seed": settings.seed, "ycsb_rows": settings.ycsb_rows,
                     "warehouses": settings.warehouses, "short": settings.tpcc_small},
    }


def measure_limits(binary: str, log_dir: str, tick) -> dict:
    """A row of results.jsonl. The device is measured where the logs will lie."""
    row = {"schema_version": 1, "step": "limits", "status": "ok", "why": "", "limits": []}
    command = [binary, "--quick", "--json", f"--dir={log_dir}"]
    row["command"] = shell_line(command)
    if not shutil.which(binary):
        row.update(status="failed", why=f"{binary} is missing; build it with `make micro`")
        return row
    outcome = run_child(command, LIMITS_TIMEOUT_SECONDS, tick)
    row["exit_status"] = outcome.exit_status
    row["wall_seconds"] = round(outcome.seconds, 3)
    if outcome.exit_status != 0:
        row.update(status="failed", why=f"exit status {outcome.exit_status}: {outcome.last_line()}")
        return row
    for line in outcome.output.splitlines():
        if line.startswith("{"):
            try:
                row["limits"] = json.loads(line)["limits"]
            except (ValueError, KeyError):
                pass
    if not row["limits"]:
        row.update(status="failed", why="it printed no limits")
    return row


def limit(rows: list[dict], name: str, threads: int = 0) -> float:
    """The limit called `name` at `threads` threads (or at the nearest number below), 0 where unknown."""
    best_threads, value = -1, 0.0
    for row in rows:
        if row.get("step") != "limits":
            continue
        for entry in row.get("limits", []):
            count = int(entry.get("threads", 1))
            if entry.get("name") == name and best_threads < count <= max(threads, 1):
                best_threads, value = count, float(entry.get("value", 0))
    return value


def ycsb_floor(rows: list[dict], threads: int) -> float:
    """Transactions/s of a bare loop that copies one 1 KB row and overwrites another, with prefetch."""
    return limit(rows, "ycsb_floor_prefetch", threads)


def device_bytes_per_second(rows: list[dict]) -> float:
    """The best durable write bandwidth of the log directory over the block sizes measured."""
    values = [float(entry.get("value", 0)) for row in rows if row.get("step") == "limits"
              for entry in row.get("limits", []) if str(entry.get("name", "")).startswith("device_write")]
    return max(values, default=0.0)
