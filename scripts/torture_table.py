"""What a torture prints of its state: the table, the verdicts, and how many passed and failed. Pure functions."""
from __future__ import annotations

import re

from progress import clock
from torture_state import flat

# As tests/simulation/generation.cpp names them: a crash that never came shows as 0.
CRASH_KINDS = ("any sectors lost", "files truncated", "process killed", "sectors torn", "un-synced writes kept",
               "un-synced writes lost", "writes reordered")
# What goes wrong in runs and in recoveries, but not by a crash.
FAULT_KINDS = (
    "EACCES on a call on names", "EACCES on a call on names in recovery", "EACCES on a list of a directory",
    "EACCES on a lock", "EACCES on a look at a file", "EACCES on a look at a file system",
    "EACCES on a look at a log directory", "EACCES on an open", "EIO on a call on names",
    "EIO on a list of a directory", "EIO on a lock", "EIO on a look at a file system",
    "EIO on a look at a log directory", "EIO on a read", "EIO on a read in recovery", "EIO on allocate",
    "EIO on an open", "EIO on create", "EIO on every read", "EIO on every read in recovery", "EIO on mkdir",
    "EIO on remove, harmless", "EIO on rename", "EIO on sync", "EIO on sync of a directory", "EIO on write",
    "ENOSPC on allocate", "ENOSPC on create", "ENOSPC on mkdir", "ENOSPC on rename", "ENOSPC on sync",
    "ENOSPC on sync of a directory", "ENOSPC on write", "a device stalled", "bit flipped",
    "checkpoint file: sector misplaced", "committed file: bit flipped", "committed file: file cut short",
    "committed file: garbage behind the end", "committed file: garbage of blocks", "committed file: sector misplaced",
    "committed file: sector of garbage", "committed file: sector zeroed", "committed file: zeros of blocks",
    "committed missing", "committed swapped", "continued", "continued after a kill",
    "continued in the boot of a failed sync", "continued twice", "file cut short", "frozen file: bit flipped",
    "frozen file: sector misplaced", "garbage behind the end", "garbage of blocks", "log duplicated",
    "log duplicated in another directory", "log missing", "log of another database added", "log of another run added",
    "log replaced by one of another database", "log replaced by one of another run", "log swapped",
    "logs lost, of a fresh run beside others", "no memory in recovery", "no memory while a run is continued",
    "no memory while transactions run", "no more threads for a run", "no more threads in recovery",
    "records of another database behind a log", "records of another run behind a log",
    "records of another run in a log", "requests cut short", "requests cut short in recovery", "requests interrupted",
    "requests interrupted in recovery", "run lost", "run lost, of a fresh run beside others", "sector misplaced",
    "sector of garbage", "sector zeroed", "start of a checkpoint overwritten", "start of a committed overwritten",
    "start of a committed zeroed", "start of a frozen overwritten", "start of a log overwritten",
    "start of a log zeroed", "start of a log zeroed, of a fresh run beside others", "zeros of blocks")
# Operations that a run crashed right before, as tests/simulation/slow_files.h names them: while it is made, freezes the
# run that it continues, writes a checkpoint, is committed, deletes files that are no longer needed.
CRASH_POINT = "crash before: "
CRASH_POINTS = tuple(CRASH_POINT + what for what in (
    "create checkpoint", "create committed", "create frozen", "create log", "create manifest", "create successor",
    "mkdir", "remove log", "rename committed", "rename frozen", "rename log", "rename manifest", "rename successor",
    "rewrite log", "rmdir", "sync of a directory"))
# Rarer ones of both.
RARE_KINDS = (
    "checkpoint file: bit flipped", "checkpoint file: file cut short", "checkpoint file: sector zeroed",
    "crash before: remove committed", "crash before: remove frozen", "crash before: remove successor",
    "frozen file: file cut short", "frozen file: garbage behind the end", "frozen file: sector of garbage",
    "frozen file: sector zeroed", "frozen missing", "frozen swapped", "manifest file: bit flipped",
    "manifest file: file cut short", "manifest file: sector misplaced", "manifest file: sector of garbage",
    "manifest file: sector zeroed", "manifest missing", "manifest swapped", "records of another database in a log",
    "sector of an older run", "start of a manifest zeroed", "start of a successor zeroed")
# A torture over all cells that is as long as this meets all of that, each cell (TPC-C's come four times less often),
# and so many crashes in recoveries and third crashes; one of ROUNDS_TO_MEET_RARE times the length meets RARE_KINDS too.
CYCLES_TO_MEET_ALL = 20_000
ROUNDS_TO_MEET_TPCC = 4
ROUNDS_TO_MEET_RARE = 5
IN_RECOVERY_MIN, THIRD_MIN = 2_000, 200
# Counters with a line of their own; all others are kinds of faults.
COUNTERS = ("cycles", "runs", "steps", "acknowledged", "recovered", "dropped", "refused", "in recovery",
            "third crash")


def count(number: int, what: str) -> str:
    plural = "" if number == 1 else "es" if what.endswith("s") else "s"
    return f"no {what}" if number == 0 else f"{number:,} {what}{plural}"


def table(state: dict) -> str:
    counters = counters_of(state)
    lines = counted(state, counters) if counters.get("runs", 0) > 0 else []
    return "\n".join(lines + verdicts(state))


