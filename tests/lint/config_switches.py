#!/usr/bin/env python3
"""config.h survives DBx1000's scripts, which set a switch by re.sub('#define\\s*NAME.*', '#define NAME VALUE').

For config.h and config-std.h: the expression of each switch hits exactly its own line, the value that it puts there
takes effect, and switches of DBx1000 that mean nothing here hit nothing. Values that are not built stop the compiler
with a sentence. Uses $CXX (default g++).
"""
from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(REPOSITORY, "scripts"))
import registry

COMPILER = os.environ.get("CXX", "g++").split()

# Switches of DBx1000 and Taurus that scripts may set and that config.h does not have.
ABSENT = ("CORE_CNT PART_CNT VIRTUAL_PART_CNT PAGE_SIZE CL_SIZE CPU_FREQ PRINT_LAT MEM_ALLIGN "
          "THREAD_ALLOC THREAD_ARENA_SIZE MEM_PAD PART_ALLOC MEM_SIZE NO_FREE KEY_ORDER ROLL_BACK CENTRAL_MAN "
          "BUCKET_CNT NO_DL DL_LOOP_DETECT TS_ALLOC TS_BATCH_ALLOC TS_BATCH_NUM HIS_RECYCLE_LEN VALIDATION_LOCK "
          "PRE_ABORT ATOMIC_TIMESTAMP TXN_QUEUE_SIZE_LIMIT HSTORE_LOCAL_TS TPCC_ACCESS_ALL QUERY_INTVL FIRST_PART_LOCAL "
          "MAX_TUPLE_SIZE INIT_PARALLELISM DIST_PER_WARE MAXITEMS SEQUENTIAL_LOG LOCKTABLE_INIT_SLOTS "
          "MAX_NUM_EPOCH POOLSIZE_WAIT SCAN_WINDOW RLV_DELTA LOGGING_THREAD_RLV_FREQ NUM_CORES_PER_SLOT").split()

# Switches of theirs that have no effect here and stand in config.h all the same, for scripts that set them.
WITHOUT_EFFECT = ("STATS_ENABLE", "COMPRESS_LSN_LT")

# (definition, what the compiler must say)
STOPPED = [(f"CC_ALG={name}", "unknown CC_ALG, or one that is not built") for name in
           "TIMESTAMP HSTORE OCC VLL PESSIMISM 4711".split()]
STOPPED += [(f"ISOLATION_LEVEL={name}", "this ISOLATION_LEVEL is not built") for name in
            "REPEATABLE_READ READ_COMMITTED READ_UNCOMMITTED".split()]
STOPPED += [("LOG_TYPE=LOG_XOR", "built are LOG_DATA and LOG_COMMAND"),
            ("LOG_ALGORITHM=LOG_FOO", "unknown LOG_ALGORITHM"), ("LOG_ALGORITHM=4711", "unknown LOG_ALGORITHM"),
            ("CENTRAL_LOG=SPINLOCK", "unknown CENTRAL_LOG"), ("DIFF_IMAGE=PAGE", "unknown DIFF_IMAGE"),
            ("DIFF_METHOD=DL3P", "unknown DIFF_METHOD"), ("RESTART_LEVEL=5", "RESTART_LEVEL is 0, 1, 2, 3 or 4"),
            ("WORKLOAD=SMALLBANK", "built are YCSB, TPCC, TEST and SMS"), ("INDEX_STRUCT=TREE", "built are IDX_HASH and IDX_BTREE"),
            ("ISOLATION_LEVEL=NONE", "built are SERIALIZABLE and, with CC_ALG HEKATON, SNAPSHOT"), ("WRITE_PERC=0.1", "READ_PERC and WRITE_PERC"),
            ("PM_FLUSH=CLFL", "unknown PM_FLUSH"), ("EPOCH_PERIOD=0", "EPOCH_PERIOD is at least 1 ms")]
