#!/usr/bin/env python3
"""A stand-in for build/mutants/all_tests: it takes gtest's filter and DBX_MUTANT, and has one test.

That one fails under a mutant and passes without. FAKE_TEST=WORD changes it: passes, fails (always), crashes, hangs
(instead of failing), none (there is no such test).
"""
import os
import signal
import sys
import time

FAKE = os.environ.get("FAKE_TEST", "")


def main():
    mutant = os.environ.get("DBX_MUTANT")
    if mutant == "nix":
        print("error: DBX_MUTANT: no mutant is called 'nix'", file=sys.stderr)
        sys.exit(2)
    print(f"[==========] Running {'0 tests from 0 test suites' if FAKE == 'none' else '1 test from 1 test suite'}.",
          flush=True)
    if mutant and FAKE == "crashes":
        os.kill(os.getpid(), signal.SIGABRT)
    if mutant and FAKE == "hangs":
        time.sleep(60)
    sys.exit(FAKE == "fails" or mutant is not None and FAKE == "")


if __name__ == "__main__":
    main()
