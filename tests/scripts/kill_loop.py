#!/usr/bin/env python3
"""Kills runs with SIGKILL on real files, recovers and verifies: KILLS times at random, and at named points.

A random cycle draws its pair, log and thread counts, contention, isolation level and index from one seed, which is
printed with a failure together with the command lines, so that a cycle can be made again (--seed S --kills 1). Its signs
of life say with which flags a loop that was stopped can be taken up. Workloads take turns, and what TEST leaves must be
a history of its isolation level. Large numbers of logs, emulated devices and instruction sets take turns as well, so
that a few seeds in a row have them all. Half of the cycles also kill the run that continues the first, anywhere from its
start on. Named points are those of kill_points.py; --point NAME tries one. What must hold after a kill is in
killed_runs.py.
"""
from __future__ import annotations

import argparse
import collections
import os
import random
import shutil
import sys
import tempfile
import time

from killed_runs import REPOSITORY, SIGKILLED, Runs, Wrong  # puts scripts/ on the path
import stop
if __name__ == "__main__":
    stop.install()
from kill_points import KILLER, NamedPoints
from child import KillClock
from experiment.cells import ONE_LOG
from pairs import Pair, list_pairs
from progress import clock

# A run is killed within its second; a short list of calls is made fast.
COMMON = ["--seconds=1", "--log_limit=48M", "--query_list_len=10000"]
# The default heap of few rows is small for what a second of unthrottled transactions leaves in it.
HEAP_FLAGS = ["--heap_bytes=512M"]
WORKLOADS = ("YCSB", "TPCC", "TEST", "SMS")
# Seconds; of a run after its first acknowledgement, of a run that continues after its start. Histories take long to
# check, so those of TEST are short.
RUN_DELAY_MAX = {"YCSB": 0.1, "TPCC": 0.1, "TEST": 0.03, "SMS": 0.1}
CONTINUE_DELAY_MAX = {"YCSB": 0.4, "TPCC": 0.4, "TEST": 0.15, "SMS": 0.4}
CONTINUATIONS = ([], ["--checkpoint"], ["--checkpoint", "--drop_old_runs"], ["--verify"])
# By turns; the lengths of these and of WORKLOADS have no common divisor, so all combinations come.
LOGGERS = (8, 16, None)  # None: as drawn
DEVICES = ("real", "nvme", "hdd", "ssd:0.1", "pm")
HEARTBEAT_SECONDS = 20


def draw_load(rng: random.Random, workload: str) -> list[str]:
    if workload == "YCSB":
        # A small hot table makes chains of dependent transactions; a larger one spreads them.
        return [f"--synth_table_size={rng.choice((64, 2000, 20000))}", f"--zipf_theta={rng.choice((0, 0.6, 0.9))}"]
    if workload == "TPCC":
        return ["--tpcc_small=1", f"--num_wh={rng.choice((1, 2))}", f"--tpcc_full_mix={rng.choice((0, 1))}"]
    if workload == "SMS":
        # In short queues transactions soon delete what others have inserted.
        return [f"--sms_rows={rng.choice((64, 2000, 20000))}", f"--sms_slot_bytes={rng.choice((64, 256, 1024))}",
                f"--sms_abort_perc={rng.choice((0, 2, 20))}"]
    return rng.choice(([], ["-Ar"], ["-Ac"]))


def draw_reads(seed: int, workload: str, pair: Pair) -> list[str]:
    """What transactions may read, and through which index. Drawn by a generator of its own, so that everything else of
    a seed is as it was before there were these draws.
    """
    rng = random.Random(f"reads {seed}")
    flags = [f"--isolation_level={rng.choice(pair.isolation)}", f"--index={rng.choice(('IDX_HASH', 'IDX_BTREE'))}"]
    if workload == "YCSB" and "--index=IDX_BTREE" in flags:
        flags += [f"--scan_perc={rng.choice((0, 0.1, 0.5))}", f"--scan_len={rng.choice((1, 20))}"]
    return flags


def draw_changes(seed: int, pair: Pair) -> list[str]:
    """How changes are logged, where they are; drawn by a generator of its own, too."""
    if pair.log != "LOG_DIFFERENTIAL":
        return []
    rng = random.Random(f"changes {seed}")
    return [f"--diff_method={rng.choice(('DL1P', 'DL2P', 'PL2P'))}", f"--checkpoint_bytes={rng.choice(('0', '64K', '1M'))}"]


