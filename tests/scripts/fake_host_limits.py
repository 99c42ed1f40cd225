#!/usr/bin/env python3
"""A stand-in for build/micro/host_limits with made-up figures, in the form of the real one's JSON."""
import json
import sys

LIMITS = {
    "ycsb_floor_per_s": {"1": 5.6e6, "2": 1.08e7}, "ycsb_floor_prefetch_per_s": {"1": 6.1e6, "2": 1.2e7},
    "fetch_add_shared_per_s": {"1": 2e8, "2": 1.4e8}, "dependent_load_ns": 170.0, "huge_pages": True,
    "devices": [{"path": "logs", "kind": "real", "file_system": "ext4", "read_bytes_per_s": 1.5e9, "writes": [
        {"block_bytes": 65536, "mode": "pwrite, O_DIRECT, O_DSYNC", "bytes_per_s": 6.4e8, "latency_us": 101.0},
        {"block_bytes": 524288, "mode": "io_uring depth 4, O_DIRECT, O_DSYNC", "bytes_per_s": 3.9e9,
         "latency_us": 130.0}]}],
}
options = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
with open(options["json"], "w", encoding="utf-8") as file:
    json.dump(LIMITS, file)
