#!/usr/bin/env python3
"""Kills processes of several masters with SIGKILL: one or two of a run, any but the parent, from fork to end.

A kill draws from its seed the masters, workers, Page Stores, the workload, the victims and their moments. Where the run
can go on without them it must end with status 0, report no other deaths, and leave rows that are consistent and hold all
that was acknowledged, as a master that is left sees them; where it cannot (the lock process, the only Page Store), with
status 4 and one line. No process may be left, and no run may hang. A control comes first: an acknowledgement of a
transaction that never was must be found.

A failure is printed with the seed that makes its kill again (--seed S --kills 1).
"""
from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

from killed_runs import ACK_HEADER_BYTES, ACK_WORKERS_AT, REPOSITORY  # puts scripts/ on the path
import stop
from progress import clock

RUN_TIMEOUT_SECONDS = 90
HEARTBEAT_SECONDS = 15
SECONDS = 0.5  # the measured interval
LOST = 4       # the exit status of a run that ended for want of a process
FOUND = 7      # of one whose rows are wrong
# Kills by the victim's role: the more there is to recover, the more of them.
TWO_DIE = 0.25
ROLES = ("master",) * 5 + ("log store",) * 2 + ("page store",) * 2 + ("lock process",)
WORKLOADS = ("TEST", "YCSB", "TEST", "SYSBENCH", "TEST", "TPCC")


class Wrong(Exception):
    """What does not hold, in a sentence."""


def draw_load(rng: random.Random, workload: str) -> list[str]:
    if workload == "YCSB":
        return [f"--synth_table_size={rng.choice((300, 3000))}", f"--zipf_theta={rng.choice((0, 0.6))}"]
    if workload == "TPCC":
        return ["--tpcc_small=1", "--num_wh=2", "--tpcc_full_mix=1"]
    if workload == "SYSBENCH":
        return ["--sysbench_rows=300", f"--sharing={rng.choice((10, 50))}"]
    return []


@dataclass(frozen=True)
class Victim:
    name: str
    when: float  # as a share of the time from the first fork to the expected end; 0: as soon as it is forked

    def role(self) -> str:
        return self.name.rstrip(" 0123456789")


@dataclass
class Kill:
    seed: int
    victims: list[Victim] = field(default_factory=list)  # in the order of their moments
    flags: list[str] = field(default_factory=list)
    count: dict = field(default_factory=dict)            # of processes, by role

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        self.count = {"log store": 3, "lock process": 1, "page store": rng.choice((1, 2, 2, 3)),
                      "master": rng.choice((2, 2, 3))}
        workload = WORKLOADS[self.seed % len(WORKLOADS)]
        victims = {self._draw(rng, ROLES)}
        if rng.random() < TWO_DIE:
            victims.add(self._draw(rng, ROLES))
        self.victims = sorted(victims, key=lambda victim: victim.when)
        self.flags = [f"--masters={self.count['master']}", f"--thread_cnt={rng.choice((1, 2))}", f"--seed={self.seed}",
                      f"--page_stores={self.count['page store']}", f"--workload={workload}", *draw_load(rng, workload),
                      f"--warmup_seconds={rng.choice((0, 0.1))}", f"--seconds={SECONDS}", "--query_list_len=2000"]

    def _draw(self, rng: random.Random, roles: tuple[str, ...]) -> Victim:
        role = rng.choice(roles)
        name = role if role == "lock process" else f"{role} {rng.randrange(self.count[role])}"
        return Victim(name, rng.choice((0.0, *[rng.random()] * 9)))

    def processes(self) -> list[str]:
        """In the order in which they are forked."""
        return [role if role == "lock process" else f"{role} {i}" for role, count in self.count.items()
                for i in range(count)]

    def is_outlived(self, died: set[str]) -> bool:
        def left(role: str) -> int:
            return self.count[role] - sum(name.startswith(role) for name in died)
        return left("log store") >= 2 and min(left("lock process"), left("page store"), left("master")) >= 1


