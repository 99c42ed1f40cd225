#!/usr/bin/env python3
"""The papers' figures, our ablation and the overview: planned, run, collected, drawn, compared with the papers' claims.

  scripts/exp list [--table]                the figures; as a table with their claims and times
  scripts/exp plan FIGURE ...               runs, time and disk bytes; starts nothing
  scripts/exp run FIGURE ...                runs what is not there yet, then collects, draws and reports
  scripts/exp collect|plot|report FIGURE ...   again from the rows that are there
  scripts/exp model FIGURE ...              what modelled series of recoveries need: runs, and log_dump of their logs
  scripts/exp compare DIR DIR               medians of two results (OUT/SCALE) beside each other
  scripts/exp jobs FIGURE ...               the names of the plan's jobs: a run, its recoveries, one repeat
  scripts/exp job NAME [FIGURE ...]         one of them alone, into OUT/SCALE/jobs; for schedulers of many hosts
  scripts/exp overview [TABLE ...]          all log schemes and concurrency controls side by side, as in docs/figures.md

FIGURE is a name of `list` or part of one (fig9 is fig09; ablation: all of ours), or all for the papers' figures, which
is the default of all actions but list. Flags may stand anywhere. Results lie in OUT/SCALE: results.jsonl (a row per
step), a CSV and plots per figure, report.html of all figures that are there; with --devices cores or off in
OUT/SCALE-cores, -off. An interrupted run goes on where it stopped; steps of another build are run again, and another
host needs another OUT. TABLE is one of experiments/overview.yaml, printed in Markdown: all of them take some 45 minutes
on 2 cores; their logs lie in --ram_dir, their results in OUT/overview. Exit status: 1 if a step failed or a point has
no figure, 2 if nothing could be done, 130 or 143 after a signal.
"""
from __future__ import annotations

import argparse
import functools
import json
import math
import os
import sys
from importlib import util

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stop
if __name__ == "__main__":
    stop.install()
import host
from experiment import host_scale

if util.find_spec("yaml"):  # the help does without
    from experiment import listing, origin, overview, planning, running, spec
    from experiment.results import Results, require_programs
    from experiment.running import Refused
    from progress import clock
