#!/usr/bin/env python3
"""Runs build/simulation/torture for a time or a number of cycles, one process per core, and adds up.

scripts/torture calls it after the build, and the test phase `torture` directly. A process works through slices; each
slice has a block of seeds of its own, which is written to the state file before the slice begins. So a run that ends
at any moment, by Ctrl-C or worse, goes on with --resume and uses no seed twice. What a process reports about once a
second are cumulated counters; whatever they are called, they are added up by name. Single-threaded.
"""
from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from child import die_with_parent, run_child
from progress import clock

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TORTURE = "build/simulation/torture"
SCORE = os.path.join(REPOSITORY, "tests", "mutants", "score.py")
KEPT_SEEDS = os.path.join(REPOSITORY, "tests", "simulation", "kept_seeds.txt")
STATE_VERSION = 1

# A slice's runs number a few thousand at most; its seeds are never used up.
SEEDS_PER_SLICE = 1_000_000
CYCLES_PER_SLICE = 10_000
SECONDS_PER_SLICE = 60
SECONDS_BY_DEFAULT = 60.0

POLL_SECONDS = 0.05
SAVE_SECONDS = 5
SECONDS_BETWEEN_SIGNS_ON_A_TERMINAL = 2
SECONDS_BETWEEN_SIGNS = 30
# Without a report: a run that never ends is told by the program itself, after 2^28 steps, most of a minute. Also for the
# search for a smaller reproduction, which says nothing until it is done.
SILENT_SECONDS_MAX = 180.0
CONTROL_SECONDS = 30
CONTROLS = ("lying_syncs", "no_log")
KEPT_SECONDS = 120
OTHER_LINES_MAX = 40

# As tests/simulation/cycle.cpp names them: a policy that no crash followed shows as 0.
CRASH_POLICIES = ("any sectors lost", "files truncated", "sectors torn", "un-synced writes kept",
                  "un-synced writes lost", "writes reordered")
# Counters with a line of their own; all others are kinds of faults.
COUNTERS = ("cycles", "runs", "steps", "acknowledged", "recovered", "dropped", "refused")

EPILOG = """\
A cycle is a simulated run that crashes, the recovery of what the crash left, and the comparison with what really
happened. The state of a run, and what it counted, are in the state file; an older one is kept under its time.

  scripts/torture --minutes 5                 five minutes over all cells
  scripts/torture --hours 3 --detach          in the background, with a log file
  scripts/torture --show                      what it has counted so far
  scripts/torture --resume                    goes on where a run stopped, with new seeds
  scripts/torture --resume --cycles 100000    ... for so many cycles more
  scripts/torture --cells SILO/LOG_TAURUS     only cells whose name contains this
  scripts/torture --cycles 0 --controls --mutants     is the harness awake?

Ctrl-C and SIGTERM (kill PID) end it in order. Exit status: 0 no violation, 1 a violation, a control that went unseen,
a mutant that survived, or no start; 2 usage."""


# ---- Counters -----------------------------------------------------------------------------------------------

def add_up(total: dict, new: dict, before: Optional[dict] = None) -> None:
    """Adds to `total` by how much `new` exceeds `before`: numbers by key, in nested objects too."""
    for key, value in new.items():
        old = (before or {}).get(key)
        if isinstance(value, dict):
            add_up(total.setdefault(key, {}), value, old)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            total[key] = total.get(key, 0) + value - (old or 0)


def flat(counters: dict) -> dict:
    """Nested objects' numbers beside the others."""
    result: dict = {}
    for key, value in counters.items():
        add_up(result, flat(value) if isinstance(value, dict) else {key: value})
    return result


# ---- State --------------------------------------------------------------------------------------------------

def new_state(arguments: argparse.Namespace) -> dict:
    first = arguments.seed if arguments.seed is not None else random.randrange(1, 1 << 31)
    return {"version": STATE_VERSION, "first_seed": first, "next_seed": first, "cells": arguments.cells, "goal": {},
            "seconds": 0.0, "counters": {}, "violations": [], "kept_seeds": {}, "controls": {}, "mutants": {}}


