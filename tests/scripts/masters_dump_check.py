#!/usr/bin/env python3
"""What a cluster of masters leaves behind: ./rundb-all --masters=N -Lr1 and ./log_dump on the logs of clusters whose
processes were all killed at a random moment, and on damaged ones.

Statuses as in cli_check.py. Run by test.sh; prints a line per failure and 'N passed, M failed'.
"""
from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

import cli_check
from cli_check import BINARY, TIMEOUT_SECONDS, Failed, expect, run_checks, rundb
from damages import crc32c, cut, flip, write
from dump_check import LOG_DUMP, dump, shows

YCSB = ["--workload=YCSB", "--synth_table_size=2000"]
WORKLOADS = {
    "Test": ["--workload=TEST"],
    "Ycsb": YCSB,
    "Sysbench": ["--workload=SYSBENCH", "--sysbench_rows=500", "--sharing=30"],
    "Tpcc": ["--workload=TPCC", "--num_wh=2", "--tpcc_full_mix=1", "--tpcc_small=1"],
}
KILLS = {"Test": 2, "Ycsb": 3, "Sysbench": 2, "Tpcc": 3}
CHILDREN = 3 + 1 + 2 + 2  # Log Stores, lock process, Page Stores, masters
MASTERS = ["--masters=2", "-t2"]


