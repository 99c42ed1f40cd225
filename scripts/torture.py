#!/usr/bin/env python3
"""Runs build/simulation/torture for a time or a number of cycles, one process per core, and adds up.

scripts/torture calls it after the build, and the test phase `torture` directly. A process works through slices; each
slice has a block of seeds of its own, which is written to the state file before the slice begins. So a run that ends
at any moment, by Ctrl-C or worse, goes on with --resume and uses no seed twice. What a process reports about once a
second are cumulated counters; whatever they are called, they are added up by name. Single-threaded.
"""
from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stop
if __name__ == "__main__":
    stop.install()
from child import die_with_parent, end, run_child
from progress import clock
from torture_slice import CYCLES_PER_SLICE, REPOSITORY, Slice, how_it_ended
from torture_state import add_up, keep_older, lock_state, new_state, read_state, set_goal, write_state
from torture_table import count, goal_text, mutants_in, score_of, table, tally

TORTURE = "build/simulation/torture"
SCORE = os.path.join(REPOSITORY, "tests", "mutants", "score.py")
KEPT_SEEDS = os.path.join(REPOSITORY, "tests", "simulation", "kept_seeds.txt")

# A slice's runs number a few thousand at most; its seeds are never used up.
SEEDS_PER_SLICE = 1_000_000
# A slice of CYCLES_PER_SLICE comes through more of them than that: the next one begins so many behind it.
CELLS_PER_SLICE = 150
SECONDS_PER_SLICE = 60

POLL_SECONDS = 0.05
SAVE_SECONDS = 5
SECONDS_BETWEEN_SIGNS_ON_A_TERMINAL = 2
SECONDS_BETWEEN_SIGNS = 30
# Without a report: a run that never ends is told by the program itself, after 2^25 steps, some seconds. Also for the
# search for a smaller reproduction, which says nothing until it is done.
SILENT_SECONDS_MAX = 180.0
CONTROL_SECONDS = 30
CYCLES_OF_DETERMINISM = 100
KEPT_SECONDS = 120
LIST_SECONDS = 30

EPILOG = """\
A cycle is a simulated run that crashes, the recovery of what the crash left, and the comparison with what really
happened. The state of a run, and what it counted, are in the state file; an older one is kept under its time.

  scripts/torture --minutes 5                 five minutes over all cells
  scripts/torture --hours 3 --detach          in the background, with a log file
  scripts/torture --show                      what it has counted so far
  scripts/torture --resume                    goes on where a run stopped, with new seeds
  scripts/torture --resume --cycles 100000    ... for so many cycles more
  scripts/torture --cells SILO/LOG_TAURUS     only cells whose name contains this
  scripts/torture --cells MM/                 only clusters of masters
  scripts/torture --cycles 0 --controls --mutants     self-test: are known faults detected?

Ctrl-C and SIGTERM (kill PID) end it in order. Exit status: 0 no violation, 1 a violation, a control that went unseen,
a mutant that survived, or no start; 2 usage; 130 or 143 where a signal ended it and none of these was found."""


# ---- The run -------------------------------------------------------------------------------------------------

class Signs:
    """One line of progress: rewritten on a terminal, a new one now and then elsewhere."""

    def __init__(self, stream=sys.stdout):
        self.stream_ = stream
        self.tty_ = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.every_ = SECONDS_BETWEEN_SIGNS_ON_A_TERMINAL if self.tty_ else SECONDS_BETWEEN_SIGNS
        self.last_ = time.monotonic()
        self.drawn_ = False

    def offer(self, line) -> None:
        if time.monotonic() - self.last_ < self.every_:
            return
        self.last_ = time.monotonic()
        if self.tty_:
            width = shutil.get_terminal_size((100, 24)).columns
            self.stream_.write("\r\x1b[2K" + line()[:width - 1])
            self.stream_.flush()
            self.drawn_ = True
        else:
            self.note(line())

    def note(self, line: str) -> None:
        """A line that stays."""
        self.stream_.write(("\r\x1b[2K" if self.drawn_ else "") + line + "\n")
        self.stream_.flush()
        self.drawn_ = False


