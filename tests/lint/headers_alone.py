#!/usr/bin/env python3
"""Every header compiles alone: including it first in an empty file needs nothing before it.

Run by test.sh (full). Uses $CXX (default g++), as many at a time as $DBX_JOBS says (default: all cores).
"""
from __future__ import annotations

import concurrent.futures
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from include_rules import REPOSITORY, tracked_sources

FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-march=x86-64-v2", "-fsyntax-only", "-I.", "-x", "c++"]


def compile_alone(header: str) -> str:
    """'' or what the compiler says."""
    command = [os.environ.get("CXX", "g++"), *FLAGS, "-include", header, "/dev/null"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{header} does not compile alone:\n{done.stderr.strip()[:1500]}"


def main() -> int:
    # config.h is no header of its own: system/pairs/configured.h alone reads it.
    headers = [p for p in tracked_sources(REPOSITORY) if p.endswith(".h") and "/" in p]
    jobs = int(os.environ.get("DBX_JOBS") or len(os.sched_getaffinity(0)))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        failures = [text for text in pool.map(compile_alone, headers) if text]
    print("\n".join(failures))
    passed = len(headers) - len(failures)
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
