#!/usr/bin/env python3
"""Does HEKATON's memory stop growing? One long contended run, whose resident memory is sampled every few seconds.

    scripts/version_memory.py                                  ten minutes at theta 0.9 with 10 accesses
    scripts/version_memory.py --minutes 60 --csv memory.csv
    scripts/version_memory.py -- --isolation_level=SNAPSHOT    more flags for the run, or others
    scripts/version_memory.py -- --cc=NO_WAIT                  what grows without versions

Prints a line a minute, then what the engine itself counts as kept for versions, and a verdict: from the second minute's
median to the last one's the process must grow by less than 2 %. The first minute, in which rows are loaded and versions
come to their number, does not count. Exits 0 if it holds, 1 if not, 4 if the run failed.
"""
from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Iterator

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stop
if __name__ == "__main__":
    stop.install()
from child import POLL_SECONDS, die_with_parent, end, is_missing, shell_line
from experiment import records
from host import positive

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GROWTH_MAX = 0.02
MINUTES_MIN = 3  # the first, one to compare with, and one to compare
MIB = 1 << 20
END_SECONDS_MAX = 60  # to load, and to end after the time is over


@dataclass(frozen=True)
class Sample:
    seconds: float  # since the process was started
    resident_bytes: int


def by_minute(samples: list[Sample], minute_seconds: float = 60) -> list[list[int]]:
    """Of each minute from the first on: what was resident. A minute without a sample, of a host that stood still, is
    empty.
    """
    minutes: list[list[int]] = []
    for sample in samples:
        number = int(sample.seconds / minute_seconds)
        minutes += [[] for _ in range(number + 1 - len(minutes))]
        minutes[number].append(sample.resident_bytes)
    return minutes


def ends(minutes: list[list[int]]) -> tuple[float, float]:
    """The medians to compare: of the second minute and of the last. Raises ValueError where there are not two."""
    known = [statistics.median(minute) for minute in minutes[1:] if minute]
    if len(known) < MINUTES_MIN - 1:
        raise ValueError(f"too few samples for a verdict: it takes {MINUTES_MIN} minutes")
    return known[0], known[-1]


def growth(minutes: list[list[int]]) -> float:
    first, last = ends(minutes)
    return last / first - 1


def minute_line(number: int, resident: list[int]) -> str:
    if not resident:
        return f"minute {number}: no sample"
    return (f"minute {number}: {statistics.median(resident) / MIB:,.1f} MiB resident, "
            f"{min(resident) / MIB:,.1f} to {max(resident) / MIB:,.1f}")


def verdict(minutes: list[list[int]]) -> tuple[bool, str]:
    (first, last), share = ends(minutes), growth(minutes)
    text = f"from the second minute to the last: {(last - first) / MIB:+,.1f} MiB, {100 * share:+.2f} %"
    return share < GROWTH_MAX, f"{text}, {'' if share < GROWTH_MAX else 'not '}below {100 * GROWTH_MAX:g} %"


def resident_bytes(process: int) -> int:
    """0 once it has ended."""
    try:
        with open(f"/proc/{process}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def run_command(arguments: argparse.Namespace, json_file: str) -> list[str]:
    flags = ["--cc=HEKATON", "--log=LOG_NO", "--workload=YCSB", f"--synth_table_size={arguments.rows}",
             "--zipf_theta=0.9", "--req_per_query=10", f"--thread_cnt={arguments.threads}"]
    given = {flag.split("=")[0] for flag in arguments.flags}
    return [arguments.binary, *(flag for flag in flags if flag.split("=")[0] not in given), *arguments.flags,
            f"--seconds={arguments.minutes * arguments.minute_seconds:g}", f"--json={json_file}"]


class Run:
    """The process, and what was seen of it."""

    def __init__(self, command: list[str], output):
        self.start_ = time.monotonic()
        self.child_ = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                       start_new_session=True, preexec_fn=die_with_parent)

    def samples(self, every_seconds: float, end_seconds: float) -> Iterator[Sample]:
        """Until `end_seconds` after the start, or the end of the process if that is earlier."""
        next_at = every_seconds
        while next_at < end_seconds:
            while (left := self.start_ + next_at - time.monotonic()) > 0:
                time.sleep(min(left, POLL_SECONDS))
                stop.check()
            resident = resident_bytes(self.child_.pid)
            seconds = time.monotonic() - self.start_
            if resident == 0 or seconds >= end_seconds:
                return
            yield Sample(seconds, resident)
            next_at = max(next_at + every_seconds, seconds)

    def wait(self, seconds: float) -> int:
        """The exit status; that of SIGKILL if it does not end in time."""
        deadline = time.monotonic() + seconds
        while self.child_.poll() is None and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            stop.check()
        self.kill()
        return self.child_.returncode

    def kill(self) -> None:
        end(self.child_)