class Torture:
    def __init__(self, arguments: argparse.Namespace, state: dict):
        self.arguments_ = arguments
        self.state_ = state
        self.others_ = ["--cells", state["cells"]] if state["cells"] else []
        self.signs = Signs()
        self.slices_: list[Slice] = []
        self.begin_ = self.last_save_ = time.monotonic()
        self.cycles_before_ = self.cycles()
        self.seconds_before_ = state["seconds"]
        self.violations_before_ = len(state["violations"])

    def cycles(self) -> int:
        return self.state_["counters"].get("cycles", 0)

    def save(self) -> None:
        self.last_save_ = time.monotonic()
        write_state(self.arguments_.state, self.state_)

    def line(self) -> str:
        seconds = max(time.monotonic() - self.begin_, 0.001)
        rate = (self.cycles() - self.cycles_before_) / seconds
        goal, left = self.state_["goal"], None
        if "seconds" in goal:
            left = goal["seconds"] - self.state_["seconds"]
        elif rate > 0:
            left = (goal["cycles"] - self.cycles()) / rate
        return (f"{self.cycles():,} cycles, {rate:,.0f}/s, {clock(self.state_['seconds'])} elapsed, "
                f"{'about ' + clock(left) + ' left' if left is not None else 'no estimate yet'}, "
                f"{count(len(self.state_['violations']), 'violation')}")

    def _limit(self) -> Optional[list[str]]:
        """Of the next slice; None when nothing is left to begin."""
        goal = self.state_["goal"]
        if "seconds" in goal:
            left = goal["seconds"] - self.state_["seconds"]
            return ["--seconds", f"{min(left, SECONDS_PER_SLICE):.2f}"] if left > 0.1 else None
        # What runs already will do its part; the rest is shared, so that no core ends long before another.
        promised = sum(s.promised - s.counters.get("cycles", 0) for s in self.slices_)
        left = goal["cycles"] - self.cycles() - max(promised, 0)
        idle = self.arguments_.jobs - len(self.slices_)
        return ["--cycles", str(min(-(-left // idle), CYCLES_PER_SLICE))] if left > 0 else None

    def _begin_slices(self) -> None:
        while len(self.slices_) < self.arguments_.jobs:
            limit = self._limit()
            if limit is None:
                return
            seed = self.state_["next_seed"]
            self.state_["next_seed"] = seed + SEEDS_PER_SLICE
            cell = self.state_["next_cell"]
            share = float(limit[1]) / (CYCLES_PER_SLICE if limit[0] == "--cycles" else SECONDS_PER_SLICE)
            self.state_["next_cell"] = cell + max(1, int(CELLS_PER_SLICE * share))
            self.save()
            start = [self.arguments_.torture, *self.others_, "--seed", str(seed), "--first_cell", str(cell)]
            self.slices_.append(Slice(start, limit, self.arguments_.hang_seconds))

    def _take_counters(self, one: Slice, act):
        before = one.counters
        result = act()
        if one.counters is not before:
            add_up(self.state_["counters"], one.counters, before)
        return result

    def _poll_slices(self) -> None:
        for one in list(self.slices_):
            alive = self._take_counters(one, one.poll)
            if one.is_shrinking() and one.noted is None:
                self._note(one)
            if alive:
                continue
            self.slices_.remove(one)
            if one.refusal():
                sys.stderr.write(one.refusal() + "\n")
                raise SystemExit(2)
            if one.violation():
                self._note(one)

    def _note(self, one: Slice) -> None:
        """A violation is safe in the state as soon as it is seen; what it shrank to replaces it."""
        violation = one.violation()
        if one.noted == violation:
            return
        if one.noted is None:
            one.noted = violation
            self._note_down(one.noted)
        else:
            one.noted.update(violation)
            self.signs.note(f"  shrunk: {violation['reproduce']}")
            self.save()

    def _note_down(self, violation: dict) -> None:
        self.state_["violations"].append(violation)
        self.signs.note(f"violation: {violation['what']}\n  reproduce: {violation['reproduce']}")
        self.save()

    def enough(self) -> bool:
        return len(self.state_["violations"]) - self.violations_before_ >= self.arguments_.max_violations

    def run(self) -> None:
        self.begin_ = time.monotonic()
        try:
            while not stop.requested():
                self.state_["seconds"] = round(self.seconds_before_ + time.monotonic() - self.begin_, 3)
                if self.enough():
                    self._end_slices(lambda one: not one.is_shrinking())
                else:
                    self._begin_slices()
                if not self.slices_:
                    return
                self._poll_slices()
                if time.monotonic() - self.last_save_ > SAVE_SECONDS:
                    self.save()
                self.signs.offer(self.line)
                time.sleep(POLL_SECONDS)
        finally:
            self._end_slices(lambda one: True)
            self.save()

    def _end_slices(self, which) -> None:
        for one in [one for one in self.slices_ if which(one)]:
            self._take_counters(one, one.end)
            if one.is_shrinking():
                self._note(one)
            self.slices_.remove(one)

    # --- what comes before and after

    def replay_kept(self) -> None:
        """Seeds that once showed a violation."""
        for line in kept_seeds(self.arguments_.kept_file):
            outcome = run_child([self.arguments_.torture, *shlex.split(line), "--shrink", "0"], KEPT_SECONDS,
                                cwd=REPOSITORY)
            kept = self.state_["kept_seeds"]
            kept[line] = outcome.exit_status == 0
            if outcome.exit_status != 0:
                what = next((text[len("violation: "):] for text in outcome.output.splitlines()
                             if text.startswith("violation: ")), how_it_ended(outcome.exit_status))
                self._note_down({"what": what, "reproduce": f"{self.arguments_.torture} {line}", "kept": True})

    def run_controls(self) -> None:
        """Under each log scheme: an engine that loses what it acknowledged, which the harness must see, as I1; and the
        same seeds twice, as a seed must decide everything."""
        engines = [name for name in self.state_["all_cells"] if "/LOG_" in name]
        schemes = sorted({"/LOG_" + name.split("/LOG_")[1].split("/")[0] for name in engines})
        checks = [("no_log", lambda: self._control("no_log", self.state_["cells"]))]
        for scheme in schemes:
            checks.append((f"lying_syncs{scheme}", lambda scheme=scheme: self._control("lying_syncs", scheme + "/")))
            checks.append((f"same seeds{scheme}", lambda scheme=scheme: self._same_seeds_again(scheme + "/")))
        if len(engines) < len(self.state_["all_cells"]):
            checks.append(("same seeds/MM", lambda: self._same_seeds_again("MM/")))
        for name, check in checks:
            begin = time.monotonic()
            verdict = check()
            self.state_["controls"][name] = verdict
            self.signs.note(f"control {name}: {verdict} ({time.monotonic() - begin:.1f} s)")
            self.save()

    def _same_seeds_again(self, cells: str) -> str:
        command = [self.arguments_.torture, "--cycles", str(CYCLES_OF_DETERMINISM), "--shrink", "0", "--cells", cells]
        outcomes = [run_child(command, 2 * self.arguments_.control_seconds, cwd=REPOSITORY) for _ in range(2)]
        counted = [outcome.last_line() for outcome in outcomes]
        if any(outcome.exit_status != 0 for outcome in outcomes) or not counted[0].startswith("{"):
            return f"FAILED: {how_it_ended(outcomes[0].exit_status)}: {counted[0]}"
        return "ok" if counted[0] == counted[1] else f"FAILED: {counted[0]} and then {counted[1]}"

    def _control(self, control: str, cells: str) -> str:
        """Something acknowledged must be lost, and all else must hold. Under one seed the loss may be
        of files, or of recovered transactions before any acknowledgement: then the next seed is tried."""
        begin, seed, told = time.monotonic(), 0, ""
        while time.monotonic() - begin < self.arguments_.control_seconds:
            seed += 1
            command = [self.arguments_.torture, "--control", control, "--seed", str(seed), "--shrink", "0",
                       "--seconds", str(self.arguments_.control_seconds), *(["--cells", cells] if cells else [])]
            outcome = run_child(command, 2 * self.arguments_.control_seconds, cwd=REPOSITORY)
            seen = re.search(r"^violation: (.*)", outcome.output, re.M)
            if outcome.exit_status == 0:
                return f"FAILED: the harness is blind: nothing was seen under seed {seed}"
            if outcome.exit_status != 1 or not seen:
                return f"FAILED: {how_it_ended(outcome.exit_status)}: {outcome.last_line()}"
            if re.match(r"I1\b", seen[1]):
                return f"ok, seed {seed}: {seen[1]}"
            if not seen[1].startswith("lost: "):
                return f"FAILED: more than acknowledged transactions is wrong: {seen[1]}"
            told = seen[1]
        return f"FAILED: no I1 under {count(seed, 'seed')}, but: {told}"

    def score_mutants(self) -> None:
        arguments = self.arguments_
        command = [sys.executable, SCORE, "--torture", os.path.join(REPOSITORY, arguments.torture),
                   "--seconds", str(arguments.mutant_seconds), "--jobs", str(arguments.jobs)]
        command += ["--rotate", str(arguments.mutants)] if arguments.mutants else []
        with tempfile.TemporaryFile("w+") as output:
            # In a group of its own: what it started ends with it.
            child = subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=output,
                                     stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=die_with_parent)
            try:
                while child.poll() is None and not stop.requested():
                    self.signs.offer(lambda: f"mutants: {mutants_in(text_of(output))}")
                    time.sleep(POLL_SECONDS)
            finally:
                end(child)
            ended = "" if stop.requested() else how_it_ended(child.returncode)
            self.state_["mutants"] = score_of(text_of(output), ended)
        self.save()


def cells_of(torture: str, text: str) -> list[str]:
    """The names of the program's cells that contain `text`. Raises SystemExit: a program without cells is none of ours,
    or has nothing to torture.
    """
    listed = run_child([torture, "--list_cells", text], LIST_SECONDS, cwd=REPOSITORY)
    if listed.exit_status == 2:
        raise _refusal(listed.last_line(), 2)
    if listed.exit_status != 0 or not listed.output.split():
        raise _refusal(f"error: {torture} --list_cells lists no cells: it is not the torture that `make torture` builds",
                       1)
    return listed.output.split()


def _refusal(line: str, status: int) -> SystemExit:
    print(line, file=sys.stderr)
    return SystemExit(status)


def kept_seeds(path: str) -> list[str]:
    """Options of the torture, one set a line; the program's name before them is dropped."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        lines = [line.split("#", 1)[0].strip() for line in file]
    return [re.sub(r"^\S*torture\s+", "", line) for line in lines if line]


def text_of(file) -> str:
    return os.pread(file.fileno(), 1 << 24, 0).decode("utf-8", "replace")


# ---- The command line ----------------------------------------------------------------------------------------

def number_from(least, kind, times: float = 1):
    def parse(text: str):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value < 1e15:
            raise argparse.ArgumentTypeError(f"'{text}' must be a number from {least} on")
        return value * times if times != 1 else value
    return parse


def default_state() -> str:
    return os.path.relpath(os.path.join(REPOSITORY, "out", "torture.json"))


def resume_line(state: str) -> str:
    return "scripts/torture --resume" + ("" if state == default_state() else f" --state {shlex.quote(state)}")


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=os.environ.get("DBX_PROGRAM", "torture.py"), allow_abbrev=False, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Runs the engine in simulation, crashes it, recovers it and looks for whatever was lost,\n"
                    "under one seed after the other, on every core; ends with a table.")
    goal = parser.add_mutually_exclusive_group()
    goal.add_argument("--cycles", metavar="N", type=number_from(0, int), help="until so many cycles are done")
    goal.add_argument("--seconds", metavar="S", type=number_from(0, float), help="or for a time (default: 1 minute)")
    goal.add_argument("--minutes", metavar="M", type=number_from(0, float, 60), dest="seconds", help="the same")
    goal.add_argument("--hours", metavar="H", type=number_from(0, float, 3600), dest="seconds", help="the same")
    parser.add_argument("--cells", default="", metavar="TEXT", help="only cells whose name contains this")
    parser.add_argument("--seed", metavar="N", type=number_from(0, int),
                        help="the first one (default: any; it is printed)")
    parser.add_argument("--jobs", type=number_from(1, int), metavar="N", default=len(os.sched_getaffinity(0)),
                        help="processes (default: one per core)")
    parser.add_argument("--max_violations", type=number_from(1, int), metavar="N", default=1,
                        help="end after so many (default: 1)")
    parser.add_argument("--state", metavar="FILE", default=default_state(),
                        help="counts, seeds used and violations (default: out/torture.json)")
    parser.add_argument("--resume", action="store_true", help="go on with the state's goal, cells and counts")
    parser.add_argument("--show", action="store_true", help="print the state's table and leave")
    parser.add_argument("--detach", action="store_true", help="run in the background")
    parser.add_argument("--log", metavar="FILE", help="where a detached run prints (default: beside the state)")
    parser.add_argument("--kept", action="store_true", help="first the seeds of tests/simulation/kept_seeds.txt")
    parser.add_argument("--controls", action="store_true",
                        help="first engines that lose what they acknowledged: they must be caught")
    parser.add_argument("--mutants", nargs="?", type=number_from(1, int), const=0, metavar="K",
                        help="afterwards all mutants, or K of them (others each day), and how many were killed")
    parser.add_argument("--mutant_seconds", type=number_from(1, float), metavar="S", default=10.0,
                        help="a mutant survives that is not caught in this time (default: 10)")
    parser.add_argument("--torture", default=TORTURE, help=argparse.SUPPRESS)
    parser.add_argument("--kept_file", default=KEPT_SEEDS, help=argparse.SUPPRESS)
    parser.add_argument("--hang_seconds", type=number_from(0.1, float), default=SILENT_SECONDS_MAX,
                        help=argparse.SUPPRESS)
    parser.add_argument("--control_seconds", type=number_from(0.1, float), default=CONTROL_SECONDS,
                        help=argparse.SUPPRESS)
    parser.add_argument("--parse_only", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.resume and (arguments.cells or arguments.seed is not None):
        parser.error("--resume takes cells and seeds from the state: leave out --cells and --seed")
    if arguments.log is None:
        arguments.log = os.path.splitext(arguments.state)[0] + ".log"
    return arguments


def detach(arguments: argparse.Namespace, argv: list[str]) -> int:
    lock_state(arguments.state).close()
    command = [sys.executable, os.path.abspath(__file__), *(word for word in argv if word != "--detach")]
    with open(arguments.log, "a", encoding="utf-8") as log:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        # Whatever refuses to start does so at once.
        if child.wait(timeout=1.0) != 0:
            with open(arguments.log, encoding="utf-8") as log:
                sys.exit((log.read().splitlines() or [f"error: see {arguments.log}"])[-1])
    except subprocess.TimeoutExpired:
        pass
    resume = resume_line(arguments.state)
    print(f"running in the background as process {child.pid}\n"
          f"  tail -f {shlex.quote(arguments.log)}\n"
          f"  {resume.replace('--resume', '--show')}\n"
          f"  kill {child.pid}    ends it in order; {resume} goes on")
    return 0


def main(argv: list[str]) -> int:
    try:
        return torture_of(parse_arguments(argv), argv)
    except BrokenPipeError:
        raise
    except OSError as failure:
        raise _refusal(f"error: {failure.filename or 'cannot go on'}: {failure.strerror}", 1) from None


def torture_of(arguments: argparse.Namespace, argv: list[str]) -> int:
    if arguments.parse_only:
        return 0
    if arguments.show:
        print(table(read_state(arguments.state)))
        return 0
    if not os.access(os.path.join(REPOSITORY, arguments.torture), os.X_OK):
        sys.exit(f"error: {arguments.torture} is missing; build it with `make torture`, or use scripts/torture")
    if arguments.detach:
        return detach(arguments, argv)
    lock = lock_state(arguments.state)
    state = read_state(arguments.state) if arguments.resume else new_state(arguments)
    set_goal(state, arguments)
    state["all_cells"] = cells_of(arguments.torture, state["cells"])
    if not arguments.resume:
        keep_older(arguments.state)
    torture = Torture(arguments, state)
    torture.save()
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {goal_text(state['goal'])}, seeds from {state['next_seed']}, "
          f"{count(arguments.jobs, 'process')}", flush=True)
    steps = [torture.replay_kept] if arguments.kept else []
    steps += [torture.run_controls] if arguments.controls else []
    steps += [torture.run]
    steps += [torture.score_mutants] if arguments.mutants is not None else []
    with contextlib.suppress(stop.Stopped):
        for step in steps:
            stop.check()
            step()
    torture.signs.note(table(state))
    if stop.requested():
        print(f"stopped by {stop.name()}; {resume_line(arguments.state)} goes on")
    passed, failed = tally(state)
    print(f"{passed} passed, {failed} failed")
    lock.close()
    return 1 if failed else 0


if __name__ == "__main__":
    stop.run(main)
