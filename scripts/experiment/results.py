"""A folder of results: rows of one host, to which a plan adds what is missing. One process at a time measures.

Used by exp.py for figures and for the overview.
"""
from __future__ import annotations

import os
import sys

from experiment import ceiling, origin, planning, running
from experiment.running import Refused


class Results:
    def __init__(self, arguments, out: str):
        """`arguments`: exp.py's binary, log_dir, ram_dir and seed."""
        self.arguments = arguments
        self.out = out
        self.log_dirs = [directory for directory in arguments.log_dir.split(",") if directory]
        self.ceilings = ceiling.load(self._ceiling_path(), self.log_dirs)

    def make_out(self, *folder: str) -> None:
        path = os.path.join(self.out, *folder)
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise Refused(f"no results can be written to {path}: {error.strerror}") from None
        if not os.access(path, os.W_OK):
            raise Refused(f"no results can be written to {path}; name another --out")

    def complete(self, plan: planning.Plan, order: list[tuple[int, planning.Job]], patient: bool = True) -> bool:
        """Runs what this build of the programs has not done yet. False if a step failed; without patience that is the
        last one."""
        rows = running.load_rows(self.out)
        here = origin.this_host()
        strange = [found for found in origin.hosts_of(rows) if not found.is_like(here)]
        if strange:
            raise Refused(f"{self.out} has rows of another host ({strange[0]}; this one is {here}); name another --out")
        done, others = running.finished_steps(rows, plan, self.arguments.binary)
        if others:
            print(f"{len(others)} steps of another build ({', '.join(origin.commits_of(others))}; this one is "
                  f"{origin.version(self.arguments.binary)}) are run again", flush=True)
        return self.run_order(order, done, "results.jsonl", patient)

    def run_order(self, order: list, done: set, rows: str, patient: bool = True) -> bool:
        jobs = [job for _, job in order]
        require_programs(job.path(self.arguments.binary) for job in jobs)
        with running.HostLock():
            self._require_space(jobs)
            self._measure_ceiling(jobs)
            runner = running.Runner(order, done, self.arguments.seed, self.arguments.binary,
                                    os.path.join(self.out, rows), self.log_dirs, self.arguments.ram_dir, patient)
            runner.run()
        return runner.failed == 0

    def _require_space(self, jobs: list[planning.Job]) -> None:
        """In each directory for the largest job that has logs there; how its logs share it is not known before. What a
        run that was killed left there goes first."""
        needed: dict[str, int] = {}
        for job in jobs:
            for directory in running.used_directories(job, self.log_dirs, self.arguments.ram_dir):
                needed[directory] = max(needed.get(directory, 0), job.log_bytes())
        for directory, size in needed.items():
            flag = "--ram_dir" if directory == self.arguments.ram_dir else "--log_dir"
            try:
                os.makedirs(directory, exist_ok=True)
                running.remove_abandoned(directory)
                free = running.free_bytes(directory)
            except OSError as error:
                raise Refused(f"no logs can be written to {directory}: {error.strerror}; name another {flag}") from None
            if free < size * 1.1:
                raise Refused(f"{directory} has {free >> 20} MiB free, the plan needs {int(size * 1.1) >> 20} MiB; "
                              f"name another {flag}")

    def _ceiling_path(self) -> str:
        return os.path.join(self.out, "ceiling.json")

    def _measure_ceiling(self, jobs: list[planning.Job]) -> None:
        """Of the real device, if a job has its logs there; once for all of a scale's results."""
        real = any(job.logs and job.place.kind == "disk" for job in jobs)
        if real and not self.ceilings:
            print(f"measuring the device{'s' * (len(self.log_dirs) > 1)} under the logs", flush=True)
            micro = os.path.join(os.path.dirname(self.arguments.binary), "build", "micro", "host_limits")
            self.ceilings = ceiling.measure_all(self.log_dirs, micro)
            ceiling.save(self._ceiling_path(), self.ceilings)


def require_programs(paths) -> None:
    """Refuses to go on without them, and says which are older than what they are built from."""
    paths = list(paths)
    missing = sorted({path for path in paths if not os.path.exists(path)})
    if missing:
        raise Refused(f"{missing[0]} is missing; make {' '.join(planning.PROGRAMS)} micro builds it")
    for path in sorted(set(paths)):
        source = origin.newer_source(path) if os.path.basename(path) in planning.PROGRAMS else None
        if source is not None:
            print(f"notice: {os.path.basename(path)} was built before {source} was changed; "
                  f"make {' '.join(planning.PROGRAMS)} micro builds it anew", file=sys.stderr, flush=True)
