"""Runs a plan: jobs in a new order each round, one at a time on this host, a row per step, resumed where it stopped.

A job's logs lie in fresh directories and are deleted when its recoveries are done; what a run that was killed left is
deleted by the next. What fails is a row too, as are the recoveries that a failed run leaves nothing to; it is tried
again when the plan is resumed, and so is what another build did. What needs an instruction that this processor lacks is
skipped, and no failure.
"""
from __future__ import annotations

import contextlib
import fcntl
import glob
import json
import os
import random
import shutil
import subprocess
import tempfile
import time

from child import die_with_parent, end
from experiment import origin, records
from experiment.planning import Job, Plan
from progress import Progress

STEP_TIMEOUT_SECONDS = 600
# One for all users, whatever their TMPDIR. The variable is for tests.
LOCK_PATH = os.environ.get("DBX_EXPERIMENT_LOCK", "/tmp/dbx1000-durable.lock")
WORK_PREFIX = "dbx1000-exp-"
WORK_MARKER = ".deleted-unless-locked"
LACKING = "error: this processor has no "  # as the engine refuses an instruction (logging/device)
LISTENS = "replica: listens at "        # as a replica says where
PROCESSORS = "processors"  # beside a recovery's flags: how many it is confined to


class Refused(Exception):
    """What was asked for cannot be done, and nothing was: one line."""


class Busy(Refused):
    """Another experiment runs on this host."""


class HostLock:
    """Two experiments at a time would measure each other."""

    def __enter__(self):
        try:
            self.descriptor_ = _open_lock()
        except OSError as error:
            raise Refused(f"{LOCK_PATH}, which keeps two experiments apart, cannot be opened: {error.strerror}; "
                          "its owner or root can delete it") from None
        try:
            fcntl.flock(self.descriptor_, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self.descriptor_)
            raise Busy(f"another experiment runs on this host ({LOCK_PATH}); wait for its end") from None
        return self

    def __exit__(self, *_):
        os.close(self.descriptor_)


