"""From figures to jobs: a job is one log run and the recoveries from its logs. Figures share what they both need.

A point of a figure is (panel, series, x); it names the job that gives it, and the recovery if that does.
"""
from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field, replace

from experiment.host_scale import AS_THEY_WERE, HostScale
from experiment.spec import CLUSTER, PROGRAMS, Figure, Scale, Series, SpecError, is_number
from host import parse_bytes
from progress import clock

RUN_OVERHEAD_SECONDS = 1.2   # load, files, exit
RECOVERY_SHARE = 0.8         # of a run's time, beyond the overhead
BENCH_SECONDS = 5.0
COUNTED_PER_SECOND = 50e3    # transactions of a run that ends by their number, or of its recovery from slow disks
CLUSTER_OVERHEAD_SECONDS = 2.0         # the processes start and end, in turn
CLUSTER_LOG_BYTES_PER_SECOND = 150e6   # of its three Log Stores, which keep all
LOG_BUFFER_BYTES = 8 << 20   # LOG_BUFFER_SIZE of config.h
FLUSH_INTERVAL_US = 200      # LOG_FLUSH_INTERVAL of config.h


@dataclass(frozen=True)
class Place:
    """Where the logs lie."""

    kind: str       # "ram", "disk", or "none" where nothing is logged but computed alone
    device: str     # value of --log_device, or ""; recoveries may have another one, among their flags
    directories: int


@dataclass
class Job:
    flags: dict
    place: Place
    seconds: float
    recoveries: dict[str, dict] = field(default_factory=dict)  # key -> flags
    bench: dict = field(default_factory=dict)                  # a micro-benchmark instead of a run
    program: str = PROGRAMS[0]                                 # that runs

    @property
    def key(self) -> str:
        return _digest([self.flags or self.bench, self.program, vars(self.place), self.seconds])

    def path(self, binary: str) -> str:
        """Of what is run; `binary` is the path of rundb-all."""
        folder = os.path.dirname(binary)
        if self.bench:
            return os.path.join(folder, "build", "micro", self.bench["program"])
        return binary if self.program == PROGRAMS[0] else os.path.join(folder, self.program)

    @property
    def is_cluster(self) -> bool:
        return CLUSTER in self.flags

    @property
    def logs(self) -> bool:
        return self.is_cluster or self.flags.get("log", "LOG_NO") != "LOG_NO"

    def step_seconds(self, recovery: str) -> float:
        """Of the run for "", else of a recovery."""
        of_cluster = CLUSTER_OVERHEAD_SECONDS + self.flags.get("warmup_seconds", 0) if self.is_cluster else 0
        return RUN_OVERHEAD_SECONDS + of_cluster + self.seconds * (RECOVERY_SHARE if recovery else 1)

    def expected_seconds(self) -> float:
        return sum(self.step_seconds(recovery) for recovery in ["", *self.recoveries])

    @property
    def is_counted(self) -> bool:
        """It ends by the number of its transactions; `seconds` is about how long that takes."""
        return "max_txns_per_thread" in self.flags

    def log_bytes(self) -> int:
        """Or of the heap, where its size is given. A cluster has no limit: what it may write in its time."""
        if self.is_cluster:
            return int(CLUSTER_LOG_BYTES_PER_SECOND * (self.seconds + self.flags.get("warmup_seconds", 0)))
        sizes = [self.flags.get(name) for name in ("log_limit", "heap_bytes")]
        return max(parse_bytes(str(size)) for size in sizes if size) if self.logs else 0


@dataclass(frozen=True)
class Point:
    panel: str
    series: str
    x: object
    job: str
    recovery: str = ""
    metric: str = ""  # instead of the figure's y


@dataclass
class Plan:
    jobs: dict[str, Job]
    points: dict[str, list[Point]]  # by the figure's name

    def seconds(self, repeats: int) -> float:
        return repeats * sum(job.expected_seconds() for job in self.jobs.values())

    def describe_figures(self, repeats: int) -> str:
        """A line each; a step that several figures need counts in the first of them."""
        lines, seen = [], set()
        for figure, points in self.points.items():
            steps = {(point.job, recovery) for point in points for recovery in {"", point.recovery}}
            seconds = repeats * sum(self.jobs[job].step_seconds(recovery) for job, recovery in steps - seen)
            shared = f", {len(steps & seen)} shared with those above" if steps & seen else ""
            lines.append(f"  {figure:38} {len(points):4} points, {len(steps - seen):4} steps, {clock(seconds):>8}"
                         + shared)
            seen |= steps
        return "\n".join(lines)

    def disk_bytes(self) -> int:
        """At a time: logs are deleted when a job is done."""
        return max((job.log_bytes() for job in self.jobs.values()), default=0)


