#!/usr/bin/env python3
"""A run and its replica as two processes of ./rundb-all: what the replica has when either dies, and bad input.

As cli_check.py, whose statuses these are. Run by test.sh; prints a line per failure and 'N passed, M failed'.
"""
from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Callable, Optional

import cli_check
from cli_check import BINARY, RAM_DISK, SMALL, TIMEOUT_SECONDS, WBL, Failed, expect, is_ram_disk, run_checks, rundb

DIFFERENTIAL = ["--cc=NO_WAIT", "--log=LOG_DIFFERENTIAL", "--num_logger=2", *SMALL]
SCHEMES = {
    "Heap": WBL,
    "HeapUnderLocks": ["--cc=NO_WAIT", *WBL[1:]],
    "OneLog": ["--cc=HEKATON", "--log=LOG_SERIAL", *SMALL],
    "TwoLogs": ["--cc=NO_WAIT", "--log=LOG_TAURUS", "--log_type=LOG_COMMAND", "--num_logger=2", *SMALL],
    "Epochs": ["--cc=SILO", "--log=LOG_BATCH", "--num_logger=2", *SMALL],
    "Pages": DIFFERENTIAL,
}
SECONDS_OF_A_RUN = 30  # which ends before

# Flags that are refused before anything happens.
USAGE = (
    ("NoPort", [*WBL, "--replicate_to=localhost"], ["--replicate_to", "HOST:PORT"]),
    ("NoHost", [*WBL, "--replicate_to=:77"], ["--replicate_to", "HOST:PORT"]),
    ("PortTooHigh", [*WBL, "--replicate_to=localhost:65536"], ["--replicate_to"]),
    ("ReplicaWithoutPort", ["--replica=localhost:"], ["--replica"]),
    ("ReplicaThatRecovers", ["--replica=0", "-Lr1"], ["--replica"]),
    ("ReplicaOfAReplica", ["--replica=0", "--replicate_to=localhost:77"], ["--replica"]),
    ("ContinueWithReplica", ["--continue", "--replicate_to=localhost:77"], ["--replicate_to", "from its beginning"]),
    ("NoLog", ["--cc=NO_WAIT", "--log=LOG_NO", *SMALL, "--replicate_to=localhost:77"], ["LOG_NO", "--replicate_to"]),
    ("WithoutFlushes", ["--cc=NO_WAIT", "--log=LOG_SERIAL", *SMALL, "-Lf1", "--replicate_to=localhost:77"],
     ["LOG_NO_FLUSH"]),
    ("ModeWithoutReplica", [*WBL, "--replication=ASYNC"], ["--replication belongs to --replicate_to"]),
    ("UnknownMode", [*WBL, "--replication=SEMI", "--replicate_to=localhost:77"], ["SEMI", "SYNC, ASYNC"]),
)


class Started:
    """A process of BINARY, and what it says."""

    def __init__(self, arguments: list[str], cwd: str):
        self.process = subprocess.Popen([BINARY, *arguments], cwd=cwd, stdin=subprocess.DEVNULL, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self) -> subprocess.CompletedProcess:
        try:
            out, err = self.process.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise Failed(f"{self.process.args} did not end") from None
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)


class Replica(Started):
    def __init__(self, directory: str, cwd: str):
        super().__init__(["--replica=0", f"--log_dir={directory}"], cwd)
        line = self.process.stdout.readline()
        told = re.search(r"^replica: listens at 127\.0\.0\.1:(\d+)$", line)
        if told is None:
            raise Failed(f"it does not say where it listens: {line}{self.finish().stderr}")
        self.port = int(told[1])


