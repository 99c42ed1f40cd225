#!/usr/bin/env python3
"""--pin and --numa on a real ./rundb-all: where its threads may run while they do, what the record says, bad input.

As cli_check.py, whose statuses these are. Run by test.sh; prints a line per failure and 'N passed, M failed'.
"""
from __future__ import annotations

import collections
import glob
import json
import os
import re
import subprocess
import sys
import time

import cli_check
from cli_check import BINARY, TIMEOUT_SECONDS, Failed, expect, run_checks, rundb

ALLOWED = sorted(os.sched_getaffinity(0))
MORE = len(ALLOWED) + 1  # workers than CPUs
ONE = ["--cc=NO_WAIT", "--log=LOG_SERIAL", "--log_type=LOG_COMMAND", "--workload=YCSB", "--synth_table_size=500", "-t1"]
SHORT = [*ONE, "--max_txns_per_thread=400"]
FIRST = ALLOWED[0]

# Flags that are refused before anything happens: exit status 2, and the words the line must hold.
USAGE = (
    ("NoPolicy", [*SHORT, "--pin=near"], ["--pin=near", "none, compact, scatter", "0,2,4-7"]),
    ("NoList", [*SHORT, "--pin=0,"], ["--pin=0,", "a list of CPUs"]),
    ("ReversedRange", [*SHORT, "--pin=1-0"], ["--pin=1-0"]),
    ("NoValue", [*SHORT, "--pin="], ["pin"]),
    ("NoSuchCpu", [*SHORT, "--pin=8191"], ["this host has no CPU 8191"]),
    ("BeyondAnyHost", [*SHORT, "--pin=8192"], ["--pin=8192"]),
    ("TheSameCpuTwice", [*SHORT, f"--pin={FIRST},{FIRST}"], [f"CPU {FIRST} is in the list twice"]),
    ("ListTooShort", [*SHORT, "-t2", f"--pin={FIRST}"], ["1 CPU for 2 workers", "-t"]),
    ("MoreWorkersThanCpus", [*SHORT, f"-t{MORE}", "--pin=compact"], [f"for {MORE} workers", "leave --pin out"]),
    ("MoreWorkersThanCpusInTurn", [*SHORT, f"-t{MORE}", "--pin=scatter"], [f"for {MORE} workers"]),
    ("MoreReplayersThanCpus", ["-Lr1", f"-t{MORE}", "--pin=compact"], [f"for {MORE} workers"]),
    ("NoMemoryPolicy", [*SHORT, "--numa=bind"], ["unknown NUMA 'bind'", "first_touch, interleave, local"]),
    ("AReplicaRunsNothing", ["--replica=0", "--pin=compact"], ["--replica", "--pin"]),
)


def lists_of(process: subprocess.Popen) -> collections.Counter:
    """How many threads of the process may run where."""
    found = collections.Counter()
    for path in glob.glob(f"/proc/{process.pid}/task/*/status"):
        try:
            with open(path, encoding="ascii") as file:
                told = re.search(r"^Cpus_allowed_list:\s*(\S+)$", file.read(), re.M)
        except OSError:  # it has ended
            continue
        if told:
            found[told[1]] += 1
    return found


def confined(cpus: list[int], arguments: list[str]) -> subprocess.CompletedProcess:
    """A run of a process that may use these CPUs alone."""
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=TIMEOUT_SECONDS, preexec_fn=lambda: os.sched_setaffinity(0, cpus))


