#!/usr/bin/env python3
"""What would a cluster do with a host for each of its processes? *Modelled*: tests/simulation/model/README.md.

    scripts/cluster_model calibrate         costs of this host, from runs of one and two real masters
    scripts/cluster_model sweep             masters x sharing x mix x seeds, by the same code on virtual cores
    scripts/cluster_model show              the sweep's table
    scripts/cluster_model plot              Figure 7 a, b of Taurus MM: throughput relative to one master

Results are added to those in out/cluster_model, so a sweep that was interrupted goes on; those of other costs or
parameters are kept apart. Needs build/simulation/cluster_model (make cluster_model); calibrate needs ./rundb-all and
build/micro/tcp_network_bench, too.
"""
from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from statistics import median

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stop
if __name__ == "__main__":
    stop.install()
from child import run_child
from experiment import records

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(REPOSITORY, "out", "cluster_model")
ENGINE = os.path.join(REPOSITORY, "rundb-all")
MODEL = os.path.join(REPOSITORY, "build", "simulation", "cluster_model")
BENCH = os.path.join(REPOSITORY, "build", "micro", "tcp_network_bench")
BUILT_BY = {ENGINE: "make rundb-all LOCK_TABLES=", MODEL: "make cluster_model",
            BENCH: "make build/micro/tcp_network_bench"}
MIXES = ("WRITE_ONLY", "READ_WRITE")
SHARINGS = (0, 10, 30, 50)
MASTERS = (1, 2, 4, 8)
TIMEOUT_SECONDS = 170
ROWS = 10_000  # of a table, here and in the real runs that costs are taken from
PAGE_STORES = 2


class Failure(Exception):
    """One line for the user."""


def check_binaries(*binaries: str) -> None:
    for binary in binaries:
        if not os.access(binary, os.X_OK):
            raise Failure(f"{binary} is missing; build it with `{BUILT_BY[binary]}`")


def output_of(command: list[str]) -> str:
    outcome = run_child(command, TIMEOUT_SECONDS)
    if outcome.timed_out:
        raise Failure(f"no end after {TIMEOUT_SECONDS} s: {' '.join(command)}")
    if outcome.exit_status != 0:
        raise Failure(f"exit status {outcome.exit_status}: {outcome.last_line()}: {' '.join(command)}")
    return outcome.output


# ---- Costs -----------------------------------------------------------------------------------------------

def rate_of_bench(under_way: int, body_bytes: int) -> float:
    """Requests of one client that the server's network thread answers in a second of its processor time; the best of
    five, as other programs on the host only add to it."""
    texts = [output_of([BENCH, "1", str(under_way), str(body_bytes)]) for _ in range(5)]
    return max(float(re.search(r"([\d.]+) k/s a core", text)[1]) for text in texts) * 1e3


def network_costs() -> dict:
    """A request is read and answered: two batches where one is under way, parts of large ones where many are."""
    alone, many, large = rate_of_bench(1, 40), rate_of_bench(256, 40), rate_of_bench(4, 262_144)
    return {"batch_nanos": round(1e9 / alone / 2), "message_nanos": round(1e9 / many / 2),
            "kib_nanos": round(1e9 / large / 512)}


def children_of(pid: int) -> list[int]:
    """In the order in which they were forked."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                words = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[1]) == pid:
            found.append((int(words[19]), int(name)))
    return [child for _, child in sorted(found)]


def thread_nanos(pid: int) -> list[int]:
    """Processor time of a process's threads, in the order of their starts."""
    found = []
    for thread in sorted(map(int, os.listdir(f"/proc/{pid}/task"))):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="utf-8") as file:
            found.append(int(file.read().split()[0]))
    return found


