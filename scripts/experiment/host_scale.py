"""The devices under the logs: emulated ones, scaled to this host so that what decides a figure stays as in the paper.

A paper's machine has so many workers and so much log bandwidth; what decides its figures is the ratio of the two. Two
ways to keep it:
  cores        bandwidth x our cores / the paper's workers: bytes per CPU cycle match
  throughput   that, x our transactions per second and core without a log / those of DBx1000: bytes per transaction's
               time match. This engine needs fewer cycles per transaction than the papers' code, so that "cores" makes
               every series bound by I/O too early. The default.
  off          the directories as they are
Latencies of a flush and of a seek are not scaled. Disks that are slow against any host (AS_THEY_WERE) are emulated with
their own figures in all but the last way, and in that, too, where a series names its device (series.yaml).
"""
from __future__ import annotations

from dataclasses import dataclass

WAYS = ("throughput", "cores", "off")
# The workers of the machine that a paper has a device in, and the bandwidth of one, of the profile's of that name
# (logging/device/device_profile.h): Taurus, sections 5.2 and 5.6, the latter of the machine with hard disks; ELEDA,
# section 6.1: 3.5 GiB/s.
PAPER_MACHINES = {("taurus", "nvme"): (80, 1.0), ("taurus", "hdd"): (56, 1.0),
                  ("eleda", "nvme"): (32, 3.5 * 2**30 / 2e9)}
# Differential logging, section 5.1: disks of 29 MB/s on one channel of 160 MB/s, against which even its own processors
# were fast; its volumes of log take seconds on them. Write-behind logging, section 7: a closed loop waits for the
# latency of a durable write, and hardly for its bytes.
AS_THEY_WERE = {("differential", "disk29"): "disk29,channel=160000000", ("write_behind", "pm"): "pm",
                ("write_behind", "ssd"): "ssd", ("write_behind", "hdd"): "hdd"}
REAL_DEVICES = ("ram", "real")  # which nothing emulates
KNOWN_DEVICES = {*PAPER_MACHINES, *AS_THEY_WERE}
# DBx1000 without a log, NO_WAIT, YCSB with 1 KB rows: transactions per second and core on a present-day server core.
DBX1000_PER_CORE = 440e3


@dataclass(frozen=True)
class HostScale:
    way: str                 # of WAYS
    cores: int
    per_core: float = 0.0    # our transactions per second and core without a log

    def factor(self, device: str, paper: str) -> float:
        """What the bandwidth of a profile is multiplied by."""
        workers, of_profile = PAPER_MACHINES[paper, device]
        by_cores = of_profile * self.cores / workers
        return by_cores * (max(self.per_core / DBX1000_PER_CORE, 1.0) if self.way == "throughput" else 1.0)

    def device_flag(self, device: str, paper: str) -> str:
        """The value of --log_device; empty for the directories as they are."""
        if self.way == "off" or device in REAL_DEVICES:
            return ""
        if (paper, device) in AS_THEY_WERE:
            return AS_THEY_WERE[paper, device]
        return f"{device}:{self.factor(device, paper):.3g}"

    def describe(self) -> str:
        if self.way == "off":
            return "log directories as they are, but for series with a device of their own"
        text = f"emulated log devices, bandwidth scaled by {self.way} to {self.cores} cores"
        return text + (f" of {self.per_core / 1e3:,.0f} k txn/s without a log" if self.way == "throughput" else "")