def children_of(process: subprocess.Popen) -> list[int]:
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def await_gone(group: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise Failed("a killed process does not end")


class Checks(cli_check.Checks):
    def __init__(self, root: str):
        super().__init__(root)
        seed = int(os.environ.get("DBX_SEED", time.time_ns() % 1_000_000))
        self.random_ = random.Random(seed)
        self.seed_ = seed
        self.dead_ = ""
        self.acks_ = None

    # ---- Clusters ----

    def _acknowledges(self) -> bool:
        """Whether clusters write ack files."""
        if self.acks_ is None:
            done = rundb([*MASTERS, *YCSB, "--max_txns_per_thread=1", f"--ack_file={self.fresh('acks')}/acks",
                          f"--log_dir={self.fresh('probe')}"], self.root_)
            self.acks_ = done.returncode == 0
        return self.acks_

    def _started(self, directory: str, *flags: str) -> subprocess.Popen:
        process = subprocess.Popen([BINARY, *MASTERS, *flags, "--seconds=60", f"--log_dir={directory}"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while len(children_of(process)) < CHILDREN:
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed("the cluster did not start")
            time.sleep(0.01)
        return process

    def _kill(self, process: subprocess.Popen) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        await_gone(process.pid)

    def _recover(self, directory: str, *flags: str, status: int = 0, words=()) -> subprocess.CompletedProcess:
        done = rundb([*MASTERS, "-Lr1", "--verify", f"--log_dir={directory}", *flags], self.root_)
        expect(done, status, words)
        return done

    def kills(self):
        for name, count in KILLS.items():
            for number in range(count):
                yield f"{name}IsRecoveredAfterKill{number}", lambda w=name: self._killed(w)

    def _killed(self, workload: str) -> None:
        directory = self.fresh(workload)
        flags = [f"--ack_file={directory}/acks"] if self._acknowledges() else []
        process = self._started(directory, *WORKLOADS[workload], *flags)
        moment = self.random_.choice([0.02, 0.3, 1.5]) * self.random_.uniform(0.5, 1.5)
        time.sleep(moment)
        self._kill(process)
        record = os.path.join(directory, "record.json")
        try:
            done = self._recover(directory, *flags, f"--json={record}")
        except Failed as reason:
            raise Failed(f"seed {self.seed_}, killed after {moment:.2f} s: {reason}") from reason
        shows(done, r"^recovered .*cluster-0001: \d+ transactions of 2 masters, \d+ aborted; \d+ losers",
              r"^  log of master 1: durable up to LSN \d+", r"^verified: a,c,d$" if flags else r"^verified: a,d$")
        with open(record, encoding="utf-8") as file:
            metrics = json.loads(file.read())["metrics"]
        if moment > 1.4 and metrics["committed"] == 0:
            raise Failed(f"nothing was recovered of {moment:.2f} s: {metrics}")

    def dead(self) -> str:
        """The cluster of a run that was killed, in a copy of its directory."""
        if not self.dead_:
            self.dead_ = self.fresh("dead")
            process = self._started(self.dead_, *YCSB)
            time.sleep(1.5)
            self._kill(process)
        directory = self.fresh("copy")
        shutil.copytree(self.dead_, directory, dirs_exist_ok=True)
        return os.path.join(directory, "cluster-0001")

    # ---- log_dump ----

    def dumps(self):
        yield "AClusterIsPrinted", self._whole
        yield "AsManyRecordsAsAsked", self._some_records
        yield "AStoreAndAFileArePrinted", self._frames
        yield "ACleanEndIsPrinted", self._clean
        yield "OtherFlagsAreRefused", self._other_flags
        yield "WhatIsNoClusterIsRefused", self._no_cluster
        yield "ARunningClusterIsNotRead", self._running

    def _whole(self) -> None:
        done = dump(self.dead())
        expect(done, 0)
        shows(done, r"^  cluster [0-9a-f]{16}, 2 masters of 2 workers, version \d+$", r"^  SYNTH_TABLE_SIZE=2000$",
              r"log of master 1$", r"^  log-store-2: up to LSN \d+, written by epoch 1",
              r"^  lsn 0 pages \(\d+ bytes\) \d+ changes from time \d+$",
              r"^      page \d+ time \d+ previous \(loaded\): put row \d+ by \d:1:\d+",
              r"^      page \d+ time \d+ previous \(\d, \d+\): put row",
              r"end \(\d+ bytes\) time \d+ committed \d:1:\d+ txn \d:\d+$",
              r"lfb \(\d+ bytes\) time \d+ predecessor 0 stamp \[\d+ \d+\]$", r"pad \(\d+ bytes\) durable \d+$",
              r"^  durable up to LSN \d+: the last LFB that two of three stores have",
              r"^  \d+ flushes, \d+ pages with \d+ changes, \d+ ends$")

    def _some_records(self) -> None:
        cluster = self.dead()
        for flags, count in ((["--records=3"], 6), (["--verify"], 0), (["--verify", "--records", "1"], 2)):
            done = dump(*flags, cluster)
            expect(done, 0)
            found = len(re.findall(r"^  lsn ", done.stdout, re.M))
            if found != count:
                raise Failed(f"{flags}: {found} records instead of {count}")

    def _frames(self) -> None:
        cluster = self.dead()
        for path in (f"{cluster}/log-store-1", f"{cluster}/log-store-1/log-0-0"):
            done = dump(path)
            expect(done, 0)
            shows(done, r"^  frame 0@0 begin, version \d+, 0 frames were synced$",
                  r"^  frame 1@4096 open, epoch 1 writes from LSN 0, 1 frames were synced$",
                  r"^  frame \d+@\d+ data LSN \d+ to \d+ in \d+ bytes, epoch 1, \d+ frames were synced$",
                  r"^  frames 0 to \d+, up to offset \d+; \d+ are known to have been synced$")
        shows(dump(f"{cluster}/log-store-1"), r"^  set 1 of Log Stores: 0, 1, 2$")

    def _clean(self) -> None:
        directory = self.fresh("clean")
        expect(rundb([*MASTERS, *YCSB, "--max_txns_per_thread=50", f"--log_dir={directory}"], self.root_), 0)
        shows(self._recover(directory), r": \d+ transactions of 2 masters, \d+ aborted; 0 losers, 0 of")
        expect(dump("--verify", f"{directory}/cluster-0001"), 0)

    def _other_flags(self) -> None:
        for flag in ("--backward", "--parallelism"):
            expect(dump(flag, self.dead()), 2, ["of a cluster, which takes neither"])

    def _no_cluster(self) -> None:
        expect(dump(self.fresh("empty")), 2, ["is a directory"])
        expect(dump(os.path.join(self.fresh("empty"), "cluster-0001")), 4, ["cluster-0001"])
        cluster = self.dead()
        os.remove(f"{cluster}/cluster")
        expect(dump(cluster), 4, ["/cluster", "no such file"])
        cluster = self.dead()
        flip(f"{cluster}/cluster", 100)
        expect(dump(cluster), 3, ["/cluster@12", "bad checksum"])
        cluster = self.dead()
        self._set_version(f"{cluster}/log-store-0/log-0-0")
        expect(dump(f"{cluster}/log-store-0/log-0-0"), 6, ["version 77 is not known"])
        expect(dump("--verify", cluster), 6, ["version 77 is not known"])

    def _set_version(self, path: str) -> None:
        with open(path, "rb") as file:
            header = bytearray(file.read(56))
        struct.pack_into("<I", header, 44, 77)
        struct.pack_into("<I", header, 0, crc32c(bytes(header[4:])))
        write(path, 0, bytes(header))

    def _running(self) -> None:
        directory = self.fresh("running")
        process = self._started(directory, *YCSB)
        try:
            expect(dump(f"{directory}/cluster-0001"), 4, ["in use"])
            self._recover(directory, status=4, words=["its processes are running"])
        finally:
            self._kill(process)

    # ---- Recoveries that are refused, and damage ----

    def _acknowledged(self) -> None:
        """Check c, by an ack file of what the dump says had committed; and of one transaction more."""
        cluster = self.dead()
        done = dump(cluster)
        committed = [(int(w), int(n)) for w, n in re.findall(r"^  lsn \d+ end .* committed .* txn (\d+):(\d+)$",
                                                             done.stdout, re.M)]
        number = int(re.search(r"^  cluster ([0-9a-f]{16}),", done.stdout, re.M)[1], 16)
        acks = os.path.join(self.fresh("acks"), "acks")
        self._write_acks(acks, number, committed)
        shows(self._recover(os.path.dirname(cluster), f"--ack_file={acks}"), r"^verified: a,c,d$")
        self._write_acks(acks, number, [*committed, (3, 30_000)])
        self._recover(os.path.dirname(cluster), f"--ack_file={acks}", status=7,
                      words=["c failed", "transaction 30000 of worker 3 is lost"])
        self._write_acks(acks, number + 1, committed)
        self._recover(os.path.dirname(cluster), f"--ack_file={acks}", status=6, words=["of another run"])

    def _write_acks(self, path: str, run: int, acknowledged: list[tuple[int, int]]) -> None:
        """As system/transaction/ack_file.h has it, of four workers without notes."""
        workers, bits = 4, 32768
        regions = bytearray(workers * 2 * bits // 8)
        for worker, number in acknowledged:
            regions[worker * bits // 8 + number // 8] |= 1 << number % 8
        identity = struct.pack("<5Q", run, workers, bits, 0, 0)
        header = b"DBXACK\r\n" + struct.pack("<II", 3, crc32c(identity)) + identity + struct.pack("<Q", 0)
        with open(path, "wb") as file:
            file.write(header.ljust(4096, b"\0") + regions)

    def damaged(self):
        yield "AcknowledgedTransactionsAreThere", self._acknowledged
        yield "BadInputOfARecovery", self._bad_recoveries
        yield "OneDamagedStoreCostsNothing", self._one_store
        yield "TwoDamagedStoresAreRefused", self._two_stores
        yield "ATornTailOfTwoStoresIsCutOff", self._torn

    def _bad_recoveries(self) -> None:
        parent = os.path.dirname(self.dead())
        self._recover(self.fresh("empty"), status=4, words=["has no cluster-NNNN"])
        self._recover(parent, "--run=7", status=6, words=["has no cluster-0007", "the newest is cluster-"])
        self._recover(parent, "--workload=TPCC", status=6, words=["WORKLOAD", "YCSB"])
        self._recover(parent, "--masters=3", status=6, words=["MASTERS", "written with 2"])
        self._recover(parent, "--continue", status=2, words=["leave one out"])

    def _one_store(self) -> None:
        lost, flipped, short = self.dead(), self.dead(), self.dead()
        shutil.rmtree(f"{lost}/log-store-2")
        flip(f"{flipped}/log-store-0/log-1-0", os.path.getsize(f"{flipped}/log-store-0/log-1-0") // 2)
        cut(f"{short}/log-store-1/log-0-0", os.path.getsize(f"{short}/log-store-1/log-0-0") // 8192 * 4096)
        for cluster, notice in ((lost, "log-store-2 is not there"), (flipped, "log-1-0@"), (short, "")):
            done = self._recover(os.path.dirname(cluster))
            shows(done, r"^verified: a,d$")
            if notice not in done.stderr:
                raise Failed(f"no notice of {notice}: {done.stderr}")
        expect(dump("--verify", flipped), 3, ["log-1-0@", "had been synced"])
        expect(dump(f"{flipped}/log-store-0"), 3, ["log-1-0@", "had been synced"])

    def _two_stores(self) -> None:
        flipped, short = self.dead(), self.dead()
        for store in (0, 1):
            flip(f"{flipped}/log-store-{store}/log-1-0", os.path.getsize(f"{flipped}/log-store-0/log-1-0") // 2)
            path = f"{short}/log-store-{store}/log-0-0"
            cut(path, os.path.getsize(path) // 8192 * 4096)
        self._recover(os.path.dirname(flipped), status=3, words=["log of master 1 is lost", "had been synced"])
        self._recover(os.path.dirname(short), status=3, words=["log of master 0 is damaged", "it was durable up to"])
        expect(dump("--verify", flipped), 3, ["log of master 1 is lost"])
        expect(dump("--verify", short), 3, ["log of master 0 is damaged"])

    def _torn(self) -> None:
        cluster = self.dead()
        for store in (0, 1):
            with open(f"{cluster}/log-store-{store}/log-0-0", "ab") as file:
                file.write(os.urandom(6000))
        shows(self._recover(os.path.dirname(cluster)), r"^verified: a,d$")
        shows(dump(f"{cluster}/log-store-0/log-0-0"), r"bytes follow that are no frame: a torn tail$")

    def all(self):
        yield from self.kills()
        yield from self.dumps()
        yield from self.damaged()


if __name__ == "__main__":
    sys.exit(run_checks(Checks, "masters-dump-", {BINARY: "rundb-all", LOG_DUMP: "log_dump"}))
