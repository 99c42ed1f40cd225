"""What the devices under the logs take at most: the line that a series cannot pass.

An emulated device takes what its profile says (build/micro/emulated_device_bench tells how close it comes), and all of
a run no more than the channel that they share. Real ones are measured once per results, each alone, by
build/micro/host_limits and, where it is installed, by fio: the larger figure counts. A RAM disk is no device: no line.
"""
from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import Optional, Sequence

import host
from child import run_child

BLOCK_BYTES = 512 << 10
FIO_SECONDS = 3
FIO_BYTES = 1 << 30
TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class Ceiling:
    directory: str
    bytes_per_second: float  # durable
    source: str              # "emulated profile", "fio", "build/micro/host_limits"


def _fio_command(directory: str, direct: bool) -> list[str]:
    return ["fio", "--name=ceiling", f"--directory={directory}", "--rw=write", f"--bs={BLOCK_BYTES}",
            f"--size={FIO_BYTES}", f"--runtime={FIO_SECONDS}", "--time_based", "--ioengine=psync",
            f"--direct={int(direct)}", "--fdatasync=1", "--unlink=1", "--output-format=json"]


def fio_rate(output: str) -> float:
    """Bytes per second that fio's JSON tells; what may precede it is skipped. Raises ValueError."""
    try:
        return float(json.loads(output[output.index("{"):])["jobs"][0]["write"]["bw_bytes"])
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"fio's JSON lacks {error}") from None


def _measure_by_fio(directory: str) -> Optional[Ceiling]:
    with tempfile.TemporaryDirectory(prefix="ceiling-", dir=directory) as folder:
        for direct in (True, False):  # not every file system takes O_DIRECT
            outcome = run_child(_fio_command(folder, direct), TIMEOUT_SECONDS)
            try:
                if outcome.exit_status == 0:
                    return Ceiling(directory, fio_rate(outcome.output), "fio")
            except ValueError:
                pass
    return None


def measure(directory: str, host_limits: str) -> Optional[Ceiling]:
    """Of one directory. None where neither program could measure it."""
    rate = host.device_write_rate([host.measure_limits(host_limits, directory, lambda: None)])
    found = [Ceiling(directory, rate, "build/micro/host_limits")] if rate > 0 else []
    by_fio = _measure_by_fio(directory) if shutil.which("fio") else None
    return max(found + [by_fio] * (by_fio is not None), key=lambda ceiling: ceiling.bytes_per_second, default=None)


def measure_all(directories: list[str], host_limits: str) -> list[Ceiling]:
    """One for each directory; none at all where one could not be measured."""
    found = [measure(directory, host_limits) for directory in directories]
    return found if all(found) else []


def load(path: str, directories: list[str]) -> list[Ceiling]:
    """What was measured in just these directories before."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    if not isinstance(found, list) or [one["directory"] for one in found] != directories:
        return []
    return [Ceiling(**one) for one in found]


def save(path: str, ceilings: list[Ceiling]) -> None:
    if ceilings:
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump([vars(ceiling) for ceiling in ceilings], file)
        os.replace(path + ".new", path)


def of_row(row: dict, measured: Sequence[Ceiling] = ()) -> Optional[Ceiling]:
    """Of the devices that a run's logs lay on. `measured`: those of the directories for real logs, in their order."""
    directories = row["record"].get("environment", {}).get("log_directories", [])
    emulated = [directory["emulation"] for directory in directories if "emulation" in directory]
    if emulated:
        rate = _of_emulated(emulated)
        return Ceiling("", rate, "emulated profile") if rate else None
    count = row["place"]["directories"]
    in_ram = any(directory.get("kind") == "ram" for directory in directories)
    if in_ram or row["place"]["kind"] != "disk" or not 0 < count <= len(measured):
        return None
    return Ceiling("", sum(one.bytes_per_second for one in measured[:count]), measured[0].source)


def _of_emulated(devices: list[dict]) -> float:
    """Bytes per second of all together; 0: no limit. Records of older builds know of no channel."""
    each = [device["bytes_per_second"] for device in devices]
    limits = [sum(each)] * all(each) + [devices[0].get("channel_bytes_per_second", 0)]
    return float(min((limit for limit in limits if limit), default=0))


def log_bytes_per_second(row: dict, measured: Sequence[Ceiling] = ()) -> Optional[float]:
    ceiling = of_row(row, measured)
    return ceiling.bytes_per_second if ceiling else None


def transactions_per_second(row: dict, measured: Sequence[Ceiling] = ()) -> Optional[float]:
    """What the devices allow at the row's bytes per executed transaction, readers among them; without padding."""
    metrics = row["record"].get("metrics", {})
    ceiling = of_row(row, measured)
    if ceiling is None or not metrics.get("record_bytes") or not metrics.get("executed_txns"):
        return None
    log_bytes = metrics["record_bytes"] + metrics["void_bytes"] + metrics["anchor_bytes"]
    return ceiling.bytes_per_second * metrics["executed_txns"] / log_bytes
