#!/usr/bin/env python3
"""Runs a GoogleTest program in as many processes as there are jobs: `scripts/shards.py JOBS PROGRAM [FLAGS]`.

Each process has a share of the tests. What they print comes test by test, never mixed. Ends with "N passed, M failed";
what a process that dies was running has failed, and what was left of its share with it.
"""
from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from typing import Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stop
if __name__ == "__main__":
    stop.install()
from child import die_with_parent, end

GRACE_SECONDS = 5
PRINTING = threading.Lock()


class Shard:
    """One process and the thread that reads what it prints."""

    def __init__(self, number: int, shards: int, command: list[str]):
        environment = {**os.environ, "GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(number)}
        self.passed = self.failed = 0
        self.total_: Optional[int] = None
        self.done_ = 0
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, errors="replace", env=environment,
                                      start_new_session=True, preexec_fn=die_with_parent)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        block, name = [], ""
        for line in self.child.stdout:
            if running := re.match(r"\[==========\] Running (\d+) tests?", line):
                self.total_ = int(running[1])
            begins, ends = line.startswith("[ RUN      ]"), self._count(line) if name else False
            if begins:
                name = line.split("]", 1)[1].strip()
            if name:
                block.append(line)
            if ends:
                self._print(block)
                block, name = [], ""
        status = self.child.wait()
        if name:
            self.failed += 1
            self.done_ += 1
            self._print([*block, f"[  FAILED  ] {name}: the process ended with {status}\n"])
        if self.total_ is None or self.done_ < self.total_ or (status != 0 and self.failed == 0):
            lost = max((self.total_ or 1) - self.done_, 1)
            self.failed += lost
            self._print([f"FAILED: a process ended with {status} before {lost} tests\n"])

    def _count(self, line: str) -> bool:
        end_of = re.match(r"\[ (      OK| FAILED | SKIPPED) \] \S+.* \(\d+ ms\)$", line)
        if not end_of:
            return False
        self.done_ += 1
        self.passed += end_of[1].strip() == "OK"
        self.failed += end_of[1].strip() == "FAILED"
        return True

    @staticmethod
    def _print(block: list[str]) -> None:
        with PRINTING:
            sys.stdout.writelines(block)
            sys.stdout.flush()


def main(argv: list[str]) -> int:
    jobs, command = int(argv[0]), argv[1:]
    listed = subprocess.run([*command, "--gtest_list_tests"], stdout=subprocess.PIPE, text=True, check=False)
    tests = sum(line.startswith("  ") for line in listed.stdout.splitlines())
    if listed.returncode != 0 or tests == 0:
        print(f"FAILED: {' '.join(command)} lists no tests")
        return 1
    print(f"[==========] Running {tests} tests", flush=True)
    shards = [Shard(i, min(jobs, tests), command) for i in range(min(jobs, tests))]
    try:
        while any(shard.reader.is_alive() for shard in shards):
            shards[0].reader.join(0.05)
            for shard in shards:
                shard.reader.join(0.01)
            stop.check()
    finally:
        for shard in shards:
            end(shard.child, GRACE_SECONDS)
    passed, failed = sum(shard.passed for shard in shards), sum(shard.failed for shard in shards)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    stop.run(main)
