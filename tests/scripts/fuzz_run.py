#!/usr/bin/env python3
"""Every fuzz target over its corpus, then for its share of --seconds with new inputs; one line per target.

`make fuzz` builds the targets. An input that finds something stays in build/fuzz/found/; once it is understood it
goes to tests/fuzz/corpus/TARGET/found-NAME. What new inputs reach is kept in build/fuzz/corpus/TARGET.

    tests/scripts/fuzz_run.py --seconds 3600 --target recovery
"""
from __future__ import annotations

import argparse
import glob
import os
import random
import re
import subprocess
import sys

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SEEDS = "tests/fuzz/corpus"
KEPT = "build/fuzz/corpus"
FOUND = "build/fuzz/found"
INPUT_BYTES_MAX = 4096
INPUT_SECONDS_MAX = 10
MEMORY_MIB_MAX = 2048


def targets() -> list[str]:
    sources = sorted(glob.glob(os.path.join(REPOSITORY, "tests/fuzz/*_fuzz.cpp")))
    return [os.path.basename(path)[:-len("_fuzz.cpp")] for path in sources]


def run(target: str, seconds: int, seed: int) -> tuple[str, int]:
    """What went wrong, or '', and how many new inputs were tried. Prints the target's line if nothing went wrong."""
    seeds, kept = f"{SEEDS}/{target}", f"{KEPT}/{target}"
    for folder in (kept, FOUND):
        os.makedirs(os.path.join(REPOSITORY, folder), exist_ok=True)
    limits = [f"-timeout={INPUT_SECONDS_MAX}", f"-rss_limit_mb={MEMORY_MIB_MAX}", f"-artifact_prefix={FOUND}/{target}-"]
    known = sorted(os.path.join(seeds, name) for name in os.listdir(os.path.join(REPOSITORY, seeds)))
    replay = [f"build/fuzz/{target}", *limits, *known]
    search = [f"build/fuzz/{target}", *limits, f"-max_len={INPUT_BYTES_MAX}", f"-max_total_time={seconds}",
              f"-seed={seed}", kept, seeds]
    for command in [replay] + ([search] if seconds > 0 else []):
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            return f"{target}: exit status {done.returncode}, seed {seed}: {' '.join(command)}\n{done.stderr[-4000:]}", 0
    counts = re.findall(r"^Done (\d+) runs", done.stderr, re.M)
    tried = int(counts[-1]) if counts and seconds > 0 else 0
    print(f"ok {target}: {len(known)} known inputs, {tried:,} new ones", flush=True)
    return "", tried


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the fuzz targets; ends with 'N passed, M failed'.")
    parser.add_argument("--seconds", type=int, default=30, help="for new inputs, over all targets (30)")
    parser.add_argument("--target", help="only this one")
    parser.add_argument("--seed", type=int, default=random.randrange(1, 2**31))
    arguments = parser.parse_args()
    chosen = [t for t in targets() if arguments.target in (None, t)]
    if not chosen:
        parser.error(f"no target is called '{arguments.target}'; the targets are: {', '.join(targets())}")
    share = max(arguments.seconds // len(chosen), 1) if arguments.seconds > 0 else 0
    results = [run(target, share, arguments.seed) for target in chosen]
    failures = [failure for failure, _ in results if failure]
    for failure in failures:
        print(failure)
    print(f"{sum(tried for _, tried in results):,} new inputs in all")
    print(f"{len(chosen) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