def _open_lock() -> int:
    """Opens it to read, which is enough for a lock and allowed to every user: in /tmp the kernel may refuse to open
    another user's file to write (fs.protected_regular)."""
    how = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # another user's link or FIFO neither leads away nor blocks
    try:
        return os.open(LOCK_PATH, how)
    except FileNotFoundError:
        before = os.umask(0)
        try:
            return os.open(LOCK_PATH, how | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:  # another one was faster
            return os.open(LOCK_PATH, how)
        finally:
            os.umask(before)


@contextlib.contextmanager
def work_directory(parent: str):
    """A fresh one for a job's logs, locked while it is in use and deleted after."""
    path = tempfile.mkdtemp(prefix=WORK_PREFIX, dir=parent)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # NFS locks no directory, and then takes none for abandoned either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        with open(os.path.join(path, WORK_MARKER), "w", encoding="ascii"):
            pass
        yield path
    finally:
        _delete(path)
        os.close(descriptor)


def _delete(path: str) -> None:
    """The marker goes last: what is cut off here is gone on with by the next run."""
    for entry in list(os.scandir(path)):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        elif entry.name != WORK_MARKER:
            os.unlink(entry.path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(path, WORK_MARKER))
    os.rmdir(path)


def remove_abandoned(parent: str) -> None:
    """What runs that were killed left there. Under the HostLock: a directory that is just made is not locked yet."""
    for path in glob.glob(os.path.join(glob.escape(parent), WORK_PREFIX + "*")):
        if not os.path.exists(os.path.join(path, WORK_MARKER)):
            continue  # something else that is called so
        with contextlib.suppress(OSError):  # another user's, or locked
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _delete(path)
            finally:
                os.close(descriptor)


def drop_caches() -> str:
    """Before a recovery from a real disk, so that it reads the disk. Says what came of it."""
    try:
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("3\n")
        return "dropped"
    except OSError as error:
        return f"kept: {error.strerror}"


def shuffled(plan: Plan, repeats: int, seed: int) -> list[tuple[int, Job]]:
    """All of a plan, in a new order each round."""
    order = []
    for repeat in range(repeats):
        keys = sorted(plan.jobs)
        random.Random(seed * 1000 + repeat).shuffle(keys)
        order += [(repeat, plan.jobs[key]) for key in keys]
    return order


class Runner:
    """`order`: (repeat, job). Rows go to `rows_path`; what `done` has is left out. `disk_dirs`: a disk each."""

    def __init__(self, order: list[tuple[int, Job]], done: set[tuple], seed: int, binary: str, rows_path: str,
                 disk_dirs: list[str], ram_dir: str, patient: bool = True):
        self.binary_ = binary
        self.rows_path_ = rows_path
        self.disk_dirs_ = disk_dirs
        self.ram_dir_ = ram_dir
        self.seed_ = seed
        self.order_ = [(repeat, job) for repeat, job in order if not _is_done(job, repeat, done)]
        self.progress_ = Progress([("job", job.expected_seconds()) for _, job in self.order_])
        self.patient_ = patient  # goes on after a failure
        self.failed = 0

    def run(self) -> None:
        for repeat, job in self.order_:
            self.progress_.begin(describe(job))
            said = self._run_job(job, repeat)
            self.progress_.finish(said, failed=said.startswith("FAILED"))
            if self.failed and not self.patient_:
                break
        self.progress_.close()

    def _run_job(self, job: Job, repeat: int) -> str:
        if job.bench:
            row = self._bench(job, repeat)
            return self._failure(row) if row["status"] == "failed" else f"{job.bench['name']} measured"
        with contextlib.ExitStack() as stack:
            parents = used_directories(job, self.disk_dirs_, self.ram_dir_)
            works = {parent: stack.enter_context(work_directory(parent))
                     for parent in dict.fromkeys(parents)}
            directories = [os.path.join(works[parent], f"d{i}") for i, parent in enumerate(parents)]
            for directory in directories:
                os.mkdir(directory)
            try:
                place = stack.enter_context(self._replica(job, works[parents[0]]))
            except OSError as error:
                row = self._row(job, repeat, "run")
                row.update(status="failed", why=str(error))
                return self._failure(records.append(self.rows_path_, row))
            rows = self._steps(job, repeat, directories, works[parents[0]], place)
        failed = [row for row in rows if row["status"] == "failed"]
        if failed:
            return self._failure(failed[0]) + (f", and {len(failed) - 1} more" if len(failed) > 1 else "")
        if rows[-1]["status"] == "skipped":
            return f"skipped: {rows[-1]['why']}"
        metrics = rows[-1]["record"]["metrics"]
        rate = metrics.get("throughput_acknowledged", metrics.get("throughput", 0))
        return f"{rate / 1e3:,.0f} k txn/s"

    @contextlib.contextmanager
    def _replica(self, job: Job, work: str):
        """HOST:PORT of a replica on the same host and device, "" for a job without one. Raises OSError."""
        if "replication" not in job.flags:
            yield ""
            return
        copies = ",".join(os.path.join(work, f"copy{i}") for i in range(max(1, job.place.directories)))
        flags = {**self._log_flags(job, [copies]), "replica": 0}
        child = subprocess.Popen(self._command(job, flags), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, start_new_session=True,
                                 preexec_fn=die_with_parent)
        try:
            said = child.stdout.readline().strip()
            if not said.startswith(LISTENS):
                raise OSError(f"no replica: {said}")
            yield said.removeprefix(LISTENS)
        finally:
            end(child)
            child.stdout.close()

    def _steps(self, job: Job, repeat: int, directories: list[str], work: str, replica: str) -> list[dict]:
        """The run's row and one for each recovery: a recovery that fails takes nothing from the others."""
        rows = [self._step(job, repeat, "run", "", self._run_command(job, directories, repeat, replica), work)]
        for key, flags in job.recoveries.items():
            if rows[0]["status"] != "ok":
                rows.append(self._not_started(job, repeat, key, rows[0]))
                continue
            caches = drop_caches() if job.place.kind == "disk" and not job.place.device else "as they are"
            more = {name: flags[name] for name in (PROCESSORS,) if name in flags}
            rows.append(self._step(job, repeat, "recover", key, self._recover_command(job, flags, directories), work,
                                   caches=caches, **more))
        return rows

    def _failure(self, row: dict) -> str:
        self.failed += 1
        return f"FAILED: {row['why']}"

    def _not_started(self, job: Job, repeat: int, recovery: str, run: dict) -> dict:
        row = self._row(job, repeat, "recover")
        row.update(recovery=recovery, status=run["status"],
                   why="the run failed" if run["status"] == "failed" else run["why"])
        return records.append(self.rows_path_, row)

    def _run_command(self, job: Job, directories: list[str], repeat: int, replica: str) -> list[str]:
        flags = {**job.flags, "seed": self.seed_ + repeat, **({"replicate_to": replica} if replica else {})}
        if not job.is_counted:
            flags["seconds"] = job.seconds
        if not job.logs:
            flags.pop("log_limit", None)
            return self._command(job, flags)
        return self._command(job, {**flags, **self._log_flags(job, directories)})

    def _recover_command(self, job: Job, flags: dict, directories: list[str]) -> list[str]:
        flags = {"log_recover": 1, **flags, **self._log_flags(job, directories)}
        processors = sorted(os.sched_getaffinity(0))[:flags.pop(PROCESSORS, 0)]
        pinned = ["taskset", "-c", ",".join(map(str, processors))] if processors else []
        return pinned + self._command(job, flags)

    def _command(self, job: Job, flags: dict) -> list[str]:
        return [job.path(self.binary_)] + [f"--{name}={value}" for name, value in flags.items()]

    @staticmethod
    def _log_flags(job: Job, directories: list[str]) -> dict:
        return {"log_dir": ",".join(directories), **({"log_device": job.place.device} if job.place.device else {})}

    def _step(self, job: Job, repeat: int, step: str, recovery: str, command: list[str], work: str, **more) -> dict:
        row = {**self._row(job, repeat, step), "recovery": recovery, **more}
        outcome = records.run(row, command, os.path.join(work, "record.json"), STEP_TIMEOUT_SECONDS,
                              self.progress_.draw)
        if row["status"] == "failed" and outcome.last_line().startswith(LACKING):
            row.update(status="skipped", why=outcome.last_line().removeprefix("error: "))
        return records.append(self.rows_path_, row)

    def _bench(self, job: Job, repeat: int) -> dict:
        """The record's metrics: nanoseconds by label and last argument."""
        command = [job.path(self.binary_), f"--benchmark_filter=^{job.bench['name']}/", "--benchmark_format=json"]
        row = self._row(job, repeat, "bench")
        outcome = records.run(row, command, "", STEP_TIMEOUT_SECONDS, self.progress_.draw)
        try:
            told = json.loads(outcome.output[outcome.output.index("{"):])
            measured = told["benchmarks"]
        except (ValueError, KeyError):
            row.update(status="failed", why=outcome.last_line() or "it printed no JSON")
            return records.append(self.rows_path_, row)
        nanoseconds: dict[str, dict[str, float]] = {}
        skipped = set()
        for one in measured:
            if one.get("error_occurred"):
                skipped.add(one.get("error_message", ""))
            else:
                nanoseconds.setdefault(one["label"], {})[one["name"].split("/")[-1]] = one["cpu_time"]
        row["record"] = {"kind": "bench", "config": {"PROGRAM": job.bench["program"], "BENCHMARK": job.bench["name"]},
                         "metrics": {"ns": nanoseconds}, "skipped": sorted(skipped),
                         "environment": origin.bench_environment(self.binary_, told.get("context", {}))}
        return records.append(self.rows_path_, row)

    def _row(self, job: Job, repeat: int, step: str) -> dict:
        """Of a step that was not started."""
        return {"schema_version": 1, "job": job.key, "recovery": "", "repeat": repeat, "step": step,
                "build": origin.digest(job.path(self.binary_)), "place": vars(job.place), "command": "",
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "exit_status": None, "status": "ok",
                "why": "", "record": {}}


def used_directories(job: Job, disk_dirs: list[str], ram_dir: str) -> list[str]:
    """Where each of a job's log directories is made."""
    parents = disk_dirs if job.place.kind == "disk" else [ram_dir]
    return [parents[i % len(parents)] for i in range(max(1, job.place.directories))]


def describe(job: Job) -> str:
    if job.bench:
        return f"{job.bench['program']} {job.bench['name']}"
    flags = job.flags
    if job.is_cluster:
        words = [flags["workload"], f"{flags['masters']} masters", f"-t{flags['thread_cnt']}"]
        return " ".join(words + [f"{name}={flags[name]}" for name in ("sharing", "sysbench_mix") if name in flags])
    words = [flags["workload"], flags["cc"], flags["log"], flags.get("log_type", ""), f"-t{flags['thread_cnt']}"]
    return " ".join(word for word in words if word) + (f" + {len(job.recoveries)} recoveries" if job.recoveries else "")


def load_rows(directory: str) -> list[dict]:
    """Rows of results.jsonl and of jobs/*.jsonl, the newest for each step; of the same second, the one that comes
    later. A line that was cut off is left out."""
    newest: dict[tuple, dict] = {}
    paths = [os.path.join(directory, "results.jsonl"), *sorted(glob.glob(os.path.join(directory, "jobs", "*.jsonl")))]
    for row in (row for path in paths for row in records.load(path)):
        if not isinstance(row, dict) or "job" not in row:
            raise Refused(f"{directory} has rows that scripts/exp did not write")
        step = row["job"], row["recovery"], row["repeat"]
        if step not in newest or row.get("time", "") >= newest[step].get("time", ""):
            newest[step] = row
    return list(newest.values())


def finished_steps(rows: list[dict], plan: Plan, binary: str) -> tuple[set[tuple], list[dict]]:
    """(job, recovery, repeat) of what the programs that are here have done; and the plan's rows by other builds."""
    done, others = set(), []
    for row in rows:
        job = plan.jobs.get(row["job"])
        if row["status"] != "ok" or job is None:
            continue
        if row.get("build") == origin.digest(job.path(binary)):
            done.add((row["job"], row["recovery"], row["repeat"]))
        else:
            others.append(row)
    return done, others


def _is_done(job: Job, repeat: int, done: set[tuple]) -> bool:
    return all((job.key, recovery, repeat) in done for recovery in ["", *job.recoveries])


def measure_per_core(binary: str, cores: int) -> float:
    """Transactions per second and core of the YCSB figures' base without a log; for the scale of devices."""
    command = [binary, "--cc=NO_WAIT", "--log=LOG_NO", "--workload=YCSB", "--synth_table_size=100000",
               f"--thread_cnt={cores}", "--seconds=1"]
    row: dict = {}
    with tempfile.TemporaryDirectory() as work:
        records.run(row, command, os.path.join(work, "record.json"))
    if row["status"] == "failed":
        raise Refused(f"{row['command']}: {row['why']}")
    return row["record"]["metrics"]["throughput_acknowledged"] / cores


def free_bytes(directory: str) -> int:
    return shutil.disk_usage(directory).free
