#!/usr/bin/env python3
"""make with progress and an estimate of the time left: `scripts/build.py [make's arguments]`.

What the compiler says is shown as it comes; the commands go to build/build.log. Exits as make does. Without anything
to do it says nothing. Works in the current directory, as make does.
"""
from __future__ import annotations

import collections
import os
import re
import select
import signal
import subprocess
import sys
from typing import Callable, Iterator, Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stop
if __name__ == "__main__":
    stop.install()
from child import die_with_parent, run_child
from progress import Progress

LOG = os.path.join("build", "build.log")
TICK_SECONDS = 0.25
PLAN_SECONDS_MAX = 120
# Expected seconds by what is made, with one job; Progress corrects them by what it sees.
EXPECTED_SECONDS = {"pair": 8.0, "object": 3.0, "program": 1.0}


def target_of(line: str) -> Optional[str]:
    """What the command that make echoed makes, or None."""
    match = re.match(r"\S.* -o (\S+)", line)
    return match[1] if match else None


def kind_of(target: str) -> str:
    if not target.endswith(".o"):
        return "program"
    return "pair" if re.search(r"/(pairs|timed)/", target) else "object"


def jobs_of(arguments: list[str]) -> int:
    counts = [int(argument[2:]) for argument in arguments if re.fullmatch(r"-j[1-9]\d*", argument)]
    return counts[-1] if counts else 1


def lines_of(fd: int, tick: Callable[[], None]) -> Iterator[str]:
    """The lines that come through `fd`, without their ends; calls `tick` while none comes. Raises Stopped."""
    rest = b""
    while True:
        while not select.select([fd], [], [], TICK_SECONDS)[0]:
            tick()
            stop.check()
        stop.check()
        got = os.read(fd, 1 << 16)
        *lines, rest = (rest + got).split(b"\n")
        if not got and rest:
            lines = [rest]
        yield from (line.decode("utf-8", "replace") for line in lines)
        if not got:
            return


class Steps:
    """The commands under way. make starts one when another ends: most often the one that runs longest."""

    def __init__(self, targets: list[str], jobs: int):
        kinds = [kind_of(target) for target in targets]
        self.progress = Progress([(kind, EXPECTED_SECONDS[kind] / jobs) for kind in kinds])
        self.jobs_ = jobs
        self.left_ = len(targets)
        self.running_: collections.deque[str] = collections.deque()

    def start(self, target: str) -> None:
        if len(self.running_) == self.jobs_:
            self._end_one()
        self.running_.append(target)
        if len(self.running_) == 1:
            self.progress.begin(target)

    def end_all(self) -> None:
        while self.running_:
            self._end_one()

    def _end_one(self) -> None:
        self.running_.popleft()
        if self.left_ > 0:  # make may do more than it had planned
            self.left_ -= 1
            self.progress.finish("built")
        if self.running_:
            self.progress.begin(self.running_[0])


def build(arguments: list[str]) -> int:
    make = ["make", "--no-print-directory", *arguments]
    plan = run_child([*make, "-n"], PLAN_SECONDS_MAX).output
    steps = Steps([target for target in map(target_of, plan.splitlines()) if target], jobs_of(arguments))
    os.makedirs(os.path.dirname(LOG), exist_ok=True)
    with open(LOG, "w", encoding="utf-8") as log:
        child = subprocess.Popen(make, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 preexec_fn=die_with_parent)
        try:
            for line in lines_of(child.stdout.fileno(), steps.progress.draw):
                print(line, file=log, flush=True)
                if target := target_of(line):
                    steps.start(target)
                elif not re.match(r"(ar|rm|make: Nothing to be done) |make: '.*' is up to date", line):
                    steps.progress.note(line)
        except BaseException:
            child.terminate()  # it takes what is half made away
            raise
        finally:
            status = child.wait()
    if status == 0:
        steps.end_all()
    steps.progress.close()
    if status != 0:
        print(f"error: the build failed; its commands and what they said: {LOG}")
    return status


if __name__ == "__main__":
    die_with_parent(signal.SIGTERM)  # of run.sh and its like, which wait for it
    stop.run(build)
