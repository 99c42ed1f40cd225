#!/usr/bin/env python3
"""Bad input on a real ./rundb-all: one clear line, the right exit status, nothing created, nothing touched.

Run by test.sh; prints a line per failure and 'N passed, M failed'. The expected statuses are the tables below:
0 ok, 2 usage, 3 corrupt, 4 I/O, 5 no space or memory, 6 mismatch, 7 failed check.
"""
from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Callable

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(REPOSITORY, "scripts"))
from child import KillClock
from damages import HEADER_BYTES, cut, flip, logs_of, set_version, swap
from experiment import spec

BINARY = os.path.abspath(os.environ.get("DBX_BINARY", os.path.join(REPOSITORY, "rundb-all")))
KILLER = os.path.join(REPOSITORY, "build", "kill_at.so")  # traces calls, and lets them fail
RAM_DISK = "/dev/shm"
ACK_HEADER_BYTES = 4096
TIMEOUT_SECONDS = 60

SMALL = ["--workload=YCSB", "--synth_table_size=500", "--thread_cnt=2", "--max_txns_per_thread=400"]
TAURUS = ["--cc=NO_WAIT", "--log=LOG_TAURUS", "--log_type=LOG_DATA", "--num_logger=2", *SMALL]
ENDLESS = [argument for argument in TAURUS if "max_txns" not in argument] + ["--seconds=30"]
SMALL_RING = ["--log_buffer_size=128K", "--flush_block_size=64K"]  # a flush takes no more, however late it comes
WBL = ["--cc=HEKATON", "--log=LOG_WBL", "--log_type=LOG_DATA", *SMALL]
INSTANT = ["--cc=HEKATON", "--log=LOG_INSTANT", "--log_type=LOG_DATA", *SMALL]
SERIAL = ["--cc=NO_WAIT", "--log=LOG_SERIAL", "--log_type=LOG_COMMAND", *SMALL]

