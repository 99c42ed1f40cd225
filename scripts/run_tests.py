#!/usr/bin/env python3
"""All test phases in order, with progress, times and one sum at the end: "N passed, M failed".

test.sh calls it after the set-up. A phase is a command whose output goes to build/test/NAME.log; how its tests
are counted depends on its kind (see COUNTERS). A phase that counts nothing, or that dies, counts as one.
"""
from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stop
if __name__ == "__main__":
    stop.install()
from child import die_with_parent, end
from progress import clock

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOG_DIR = os.path.join(REPOSITORY, "build", "test")
HEARTBEAT_SECONDS = 20
TAIL_LINES = 40
GRACE_SECONDS = 5  # to an interrupted phase, whose programs delete their logs
SHOWN_FAILURES = 3  # of GoogleTest, with what they printed
LINES_OF_A_FAILURE = 12
QUICK_FILTER = "-*Slow*"
# By night alone: the longest models; crashes of a run that is continued without a checkpoint, with which those of one
# with a checkpoint begin; and crashes of runs with a lock table, but for those of one control.
FILTER_BY_DAY = ("-SlowWriteBehindModel*:SlowMultiMaster*:*ACrashAnywhereLeavesTheOldStateOrTheNewRun*"
                 ":*CrashTest.*/WAIT_DIE_table_*:*CrashTest.*/DL_DETECT_table_*")
# ThreadSanitizer sees nothing in one thread: without exhaustive models, oracles and shapes of the indexes, damaged
# files, and the crashes before each single operation, whose runs are those of the crash tests. Of the log counts one
# and five will do, the second of which gives each writer two streams and more; of the crash tests those in which a run
# ends with a power failure and with a failed sync, as the others differ in what is then on the disk.
THREADS_BY_NIGHT = QUICK_FILTER + (":*Model*:*Oracle*:*BTreePattern*:*Spread*:*Alignment*:*Damage*"
                                   ":*Histories.RecoverWherever*:LogEnd.*:LogReader.RecordsOfAny*"
                                   ":BTreeIndexTest.UnlinkingInAny*:*ACrashAnywhere*:*_2logs*:*LostRuns*:*FailingCalls*"
                                   ":*FailedSyncTest*:HistoryOrder*:*CrashTest.ACleanEnd*:*CrashTest.Torn*"
                                   ":*CrashTest.TheFullMixOfTpccLoses*")
# By night alone: failing syncs, dropped transactions in many continuations, deaths under workloads whose deaths the
# smaller tests have too, and what one thread does.
THREADS_BY_DAY = (THREADS_BY_NIGHT + ":*CrashTest.AFailedSync*:*WhatWasDroppedOnce*:WorkloadDeathTest.*"
                  ":SlottedPageTest.*:RemainingDatabaseTest.*:SysbenchTest.LoadDepends*")
# AddressSanitizer needs each crash before an operation once: those with a checkpoint begin with all the others. By
# night alone: exhaustive models, which hold no memory of the engine's, and of the crash tests what ThreadSanitizer
# leaves out, and those of the full mix.
ADDRESS_BY_NIGHT = QUICK_FILTER + ":*ACrashAnywhereLeavesTheOldStateOrTheNewRun*"
ADDRESS_BY_DAY = (ADDRESS_BY_NIGHT + ":*Model.*:*_2logs*:*CrashTest.ACleanEnd*:*CrashTest.Torn*"
                  ":*CrashTest.TheFullMixOfTpcc*")
ENGINE_FOLDERS = " ".join(f"tests/{folder}" for folder in ("base", "benchmarks", "concurrency_control", "logging",
                                                            "multi_master", "storage", "system"))
# By day the tests of several masters run under ThreadSanitizer alone, by night under AddressSanitizer too.
ADDRESS_FOLDERS = ENGINE_FOLDERS.replace(" tests/multi_master", "")

