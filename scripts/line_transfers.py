#!/usr/bin/env python3
"""How many cache lines do workers pass to each other? *Modelled*: tests/instruments/line_transfers/README.md.

    scripts/line_transfers validate                 this host's second worker against the model's
    scripts/line_transfers sweep                    every concurrency control x log with 1 to 64 workers
    scripts/line_transfers sweep --cells 'SILO/*' --workers 1,2,4 --preset ice_lake
    scripts/line_transfers plot                     transfers by data structure, and the curve of throughput
    scripts/line_transfers shared                   lines that all workers transfer about once per transaction, by cell
    scripts/line_transfers places NO_WAIT/LOG_TAURUS/LOG_COMMAND --workers 64     lines of code, most events first

Results are added to those in out/lines, so a command that was interrupted goes on. `plot` refuses results unless
`validate` has found at least ten cells within 15 %. Needs ./rundb-all, build/lines/line_transfers and
build/micro/line_bench, and says how they are built.
"""
from __future__ import annotations

import argparse
import csv
import fnmatch
import json
import os
import shlex
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stop
if __name__ == "__main__":
    stop.install()
from experiment import records
from host import positive
from lines import prediction, runs
from lines.runs import Cell, Failure, Plan
from lines.structures import STRUCTURES, Namer

OUT = os.path.join(runs.REPOSITORY, "out", "lines")
WORKERS = "1,2,4,8,16,32,64"
WORKERS_MAX = 64
EPILOG = __doc__.split("\n", 2)[2]
# One worker of these is compared with two: every concurrency control without a log, command logs, and some data logs,
# whose throughput is the memory's rather than the lines'.
VALIDATED = [Cell(*name.split("/")) for name in (
    [f"{cc}/LOG_NO/-" for cc in ("NO_WAIT", "WAIT_DIE", "DL_DETECT", "SILO", "TICTOC", "HEKATON")] +
    [f"NO_WAIT/{log}/LOG_COMMAND" for log in ("LOG_SERIAL", "LOG_TAURUS", "LOG_ELEDA")] +
    [f"{cc}/{log}/LOG_COMMAND" for cc in ("WAIT_DIE", "SILO") for log in ("LOG_SERIAL", "LOG_TAURUS")] +
    ["DL_DETECT/LOG_TAURUS/LOG_COMMAND", "HEKATON/LOG_TAURUS/LOG_COMMAND",
     "NO_WAIT/LOG_TAURUS/LOG_DATA", "NO_WAIT/LOG_PLOVER/LOG_DATA", "SILO/LOG_BATCH/LOG_DATA"])]


def workers_list(text: str) -> list[int]:
    try:
        numbers = sorted({int(word) for word in text.split(",")})
    except ValueError:
        numbers = [0]
    if numbers[0] < 1 or numbers[-1] > WORKERS_MAX:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of numbers from 1 to {WORKERS_MAX}; write {WORKERS}")
    return numbers


def chosen(cells: list[Cell], pattern: str) -> list[Cell]:
    found = [cell for cell in cells if any(fnmatch.fnmatchcase(cell.name, part) for part in pattern.split(","))]
    if not found:
        raise Failure(f"no cell matches '{pattern}'; one is {cells[0].name}")
    return found


def path_in(options: argparse.Namespace, name: str) -> str:
    return os.path.join(options.out, name)


def write_csv(path: str, rows: list[dict], columns: list[str]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def write_json(path: str, value: object) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)


def host_costs(options: argparse.Namespace) -> dict:
    """Measured once for all of a folder's results, and taken from out/lines by other folders, as one figure may draw
    several; what changes with the cores that threads run on is measured again in each round of `validate`."""
    path = path_in(options, "costs.json")
    if not os.path.exists(path):
        known = os.path.join(OUT, "costs.json")
        if os.path.exists(known):
            shutil.copy(known, path)
        else:
            write_json(path, runs.host_costs())
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def keep_flags(options: argparse.Namespace) -> None:
    """All results of a folder have the same flags; a plot takes them as they are."""
    if options.command in ("plot", "shared"):
        return
    path = path_in(options, "flags.txt")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            kept = file.read().strip()
        if kept != options.flags:
            raise Failure(f"{options.out} has results with --flags='{kept}': give another --out, or the same flags")
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(options.flags + "\n")
    runs.COMMON_FLAGS += shlex.split(options.flags)


