#!/usr/bin/env python3
"""Turns mutants on, one after the other, and counts those that the simulated crashes find.

score.py [--torture FILE] [--seconds S] [--seed N] [--only TEXT] [--rotate K]

A mutant is killed when the torture ends with a violation, an internal check or a crash within S seconds of its cells;
a rare one also when its small model (tests/models) finds the same fault. --rotate K tries K of them only, others each
day (or by --seed), and none of the rare ones. Ends with "N passed, M failed": killed, survived.
"""
from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

TESTS = "build/all_tests"
REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def attempt(torture: str, name: str, cells: str, seconds: float, seed: int) -> tuple[bool, str]:
    command = [torture, "--mutant", name, "--seconds", str(seconds), "--seed", str(seed), "--shrink", "0"]
    if cells:
        command += ["--cells", cells]
    begin = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=seconds + 60)
    except subprocess.TimeoutExpired:
        return True, f"hung after {time.monotonic() - begin:.1f} s"
    took = f"{time.monotonic() - begin:.1f} s"
    if done.returncode == 2:
        sys.exit(f"error: {' '.join(command)}: {done.stderr.strip()}")
    if done.returncode == 0:
        return False, f"survived {took}: {done.stdout.strip().splitlines()[-1][:100]}"
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(("violation", "internal", "error"))]
    return True, f"killed in {took}: {lines[-1][:140] if lines else 'exit status ' + str(done.returncode)}"


def model_finds(test: str) -> bool:
    """Whether the small model is there, and its test of this fault holds."""
    command = [os.path.join(REPOSITORY, TESTS), f"--gtest_filter={test}"]
    if not test or not os.path.exists(command[0]):
        return False
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    return done.returncode == 0 and "[  PASSED  ] 1 test" in done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torture", default="build/simulation/torture")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--rotate", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    torture = os.path.join(REPOSITORY, args.torture)
    listed = subprocess.run([torture, "--list_mutants"], capture_output=True, text=True, check=True).stdout
    mutants = [line.split("\t") for line in listed.splitlines()]
    mutants = [mutant for mutant in mutants if args.only in mutant[0]]
    today = args.seed if args.seed is not None else datetime.date.today().toordinal()
    if args.rotate:
        mutants = [mutant for mutant in mutants if mutant[3] != "rare"]
    if args.rotate and args.rotate < len(mutants):
        first = today * args.rotate % len(mutants)
        mutants = (mutants + mutants)[first:first + args.rotate]
    survived = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda m: attempt(torture, m[0], m[1], args.seconds, args.seed or 1), mutants)
        for (name, _, trap, _, model), (killed, how) in zip(mutants, results):
            if not killed and model_finds(model):
                killed, how = True, f"{how.split(':')[0]}, found by its model, {model}"
            survived += not killed
            print(f"{'ok' if killed else 'SURVIVED'}: {name} ({trap}): {how}", flush=True)
    print(f"{len(mutants) - survived} passed, {survived} failed")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