# Sanitised builds hold these pairs: each concurrency control, each scheme, each payload, and the lock table.
SANITISED_PAIRS = ("NO_WAIT:0:LOG_NO:LOG_DATA NO_WAIT:0:LOG_SERIAL:LOG_DATA NO_WAIT:1:LOG_TAURUS:LOG_DATA "
                   "SILO:0:LOG_TAURUS:LOG_COMMAND NO_WAIT:0:LOG_PLOVER:LOG_DATA SILO:0:LOG_BATCH:LOG_DATA "
                   "SILO:0:LOG_ELEDA:LOG_COMMAND TICTOC:0:LOG_TAURUS:LOG_DATA WAIT_DIE:0:LOG_TAURUS:LOG_COMMAND "
                   "DL_DETECT:0:LOG_SERIAL:LOG_COMMAND HEKATON:0:LOG_TAURUS:LOG_COMMAND "
                   "NO_WAIT:0:LOG_DIFFERENTIAL:LOG_DATA HEKATON:0:LOG_WBL:LOG_DATA "
                   "NO_WAIT:0:LOG_INSTANT:LOG_DATA")
# By night, what unit tests of its concurrency control have otherwise: versions in a heap that are locked.
SANITISED_BY_NIGHT = " NO_WAIT:0:LOG_WBL:LOG_DATA"


@dataclass
class Phase:
    name: str
    command: list[str]
    timeout: float = 600
    kind: str = "one"  # of COUNTERS
    environment: dict = field(default_factory=dict)
    needs: str = ""    # skipped, and not counted, if that phase failed


@dataclass
class Count:
    passed: int = 0
    failed: int = 0


def count_one(status: int, output: str, phase: Phase) -> Count:
    return Count(1, 0) if status == 0 else Count(0, 1)


def count_sum_line(status: int, output: str, phase: Phase) -> Count:
    """A last line 'N passed, M failed'."""
    match = re.findall(r"^(\d+) passed, (\d+) failed\s*$", output, re.M)
    return Count(int(match[-1][0]), int(match[-1][1])) if match else Count()


def count_unittest(status: int, output: str, phase: Phase) -> Count:
    ran = re.search(r"^Ran (\d+) tests? in", output, re.M)
    if not ran:
        return Count()
    bad = sum(int(n) for n in re.findall(r"(?:failures|errors|unexpected successes)=(\d+)", output))
    skipped = sum(int(n) for n in re.findall(r"skipped=(\d+)", output))
    return Count(int(ran[1]) - bad - skipped, bad)


COUNTERS = {"one": count_one, "sum": count_sum_line, "unittest": count_unittest}


def run_phase(phase: Phase) -> tuple[Count, str]:
    """Runs a phase; returns its counts and, if it failed, the reason."""
    os.makedirs(LOG_DIR, exist_ok=True)
    log_path = os.path.join(LOG_DIR, phase.name.replace(" ", "-") + ".log")
    start = last_sign = time.monotonic()
    timed_out = False
    with open(log_path, "wb") as log:
        child = subprocess.Popen(phase.command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=log,
                                 stderr=subprocess.STDOUT, env={**os.environ, **phase.environment},
                                 start_new_session=True, preexec_fn=die_with_parent)
        try:
            while child.poll() is None:
                time.sleep(0.05)
                now = time.monotonic()
                if now - start > phase.timeout and not timed_out:
                    timed_out = True
                    end(child)
                stop.check()
                if now - last_sign > HEARTBEAT_SECONDS:
                    last_sign = now
                    print(f"    {clock(now - start)}  {sign_of_life(log_path)}", flush=True)
        finally:
            end(child, GRACE_SECONDS)
    with open(log_path, encoding="utf-8", errors="replace") as log:
        output = log.read()
    count = COUNTERS[phase.kind](child.returncode, output, phase)
    if count.passed + count.failed == 0 or (child.returncode != 0 and count.failed == 0):
        count.failed += 1
    reason = ""
    if count.failed:
        why = f"no end after {phase.timeout:.0f} s" if timed_out else f"exit status {child.returncode}"
        reason = "\n".join([f"  {why}; the whole output: {os.path.relpath(log_path, REPOSITORY)}",
                            f"  again: {shlex.join(phase.command)}"] + ["  | " + line for line in excerpt(output)])
    return count, reason


