"""Makes what modelled series of recoveries need: for each log of their figures a run of the same flags, but by WORKERS, on
a RAM disk, and what `log_dump --parallelism` computes of its records.

Rows go to DIR/replay/replays.jsonl by the plan's job; what is there is not made again.
"""
from __future__ import annotations

import os

from experiment import modelled, records
from experiment.planning import Job, Plan
from experiment.running import STEP_TIMEOUT_SECONDS, work_directory
from experiment.spec import REPOSITORY, Figure

LOG_DUMP = os.path.join(REPOSITORY, "log_dump")
THREADS = "1,2,4,8,16,32,64"
# Of a run, whatever the host's cores: records by few workers lie in few logs and wait for each other more than those of
# the papers' runs, and so many transactions make chains as they are in longer logs.
WORKERS = 64
TRANSACTIONS = 200_000


def wanted(plan: Plan, figures: list[Figure]) -> list[Job]:
    """Whose logs the figures' modelled series recover."""
    keys = dict.fromkeys(modelled.job_of(plan, figure, panel, name) for figure in figures if figure.step == "recover"
                         for entry in figure.modelled for panel, name in modelled.targets(figure, entry))
    return [plan.jobs[key] for key in keys if key]


def make(jobs: list[Job], binary: str, ram_dir: str, models: str) -> bool:
    """False if one failed."""
    path = os.path.join(models, modelled.REPLAYS)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    done = {row["job"] for row in records.load(path)}
    good = True
    for job in jobs:
        if job.key in done:
            continue
        with work_directory(ram_dir) as work:
            row = _replay(job, binary, work)
        name = " ".join(filter(None, (job.flags["workload"], job.flags["cc"], job.flags["log"], job.flags["log_type"])))
        if row["status"] == "ok":
            records.append(path, {"job": job.key, "modelled": True, "command": row["command"], "replay": row["record"]})
            print(f"{name}: modelled", flush=True)
        else:
            print(f"error: {name}: {row['why']}\n  again: {row['command']}", flush=True)
            good = False
    return good


def _replay(job: Job, binary: str, work: str) -> dict:
    """The row of the last step: a run, and log_dump of what it logged."""
    directories = [os.path.join(work, f"d{i}") for i in range(max(1, job.place.directories))]
    for directory in directories:
        os.mkdir(directory)
    flags = {**job.flags, "thread_cnt": WORKERS, "max_txns_per_thread": TRANSACTIONS // WORKERS, "seed": 1,
             "log_dir": ",".join(directories)}
    row: dict = {}
    records.run(row, [job.path(binary)] + [f"--{name}={value}" for name, value in flags.items()],
                os.path.join(work, "run.json"), STEP_TIMEOUT_SECONDS)
    if row["status"] == "ok":
        runs = [os.path.join(directory, "run-0001") for directory in directories]
        orders = modelled.ORDER_OF[job.flags["log"]]
        records.run(row, [LOG_DUMP, "--parallelism", f"--orders={orders}", f"--threads={THREADS}", *runs],
                    os.path.join(work, "replay.json"), STEP_TIMEOUT_SECONDS)
    return row
