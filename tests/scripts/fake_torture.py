#!/usr/bin/env python3
"""A stand-in for build/simulation/torture: it takes its options, and counts without doing anything.

A run is 8 cycles and takes FAKE_RUN_SECONDS (0.002). The command lines go to the file FAKE_CALLS. FAKE=WORD changes
what happens: violation, unshrunk, not_alone, long_shrink, abort, silence (after 5 runs each), blind, other and worse (in
a control), moody (the same seeds count otherwise), survive (the mutant two). FAKE_MUTANTS stands in for the list of two
mutants.
"""
import json
import os
import signal
import sys
import time

FAKE = os.environ.get("FAKE", "")
CELLS = ["NO_WAIT/LOG_SERIAL/LOG_DATA/TEST/1", "SILO/LOG_TAURUS/LOG_DATA/TPCC/2"]
REPRODUCE = "build/simulation/torture --cells NO_WAIT/LOG_SERIAL/LOG_DATA/TEST/1 --seed 77 --cycles 1"


def report(runs):
    print(json.dumps({"runs": runs, "cycles": 8 * runs, "steps": 1000 * runs, "acknowledged": 9 * runs,
                      "recovered": 99 * runs, "dropped": runs, "refused": runs, "sectors torn": 7 * runs,
                      "faults": {"bit flipped": runs}, "cells": {CELLS[0]: runs},
                      **({"mood": time.monotonic()} if FAKE == "moody" else {})}), flush=True)


def violate(what):
    print(f"violation: {what}\n  in: {REPRODUCE} --crashes 8", flush=True)
    if FAKE == "not_alone":
        print("not seen again in a fresh process: only in the course of all seeds from 1 on", flush=True)
        sys.exit(1)
    if FAKE == "long_shrink":
        time.sleep(60)
    if FAKE != "unshrunk":
        print(f"shrunk: {what}\n  reproduce: {REPRODUCE} --txns 1", flush=True)
    sys.exit(1)


def go_wrong():
    if FAKE in ("violation", "unshrunk", "not_alone", "long_shrink"):
        violate("I1: pretended")
    if FAKE == "abort":
        print("internal check failed: pretended", flush=True)
        os.kill(os.getpid(), signal.SIGABRT)
    if FAKE == "silence":
        time.sleep(60)


def main():
    if "--list_mutants" in sys.argv:
        print(os.environ.get("FAKE_MUTANTS", "one\t\tthe first\t\t\ntwo\tLOG_TAURUS\tthe second\t\t"))
        return
    if "--list_cells" in sys.argv:
        print("\n".join(CELLS))
        return
    options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    if "FAKE_CALLS" in os.environ:
        with open(os.environ["FAKE_CALLS"], "a", encoding="utf-8") as file:
            file.write(json.dumps(options) + "\n")
    if options.get("--cells") == "nix":
        print("error: no cell is named like nix", file=sys.stderr)
        sys.exit(2)
    if "--control" in options and FAKE != "blind":
        violate("I3: more" if FAKE == "worse" else
                "I1: lost" if int(options["--seed"]) > 2 and FAKE != "other" else "lost: no such file")
    if "--mutant" in options and not (FAKE == "survive" and options["--mutant"] == "two"):
        violate("I1: lost")
    seconds, cycles = float(options.get("--seconds", 0)), int(options.get("--cycles", 1000))
    if FAKE in ("blind", "survive"):
        seconds = min(seconds, 0.1)
    begin, runs = time.monotonic(), 0
    while time.monotonic() - begin < seconds if seconds else 8 * runs < cycles:
        time.sleep(float(os.environ.get("FAKE_RUN_SECONDS", "0.002")))
        runs += 1
        report(runs)
        if runs == 5:
            go_wrong()
    report(runs)


if __name__ == "__main__":
    main()