# Flags that are refused before anything happens: exit status 2, and the words the line must hold.
USAGE = (
    ("UnknownLongFlag", ["--nix"], ["nix"]),
    ("UnknownShortFlag", ["-Q5"], ["-Q5"]),
    ("PositionalArgument", ["nix"], ["nix"]),
    ("NumberWithRest", ["-t4x"], ["THREAD_CNT"]),
    ("NumberMissing", ["-t"], ["THREAD_CNT"]),
    ("NumberBelowRange", ["-t0"], ["THREAD_CNT"]),
    ("EpochOfNoLength", ["--cc=SILO", "-Lj0"], ["EPOCH_PERIOD"]),
    ("NumberNegative", ["--log_limit=-1"], ["LOG_LIMIT"]),
    ("NumberOverflows", ["--seed=99999999999999999999999"], ["SEED"]),
    ("TooManyLogs", ["--log=LOG_TAURUS", "-Ln17"], ["NUM_LOGGER"]),
    ("RealAboveRange", ["-r1.5"], ["READ_PERC"]),
    ("RealNotANumber", ["-znan"], ["ZIPF_THETA"]),
    ("SharesDoNotMakeOne", ["-r0.9", "-w0.9"], ["READ_PERC", "WRITE_PERC"]),
    ("ScansOfAHashIndex", ["--scan_perc=0.5"], ["SCAN_PERC", "IDX_BTREE"]),
    ("ShareBesideTheFullMix", ["--tpcc_full_mix=1", "-Tm0.3"], ["TPCC_FULL_MIX", "PERC_PAYMENT"]),
    ("BadDuration", ["--seconds=soon"], ["SECONDS"]),
    ("WarmUpOfNegativeLength", ["--warmup_seconds=-1"], ["WARMUP_SECONDS"]),
    ("StepsOfNegativeLength", ["--series=s.csv", "--interval=-1"], ["SERIES_INTERVAL must not be negative"]),
    ("StepsOfNoLength", ["--series=s.csv", "--series_interval=0"], ["SERIES_INTERVAL 0"]),
    ("StepsLongerThanTheRun", ["--series=s.csv", "--interval=2s", "--seconds=1"], ["SERIES_INTERVAL 2000", "1 s"]),
    ("StepsWithoutAFile", ["--interval=100"], ["--series=FILE"]),
    ("ASeriesInTheFileOfTheRecord", ["--series=r.json", "--json=r.json"], ["same file"]),
    ("UnknownCc", ["--cc=NIX"], ["CC_ALG", "NO_WAIT", "SILO"]),
    ("CcNotBuilt", ["--cc=TIMESTAMP"], ["not built"]),
    ("IsolationNotBuilt", ["--isolation_level=REPEATABLE_READ"], ["not built", "SNAPSHOT"]),
    ("SnapshotOfOneVersion", ["--cc=SILO", "--log=LOG_NO", "--isolation_level=SNAPSHOT"], ["CC_ALG HEKATON"]),
    ("UnknownScheme", ["--log=LOG_NIX"], ["LOG_ALGORITHM", "LOG_TAURUS"]),
    ("UnknownWorkload", ["--workload=TPCE"], ["WORKLOAD", "TPCC"]),
    ("SiloHasNoLockTable", ["--cc=SILO", "--use_locktable=1", "--log=LOG_NO"], ["USE_LOCKTABLE"]),
    ("TicTocReplaysNoCommands", ["--cc=TICTOC", "--log=LOG_SERIAL", "--log_type=LOG_COMMAND"], ["LOG_TYPE LOG_DATA"]),
    ("SerialHasOneStream", ["--log=LOG_SERIAL", "-Ln4"], ["leave --num_logger out"]),
    ("HoppingDistanceBeyondTheBuffer", ["--log=LOG_ELEDA", "-Lb1M", "--hopping_distance=1M"], ["LOG_BUFFER_SIZE"]),
    ("FractionForPsnFlushFreq", ["-Tp0.5"], ["-Tm"]),
    ("AcknowledgementsThatNobodyChecks", ["-Lr1", "--ack_file=acks"], ["--verify"]),
    ("LowerCaseCc", ["--cc=silo"], ["unknown CC_ALG 'silo'; did you mean SILO?"]),
    ("SkewBelowZero", ["-z-1"], ["must not be negative"]),
    ("MoreRowsThanAnyHostHas", ["-s8388608G"], ["out of range"]),
    ("RunNumberWithoutRecovery", ["--run=1"], ["-Lr1"]),
    ("OverwriteInRecovery", ["-Lr1", "--log_overwrite"], ["log_overwrite"]),
    ("MoreDirectoriesThanPartsOfABackup",
     ["--log=LOG_DIFFERENTIAL", "--log_dir=" + ",".join(f"d{i}" for i in range(65))], ["at most 64"]),
    ("ChangesLongerThanARecord", ["--log=LOG_DIFFERENTIAL", "-f200", "-s1000", "--max_log_entry_size=16K"],
     ["MAIN_TABLE", "MAX_LOG_ENTRY_SIZE"]),
    ("ChangesOfBothImagesLongerThanARecord",
     ["--log=LOG_DIFFERENTIAL", "-f200", "-s1000", "--diff_method=PL2P", "--max_log_entry_size=32K"],
     ["MAIN_TABLE", "MAX_LOG_ENTRY_SIZE"]),
    ("UnknownMethodOfDifferentialLogs", ["--diff_method=DL3P"], ["unknown DIFF_METHOD 'DL3P'", "DL1P, DL2P, PL2P"]),
    ("RunsOfWholeImages", ["--log=LOG_DIFFERENTIAL", "--diff_method=PL2P", "--diff_image=RUNS"],
     ["DIFF_METHOD PL2P", "--diff_image=RUNS"]),
    ("DifferentialLogsOfCommands", ["--log=LOG_DIFFERENTIAL", "--log_type=LOG_COMMAND"], ["LOG_TYPE LOG_DATA"]),
    ("RedoOnDemandOfNothing", ["--redo=ON_DEMAND"], ["--redo=ON_DEMAND belongs to --continue"]),
    ("CommandsHaveNoChainsOfRows", ["--log=LOG_INSTANT", "--log_type=LOG_COMMAND"], ["LOG_TYPE LOG_DATA"]),
    ("LinksOfRowsInALockTable", ["--cc=NO_WAIT", "--log=LOG_INSTANT", "--log_type=LOG_DATA", "--use_locktable=1"],
     ["set USE_LOCKTABLE 0"]),
    ("MoreWorkersThanQueues", ["--workload=SMS", "--log=LOG_NO", "-t65"], ["64 queues", "THREAD_CNT"]),
    ("MessagesThatAreNotWords", ["--workload=SMS", "--log=LOG_NO", "--sms_slot_bytes=100"], ["multiple of 8"]),
    ("MessagesTooLong", ["--workload=SMS", "--sms_slot_bytes=4K"], ["SMS_SLOT_BYTES", "out of range"]),
    ("MoreRollbacksThanTransactions", ["--sms_abort_perc=101"], ["SMS_ABORT_PERC"]),
    ("TheSameDirectoryTwice", ["--log=LOG_TAURUS", "--log_dir=logs,logs"], ["twice"]),
    ("DisksContradictDirectories", ["--log=LOG_TAURUS", "-LD3", "--log_dir=a,b"], ["-LD3"]),
)

