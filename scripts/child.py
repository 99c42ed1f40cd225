"""Runs one child process: polled, timed out, killed with its parent, its output kept.

Used by experiment/records.py, torture.py, run_tests.py and the tests. A child stands in a session of its own, so that
Ctrl-C reaches the script alone, which then ends the child and what it has started (stop.py).
"""
from __future__ import annotations

import ctypes
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Callable, Optional

import stop

PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.02
OUTPUT_BYTES_MAX = 1 << 20


def shell_line(command: list[str]) -> str:
    return " ".join(shlex.quote(word) for word in command)


@dataclass
class Outcome:
    exit_status: int  # negative: ended by that signal
    seconds: float
    output: str
    timed_out: bool = False
    killed: bool = False  # by `kill_when`

    def last_line(self) -> str:
        lines = [line for line in self.output.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("error:")]
        return (errors or lines or [""])[-1].strip()


def is_missing(binary: str) -> bool:
    """Says so, and what builds it."""
    if os.access(binary, os.X_OK):
        return False
    print(f"error: {binary} is missing; build it with `make rundb-all`", file=sys.stderr)
    return True


_LIBC = ctypes.CDLL(None)  # loaded here: between fork and exec there must be no dlopen


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """For preexec_fn: the child is killed when this process is, however that happens."""
    _LIBC.prctl(PR_SET_PDEATHSIG, number)


def end(child: subprocess.Popen, grace_seconds: float = 0) -> None:
    """Ends a child that leads a session, with all of its group, if it still runs. With a grace it is asked first."""
    if child.poll() is not None:
        return
    if grace_seconds > 0:
        os.killpg(child.pid, signal.SIGTERM)
        deadline = time.monotonic() + grace_seconds
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def run_child(command: list[str], timeout: float, tick: Callable[[], None] = lambda: None,
              kill_when: Optional[Callable[[], bool]] = None, cwd: Optional[str] = None) -> Outcome:
    """Runs `command` to its end; SIGKILLs it after `timeout` seconds or once `kill_when` says so.

    Raises OSError if the command cannot be started, and Stopped once a signal has asked this script to end. On any
    exception the child is killed and reaped before it leaves.
    """
    start = time.monotonic()
    timed_out = killed = False
    stop.check()
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                 cwd=cwd, start_new_session=True, preexec_fn=die_with_parent)
        try:
            while child.poll() is None:
                if not killed and kill_when is not None and kill_when():
                    killed = True
                    child.kill()
                elif not timed_out and time.monotonic() - start > timeout:
                    timed_out = True
                    child.kill()
                tick()
                time.sleep(POLL_SECONDS)
                stop.check()
        finally:
            end(child)
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - OUTPUT_BYTES_MAX))
        text = output.read().decode("utf-8", "replace")
    return Outcome(child.returncode, time.monotonic() - start, text, timed_out, killed)


class KillClock:
    """Says when to kill a run: `delay` seconds after its first acknowledgement.

    The ack file is a shared mapping, so a change of its bytes is seen here at once. Reading the first
    megabytes is enough: some worker's bits are among them.
    """

    BYTES = 4 << 20

    def __init__(self, ack_file: str, delay: float):
        self.ack_file_ = ack_file
        self.delay_ = delay
        self.first_ = None
        self.acknowledging_since_ = None

    def __call__(self) -> bool:
        now = time.monotonic()
        if self.acknowledging_since_ is None:
            try:
                with open(self.ack_file_, "rb") as file:
                    content = file.read(self.BYTES)
            except OSError:
                return False
            if not content:
                return False
            if self.first_ is None:
                self.first_ = content
            if content == self.first_:
                return False
            self.acknowledging_since_ = now
            self.first_ = None
        return now - self.acknowledging_since_ >= self.delay_