def point_line(point: dict) -> str:
    return (f"{point['cell']:34} {point['mode']:5}{point['transfer_nanos']:6.0f} ns {point['one'] / 1e6:7.2f}"
            f"{point['two'] / 1e6:7.2f} M/s   predicted {point['predicted']:5.2f}   measured {point['measured']:5.2f}"
            f"   error {point['error']:+5.0%}")


def validate(options: argparse.Namespace) -> int:
    runs.check_binaries(runs.ENGINE, runs.MODEL, runs.BENCH)
    cells = chosen(VALIDATED, options.cells)
    path = path_in(options, "rounds.jsonl")
    costs = host_costs(options)
    with tempfile.TemporaryDirectory(prefix="lines-", dir=options.dir) as log_dir:
        for number in range(options.rounds):
            for cell in cells:
                found = records.append(path, prediction.measure_round(cell, options.seconds, log_dir))
                costs_then = found["costs"]
                modes = [prediction.mode_of(*pair) or "changed: not used" for pair in zip(costs_then, costs_then[1:])]
                print(f"round {number + 1}: {cell.name}: the host was {', '.join(modes)}", flush=True)
        points = []
        for point in prediction.points_of(records.load(path)):
            points.append(prediction.predict(point, costs, log_dir, options.model_ms / 1000))
            print(point_line(points[-1]), flush=True)
    write_json(path_in(options, "validation.json"), points)
    write_csv(path_in(options, "validation.csv"), points,
              ["cell", "mode", "runs", "transfer_nanos", "access_nanos", "one", "two", "predicted", "measured", "error"])
    holds, text = prediction.verdict(points)
    print(text)
    return 0 if holds else 1


def singles(options: argparse.Namespace, cells: list[Cell], log_dir: str) -> dict[str, float]:
    """One worker's throughput on this host, by cell; measured where it is not known yet."""
    path = path_in(options, "singles.jsonl")
    known = {row["cell"]: row["one"] for row in records.load(path)}
    for cell in cells:
        if cell.name not in known:
            one = max(runs.measure(cell, 1, options.seconds, log_dir) for _ in range(2))
            known[cell.name] = records.append(path, {"cell": cell.name, "one": one})["one"]
    return known


def sweep_costs(options: argparse.Namespace) -> dict:
    costs = host_costs(options)
    if options.preset is not None:
        costs = {**costs, "transfer_nanos": runs.PRESETS[options.preset][0]}
    if options.transfer_nanos is not None:
        costs = {**costs, "transfer_nanos": options.transfer_nanos}
    return costs


def sweep(options: argparse.Namespace) -> int:
    runs.check_binaries(runs.ENGINE, runs.MODEL, runs.BENCH)
    cells = chosen(runs.pairs(), options.cells)
    costs = sweep_costs(options)
    path = path_in(options, "sweep.jsonl")
    done = {(row["cell"], row["workers"], row["transfer_nanos"]) for row in records.load(path)}
    namer = Namer(runs.MODEL)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="lines-", dir=options.dir) as log_dir:
        for cell in cells:
            missing = [n for n in options.workers if (cell.name, n, costs["transfer_nanos"]) not in done]
            if not missing:
                continue
            try:
                sweep_cell(options, cell, missing, Plan(costs, 0, costs["level2_bytes"], options.model_ms / 1000, 300,
                                                        log_dir), namer)
            except Failure as failure:
                print(f"error: {failure}", file=sys.stderr)
                failed += 1
    write_sweep_csv(options)
    return 1 if failed else 0


def sweep_cell(options: argparse.Namespace, cell: Cell, numbers: list[int], plan: Plan, namer: Namer) -> None:
    one = singles(options, [cell], plan.log_dir)[cell.name]
    plan, _ = prediction.calibrate(cell, one, plan)
    for workers in numbers:
        row = runs.simulate(cell, workers, plan, namer)
        row.update(modelled=True, transfer_nanos=plan.costs["transfer_nanos"], preset=options.preset or "this host",
                   single=one, access_nanos=plan.costs["access_nanos"])
        records.append(path_in(options, "sweep.jsonl"), row)
        print(f"{cell.name:34} {workers:3} workers: {row['dirty'] + row['upgrades']:7.2f} transfers per transaction, "
              f"{row['modelled_throughput'] / 1e6:7.2f} M/s (modelled)", flush=True)