QUESTIONS = (("Help", ["-h"]), ("LongHelp", ["--help"]), ("List", ["--list"]), ("Effective", ["-S"]),
             ("Version", ["--version"]), ("ManPage", ["--man_page"]), ("Completion", ["--bash_completion"]))

# What bash proposes behind some words.
COMPLETIONS = (
    ("OfAFlag", ["--num_log"], ["--num_logger="]),
    ("OfANameAfterAnEqualsSign", ["--log", "=", "LOG_PL"], ["LOG_PLOVER"]),
    ("OfEveryName", ["--index", "="], ["IDX_HASH", "IDX_BTREE"]),
    ("OfANameAfterASpace", ["--workload", "T"], ["TPCC", "TEST"]),
    ("OfAFile", ["--json", "=", "/etc/host"], ["/etc/hosts"]),
    ("OfANumberIsLeftToTheUser", ["--thread_cnt", "=", ""], []),
)

# Flags that contradict a log (TAURUS above): exit status 6, and the switch that the line must name.
CONTRADICTIONS = (
    ("OtherCc", ["--cc=SILO"], "CC_ALG"),
    ("OtherScheme", ["--log=LOG_SERIAL"], "LOG_ALGORITHM"),
    ("OtherPayload", ["--log_type=LOG_COMMAND"], "LOG_TYPE"),
    ("OtherLogCount", ["--num_logger=3"], "NUM_LOGGER"),
    ("OtherWorkload", ["--workload=TPCC"], "WORKLOAD"),
    ("OtherTableSize", ["--synth_table_size=501"], "SYNTH_TABLE_SIZE"),
    ("OtherSeed", ["--seed=77"], "SEED"),
)


class Failed(Exception):
    pass


def rundb(arguments: list[str], cwd: str) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, *arguments], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=TIMEOUT_SECONDS)


def expect(done: subprocess.CompletedProcess, status: int, words=()) -> None:
    """The status, and for an error exactly one line that begins with 'error: ' and holds the words."""
    said = done.stderr.strip()
    if done.returncode != status:
        raise Failed(f"exit status {done.returncode} instead of {status}: {said or done.stdout.strip()[-200:]}")
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    if status != 0 and len(errors) != 1:
        raise Failed(f"not one line 'error: ...' but: {said}")
    if any(re.match(r"error: \S+@\d+: ", line) for line in errors):
        raise Failed(f"the line begins with a place, not with what is wrong: {said}")
    lacking = [word for word in words if word not in (errors or [""])[0]]
    if lacking:
        raise Failed(f"the line lacks {lacking}: {said}")


def is_ram_disk(directory: str) -> bool:
    told = subprocess.run(["stat", "-f", "-c", "%T", directory], capture_output=True, text=True)
    return told.stdout.strip() == "tmpfs" and os.access(directory, os.W_OK)


def snapshot(directory: str) -> dict[str, str]:
    """Every file below with its digest, every directory with ''."""
    found = {}
    for folder, folders, files in os.walk(directory):
        for name in folders:
            found[os.path.join(folder, name)] = ""
        for name in files:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[path] = hashlib.sha256(file.read()).hexdigest()
    return found


@dataclass
class Damage:
    """What is done to a copy of a run's logs, and what recovery must say to it."""

    name: str
    base: str  # "taurus" or "serial"
    act: Callable[[str], None]
    status: int
    arguments: tuple = ()