else:
    Results = object  # main says what is missing

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RAM_DIR = "/dev/shm"
DEFAULT_WAY = "throughput"


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="exp", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("list", "plan", "run", "collect", "plot", "report", "model", "compare",
                                           "jobs", "job", "overview"))
    parser.add_argument("names", nargs="*", metavar="FIGURE")
    parser.add_argument("--scale", default="smoke", help="of experiments/scales.yaml (default: smoke)")
    parser.add_argument("--devices", default=DEFAULT_WAY, choices=host_scale.WAYS,
                        help="how emulated log devices are scaled to this host (default: %(default)s); results of the "
                             "others lie in OUT/SCALE-cores and OUT/SCALE-off")
    parser.add_argument("--repeats", type=int, help="instead of the scale's")
    parser.add_argument("--seconds", type=float, help="of a run, instead of the scale's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=host.positive(int), help="of overview: workers, instead of overview.yaml's")
    parser.add_argument("--out", default=os.path.join(REPOSITORY, "out", "experiments"))
    parser.add_argument("--log_dir", default=os.path.join(REPOSITORY, "logs"),
                        help="where log files go (default: logs); with --devices off A,B,...: a real disk each")
    parser.add_argument("--ram_dir", default=RAM_DIR, help="the same for RAM disks (default: %(default)s)")
    parser.add_argument("--table", action="store_true", help="of list: in Markdown, as ARTIFACT.md has it")
    parser.add_argument("--failed", action="store_true", help="of jobs: only those of which a step failed")
    parser.add_argument("--models", default=os.path.join(REPOSITORY, "out"), metavar="DIR",
                        help="where the results of scripts/line_transfers and `model` lie (default: out)")
    parser.add_argument("--binary", default=os.path.join(REPOSITORY, "rundb-all"), help=argparse.SUPPRESS)
    return parser.parse_intermixed_args(argv)


def check_arguments(arguments: argparse.Namespace) -> None:
    if arguments.seconds is not None and not 0 < arguments.seconds < running.STEP_TIMEOUT_SECONDS:
        raise Refused(f"--seconds is a number above 0 and below {running.STEP_TIMEOUT_SECONDS}, when a step is ended")
    if arguments.repeats is not None and arguments.repeats < 1:
        raise Refused("--repeats is 1 or more")
    if not arguments.log_dir.strip(","):
        raise Refused("--log_dir names no directory")


MEASURING = ("run", "model", "jobs", "job")  # actions that may measure the host's speed; the others take what is known of it


class Experiment(Results):
    """What all actions but list, compare and overview need."""

    def __init__(self, arguments: argparse.Namespace):
        self.series = spec.load_series()
        self.figures = spec.select_figures(arguments.names or ["all"], self.series)
        scale = spec.load_scale(arguments.scale)
        self.repeats = scale.repeats if arguments.repeats is None else arguments.repeats
        self.scale = scale if arguments.seconds is None else spec.Scale(**{**vars(scale), "seconds": arguments.seconds})
        # Results of two ways would overwrite each other's plots and report.
        way = "" if arguments.devices == DEFAULT_WAY else f"-{arguments.devices}"
        super().__init__(arguments, os.path.join(arguments.out, scale.name + way))
        self.cores = len(os.sched_getaffinity(0))
        self.guessed = False  # the host's speed
        self.host = self._host_scale()
        self.plan = self._plan_of(self.figures)

    @functools.cached_property
    def _every_figure(self) -> list[spec.Figure]:
        return spec.select_figures([], self.series)

    @functools.cached_property
    def _everything(self) -> planning.Plan:
        return self._plan_of(self._every_figure)

    def _plan_of(self, figures: list[spec.Figure]) -> planning.Plan:
        return planning.make_plan(figures, self.series, self.scale, self.host, real_directories=len(self.log_dirs))

    def _host_scale(self) -> host_scale.HostScale:
        """As at the first time, so that a resumed run has the same devices."""
        way, path = self.arguments.devices, os.path.join(self.out, f"host-{self.arguments.devices}.json")
        known = load_host_scale(path)
        if known is not None:
            return known
        if self.arguments.action in MEASURING:
            return self._measure_host_scale(path)
        self.guessed = way == "throughput"
        if self.arguments.action != "plan":
            raise Refused(f"{self.out} has no results with --devices {way}; `scripts/exp run` makes them")
        return host_scale.HostScale(way, self.cores, host_scale.DBX1000_PER_CORE if self.guessed else 0.0)

    def _measure_host_scale(self, path: str) -> host_scale.HostScale:
        self.make_out()
        with running.HostLock():
            known = load_host_scale(path)  # another one may have measured it meanwhile
            if known is not None:
                return known
            per_core = 0.0
            if self.arguments.devices == "throughput":
                require_programs([self.arguments.binary])
                per_core = running.measure_per_core(self.arguments.binary, self.cores)
            scale = host_scale.HostScale(self.arguments.devices, self.cores, per_core)
            with open(path + ".new", "w", encoding="utf-8") as file:
                json.dump(vars(scale), file)
            os.replace(path + ".new", path)
            return scale

    def describe(self) -> str:
        """What is planned."""
        times = "once" if self.repeats == 1 else f"{self.repeats} times"
        return (f"{self._count(self.plan)}, {times}; about {clock(self.plan.seconds(self.repeats))}, up to "
                f"{self.plan.disk_bytes() >> 20} MiB of logs at a time; {self._devices()}")

    def _heading(self, plan: planning.Plan, rows: list[dict]) -> str:
        """What the page shows, and that there are rows of which no figure shows any."""
        others = sum(row["job"] not in self._everything.jobs for row in rows)
        left_out = f"; {others} rows that were made with other settings are left out" if others else ""
        return f"{self._count(plan)}; {self._devices()}{left_out}"

    def _count(self, plan: planning.Plan) -> str:
        recoveries = sum(len(job.recoveries) for job in plan.jobs.values())
        return (f"{len(plan.points)} figures at scale {self.scale.name}: {len(plan.jobs)} runs and {recoveries} "
                f"recoveries")

    def _devices(self) -> str:
        return self.host.describe() if not self.guessed else (
            "log devices to be scaled to this host, which `run` measures first")

    def run(self) -> bool:
        if self.host.cores != self.cores:
            raise Refused(f"{self.out} was begun with {self.host.cores} cores, here are {self.cores}; "
                          "name another --out")
        return self.complete(self.plan, running.shuffled(self.plan, self.repeats, self.arguments.seed))

    def job_names(self, failed: bool) -> list[str]:
        """Of the plan's jobs; or of those of which the newest row of a step is a failure."""
        order = running.shuffled(self.plan, self.repeats, self.arguments.seed)
        bad = {(row["repeat"], row["job"]) for row in running.load_rows(self.out) if row["status"] == "failed"}
        return [f"{job.key}-{repeat}" for repeat, job in order if not failed or (repeat, job.key) in bad]

    def run_job(self, name: str) -> bool:
        """Anew, whatever is there of it."""
        key, _, repeat = name.partition("-")
        if key not in self.plan.jobs or not repeat.isdigit():
            raise Refused(f"the plan has no job '{name}'; `scripts/exp jobs` prints them")
        self.make_out("jobs")
        rows = os.path.join("jobs", f"{name}.jsonl")
        if os.path.exists(os.path.join(self.out, rows)):
            os.unlink(os.path.join(self.out, rows))
        return self.run_order([(int(repeat), self.plan.jobs[key])], set(), rows)

    def model(self) -> bool:
        """Of recoveries alone; sweeps of line transfers have a script of their own."""
        from experiment import replays
        wanted = replays.wanted(self.plan, self.figures)
        require_programs([*(job.path(self.arguments.binary) for job in wanted), replays.LOG_DUMP])
        with running.HostLock():
            return replays.make(wanted, self.arguments.binary, self.arguments.ram_dir, self.arguments.models)

    def finish(self, write_csv=True, draw=True, page=True) -> bool:
        """False if a point has no figure and ought to have one; then a line says which, after all the rest."""
        # Matplotlib takes a second to load; a plan does not wait for it.
        from experiment import captions, data as data_module, drawing, figures_page, modelled
        self.make_out()
        rows = running.load_rows(self.out)
        figures = self._figures_of_page(rows)
        plan = self._plan_of(figures)
        found = {figure.name: data_module.collect(figure, plan, rows, self.ceilings) for figure in figures}
        for data in found.values():
            modelled.add(data, plan, self.series, self.arguments.models)
        collected = [(data, self._judge(data, found), captions.caption_of(data, self.series))
                     for data in found.values()]
        stop.check()
        named = {figure.name for figure in self.figures}
        asked = [one for one in collected if one[0].figure.name in named]
        for data, _, caption in asked:
            stop.check()
            if write_csv:
                data_module.write_csv(data, os.path.join(self.out, data.figure.name.replace("/", "-") + ".csv"))
            if draw:
                drawing.write_files(data, self.series, caption, os.path.join(self.out, "plots"))
        if page:
            figures_page.write_page(os.path.join(self.out, "report.html"), collected, self.series,
                                   self._heading(plan, rows))
        self._print_verdicts(asked)
        print(f"{self.out}: " + ", ".join(["CSV"] * write_csv + ["plots"] * draw + ["report.html"] * page))
        for warning in origin.warnings([row for data, _, _ in asked for row in data.rows()]):
            print(f"note: {warning}")
        faults = [(data.figure.name, gap) for data, _, _ in asked for gap in data.faults]
        for name, gap in faults:
            print(f"error: {name}: {gap}", file=sys.stderr)
        return not faults

    def _figures_of_page(self, rows: list[dict]) -> list[spec.Figure]:
        """Those asked for, and those of which each point has a row: some points alone may come from runs that a figure
        shares with another one."""
        there = {(row["job"], row["recovery"]) for row in rows}
        whole = {name for name, points in self._everything.points.items()
                 if all((point.job, point.recovery) in there for point in points)}
        return [figure for figure in self._every_figure if figure in self.figures or figure.name in whole]

    def _judge(self, data, found: dict) -> list:
        from experiment import claims
        cores = min((one.cores for one in origin.hosts_of(data.rows())), default=self.cores)
        return [claims.judge(data, claim, cores, found) for claim in data.figure.claims]

    @staticmethod
    def _print_verdicts(collected) -> None:
        from experiment import modelled
        for data, verdicts, _ in collected:
            for v in verdicts:
                print(f"{data.figure.name}: {v.claim}: paper {v.paper}, ours {v.ours}: {v.text}"
                      + (f" ({v.why})" if v.why else ""))
            for claim in data.figure.claims:
                if text := modelled.beside(data, claim):
                    print(f"{data.figure.name}: {claim['claim']}: modelled, {text}, beside {modelled.papers_text(claim)}")
            for why in data.modelled.missing:
                print(f"note: {data.figure.name}: no modelled series: {why}")


def load_host_scale(path: str):
    try:
        with open(path, encoding="utf-8") as file:
            scale = host_scale.HostScale(**json.load(file))
        if math.isfinite(scale.per_core) and scale.cores > 0 and scale.way in host_scale.WAYS:
            return scale
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError):
        pass
    raise Refused(f"{path} is damaged; without it the host is measured again")