class Checks(cli_check.Checks):
    def usage(self):
        for name, arguments, words in USAGE:
            yield name, lambda a=arguments, w=words: self._refused(a, w)

    def threads(self):
        yield "ThreadsRunWhereTheRecordSays", self._threads
        yield "WithoutPinEveryThreadHasAllCpus", self._unpinned
        yield "ARecoveryAndARunBehindItArePinned", self._recovery
        yield "TheAffinityMaskIsRespected", self._mask
        yield "TablesAreInterleavedOrTheRecordSaysWhyNot", self._numa

    def _placement(self, record: str) -> dict:
        with open(record, encoding="utf-8") as file:
            return json.loads(file.readlines()[-1])["metrics"]["placement"]

    def _watched(self, *flags: str) -> tuple[dict, collections.Counter]:
        """The record of a run that is ended by a signal once its threads are where they belong, and where they were."""
        directory, record = self.fresh("watched"), os.path.join(self.fresh("record"), "record.json")
        process = subprocess.Popen([BINARY, *ONE, "--seconds=60", "--read_perc=1", f"--log_dir={directory}",
                                    f"--json={record}", *flags], text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + TIMEOUT_SECONDS / 2
        try:
            while not os.path.exists(f"{directory}/run-0001/log-00.log") and process.poll() is None:
                time.sleep(0.01)
            seen = before = collections.Counter()
            # The same twice, with three threads at least: main's, the worker's and the log writer's.
            while time.monotonic() < deadline and (seen.total() < 3 or seen != before):
                before = seen
                time.sleep(0.5)
                seen = lists_of(process)
            process.send_signal(2)
            out, err = process.communicate(timeout=TIMEOUT_SECONDS)
        finally:
            process.kill()
            process.wait()
        expect(subprocess.CompletedProcess([], process.returncode, out, err), 0)
        return self._placement(record), seen

    def _threads(self) -> None:
        for flag in ("--pin=compact", f"--pin={','.join(map(str, reversed(ALLOWED)))}"):
            placement, seen = self._watched(flag)
            pinned = [place["cpu"] for place in placement["workers"] + placement["writers"]]
            expected = collections.Counter(str(cpu) for cpu in pinned if cpu is not None)
            if len(placement["workers"]) != 1 or len(placement["writers"]) != 1:
                raise Failed(f"{flag}: a worker and a writer are not {placement}")
            if len(ALLOWED) > 1 and (set(seen) - set(expected) == set() or any(seen[c] != n for c, n in expected.items())):
                raise Failed(f"{flag}: threads may run on {dict(seen)}, and the record says {pinned}")
            if len(ALLOWED) > 1 and None in pinned:
                raise Failed(f"{flag}: CPUs were left over, and {pinned} does not use them")

    def _unpinned(self) -> None:
        placement, seen = self._watched()
        if placement is not None or len(seen) != 1:
            raise Failed(f"threads may run on {dict(seen)}, and the record says {placement}")

    def _recovery(self) -> None:
        directory, record = self.fresh("recovered"), os.path.join(self.fresh("record"), "record.json")
        flags = ["--pin=compact", f"--log_dir={directory}", f"--json={record}", "--verify"]
        expect(rundb([*SHORT, *flags], self.root_), 0)
        for more, writers in ((["-Lr1"], 0), (["--continue", "--max_txns_per_thread=50"], 1)):
            done = rundb([*more, "-t1", *flags], self.root_)
            expect(done, 0)
            placement = self._placement(record)
            if len(placement["workers"]) != 1 or len(placement["writers"]) != writers:
                raise Failed(f"{more}: {placement}")
            if f"\nplacement: workers on CPU {placement['workers'][0]['cpu']} (" not in done.stdout:
                raise Failed(f"{more}: no line of the placement in {done.stdout}")

    def _mask(self) -> None:
        last = ALLOWED[-1]
        directory, record = self.fresh("mask"), os.path.join(self.fresh("record"), "record.json")
        flags = [*SHORT, f"--log_dir={directory}", f"--json={record}"]
        expect(confined([last], [*flags, "--pin=compact"]), 0)
        placement = self._placement(record)
        if placement["workers"][0]["cpu"] != last or placement["writers"][0]["cpu"] is not None:
            raise Failed(f"of CPU {last} alone: {placement}")
        if len(ALLOWED) > 1:
            expect(confined([last], [*flags, f"--pin={FIRST}"]), 2, [f"may not use CPU {FIRST}"])

    def _numa(self) -> None:
        record = os.path.join(self.fresh("record"), "record.json")
        for policy in ("interleave", "local", "first_touch"):
            done = rundb([*SHORT, "--log=LOG_NO", f"--numa={policy}", f"--json={record}"], self.root_)
            expect(done, 0)
            placement = self._placement(record)
            if policy == "first_touch":
                if placement is not None:
                    raise Failed(f"the default is recorded as {placement}")
                continue
            memory = placement["memory"]
            applied = memory["applied"] == policy and not memory["refusal"]
            refused = memory["applied"] == "first_touch" and f"warning: --numa={policy} is not applied" in done.stderr
            if not applied and not (refused and memory["refusal"]):
                raise Failed(f"{policy}: {memory}, and said was: {done.stderr}")

    def all(self):
        yield from self.usage()
        yield from self.threads()


if __name__ == "__main__":
    sys.exit(run_checks(Checks, "pin-", {BINARY: "rundb-all"}))