DAMAGES = (
    Damage("NothingIsWrong", "taurus", lambda d: None, 0),
    Damage("AnotherThreadCountIsFine", "taurus", lambda d: None, 0, ("--thread_cnt=3",)),
    Damage("OneHeaderCopyDamagedIsRepaired", "taurus", lambda d: flip(logs_of(d)[0], 100), 0),
    Damage("BothHeaderCopiesDamaged", "taurus", lambda d: flip(logs_of(d)[0], 100, HEADER_BYTES + 100), 3),
    Damage("BothMagicsDamaged", "taurus", lambda d: flip(logs_of(d)[1], 0, HEADER_BYTES), 3),
    Damage("CutInsideTheHeader", "taurus", lambda d: cut(logs_of(d)[1], 1000), 3),
    Damage("EmptyFile", "taurus", lambda d: cut(logs_of(d)[0], 0), 3),
    Damage("OtherVersion", "taurus", lambda d: set_version(logs_of(d)[0], 99), 6),
    Damage("FirstLogMissing", "taurus", lambda d: os.unlink(logs_of(d)[0]), 6),
    Damage("LastLogMissing", "taurus", lambda d: os.unlink(logs_of(d)[1]), 6),
    Damage("AllLogsMissing", "taurus", lambda d: [os.unlink(p) for p in logs_of(d)], 6),
    Damage("LogsSwapped", "taurus", lambda d: swap(*logs_of(d)), 6),
    Damage("LogOfAnotherRun", "taurus", lambda d: shutil.copy(logs_of(d, 2)[1], logs_of(d, 1)[1]), 6, ("--run=1",)),
    Damage("TheOneLogOfAnotherRun", "serial", lambda d: shutil.copy(logs_of(d, 2)[0], logs_of(d)[0]), 6, ("--run=1",)),
    Damage("RunNotThere", "taurus", lambda d: None, 6, ("--run=99",)),
    Damage("NoRunAtAll", "taurus", lambda d: [shutil.rmtree(os.path.join(d, n)) for n in os.listdir(d)], 4),
    Damage("DurableBytesDamaged", "serial", lambda d: flip(logs_of(d)[0], 2 * HEADER_BYTES + 4500), 3),
    Damage("DurableBytesDamagedInOneOfTwo", "taurus", lambda d: flip(logs_of(d)[0], 2 * HEADER_BYTES + 4500), 3),
)


