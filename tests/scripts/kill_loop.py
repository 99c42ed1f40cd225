#!/usr/bin/env python3
"""Kills runs with SIGKILL at random times on real files, recovers and verifies each: KILLS times over all cells.

A cycle draws its cell, log and thread counts and contention from one seed, which is printed with a failure
together with the command lines, so that a cycle can be made again (--seed S --kills 1). Every cycle recovers
twice, which must give the same: recovery only reads.
"""
from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import sys
import tempfile
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(REPOSITORY, "scripts"))
from cells import all_cells, shell_line
from child import KillClock, run_child

RUN_SECONDS = 1.0
LOG_LIMIT = "192M"
STEP_TIMEOUT_SECONDS = 120
HEARTBEAT_SECONDS = 20


def draw_command(rng: random.Random, binary: str, log_dir: str, ack_file: str, seed: int) -> list[str]:
    cell = rng.choice([c for c in all_cells() if c.logs])
    loggers = rng.choice((1, 2, 4)) if cell.log == "LOG_TAURUS" else 1
    command = [binary, f"--cc={cell.cc}", f"--log={cell.log}", f"--log_type={cell.log_type}",
               f"--workload={cell.workload}", f"--thread_cnt={rng.choice((1, 2, 4))}", f"--num_logger={loggers}",
               f"--seconds={RUN_SECONDS}", f"--seed={seed}", f"--log_limit={LOG_LIMIT}", f"--log_dir={log_dir}",
               f"--ack_file={ack_file}"]
    if cell.cc == "NO_WAIT" and rng.random() < 0.4:
        command.append("--use_locktable=1")
    if cell.workload == "YCSB":
        # A small hot table makes chains of dependent transactions; a larger one spreads them.
        command += [f"--synth_table_size={rng.choice((64, 2000, 20000))}", f"--zipf_theta={rng.choice((0, 0.6, 0.9))}"]
    else:
        command += ["--tpcc_small=1", f"--num_wh={rng.choice((1, 2))}"]
    return command


def recovered_count(output: str) -> str:
    match = re.search(r"^recovered run-\d+: (\d+) transactions", output, re.M)
    return match[1] if match else ""


def cycle(binary: str, seed: int, directory: str, tick) -> str:
    """One kill and its recoveries. Returns '' or what went wrong, with the commands."""
    rng = random.Random(seed)
    log_dir, ack_file = os.path.join(directory, "logs"), os.path.join(directory, "acknowledged")
    os.mkdir(log_dir)
    run = draw_command(rng, binary, log_dir, ack_file, seed)
    delay = rng.uniform(0, 0.25) if rng.random() < 0.7 else 0.0
    recover = [binary, "-Lr1", f"--log_dir={log_dir}", f"--ack_file={ack_file}", "--verify",
               f"--thread_cnt={rng.choice((1, 2, 3))}", f"--recover_serial={rng.choice(('auto', 'always', 'never'))}"]
    commands = f"{shell_line(run)} & sleep {delay:.3f}; kill -9 $!\n    {shell_line(recover)}"
    outcome = run_child(run, STEP_TIMEOUT_SECONDS, tick, KillClock(ack_file, delay))
    if not outcome.killed and outcome.exit_status != 0:
        return f"the run ended with {outcome.exit_status}: {outcome.last_line()}\n    {commands}"
    counts = []
    for _ in range(2):
        outcome = run_child(recover, STEP_TIMEOUT_SECONDS, tick)
        if outcome.exit_status != 0:
            return f"recovery ended with {outcome.exit_status}: {outcome.last_line()}\n    {commands}"
        verified = re.search(r"verified: *([a-d,]+)", outcome.output)
        if not verified or not {"a", "c"} <= set(verified[1].split(",")):
            return f"checks a and c were not made: {outcome.last_line()}\n    {commands}"
        counts.append(recovered_count(outcome.output))
    if counts[0] != counts[1]:
        return f"the second recovery found {counts[1]} transactions, the first {counts[0]}\n    {commands}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first cycle (default: the time)")
    parser.add_argument("--dir", default=os.path.join(REPOSITORY, "build", "test"), help="where logs go for a while")
    parser.add_argument("--binary", default=os.environ.get("DBX_BINARY", os.path.join(REPOSITORY, "rundb-all")))
    arguments = parser.parse_args()
    os.makedirs(arguments.dir, exist_ok=True)
    if not os.access(arguments.binary, os.X_OK):
        sys.exit(f"error: {arguments.binary} is missing; build it with `make rundb-all`")
    start = last_sign = time.monotonic()
    failed = 0
    print(f"{arguments.kills} kills from seed {arguments.seed}", flush=True)
    for number in range(arguments.kills):
        seed = arguments.seed + number
        directory = tempfile.mkdtemp(prefix="kill-", dir=arguments.dir)
        try:
            wrong = cycle(arguments.binary, seed, directory, lambda: None)
        except BaseException:
            shutil.rmtree(directory)
            raise
        if wrong:
            failed += 1
            print(f"FAILED with --seed {seed} --kills 1: {wrong}\n    logs kept: {directory}", flush=True)
        else:
            shutil.rmtree(directory)
        if time.monotonic() - last_sign > HEARTBEAT_SECONDS:
            last_sign = time.monotonic()
            print(f"{number + 1} of {arguments.kills}, {last_sign - start:.0f} s", flush=True)
    print(f"{arguments.kills - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