def children_of(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def forge_acknowledgement(ack_file: str) -> None:
    """Of the last transaction that the first worker's bits stand for; none gets so far."""
    with open(ack_file, "r+b") as file:
        _, bits_per_worker = struct.unpack_from("<QQ", file.read(ACK_HEADER_BYTES), ACK_WORKERS_AT)
        file.seek(ACK_HEADER_BYTES + bits_per_worker // 8 - 1)
        file.write(b"\x80")


def count_bits(ack_file: str) -> int:
    """The acknowledged writers."""
    bits = 0
    with open(ack_file, "rb") as file:
        workers, bits_per_worker = struct.unpack_from("<QQ", file.read(ACK_HEADER_BYTES), ACK_WORKERS_AT)
        at, size = ACK_HEADER_BYTES, ACK_HEADER_BYTES + workers * bits_per_worker // 8
        while at < size:
            block = os.pread(file.fileno(), min(1 << 20, size - at), at)
            bits += int.from_bytes(block, "little").bit_count() if any(block) else 0
            at += len(block)
    return bits


class Cluster:
    """One run in a directory of its own."""

    def __init__(self, binary: str, directory: str, kill: Kill):
        self.kill_, self.directory_ = kill, directory
        self.ack_file = os.path.join(directory, "acks")
        self.command = [binary, *kill.flags, f"--log_dir={directory}/logs", f"--ack_file={self.ack_file}", "--verify",
                        f"--json={directory}/record.json"]
        self.begin = time.monotonic()
        self.process_ = subprocess.Popen(self.command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE)
        self.children: list[int] = []

    def await_children(self, count: int) -> None:
        """Until so many are forked, or the run has ended, or hangs."""
        while (len(self.children) < count and self.process_.poll() is None
               and time.monotonic() < self.begin + RUN_TIMEOUT_SECONDS):
            self.children = max(self.children, children_of(self.process_.pid), key=len)
            time.sleep(0.001)

    def kill(self, number: int) -> bool:
        """False: it has ended before."""
        if len(self.children) <= number or not is_alive(self.children[number]):
            return False
        try:
            os.kill(self.children[number], signal.SIGKILL)
            return True
        except ProcessLookupError:
            return False

    def end(self) -> tuple[int, str, str]:
        try:
            self.await_children(len(self.kill_.processes()) - 2)
            out, err = self.process_.communicate(timeout=RUN_TIMEOUT_SECONDS)
            deadline = time.monotonic() + 10
            while any(map(is_alive, self.children)) and time.monotonic() < deadline:
                time.sleep(0.01)
            left = [pid for pid in self.children if is_alive(pid)]
            if left:
                raise Wrong(f"{len(left)} processes were left over")
            return self.process_.returncode, out, err
        except subprocess.TimeoutExpired:
            raise Wrong(f"no end after {RUN_TIMEOUT_SECONDS} s") from None
        finally:
            self.process_.kill()
            self.process_.wait()
            for pid in filter(is_alive, self.children):
                os.kill(pid, signal.SIGKILL)

    def record(self) -> dict:
        with open(os.path.join(self.directory_, "record.json"), encoding="utf-8") as file:
            return json.load(file)


class Loop:
    def __init__(self, binary: str, directory: str):
        self.binary_, self.directory_ = binary, directory
        self.run_seconds_ = 1.5  # from the first fork to the end, as it was lately
        self.passed = self.failed = 0
        self.acknowledged = 0
        self.kills = collections.Counter()  # by role and phase
        self.last_sign_ = self.begin_ = time.monotonic()

    def attempt(self, name: str, check, *arguments) -> None:
        directory = tempfile.mkdtemp(dir=self.directory_)
        try:
            check(directory, *arguments)
            self.passed += 1
        except Wrong as wrong:
            self.failed += 1
            print(f"FAILED {name}: {wrong}", flush=True)
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def sign(self, done: int, count: int) -> None:
        now = time.monotonic()
        if now - self.last_sign_ < HEARTBEAT_SECONDS and done < count:
            return
        self.last_sign_ = now
        left = (now - self.begin_) / max(done, 1) * (count - done)
        by_role = ", ".join(f"{what}: {number}" for what, number in sorted(self.kills.items()))
        print(f"{clock(now - self.begin_)}  {done} of {count} kills, {self.failed} failed, "
              f"{self.acknowledged} transactions acknowledged; {by_role}; {clock(left)} left", flush=True)

    def control(self, directory: str) -> None:
        """A run without a kill, whose file of acknowledgements says too much."""
        kill = Kill(0)
        cluster = Cluster(self.binary_, directory, kill)
        cluster.await_children(len(kill.processes()))
        if os.path.exists(cluster.ack_file):
            forge_acknowledgement(cluster.ack_file)
        status, _, err = cluster.end()
        if status != FOUND or "was acknowledged and is not there" not in err:
            raise Wrong(f"a transaction that never was is not missed: status {status}, {err.strip()}")

    def kill(self, directory: str, kill: Kill) -> None:
        processes = kill.processes()
        cluster = Cluster(self.binary_, directory, kill)
        cluster.await_children(1)
        begin = time.monotonic()
        killed = set()
        for victim in kill.victims:
            number = processes.index(victim.name)
            cluster.await_children(number + 1 if victim.when == 0 else len(processes))
            time.sleep(max(0.0, begin + victim.when * self.run_seconds_ - time.monotonic()))
            if cluster.kill(number):
                killed.add(victim.name)
        status, out, err = cluster.end()
        self._judge(cluster, kill, killed, status, out + err)
        if status == 0:
            self.run_seconds_ += 0.2 * (time.monotonic() - begin - self.run_seconds_)

    def _judge(self, cluster: Cluster, kill: Kill, killed: set[str], status: int, said: str) -> None:
        told = f"{sorted(killed)} were killed: status {status}, {said.strip()}\n  {' '.join(cluster.command)}"
        if status == 0:
            record = cluster.record()
            died = {death["process"] for death in record["deaths"]}
            if record["verified"] != "consistent":
                raise Wrong(f"the rows are wrong; {told}")
            if not died <= killed or not kill.is_outlived(died):
                raise Wrong(f"{sorted(died)} died; {told}")
            self.acknowledged += count_bits(cluster.ack_file)
            self.kills["too late"] += len(killed - died) + len(kill.victims) - len(killed)
            for death in record["deaths"]:
                self.kills[f"{death['process'].rstrip(' 0123456789')} ({death['phase']})"] += 1
        elif status != LOST or kill.is_outlived(killed):
            raise Wrong(told)
        elif len([line for line in said.splitlines() if line.startswith("error: ")]) != 1:
            raise Wrong(f"not one line tells it; {told}")
        else:
            self.kills["ended the run"] += 1


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first kill (default: the time)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--dir", default=os.path.join(REPOSITORY, "build"), help="where logs go for a while")
    parser.add_argument("--binary", default=os.environ.get("DBX_BINARY", os.path.join(REPOSITORY, "rundb-all")))
    arguments = parser.parse_args(words)
    if not os.access(arguments.binary, os.X_OK):
        print(f"error: {arguments.binary} is missing; build it with `make rundb-all`")
        return 2
    print(f"{arguments.kills} kills from seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="masters-kill-", dir=arguments.dir) as directory:
        loop = Loop(os.path.abspath(arguments.binary), directory)
        loop.attempt("the control", loop.control)
        seeds = range(arguments.seed, arguments.seed + arguments.kills)
        pool = concurrent.futures.ThreadPoolExecutor(arguments.jobs)
        try:
            runs = [pool.submit(loop.attempt, f"--seed {seed} --kills 1", loop.kill, Kill(seed)) for seed in seeds]
            for done, run in enumerate(concurrent.futures.as_completed(runs), 1):
                run.result()
                loop.sign(done, arguments.kills)
                stop.check()
        finally:
            pool.shutdown(cancel_futures=True)
    print(f"{loop.passed} passed, {loop.failed} failed")
    return 1 if loop.failed else 0


if __name__ == "__main__":
    stop.run(main)
