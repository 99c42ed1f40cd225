"""What a torture prints of its state: the table, the verdicts, and how many passed and failed. Pure functions."""
from __future__ import annotations

import re

from progress import clock
from torture_state import flat

# As tests/simulation/generation.cpp names them: a crash that never came shows as 0.
CRASH_KINDS = ("any sectors lost", "files truncated", "process killed", "sectors torn", "un-synced writes kept",
               "un-synced writes lost", "writes reordered")
# Counters with a line of their own; all others are kinds of faults.
COUNTERS = ("cycles", "runs", "steps", "acknowledged", "recovered", "dropped", "refused", "in recovery",
            "third crash")


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
               "dropped": share_text(counters), "refused": "damaged files",
               "in recovery": "crashes of a recovery, a freeze, a checkpoint; nothing served yet",
               "third crash": "of a run that continued one which had continued another"}
    lines = [f"{clock(seconds)}, {cycles / seconds:,.0f} cycles/s"]
    lines += [row(name, counters[name], remarks.get(name, "")) for name in COUNTERS if name in counters]
    crashes = {**dict.fromkeys(CRASH_KINDS, 0), **{kind: n for kind, n in counters.items() if is_crash(kind)}}
    hit = sum(crashes[kind] > 0 for kind in CRASH_KINDS)
    lines.append(f"kinds of crashes hit: {hit} of {len(CRASH_KINDS)}")
    lines += [row(kind, crashes[kind], f"{100 * crashes[kind] / max(cycles, 1):.1f} %") for kind in sorted(crashes)]
    others = sorted(set(counters) - set(COUNTERS) - set(crashes))
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
