#!/usr/bin/env python3
"""A stand-in for rundb-all with made-up figures: the scripts are tested against it, the engine is not.

It takes the command lines that the main job and the experiments give, writes a log directory and an ack file, and
leaves a JSON record of the real form. FAKE_FAIL=STEP (run, recover, crash, crash_recover) makes that step fail;
"recover of N": only recoveries by N threads. FAKE_LACKS=CLWB: the processor has no such instruction.
"""
import json
import os
import random
import sys
import time

ENVIRONMENT = {
    "commit": "0123abc", "dirty": False, "compiler": "g++ 12.2.0", "flags": "-O2", "allocator": "jemalloc 5.3.0",
    "kernel": "6.1", "cpu": "unknown", "cores": len(os.sched_getaffinity(0)), "governor": "", "numa_nodes": 1, "memory_bytes": 8 << 30,
    "huge_pages": "madvise", "virtualisation": "kvm", "time": "2024-01-01T00:00:00Z", "oversubscribed": True,
    "log_directories": [{"path": "logs", "kind": "real", "file_system": "ext4", "io_engine": "io_uring+O_DIRECT"}],
}


def fail(step):
    if os.environ.get("FAKE_FAIL") == step:
        print("PASS! is not what this prints")
        print("error: pretended failure of " + step)
        sys.exit(4)


def figures(options):
    log, data = options.get("log", "LOG_NO"), options.get("log_type") == "LOG_DATA"
    base = 6.2e6 if options["workload"] == "YCSB" else 4.6e5
    if log == "LOG_NO":
        return base, 0
    ratio = {"LOG_SERIAL": 0.72}.get(log, 0.66) * (0.33 if data else 1)
    size = (1090 if data else 78) if options["workload"] == "YCSB" else (1700 if data else 140)
    return base * ratio * random.uniform(0.95, 1.05), size


def record_of(options):
    return os.path.join(options["log_dir"].split(",")[0], "run.json")


def memory_of(options):
    if options.get("log") == "LOG_WBL":
        return {"log_bytes": 0, "pad_bytes": 0, "heap": {"used_bytes": 120 << 20}, "checkpoints": None}
    checkpoints = {"complete": 2, "bytes": 200 << 20} if "checkpoint_interval" in options else None
    return {"log_bytes": 30 << 20, "pad_bytes": 1 << 20, "heap": None, "checkpoints": checkpoints}


def run_record(options, seconds):
    rate, size = figures(options)
    p50 = 120.0 if size < 500 else 340.0
    return {"schema_version": 1, "kind": "run",
            "config": {"CC_ALG": options.get("cc", "NO_WAIT"), "LOG_ALGORITHM": options.get("log"),
                       "WORKLOAD": options["workload"], "LOG_TYPE": options.get("log_type", "LOG_DATA"), "THREAD_CNT": int(options["thread_cnt"]),
                       "NUM_LOGGER": int(options.get("num_logger", 1)), "ZIPF_THETA": 0.6},
            "metrics": {"seconds": seconds, "throughput_acknowledged": rate * 0.998, "throughput_executed": rate,
                        "executed_txns": int(rate * seconds), "version_bytes": 3 << 20, "memory_bytes": 200 << 20,
                        "bytes_per_txn": size, "record_bytes": int(size * rate * seconds), "void_bytes": 0,
                        "anchor_bytes": 0, "index_bytes": 2 << 20, **memory_of(options),
                        "log_bytes_per_second": rate * 0.75 * size, "stop_reason": "done",
                        "latency_us": {"mean": p50, "p50": p50, "p90": 2 * p50, "p99": 5 * p50, "p999": 21 * p50,
                                       "max": 40 * p50}, "central_log": {"crawling_ratio": 0.5}, "unsynced": False},
            "latency_histogram": [[1000, 5]], "verification": {"asked": True, "verified": "b"},
            "environment": ENVIRONMENT}


