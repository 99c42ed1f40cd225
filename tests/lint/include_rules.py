#!/usr/bin/env python3
"""Includes point one way only: from a floor to the floors below it.

And the engine reaches threads, clocks and chance through one header, base/host.h: the simulation could not decide about
any other. Lines are prefetched by base/cache_line.h, whose prefetches compilers do not drop.

Run by test.sh; prints one line per violation and exits 1 if there is any. The floors are a table, so that an
exception is a line of it, with its reason.
"""
from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Callable

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')

# Folder -> what it may include, as path prefixes. A folder may always include itself.
FLOORS = {
    "base": (),
    "storage": ("base/",),
    "concurrency_control": ("storage/", "base/"),
    "logging": ("storage/", "base/"),
    "benchmarks": ("storage/", "base/"),
    "multi_master": ("logging/", "storage/", "base/"),
    "system": ("multi_master/", "concurrency_control/", "logging/", "benchmarks/", "storage/", "base/"),
    "tests": ("",),
}
# --verify compares with the reference replay, which shares no code with the engine.
INDEPENDENT = {"system/reference/": ("system/reference/", "storage/", "base/", "benchmarks/txn_context.h")}
# Folders of logging/ that are no scheme.
NOT_SCHEMES = ("backup", "device", "gaps", "records")

# (file prefix, include prefix): allowed against the table, and why.
EXCEPTIONS = (
    # Micro-benchmarks measure log append, LSN vectors and look-ups from outside, like main does.
    ("benchmarks/micro/", ""),
    # These turn config.h into types.
    ("system/", "config.h"),
)

# The part of the standard library that base/host.h stands for, with base/affinity.h for the CPUs of threads, and the
# files that may name it: these headers, code that no simulation runs, the flag that signal handlers set, and a notice
# that is given once.
HOST = re.compile(r"\bstd::(atomic|atomic_ref|mutex|shared_mutex|thread|jthread|condition_variable\w*|this_thread|async|"
                  r"random_device|latch|barrier|counting_semaphore|chrono::\w+_clock)\b|\bsched_setaffinity\b")
BEYOND_THE_SEAM = ("base/host.h", "base/affinity.h", "base/stop.", "benchmarks/micro/",
                   "logging/device/posix_file_system.cpp", "system/command_line/environment.cpp", "tests/")


def tracked_sources(root: str, endings: tuple[str, ...] = (".h", ".cpp")) -> list[str]:
    """Source files, as paths from the root; git's list where there is a repository, so build output is out."""
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], check=True,
                                capture_output=True, text=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        listed = []
        for directory, folders, files in os.walk(root):
            folders[:] = [f for f in folders if f not in ("build", ".git", "out", "logs")]
            listed += [os.path.relpath(os.path.join(directory, f), root) for f in files]
    return sorted(p for p in listed if p.endswith(endings) and os.path.isfile(os.path.join(root, p)))


def allowed(path: str, include: str) -> bool:
    folder = path.split("/")[0]
    if any(path.startswith(a) and include.startswith(b) for a, b in EXCEPTIONS):
        return True
    for folder_of, may in INDEPENDENT.items():
        if path.startswith(folder_of):
            return include.startswith(may)
    if include.startswith(folder + "/"):
        return not crosses_schemes(path, include)
    return any(include.startswith(prefix) for prefix in FLOORS.get(folder, ("",)))


def crosses_schemes(path: str, include: str) -> bool:
    """logging/NAME and what all schemes share do not know another logging/NAME."""
    parts, included = path.split("/"), include.split("/")
    if parts[0] != "logging" or included[0] != "logging" or len(included) < 3 or included[1] in NOT_SCHEMES:
        return False
    return len(parts) < 3 or parts[1] != included[1]


def violations(root: str) -> list[str]:
    found = []
    for path in tracked_sources(root):
        if "/" not in path:
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not path.startswith(BEYOND_THE_SEAM) and (named := HOST.search(line.split("//")[0])):
                    found.append(f"{path}:{number}: {named[0]} goes past base/host.h, and the simulation")
                if "__builtin_prefetch(" in line.split("//")[0]:
                    found.append(f"{path}:{number}: compilers may drop __builtin_prefetch; base/cache_line.h has Prefetch")
                match = INCLUDE.match(line)
                if match and not allowed(path, match[1]):
                    found.append(f"{path}:{number}: {path.split('/')[0]} must not include {match[1]}")
    return found


def report(find: Callable[[str], list[str]], none: str) -> int:
    """What is found in the tree that the command line names, this one without; `none` where there is nothing."""
    found = find(sys.argv[1] if len(sys.argv) > 1 else REPOSITORY)
    print("\n".join(found) if found else none)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(report(violations, "includes point downward only"))
