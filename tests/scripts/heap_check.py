#!/usr/bin/env python3
"""Bad input for runs with a persistent heap, on a real ./rundb-all: one clear line, the right exit status, no change.

As cli_check.py, whose statuses these are. Run by test.sh; prints a line per failure and 'N passed, M failed'.
"""
from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Callable

import cli_check
from cli_check import BINARY, SMALL, WBL, Failed, expect, run_checks, rundb, snapshot
from damages import (BLOCK_BYTES, SLOT_BYTES_OFFSET, SLOT_FLAGS_OFFSET, SLOT_TABLE_OFFSET, STATE_LOADING, change_sealed,
                     change_slot, cut, empty_gaps, flip, flip_tuple, gap_records, gaps_of, give_extent, heap_of,
                     promise_more, repeat_slot, set_state, set_version, tear_newest_record)

NO_WAIT_WBL = ["--cc=NO_WAIT", *WBL[1:]]


@dataclass
class Damage:
    """What is done to a copy of a run, and what must be said to it."""

    name: str
    act: Callable[[str], None]
    status: int
    words: tuple = ()
    only_verified: bool = False  # without --verify it is not found


def size_of(path: str) -> int:
    return os.path.getsize(path)


DAMAGES = (
    Damage("NothingIsWrong", lambda d: None, 0),
    Damage("FirstSuperblockDamaged", lambda d: flip(heap_of(d), 100), 0),
    Damage("SecondSuperblockDamaged", lambda d: flip(heap_of(d), BLOCK_BYTES + 100), 0),
    Damage("BothSuperblocksDamaged", lambda d: flip(heap_of(d), 100, BLOCK_BYTES + 100), 3,
           ("heap.pm@0: both superblocks are damaged",)),
    Damage("OtherVersion", lambda d: set_version(heap_of(d), 99), 6, ("heap.pm@0", "version")),
    Damage("StillLoading", lambda d: set_state(d, STATE_LOADING), 6, ("heap.pm@0", "its load was never complete")),
    Damage("StateNotKnown", lambda d: set_state(d, 9), 3, ("heap.pm@0",)),
    Damage("TablesOfAnotherShape", lambda d: change_sealed(heap_of(d), lambda b: struct.pack_into("<I", b, 80, 8)), 6,
           ("heap.pm@0", "another shape")),
    Damage("MoreTablesThanAnyHeapHas", lambda d: change_sealed(heap_of(d), lambda b: struct.pack_into("<I", b, 68, 999)),
           3, ("heap.pm@0",)),
    Damage("ExtentsOfNoLength", lambda d: change_sealed(heap_of(d), lambda b: struct.pack_into("<Q", b, 48, 0)), 3,
           ("heap.pm@0",)),
    Damage("ExtentsTooSmall", lambda d: change_sealed(heap_of(d), lambda b: struct.pack_into("<Q", b, 48, 2048)), 3,
           ("heap.pm@0",)),
    Damage("ExtentsLargerThanTheHeap",
           lambda d: change_sealed(heap_of(d), lambda b: struct.pack_into("<Q", b, 48, 1 << 40)), 3, ("heap.pm@0",)),
    Damage("ExtentsOfAnotherSize", lambda d: change_sealed(heap_of(d), lambda b: struct.pack_into("<Q", b, 48, 1 << 17)),
           3, ("heap.pm@",)),
    Damage("HeapOfAnotherRun", lambda d: shutil.copy(heap_of(d, 2), heap_of(d)), 6, ("heap.pm@0", "another run")),
    Damage("GapsOfAnotherRun", lambda d: shutil.copy(gaps_of(d, 2), gaps_of(d)), 6, ("gaps.log@0", "another heap")),
    Damage("HeapMissing", lambda d: os.unlink(heap_of(d)), 6, ("heap.pm is missing",)),
    Damage("GapsMissing", lambda d: os.unlink(gaps_of(d)), 6, ("gaps.log is missing",)),
    Damage("HeapEmpty", lambda d: cut(heap_of(d), 0), 3, ("heap.pm@0",)),
    Damage("GapsEmpty", lambda d: cut(gaps_of(d), 0), 3, ("gaps.log@0",)),
    Damage("HeapCutInItsSuperblocks", lambda d: cut(heap_of(d), BLOCK_BYTES + 100), 3, ("heap.pm@0",)),
    Damage("HeapShorter", lambda d: cut(heap_of(d), size_of(heap_of(d)) - BLOCK_BYTES), 3, ("heap.pm@0",)),
    Damage("HeapLonger", lambda d: cut(heap_of(d), size_of(heap_of(d)) + BLOCK_BYTES), 3, ("heap.pm@0",)),
    Damage("GapsShorter", lambda d: cut(gaps_of(d), size_of(gaps_of(d)) - BLOCK_BYTES), 3, ("gaps.log@0",)),
    Damage("GapsLonger", lambda d: cut(gaps_of(d), size_of(gaps_of(d)) + 1), 3, ("gaps.log@0",)),
    Damage("NoRecordIsValid", empty_gaps, 3, ("gaps.log@0", "no record")),
    Damage("NewestRecordTorn", tear_newest_record, 0),
    Damage("AStampNeverPromised", promise_more, 3, ("damaged heap", "heap.pm@", "its stamp was never promised")),
    Damage("AStampTwiceOnAKey", repeat_slot, 3, ("damaged heap", "heap.pm@", "its stamp is twice on its key")),
    Damage("ExtentOfAnUnknownTable", lambda d: give_extent(d, 7, 0), 3, ("damaged heap", "heap.pm@8192: ", "table 7")),
    Damage("ExtentOfAnUnknownPartition", lambda d: give_extent(d, 0, 99), 3,
           ("damaged heap", "heap.pm@8192: ", "partition 99")),
    Damage("SlotOfAnUnknownTable", lambda d: change_slot(d, SLOT_TABLE_OFFSET, b"\7"), 3, ("another table",)),
    Damage("UnknownFlags", lambda d: change_slot(d, SLOT_FLAGS_OFFSET, b"\x80"), 3, ("heap.pm@",)),
    Damage("TupleOfAnotherSize", lambda d: change_slot(d, SLOT_BYTES_OFFSET, struct.pack("<I", 1 << 30)), 3,
           ("another size",)),
    Damage("TupleDamaged", flip_tuple, 3, ("heap.pm@", "its checksum does not match"), only_verified=True),
)