def draw_run(rng: random.Random, seed: int, workload: str, pairs: list[Pair]) -> list[str]:
    pair = rng.choice(pairs)
    loggers = 1
    if pair.log not in ONE_LOG:
        drawn = rng.choice((1, 2, 4))  # even where it is not used, so that the rest of a seed does not depend on it
        loggers = LOGGERS[seed % len(LOGGERS)] or drawn
    return [*pair.flags(), f"--workload={workload}", f"--thread_cnt={rng.choice((1, 2, 4))}",
            f"--num_logger={loggers}", f"--seed={seed}", *COMMON, *draw_load(rng, workload),
            *draw_reads(seed, workload, pair), *draw_changes(seed, pair), *HEAP_FLAGS * (pair.log == "LOG_WBL")]


def draw_checkpoints(seed: int, flags: list[str], step: int) -> list[str]:
    """When a run with these flags writes checkpoints, and whether they truncate logs; of a scheme that takes them beside
    transactions. By a generator of its own, for the same reason."""
    of_pages = "--log=LOG_DIFFERENTIAL" in flags
    of_rows = "--log_type=LOG_DATA" in flags and ("--log=LOG_SERIAL" in flags or "--log=LOG_TAURUS" in flags)
    if not (of_pages or of_rows):
        return []
    rng = random.Random(f"checkpoints {seed} {step}")
    return [f"--checkpoint_interval={rng.choice(('0', '1ms', '5ms', '20ms'))}",
            f"--checkpoint_bytes={rng.choice(('0', '64K', '1M'))}", f"--log_truncation={rng.choice((1, 1, 1, 0))}",
            f"--checkpoint_cpu_perc={rng.choice((10, 100, 100))}"]


def draw_continuation(rng: random.Random, in_place: bool) -> list[str]:
    """`in_place`: it goes on in the same run, and takes no checkpoint of the one before."""
    flags = ["--continue", f"--thread_cnt={rng.choice((1, 2, 4))}", *COMMON, *rng.choice(CONTINUATIONS)]
    return [flag for flag in flags if not (in_place and flag in ("--checkpoint", "--drop_old_runs"))]


def draw_redo(seed: int, flags: list[str]) -> list[str]:
    """Whether what continues a run with these flags rebuilds its rows on demand; by a generator of its own, too."""
    if "--log=LOG_INSTANT" not in flags:
        return []
    return [f"--redo={random.Random(f'redo {seed}').choice(('ALL', 'ON_DEMAND', 'ON_DEMAND'))}"]


def can_continue(flags: list[str]) -> bool:
    """A heap of SMS is refused: its messages are numbered as the transactions of one life."""
    return not ("--log=LOG_WBL" in flags and "--workload=SMS" in flags)


