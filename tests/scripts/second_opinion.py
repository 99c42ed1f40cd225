#!/usr/bin/env python3
"""Histories judged by a checker that was not written here: `adya` of crates.io, which reads Elle's format.

Judged are the hand-made and random histories of tests/benchmarks/test (both checkers must agree, or the history says
why not); histories of the TEST workload on real files, under every concurrency control at each of its isolation levels,
of runs to the end, of killed runs that were recovered, and of runs that continue these; and histories of YCSB in the
simulation, whose versions are its values, as crashes and recoveries left them. First the checker must tell a right
history from wrong ones. `--install` builds it below build/cargo, which takes about a minute.
"""
from __future__ import annotations

import argparse
import collections
import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Optional

from killed_runs import REPOSITORY, Runs, Wrong
from child import KillClock, run_child
from experiment.cells import ONE_LOG
from pairs import Pair, list_pairs

CRATE, VERSION = "adya", "0.1.0"
ROOT = os.path.join(REPOSITORY, "build", "cargo")
INSTALL_SECONDS = 300
MODELS = {"serializable": "serializable", "snapshot": "snapshot-isolation"}
FILES_PER_CALL = 200
COMMON = ["--workload=TEST", "--log_limit=32M", "--query_list_len=10000"]
TORTURE = os.path.join(REPOSITORY, "build", "simulation", "torture")
# Right at both levels; a lost update, wrong at both; write skew, wrong under serializability alone.
KNOWN = {
    "right": [[["r", "x", None], ["w", "x", 1]], [["r", "x", 1], ["w", "x", 2]]],
    "lost": [[["r", "x", None], ["w", "x", 1]], [["r", "x", None], ["w", "x", 2]]],
    "skew": [[["r", "x", None], ["r", "y", None], ["w", "x", 1]], [["r", "x", None], ["r", "y", None], ["w", "y", 2]]],
}
KNOWN_VERDICTS = {("right", "serializable"): "true", ("right", "snapshot"): "true", ("lost", "serializable"): "false",
                  ("lost", "snapshot"): "false", ("skew", "serializable"): "false", ("skew", "snapshot"): "true"}


def find_adya() -> Optional[str]:
    places = [os.environ.get("DBX_ADYA", ""), os.path.join(ROOT, "bin", CRATE), shutil.which(CRATE) or ""]
    return next((place for place in places if place and os.access(place, os.X_OK)), None)


def install() -> Optional[str]:
    """The checker alone, without its drivers of databases. None where it cannot be had."""
    if shutil.which("cargo") is None:
        return None
    command = ["cargo", "install", CRATE, "--version", VERSION, "--locked", "--no-default-features", "--root", ROOT]
    outcome = run_child(command, INSTALL_SECONDS)
    if outcome.exit_status != 0:
        print(f"cannot install {CRATE} {VERSION}: {outcome.last_line()}")
        return None
    return find_adya()


def verdicts(adya: str, level: str, files: list[str]) -> dict[str, str]:
    """By file: true, false, or unknown where there is no dependency to judge."""
    found = {}
    for begin in range(0, len(files), FILES_PER_CALL):
        command = [adya, "check", "-m", "rw-register", "--wfr-keys", "-c", MODELS[level],
                   *files[begin:begin + FILES_PER_CALL]]
        output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True).stdout
        found.update(line.split("\t") for line in output.splitlines() if line.count("\t") == 1)
    if set(found) != set(files):
        raise Wrong(f"{adya} has no verdict on {sorted(set(files) - set(found))[0]}")
    return found


class Judge:
    """Counts verdicts by source, and prints those that differ."""

    def __init__(self, adya: str):
        self.adya_ = adya
        self.counts = collections.Counter()
        self.failed = 0

    def compare(self, source: str, directory: str) -> None:
        """Files LEVEL-VERDICT-NAME.json, with LEVEL-VERDICT-NAME.why where adya may find nothing wrong."""
        by_level = collections.defaultdict(list)
        for path in sorted(glob.glob(os.path.join(directory, "*.json"))):
            by_level[os.path.basename(path).split("-")[0]].append(path)
        for level, files in by_level.items():
            for path, verdict in verdicts(self.adya_, level, files).items():
                is_right = os.path.basename(path).split("-")[1] == "right"
                explained = os.path.exists(path.removesuffix(".json") + ".why")
                self.count_(source, level, path, is_right, verdict, explained)

    def count_(self, source: str, level: str, path: str, is_right: bool, verdict: str, explained: bool) -> None:
        agree = verdict != "false" if is_right else verdict == "false"
        if agree or (not is_right and explained):
            self.counts[f"{source}, {level}: " + ("agreed" if agree else "beyond the model")] += 1
            return
        self.failed += 1
        print(f"FAILED {path}: here {'right' if is_right else 'wrong'}, to {CRATE} {verdict}", flush=True)


def check_known(adya: str, directory: str) -> None:
    for (name, level), expected in KNOWN_VERDICTS.items():
        path = os.path.join(directory, f"known-{name}.json")
        with open(path, "w", encoding="utf-8") as file:
            for i, value in enumerate(KNOWN[name]):
                file.write(json.dumps({"index": i, "type": "ok", "process": i, "value": value}) + "\n")
        verdict = verdicts(adya, level, [path])[path]
        if verdict != expected:
            raise Wrong(f"{adya} says {verdict} of a history ({name}) whose verdict under {level} is {expected}")