def run_overview(arguments: argparse.Namespace) -> bool:
    """False if a step failed: the tables come with all of them."""
    wanted = overview.load(arguments.names, arguments.seconds, arguments.threads, len(os.sched_getaffinity(0)))
    repeats = arguments.repeats or wanted.repeats
    results = Results(arguments, os.path.join(arguments.out, "overview"))
    results.make_out()
    print(f"{len(wanted.plan.jobs)} runs, {repeats} times; about {clock(wanted.plan.seconds(repeats))}", flush=True)
    good = results.complete(wanted.plan, wanted.order(repeats, arguments.seed), patient=False)
    rows = [row for row in running.load_rows(results.out) if row["job"] in wanted.plan.jobs and row["repeat"] < repeats]
    for row in rows:
        if row["status"] == "failed" and row["command"]:
            print(f"error: {row['why']}\n  again: {row['command']}", file=sys.stderr)
    if good:
        print("\n" + overview.tables_of(wanted, rows))
        for warning in origin.warnings(rows):
            print(f"note: {warning}")
    return good


DRAWING = {"run": ("numpy", "matplotlib"), "plot": ("numpy", "matplotlib"), "report": ("numpy", "matplotlib"),
           "collect": ("numpy", "matplotlib")}


def lacking_modules(action: str) -> list[str]:
    """Before anything runs, not after hours of it."""
    return [name for name in ("yaml", *DRAWING.get(action, ())) if not util.find_spec(name)]


