"""The state of a torture: counts, seeds used, violations, and the goal. A file that is replaced as a whole.

scripts/torture.py alone writes it, under a lock.
"""
from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import sys
import time
from typing import Optional

STATE_VERSION = 2
SECONDS_BY_DEFAULT = 60.0


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


def new_state(arguments: argparse.Namespace) -> dict:
    first = arguments.seed if arguments.seed is not None else random.randrange(1, 1 << 31)
    return {"version": STATE_VERSION, "first_seed": first, "next_seed": first, "cells": arguments.cells, "goal": {},
            "all_cells": [], "next_cell": 0, "seconds": 0.0, "counters": {}, "violations": [], "kept_seeds": {},
            "controls": {}, "mutants": {}}


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