def write_sweep_csv(options: argparse.Namespace) -> None:
    rows = []
    for row in records.load(path_in(options, "sweep.jsonl")):
        sums = {structure: counts["dirty"] + counts["upgrades"] for structure, counts in row["structures"].items()}
        rows.append({**row, **sums})
    write_csv(path_in(options, "sweep.csv"), rows,
              ["cell", "workers", "preset", "transfer_nanos", "modelled_throughput", "abort_rate", "dirty", "upgrades",
               "clean", "false_sharing", *STRUCTURES])


def plot(options: argparse.Namespace) -> int:
    path = path_in(options, "validation.json")
    if not os.path.exists(path):
        raise Failure("the model has not been compared with this host: run `scripts/line_transfers validate`")
    with open(path, encoding="utf-8") as file:
        holds, text = prediction.verdict(json.load(file))
    if not holds:
        raise Failure(f"no plot of a model that does not predict this host: {text}")
    rows = [row for row in records.load(path_in(options, "sweep.jsonl"))
            if options.transfer_nanos in (None, row["transfer_nanos"])]
    if not rows:
        raise Failure("nothing to plot: run `scripts/line_transfers sweep`")
    from lines import drawing  # matplotlib takes a second to load
    for written in drawing.draw(rows, options.out, text):
        print(written)
    return 0


def shared(options: argparse.Namespace) -> int:
    """In Markdown, from the sweep; a line for each cell with `--workers`, and for each line of it."""
    workers = options.workers[-1]
    rows = {row["cell"]: row for row in records.load(path_in(options, "sweep.jsonl")) if row["workers"] == workers}
    if not rows:
        raise Failure(f"no sweep has {workers} workers: run `scripts/line_transfers sweep`")
    print("| cell | line | transfers per transaction, modelled | code |\n|---|---|---|---|")
    for cell, row in sorted(rows.items()):
        for line in row["shared_lines"]:
            print(f"| {cell} | {line['structure']} | {line['transfers']:.2f} | `{line['code']}` |")
    return 0


def places(options: argparse.Namespace) -> int:
    runs.check_binaries(runs.MODEL, runs.BENCH)
    cell = runs.parse_cell(options.cell)
    costs = sweep_costs(options)
    namer = Namer(runs.MODEL)
    with tempfile.TemporaryDirectory(prefix="lines-", dir=options.dir) as log_dir:
        plan = Plan(costs, 0, costs["level2_bytes"], options.model_ms / 1000, 300, log_dir)
        record, report = runs.reports_of(cell, options.workers[-1], plan)
    print("per transaction (modelled): dirty, upgrades, false sharing; structure; code")
    for place in runs.places_of(report["places"], record["metrics"]["executed_txns"], namer)[:options.count]:
        print(f"{place['dirty']:8.3f} {place['upgrades']:8.3f} {place['false_sharing']:8.3f}  {place['structure']:17} "
              f"{place['code']}")
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in (("validate", validate), ("sweep", sweep), ("plot", plot), ("shared", shared), ("places", places)):
        command = commands.add_parser(name)
        command.set_defaults(run=function)
        command.add_argument("--out", default=OUT, help="folder of the results (default: out/lines)")
        command.add_argument("--dir", default="/dev/shm", help="where log files go (default: /dev/shm)")
        command.add_argument("--flags", default="", help="more flags of the engine, such as '-Ln4 -z0.9'; results with other "
                             "flags need another --out")
        command.add_argument("--model_ms", type=positive(float), default=4, help="milliseconds of the model (default: 4)")
        command.add_argument("--transfer_nanos", type=positive(float), help="of a line (default: as measured here)")
        if name in ("validate", "sweep"):
            command.add_argument("--cells", default="*", help="patterns such as 'SILO/*,*/LOG_NO/-'")
            command.add_argument("--seconds", type=positive(float), default=2, help="of a run on this host (default: 2)")
        if name in ("sweep", "shared", "places"):
            command.add_argument("--workers", type=workers_list, default=workers_list(WORKERS), help=f"default: {WORKERS}")
        if name in ("sweep", "places"):
            command.add_argument("--preset", choices=sorted(runs.PRESETS), help="a server's cost of a transfer: " + "; ".join(
                f"{key}: {nanos:g} ns, {text}" for key, (nanos, text) in sorted(runs.PRESETS.items())))
        if name == "validate":
            command.add_argument("--rounds", type=int, default=3, help="of measuring, to add to those in --out (default: 3)")
        if name == "places":
            command.add_argument("cell")
            command.add_argument("--count", type=positive(int), default=30, help="of lines (default: 30)")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        os.makedirs(options.out, exist_ok=True)
        keep_flags(options)
        return options.run(options)
    except (Failure, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    stop.run(main)