def _digest(value) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def thread_counts(scale: Scale, cores: int) -> list[int]:
    counts = {cores if count == "cores" else count for count in scale.threads}
    return sorted(count for count in counts if count <= cores) or [cores]


def swept(figure: Figure, scale: Scale, cores: int) -> list:
    if figure.x.values == "threads":
        return thread_counts(scale, cores)
    values = _of_scale(figure.x.values, scale, f"{figure.name}: x")
    if not isinstance(values, list) or not values:
        raise SpecError(f"{figure.name}: x has no values for scale {scale.name}")
    if len({is_number(x) for x in values}) > 1:
        raise SpecError(f"{figure.name}: x has numbers and texts, which have no common order: quote the numbers")
    return values


def _of_scale(value, scale: Scale, where: str):
    """Of {SCALE: value}, the scale's, or laptop's where it is not named; what is no mapping holds for all."""
    if not isinstance(value, dict):
        return value
    if not {scale.name, "laptop"} & set(value):
        raise SpecError(f"{where} has no value for scale {scale.name}")
    return value[scale.name] if scale.name in value else value["laptop"]


def make_plan(figures: list[Figure], series: dict[str, Series], scale: Scale, host: HostScale,
              real_directories: int = 1) -> Plan:
    """`real_directories`: that --log_dir names, a disk each."""
    plan = Plan({}, {})
    for figure in figures:
        points = plan.points.setdefault(figure.name, [])
        if figure.step == "bench":
            job = Job({}, Place("none", "", 0), BENCH_SECONDS, bench=figure.bench)
            plan.jobs[job.key] = job
            points += [Point(panel, name, x, job.key) for panel in figure.panels for name in figure.drawn_in(panel)
                       for x in swept(figure, scale, host.cores)]
            continue
        places = {name: _place(figure, series[name], scale, host, real_directories) for name in figure.series}
        directories = _directories_of_all(figure, scale, host, real_directories)
        parallel = any(series[name].logs == "each" for name in figure.series)
        logs = log_count(scale.devices, directories) if parallel else 1
        interval = _flush_interval(figure, scale, host, directories if parallel else 1)
        for panel, panel_flags in figure.panels.items():
            for name in figure.drawn_in(panel):
                if figure.step == "recover" and series[name].logs == "none":
                    continue
                if not scale.draws(name, figure.name, panel):
                    continue
                for x in swept(figure, scale, host.cores):
                    place = places[name]
                    if figure.x.flag == "devices":
                        if x > place.directories:
                            continue  # there are no more
                        place = replace(place, directories=x)
                    flags = _flags(figure, panel_flags, series[name], x, scale, host, logs)
                    if series[name].logs != "none" and CLUSTER not in flags:
                        flags.setdefault("log_flush_interval", interval)
                    job = _of_engine(flags, place, scale, figure.panel_programs.get(panel, figure.program))
                    if job.place.directories > _most_directories(figure, series[name], host, real_directories):
                        continue
                    points.append(_add_point(plan, figure, panel, series[name], x, job, host))
    return plan


def _device_flag(figure: Figure, series: Series, host: HostScale) -> str:
    """The value of --log_device. A device of the series' own is emulated in all ways: a figure over several devices
    would have the same real directories for all of them."""
    return (AS_THEY_WERE[figure.machine, series.device] if series.device
            else host.device_flag(figure.device, figure.machine))


def _most_directories(figure: Figure, series: Series, host: HostScale, real_directories: int) -> float:
    """That a run can have a disk each in."""
    real = figure.device != "ram" and not _device_flag(figure, series, host)
    return real_directories if real else float("inf")


