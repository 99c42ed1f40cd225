"""Runs in one log directory, some of them killed, and what must hold after each; for kill_loop.py and kill_points.py.

After each recovery, and however many there are: every acknowledged transaction is there, of older runs too as long as
their logs are; and where the newest run left nothing, or was not even committed, the state is the one before it.
"""
from __future__ import annotations

import json
import os
import random
import re
import shutil
import struct
import sys
from dataclasses import dataclass
from typing import Callable, Optional

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(REPOSITORY, "scripts"))
from child import Outcome, run_child, shell_line
from experiment.cells import striped_directories

STEP_TIMEOUT_SECONDS = 120
ACK_HEADER_BYTES = 4096
ACK_WORKERS_AT = 24  # in the header: their number, and the bits of each
# Statuses of an honest refusal: corrupt, I/O, mismatch.
REFUSALS = (3, 4, 6)
SIGKILLED = -9


class Wrong(Exception):
    """What does not hold, in a sentence."""


@dataclass(frozen=True)
class Recovered:
    run: int
    transactions: int  # of that run
    before: int        # transactions of the runs that it continues
    digest: str        # of the state

    def __str__(self) -> str:
        return f"run-{self.run:04d}: {self.before} + {self.transactions} transactions, digest {self.digest}"


class Runs:
    def __init__(self, binary: str, directory: str, stripes: int = 1,
                 host_flags: Callable[[int], list[str]] = lambda step: [], in_place: bool = False):
        """`host_flags` of a step's number are added to its command line. `in_place`: what continues a run goes on in
        its directory, as its next life, with another file of acknowledgements under the same name."""
        self.binary = binary
        self.host_flags_ = host_flags
        self.directory = directory
        self.stripes_ = stripes
        self.in_place = in_place
        self.logs = os.path.join(directory, "logs")  # all that the engine writes but acknowledgements
        self.log_directories_ = striped_directories(self.logs, stripes)
        self.lines: list[str] = []             # the command lines so far
        self.acknowledged: set[int] = set()    # runs that acknowledged something
        self.droppable_: set[int] = set()      # runs that a checkpoint was to stand in for
        self.last_: Optional[Recovered] = None
        for log_directory in self.log_directories_:
            os.makedirs(log_directory, exist_ok=True)

    def copy(self, directory: str) -> Runs:
        """The same runs in another directory."""
        shutil.copytree(self.directory, directory, dirs_exist_ok=True)
        other = Runs(self.binary, directory, self.stripes_, self.host_flags_, self.in_place)
        other.lines = self.lines + [shell_line(["cp", "-r", self.logs, directory])]
        other.acknowledged, other.droppable_ = set(self.acknowledged), set(self.droppable_)
        other.last_ = self.last_
        return other

    def newest(self) -> int:
        return max((int(name[len("run-"):]) for log_directory in self.log_directories_
                    for name in os.listdir(log_directory)), default=0)

    def ack_file(self, run: int) -> str:
        return os.path.join(self.directory, f"acknowledged-{run:04d}")

    def run(self, flags: list[str], prefix: tuple[str, ...] = (),
            kill_when: Optional[Callable[[], bool]] = None) -> Outcome:
        """A new run. It may be killed: by `kill_when`, or by what `prefix` puts before the command."""
        goes_on = self.in_place and "--continue" in flags
        number = self.newest() + (0 if goes_on else 1)
        ack_file = self.ack_file(number)
        if "--drop_old_runs" in flags:
            self.droppable_ |= set(range(1, number))
        if "--log_overwrite" in flags:
            self.acknowledged, self.last_ = set(), None
        outcome = self._step([*prefix, self.binary, *flags, self._log_dir_flag(), *self.host_flags_(len(self.lines)),
                              f"--ack_file={ack_file}"], kill_when)
        if outcome.exit_status not in (0, SIGKILLED) or outcome.timed_out:
            raise Wrong(f"the run ended with {outcome.exit_status}: {outcome.last_line()}")
        if holds_bits(ack_file):
            self.acknowledged.add(number)
        return outcome

    def examine(self, rng: random.Random) -> bool:
        """False if there is nothing to recover, since nothing was acknowledged."""
        one, other = ([f"--thread_cnt={threads}", f"--recover_serial={rng.choice(('auto', 'always', 'never'))}"]
                      for threads in rng.sample((1, 2, 3), 2))
        found = self._recover(one)
        if found is None:
            if self.acknowledged:
                raise Wrong("recovery was refused, but transactions had been acknowledged")
            return False
        again = self._recover(other, self.ack_file(found.run) if found.run in self.acknowledged else "")
        if again != found:
            raise Wrong(f"recovered {found}; then {again}")
        if found.run < max(self.acknowledged, default=0):
            raise Wrong(f"run-{found.run:04d} was recovered; acknowledged were transactions of {self.acknowledged}")
        is_as_before = found.transactions == 0 and not self._has_checkpoints(found.run)
        is_as_before = (is_as_before or (self.last_ and found.run == self.last_.run)) and not self.in_place
        if self.last_ and is_as_before and found.digest != self.last_.digest:
            raise Wrong(f"recovered {found}; before that {self.last_}")
        for run in self.acknowledged - {found.run}:
            if self._recover([*one, f"--run={run}"], self.ack_file(run)) is None and run not in self.droppable_:
                raise Wrong(f"run-{run:04d} is not recovered any more")
        self.last_ = found
        return True

    def _has_checkpoints(self, run: int) -> bool:
        """Then what it did may be in a checkpoint alone, and its logs be truncated so far."""
        return any(os.path.exists(os.path.join(directory, f"run-{run:04d}", anchor))
                   for directory in self.log_directories_ for anchor in ("anchor", "row-anchor"))

    def end_well(self, flags: list[str], rng: random.Random) -> None:
        """One more run, to its clean end."""
        if self.run(flags).exit_status != 0:
            raise Wrong("the run was killed by another process")
        if not self.examine(rng) or self.newest() not in self.acknowledged:
            raise Wrong("a run came to its end, and nothing was acknowledged")

    def _recover(self, flags: list[str], ack_file: str = "") -> Optional[Recovered]:
        """None if it was refused."""
        result = os.path.join(self.directory, "result.json")
        if os.path.exists(result):
            os.unlink(result)
        acks = [f"--ack_file={ack_file}"] if ack_file else []
        outcome = self._step([self.binary, "-Lr1", "--verify", *flags, self._log_dir_flag(),
                              *self.host_flags_(len(self.lines)), *acks, f"--json={result}"])
        if outcome.exit_status in REFUSALS and len(re.findall(r"^error: ", outcome.output, re.M)) == 1:
            return None
        if outcome.exit_status != 0:
            raise Wrong(f"recovery ended with {outcome.exit_status}: {outcome.last_line()}")
        with open(result, encoding="utf-8") as file:
            record = json.load(file)
        metrics, verification = record["metrics"], record["verification"]
        if not {"a", "d"} | ({"c"} if acks else set()) <= set(verification["verified"].split(",")):
            raise Wrong(f"recovery made these checks only: {verification['verified']}")
        return Recovered(metrics["run_number"], metrics["recovered_txns"], metrics["before"]["recovered_txns"],
                         verification["digest"])

    def _log_dir_flag(self) -> str:
        return "--log_dir=" + ",".join(self.log_directories_)

    def _step(self, command: list[str], kill_when: Optional[Callable[[], bool]] = None) -> Outcome:
        self.lines.append(shell_line(command))
        return run_child(command, STEP_TIMEOUT_SECONDS, kill_when=kill_when)


def holds_bits(ack_file: str) -> bool:
    """Whether a writer was acknowledged: readers and their notes lie behind. The file is sparse: holes are not read."""
    try:
        with open(ack_file, "rb") as file:
            workers, bits_per_worker = struct.unpack_from("<QQ", file.read(ACK_HEADER_BYTES), ACK_WORKERS_AT)
            at, size = ACK_HEADER_BYTES, ACK_HEADER_BYTES + workers * bits_per_worker // 8
            while at < size:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
                block = os.pread(file.fileno(), min(1 << 20, size - at), at)
                if any(block):
                    return True
                at += len(block)
    except (OSError, struct.error):  # there is no file, or only a part of its header, or no data behind `at`
        pass
    return False