def counters_of(state: dict) -> dict:
    """Of everything but cells."""
    return flat({name: value for name, value in state["counters"].items() if name != "cells"})


def untried(state: dict) -> list[str]:
    """The cells that no trial was of, in the program's order."""
    tried = state["counters"].get("cells", {})
    return [name for name in state["all_cells"] if tried.get(name, 0) == 0]


def never_met(state: dict) -> list[str]:
    """What a torture of this length should have met and has not; of a short one, or of some cells only, nothing."""
    counters = counters_of(state)
    cycles = counters.get("cycles", 0)
    if state["cells"] or cycles < CYCLES_TO_MEET_ALL:
        return []
    kinds = {kind: n for kind, n in counters.items() if n > 0}
    rare = RARE_KINDS if cycles >= ROUNDS_TO_MEET_RARE * CYCLES_TO_MEET_ALL else ()
    missing = [kind for kind in CRASH_KINDS + CRASH_POINTS + FAULT_KINDS + rare if kind not in kinds]
    missing += [f"{name} often enough" for name, least in (("in recovery", IN_RECOVERY_MIN), ("third crash", THIRD_MIN))
                if counters.get(name, 0) < least]
    with_tpcc = cycles >= ROUNDS_TO_MEET_TPCC * CYCLES_TO_MEET_ALL
    return missing + [name for name in untried(state) if with_tpcc or "/TPCC/" not in name]


def counted(state: dict, counters: dict) -> list[str]:
    cycles, seconds = counters.get("cycles", 0), max(state["seconds"], 0.001)
    cells = f", cells like {state['cells']}" if state["cells"] else ""
    remarks = {"cycles": goal_text(state["goal"]), "runs": f"seeds from {state['first_seed']}{cells}",
               "acknowledged": "transactions, added up over the crashes",
               "dropped": share_text(counters), "refused": "damaged files",
               "in recovery": "crashes of a recovery, a freeze, a checkpoint; nothing served yet",
               "third crash": "of a run that continued one which had continued another"}
    lines = [f"{clock(seconds)}, {cycles / seconds:,.0f} cycles/s"]
    lines += [row(name, counters[name], remarks.get(name, "")) for name in COUNTERS if name in counters]
    if state["all_cells"]:
        cells_tried = len(state["all_cells"]) - len(untried(state))
        lines.append(row("cells", cells_tried, f"of {len(state['all_cells'])}"))
    crashes = {**dict.fromkeys(CRASH_KINDS, 0), **{kind: n for kind, n in counters.items() if is_crash(kind)}}
    hit = sum(crashes[kind] > 0 for kind in CRASH_KINDS)
    lines.append(f"kinds of crashes hit: {hit} of {len(CRASH_KINDS)}")
    lines += [row(kind, crashes[kind], f"{100 * crashes[kind] / max(cycles, 1):.1f} %") for kind in sorted(crashes)]
    points = sorted(kind for kind in counters if kind.startswith(CRASH_POINT))
    lines.append(f"crash points hit: any step, and right before {len(points)} kinds of calls on files")
    lines += [row(kind, counters[kind], "") for kind in points]
    others = sorted(set(counters) - set(COUNTERS) - set(crashes) - set(points))
    return lines + (["faults by kind"] + [row(kind, counters[kind], "") for kind in others] if others else [])


def is_crash(kind: str) -> bool:
    """One of the kinds, or one at a chosen moment: "at an acknowledgement, un-synced writes lost"."""
    return kind.endswith(CRASH_KINDS)


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
    if missing := never_met(state):
        lines.append(f"FAILED: so many cycles should have met: {', '.join(missing)}")
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
    """Passed and failed: the cycles are one, what they met is one, each kept seed, control and mutant is one."""
    kept_bad = sum(not ok for ok in state["kept_seeds"].values())
    found = sum("kept" not in violation for violation in state["violations"])
    passed = len(state["kept_seeds"]) - kept_bad
    cycles = state["counters"].get("cycles", 0)
    passed += 1 if found == 0 and cycles > 0 else 0
    lacking = bool(never_met(state))
    passed += not lacking and cycles >= CYCLES_TO_MEET_ALL and not state["cells"]
    blind = sum(not verdict.startswith("ok") for verdict in state["controls"].values())
    passed += len(state["controls"]) - blind
    mutants = state["mutants"]
    passed += mutants.get("killed", 0)
    alive = len(mutants.get("survived", [])) + ("error" in mutants)
    return passed, found + kept_bad + blind + alive + lacking


def mutants_in(text: str) -> str:
    """How far score.py is."""
    return f"{len(re.findall('^ok: ', text, re.M))} killed, {len(re.findall('^SURVIVED: ', text, re.M))} survived"


def score_of(output: str, ended: str) -> dict:
    """What score.py printed; without its last line what there is, and the reason unless that is ''."""
    score = {"killed": len(re.findall(r"^ok: ", output, re.M)),
             "survived": re.findall(r"^SURVIVED: (\S+)", output, re.M)}
    if ended and not re.search(r"^\d+ passed, \d+ failed\s*$", output, re.M):
        score["error"] = f"{ended}: {(output.strip().splitlines() or [''])[-1]}"
    return score