def real_run(mix: str, masters: int, seconds: float = 4) -> dict:
    """Nothing shared, one worker a master: processor time of single threads, per transaction of one master."""
    folder = tempfile.mkdtemp(dir="/dev/shm")
    path = os.path.join(folder, "record.json")
    command = [ENGINE, f"--masters={masters}", "-t1", "--workload=SYSBENCH", f"--sysbench_mix={mix}", "--sharing=0",
               f"--sysbench_rows={ROWS}", f"--page_stores={PAGE_STORES}", "--warmup_seconds=1", f"--seconds={seconds:g}",
               f"--log_dir={folder}", f"--json={path}"]
    try:
        samples = sampled(command, 3 + 1 + PAGE_STORES + masters)
        record = records.load(path)[-1]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    last = [sample for sample in samples if [len(one) for one in sample[1]] == [len(one) for one in samples[-5][1]]][-4]
    first = next(sample for sample in samples if sample[0] >= last[0] - seconds + 1)
    txns = record["metrics"]["throughput_acknowledged"] * (last[0] - first[0]) / masters
    per_txn = [[(b - a) / txns for a, b in zip(one, two)] for one, two in zip(first[1], last[1])]
    log = record["metrics"]["log"]
    kib = sum(log[name] for name in ("changed_bytes_per_txn", "other_bytes_per_txn", "time_bytes_per_txn",
                                     "pad_bytes_per_txn")) / 1024
    page_stores, of_masters = per_txn[4:4 + PAGE_STORES], per_txn[4 + PAGE_STORES:]
    # A process's last threads: of a Page Store those that follow a log each, of a master those of the other masters' logs
    # and then its worker.
    return {"command": " ".join(command), "worker_nanos": median(threads[-1] for threads in of_masters),
            "master_log_kib_nanos": median(nanos for threads in of_masters for nanos in threads[-masters:-1] or [0]) / kib,
            "page_store_log_kib_nanos": median(nanos for threads in page_stores for nanos in threads[-masters:]) / kib,
            "throughput": record["metrics"]["throughput_acknowledged"]}


def sampled(command: list[str], processes: int) -> list[tuple[float, list[list[int]]]]:
    """When, and what each thread of each process had used; while all processes are there."""
    samples = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        while child.poll() is None:
            children = children_of(child.pid)
            try:
                if len(children) == processes:
                    samples.append((time.monotonic(), [thread_nanos(pid) for pid in children]))
            except OSError:
                pass  # a process or a thread has ended meanwhile
            time.sleep(0.1)
    if child.returncode != 0 or len(samples) < 20:
        raise Failure(f"exit status {child.returncode}, {len(samples)} samples: {' '.join(command)}")
    return samples


def steps_per_txn(mix: str) -> float:
    row = json.loads(output_of([MODEL, "--masters=1", "--workers=1", f"--mix={mix}", f"--rows={ROWS}",
                                "--master_step_nanos=40"]))
    return row["roles"]["master"]["steps_per_txn"]


def calibrate(out: str) -> None:
    check_binaries(ENGINE, MODEL, BENCH)
    costs = {"network": network_costs(), "mixes": {}, "sources": {"network": f"{BENCH.removeprefix(REPOSITORY + '/')}"}}
    follow = real_run("WRITE_ONLY", 2)
    costs["followers"] = {name: round(follow[name]) for name in ("master_log_kib_nanos", "page_store_log_kib_nanos")}
    costs["sources"]["followers"] = follow
    for mix in MIXES:
        real, steps = real_run(mix, 1), steps_per_txn(mix)
        costs["mixes"][mix] = {"master_step_nanos": round(real["worker_nanos"] / steps, 2)}
        costs["sources"][mix] = {**real, "steps_per_txn": steps}
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "costs.json"), "w", encoding="utf-8") as file:
        json.dump(costs, file, indent=1)
    print(json.dumps({name: costs[name] for name in ("network", "followers", "mixes")}, indent=1))


# ---- Sweeps ----------------------------------------------------------------------------------------------

def flags_of(costs: dict, arguments: argparse.Namespace) -> dict:
    return {**costs["network"], **costs["followers"], "workers": arguments.workers, "master_cores": arguments.cores,
            "rows": arguments.rows, "warmup_seconds": arguments.warmup, "seconds": arguments.seconds,
            "latency_nanos": arguments.latency_us * 1000, "storage_nanos": arguments.storage_us * 1000,
            "isolation": arguments.isolation}