def read_state(path: str) -> dict:
    """Raises SystemExit with one line."""
    try:
        with open(path, encoding="utf-8") as file:
            state = json.load(file)
    except OSError as error:
        sys.exit(f"error: cannot resume from {path}: {error.strerror}")
    except ValueError as error:
        sys.exit(f"error: {path} is no state of a torture: {error}")
    if not isinstance(state, dict) or state.get("version") != STATE_VERSION:
        sys.exit(f"error: {path} is no state of this torture: start anew, with another --state")
    return state


def write_state(path: str, state: dict) -> None:
    """A reader sees the old state or the new one."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(state, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)


def keep_older(path: str) -> None:
    if not os.path.exists(path):
        return
    base, suffix = os.path.splitext(path)
    kept = f"{base}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(os.path.getmtime(path)))}{suffix}"
    os.rename(path, kept)
    print(f"the older state is kept: {os.path.relpath(kept)}", flush=True)


def lock_state(path: str):
    """One torture per state file. Returns what must stay open. Raises SystemExit."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    lock = open(path + ".lock", "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(f"error: another torture writes {path}: let it end, or name another --state")
    return lock


def set_goal(state: dict, arguments: argparse.Namespace) -> None:
    """The goal counts from the state's beginning; what the command line asks for comes on top of what is there."""
    if arguments.cycles is not None:
        state["goal"] = {"cycles": state["counters"].get("cycles", 0) + arguments.cycles}
    elif arguments.seconds is not None:
        state["goal"] = {"seconds": state["seconds"] + arguments.seconds}
    elif not state["goal"]:
        state["goal"] = {"seconds": SECONDS_BY_DEFAULT}


# ---- A process ----------------------------------------------------------------------------------------------

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
        if self.child_.poll() is None:
            self.child_.kill()
            self.child_.wait()
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
        return {"what": found.get("shrunk") or found.get("violation") or (f"{how}: {last}" if last else how),
                "reproduce": found.get("reproduce") or found.get("in") or self.again_}


def how_it_ended(status: Optional[int]) -> str:
    if status is not None and status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"exit status {status}"


# ---- The run ------------------------------------------------------------------------------------------------

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
        self.stopped_by = ""  # a signal's name

    def cycles(self) -> int:
        return self.state_["counters"].get("cycles", 0)

    def stop(self, number: int, _frame) -> None:
        self.stopped_by = signal.Signals(number).name

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
            self.save()
            start = [self.arguments_.torture, *self.others_, "--seed", str(seed)]
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
            while not self.stopped_by:
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

    def _child(self, command: list[str], timeout: float):
        """Runs it to its end, or until a signal stops this."""
        return run_child(command, timeout, kill_when=lambda: bool(self.stopped_by), cwd=REPOSITORY)

    def replay_kept(self) -> None:
        """Seeds that once showed a violation."""
        for line in kept_seeds(self.arguments_.kept_file):
            outcome = self._child([self.arguments_.torture, *shlex.split(line), "--shrink", "0"], KEPT_SECONDS)
            if self.stopped_by:
                return
            kept = self.state_["kept_seeds"]
            kept[line] = outcome.exit_status == 0
            if outcome.exit_status != 0:
                what = next((text[len("violation: "):] for text in outcome.output.splitlines()
                             if text.startswith("violation: ")), how_it_ended(outcome.exit_status))
                self._note_down({"what": what, "reproduce": f"{self.arguments_.torture} {line}", "kept": True})

    def run_controls(self) -> None:
        """Engines that lose what they acknowledged; the harness must see it, as I1."""
        for control in CONTROLS:
            begin = time.monotonic()
            verdict = self._control(control)
            if self.stopped_by:
                return
            self.state_["controls"][control] = verdict
            self.signs.note(f"control {control}: {verdict} ({time.monotonic() - begin:.1f} s)")
            self.save()

    def _control(self, control: str) -> str:
        """A crash under one seed may lose files too, whose absence is told first: then the next seed is tried."""
        begin, seed, told = time.monotonic(), 0, ""
        while not self.stopped_by and time.monotonic() - begin < self.arguments_.control_seconds:
            seed += 1
            command = [self.arguments_.torture, "--control", control, "--seed", str(seed), "--shrink", "0",
                       "--seconds", str(self.arguments_.control_seconds), *self.others_]
            outcome = self._child(command, 2 * self.arguments_.control_seconds)
            seen = re.search(r"^violation: (.*)", outcome.output, re.M)
            if outcome.exit_status == 0:
                return f"FAILED: the harness is blind: nothing was seen under seed {seed}"
            if outcome.exit_status != 1 or not seen:
                return f"FAILED: {how_it_ended(outcome.exit_status)}: {outcome.last_line()}"
            if re.match(r"I1\b", seen[1]):
                return f"ok, seed {seed}: {seen[1]}"
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
                while child.poll() is None and not self.stopped_by:
                    self.signs.offer(lambda: f"mutants: {mutants_in(output)}")
                    time.sleep(POLL_SECONDS)
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
            ended = "" if self.stopped_by else how_it_ended(child.returncode)
            self.state_["mutants"] = score_of(text_of(output), ended)
        self.save()


