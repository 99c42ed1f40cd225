#!/usr/bin/env python3
"""The main job: every cell run, crashed, recovered and verified; then a table, plots and a report.

run.sh calls it after the build. Cells and steps are those of experiments/main_job.yaml. Cells without a log and a few
others, which all figures are read against, are measured three times first, in rounds. Then, per cell with a log: a
measured run to a clean end and its recovery, and a run that is killed with SIGKILL at a random time and its recovery;
both recoveries are verified. Results are appended to OUT/results.jsonl step by step, so that nothing is lost by Ctrl-C.
"""
from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from importlib import util

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stop
if __name__ == "__main__":
    stop.install()
import host

if util.find_spec("yaml"):  # the options are read without, before it is installed
    from experiment import records, spec
    try:
        from experiment import cell_runs, cells, summary
    except spec.SpecError as error:
        sys.exit(f"error: {error}")

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(
        prog=os.environ.get("DBX_PROGRAM", "main_job.py"), allow_abbrev=False,
        description="Builds the engine, then runs, crashes, recovers and verifies every cell of workload x "
                    "concurrency control x log scheme, and leaves a table, out/report.html and out/plots/.")
    parser.add_argument("--seconds", type=host.positive(float), default=0.5,
                        help="measured seconds of each run (default: %(default)s)")
    parser.add_argument("--rounds", type=host.positive(int), default=3,
                        help="how often cells without a log and headline cells are measured, in alternation; 1: once, "
                             "and never without look-ahead (default: %(default)s)")
    parser.add_argument("--out", default=os.path.relpath(os.path.join(REPOSITORY, "out")),
                        help="where results, plots and the report go (default: out, in the repository)")
    parser.add_argument("--log_dir", default=os.path.relpath(os.path.join(REPOSITORY, "logs")),
                        help="where log files go; its disk is what is measured (default: logs)")
    parser.add_argument("--log_limit", type=host.parse_bytes, default="1G",
                        help="a run stops cleanly when its logs reach this size in all (default: 1G)")
    parser.add_argument("--cells", default="", metavar="PATTERNS",
                        help="comma-separated patterns such as 'YCSB/*' or '*TAURUS*' (default: all)")
    parser.add_argument("--threads", type=host.positive(int), default=min(cores, 4),
                        help="worker threads (default: %(default)s)")
    parser.add_argument("--loggers", type=host.positive(int), default=min(cores, 2),
                        help="log streams of Taurus (default: %(default)s)")
    parser.add_argument("--rows", type=host.positive(int), default=200_000,
                        help="YCSB rows of 1 KB (default: %(default)s)")
    parser.add_argument("--warehouses", type=host.positive(int), default=2,
                        help="TPC-C warehouses (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None,
                        help="of the kill times and the calls (default: the time)")
    parser.add_argument("--keep_logs", action="store_true", help="do not delete logs once verified")
    parser.add_argument("--short", action="store_true", help="a few seconds for a try: small tables, short runs")
    parser.add_argument("--list_cells", action="store_true", help="print the cells and leave")
    parser.add_argument("--report_only", action="store_true", help="draw table, plots and report from OUT again")
    parser.add_argument("--no_report", action="store_true", help="a table, but no plots and no report")
    parser.add_argument("--no_limits", action="store_true", help="do not measure the host's limits first")
    parser.add_argument("--parse_only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--binary", default=os.path.join(REPOSITORY, "rundb-all"), help=argparse.SUPPRESS)
    parser.add_argument("--host_limits", default=os.path.join(REPOSITORY, "build/micro/host_limits"),
                        help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.loggers > 16:
        parser.error("--loggers: there are at most 16 log streams")
    if arguments.short:
        arguments.seconds = min(arguments.seconds, 0.3)
        arguments.log_limit = min(arguments.log_limit, 64 << 20)
        arguments.rows = min(arguments.rows, 20_000)
        arguments.rounds = 1
    if arguments.seed is None:
        arguments.seed = int(time.time()) & 0x7FFFFFFF
    return arguments


def draw_all(out: str, with_report: bool) -> None:
    """Table, plots and report from OUT/results.jsonl. The drawing library is loaded only here."""
    rows = records.load(os.path.join(out, "results.jsonl"), strict=True)
    print(summary.table(rows))
    if not with_report:
        return
    try:
        from experiment import bars, cells_page
    except ImportError as error:
        print(f"no plots and no report: {error} (Debian: apt-get install python3-matplotlib)", file=sys.stderr)
        return
    # Side by side: each takes seconds, and both draw everything.
    files = multiprocessing.get_context("fork").Process(
        target=bars.write_plots, args=(rows, os.path.join(out, "plots")))
    files.start()
    try:
        cells_page.write_report(rows, os.path.join(out, "report.html"))
        while files.is_alive():
            files.join(0.1)
            stop.check()
    finally:
        files.kill()  # SIGTERM it would only note
        files.join()
    if files.exitcode != 0:
        raise RuntimeError(f"no plots: their process ended with {files.exitcode}")
    print(f"report: {os.path.join(out, 'report.html')}   plots: {os.path.join(out, 'plots')}   "
          f"records: {os.path.join(out, 'results.jsonl')}")


def main(argv: list[str]) -> int:
    arguments = parse_arguments(argv)
    if not util.find_spec("yaml"):
        if not arguments.parse_only:
            print("error: this needs python3-yaml; scripts/setup.sh installs it", file=sys.stderr)
        return 0 if arguments.parse_only else 2
    try:
        cells.select_cells(arguments.cells)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if arguments.parse_only:
        return 0
    if arguments.list_cells:
        print("\n".join(cell.path for cell in cells.all_cells()))
        return 0
    if arguments.report_only:
        draw_all(arguments.out, with_report=True)
        return 0

    job = cell_runs.CellRunner(arguments)
    job.prepare()
    status = 0
    try:
        if not job.run():
            status = 1
    except stop.Stopped:
        job.progress_.note("interrupted: the run in progress was killed; the results so far follow")
    finally:
        job.close()
    draw_all(arguments.out, not arguments.no_report and not stop.requested())
    if status == 1:
        print("some steps FAILED: see the lines above, and the commands to run them again")
    return status


if __name__ == "__main__":
    stop.run(main)