def simd_levels() -> list[str]:
    """What --simd takes on this host, as the engine asks the processor."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = next((line.split() for line in file if line.startswith("flags")), [])
    return ["scalar"] + ["avx2"] * ("avx2" in flags) + ["avx512"] * ("avx2" in flags and "avx512f" in flags)


def host_flags(seed: int, step: int, levels: list[str]) -> list[str]:
    """What step number `step` of a cycle runs on, be it a run or a recovery: one device in a cycle, and an instruction
    set for each step, so that what one wrote another reads."""
    return [f"--log_device={DEVICES[seed % len(DEVICES)]}", f"--simd={levels[(seed + step) % len(levels)]}"]


def after_start(delay: float):
    start = time.monotonic()
    return lambda: time.monotonic() - start >= delay


class Loop:
    """Counts what was killed, and prints what went wrong."""

    def __init__(self, binary: str, directory: str):
        self.binary_ = binary
        self.directory_ = directory
        self.pairs_ = [pair for pair in list_pairs(binary) if pair.supported and pair.log != "LOG_NO"]
        self.levels_ = simd_levels()
        self.killed = collections.Counter()  # by kind
        self.passed = self.failed = 0
        self.begin()

    def begin(self) -> None:
        self.start_ = self.last_sign_ = time.monotonic()

    def at_random(self, seed: int) -> None:
        rng, workload = random.Random(seed), WORKLOADS[seed % len(WORKLOADS)]
        runs = Runs(self.binary_, tempfile.mkdtemp(prefix="kill-", dir=self.directory_),
                    host_flags=lambda step: host_flags(seed, step, self.levels_))
        delay = rng.uniform(0, RUN_DELAY_MAX[workload]) if rng.random() < 0.7 else 0.0
        try:
            flags = draw_run(rng, seed, workload, self.pairs_)
            runs.in_place = "--log=LOG_WBL" in flags
            outcome = runs.run(flags + draw_checkpoints(seed, flags, 0), kill_when=KillClock(runs.ack_file(1), delay))
            self.killed["random, in a run"] += outcome.exit_status == SIGKILLED
            runs.examine(rng)
            if rng.random() < 0.5 and can_continue(flags):
                delay = rng.uniform(0, CONTINUE_DELAY_MAX[workload])
                outcome = runs.run(draw_continuation(rng, runs.in_place) + draw_checkpoints(seed, flags, 1)
                                   + draw_redo(seed, flags), kill_when=after_start(delay))
                self.killed["random, in a run that continues"] += outcome.exit_status == SIGKILLED
                runs.examine(rng)
        except Wrong as wrong:
            commands = "\n    ".join(runs.lines)
            raise Wrong(f"{wrong}\n    {commands}\n    the last kill after {delay:.3f} s") from None
        shutil.rmtree(runs.directory)

    def at_point(self, points: NamedPoints, point: str, seed: int) -> None:
        reached = points.kill(point, seed)
        self.killed[f"named, in {point.split('/')[1]}" if reached else "named, but not reached"] += 1
        if not reached:
            print(f"not reached: {point}", flush=True)

    def attempt(self, again: str, act, *arguments) -> None:
        """Counts one cycle; `again` are the flags that make it again."""
        try:
            act(*arguments)
            self.passed += 1
        except Wrong as wrong:
            self.failed += 1
            print(f"FAILED with {again}: {wrong}\n    logs kept under {self.directory_}", flush=True)

    def sign(self, done: int, wanted: int, what: str) -> None:
        """Now and then: how far it is."""
        now = time.monotonic()
        if now - self.last_sign_ > HEARTBEAT_SECONDS and done > 0:
            self.last_sign_ = now
            left = (now - self.start_) * (wanted - done) / done
            print(f"{done} of {wanted} {what}, {clock(now - self.start_)}, about {clock(left)} left", flush=True)


def try_points(loop: Loop, arguments: argparse.Namespace, directory: str) -> None:
    points = NamedPoints(arguments.binary, directory)
    names = [arguments.point] if arguments.point else points.list()
    if not arguments.point and arguments.points != "all":
        names = random.Random(arguments.seed).sample(names, min(int(arguments.points), len(names)))
    print(f"{len(names)} named points", flush=True)
    loop.begin()
    for i, name in enumerate(names):
        loop.attempt(f"--kills 0 --seed {arguments.seed} --point {name}", loop.at_point, points, name, arguments.seed)
        loop.sign(i + 1, len(names), "points")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="at random")
    parser.add_argument("--points", default="0", metavar="N|all", help="named points: a sample, or all of them")
    parser.add_argument("--point", metavar="NAME", help="this one only")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first cycle (default: the time)")
    parser.add_argument("--dir", default=os.path.join(REPOSITORY, "build", "test"), help="where logs go for a while")
    parser.add_argument("--binary", default=os.environ.get("DBX_BINARY", os.path.join(REPOSITORY, "rundb-all")))
    arguments = parser.parse_args(argv)
    wants_points = arguments.point or arguments.points != "0"
    for path, target in [(arguments.binary, "rundb-all")] + [(KILLER, "kill_points")] * bool(wants_points):
        if not os.access(path, os.X_OK):
            sys.exit(f"error: {path} is missing; build it with `make {target}`")
    os.makedirs(arguments.dir, exist_ok=True)
    directory = tempfile.mkdtemp(prefix="kills-", dir=arguments.dir)
    loop, seed = Loop(arguments.binary, directory), arguments.seed
    print(f"{arguments.kills} random kills from seed {seed}", flush=True)
    try:
        while (done := sum(loop.killed.values()) + loop.failed) < arguments.kills:
            loop.sign(done, arguments.kills, f"kills (the rest: --seed {seed} --kills {arguments.kills - done})")
            loop.attempt(f"--seed {seed} --kills 1", loop.at_random, seed)
            seed += 1
        if wants_points:
            try_points(loop, arguments, directory)
    finally:
        if not loop.failed:
            shutil.rmtree(directory)
    print("killed " + "; ".join(f"{count} ({kind})" for kind, count in sorted(loop.killed.items())))
    print(f"{loop.passed} passed, {loop.failed} failed")
    return 1 if loop.failed else 0


if __name__ == "__main__":
    stop.run(main)