def text_of(file) -> str:
    return os.pread(file.fileno(), 1 << 24, 0).decode("utf-8", "replace")


def mutants_in(output) -> str:
    text = text_of(output)
    return f"{len(re.findall('^ok: ', text, re.M))} killed, {len(re.findall('^SURVIVED: ', text, re.M))} survived"


def score_of(output: str, ended: str) -> dict:
    """What score.py printed; without its last line what there is, and the reason unless that is ''."""
    score = {"killed": len(re.findall(r"^ok: ", output, re.M)),
             "survived": re.findall(r"^SURVIVED: (\S+)", output, re.M)}
    if ended and not re.search(r"^\d+ passed, \d+ failed\s*$", output, re.M):
        score["error"] = f"{ended}: {(output.strip().splitlines() or [''])[-1]}"
    return score


def kept_seeds(path: str) -> list[str]:
    """Options of the torture, one set a line; the program's name before them is dropped."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        lines = [line.split("#", 1)[0].strip() for line in file]
    return [re.sub(r"^\S*torture\s+", "", line) for line in lines if line]


# ---- The table ----------------------------------------------------------------------------------------------

def count(number: int, what: str) -> str:
    plural = "" if number == 1 else "es" if what.endswith("s") else "s"
    return f"no {what}" if number == 0 else f"{number:,} {what}{plural}"


def table(state: dict) -> str:
    counters = flat(state["counters"])
    lines = counted(state, counters) if counters.get("runs", 0) > 0 else []
    return "\n".join(lines + verdicts(state))


def counted(state: dict, counters: dict) -> list[str]:
    cycles, seconds = counters.get("cycles", 0), max(state["seconds"], 0.001)
    cells = f", cells like {state['cells']}" if state["cells"] else ""
    remarks = {"cycles": goal_text(state["goal"]), "runs": f"seeds from {state['first_seed']}{cells}",
               "acknowledged": "transactions, added up over the crashes",
               "dropped": share_text(counters), "refused": "damaged logs"}
    lines = [f"{clock(seconds)}, {cycles / seconds:,.0f} cycles/s"]
    lines += [row(name, counters[name], remarks.get(name, "")) for name in COUNTERS if name in counters]
    crashes = {**dict.fromkeys(CRASH_POLICIES, 0), **{kind: n for kind, n in counters.items() if is_crash(kind)}}
    hit = sum(crashes[policy] > 0 for policy in CRASH_POLICIES)
    lines.append(f"crash policies hit: {hit} of {len(CRASH_POLICIES)}")
    lines += [row(kind, crashes[kind], f"{100 * crashes[kind] / max(cycles, 1):.1f} %") for kind in sorted(crashes)]
    others = sorted(set(counters) - set(COUNTERS) - set(crashes))
    return lines + (["faults by kind"] + [row(kind, counters[kind], "") for kind in others] if others else [])


def is_crash(kind: str) -> bool:
    """One of the policies, or one at a chosen moment: "at an acknowledgement, un-synced writes lost"."""
    return kind.endswith(CRASH_POLICIES)


def row(name: str, number, remark: str) -> str:
    return f"  {name:<46}{number:>18,}  {remark}".rstrip()


def goal_text(goal: dict) -> str:
    if "cycles" in goal:
        return f"of {goal['cycles']:,}"
    return f"within {clock(goal['seconds'])}" if goal else ""


def share_text(counters: dict) -> str:
    seen = counters.get("recovered", 0) + counters.get("dropped", 0)
    return f"{100 * counters.get('dropped', 0) / seen:.2f} % of the transactions in the logs" if seen else ""


def verdicts(state: dict) -> list[str]:
    lines = []
    if state["kept_seeds"]:
        bad = sum(not ok for ok in state["kept_seeds"].values())
        lines.append(f"kept seeds: {len(state['kept_seeds']) - bad} of {len(state['kept_seeds'])} pass")
    lines += [f"control {name}: {verdict}" for name, verdict in state["controls"].items()]
    mutants = state["mutants"]
    if mutants:
        total = mutants["killed"] + len(mutants["survived"])
        lines.append(f"mutants: {mutants['killed']} of {total} killed"
                     + (f"; survived: {', '.join(mutants['survived'])}" if mutants["survived"] else "")
                     + (f"; FAILED: {mutants['error']}" if "error" in mutants else ""))
    lines.append(f"violations: {len(state['violations'])}")
    for violation in state["violations"]:
        lines += [f"  {violation['what']}", f"  reproduce: {violation['reproduce']}"]
    return lines


def tally(state: dict) -> tuple[int, int]:
    """Passed and failed: the cycles are one, each kept seed, control and mutant is one."""
    kept_bad = sum(not ok for ok in state["kept_seeds"].values())
    found = sum("kept" not in violation for violation in state["violations"])
    passed = len(state["kept_seeds"]) - kept_bad
    passed += 1 if found == 0 and state["counters"].get("cycles", 0) > 0 else 0
    blind = sum(not verdict.startswith("ok") for verdict in state["controls"].values())
    passed += len(state["controls"]) - blind
    mutants = state["mutants"]
    passed += mutants.get("killed", 0)
    alive = len(mutants.get("survived", [])) + ("error" in mutants)
    return passed, found + kept_bad + blind + alive


# ---- The command line ---------------------------------------------------------------------------------------

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
    for unit, seconds in (("seconds", 1), ("minutes", 60), ("hours", 3600)):
        goal.add_argument(f"--{unit}", metavar=unit[0].upper(), type=number_from(0, float, seconds), dest="seconds",
                          help={"seconds": "or for a time (default: 1 minute)"}.get(unit))
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
                        help="first two engines that lose what they acknowledged: they must be caught")
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
    arguments = parse_arguments(argv)
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
    if arguments.resume:
        state = read_state(arguments.state)
    else:
        keep_older(arguments.state)
        state = new_state(arguments)
    set_goal(state, arguments)
    torture = Torture(arguments, state)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, torture.stop)
    torture.save()
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {goal_text(state['goal'])}, seeds from {state['next_seed']}, "
          f"{count(arguments.jobs, 'process')}", flush=True)
    steps = [torture.replay_kept] if arguments.kept else []
    steps += [torture.run_controls] if arguments.controls else []
    steps += [torture.run]
    steps += [torture.score_mutants] if arguments.mutants is not None else []
    for step in steps:
        if not torture.stopped_by:
            step()
    torture.signs.note(table(state))
    if torture.stopped_by:
        print(f"stopped by {torture.stopped_by}; {resume_line(arguments.state)} goes on")
    passed, failed = tally(state)
    print(f"{passed} passed, {failed} failed")
    lock.close()
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as failure:
        sys.exit(f"error: {failure.filename or 'cannot go on'}: {failure.strerror}")
