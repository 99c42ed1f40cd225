"""One process of build/simulation/torture: what it reports, how it ends, and the line that makes its violation again.

Polled by scripts/torture.py; single-threaded.
"""
from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from typing import Optional

from child import die_with_parent, end

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CYCLES_PER_SLICE = 10_000
OTHER_LINES_MAX = 40
# As tests/simulation/torture_main.cpp says it.
NOT_ALONE = "not seen again in a fresh process"


class Slice:
    """One torture process: what it has reported so far, and how it ended."""

    def __init__(self, start: list[str], limit: list[str], silent_seconds_max: float):
        by_cycles = limit[0] == "--cycles"
        self.promised = int(limit[1]) if by_cycles else 0  # cycles
        # The time is no part of what a seed decides: the same seeds come in the same order under any limit.
        self.again_ = shlex.join(start + (limit if by_cycles else ["--cycles", str(CYCLES_PER_SLICE)]))
        self.silent_seconds_max_ = silent_seconds_max
        self.counters: dict = {}
        self.lines_: list[str] = []  # other than reports
        self.rest_ = b""
        self.noted: Optional[dict] = None  # the violation, as the state has it
        self.last_sign_ = time.monotonic()
        self.hung_ = False
        self.child_ = subprocess.Popen(start + limit, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=die_with_parent)
        os.set_blocking(self.child_.stdout.fileno(), False)

    def poll(self) -> bool:
        """Reads what there is; false once the process has ended and all is read."""
        ended = self.child_.poll() is not None
        self._read()
        if not ended and time.monotonic() - self.last_sign_ > self.silent_seconds_max_:
            self.hung_ = True
            self.end()
        return not ended

    def _read(self) -> None:
        while piece := self.child_.stdout.read(1 << 16):
            self.last_sign_ = time.monotonic()
            *lines, self.rest_ = (self.rest_ + piece).split(b"\n")
            for line in lines:
                self._take(line.decode("utf-8", "replace"))

    def _take(self, line: str) -> None:
        if line.startswith("{"):
            try:
                self.counters = json.loads(line)
                return
            except ValueError:
                pass
        self.lines_ = (self.lines_ + [line])[-OTHER_LINES_MAX:]

    def end(self) -> None:
        end(self.child_)
        self._read()

    def is_shrinking(self) -> bool:
        return any(line.startswith("violation:") for line in self.lines_)

    def refusal(self) -> str:
        """Why the program did not take its options, or ''."""
        return "\n".join(self.lines_) if self.child_.returncode == 2 and not self.hung_ else ""

    def violation(self) -> Optional[dict]:
        """What went wrong and the line that makes it again, the shrunk one if there is one."""
        if self.child_.returncode in (0, None) and not self.is_shrinking():
            return None
        found = {}
        for line in self.lines_:
            name, _, value = line.strip().partition(": ")
            found.setdefault(name, value)
        how = "it hangs" if self.hung_ else how_it_ended(self.child_.returncode)
        last = next((line for line in reversed(self.lines_) if line.strip()), "")
        # What a fresh process does not show under its seed alone is made again by the whole slice.
        alone = found.get("reproduce") or ("" if NOT_ALONE in found else found.get("in"))
        return {"what": found.get("shrunk") or found.get("violation") or (f"{how}: {last}" if last else how),
                "reproduce": alone or self.again_}


def how_it_ended(status: Optional[int]) -> str:
    if status is not None and status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"exit status {status}"
