#!/usr/bin/env python3
"""--masters on a real ./rundb-all: what masters leave, what the record says, processes that are killed, bad input.

As cli_check.py, whose statuses these are. Run by test.sh; prints a line per failure and 'N passed, M failed'.
"""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import cli_check
from cli_check import BINARY, TIMEOUT_SECONDS, Failed, expect, run_checks, rundb

TWO = ["--masters=2", "-t1"]
YCSB = [*TWO, "--workload=YCSB", "--synth_table_size=2000"]
# Forked in this order, with ascending process ids.
PROCESSES = ("log store 0", "log store 1", "log store 2", "lock process", "page store 0", "page store 1", "master 0",
             "master 1")
ENDS_THE_RUN = "lock process"
# Which together end a run.
TOO_MANY = (("log store 0", "log store 2"), ("page store 0", "page store 1"), ("master 0", "master 1"))

USAGE = (
    ("TooManyMasters", ["--masters=17"], ["MASTERS", "17"]),
    ("NotANumberOfMasters", ["--masters=two"], ["--masters=two"]),
    ("ALogScheme", [*YCSB, "--log=LOG_SERIAL"], ["--log is for one node", "leave it out"]),
    ("AConcurrencyControl", [*YCSB, "--cc=SILO"], ["--cc is for one node"]),
    ("SeveralLogs", [*YCSB, "-Ln4"], ["--num_logger is for one node"]),
    ("AContinuation", [*YCSB, "--continue"], ["--continue is for one node"]),
    ("ASeries", [*YCSB, "--series=x.csv"], ["--series is for one node"]),
    ("SeveralDirectories", [*YCSB, "--log_dir=a,b"], ["one log directory"]),
    ("SharingOnOneNode", ["--sharing=10"], ["--sharing belongs to several masters", "--masters=N"]),
    ("CountingOnOneNode", ["--count_row_lock_managers=1"], ["--count_row_lock_managers belongs to several masters"]),
    ("SharingOfAnotherWorkload", [*YCSB, "--sharing=10"], ["--sharing belongs to --workload=SYSBENCH"]),
    ("SysbenchOnOneNode", ["--workload=SYSBENCH"], ["SYSBENCH", "--masters=N"]),
    ("TooFewRows", [*TWO, "--workload=SYSBENCH", "--sysbench_rows=99"], ["SYSBENCH_ROWS", "99"]),
    ("SharingBeyondAll", [*TWO, "--workload=SYSBENCH", "--sharing=101"], ["SHARING", "101"]),
    ("TooSmallABuffer", [*YCSB, "--buffer_pages=63"], ["BUFFER_PAGES", "63"]),
    ("TooManyPageStores", [*YCSB, "--page_stores=5"], ["PAGE_STORES", "5"]),
    ("PageStoresOnOneNode", ["--page_stores=1"], ["--page_stores belongs to several masters", "--masters=N"]),
    ("ReadCommittedOnOneNode", ["--isolation_level=READ_COMMITTED"], ["READ_COMMITTED belongs to several masters"]),
    ("SnapshotsOfMasters", [*YCSB, "--isolation_level=SNAPSHOT"], ["SERIALIZABLE and READ_COMMITTED", "SNAPSHOT"]),
    ("StrictReadsOnOneNode", ["--strict_reads=1"], ["--strict_reads belongs to several masters"]),
    ("StrictReadsThatLock", [*YCSB, "--strict_reads=1"], ["--isolation_level=READ_COMMITTED"]),
    ("NoSuchMix", [*TWO, "--workload=SYSBENCH", "--sysbench_mix=READ_ONLY"], ["SYSBENCH_MIX", "READ_WRITE"]),
)


