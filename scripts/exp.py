#!/usr/bin/env python3
"""The papers' figures: planned, run, collected, drawn and put beside the papers' claims.

  scripts/exp list                          the figures
  scripts/exp plan FIGURE ...               runs, time and disk bytes; starts nothing
  scripts/exp run FIGURE ...                runs what is not there yet, then collects, draws and reports
  scripts/exp collect|plot|report FIGURE ...   again from the rows that are there
  scripts/exp compare DIR DIR               medians of two results beside each other
  scripts/exp jobs FIGURE ...               the names of the plan's jobs: a run, its recoveries, one repeat
  scripts/exp job NAME [FIGURE ...]         one of them alone, into OUT/SCALE/jobs; for schedulers of many hosts

FIGURE is part of a name of `list`, or all. Results lie in OUT/SCALE: results.jsonl (a row per step), a CSV and plots
per figure, report.html. An interrupted run goes on where it stopped.
"""
from __future__ import annotations

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from experiment import ceiling, claims, host_scale, planning, running, spec
from progress import clock

REPOSITORY = spec.REPOSITORY
RAM_DIR = "/dev/shm"


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="exp", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("list", "plan", "run", "collect", "plot", "report", "compare", "jobs", "job"))
    parser.add_argument("names", nargs="*", metavar="FIGURE")
    parser.add_argument("--scale", default="smoke", help="of experiments/scales.yaml (default: smoke)")
    parser.add_argument("--devices", default="throughput", choices=host_scale.WAYS,
                        help="how emulated log devices are scaled to this host (default: throughput)")
    parser.add_argument("--repeats", type=int, help="instead of the scale's")
    parser.add_argument("--seconds", type=float, help="of a run, instead of the scale's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default=os.path.join(REPOSITORY, "out", "experiments"))
    parser.add_argument("--log_dir", default=os.path.join(REPOSITORY, "logs"),
                        help="where log files go (default: logs)")
    parser.add_argument("--ram_dir", default=RAM_DIR, help="the same for RAM disks (default: %(default)s)")
    parser.add_argument("--binary", default=os.path.join(REPOSITORY, "rundb-all"), help=argparse.SUPPRESS)
    return parser.parse_args(argv)


class Experiment:
    """What all actions but list and compare need."""

    def __init__(self, arguments: argparse.Namespace):
        self.arguments = arguments
        self.series = spec.load_series()
        self.figures = spec.select_figures(arguments.names, self.series)
        scale = spec.load_scale(arguments.scale)
        self.repeats = arguments.repeats or scale.repeats
        self.scale = scale if arguments.seconds is None else spec.Scale(**{**vars(scale), "seconds": arguments.seconds})
        self.out = os.path.join(arguments.out, scale.name)
        self.cores = len(os.sched_getaffinity(0))
        os.makedirs(self.out, exist_ok=True)
        self.host = self._host_scale()
        self.plan = planning.make_plan(self.figures, self.series, self.scale, self.host)
        self.ceiling_ = ceiling.load(self._ceiling_path(), arguments.log_dir)

    def _host_scale(self) -> host_scale.HostScale:
        """As at the first time, so that a resumed run has the same devices."""
        path = os.path.join(self.out, f"host-{self.arguments.devices}.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return host_scale.HostScale(**json.load(file))
        per_core = 0.0
        if self.arguments.devices == "throughput":
            per_core = running.measure_per_core(self.arguments.binary, self.cores)
        scale = host_scale.HostScale(self.arguments.devices, self.cores, per_core)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(vars(scale), file)
        return scale

    def _ceiling_path(self) -> str:
        return os.path.join(self.out, "ceiling.json")

    def _measure_ceiling(self, jobs: list[planning.Job]) -> None:
        """Of the real device, if a job has its logs there; once for all of a scale's results."""
        real = any(job.logs and job.place.kind == "disk" for job in jobs)
        if real and self.ceiling_ is None:
            print("measuring the device under the logs", flush=True)
            micro = os.path.join(os.path.dirname(self.arguments.binary), "build", "micro", "host_limits")
            self.ceiling_ = ceiling.measure(self.arguments.log_dir, micro)
            ceiling.save(self._ceiling_path(), self.ceiling_)

    def describe(self) -> str:
        jobs = list(self.plan.jobs.values())
        recoveries = sum(len(job.recoveries) for job in jobs)
        return (f"{len(self.figures)} figures at scale {self.scale.name}: {len(jobs)} runs and {recoveries} "
                f"recoveries, {self.repeats} times; about {clock(self.plan.seconds(self.repeats))}, up to "
                f"{self.plan.disk_bytes() >> 20} MiB of logs at a time; {self.host.describe()}")

    def run(self) -> bool:
        arguments = self.arguments
        for directory in (arguments.log_dir, arguments.ram_dir):
            os.makedirs(directory, exist_ok=True)
            if running.free_bytes(directory) < self.plan.disk_bytes() * 1.1:
                sys.exit(f"error: {directory} has {running.free_bytes(directory) >> 20} MiB free, the plan needs "
                         f"{self.plan.disk_bytes() >> 20} MiB; name another directory")
        order = running.shuffled(self.plan, self.repeats, arguments.seed)
        done = running.finished_steps(running.load_rows(self.out))
        return self._run(order, done, "results.jsonl")

    def run_job(self, name: str) -> bool:
        """Anew, whatever is there of it."""
        key, _, repeat = name.partition("-")
        if key not in self.plan.jobs or not repeat.isdigit():
            sys.exit(f"error: the plan has no job '{name}'; `scripts/exp jobs` prints them")
        os.makedirs(os.path.join(self.out, "jobs"), exist_ok=True)
        rows = os.path.join("jobs", f"{name}.jsonl")
        if os.path.exists(os.path.join(self.out, rows)):
            os.unlink(os.path.join(self.out, rows))
        return self._run([(int(repeat), self.plan.jobs[key])], set(), rows)

    def _run(self, order: list, done: set, rows: str) -> bool:
        arguments = self.arguments
        missing = sorted({path for _, job in order if not os.path.exists(path := job.path(arguments.binary))})
        if missing:
            sys.exit(f"error: {missing[0]} is missing; make {' '.join(planning.PROGRAMS)} micro builds it")
        with running.HostLock():
            self._measure_ceiling([job for _, job in order])
            runner = running.Runner(order, done, arguments.seed, arguments.binary, os.path.join(self.out, rows),
                                    arguments.log_dir, arguments.ram_dir)
            runner.run()
        return runner.failed == 0

    def finish(self, write_csv=True, draw=True, page=True) -> None:
        # Matplotlib takes a second to load; a plan does not wait for it.
        from experiment import data as data_module, drawing, page as page_module
        rows = running.load_rows(self.out)
        collected = []
        for figure in self.figures:
            data = data_module.collect(figure, self.plan, rows, self.ceiling_)
            verdicts = [claims.judge(data, claim, self.cores) for claim in figure.claims]
            caption = self._caption(data)
            collected.append((data, verdicts, caption))
            if write_csv:
                data_module.write_csv(data, os.path.join(self.out, figure.name.replace("/", "-") + ".csv"))
            if draw:
                drawing.write_files(data, self.series, caption, os.path.join(self.out, "plots"))
        if page:
            page_module.write_page(os.path.join(self.out, "report.html"), collected, self.series, self.describe())
        self._print_verdicts(collected)
        print(f"{self.out}: " + ", ".join(["CSV"] * write_csv + ["plots"] * draw + ["report.html"] * page))

    def _caption(self, data) -> str:
        """What a reader of the plot alone has to know of its figures."""
        rows = data.rows()
        if not rows:
            return "nothing was measured"
        environment = rows[0]["record"].get("environment", {})
        logged = [row for row in rows if row["record"].get("config", {}).get("LOG_ALGORITHM") != "LOG_NO"]
        devices = sorted({device_text(row["place"]) for row in logged})
        words = [f"{environment.get('cores', '?')} cores, {environment.get('cpu', '?')}"]
        if environment.get("virtualisation") not in (None, "", "none"):
            words.append("virtual machine")
        words += devices
        words.append(f"medians of {self.repeats} runs" if self.repeats > 1 else "one run a point")
        if data.ceiling_source:
            words.append(f"device ceiling by {data.ceiling_source}")
        if any(row["record"].get("environment", {}).get("oversubscribed") for row in rows):
            words.append("more threads than cores in some runs")
        return "; ".join(words)

    @staticmethod
    def _print_verdicts(collected) -> None:
        for data, verdicts, _ in collected:
            for v in verdicts:
                print(f"{data.figure.name}: {v.claim}: paper {v.paper}, ours {v.ours}: {v.verdict}"
                      + (f" ({v.why})" if v.why else ""))


def device_text(place: dict) -> str:
    if place["device"]:
        return f"emulated device {place['device']} over a RAM disk, {place['directories']} of them"
    return "RAM disk" if place["kind"] == "ram" else "log directories as they are"


def compare(first: str, second: str) -> None:
    """Ratios of the medians of steps that both results have."""
    from experiment.data import np
    from experiment.spec import lookup
    values_of, labels = [], {}
    for directory in (first, second):
        values: dict[tuple, list[float]] = {}
        for row in running.load_rows(directory):
            metrics = row["record"].get("metrics", {})
            value = lookup(metrics, "throughput_acknowledged") or lookup(metrics, "throughput")
            if row["status"] == "ok" and value:
                key = row["job"], row["recovery"]
                values.setdefault(key, []).append(value)
                labels.setdefault(key, row["command"].split("--seconds")[0].split("--log_dir")[0])
        values_of.append(values)
    both = [key for key in values_of[0] if key in values_of[1]]
    if not both:
        sys.exit(f"error: {first} and {second} have no step in common")
    for key in sorted(both, key=labels.get):
        a, b = (float(np.median(values[key])) for values in values_of)
        print(f"{a / 1e3:10,.1f} k  {b / 1e3:10,.1f} k  {b / a:6.2f}x  {labels[key].split('/')[-1]}")


def main(argv: list[str]) -> int:
    arguments = parse_arguments(argv)
    try:
        if arguments.action == "compare":
            if len(arguments.names) != 2:
                sys.exit("error: compare takes two directories of results")
            compare(*arguments.names)
            return 0
        if arguments.action == "list":
            for figure in spec.select_figures(arguments.names, spec.load_series()):
                print(f"{figure.name:32} {figure.title}")
            return 0
        job = arguments.names.pop(0) if arguments.action == "job" and arguments.names else ""
        experiment = Experiment(arguments)
        if arguments.action == "jobs":
            for repeat, planned in running.shuffled(experiment.plan, experiment.repeats, arguments.seed):
                print(f"{planned.key}-{repeat}")
            return 0
        print(experiment.describe(), flush=True)
        if arguments.action == "plan":
            print(experiment.plan.describe_figures(experiment.repeats))
            return 0
        if arguments.action == "job":
            return 0 if experiment.run_job(job) else 1
        good = experiment.run() if arguments.action == "run" else True
        wanted = ("collect", "plot", "report") if arguments.action == "run" else (arguments.action,)
        experiment.finish(write_csv="collect" in wanted, draw="plot" in wanted, page="report" in wanted)
        return 0 if good else 1
    except (spec.SpecError, running.Busy) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on where it stopped")
        sys.exit(130)