def main(argv: list[str]) -> int:
    arguments = parse_arguments(argv)
    if lacking := lacking_modules(arguments.action):
        print(f"error: `exp {arguments.action}` needs {' and '.join(lacking)}; scripts/setup.sh installs "
              f"{'it' if len(lacking) == 1 else 'them'}", file=sys.stderr)
        return 2
    try:
        if arguments.action == "compare":
            if len(arguments.names) != 2:
                raise Refused("compare takes two directories of results")
            from experiment import comparison
            print(comparison.compare(*arguments.names))
            return 0
        if arguments.action == "list":
            figures = spec.select_figures(arguments.names, spec.load_series())
            print(listing.table(figures) if arguments.table else listing.names(figures))
            return 0
        check_arguments(arguments)
        if arguments.action == "overview":
            return 0 if run_overview(arguments) else 1
        job = arguments.names.pop(0) if arguments.action == "job" and arguments.names else ""
        experiment = Experiment(arguments)
        if arguments.action == "jobs":
            print("\n".join(experiment.job_names(arguments.failed)))
            return 0
        print(experiment.describe(), flush=True)
        if arguments.action == "plan":
            print(experiment.plan.describe_figures(experiment.repeats))
            return 0
        if arguments.action == "model":
            return 0 if experiment.model() else 1
        if arguments.action == "job":
            return 0 if experiment.run_job(job) else 1
        good = experiment.run() if arguments.action == "run" else True
        wanted = ("collect", "plot", "report") if arguments.action == "run" else (arguments.action,)
        complete = experiment.finish(write_csv="collect" in wanted, draw="plot" in wanted, page="report" in wanted)
        return 0 if good and complete else 1
    except stop.Stopped:
        print("\ninterrupted; the same command goes on where it stopped")
        raise
    except (spec.SpecError, Refused) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    stop.run(main)