def judge_tests(judge: Judge, directory: str, binary: str) -> None:
    histories = os.path.join(directory, "tests")
    os.makedirs(histories)
    environment = {**os.environ, "DBX_HISTORIES": histories}
    done = subprocess.run([binary, "--gtest_brief=1", "--gtest_filter=History*"], env=environment, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Wrong(f"{binary} failed: {done.stdout[-500:]}")
    judge.compare("histories of tests", histories)


def step(runs: Runs, flags: list[str], history: str, ack_file: str = "") -> None:
    """A run to its end, or a recovery, that writes its history."""
    acks = [f"--ack_file={ack_file}"] if ack_file else []
    command = [runs.binary, *flags, "--verify", f"--log_dir={runs.logs}", f"--history_file={history}", *acks]
    outcome = run_child(command, 120)
    if outcome.exit_status != 0:
        raise Wrong(f"{' '.join(command)} ended with {outcome.exit_status}: {outcome.last_line()}")


def judge_runs(judge: Judge, directory: str, binary: str, pair: Pair, level: str, seed: int) -> None:
    """One pair at one level: to the end; killed and recovered; continued, killed and recovered; continued to the end."""
    rng = random.Random(f"{seed} {pair} {level}")
    name = f"{pair.cc}-{pair.log}-{pair.log_type}-{int(pair.lock_table)}"
    histories = os.path.join(directory, f"runs-{name}-{level}")
    os.makedirs(histories)
    short = "snapshot" if level == "SNAPSHOT" else "serializable"
    number = iter(range(1, 100))
    history = lambda what: os.path.join(histories, f"{short}-right-{name}-{what}-{next(number)}.json")
    loggers = 1 if pair.log in ONE_LOG else 2
    flags = [*pair.flags(), *COMMON, f"--num_logger={loggers}", f"--isolation_level={level}",
             f"--index={rng.choice(('IDX_HASH', 'IDX_BTREE'))}", f"--thread_cnt={rng.choice((2, 4))}", f"--seed={seed}"]
    if pair.log != "LOG_NO":
        runs = Runs(binary, tempfile.mkdtemp(dir=directory))
        for continues in (False, True):
            acks = runs.ack_file(1 + continues)
            more = ["--continue", *COMMON[1:], f"--thread_cnt={rng.choice((1, 2, 4))}"] if continues else flags
            runs.run([*more, "--seconds=1"], kill_when=KillClock(acks, rng.uniform(0, 0.05)))
            step(runs, ["-Lr1"], history("recovered"), acks if os.path.exists(acks) else "")
        step(runs, ["--continue", *COMMON[1:], "--max_txns_per_thread=2000"], history("continued"))
    ends = Runs(binary, tempfile.mkdtemp(dir=directory))
    step(ends, [*flags, "--max_txns_per_thread=5000"], history("ended"))
    judge.compare("runs of TEST", histories)


def judge_simulation(judge: Judge, directory: str, seed: int, cycles: int) -> None:
    if not os.access(TORTURE, os.X_OK):
        return print("no histories of YCSB: build/simulation/torture is missing; build it with `make torture`")
    cells = subprocess.run([TORTURE, "--list_cells", "/YCSB/"], stdout=subprocess.PIPE, check=True, text=True).stdout
    first = {}
    for cell in cells.split():
        first.setdefault(cell.split("/")[0], cell)
    for control, cell in first.items():
        histories = os.path.join(directory, "simulated-" + control.replace("+", "-"))
        os.makedirs(histories)
        command = [TORTURE, "--cells", cell, "--seed", str(seed), "--cycles", str(cycles), "--histories", histories]
        outcome = run_child(command, 300)
        if outcome.exit_status != 0:
            raise Wrong(f"{' '.join(command)} ended with {outcome.exit_status}: {outcome.last_line()}")
        judge.compare("simulated YCSB", histories)


def chosen(pairs: list[Pair], smoke: bool) -> list[Pair]:
    """All, or for each concurrency control one that logs, in turn."""
    logged = [pair for pair in pairs if pair.supported and pair.log != "LOG_NO"]
    if not smoke:
        return logged
    by_control = collections.defaultdict(list)
    for pair in logged:
        by_control[pair.cc, pair.lock_table].append(pair)
    return [of_one[i % len(of_one)] for i, of_one in enumerate(by_control.values())]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true", help="with cargo, if it is missing")
    parser.add_argument("--smoke", action="store_true", help="one pair per concurrency control, few cycles")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--binary", default=os.environ.get("DBX_BINARY", os.path.join(REPOSITORY, "rundb-all")))
    parser.add_argument("--tests", default=os.path.join(REPOSITORY, "build", "all_tests"))
    parser.add_argument("--dir", default=os.path.join(REPOSITORY, "build", "test"), help="where histories go for a while")
    arguments = parser.parse_args()
    adya = find_adya() or (install() if arguments.install else None)
    if adya is None:
        print(f"skipped: no {CRATE} (tests/scripts/second_opinion.py --install, with cargo 1.80 or newer, builds it)")
        return 0
    os.makedirs(arguments.dir, exist_ok=True)
    directory = tempfile.mkdtemp(prefix="opinion-", dir=arguments.dir)
    judge = Judge(adya)
    print(f"seed {arguments.seed}", flush=True)
    try:
        check_known(adya, directory)
        judge_tests(judge, directory, arguments.tests)
        for pair in chosen(list_pairs(arguments.binary), arguments.smoke):
            for level in pair.isolation:
                judge_runs(judge, directory, arguments.binary, pair, level, arguments.seed)
        judge_simulation(judge, directory, arguments.seed, 40 if arguments.smoke else 1000)
    except Wrong as wrong:
        judge.failed += 1
        print(f"FAILED: {wrong}")
    for kind, count in sorted(judge.counts.items()):
        print(f"{count:6} {kind}")
    if judge.failed:
        print(f"{judge.failed} failed; histories are kept under {directory}")
        return 1
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
