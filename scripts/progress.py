"""Progress with an estimate of the time left, for a terminal (one line, rewritten) or a log (one line a step).

Used by experiment/ and run_tests.py. The estimate scales expected step times by what the finished steps of
the same kind really took. Single-threaded.
"""
from __future__ import annotations

import os
import shutil
import sys
import time


def clock(seconds: float) -> str:
    whole = max(0, int(seconds + 0.5))
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


class Progress:
    def __init__(self, expected: list[tuple[str, float]], stream=sys.stdout):
        """`expected`: kind and expected seconds of every step, in order."""
        self.expected_ = expected
        self.stream_ = stream
        self.tty_ = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.start_ = time.monotonic()
        self.step_start_ = self.start_
        self.done_ = 0
        self.took_: dict[str, list[tuple[float, float]]] = {}
        self.text_ = ""
        self.drawn_ = False

    def elapsed(self) -> float:
        return time.monotonic() - self.start_

    def _scale(self, kind: str) -> float:
        pairs = self.took_.get(kind) or [p for values in self.took_.values() for p in values]
        expected = sum(p[0] for p in pairs)
        return sum(p[1] for p in pairs) / expected if expected > 0 else 1.0

    def seconds_left(self) -> float:
        left = 0.0
        for position in range(self.done_, len(self.expected_)):
            kind, seconds = self.expected_[position]
            step = seconds * self._scale(kind)
            if position == self.done_:
                step = max(0.0, step - (time.monotonic() - self.step_start_))
            left += step
        return left

    def begin(self, text: str) -> None:
        self.text_ = text
        self.step_start_ = time.monotonic()
        self.draw()

    def draw(self) -> None:
        """Call a few times per second while a step runs; does nothing off a terminal."""
        if not self.tty_:
            return
        line = (f"[{self.done_ + 1}/{len(self.expected_)}] {self.text_}   {clock(self.elapsed())} elapsed, "
                f"about {clock(self.seconds_left())} left")
        width = shutil.get_terminal_size((100, 24)).columns
        self.stream_.write("\r\x1b[2K" + line[:width - 1])
        self.stream_.flush()
        self.drawn_ = True

    def note(self, line: str) -> None:
        """A line that stays, above the rewritten one."""
        if self.drawn_:
            self.stream_.write("\r\x1b[2K")
            self.drawn_ = False
        self.stream_.write(line + "\n")
        self.stream_.flush()

    def finish(self, outcome: str, failed: bool = False) -> None:
        kind, expected = self.expected_[self.done_]
        took = time.monotonic() - self.step_start_
        if outcome != "skipped":
            self.took_.setdefault(kind, []).append((expected, took))
        self.done_ += 1
        if failed or not self.tty_:
            left = f"  about {clock(self.seconds_left())} left" if self.done_ < len(self.expected_) else ""
            self.note(f"[{self.done_}/{len(self.expected_)}] {self.text_}: {outcome} ({took:.1f} s){left}")
        else:
            self.draw()

    def close(self) -> None:
        if self.drawn_:
            self.stream_.write("\r\x1b[2K")
            self.stream_.flush()
            self.drawn_ = False