BUILT = [f"LOG_ALGORITHM={scheme.name}" for scheme in registry.schemes()]
BUILT += [f"CC_ALG={name}" for control in registry.controls() for name in (control.name, control.other_name) if name]
BUILT += ["WORKLOAD=TPCC", "WORKLOAD=TEST", "WORKLOAD=SMS", "CENTRAL_LOG=MUTEX", "CENTRAL_LOG=CONSOLIDATION", "CENTRAL_LOG=BITMAP",
          "DIFF_METHOD=DL2P", "DIFF_METHOD=PL2P", "DIFF_IMAGE=RUNS", "PM_FLUSH=CLWB",
          "LOG_TYPE=LOG_COMMAND", "ISOLATION_LEVEL=SNAPSHOT", "INDEX_STRUCT=IDX_BTREE", "SCAN_PERC=0.25"]
BUILT += [f"{name}={value}" for name in WITHOUT_EFFECT for value in ("true", "false")]


def switches_of(text: str) -> list[str]:
    return re.findall(r"^#ifndef (\w+)", text, re.MULTILINE)


def set_switch(text: str, name: str, value: str) -> str:
    return re.sub(r"\#define\s*" + re.escape(name) + r".*", f"#define {name} {value}", text)


def expression_faults(path: str, text: str) -> list[str]:
    faults = []
    lines = text.splitlines()
    for name in switches_of(text):
        hits = re.findall(r"\#define\s*" + re.escape(name) + r".*", text)
        if len(hits) != 1 or not re.match(rf"#define {name}\b", hits[0]):
            faults.append(f"{path}: the expression for {name} hits {hits}")
        if any("//" in hit or "/*" in hit for hit in hits):
            faults.append(f"{path}: a comment stands behind the value of {name}")
        if not lines[lines.index(f"#ifndef {name}") - 1].startswith("//"):
            faults.append(f"{path}: {name} has no comment above it")
    faults += [f"{path}: the expression for {name}, which has no meaning here, hits a line" for name in ABSENT
               if set_switch(text, name, "1") != text]
    return faults


def preprocessed(directory: str, names: list[str], text: str) -> dict[str, str]:
    """What each name expands to under this config.h."""
    with open(os.path.join(directory, "config.h"), "w", encoding="utf-8") as file:
        file.write(text)
    probe = '#include "config.h"\n' + "".join(f"@{i} {name}\n" for i, name in enumerate(names))
    command = [*COMPILER, "-E", "-P", "-x", "c++", "-"]
    output = subprocess.run(command, cwd=directory, input=probe, capture_output=True, text=True, check=True).stdout
    return {names[int(index)]: value.strip() for index, value in re.findall(r"^@(\d+) (.*)$", output, re.MULTILINE)}


def effect_faults(path: str, text: str) -> list[str]:
    names = switches_of(text)
    changed = text
    for number, name in enumerate(names):
        changed = set_switch(changed, name, str(1000 + number))
    with tempfile.TemporaryDirectory() as directory:
        values = preprocessed(directory, names, changed)
    return [f"{path}: {name} set to {1000 + number} is {values.get(name)}" for number, name in enumerate(names)
            if values.get(name) != str(1000 + number)]


def compile_configured(definition: str) -> str:
    command = [*COMPILER, "-std=c++20", "-fsyntax-only", "-I.", f"-D{definition}", "-x", "c++", "-include",
               "system/pairs/configured.h", "/dev/null"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr


def value_faults() -> list[str]:
    faults = [f"-D{d}: the compiler does not say '{says}'" for d, says in STOPPED if says not in compile_configured(d)]
    return faults + [f"-D{d} does not compile" for d in BUILT if compile_configured(d)]


def main() -> int:
    faults, passed, switches = [], 0, {}
    for path in ("config.h", "config-std.h"):
        with open(os.path.join(REPOSITORY, path), encoding="utf-8") as file:
            text = file.read()
        switches[path] = switches_of(text)
        faults += expression_faults(path, text) + effect_faults(path, text)
        passed += len(switches[path])
    faults += [f"config.h lacks {name}" for name in WITHOUT_EFFECT if name not in switches["config.h"]]
    if switches["config.h"] != switches["config-std.h"]:
        faults.append("config.h and config-std.h do not have the same switches")
    faults += value_faults()
    passed += len(STOPPED) + len(BUILT)
    if faults:
        print("\n".join(faults))
    print(f"{passed if not faults else 0} passed, {len(faults)} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