def cluster_record(options, seconds):
    """Of several masters: messages grow with sharing, times of vector clocks with the masters."""
    masters, sharing = int(options["masters"]), int(options.get("sharing", 0))
    counted = options.get("count_row_lock_managers") == "1"
    return {"schema_version": 1, "kind": "cluster", "cc": "HYBRID", "log": "LOG_TAURUS_MM", "masters": masters,
            "transport": "TCP, loopback", "threads": 8 * masters, "oversubscribed": True, "interrupted": False,
            "configuration": {"MASTERS": str(masters), "WORKLOAD": options["workload"]},
            "metrics": {"throughput_acknowledged": 1000.0 * masters, "acknowledged": 1000 + int(seconds),
                        "page_lock_messages_per_txn": 0.5 * sharing, "glm_release_messages_per_txn": 800.0,
                        "row_locks_kept_messages_per_txn": 4.0 + sharing if counted else None,
                        "row_locks_first_messages_per_txn": 4.0 if counted else None,
                        "log": {"changed_bytes_per_txn": 500.0, "other_bytes_per_txn": 300.0,
                                "time_bytes_per_txn": 100.0, "one_stamp_time_bytes_per_txn": 60.0 * masters,
                                "vector_time_bytes_per_txn": 110.0 * masters}},
            "environment": {key: value for key, value in ENVIRONMENT.items()
                            if key not in ("log_directories", "oversubscribed")}}


def recovery_record(options):
    with open(record_of(options), encoding="utf-8") as file:
        identity = json.load(file)
    rate, size = figures(identity)
    by_reference = identity["crashed"] or options.get("reference") != "0"
    checks = ["a"] * by_reference + ["b"] * (not identity["crashed"]) + (["c"] if "ack_file" in options else [])
    checks += ["d"] if identity["workload"] == "TPCC" else []
    return {"schema_version": 1, "kind": "recovery", "config": {"THREAD_CNT": 2},
            "metrics": {"recovered_txns": 123456, "throughput": rate * 0.9, "bytes_per_second": rate * 0.7 * size,
                        "replay_seconds": 2.0, "parallelism": 0.5,
                        "restart": {"log_seconds": 1.5, "log_read_seconds": 0.5, "log_play_seconds": 1.0,
                                    "log_throughput": rate}},
            "verification": {"asked": True, "verified": ",".join(sorted(checks))}, "environment": ENVIRONMENT}


def pretend_to_run(options, seconds):
    """The ack file changes while the run lasts, as the real one does."""
    if "ack_file" not in options:
        time.sleep(seconds)
        return
    with open(options["ack_file"], "wb") as file:
        file.write(bytes(4096))
    time.sleep(0.05)
    with open(options["ack_file"], "r+b") as file:
        for position in range(int(max(seconds, 0.1) / 0.01)):
            file.seek(position)
            file.write(b"\xff")
            file.flush()
            time.sleep(0.01)


def main():
    if sys.argv[1:] == ["--list"]:
        print("| NO_WAIT | 0 | LOG_NO | - | SERIALIZABLE | supported |\n"
              "| NO_WAIT | 0 | LOG_PLOVER | LOG_COMMAND | SERIALIZABLE | refused: rows, not <commands> |")
        return
    if sys.argv[1:] == ["--version"]:
        print("rundb " + ENVIRONMENT["commit"])
        return
    words = [word for word in sys.argv[1:] if word != "-Lr1"]
    options = dict((word.lstrip("-").split("=", 1) + ["1"])[:2] for word in words)
    if options.get("flush", "AUTO") == os.environ.get("FAKE_LACKS"):
        print(f"error: this processor has no {options['flush']}; doctor names the instructions that it has")
        sys.exit(2)
    recover = "-Lr1" in sys.argv or options.get("log_recover") == "1"
    if recover:
        fail("crash_recover" if "ack_file" in options else "recover")
        fail(f"recover of {options.get('thread_cnt')}")
        time.sleep(0.02)
        record = recovery_record(options)
    else:
        fail("crash" if "ack_file" in options else "run")
        seconds = float(options.get("seconds", 0.01))
        if "log_dir" in options:
            with open(record_of(options), "w", encoding="utf-8") as file:
                json.dump({**options, "crashed": "ack_file" in options}, file)
        pretend_to_run(options, seconds)
        record = (cluster_record if "masters" in options else run_record)(options, seconds)
    if "json" in options:
        with open(options["json"], "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
    print("PASS! SimTime = 1")


if __name__ == "__main__":
    main()