def sweep(arguments: argparse.Namespace) -> None:
    check_binaries(MODEL)
    try:
        with open(os.path.join(arguments.out, "costs.json"), encoding="utf-8") as file:
            costs = json.load(file)
    except FileNotFoundError:
        raise Failure("there are no costs: scripts/cluster_model calibrate") from None
    path = os.path.join(arguments.out, "sweep.jsonl")
    done = {row["key"] for row in records.load(path)}
    begin = time.monotonic()
    for seed in range(1, arguments.seeds + 1):
        for mix in arguments.mixes.split(","):
            for sharing in map(int, arguments.sharing.split(",")):
                for masters in map(int, arguments.masters.split(",")):
                    flags = {**flags_of(costs, arguments), **costs["mixes"][mix], "mix": mix, "sharing": sharing,
                             "masters": masters, "seed": seed}
                    words = [f"--{name}={value}" for name, value in flags.items()]
                    key = " ".join(words)
                    if key in done:
                        continue
                    if arguments.stop_after and time.monotonic() - begin > arguments.stop_after:
                        raise Failure(f"stopped after {arguments.stop_after} s; the same command goes on")
                    row = {"key": key, **json.loads(output_of([MODEL, *words]))}
                    records.append(path, row)
                    print(f"{mix} sharing {sharing} masters {masters} seed {seed}: {row['throughput']:.0f}/s", flush=True)


def key_of(row: dict) -> tuple:
    """Of a line of the figure: all that is no x, and no repeat."""
    return (row["mix"], row["isolation"], row["rows"], row["workers"], row["roles"]["master"]["cores"],
            row["latency_nanos"], row["storage_nanos"], row["sharing"])


