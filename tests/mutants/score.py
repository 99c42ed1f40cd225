#!/usr/bin/env python3
"""Turns mutants on, one after the other, and counts those that are found.

score.py [--torture FILE] [--tests FILE] [--seconds S] [--seed N] [--only TEXT] [--rotate K]

A mutant is killed when the torture ends with a violation, an internal check or a crash within S seconds of its cells.
Rare ones need more than that: one that names a model is also killed when that small model (tests/models) finds the same
fault; one that names a test, when that test passes without it and does not under it; others get ten times as long. Both
are in the program of `make mutant_tests`. --rotate K tries K of them only, others each day (or by --seed), and none of
the rare ones. Ends with "N passed, M failed": killed, survived.
"""
from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from catalogue import MUTANTS

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TEST_SECONDS_MAX = 60
RARE = {mutant.name for mutant in MUTANTS if mutant.rare}
TIMES_FOR_RARE = 10
# How a test can end. Whatever else is said of it, it did not run.
PASSES, FAILS, CRASHES, HANGS = "passes", "fails", "crashes", "hangs"


@dataclass(frozen=True)
class Mutant:
    """A line of the torture's --list_mutants."""
    name: str
    cells: str
    trap: str
    model: str
    test: str


def simulate(torture: str, mutant: Mutant, seconds: float, seed: int) -> tuple[bool, str]:
    command = [torture, "--mutant", mutant.name, "--seconds", str(seconds), "--seed", str(seed), "--shrink", "0"]
    if mutant.cells:
        command += ["--cells", mutant.cells]
    begin = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=seconds + 60)
    except subprocess.TimeoutExpired:
        # A hang is told by the program itself. What is silent may be slow, and was not found.
        return False, f"no end after {time.monotonic() - begin:.1f} s"
    took = f"{time.monotonic() - begin:.1f} s"
    if done.returncode == 2:
        sys.exit(f"error: {' '.join(command)}: {done.stderr.strip()}")
    if done.returncode == 0:
        return False, f"survived {took}: {done.stdout.strip().splitlines()[-1][:100]}"
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(("violation", "internal", "error"))]
    return True, f"killed in {took}: {lines[-1][:140] if lines else 'exit status ' + str(done.returncode)}"


def end_of(tests: str, test: str, mutant: str = "") -> str:
    """How one test ends, under a mutant or without any."""
    environment = {name: value for name, value in os.environ.items() if name != "DBX_MUTANT"}
    if mutant:
        environment["DBX_MUTANT"] = mutant
    try:
        done = subprocess.run([tests, f"--gtest_filter={test}"], capture_output=True, text=True, cwd=REPOSITORY,
                              env=environment, timeout=TEST_SECONDS_MAX)
    except FileNotFoundError:
        return f"is not there: {tests} is missing, build it with `make mutant_tests`"
    except subprocess.TimeoutExpired:
        return HANGS
    if "Running 1 test from" not in done.stdout:
        return f"is not there: {done.stderr.strip() or tests + ' has none of that name'}"
    return {0: PASSES, 1: FAILS}.get(done.returncode, CRASHES)


def test_finds(tests: str, mutant: Mutant) -> tuple[bool, str]:
    without = end_of(tests, mutant.test)
    if without != PASSES:
        return False, f"{mutant.test} {without}, without the mutant"
    under_it = end_of(tests, mutant.test, mutant.name)
    return under_it in (FAILS, CRASHES, HANGS), f"{mutant.test} {under_it}"


def attempt(args: argparse.Namespace, mutant: Mutant) -> tuple[bool, str]:
    if mutant.test:
        return test_finds(args.tests, mutant)
    seconds = args.seconds * (TIMES_FOR_RARE if mutant.name in RARE else 1)
    killed, how = simulate(args.torture, mutant, seconds, args.seed or 1)
    if killed or not mutant.model:
        return killed, how
    # The model is given the same fault, and the test expects that it is found.
    end = end_of(args.tests, mutant.model)
    return end == PASSES, f"{how.split(':')[0]}, and of its model {mutant.model} {end}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torture", default="build/simulation/torture")
    parser.add_argument("--tests", default="build/mutants/all_tests")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--rotate", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    args.torture, args.tests = (os.path.join(REPOSITORY, program) for program in (args.torture, args.tests))
    listed = subprocess.run([args.torture, "--list_mutants"], capture_output=True, text=True, check=True).stdout
    mutants = [Mutant(*line.split("\t")) for line in listed.splitlines()]
    mutants = [mutant for mutant in mutants if args.only in mutant.name]
    today = args.seed if args.seed is not None else datetime.date.today().toordinal()
    if args.rotate:
        mutants = [mutant for mutant in mutants if not (mutant.model or mutant.test or mutant.name in RARE)]
    if args.rotate and args.rotate < len(mutants):
        first = today * args.rotate % len(mutants)
        mutants = (mutants + mutants)[first:first + args.rotate]
    survived = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        for mutant, (killed, how) in zip(mutants, pool.map(lambda mutant: attempt(args, mutant), mutants)):
            survived += not killed
            print(f"{'ok' if killed else 'SURVIVED'}: {mutant.name} ({mutant.trap}): {how}", flush=True)
    print(f"{len(mutants) - survived} passed, {survived} failed")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
