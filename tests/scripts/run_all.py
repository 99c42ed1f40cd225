#!/usr/bin/env python3
"""The tests of the scripts, a process for each file and as many at a time as there are jobs: run_all.py [JOBS].

What a file's tests print comes in one piece, with the time that they took. Ends with "N passed, M failed".
"""
from __future__ import annotations

import glob
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "scripts"))
import stop
if __name__ == "__main__":
    stop.install()
from child import run_child

SECONDS_MAX = 600  # of one file
# Those that take longest begin first.
SLOWEST = ("overview_test", "torture_test", "experiment_test", "main_job_test")


def run_file(module: str) -> tuple[str, int, int]:
    """What to print of it, and how many tests passed and failed."""
    begin = time.monotonic()
    outcome = run_child([sys.executable, "-m", "unittest", "-v", module], SECONDS_MAX, cwd=HERE)
    ran = re.search(r"^Ran (\d+) tests? in", outcome.output, re.M)
    ended = re.search(r"^(?:OK|FAILED)(?: \((.*)\))?$", outcome.output, re.M)
    told = dict(re.findall(r"(failures|errors|unexpected successes|skipped)=(\d+)", ended[1] or "")) if ended else {}
    failed = sum(int(number) for what, number in told.items() if what != "skipped")
    passed = int(ran[1]) - failed - int(told.get("skipped", 0)) if ran else 0
    if outcome.exit_status != 0 and failed == 0:
        failed = 1
    verdict = "ok" if failed == 0 else "FAILED"
    text = f"{verdict} {module}: {passed} passed, {failed} failed, {time.monotonic() - begin:.0f} s"
    return (f"{outcome.output}\n{text}" if failed else text), passed, failed


def main(argv: list[str]) -> int:
    modules = sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(HERE, "*_test.py")))
    modules.sort(key=lambda module: module not in SLOWEST)
    passed = failed = 0
    with ThreadPoolExecutor(int(argv[0]) if argv else os.cpu_count() or 1) as pool:
        for future in as_completed([pool.submit(run_file, module) for module in modules]):
            text, more, wrong = future.result()
            passed, failed = passed + more, failed + wrong
            print(text, flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    stop.run(main)