# Flags of new runs that are refused before anything happens.
USAGE = (
    ("TwoDirectories", [*WBL, "--log_dir=one,two"], ["one in --log_dir"]),
    ("WithoutFlushes", [*WBL, "-Lf1"], ["LOG_NO_FLUSH"]),
    ("CommandsInAHeap", ["--cc=HEKATON", "--log=LOG_WBL", "--log_type=LOG_COMMAND", *SMALL], ["LOG_TYPE LOG_DATA"]),
    ("HeapOfSilo", ["--cc=SILO", *WBL[1:]], ["CC_ALG HEKATON"]),
    ("HeapOfTicToc", ["--cc=TICTOC", *WBL[1:]], ["CC_ALG HEKATON"]),
    ("CommandsUnderTwoPhaseLocking", [*NO_WAIT_WBL, "--log_type=LOG_COMMAND"], ["LOG_TYPE LOG_DATA"]),
    ("CheckpointOfANewRun", [*WBL, "--checkpoint"], ["--checkpoint"]),
    ("HeapTooSmallForAnExtent", [*WBL, "--heap_bytes=64K"], ["--heap_bytes"]),
)


class Checks(cli_check.Checks):
    """One method per group; each yields (name, callable)."""

    def base(self, name: str) -> str:
        """Two finished runs with acknowledgements beside, made once."""
        if name not in self.bases_:
            directory = self.fresh(f"base-{name}")
            for seed in (1, 2):
                expect(rundb([*WBL, f"--log_dir={directory}", f"--seed={seed}", "--verify",
                              f"--ack_file={directory}.{seed}.acks"], self.root_), 0)
            self.bases_[name] = directory
        return self.bases_[name]

    def usage(self):
        for name, arguments, words in USAGE:
            yield name, lambda a=arguments, w=words: self._refused_heap(a, w)

    def _refused_heap(self, arguments: list[str], words: list[str]) -> None:
        directory = self.fresh("usage")
        named = any(argument.startswith("--log_dir=") for argument in arguments)
        if named:
            for name in ("one", "two"):
                os.mkdir(os.path.join(directory, name))
        before = snapshot(directory)
        expect(rundb([*arguments, *([] if named else [f"--log_dir={directory}"])], directory), 2, words)
        if snapshot(directory) != before:
            raise Failed(f"it created {os.listdir(directory)}")

    def heap_damages(self):
        for damage in DAMAGES:
            for name, flags in (("Recovered", ["-Lr1", "--verify"]), ("LookedAt", ["-Lr1"]),
                                ("Continued", ["--continue", "--verify"]),
                                ("AdoptedAtOnce", ["--continue", "--adopt_on_demand=0"]),
                                ("Served", ["--continue"])):
                yield f"{damage.name}_{name}", lambda d=damage, f=flags: self._damaged(d, f)

    def _damaged(self, damage: Damage, flags: list[str]) -> None:
        """A run that is refused stays as it was; so does one that is only looked at."""
        directory = self.copy("heap")
        damage.act(directory)
        self._leave_one_run(directory)
        before = snapshot(directory)
        status = 0 if damage.only_verified and "--verify" not in flags else damage.status
        expect(rundb([*flags, f"--log_dir={directory}"], self.root_), status, damage.words if status else ())
        serves = flags == ["--continue"]  # then damage is found where a transaction comes to it
        if (status != 0 and not serves) or "-Lr1" in flags:
            self._unchanged(directory, before)

    @staticmethod
    def _unchanged(directory: str, before: dict[str, str]) -> None:
        after = snapshot(directory)
        changed = [path for path in {*before, *after} if before.get(path) != after.get(path)]
        if changed:
            raise Failed(f"it changed {changed}")

    @staticmethod
    def _leave_one_run(directory: str) -> None:
        shutil.rmtree(os.path.join(directory, "run-0002"))

    def recoveries(self):
        yield "CheckpointsOfAHeapAreRefused", lambda: self._refused_continuation(["--checkpoint"], 2, ["--checkpoint"])
        yield "AHeapWithoutFlushesIsRefused", lambda: self._refused_continuation(["-Lf1"], (2, 6), ["LOG_NO_FLUSH"])
        yield "AnotherNumberOfRowsIsRefused", lambda: self._refused_continuation(["--synth_table_size=501"], 6, [])
        yield "MessagesThatWouldBeNumberedAnewAreRefused", self._continued_messages
        yield "ATornRecordThatAcknowledgedIsFoundByTheAcks", self._torn_with_acks
        yield "AHeapInUseIsLeftAlone", self._heap_in_use
        yield "AHeapThatIsTooSmallForTheLoad", self._too_small_for_load
        for name, run in (("", WBL), ("UnderTwoPhaseLocking", NO_WAIT_WBL)):
            yield f"AHeapThatFillsUpKeepsWhatWasAcknowledged{name}", lambda r=run: self._fills_up(r)
        yield "AHeapOfTwoPhaseLockingGoesOnUnderItAlone", self._lives_under_locks
        yield "SecondaryIndexesAreMappedOrBuiltOrRefused", self._secondary_indexes
        yield "LinesOfIndexesTakeSlotsOfTheHeapForALifeAlone", self._index_lines

    def _refused_continuation(self, flags: list[str], status, words: list[str]) -> None:
        directory = self.copy("heap")
        self._leave_one_run(directory)
        before = snapshot(directory)
        done = rundb(["--continue", *flags, f"--log_dir={directory}"], self.root_)
        statuses = status if isinstance(status, tuple) else (status,)
        expect(done, done.returncode if done.returncode in statuses else statuses[0], words)
        self._unchanged(directory, before)

    def _continued_messages(self) -> None:
        directory = self.fresh("messages")
        flags = [*WBL[:3], "--workload=SMS", "--sms_rows=640", "--max_txns_per_thread=50", f"--log_dir={directory}"]
        expect(rundb(flags, self.root_), 0)
        self._recovers_with(directory, "d")
        before = snapshot(directory)
        expect(rundb(["--continue", f"--log_dir={directory}"], self.root_), 2, ["SMS", "start a new run"])
        self._unchanged(directory, before)

    def _secondary_indexes(self) -> None:
        """Of a restart: without their file they are built from the rows."""
        directory = self.fresh("indexes")
        flags = [*WBL[:3], "--workload=TPCC", "--tpcc_small", "--tpcc_full_mix", "--max_txns_per_thread=200",
                 f"--log_dir={directory}"]
        expect(rundb(flags, self.root_), 0)
        for _ in range(2):
            expect(rundb([*flags, "--continue"], self.root_), 0)
            self._recovers_with(directory, "d")
        indexes = os.path.join(directory, "run-0001", "indexes.pm")
        flip(indexes, 100)
        before = snapshot(directory)
        for more in (["--continue"], ["-Lr1", "--verify"]):
            expect(rundb([*flags, *more], self.root_), 3, ["indexes.pm@0", "without the file they are built"])
        self._unchanged(directory, before)
        expect(rundb(["-Lr1", f"--log_dir={directory}"], self.root_), 0)
        os.unlink(indexes)
        expect(rundb([*flags, "--continue"], self.root_), 0)
        self._recovers_with(directory, "d")

    def _index_lines(self) -> None:
        directory = self.fresh("index-lines")
        flags = [*WBL[:3], "--workload=TPCC", "--tpcc_small", "--tpcc_full_mix", "--max_txns_per_thread=200",
                 "--index_lines=2", f"--log_dir={directory}"]
        expect(rundb(flags, self.root_), 0)
        self._recovers_with(directory, "d")
        expect(rundb([*flags, "--continue", "--verify"], self.root_), 0)
        expect(rundb([*flags, "--continue", "--index_lines=0", "--verify"], self.root_), 0)
        self._recovers_with(directory, "d")

    def _torn_with_acks(self) -> None:
        """What the record alone had acknowledged is lost with it. No crash does that: it was durable before."""
        directory = self.copy("heap")
        acks = self.base("heap") + ".1.acks"
        flags = ["-Lr1", "--run=1", "--verify", f"--log_dir={directory}", f"--ack_file={acks}"]
        expect(rundb(flags, self.root_), 0)
        newest = gap_records(gaps_of(directory))[-1]
        while gap_records(gaps_of(directory))[-1].last_sequences == newest.last_sequences:
            tear_newest_record(directory)
        expect(rundb(flags, self.root_), 7, ["acknowledged transaction", "is lost"])

    def _heap_in_use(self) -> None:
        directory, acks = self.fresh("in-use"), os.path.join(self.root_, "heap-in-use.acks")
        endless = [flag for flag in WBL if "max_txns" not in flag] + ["--seconds=30", f"--ack_file={acks}"]
        child = subprocess.Popen([BINARY, *endless, f"--log_dir={directory}"], cwd=self.root_, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not os.path.exists(acks) and child.poll() is None:
                time.sleep(0.01)
            time.sleep(0.2)
            why = f"another process is using {directory}/run-0001; wait until it has ended"
            for verb, flags in (("continue", ["--continue"]), ("recover", ["-Lr1"]),
                                ("delete", [*WBL, "--log_overwrite"])):
                expect(rundb([*flags, f"--log_dir={directory}"], self.root_), 4, [f"cannot {verb} run-0001: {why}"])
        finally:
            child.kill()
            child.wait()
        self._recovers_with(directory, "c", f"--ack_file={acks}")
        expect(rundb(["--continue", "--max_txns_per_thread=400", "--verify", f"--log_dir={directory}"], self.root_), 0)

    def _too_small_for_load(self) -> None:
        directory = self.fresh("small")
        expect(rundb([*WBL, "--heap_bytes=256K", f"--log_dir={directory}"], self.root_), 5, ["--heap_bytes"])
        if os.listdir(directory):
            raise Failed(f"it left {os.listdir(directory)}")

    def _fills_up(self, run: list[str]) -> None:
        """Updates come faster than groups: the heap has no room for so many versions."""
        flags = [flag for flag in run if "max_txns" not in flag] + ["--seconds=20", "--log_flush_interval=20ms"]
        for attempt in range(5):
            directory, acks = self.fresh("full"), os.path.join(self.root_, f"full-{attempt}.acks")
            expect(rundb([*flags, "--heap_bytes=1M", f"--log_dir={directory}", f"--ack_file={acks}"], self.root_), 5,
                   ["the heap is full", "--heap_bytes"])
            self._recovers_with(directory, "c", f"--ack_file={acks}")
            if any(gap_records(gaps_of(directory))[-1].last_sequences):
                break
        else:
            raise Failed("the heap is full before anything is acknowledged")
        expect(rundb(["--continue", "--verify", "--max_txns_per_thread=100", f"--log_dir={directory}"], self.root_), 0)

    def _lives_under_locks(self) -> None:
        directory, acks = self.fresh("locks"), os.path.join(self.root_, "locks.acks")
        expect(rundb([*NO_WAIT_WBL, f"--log_dir={directory}", f"--ack_file={acks}"], self.root_), 0)
        self._recovers_with(directory, "c", f"--ack_file={acks}")
        before = snapshot(directory)
        expect(rundb(["--continue", "--cc=HEKATON", f"--log_dir={directory}"], self.root_), 6, ["NO_WAIT"])
        self._unchanged(directory, before)
        for on_demand in (1, 0, 1):
            expect(rundb(["--continue", f"--adopt_on_demand={on_demand}", "--verify", "--max_txns_per_thread=400",
                          f"--log_dir={directory}"], self.root_), 0)
            self._recovers_with(directory, "d")

    def all(self):
        for group in (self.usage, self.heap_damages, self.recoveries):
            yield from group()


if __name__ == "__main__":
    sys.exit(run_checks(Checks, "heap-", {BINARY: "rundb-all"}))