def measure(arguments: argparse.Namespace, run: Run) -> list[Sample]:
    """Samples, as they come into the CSV; prints each minute once it is over."""
    samples: list[Sample] = []
    shown = 0
    with open(arguments.csv, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["seconds", "resident_bytes"])
        for sample in run.samples(arguments.every, arguments.minutes * arguments.minute_seconds):
            samples.append(sample)
            table.writerow([f"{sample.seconds:.1f}", sample.resident_bytes])
            file.flush()
            minutes = by_minute(samples, arguments.minute_seconds)
            for number in range(shown, len(minutes) - 1):
                print(minute_line(number + 1, minutes[number]), flush=True)
            shown = len(minutes) - 1
    if samples:
        print(minute_line(shown + 1, by_minute(samples, arguments.minute_seconds)[shown]), flush=True)
    return samples


def own_count(metrics: dict) -> str:
    return (f"the engine's own count at the end: {metrics['version_bytes'] / MIB:,.1f} MiB for versions, "
            f"{metrics['memory_bytes'] / MIB:,.1f} MiB for tables, indexes and versions; "
            f"{metrics['executed_txns'] / 1e6:,.1f} M transactions")


def judge(arguments: argparse.Namespace, directory: str) -> int:
    json_file, output_file = os.path.join(directory, "record.json"), os.path.join(directory, "output")
    command = run_command(arguments, json_file)
    print(shell_line([word for word in command if not word.startswith("--json=")]), flush=True)
    with open(output_file, "wb") as output:
        run = Run(command, output)
        try:
            samples = measure(arguments, run)
            status = run.wait(arguments.minutes * arguments.minute_seconds + END_SECONDS_MAX)
        except BaseException:
            run.kill()
            raise
    rows = records.load(json_file)
    if status != 0 or not rows:
        with open(output_file, encoding="utf-8", errors="replace") as output:
            print(f"error: the run ended with {status}: {(output.read().strip().splitlines() or [''])[-1]}",
                  file=sys.stderr)
        return 4
    print(own_count(rows[-1]["metrics"]))
    try:
        holds, text = verdict(by_minute(samples, arguments.minute_seconds))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    print(("PASS: " if holds else "FAIL: ") + text)
    return 0 if holds else 1


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=positive(int), default=10, help="default: %(default)s; at least 3")
    parser.add_argument("--every", type=positive(float), default=5.0, help="seconds between samples (default: 5)")
    parser.add_argument("--rows", type=positive(int), default=1_000_000, help="of 1 KB (default: %(default)s)")
    parser.add_argument("--threads", type=positive(int), default=2, help="workers (default: 2)")
    parser.add_argument("--csv", default=os.path.join(REPOSITORY, "out", "version_memory.csv"),
                        help="where the samples go (default: out/version_memory.csv)")
    parser.add_argument("--binary", default=os.path.join(REPOSITORY, "rundb-all"), help=argparse.SUPPRESS)
    parser.add_argument("--minute_seconds", type=positive(float), default=60.0, help=argparse.SUPPRESS)
    parser.add_argument("flags", nargs="*", help="more flags for the run, behind --")
    arguments = parser.parse_args(argv)
    if arguments.minutes < MINUTES_MIN:
        parser.error(f"--minutes: a verdict takes {MINUTES_MIN}")
    return arguments


def main(argv: list[str]) -> int:
    arguments = parse_arguments(argv)
    if is_missing(arguments.binary):
        return 4
    try:
        os.makedirs(os.path.dirname(os.path.abspath(arguments.csv)), exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="version_memory-") as directory:
            return judge(arguments, directory)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4


if __name__ == "__main__":
    stop.run(main)
