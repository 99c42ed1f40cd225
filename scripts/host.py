"""What the machine is and what it can do at most: description, measured limits, and how to read them.

Used by experiment/: cell_runs.py measures, summary.py, bars.py and cells_page.py relate results to limits.
Limits come from build/micro/host_limits --json: rates by number of threads, and devices with their writes.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import time

from child import run_child, shell_line

LIMITS_TIMEOUT_SECONDS = 120
RAM_FILE_SYSTEMS = ("tmpfs", "ramfs", "devtmpfs")


def parse_bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text.strip().upper())
    if not match or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no size; write 512M or 1G")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


def positive(kind):
    def parse(text: str):
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if value <= 0:
            raise argparse.ArgumentTypeError(f"'{text}' must be a number above 0")
        return value
    return parse


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


def machine() -> dict:
    """What it is, under the names that the engine's records have."""
    model, hypervisor = _cpu_info()
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
            "virtualisation": "unknown" if hypervisor else "none"}


def describe(arguments, settings) -> dict:
    """The first line of results.jsonl: the machine, and what was asked of it."""
    known = machine()
    file_system = file_system_of(arguments.log_dir)
    return {
        "schema_version": 1, "step": "host", "status": "ok",
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpu": known["cpu"], "cores": known["cores"], "memory_bytes": known["memory_bytes"],
        "kernel": platform.release(), "virtualised": known["virtualisation"] != "none",
        "log_dir": arguments.log_dir, "file_system": file_system,
        "log_device": "ram" if file_system in RAM_FILE_SYSTEMS else "real",
        "settings": {"threads": settings.threads, "loggers": settings.loggers, "seconds": settings.seconds,
                     "log_limit": settings.log_limit, "seed": settings.seed, "ycsb_rows": settings.rows,
                     "warehouses": settings.warehouses, "short": settings.short},
    }


def measure_limits(binary: str, log_dir: str, tick) -> dict:
    """A row of results.jsonl. The device is measured where the logs will lie."""
    json_file = os.path.join(log_dir, "limits.json")
    command = [binary, "--quick", f"--dir={log_dir}", f"--json={json_file}"]
    row = {"schema_version": 1, "step": "limits", "status": "ok", "why": "", "limits": {},
           "command": shell_line(command)}
    if not shutil.which(binary):
        row.update(status="failed", why=f"{binary} is missing; build it with `make micro`")
        return row
    outcome = run_child(command, LIMITS_TIMEOUT_SECONDS, tick)
    row["exit_status"] = outcome.exit_status
    row["wall_seconds"] = round(outcome.seconds, 3)
    try:
        with open(json_file, encoding="utf-8") as file:
            row["limits"] = json.load(file)
        os.unlink(json_file)
    except (OSError, ValueError) as error:
        row.update(status="failed", why=f"it left no JSON: {error}")
    if outcome.exit_status != 0:
        row.update(status="failed", why=f"exit status {outcome.exit_status}: {outcome.last_line()}")
    return row


def limits_of(rows: list[dict]) -> dict:
    return next((row.get("limits") or {} for row in rows if row.get("step") == "limits"), {})


def ycsb_floor(rows: list[dict], threads: int) -> float:
    """Transactions/s of a bare loop that copies one 1 KB row and overwrites another, with prefetch.

    0 where it was not measured with just as many threads: a floor of other threads compares nothing.
    """
    return float(limits_of(rows).get("ycsb_floor_prefetch_per_s", {}).get(str(threads), 0))


def device_write_rate(rows: list[dict]) -> float:
    """The best durable bytes/s that the log directory took, over block sizes and ways to write."""
    return max((float(write["bytes_per_s"]) for device in limits_of(rows).get("devices", [])
                for write in device.get("writes", [])), default=0.0)


def device_read_rate(rows: list[dict]) -> float:
    return max((float(device.get("read_bytes_per_s", 0)) for device in limits_of(rows).get("devices", [])),
               default=0.0)


LIMIT_NAMES = {
    "row_copy_per_s": "random 1 KB row copies", "row_copy_prefetch_per_s": "the same, prefetched",
    "row_overwrite_per_s": "random 1 KB row overwrites", "row_overwrite_prefetch_per_s": "the same, prefetched",
    "ycsb_floor_per_s": "YCSB floor: one row copied, one overwritten",
    "ycsb_floor_prefetch_per_s": "the same, prefetched",
    "fetch_add_shared_per_s": "fetch_add on one line", "fetch_add_private_per_s": "fetch_add, a line each",
    "lock_unlock_per_s": "lock and unlock by CAS, one line",
}


def limits_table(rows: list[dict]) -> list[tuple[str, str, str]]:
    """(what, with how many threads or how, value) for a reader."""
    limits = limits_of(rows)
    lines = []
    for key, name in LIMIT_NAMES.items():
        for threads, value in sorted(limits.get(key, {}).items(), key=lambda pair: int(pair[0])):
            plural = "" if threads == "1" else "s"
            lines.append((name, f"{threads} thread{plural}", f"{float(value) / 1e6:,.2f} M/s"))
    if "dependent_load_ns" in limits:
        lines.append(("dependent random load", "1 thread", f"{limits['dependent_load_ns']:.0f} ns"))
    for device in limits.get("devices", []):
        for write in device.get("writes", []):
            lines.append((f"durable write of {write['block_bytes'] >> 10} KiB", write["mode"],
                          f"{write['bytes_per_s'] / 1e6:,.0f} MB/s, {write['latency_us']:,.0f} us"))
        lines.append(("sequential read", "1 MiB", f"{device['read_bytes_per_s'] / 1e6:,.0f} MB/s"))
    return lines