def _of_engine(flags: dict, place: Place, scale: Scale, program: str) -> Job:
    """The job of flags among which those of plans (spec.OF_PLANS) are."""
    flags, seconds = dict(flags), scale.seconds
    disks, each = flags.pop("disks", 0), flags.pop("disks_of_each", 0)
    if each:
        flags["backup_dirs"] = each
    if disks or each:
        flags["num_logger"] = disks or each
        place = replace(place, directories=disks or 2 * each)
    if latency := flags.pop("pm_latency", 0):
        place = replace(place, device=f"{place.device},latency={latency:g}")
    if writes := flags.pop("writes_per_key", 0):
        flags["transactions"] = round(writes * flags["write_keys"] * flags["synth_table_size"]
                                      / flags.get("req_per_query", 2) / flags["write_perc"])
    if transactions := flags.pop("transactions", 0):
        flags["max_txns_per_thread"] = -(-transactions // flags["thread_cnt"])
        seconds = transactions / COUNTED_PER_SECOND
    return Job(flags, place, seconds, program=program)


def log_count(devices: int, directories: int) -> int:
    """Of a scheme with parallel logs: as many as the scale has devices, in each directory the same."""
    return -(-devices // directories) * directories


def _flush_interval(figure: Figure, scale: Scale, host: HostScale, writers: int) -> str:
    """For all series and points of a figure, what the engine gives to the most workers and log writers that it has.
    Left to the engine, it would differ from scheme to scheme and along x."""
    most_workers = figure.base.get("thread_cnt", thread_counts(scale, host.cores)[-1])
    return f"{FLUSH_INTERVAL_US * (writers if most_workers + writers > host.cores else 1)}us"


def _flags(figure: Figure, panel_flags: dict, series: Series, x, scale: Scale, host: HostScale, logs: int) -> dict:
    """`logs`: of the figure's schemes that have several."""
    flags = {"cc": "NO_WAIT", "thread_cnt": thread_counts(scale, host.cores)[-1], **scale.base, **figure.base,
             **panel_flags, **series.flags}
    if "workload" not in flags:
        raise SpecError(f"{figure.name}: neither base nor the panel has a workload")
    flags = {name: _of_scale(value, scale, f"{figure.name}: {name}") for name, value in flags.items()}
    flags = {**scale.workloads.get(flags["workload"], {}), **flags}
    if figure.x.of != "recover" and figure.x.flag != "devices":
        flags[figure.x.flag] = x
    if CLUSTER in flags:
        flags.pop("cc")
        return flags
    flags.setdefault("log_limit", scale.log_limit)
    if series.logs == "each":
        flags.setdefault("num_logger", logs)
    elif series.logs != "none":
        flags["num_logger"] = 1
        if logs > 1:
            flags["log_buffer_size"] = _buffer_of_one_log(flags, logs)
    return flags


def _buffer_of_one_log(flags: dict, logs: int) -> str:
    """As many bytes as the buffers of parallel logs have together: with fewer, a log that is striped over all disks
    could not keep all of them writing."""
    kib = logs * parse_bytes(str(flags.get("log_buffer_size", LOG_BUFFER_BYTES))) >> 10
    return f"{kib}K" if kib % 1024 else f"{kib >> 10}M"


def _add_point(plan: Plan, figure: Figure, panel: str, series: Series, x, job: Job, host: HostScale) -> Point:
    job = plan.jobs.setdefault(job.key, job)
    recovery = ""
    if figure.step == "recover":
        swept_here = {figure.x.flag: x} if figure.x.of == "recover" else {}
        wanted = {"thread_cnt": host.cores, **figure.recover, **series.recover, **swept_here}
        if figure.written_on and (device := _device_flag(figure, series, host)):
            wanted["log_device"] = device
        recovery = _digest(wanted)
        job.recoveries[recovery] = wanted
    return Point(panel, series.name, x, job.key, recovery, series.recovered if recovery else "")


def _directories_of_all(figure: Figure, scale: Scale, host: HostScale, real_directories: int) -> int:
    """Over which a striped log, and parallel ones, lie. A RAM disk is one directory, which logs share and stripes need
    not."""
    if host.device_flag(figure.device, figure.machine):
        return 2 if figure.machine == "eleda" else scale.devices
    return 1 if figure.device == "ram" else real_directories


def _place(figure: Figure, series: Series, scale: Scale, host: HostScale, real_directories: int) -> Place:
    """By what spec.LOGS say of a series. An emulated device is no faster than what lies below it: a RAM disk."""
    if series.logs == "none":
        return Place("disk", "", 1)
    device = _device_flag(figure, series, host)
    kind = "ram" if device or figure.device == "ram" else "disk"
    if figure.written_on and kind == "ram":
        device = ""
    several = _directories_of_all(figure, scale, host, real_directories)
    return Place(kind, device, 1 if series.logs == "one_disk" else several)