class Checks:
    """One method per group; each yields (name, callable)."""

    def __init__(self, root: str):
        self.root_ = root
        self.bases_: dict[str, str] = {}

    def fresh(self, name: str) -> str:
        return tempfile.mkdtemp(prefix=f"{name}-", dir=self.root_)

    def base(self, name: str) -> str:
        """A directory with two finished runs, made once."""
        if name not in self.bases_:
            directory = self.fresh(f"base-{name}")
            for seed in (1, 2):
                arguments = TAURUS if name == "taurus" else SERIAL
                expect(rundb([*arguments, f"--log_dir={directory}", f"--seed={seed}", "--verify"], self.root_), 0)
            self.bases_[name] = directory
        return self.bases_[name]

    def copy(self, name: str) -> str:
        directory = self.fresh(name)
        shutil.copytree(self.base(name), directory, dirs_exist_ok=True)
        return directory

    def usage(self):
        for name, arguments, words in USAGE:
            yield name, lambda a=arguments, w=words: self._refused(a, w)

    def _refused(self, arguments: list[str], words: list[str]) -> None:
        directory = self.fresh("usage")
        expect(rundb(arguments, directory), 2, words)
        if os.listdir(directory):
            raise Failed(f"it created {os.listdir(directory)}")

    def questions(self):
        for name, arguments in QUESTIONS:
            yield name, lambda a=arguments: self._answered(a)

    def _answered(self, arguments: list[str]) -> None:
        directory = self.fresh("question")
        done = rundb(arguments, directory)
        expect(done, 0)
        if not done.stdout.strip() or os.listdir(directory):
            raise Failed("no answer, or files were created")

    def completions(self):
        for name, words, expected in COMPLETIONS:
            yield name, lambda w=words, e=expected: self._completed(w, e)

    def _completed(self, words: list[str], expected: list[str]) -> None:
        script = (f"source <({BINARY} --bash_completion); COMP_WORDS=(rundb {shlex.join(words)}); "
                  f"COMP_CWORD={len(words)}; _rundb; printf '%s\n' \"${{COMPREPLY[@]}}\"")
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        if done.returncode != 0 or done.stderr:
            raise Failed(f"bash ended with {done.returncode}: {done.stderr}")
        proposed = done.stdout.split()
        if not set(expected) <= set(proposed) or (not expected and proposed):
            raise Failed(f"proposed {proposed} and not {expected}")

    def contradictions(self):
        for name, arguments, switch in CONTRADICTIONS:
            yield name, lambda a=arguments, s=switch: self._recovery("taurus", lambda d: None, 6, a, [s])

    def damages(self):
        for damage in DAMAGES:
            yield damage.name, lambda d=damage: self._recovery(d.base, d.act, d.status, list(d.arguments))

    def _recovery(self, base: str, act: Callable, status: int, arguments: list[str], words=()) -> None:
        """Recovery says `status`, and whatever it says, it changes nothing."""
        directory = self.copy(base)
        if "--run=" not in " ".join(arguments):
            shutil.rmtree(os.path.join(directory, "run-0002"))
        act(directory)
        before = snapshot(directory)
        expect(rundb(["-Lr1", f"--log_dir={directory}", "--verify", *arguments], self.root_), status, words)
        if snapshot(directory) != before:
            raise Failed("recovery changed the log directory")

    def directories(self):
        missing = os.path.join(self.root_, "missing")
        plain = os.path.join(self.root_, "plain")
        with open(plain, "w", encoding="utf-8") as file:
            file.write("no directory")
        yield "RunIntoMissingDirectory", lambda: self._unusable(missing, 4)
        yield "RunIntoAFile", lambda: self._unusable(plain, 4)
        yield "RunIntoProc", lambda: self._unusable("/proc", 4)
        yield "RecoverFromMissingDirectory", lambda: expect(rundb(["-Lr1", f"--log_dir={missing}"], self.root_), 4)
        yield "JsonIntoMissingDirectory", lambda: expect(
            rundb([*SMALL, f"--json={missing}/result.json"], self.root_), 4, [missing])
        yield "RunIntoReadOnlyFileSystem", lambda: self._mounted("ro", 4)
        yield "RunIntoFullFileSystem", lambda: self._mounted("size=2m", 5)
        yield "AFailedRunLeavesNoEmptyResult", self._failed_run
        yield "AMissingDirectoryIsNamedWithTheLineThatMakesIt", lambda: expect(
            rundb([*TAURUS, f"--log_dir={missing}"], self.root_), 4, [f"mkdir -p {missing}"])

    def outputs(self):
        yield "FullStandardOutput", lambda: self._output_fails("/dev/full", 5)
        yield "ClosedStandardOutput", lambda: self._output_fails("", 4)
        yield "AReaderThatLeavesCostsNoRecord", self._closed_pipe
        yield "AFullDiskLeavesNoHalfRecord", self._half_record
        yield "ScriptsKnowEverySwitch", self._known_switches

    def _output_fails(self, target: str, status: int) -> None:
        """Of help and of a run, whose record is written all the same."""
        record = os.path.join(self.fresh("output"), "record.json")
        redirection = f"> {target}" if target else ">&-"
        for arguments in (["-h"], [*SMALL, "--log=LOG_NO", f"--json={record}"]):
            line = shlex.join([BINARY, *arguments]) + " " + redirection
            done = subprocess.run(["bash", "-c", line], cwd=self.root_, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=TIMEOUT_SECONDS)
            expect(done, status, ["standard output"])
        if target and not os.path.exists(record):
            raise Failed("the record was lost with the output")

    def _closed_pipe(self) -> None:
        record = os.path.join(self.fresh("pipe"), "record.json")
        line = shlex.join([BINARY, *SMALL, "--log=LOG_NO", f"--json={record}"])
        subprocess.run(["bash", "-c", f"{line} | true"], cwd=self.root_, timeout=TIMEOUT_SECONDS)
        with open(record, encoding="utf-8") as file:
            json.loads(file.read())

    def _half_record(self) -> None:
        """By a limit of the size of files, which a write meets as it would a full disk; then there is space again."""
        record = os.path.join(self.fresh("half"), "record.json")
        arguments = [*SMALL, "--log=LOG_NO", f"--json={record}"]
        expect(rundb(arguments, self.root_), 0)
        blocks = os.path.getsize(record) // 1024 + 1
        limited = subprocess.run(["bash", "-c", f"trap '' XFSZ; ulimit -f {blocks}; exec " +
                                  shlex.join([BINARY, *arguments])], cwd=self.root_, capture_output=True, text=True,
                                 stdin=subprocess.DEVNULL, timeout=TIMEOUT_SECONDS)
        expect(limited, 4, [record])
        expect(rundb(arguments, self.root_), 0)
        with open(record, encoding="utf-8") as file:
            if len([json.loads(line) for line in file]) != 2:
                raise Failed("there are not two records")

    def _known_switches(self) -> None:
        """scripts/exp refuses unknown ones while planning, without a binary to ask."""
        known = rundb(["-h"], self.root_).stdout
        wanted = set(re.findall(r"^  --(\w+)", known, re.M))
        if not wanted <= spec.engine_switches():
            raise Failed(f"scripts/experiment/spec.py misses {sorted(wanted - spec.engine_switches())}")

    def _unusable(self, directory: str, status: int) -> None:
        existed = os.path.exists(directory)
        expect(rundb([*TAURUS, f"--log_dir={directory}"], self.root_), status, [directory])
        if os.path.exists(directory) != existed:
            raise Failed("it made the directory")

    def _failed_run(self) -> None:
        """It fails after the check of the result files: one that was there is kept, one that was not is not made."""
        directory = self.fresh("failed")
        old = os.path.join(directory, "old.json")
        with open(old, "w", encoding="utf-8") as file:
            file.write("{}\n")
        files = [f"--json={old}", "-o" + os.path.join(directory, "new.txt")]
        before = snapshot(directory)
        expect(rundb([*TAURUS, f"--log_dir={directory}/missing", *files], self.root_), 4, ["missing"])
        if snapshot(directory) != before:
            raise Failed(f"it left {os.listdir(directory)}")

    def _mounted(self, options: str, status: int) -> None:
        """In a mount namespace of its own; where the machine refuses one, the check is left out."""
        directory = self.fresh("mounted")
        line = f'mount -t tmpfs -o {options} tmpfs "{directory}" && exec "$@"'
        prefix = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", line, "sh"]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
            return
        arguments = [*ENDLESS, "--log_limit=64M", f"--log_dir={directory}"]
        done = subprocess.run([*prefix, BINARY, *arguments], capture_output=True, text=True, cwd=self.root_,
                              stdin=subprocess.DEVNULL, timeout=TIMEOUT_SECONDS)
        expect(done, status, [directory])

    def runs(self):
        yield "OlderRunStaysAsItWas", self._older_run
        yield "OverwriteDeletesOlderRuns", self._overwrite
        yield "InterruptEndsTheRunCleanly", self._interrupt
        yield "AnInterruptBeforeTheIntervalIsNoResult", self._early_interrupt
        yield "LogLimitEndsTheRunCleanly", self._log_limit
        yield "ARunInUseIsLeftAlone", self._in_use
        yield "AnUnsyncedLogStaysUnsynced", self._unsynced
        yield "RowsAreRebuiltOnDemandFromChainsAlone", self._redo_on_demand

    def _older_run(self) -> None:
        directory = self.copy("taurus")
        before = snapshot(directory)
        expect(rundb([*TAURUS, f"--log_dir={directory}"], self.root_), 0)
        after = snapshot(directory)
        if any(after.get(path) != digest for path, digest in before.items()) or len(after) <= len(before):
            raise Failed("an older run was touched, or no new one was made")

    def _overwrite(self) -> None:
        directory = self.copy("taurus")
        expect(rundb([*TAURUS, f"--log_dir={directory}", "--log_overwrite"], self.root_), 0)
        runs = sorted(os.listdir(directory))
        if runs != ["run-0003"]:
            raise Failed(f"after --log_overwrite there are {runs}")

    def _interrupt(self) -> None:
        directory = self.fresh("interrupt")
        acks = os.path.join(self.root_, "interrupt.acks")
        command = [BINARY, *ENDLESS, "--log_limit=256M", "--verify", f"--ack_file={acks}", f"--log_dir={directory}"]
        child = subprocess.Popen(command, cwd=self.root_, text=True, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        acknowledging = KillClock(acks, 0)
        while not acknowledging() and child.poll() is None:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        try:
            stdout, stderr = child.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            child.kill()
            raise Failed("SIGINT did not end it within 20 s") from None
        expect(subprocess.CompletedProcess([], child.returncode, stdout, stderr), 0)
        if "[summary]" not in stdout or "stopped by a signal" not in stdout:
            raise Failed("no summary that names the signal")
        self._recovers_with(directory, "b")

    def _early_interrupt(self) -> None:
        """While it warms up."""
        directory = self.fresh("early")
        command = [BINARY, *TAURUS, "--warmup=100000000", "--log_limit=16M", "--read_perc=1", f"--log_dir={directory}"]
        child = subprocess.Popen(command, cwd=self.root_, text=True, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 20  # its handlers are there before its first directory
        while not os.listdir(directory) and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        stdout, stderr = child.communicate(timeout=20)
        expect(subprocess.CompletedProcess([], child.returncode, stdout, stderr), 143, ["before the measured interval"])
        if "PASS" in stdout:
            raise Failed(f"it printed {stdout.splitlines()[0]}")

    def _log_limit(self) -> None:
        directory = self.fresh("limit")
        done = rundb([*ENDLESS, "--log_limit=4M", "--verify", f"--log_dir={directory}"], self.root_)
        expect(done, 0)
        if "log limit" not in done.stdout:
            raise Failed("it does not say that it stopped at the log limit")
        self._recovers_with(directory, "b")

    def _unsynced(self) -> None:
        directory = self.fresh("unsynced")
        record = os.path.join(self.root_, "unsynced.json")
        expect(rundb([*TAURUS, "-Lf1", f"--log_dir={directory}"], self.root_), 0)
        expect(rundb(["--continue", "-Lf0", f"--log_dir={directory}"], self.root_), 6, ["LOG_NO_FLUSH"])
        expect(rundb(["--continue", f"--log_dir={directory}", f"--json={record}"], self.root_), 0)
        with open(record, encoding="utf-8") as file:
            if json.load(file)["metrics"]["unsynced"] is not True:
                raise Failed("what continues an unsynced log passes for synced")

    def _redo_on_demand(self) -> None:
        """Of rows that have chains of records; any other log refuses it, and is left as it was."""
        directory, record = self.fresh("no-chains"), os.path.join(self.root_, "redo.json")
        expect(rundb([*SERIAL, f"--log_dir={directory}"], self.root_), 0)
        expect(rundb(["--continue", "--redo=ON_DEMAND", f"--log_dir={directory}"], self.root_), 2,
               ["LOG_SERIAL keeps no chains of records", "leave --redo=ON_DEMAND out"])
        self._recovers_with(directory, "a")
        directory = self.fresh("chains")
        expect(rundb([*INSTANT, f"--log_dir={directory}"], self.root_), 0)
        expect(rundb(["--continue", "--redo=ON_DEMAND", "--max_txns_per_thread=50", f"--log_dir={directory}", "--verify",
                      f"--json={record}"], self.root_), 0)
        with open(record, encoding="utf-8") as file:
            redo = json.load(file)["metrics"]["redo"]
        if not 0 < redo["rebuilt_on_demand"] < redo["rows"] <= redo["records_read"]:
            raise Failed(f"the record says {redo} of 50 transactions of two workers")
        self._recovers_with(directory, "b")

    def _in_use(self) -> None:
        """No other process touches the run of a live process; once that is killed nothing is in the way."""
        directory = self.fresh("in-use")
        acks = os.path.join(self.root_, "in-use.acks")
        readers = ["--read_perc=1", "--log_limit=16M", f"--ack_file={acks}"]  # they log nothing: the run lasts
        child = subprocess.Popen([BINARY, *ENDLESS, *readers, f"--log_dir={directory}"], cwd=self.root_,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not os.path.exists(acks) and child.poll() is None:
                time.sleep(0.01)
            why = f"another process is using {directory}/run-0001; wait until it has ended"
            for verb, flags in (("continue", ["--continue"]), ("recover", ["-Lr1"]),
                                ("delete", [*TAURUS, "--log_overwrite"])):
                expect(rundb([*flags, f"--log_dir={directory}"], self.root_), 4, [f"error: cannot {verb} run-0001: {why}"])
        finally:
            child.kill()
            child.wait()
        expect(rundb(["-Lr1", f"--log_dir={directory}", "--verify"], self.root_), 0)

    def devices(self):
        for engine in ("pwrite", "uring"):
            yield f"WhatIsLoggedIsSynced_{engine}", lambda e=engine: self._synced(self.fresh("synced"), e)
        if is_ram_disk(RAM_DISK):  # the engine syncs there by fdatasync
            yield "WhatIsLoggedIsSynced_fdatasync", lambda: self._on_ram_disk(lambda d: self._synced(d, "pwrite"))
            yield "AFailedSyncEndsTheRun", lambda: self._on_ram_disk(self._failed_sync)

    def _on_ram_disk(self, check: Callable[[str], None]) -> None:
        with tempfile.TemporaryDirectory(prefix="dbx-cli-", dir=RAM_DISK) as directory:
            check(directory)

    def _with_killer(self, arguments: list[str], directory: str, variable: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "LD_PRELOAD": KILLER, "DBX_KILL_UNDER": os.path.realpath(directory)}
        name, value = variable.split("=", 1)
        return subprocess.run([BINARY, *arguments, f"--log_dir={directory}"], cwd=self.root_, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, env={**environment, name: value},
                              timeout=TIMEOUT_SECONDS)

    def _synced(self, directory: str, engine: str) -> None:
        """Each log becomes durable again and again, and that is the last that happens to it.

        A worker's 500 KB take four flushes at least."""
        trace = os.path.join(self.root_, f"trace-{os.path.basename(directory)}")
        flags = [*TAURUS, *SMALL_RING, f"--io_engine={engine}"]
        done = self._with_killer(flags, directory, f"DBX_KILL_TRACE={trace}")
        if engine == "uring" and "io_uring" in done.stderr and done.returncode in (4, 5):
            return  # this kernel or container has none, or no memory for it
        expect(done, 0)
        calls: dict[str, list[str]] = {}
        with open(trace, encoding="utf-8") as file:
            for call, path in (line.split() for line in file):
                if call in ("write", "sync", "dsync"):
                    calls.setdefault(path, []).append(call)
        for path in ("run-0001/log-00.log", "run-0001/log-01.log"):
            of_log = calls.get(path, [])
            # The probe of the device and the header come before the log has its name; each flush is one.
            if sum(call != "write" for call in of_log) < 2 or of_log[-1] == "write":
                raise Failed(f"what happens to {path} is: {' '.join(of_log)}")

    def _failed_sync(self, directory: str) -> None:
        """The killer takes from the file what was written since its last sync: none of that may be acknowledged.

        One log and a small ring: its 24 MB take 192 flushes at least, however fast its writers are."""
        acks = os.path.join(self.root_, "failed-sync.acks")
        flags = ["--num_logger=1" if flag.startswith("--num_logger") else flag for flag in ENDLESS]
        flags += ["--log_limit=24M", *SMALL_RING, f"--ack_file={acks}"]
        done = self._with_killer(flags, directory, "DBX_KILL_AT=fail:sync:log-00.log:40")
        expect(done, 4, ["sync", "log-00.log"])
        with open(acks, "rb") as file:
            if not any(file.read()[ACK_HEADER_BYTES:]):
                raise Failed("nothing was acknowledged before the sync failed")
        self._recovers_with(directory, "c", f"--ack_file={acks}")

    def _recovers_with(self, directory: str, check: str, *flags: str) -> None:
        done = rundb(["-Lr1", f"--log_dir={directory}", "--verify", *flags], self.root_)
        expect(done, 0)
        verified = next((line for line in done.stdout.splitlines() if line.startswith("verified:")), "")
        if check not in verified.replace("verified:", "").replace(" ", "").split(","):
            raise Failed(f"check {check} was not made: {verified or 'no line verified:'}")

    def all(self):
        for group in (self.usage, self.questions, self.completions, self.directories, self.outputs, self.runs,
                      self.devices, self.contradictions, self.damages):
            yield from group()


def run_checks(checks: Callable, prefix: str, programs: dict[str, str]) -> int:
    """Makes all checks in a directory of their own. `programs`: paths that must be there, and their make targets."""
    for path, target in programs.items():
        if not os.access(path, os.X_OK):
            print(f"error: {path} is missing; build it with `make {target}`")
            return 2
    passed = failed = 0
    os.makedirs(os.path.join(REPOSITORY, "build"), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=os.path.join(REPOSITORY, "build")) as root:
        for name, check in checks(root).all():
            try:
                check()
                passed += 1
            except Failed as reason:
                failed += 1
                print(f"FAILED {name}: {reason}", flush=True)
            except subprocess.TimeoutExpired:
                failed += 1
                print(f"FAILED {name}: no end after {TIMEOUT_SECONDS} s", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run_checks(Checks, "cli-", {BINARY: "rundb-all", KILLER: "kill_points"}))