def show(out: str) -> None:
    rows = records.load(os.path.join(out, "sweep.jsonl"))
    print("Modelled; medians over seeds, relative to one master at the same sharing (lowest-highest).\n")
    print("| mix, isolation | rows | workers, cores | us one way, us a sync | sharing | one master, txn/s | 2 | 4 | 8 | "
          "messages of page locks at 8 | busiest at 8 |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for key in sorted({key_of(row) for row in rows}):
        mine = [row for row in rows if key_of(row) == key]
        by_masters = {n: [row for row in mine if row["masters"] == n] for n in MASTERS}
        if not by_masters[1]:
            continue
        one = median(row["throughput"] for row in by_masters[1])
        cells = [ratio_text([row["throughput"] / one for row in by_masters[n]]) for n in MASTERS[1:]]
        last = by_masters[8]
        messages = f"{median(row['page_lock_messages_per_txn'] for row in last):.2f}" if last else "-"
        mix, isolation, table_rows, workers, cores, latency, storage, sharing = key
        print(f"| {mix}, {isolation} | {table_rows} | {workers}, {cores} | {latency // 1000}, {storage // 1000} | "
              f"{sharing} % | {one:,.0f} | {' | '.join(cells)} | {messages} | {busiest(last)} |")


def ratio_text(ratios: list[float]) -> str:
    if not ratios:
        return "-"
    return f"{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


def busiest(rows: list[dict]) -> str:
    """The resource of which most is used, of the cores and lines of each role."""
    if not rows:
        return "-"
    shares = {f"{what} of {role}s".replace("_", " "): median(row["roles"][role][field] for row in rows)
              for role in ("master", "log_store", "page_store")
              for what, field in (("cores", "busy_share"), ("lines", "line_share"))}
    # Of these processes one thread, that of the network, does nearly all that is charged.
    for role in ("locks", "log_store"):
        shares[f"network thread of {role.replace('_', ' ')}"] = median(
            row["roles"][role]["busy_share"] * row["roles"][role]["cores"] for row in rows)
    name = max(shares, key=shares.get)
    return f"{name}, {shares[name]:.0%}"


# At 8 masters: the paper's claims, by sharing; of 30 and 50 % it says less than 2.
PAPER = {"WRITE_ONLY": {0: 8, 10: 3.5, 30: 2, 50: 2}, "READ_WRITE": {0: 8, 10: 4.5, 30: 2, 50: 2}}
PAPER_TEXT = {0: "near linear", 30: "< 2", 50: "< 2"}


def plot(arguments: argparse.Namespace) -> None:
    """Of the rows with the arguments' tables and workers: a row of panels by mix."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    rows = [row for row in records.load(os.path.join(arguments.out, "sweep.jsonl"))
            if (row["rows"], row["workers"], row["isolation"]) == (arguments.rows, arguments.workers, arguments.isolation)]
    if not rows:
        raise Failure("there are no such rows: scripts/cluster_model sweep, with the same arguments")
    mixes = [mix for mix in MIXES if any(row["mix"] == mix for row in rows)]
    figure, panels = plt.subplots(1, len(mixes), figsize=(5 * len(mixes), 4.2), squeeze=False)
    for axes, mix in zip(panels[0], mixes):
        for number, sharing in enumerate(SHARINGS):
            draw_line(axes, [row for row in rows if (row["mix"], row["sharing"]) == (mix, sharing)], mix, sharing, f"C{number}")
        axes.set(title=f"{mix.lower().replace('_', '-')}, modelled", xlabel="masters", ylim=(0, None),
                 ylabel="throughput relative to one master")
        axes.set_xticks(MASTERS)
        axes.legend(fontsize=7.5)
        axes.grid(True, axis="y", alpha=0.4)
    one = rows[0]
    figure.text(0.01, 0.005, f"modelled, not measured: {one['workers']} workers on {one['roles']['master']['cores']} virtual "
                f"cores a master, tables of {one['rows']:,} rows, {one['isolation']}, {one['gigabits']:g} Gb/s, "
                f"{one['latency_nanos'] // 1000} us one way; bars: lowest to highest of the seeds", fontsize=6.5)
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    path = os.path.join(arguments.out, "fig07_modelled.png")
    figure.savefig(path, dpi=130)
    print(path)


def draw_line(axes, rows: list[dict], mix: str, sharing: int, colour: str) -> None:
    """Dashed, as all that is modelled; with the paper's value at 8 masters as a star."""
    values = {n: [row["throughput"] for row in rows if row["masters"] == n] for n in MASTERS}
    if not values[1]:
        return
    one = median(values[1])
    xs = [n for n in MASTERS if values[n]]
    ys = [median(values[n]) / one for n in xs]
    low = [y - min(values[n]) / one for n, y in zip(xs, ys)]
    high = [max(values[n]) / one - y for n, y in zip(xs, ys)]
    paper = PAPER_TEXT.get(sharing, f"{PAPER[mix][sharing]:g}")
    axes.errorbar(xs, ys, yerr=[low, high], linestyle="--", marker="o", markersize=4, markerfacecolor="white", capsize=2,
                  color=colour, label=f"{sharing} % shared, modelled (paper at 8: {paper})")
    axes.plot([8], [PAPER[mix][sharing]], marker="*", markersize=9, color=colour, linestyle="")


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/cluster_model", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("calibrate", "sweep", "show", "plot"))
    parser.add_argument("--out", default=OUT)
    parser.add_argument("--mixes", default=",".join(MIXES))
    parser.add_argument("--sharing", default=",".join(map(str, SHARINGS)))
    parser.add_argument("--masters", default=",".join(map(str, MASTERS)))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2, help="of each master")
    parser.add_argument("--cores", type=int, default=4, help="of each master")
    parser.add_argument("--rows", type=int, default=ROWS, help="of each table: one of each master, and a shared one")
    parser.add_argument("--isolation", choices=("SERIALIZABLE", "READ_COMMITTED"), default="SERIALIZABLE")
    parser.add_argument("--latency_us", type=int, default=50, help="of the network, one way")
    parser.add_argument("--storage_us", type=int, default=50, help="of a Log Store's sync")
    parser.add_argument("--warmup", type=float, default=0.25, help="virtual seconds")
    parser.add_argument("--seconds", type=float, default=0.1, help="virtual seconds that are measured")
    parser.add_argument("--stop_after", type=float, default=0, help="real seconds; 0: at the end of the sweep")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    arguments = parse(words)
    try:
        if arguments.command == "calibrate":
            calibrate(arguments.out)
        elif arguments.command == "sweep":
            sweep(arguments)
        elif arguments.command == "plot":
            plot(arguments)
        else:
            show(arguments.out)
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