def children_of(process: subprocess.Popen) -> list[int]:
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
        return sorted(int(word) for word in file.read().split())


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Checks(cli_check.Checks):
    def usage(self):
        for name, arguments, words in USAGE:
            yield name, lambda a=arguments, w=words: self._refused(a, w)

    def runs(self):
        yield "YcsbIsConsistent", lambda: self._consistent(*YCSB, "--max_txns_per_thread=200")
        yield "TheFullMixOfTpccIsConsistent", lambda: self._consistent(
            *TWO, "--workload=TPCC", "--num_wh=2", "--tpcc_full_mix=1", "--tpcc_small=1", "--max_txns_per_thread=60")
        yield "SysbenchIsConsistent", lambda: self._consistent(
            *TWO, "--workload=SYSBENCH", "--sysbench_rows=500", "--sharing=30", "--max_txns_per_thread=60")
        for workload in (["--workload=TEST"], ["--workload=TPCC", "--num_wh=2", "--tpcc_full_mix=1", "--tpcc_small=1"],
                         ["--workload=SYSBENCH", "--sysbench_rows=500", "--sharing=30", "--strict_reads=1"]):
            name = workload[0].partition("=")[2].capitalize()
            yield f"{name}IsConsistentUnderReadCommitted", lambda w=workload: self._consistent(
                *TWO, *w, "--isolation_level=READ_COMMITTED", "--max_txns_per_thread=60")
        yield "ATimedRunCountsWhatIsDurable", self._timed
        yield "MastersThatShareNothingSendNoLocks", self._partitioned
        yield "LocksOfRowsThatAreKeptAreCounted", self._counted
        yield "APageThatWasFullGoesOn", lambda: self._consistent(
            *YCSB, "--synth_table_size=20000", "--buffer_pages=64", "--max_txns_per_thread=200")

        yield "ReadersAloneAreAcknowledged", lambda: self._consistent(
            *YCSB, "--read_perc=1", "--max_txns_per_thread=100")
        yield "ABufferThatIsTooSmallForTheWorkersIsAnError", self._too_small

    def ends(self):
        for name in PROCESSES:
            title = name.title().replace(" ", "")
            if name == ENDS_THE_RUN:
                yield f"A{title}ThatIsKilledEndsTheRun", lambda w=name: self._ends_it(w)
            else:
                yield f"A{title}ThatIsKilledIsOutlived", lambda w=name: self._outlived(w)
        for names in TOO_MANY:
            kind = names[0].title()[:-2].replace(" ", "")
            yield f"{kind}sThatAreKilledEndTheRun", lambda w=names: self._ends_it(*w)
        yield "AParentThatIsKilledLeavesNoProcess", self._orphans
        yield "CtrlCEndsARunWithItsResults", lambda: self._interrupted(signal.SIGINT)
        yield "ASignalToTheGroupDoesToo", lambda: self._interrupted(signal.SIGTERM)

    def _record(self, *flags: str) -> tuple[subprocess.CompletedProcess, dict]:
        record = os.path.join(self.fresh("record"), "record.json")
        done = rundb([*flags, f"--log_dir={self.fresh('cluster')}", f"--json={record}"], self.root_)
        expect(done, 0)
        with open(record, encoding="utf-8") as file:
            return done, json.loads(file.readlines()[-1])

    def _consistent(self, *flags: str) -> None:
        done, record = self._record(*flags, "--verify")
        if record["verified"] != "consistent" or "\nverified: consistent" not in done.stdout:
            raise Failed(f"{flags}: {record['verified']}")
        asked = int(next(f.split("=")[1] for f in flags if f.startswith("--max_txns_per_thread=")))
        for master in record["by_master"]:
            ended = master["executed"] + master["rollbacks"]
            if ended != asked or master["acknowledged"] != master["executed"]:
                raise Failed(f"{flags}: of {asked} transactions {ended} ended, {master['acknowledged']} acknowledged")

    def _timed(self) -> None:
        done, record = self._record(*YCSB, "--seconds=1", "--warmup_seconds=0.5", "--verify")
        for master in record["by_master"]:
            if not 0.9 < master["seconds"] < 5 or not 0 < master["acknowledged"] <= master["executed"]:
                raise Failed(f"a second: {master}")
        cores = record["environment"]["cores"]
        if (record["threads"] > cores) != record["oversubscribed"]:
            raise Failed(f"{record['threads']} threads on {cores} cores: oversubscribed {record['oversubscribed']}")
        if record["oversubscribed"] and "\nOVERSUBSCRIBED: " not in done.stdout:
            raise Failed(f"no label: {done.stdout}")

    def _too_small(self) -> None:
        done = rundb(["--masters=1", "-t200", "--workload=YCSB", "--synth_table_size=100000", "--zipf_theta=0",
                      "--buffer_pages=64", "--seconds=2", f"--log_dir={self.fresh('cluster')}"], self.root_)
        if done.returncode != 0:  # all frames may be pinned at once, or not
            expect(done, 5, ["master 0: the buffer pool is full", "all other processes"])

    def _partitioned(self) -> None:
        _, record = self._record(*TWO, "--workload=SYSBENCH", "--sysbench_rows=300", "--sharing=0",
                                 "--max_txns_per_thread=2000")
        log = record["metrics"]["log"]
        parts = sum(log[f"{part}_bytes_per_txn"] for part in ("changed", "other", "time"))
        if abs(parts - record["metrics"]["record_bytes_per_txn"]) > 1e-6 * parts:
            raise Failed(f"the parts of the log's records are not their sum: {record['metrics']}")
        sent = record["metrics"]["page_lock_messages_per_txn"]
        if sent > 1:  # a page's first lock, and those of pages that are split off
            raise Failed(f"masters that share no table sent {sent} messages a transaction")

    def _counted(self) -> None:
        flags = [*TWO, "--workload=SYSBENCH", "--sysbench_rows=300", "--max_txns_per_thread=400",
                 "--count_row_lock_managers=1"]
        kept = {}
        for sharing in (0, 100):
            done, record = self._record(*flags, f"--sharing={sharing}")
            metrics = record["metrics"]
            first = metrics["row_locks_first_messages_per_txn"]
            kept[sharing] = metrics["row_locks_kept_messages_per_txn"] - first
            if first <= 0 or " if masters kept their locks, " not in done.stdout:
                raise Failed(f"rows that are locked for the first time: {first} messages; {done.stdout}")
            if metrics["row_locks_kept_messages_per_txn"] > metrics["glm_release_messages_per_txn"]:
                raise Failed(f"locks that are kept cost more than locks that are released: {metrics}")
        # An exclusive lock after a shared one of the same master, once a row; or rows that move to and fro.
        if not 0 <= kept[0] < 2 < kept[100]:
            raise Failed(f"messages for rows that were locked before, by sharing: {kept}")
        _, record = self._record(*flags[:-1])
        if record["metrics"]["row_locks_kept_messages_per_txn"] is not None:
            raise Failed("counted, though not asked for")

    def _started(self, *flags: str, seconds: int = 60) -> subprocess.Popen:
        process = subprocess.Popen([BINARY, *YCSB, f"--seconds={seconds}", f"--log_dir={self.fresh('cluster')}", *flags],
                                   text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        deadline = time.monotonic() + TIMEOUT_SECONDS / 2
        while len(children_of(process)) < len(PROCESSES) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        return process

    def _ended(self, process: subprocess.Popen) -> subprocess.CompletedProcess:
        try:
            out, err = process.communicate(timeout=TIMEOUT_SECONDS)
        finally:
            process.kill()
            process.wait()
        return subprocess.CompletedProcess([], process.returncode, out, err)

    def _outlived(self, name: str) -> None:
        record = os.path.join(self.fresh("record"), "record.json")
        process = self._started("--verify", f"--json={record}", seconds=2)
        children = children_of(process)
        os.kill(children[PROCESSES.index(name)], signal.SIGKILL)
        done = self._ended(process)
        expect(done, 0)
        with open(record, encoding="utf-8") as file:
            made = json.load(file)
        told = f"(run) {name} was ended by signal 9"
        if [death["process"] for death in made["deaths"]] != [name] or made["verified"] != "consistent":
            raise Failed(f"{name} was killed: {made['deaths']}, {made['verified']}")
        if told not in done.stdout or done.stderr.count(told) != 1:
            raise Failed(f"{name} was killed, and is not told of: {done.stdout}{done.stderr}")
        dead = [f"master {i}" for i, master in enumerate(made["by_master"]) if master["died"]]
        if dead != [name] * name.startswith("master"):
            raise Failed(f"{name} was killed, and {dead} are not counted")
        if dead and made["deaths"][0].get("freed_seconds", 60) > 10:
            raise Failed(f"{name} was killed, and its pages were not free in time: {made['deaths']}")
        self._all_gone(children)

    def _ends_it(self, *names: str) -> None:
        process = self._started()
        children = children_of(process)
        for name in names:
            os.kill(children[PROCESSES.index(name)], signal.SIGKILL)
            time.sleep(0.2)  # which is the last is known
        done = self._ended(process)
        expect(done, 4, [f"{names[-1]} was ended by signal 9", "all other processes of the cluster were ended"])
        self._all_gone(children)

    def _all_gone(self, children: list[int]) -> None:
        deadline = time.monotonic() + 10
        while any(map(is_alive, children)) and time.monotonic() < deadline:
            time.sleep(0.05)
        left = [pid for pid in children if is_alive(pid)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        if left:
            raise Failed(f"{len(left)} processes were left over")

    def _orphans(self) -> None:
        process = self._started()
        children = children_of(process)
        process.kill()
        self._ended(process)
        self._all_gone(children)

    def _interrupted(self, number: int) -> None:
        process = self._started("--verify")
        children = children_of(process)
        for pid in [process.pid, *children]:
            os.kill(pid, number)
        done = self._ended(process)
        expect(done, 0)
        if "(interrupted)" not in done.stdout or "\nverified: consistent" not in done.stdout:
            raise Failed(f"after Ctrl-C: {done.stdout}")
        self._all_gone(children)

    def all(self):
        yield from self.usage()
        yield from self.runs()
        yield from self.ends()


if __name__ == "__main__":
    sys.exit(run_checks(Checks, "masters-", {BINARY: "rundb-all"}))
