#!/usr/bin/env python3
"""./log_dump on the files of real runs: what it prints of each kind, and what it says to damage.

Run by test.sh; prints a line per failure and 'N passed, M failed'.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from cli_check import (BINARY, REPOSITORY, SERIAL, SMALL, TAURUS, TIMEOUT_SECONDS, WBL, Failed, expect, run_checks,
                       rundb)
from damages import (HEADER_BYTES, change_slot, cut, empty_gaps, files_of, flip, flip_tuple, gap_records, gaps_of,
                     give_extent, heap_of, logs_of, promise_more, tear_newest_record)

LOG_DUMP = os.path.abspath(os.environ.get("DBX_LOG_DUMP", os.path.join(REPOSITORY, "log_dump")))
STREAM_OFFSET = 2 * HEADER_BYTES


def dump(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([LOG_DUMP, *arguments], capture_output=True, text=True, timeout=TIMEOUT_SECONDS)


def shows(done: subprocess.CompletedProcess, *parts: str) -> None:
    lacking = [part for part in parts if not re.search(part, done.stdout, re.M)]
    if lacking:
        raise Failed(f"the dump lacks {lacking}: {done.stdout[-400:]}")


def end_of(log: str) -> int:
    """The offset up to which a log is valid."""
    return int(re.search(r"\(offset (\d+)\)", dump("--verify", log).stdout)[1])


class Checks:
    """Each method is a check; its name says what must hold."""

    def __init__(self, root: str):
        self.root_ = root
        self.originals_ = {}
        for name, flags in (("taurus", TAURUS), ("serial", SERIAL)):
            self.originals_[name] = os.path.join(root, name)
            os.mkdir(self.originals_[name])
            expect(rundb([*flags, f"--log_dir={self.originals_[name]}", "--verify"], root), 0)

    def copy(self, name: str) -> str:
        directory = tempfile.mkdtemp(prefix=f"{name}-", dir=self.root_)
        shutil.copytree(self.originals_[name], directory, dirs_exist_ok=True)
        return directory

    def logs(self, name: str) -> list[str]:
        return logs_of(self.copy(name))

    def a_whole_run_is_verified(self):
        done = dump("--verify", *self.logs("taurus"))
        expect(done, 0)
        shows(done, "log 1 of 2, taurus, data", "anchor in", "clean end", "^verified: 2 logs")

    def every_kind_of_record_is_printed(self):
        data, command = dump(*self.logs("taurus")), dump(*self.logs("serial"))
        shows(data, r"lsn 0 \w+", r"data .* txn \d+:\d+ lv \[", r"put table 0 key \d+", r"anchor .* durable \[",
              r"run_end .* digest")
        shows(command, r"command .* txn \d+:\d+ procedure \d+ args \d+ bytes", r"pad .* durable \d+")

    def as_many_records_are_printed_as_asked(self):
        log, = self.logs("serial")
        for flags in (["--records", "3"], ["--records=3"], ["--verify", "--records=3"]):
            done = dump(*flags, log)
            if len(re.findall(r"^  lsn ", done.stdout, re.M)) != 3:
                raise Failed(f"{flags} printed {done.stdout[-400:]}")

    def the_files_of_a_run_that_continues_are_printed(self):
        directory = self.copy("taurus")
        expect(rundb(["--continue", "--checkpoint", "--verify", f"--log_dir={directory}"], self.root_), 0)
        done = dump(*files_of(directory, 1), *files_of(directory, 2))
        expect(done, 0)
        shows(done, r"committed: run [0-9a-f]{16}$", "frozen: .* frontier .* digest",
              "successor: .* continued by run-0002", "manifest: .* continues run-0001", "checkpoint: .* part 0 of 1", r"table 0: 500 rows",
              r"^  checkpoint 0: \d+ bytes, 500 rows", "  continues run-0001 .* from LSN")

    def a_striped_log_is_read_from_all_its_stripes(self):
        disks = [os.path.join(self.root_, name) for name in ("disk0", "disk1")]
        for disk in disks:
            os.mkdir(disk)
        expect(rundb([*SERIAL, f"--log_dir={','.join(disks)}", "--stripe_unit=4K", "--verify"], self.root_), 0)
        stripes = [log for disk in disks for log in logs_of(disk)]
        done = dump("--verify", "--records=2", *reversed(stripes))
        expect(done, 0)
        shows(done, "one log in stripes of 4096 bytes", r"lsn 0 command", "clean end")
        expect(dump(stripes[1]), 6, [stripes[1], "2 stripes of a log"])

    def stamps_and_marks_are_printed(self):
        for name, cc, parts in (("LOG_PLOVER", "NO_WAIT", "000[123]"), ("LOG_BATCH", "SILO", "0000")):
            directory = os.path.join(self.root_, name)
            os.mkdir(directory)
            expect(rundb([f"--cc={cc}", f"--log={name}", "--log_type=LOG_DATA", "--num_logger=2", *SMALL,
                          f"--log_dir={directory}", "--verify"], self.root_), 0)
            done = dump(*files_of(directory))
            expect(done, 0)
            shows(done, rf"stamped .* stamp \d+ parts {parts}", r"mark .* stamp \d+ durable \d+", "clean end")
        shows(done, r"frontier: run .* durable up to stamp \d+, logs up to \d+ \d+")

    def timestamps_and_watermarks_are_printed(self):
        directory = os.path.join(self.root_, "versions")
        os.mkdir(directory)
        expect(rundb(["--cc=HEKATON", "--log=LOG_TAURUS", "--log_type=LOG_COMMAND", "--num_logger=2", *SMALL,
                      f"--log_dir={directory}", "--verify"], self.root_), 0)
        done = dump(*logs_of(directory))
        expect(done, 0)
        shows(done, "taurus, versioned_command",
              r"versioned_command .* txn \d+:\d+ lv \[.*\] reads at \d+ ends at \d+ procedure \d+ args \d+ bytes",
              r"watermark .* no snapshot below \d+", "clean end")

    def differential_run(self, *more: str) -> str:
        directory = tempfile.mkdtemp(prefix="differential-", dir=self.root_)
        expect(rundb(["--cc=NO_WAIT", "--log=LOG_DIFFERENTIAL", "--log_type=LOG_DATA", "--num_logger=2", *SMALL,
                      "--diff_page_size=1K", "--checkpoint_bytes=32K", f"--log_dir={directory}", "--verify", *more],
                     self.root_), 0)
        return directory

    def changes_checkpoints_and_backups_are_printed(self):
        done = dump(*files_of(self.differential_run("--log_truncation=0")))
        expect(done, 0)
        shows(done, r"change .* txn \d+:\d+ table 0 page \d+ slot \d+ number \d+ first", r"commit .* txn \d+:\d+ lv \[",
              r"checkpoint_begin .* number 1$", r"checkpoint_end .* number 1 active \[.*\]$", "clean end",
              r"anchor: database .* checkpoint \d+ in copy [ab], 1 parts of each table, method DL1P",
              r"  log 1: begins at LSN \d+, ends at \d+, nothing is needed below \d+", r"  table 0: \d+ pages of \d+ rows",
              r"backup: copy a, table 0, part 0", r"  page 0: checkpoint \d+, \d+ of \d+ rows",
              r"  \d+ pages with 500 rows, 0 never written")

    def both_images_and_stamps_are_printed(self):
        done = dump(*files_of(self.differential_run("--diff_method=PL2P", "--log_truncation=0")))
        expect(done, 0)
        shows(done, r"change .* txn \d+:\d+ table 0 page \d+ slot \d+ number \d+ first images \d+ bytes",
              r"commit .* txn \d+:\d+ lv \[.*\] stamp \d+", r"anchor: database .*, method PL2P")

    def truncated_logs_are_read_from_where_they_are_needed(self):
        directory = self.differential_run("--max_txns_per_thread=20000")  # long enough for a checkpoint
        done = dump("--verify", *logs_of(directory))
        expect(done, 0)
        shows(done, r"truncated below LSN \d+", "clean end", "verified: 2 logs")
        anchor, = [file for file in files_of(directory) if file.endswith("/anchor")]
        shows(dump(anchor), "logs truncated below what is needed")

    def rows_run(self, *more: str) -> dict[str, str]:
        """The files of its directory, by name."""
        directory = tempfile.mkdtemp(prefix="rows-", dir=self.root_)
        expect(rundb([*TAURUS, "--checkpoint_bytes=64K", f"--log_dir={directory}", "--verify", *more], self.root_), 0)
        return {os.path.basename(file): file for file in files_of(directory)}

    def row_checkpoints_and_logs_truncated_below_are_printed(self):
        # Long enough for a checkpoint, with few writes.
        files = self.rows_run("--max_txns_per_thread=100000", "--read_perc=0.95", "--write_perc=0.05")
        done = dump(files["row-anchor"])
        expect(done, 0)
        shows(done, r"row anchor: database .* checkpoint [1-9]\d* in copy [ab], 1 parts, logs truncated below",
              r"  log 1: replay begins at LSN \d+, durable up to \d+", r"had ended: \d+ \d+$")
        part, crc = re.search(r"(rows-[ab]-00\.ckp): \d+ bytes, 500 rows, CRC (\w+)", done.stdout).groups()
        done = dump(files[part])
        expect(done, 0)
        shows(done, rf"checkpoint: database .* part 0 of 1, .* CRC {crc}$", r"table 0: 500 rows")
        done = dump("--verify", *(files[name] for name in ("log-00.log", "log-01.log")))
        expect(done, 0)
        shows(done, r"truncated below LSN [1-9]\d*", "clean end", "verified: 2 logs")

    def a_run_without_a_row_checkpoint_yet_says_so(self):
        done = dump(self.rows_run("--checkpoint_bytes=1G")["row-anchor"])
        expect(done, 0)
        shows(done, "row anchor: database .*, no checkpoint yet$", r"  log 1: replay begins at LSN 0, durable up to 0$")

    def a_damaged_page_of_a_backup_is_named_and_the_others_are_printed(self):
        part, = [file for file in files_of(self.differential_run()) if file.endswith("backup-a-00-00.bak")]
        pages = len(re.findall("^  page ", dump(part).stdout, re.M))
        flip(part, 100)  # of the first page: these files have no header
        done = dump(part)
        expect(done, 3, [f"damaged backup {part}@0: bad checksum"])
        if len(re.findall("^  page ", done.stdout, re.M)) != pages - 1:
            raise Failed(f"of {pages} pages it prints {done.stdout}")

    def heap(self) -> str:
        """The directory of a run with a heap, made once, in a copy."""
        if "heap" not in self.originals_:
            self.originals_["heap"] = os.path.join(self.root_, "heap")
            os.mkdir(self.originals_["heap"])
            expect(rundb([*WBL, f"--log_dir={self.originals_['heap']}", "--verify"], self.root_), 0)
        return self.copy("heap")

    def a_heap_and_the_records_of_its_gaps_are_printed(self):
        directory = self.heap()
        done = dump(*files_of(directory))
        expect(done, 0)
        shows(done, "log 0 of 1, write_behind", r"heap: database \w{16}, run \w{16}, schema \w{16}, loaded, \d+ bytes",
              r"extents of 65536 bytes, \d+ in use, \d+ free$", r"  by record \d+ of life 1, of which c_p is \d+",
              r"  table 0: 1 partitions, tuples of \d+ bytes, .* 500 counted versions, .* 0 damaged$",
              r"gaps: run \w{16}, \d+ valid records$",
              r"  record \d+ .* life 1, .* clean end with digest \w{32}, 0 gaps, .* last sequences \d+ \d+; it counts$")
        if len(re.findall("it counts", done.stdout)) != 1:
            raise Failed(f"not one record counts: {done.stdout}")

    def the_gaps_between_two_lives_are_printed(self):
        directory = self.heap()
        first_life = gap_records(gaps_of(directory))[-1]
        expect(rundb(["--continue", "--verify", f"--log_dir={directory}"], self.root_), 0)
        done = dump(*files_of(directory))
        expect(done, 0)
        gap = rf"\[{first_life.c_p + 1}, {first_life.c_d}\)"
        shows(done, rf"  record {first_life.sequence + 1} .* life 2, c_p {first_life.c_d - 1}, .* 1 gaps {gap}",
              r"  by record \d+ of life 2", " 500 counted versions", r"life 2, .* clean end .*; it counts$")

    def one_superblock_suffices_and_two_damaged_ones_are_refused(self):
        heap = heap_of(self.heap())
        flip(heap, 100)
        done = dump(heap)
        expect(done, 0)
        shows(done, "  superblock 0 is damaged; the other one counts", " 500 counted versions")
        flip(heap, HEADER_BYTES + 100)
        expect(dump(heap), 3, [f"cannot read {heap}@0: both superblocks are damaged"])

    def a_torn_record_leaves_the_one_before(self):
        directory = self.heap()
        newest = gap_records(gaps_of(directory))[-1].sequence
        tear_newest_record(directory)
        done = dump(gaps_of(directory), heap_of(directory))
        expect(done, 0)
        shows(done, rf"record {newest - 1} .*; it counts$", f"  by record {newest - 1} of life 1")

    def a_heap_without_a_record_tells_free_slots_from_others(self):
        directory = self.heap()
        empty_gaps(directory)
        expect(dump(gaps_of(directory)), 3, [gaps_of(directory), "no valid record"])
        done = dump(heap_of(directory))
        expect(done, 0)
        shows(done, "which versions count is not known", r"\d+ free, \d+ in use$")

    def the_first_damage_of_a_heap_is_named_and_the_rest_counted(self):
        for spoil, why in ((promise_more, "its stamp was never promised"), (flip_tuple, "its checksum does not match"),
                           (lambda d: change_slot(d, 24, b"\7"), "it says that it is of another table"),
                           (lambda d: give_extent(d, 9, 0), "an extent of a partition that is not there")):
            directory = self.heap()
            spoil(directory)
            done = dump(heap_of(directory))
            expect(done, 3, [f"damaged heap {heap_of(directory)}@", why])
            shows(done, r"  table 0: ")

    def a_log_is_printed_backward(self):
        log, _ = self.logs("taurus")
        forward, backward = ([line for line in dump(*flags, log).stdout.splitlines() if line.startswith("  lsn ")]
                             for flags in ([], ["--backward"]))
        if backward != forward[::-1]:
            raise Failed(f"{len(forward)} records forward, {len(backward)} backward")
        last = dump("--backward", "--records=2", log).stdout
        shows(subprocess.CompletedProcess([], 0, last, ""), r"lsn \d+ run_end")

    def a_torn_tail_is_no_fault(self):
        log, = self.logs("serial")
        cut(log, end_of(log) - 8)
        done = dump("--verify", log)
        expect(done, 0)
        shows(done, r"no clean end; a tail of \d+ bytes")

    def a_log_that_ends_between_records_has_nothing_behind(self):
        log, = self.logs("serial")
        run_end = int(re.search(r"^  lsn (\d+) run_end", dump(log).stdout, re.M)[1])
        cut(log, STREAM_OFFSET + run_end)
        shows(dump("--verify", log), "no clean end; nothing follows")

    def damage_of_what_was_durable_is_named(self):
        log, = self.logs("serial")
        flip(log, end_of(log) // 2)
        expect(dump(log), 3, [log, "shows that it was durable"])

    def the_other_log_shows_what_was_durable(self):
        first, second = self.logs("taurus")
        cut(first, end_of(first) // 2)
        expect(dump("--verify", first, second), 3, [first, second])

    def logs_of_different_runs_are_refused(self):
        expect(dump("--verify", self.logs("taurus")[0], *self.logs("serial")), 6)
        expect(dump("--verify", self.logs("taurus")[0]), 6)

    def logs_may_come_in_any_order(self):
        expect(dump("--verify", *reversed(self.logs("taurus"))), 0)

    def every_fault_is_reported_and_the_first_is_the_status(self):
        first, second = self.logs("taurus")
        cut(first, 1000)
        done = dump(first, second, os.path.join(self.root_, "missing"))
        if done.returncode != 3 or done.stderr.count("error: ") != 2:
            raise Failed(f"exit status {done.returncode}: {done.stderr}")
        shows(done, "clean end")

    def parallelism_of(self, run: str, *flags: str) -> dict:
        """The record of a run's modelled replay, whose table has a row for each of its figures."""
        record = os.path.join(self.root_, "parallelism.json")
        done = dump("--parallelism", f"--json={record}", *flags, run)
        expect(done, 0)
        with open(record, encoding="utf-8") as file:
            told = json.loads(file.read().splitlines()[-1])
        rows = re.findall(r"^  \w+ .*\d  +modelled$", done.stdout, re.M)
        if len(rows) != sum(1 + len(order["times"]) for order in told["orders"]) or "  lsn 0 " in done.stdout:
            raise Failed(f"{len(rows)} rows: {done.stdout}")
        return {**told, "orders": {order["order"]: order for order in told["orders"]}}

    def the_parallelism_of_a_replay_is_modelled(self):
        logs = self.logs("taurus")
        told = self.parallelism_of(os.path.dirname(logs[0]), "--threads=1,2,unlimited", "--replay_ns=1", "--byte_ns=0")
        orders = told["orders"]
        replayed = sum(int(count) for count in re.findall(r" (\d+) data in", dump("--verify", *logs).stdout))
        if (told["records"], told["dropped"], told["modelled"]) != (replayed, 0, True):
            raise Failed(f"of {replayed} records: {told}")
        if list(orders) != ["lsn_vectors", "lanes", "newest_wins", "total"]:
            raise Failed(f"orders: {list(orders)}")
        # The work is the number of rows, the total order has no parallelism, and fewer waits never take longer.
        for name, order in orders.items():
            one, two, unlimited = (time["time_ns"] for time in order["times"])
            if not one == order["work_ns"] >= two >= one / 2 or unlimited != order["critical_path_ns"]:
                raise Failed(f"{name}: {order}")
        if orders["total"]["parallelism"] != 1 or orders["total"]["work_ns"] < replayed:
            raise Failed(f"one after the other: {orders['total']}")
        paths = [orders[name]["critical_path_ns"] for name in ("newest_wins", "lsn_vectors", "lanes", "total")]
        if paths != sorted(paths) or paths[0] == paths[3]:
            raise Failed(f"critical paths: {paths}")

    def a_device_delays_a_modelled_replay(self):
        run = os.path.dirname(self.logs("serial")[0])
        flags = ("--threads=1", "--orders=total", "--procedure_ns=0:5")
        free, = self.parallelism_of(run, *flags)["orders"]["total"]["times"]
        slow, = self.parallelism_of(run, *flags, "--device_mb_per_s=0.1")["orders"]["total"]["times"]
        if not slow["time_ns"] > 1e4 * 32 > free["time_ns"]:  # 10 us a byte, and a header has 32
            raise Failed(f"{free} without a device, {slow} behind it")

    def stamps_order_a_modelled_replay(self):
        for name, cc, orders in (("LOG_PLOVER", "NO_WAIT", ["partitions", "newest_wins", "total"]),
                                 ("LOG_BATCH", "SILO", ["newest_wins", "total"])):
            directory = tempfile.mkdtemp(prefix=name, dir=self.root_)
            expect(rundb([f"--cc={cc}", f"--log={name}", "--log_type=LOG_DATA", "--num_logger=2", *SMALL,
                          f"--log_dir={directory}"], self.root_), 0)
            run = os.path.dirname(logs_of(directory)[0])
            told = self.parallelism_of(run)
            if list(told["orders"]) != orders or told["dropped"] != 0 or told["records"] == 0:
                raise Failed(f"{name}: {told}")
        frontier, = [file for file in files_of(directory) if file.endswith("/frontier")]
        os.remove(frontier)
        expect(dump("--parallelism", run), 4, [frontier])

    def a_torn_tail_is_no_part_of_a_modelled_replay(self):
        log, = self.logs("serial")
        whole = self.parallelism_of(log)["records"]
        last = int(re.findall(r"^  lsn (\d+) command", dump(log).stdout, re.M)[-1])
        cut(log, STREAM_OFFSET + last + 8)
        if self.parallelism_of(log)["records"] != whole - 1:
            raise Failed("a record that is cut off was replayed")

    def a_modelled_replay_of_nonsense_is_refused(self):
        first, second = self.logs("taurus")
        serial, = self.logs("serial")
        text = os.path.join(self.root_, "text")
        with open(text, "w", encoding="utf-8") as file:
            file.write("no log\n" * 2000)
        differential = os.path.dirname(logs_of(self.differential_run())[0])
        for arguments, status, words in (
                (["--parallelism", "--threads=0", first, second], 2, ["--threads wants numbers from 1", "not '0'"]),
                (["--parallelism", "--orders=fastest", serial], 2, ["--orders wants", "newest_wins", "'fastest'"]),
                (["--parallelism", "--orders=partitions", serial], 2, ["--orders=partitions", "there are total"]),
                (["--parallelism", "--replay_ns=0", serial], 2, ["--replay_ns wants a number above 0"]),
                (["--threads=2", serial], 2, ["--threads=2 belongs to --parallelism", "usage: log_dump"]),
                (["--parallelism"], 2, ["usage: log_dump"]),
                (["--parallelism", os.path.dirname(os.path.dirname(first))], 2, ["is a directory", first]),
                (["--parallelism", differential], 2, ["--parallelism is of logs", "differential"]),
                (["--parallelism", text], 3, [text]),
                (["--parallelism", first], 6, [first]),
                (["--parallelism", f"--json={self.root_}/missing/record", serial], 4, ["missing/record"])):
            done = dump(*arguments)
            expect(done, status, words)
            if "modelled" in done.stdout or done.stderr.count("\n") != 1:
                raise Failed(f"{arguments}: {done.stdout}{done.stderr}")

    def bad_usage_is_refused(self):
        for arguments in ([], ["--nix", "log"], ["--records", "three", "log"], ["--records"]):
            expect(dump(*arguments), 2, ["usage: log_dump"])

    def a_verification_wants_a_log(self):
        heap = heap_of(self.heap())
        expect(dump("--verify", heap), 2, ["--verify is of all logs", "usage: log_dump"])

    def a_directory_is_answered_with_a_file_in_it(self):
        first, _ = self.logs("taurus")
        run = os.path.dirname(first)
        for directory in (run, os.path.dirname(run)):
            expect(dump(directory), 2, [f"{directory} is a directory", f"such as {first}"])

    def help_is_given(self):
        done = dump("--help")
        expect(done, 0)
        shows(done, "^usage: log_dump", "^  --device_mb_per_s=N ")

    def all(self):
        return [(name, getattr(self, name)) for name in vars(Checks) if name.count("_") > 1 and name[0] != "_"]


if __name__ == "__main__":
    sys.exit(run_checks(Checks, "dump-", {BINARY: "rundb-all", LOG_DUMP: "log_dump"}))