def excerpt(output: str) -> list[str]:
    """The lines that tell what failed: those of the first failed tests of GoogleTest and the names of all of them,
    lines that begin with FAILED, or else the last ones.
    """
    gtest = re.findall(r"^\[ RUN      \] .*\n(?:(?!\[ RUN      \]|\[       OK \]|\[  SKIPPED \]).*\n)*?"
                       r"\[  FAILED  \] .*", output, re.M)
    if gtest:
        lines = [line for test in gtest[:SHOWN_FAILURES] for line in test.splitlines()[:LINES_OF_A_FAILURE]]
        return lines + list(dict.fromkeys(re.findall(r"^\[  FAILED  \] [^\s,]+", output, re.M)))
    lines = output.splitlines()
    told = [line for line in lines if line.startswith("FAILED")]
    return told[:TAIL_LINES] + lines[-TAIL_LINES // 2 if told else -TAIL_LINES:]


def sign_of_life(log_path: str) -> str:
    """The last line of the output, or for GoogleTest how many tests are done."""
    with open(log_path, encoding="utf-8", errors="replace") as log:
        output = log.read()
    total = re.search(r"^\[==========\] Running (\d+) tests", output, re.M)
    if total:
        done = len(re.findall(r"^\[ (?:      OK| FAILED | SKIPPED) \]", output, re.M))
        running = re.findall(r"^\[ RUN      \] (\S+)", output, re.M)
        return f"{done} of {total[1]} tests, in {running[-1]}" if running else f"{done} of {total[1]} tests"
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip()[:100] if lines else "..."


def plan(quick: bool, nightly: bool) -> list[Phase]:
    """Quick: what every commit passes. Nightly: more cycles, kills and mutants, and what rarely fails."""
    python, jobs = sys.executable, os.environ.get("DBX_JOBS", "2")
    cxx = os.environ.get("CXX", "g++")
    make, shards = [python, "scripts/build.py", f"-j{jobs}"], [python, "scripts/shards.py", jobs]
    unit_filter = QUICK_FILTER if quick else "*" if nightly else FILTER_BY_DAY
    phases = [
        Phase("includes", [python, "tests/lint/include_rules.py"]),
        Phase("scheme names", [python, "tests/lint/scheme_names.py"]),
        Phase("one list", [python, "tests/lint/one_list.py"]),
        Phase("glossary", [python, "tests/lint/glossary.py"]),
        Phase("style", [python, "tests/lint/style_ratchet.py"]),
        Phase("contracts", [python, "tests/lint/wrong_contracts.py"], kind="sum", timeout=300),
        Phase("switches", [python, "tests/lint/config_switches.py"], timeout=300),
        Phase("build", [*make, f"CXX={cxx}", "rundb-all", "rundb-timed", "rundb-charged", "log_dump", "tests", "micro",
                         "kill_points"],
              timeout=2400),
        Phase("scripts", [python, "tests/scripts/run_all.py", jobs], kind="sum", timeout=900),
        Phase("matrix", [python, "scripts/pairs_matrix.py", "--check"], needs="build"),
        Phase("unit", [*shards, "build/all_tests", f"--gtest_filter={unit_filter}"],
              kind="sum", timeout=1800, needs="build"),
        *([] if quick else simulation_phases(python, make, cxx, jobs, nightly)),
        Phase("command line", [python, "tests/scripts/cli_check.py"], kind="sum", needs="build"),
        Phase("heaps", [python, "tests/scripts/heap_check.py"], kind="sum", needs="build"),
        Phase("series", [python, "tests/scripts/series_check.py"], kind="sum", needs="build"),
        Phase("dumps", [python, "tests/scripts/dump_check.py"], kind="sum", needs="build"),
        Phase("replicas", [python, "tests/scripts/replica_check.py"], kind="sum", needs="build"),
        Phase("pins", [python, "tests/scripts/pin_check.py"], kind="sum", needs="build"),
        Phase("masters", [python, "tests/scripts/masters_check.py"], kind="sum", needs="build"),
        Phase("masters killed", [python, "tests/scripts/masters_kill.py",
                                 f"--kills={8 if quick else 2000 if nightly else 40}"],
              kind="sum", timeout=7200 if nightly else 600, needs="build"),
        Phase("masters' logs", [python, "tests/scripts/masters_dump_check.py"], kind="sum", needs="build"),
        Phase("kills", [python, "tests/scripts/kill_loop.py", *(["--kills=6", "--points=8"] if quick else
                                                                ["--kills=500"] if nightly else
                                                                ["--kills=25", "--points=60"])],
              kind="sum", timeout=7200 if nightly else 1500, needs="build"),
    ]
    if shutil.which(find_clang()):
        phases.append(Phase("build fuzz targets", [*make, "fuzz"], timeout=600))
    if not quick:
        phases += full_phases(python, make, shards, cxx, nightly)
    if nightly:
        phases += nightly_phases(python, jobs)
    return phases


def simulation_phases(python: str, make: list[str], cxx: str, jobs: str, nightly: bool) -> list[Phase]:
    """Runs, crashes and recoveries in simulation, and whether they would find what they are there to find."""
    return [
        # A lock table is the same under each control: by night, all have one.
        Phase("build simulation", [*make, f"CXX={cxx}", *([] if nightly else ["LOCK_TABLES=NO_WAIT"]), "torture",
                                   "sim_tests", "cluster_model"],
              timeout=2400),
        Phase("simulated networks", [python, "scripts/shards.py", jobs, "build/simulation/sim_tests"], kind="sum",
              timeout=600, needs="build simulation"),
        Phase("modelled clusters", [python, "scripts/shards.py", jobs, "build/simulation/cluster_model_tests"], kind="sum",
              timeout=300, needs="build simulation"),
        # The same seeds on every host: a trial that fails, fails again. scripts/torture draws new ones.
        Phase("torture", [python, "scripts/torture.py", f"--cycles={100000 if nightly else 20000}", "--seed=1",
                          "--kept", "--controls", "--state=build/test/torture.json"], kind="sum",
              timeout=7200 if nightly else 900, needs="build simulation"),
        *([Phase("build mutants' tests", [*make, f"CXX={cxx}", "mutant_tests"], timeout=2400)] if nightly else []),
        Phase("mutants", [python, "tests/mutants/score.py", "--seconds=150", f"--jobs={jobs}",
                          *([] if nightly else ["--rotate=5"])],
              kind="sum", timeout=14400 if nightly else 1800, needs="build simulation"),
    ]


def line_transfer_phases(python: str, make: list[str]) -> list[Phase]:
    # The tests of its script skip what is not built; a pair will do.
    return [
        Phase("build line transfers", [*make, "CXX=g++", "PAIRS=NO_WAIT:0:LOG_TAURUS:LOG_COMMAND", "line_transfers"],
              timeout=1200),
        Phase("line transfers", [python, "tests/scripts/line_transfers_test.py"], kind="unittest", timeout=120,
              needs="build line transfers"),
    ]


def full_phases(python: str, make: list[str], shards: list[str], cxx: str, nightly: bool) -> list[Phase]:
    clang = find_clang()
    pairs = f"PAIRS={SANITISED_PAIRS}{SANITISED_BY_NIGHT if nightly else ''}"
    halt = "halt_on_error=1:second_deadlock_stack=1"
    phases = [
        Phase("main job", [python, "scripts/main_job.py", "--short", "--out=build/test/out",
                           "--log_dir=build/test/logs"], timeout=600, needs="build"),
        # Of the tutorials, that of a concurrency control by night.
        Phase("tutorials", [python, "tests/scripts/tutorial_check.py",
                            *([] if nightly else ["-k", "test_0_1", "-k", "test_1_"])],
              kind="unittest", timeout=3000),
        *(line_transfer_phases(python, make) if nightly else []),
        Phase("build with TSan", [*make, f"CXX={cxx}", "SANITIZE=thread", pairs, f"TESTS={ENGINE_FOLDERS}", "tests"],
              timeout=2400),
        Phase("unit with TSan",
              [*shards, "build/thread/all_tests",
               f"--gtest_filter={THREADS_BY_NIGHT if nightly else THREADS_BY_DAY}"],
              kind="sum", timeout=1500, environment={"TSAN_OPTIONS": halt}, needs="build with TSan"),
    ]
    # The other compiler and the other sanitisers in one build.
    phases += [
        Phase(f"build with ASan and UBSan by {clang}",
              [*make, f"CXX={clang}", "SANITIZE=address", pairs, *([] if nightly else [f"TESTS={ADDRESS_FOLDERS}"]),
               "tests"],
              timeout=2400),
        Phase("unit with ASan and UBSan",
              [*shards, "build/address/all_tests",
               f"--gtest_filter={ADDRESS_BY_NIGHT if nightly else ADDRESS_BY_DAY}"],
              kind="sum", timeout=1500, needs=f"build with ASan and UBSan by {clang}"),
    ]
    phases.append(
        Phase("fuzz", [python, "tests/scripts/fuzz_run.py", "--seed=1"], kind="sum", needs="build fuzz targets")
        if shutil.which(clang) else
        Phase("fuzz", ["echo", "skipped: no clang++ (scripts/setup.sh --tests installs it)"]))
    return phases


def nightly_phases(python: str, jobs: str) -> list[Phase]:
    return [
        # Skips itself where there is no cargo, or no registry to install from.
        Phase("second opinion", [python, "tests/scripts/second_opinion.py", "--install", "--seed=1"], timeout=7200,
              needs="build"),
        Phase("headers", [python, "tests/lint/headers_alone.py"], kind="sum", timeout=900),
        # A clean build for each of the twelve, as in the procedure, is the script's default, and takes half an hour.
        Phase("procedure of DBx1000", ["bash", "tests/dbx1000_procedure.sh", "--clean_once"], kind="sum", timeout=1800,
              environment={"JOBS": jobs}),
    ]


def find_clang() -> str:
    # Where there is none, the phase fails and says so.
    return next((name for name in ("clang++-14", "clang++") if shutil.which(name)), "clang++-14")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog=os.environ.get("DBX_PROGRAM", "run_tests.py"), allow_abbrev=False,
                                     description="Builds and runs all tests; ends with 'N passed, M failed'.")
    parser.add_argument("--quick", action="store_true", help="without slow tests, sanitisers, the other compiler")
    parser.add_argument("--nightly", action="store_true",
                        help="with more cycles, kills and mutants, a second opinion on histories, headers one by one, "
                             "DBx1000's procedure: hours")
    parser.add_argument("--only", metavar="WORD", help="only the phases whose name contains WORD")
    parser.add_argument("--list", action="store_true", help="print the phases and leave")
    parser.add_argument("--parse_only", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.quick and arguments.nightly:
        parser.error("--quick and --nightly exclude each other")
    phases = plan(arguments.quick, arguments.nightly)
    if arguments.only:
        exact = [p for p in phases if p.name == arguments.only]
        phases = exact or [p for p in phases if arguments.only in p.name]
        if not phases:
            parser.error(f"no phase is called '{arguments.only}'; the phases are: "
                         + ", ".join(p.name for p in plan(arguments.quick, arguments.nightly)))
    if arguments.parse_only:
        return 0
    if arguments.list:
        print("\n".join(f"{p.name}: {shlex.join(p.command)}" for p in phases))
        return 0
    try:
        return run_phases(phases)
    except stop.Stopped:
        print(f"interrupted by {stop.name()}")
        raise


def run_phases(phases: list[Phase]) -> int:
    total, failed_phases, reasons, start = Count(), [], [], time.monotonic()
    for number, phase in enumerate(phases, 1):
        if phase.needs in failed_phases:
            print(f"[{number}/{len(phases)}] {phase.name}: skipped, because '{phase.needs}' failed", flush=True)
            failed_phases.append(phase.name)
            continue
        print(f"[{number}/{len(phases)}] {phase.name} ...", flush=True)
        phase_start = time.monotonic()
        count, reason = run_phase(phase)
        total.passed += count.passed
        total.failed += count.failed
        if reason:
            failed_phases.append(phase.name)
            reasons.append(f"{phase.name}:\n{reason}")
            print(reason)
        verdict = "FAILED" if reason else "ok"
        print(f"[{number}/{len(phases)}] {phase.name}: {verdict}, {count.passed} passed, {count.failed} failed, "
              f"{clock(time.monotonic() - phase_start)} ({clock(time.monotonic() - start)} in all)", flush=True)
    if len(phases) > 1 and reasons:
        print("\n".join(["what failed, once more:", *reasons]))
    if failed_phases:
        print("failed: " + ", ".join(failed_phases))
    print(f"{total.passed} passed, {total.failed} failed")
    return 1 if total.failed else 0


if __name__ == "__main__":
    stop.run(main)