class Checks(cli_check.Checks):
    """One method per group; each yields (name, callable)."""

    def usage(self):
        for name, arguments, words in USAGE:
            yield name, lambda a=arguments, w=words: expect(rundb(a, self.root_), 2, w)

    def failovers(self):
        for name, flags in SCHEMES.items():
            yield f"{name}KilledAndContinuedFromTheReplica", lambda f=flags: self._killed(f)
            yield f"{name}EndsAndTheReplicaHasItAll", lambda f=flags: self._ends(f)
            yield f"{name}AsynchronousEndsAndTheReplicaHasItAll", lambda f=flags: self._ends(f, "--replication=ASYNC")
        yield "TwoDirectories", self._two_directories
        if is_ram_disk(RAM_DISK):  # where tuples are streamed past the caches
            yield "HeapInMemoryKilled", lambda: self._in_memory(lambda checks: checks._killed(WBL))
            yield "HeapInMemoryEnds", lambda: self._in_memory(lambda checks: checks._ends(WBL))
        yield "AnAsynchronousReplicaIsAStateOfTheRun", self._asynchronous_killed

    def losses(self):
        yield "ASynchronousRunEndsWithItsReplica", self._synchronous_replica_dies
        yield "AnAsynchronousRunGoesOn", self._asynchronous_replica_dies
        yield "NobodyListens", self._nobody_listens
        yield "APortThatIsTaken", self._port_is_taken
        yield "ADirectoryThatIsUsed", self._directory_is_used
        yield "FewerDirectories", self._fewer_directories
        yield "NoReplicaForAStranger", self._stranger
        yield "AReplicaThatWaitsIsInterrupted", self._interrupted
        yield "AReplicaThatWorksIsInterrupted", self._interrupted_at_work

    def all(self):
        for group in (self.usage, self.failovers, self.losses):
            yield from group()

    # ---- one run and one replica ----

    @staticmethod
    def _in_memory(check: Callable[["Checks"], None]) -> None:
        with tempfile.TemporaryDirectory(prefix="replica-", dir=RAM_DISK) as root:
            check(Checks(root))

    def _run(self, flags: list[str], replica: Replica, *more: str, endless: bool = False) -> tuple[Started, str, str]:
        directory = self.fresh("run")
        acks = os.path.join(self.root_, "acks")
        if os.path.exists(acks):
            os.unlink(acks)
        if endless:
            flags = [f for f in flags if "max_txns" not in f] + [f"--seconds={SECONDS_OF_A_RUN}"]
            flags += ["--heap_bytes=256M"] * ("--log=LOG_WBL" in flags)
        run = Started([*flags, f"--log_dir={directory}", f"--ack_file={acks}", f"--replicate_to=localhost:{replica.port}",
                       *more], self.root_)
        return run, directory, acks

    def _wait_for_acks(self, run: Started, acks: str) -> None:
        end = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < end and run.process.poll() is None:
            if os.path.exists(acks) and os.path.getsize(acks) > cli_check.ACK_HEADER_BYTES:
                with open(acks, "rb") as file:
                    file.seek(cli_check.ACK_HEADER_BYTES)
                    if any(file.read(1 << 16)):
                        return
            time.sleep(0.02)
        run.process.kill()
        raise Failed("nothing was acknowledged: " + run.finish().stderr)

    def _recovers(self, directory: str, *more: str, checks: Optional[str] = None) -> str:
        done = rundb(["-Lr1", "--verify", f"--log_dir={directory}", *more], self.root_)
        expect(done, 0)
        said = re.search(r"^verified: (\S+)", done.stdout, re.M)
        if said is None or (checks is not None and checks not in said[1]):
            raise Failed(f"not verified with {checks}: {done.stdout[-300:]}")
        return done.stdout

    def _killed(self, flags: list[str]) -> None:
        copy = self.fresh("copy")
        replica = Replica(copy, self.root_)
        run, _, acks = self._run(flags, replica, endless=True)
        self._wait_for_acks(run, acks)
        time.sleep(0.3)
        run.process.kill()
        run.finish()
        ended = replica.finish()
        expect(ended, 0)
        if "the connection was lost; go on with: " not in ended.stdout:
            raise Failed(f"the replica says: {ended.stdout}")
        self._recovers(copy, f"--ack_file={acks}", checks="c")
        expect(rundb(["--continue", "--verify", "--max_txns_per_thread=200", f"--log_dir={copy}"], self.root_), 0)
        self._recovers(copy, checks="d")

    def _ends(self, flags: list[str], *more: str) -> None:
        copy = self.fresh("copy")
        replica = Replica(copy, self.root_)
        run, directory, acks = self._run(flags, replica, *more)
        done = run.finish()
        expect(done, 0)
        if "replica: " not in done.stdout or "LOST" in done.stdout:
            raise Failed(f"the run says: {done.stdout[-300:]}")
        ended = replica.finish()
        expect(ended, 0)
        if "the run has ended" not in ended.stdout:
            raise Failed(f"the replica says: {ended.stdout}")
        self._recovers(copy, f"--ack_file={acks}", checks="c")
        digests = [re.findall(r'"digest": ?"(\w+)"', self._record(where)) for where in (directory, copy)]
        if not digests[0] or digests[0] != digests[1]:
            raise Failed(f"two states: {digests}")

    def _record(self, directory: str) -> str:
        path = os.path.join(self.root_, "record.json")
        if os.path.exists(path):
            os.unlink(path)
        expect(rundb(["-Lr1", "--verify", f"--log_dir={directory}", f"--json={path}"], self.root_), 0)
        with open(path, encoding="utf-8") as file:
            return file.read()

    def _two_directories(self) -> None:
        copies = f"{self.fresh('copy')},{self.fresh('copy2')}"
        replica = Replica(copies, self.root_)
        directories = f"{self.fresh('one')},{self.fresh('two')}"
        done = rundb([*SCHEMES["TwoLogs"], f"--log_dir={directories}", f"--replicate_to=localhost:{replica.port}"],
                     self.root_)
        expect(done, 0)
        expect(replica.finish(), 0)
        self._recovers(copies, checks="d")

    # What was acknowledged may be missing, and nothing else may be wrong.
    def _asynchronous_killed(self) -> None:
        copy = self.fresh("copy")
        replica = Replica(copy, self.root_)
        run, _, acks = self._run(WBL, replica, "--replication=ASYNC", "--replica_round_trip=20ms", endless=True)
        self._wait_for_acks(run, acks)
        time.sleep(0.3)
        run.process.kill()
        run.finish()
        expect(replica.finish(), 0)
        self._recovers(copy)
        expect(rundb(["--continue", "--verify", "--max_txns_per_thread=200", f"--log_dir={copy}"], self.root_), 0)

    def _synchronous_replica_dies(self) -> None:
        replica = Replica(self.fresh("copy"), self.root_)
        run, directory, acks = self._run(WBL, replica, endless=True)
        self._wait_for_acks(run, acks)
        replica.process.kill()
        replica.finish()
        expect(run.finish(), 4, ["the replica at localhost:", "is lost: "])
        self._recovers(directory, f"--ack_file={acks}", checks="c")

    def _asynchronous_replica_dies(self) -> None:
        replica = Replica(self.fresh("copy"), self.root_)
        run, directory, acks = self._run([*WBL[:-1], "--seconds=3", "--heap_bytes=256M"], replica, "--replication=ASYNC")
        self._wait_for_acks(run, acks)
        replica.process.kill()
        replica.finish()
        done = run.finish()
        expect(done, 0)
        if "warning: the replica at localhost:" not in done.stderr or "LOST: " not in done.stdout:
            raise Failed(f"the run says: {done.stderr}{done.stdout[-200:]}")
        self._recovers(directory, f"--ack_file={acks}", checks="c")

    # ---- bad input ----

    def _nobody_listens(self) -> None:
        with socket.socket() as taken:  # and not listened at
            taken.bind(("127.0.0.1", 0))
            place = f"127.0.0.1:{taken.getsockname()[1]}"
            directory = self.fresh("run")
            done = rundb([*WBL, f"--log_dir={directory}", f"--replicate_to={place}"], self.root_)
        expect(done, 4, [f"no replica answers at {place}", "--replica="])
        if os.listdir(directory):
            raise Failed("a run without its replica has begun")

    def _port_is_taken(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            expect(rundb([f"--replica={port}", f"--log_dir={self.fresh('copy')}"], self.root_), 4,
                   [f"cannot listen at 127.0.0.1:{port}"])

    def _directory_is_used(self) -> None:
        copy = self.fresh("copy")
        expect(rundb([*WBL, f"--log_dir={copy}"], self.root_), 0)
        before = cli_check.snapshot(copy)
        expect(rundb(["--replica=0", f"--log_dir={copy}"], self.root_), 6, ["run-0001 is there already", "--log_dir"])
        if cli_check.snapshot(copy) != before:
            raise Failed("the run that was there has changed")

    def _fewer_directories(self) -> None:
        replica = Replica(self.fresh("copy"), self.root_)
        directories = f"{self.fresh('one')},{self.fresh('two')}"
        done = rundb([*SCHEMES["TwoLogs"], f"--log_dir={directories}", f"--replicate_to=localhost:{replica.port}"],
                     self.root_)
        expect(done, 4, ["2 log directories", "--log_dir"])
        one = self.fresh("run")
        expect(rundb([*WBL, f"--log_dir={one}", f"--replicate_to=localhost:{replica.port}"], self.root_), 0)
        ended = replica.finish()
        expect(ended, 0)
        if "notice: " not in ended.stderr or "2 log directories" not in ended.stderr:
            raise Failed(f"the replica says: {ended.stderr}")

    def _stranger(self) -> None:
        copy = self.fresh("copy")
        replica = Replica(copy, self.root_)
        with socket.create_connection(("127.0.0.1", replica.port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10)
            time.sleep(0.2)
        socket.create_connection(("127.0.0.1", replica.port)).close()
        if os.listdir(copy):
            raise Failed("a stranger has written files")
        directory = self.fresh("run")
        expect(rundb([*WBL, f"--log_dir={directory}", f"--replicate_to=localhost:{replica.port}"], self.root_), 0)
        expect(replica.finish(), 0)
        self._recovers(copy, checks="d")

    def _interrupted(self) -> None:
        replica = Replica(self.fresh("copy"), self.root_)
        replica.process.send_signal(signal.SIGTERM)
        done = replica.finish()
        if done.returncode != 128 + signal.SIGTERM or "interrupted" not in done.stderr:
            raise Failed(f"exit status {done.returncode}: {done.stderr}")

    def _interrupted_at_work(self) -> None:
        copy = self.fresh("copy")
        replica = Replica(copy, self.root_)
        run, _, acks = self._run(WBL, replica, endless=True)
        self._wait_for_acks(run, acks)
        replica.process.send_signal(signal.SIGTERM)
        done = replica.finish()
        if done.returncode != 128 + signal.SIGTERM or "a signal ended the replica" not in done.stdout:
            raise Failed(f"exit status {done.returncode}: {done.stdout}{done.stderr}")
        expect(run.finish(), 4, ["is lost: "])
        self._recovers(copy, f"--ack_file={acks}", checks="c")


if __name__ == "__main__":
    sys.exit(run_checks(Checks, "replica-", {BINARY: "rundb-all"}))
