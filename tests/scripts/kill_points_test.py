"""Named points: which there are, and that a process dies there and nowhere else."""
import os
import struct
import subprocess
import sys
import tempfile
import unittest

from kill_points import CELLS, FIRST_CALLS, KILLER, LAST_CALLS, flags_of, may_be_missed, names
from killed_runs import ACK_HEADER_BYTES, SIGKILLED, Runs, holds_bits


class NamesTest(unittest.TestCase):
    def test_a_write_has_a_middle_and_a_rename_an_after(self):
        self.assertEqual(names("write", "log", 1), ["before:write:log:1", "middle:write:log:1"])
        self.assertEqual(names("rename", "frozen", 1), ["before:rename:frozen:1", "after:rename:frozen:1"])

    def test_of_many_calls_the_first_and_the_last_are_points(self):
        numbers = [int(name.rsplit(":", 1)[1]) for name in names("sync", "log", 100)]
        self.assertEqual(numbers, [*range(1, FIRST_CALLS + 1), *range(101 - LAST_CALLS, 101)])

    def test_of_few_calls_each_is_a_point_once(self):
        self.assertEqual(len(names("sync", "log", FIRST_CALLS + 1)), FIRST_CALLS + 1)

    def test_how_often_a_heap_is_drained_is_different_every_time(self):
        for name in ("heap.pm", "gaps.log"):
            self.assertTrue(may_be_missed(f"before:sync:run-0001/{name}:3"))

    def test_only_writes_of_logs_and_of_the_frontier_may_be_missed(self):
        for path in ("run-0001/log-00.log", "d1/run-0002/log-01.log", "run-0001/frontier"):
            self.assertTrue(may_be_missed(f"middle:write:{path}:7"))
            self.assertFalse(may_be_missed(f"before:sync:{path}:1"))
        self.assertFalse(may_be_missed("middle:write:run-0001/frozen.tmp:1"))

    def test_a_run_that_continues_takes_its_load_from_the_log(self):
        for cell in CELLS:
            self.assertTrue(set(CELLS[cell].load) <= set(flags_of(cell, "run")))
            self.assertFalse(set(CELLS[cell].load) & set(flags_of(cell, "continue")))
            self.assertTrue(set(CELLS[cell].every_run) <= set(flags_of(cell, "continue")))


class RunsTest(unittest.TestCase):
    def test_the_newest_run_may_have_been_born_in_one_directory_only(self):
        with tempfile.TemporaryDirectory() as directory:
            runs = Runs("rundb-all", directory, stripes=2)
            self.assertEqual(runs.newest(), 0)
            for born in ("d0/run-0001", "d1/run-0001", "d1/run-0002"):
                os.mkdir(os.path.join(runs.logs, born))
            self.assertEqual(runs.newest(), 2)
            self.assertEqual(runs.copy(os.path.join(directory, "copy")).newest(), 2)


    def test_what_continues_a_run_in_place_has_its_number(self):
        with tempfile.TemporaryDirectory() as directory:
            runs = Runs("/bin/true", directory, in_place=True)
            os.mkdir(os.path.join(runs.logs, "run-0001"))
            runs.run(["--continue"])
            self.assertIn(runs.ack_file(1), runs.lines[-1])
            runs.run([])
            self.assertIn(runs.ack_file(2), runs.lines[-1])


@unittest.skipUnless(os.path.exists(KILLER), "make kill_points builds it")
class KillerTest(unittest.TestCase):
    """Each test runs a line of Python, which calls libc as the engine does."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def run_line(self, line, **variables):
        environment = {**os.environ, "LD_PRELOAD": KILLER, "DBX_KILL_UNDER": self.folder, **variables}
        return subprocess.run([sys.executable, "-c", f"import os; {line}"], cwd=self.folder, env=environment).returncode

    def test_before_and_after_a_rename_are_two_places(self):
        line = f"os.mkdir('{self.folder}/old'); os.rename('{self.folder}/old', '{self.folder}/new')"
        self.assertEqual(self.run_line(line, DBX_KILL_AT="before:rename:new:1"), SIGKILLED)
        self.assertEqual(os.listdir(self.folder), ["old"])
        os.rmdir(os.path.join(self.folder, "old"))
        self.assertEqual(self.run_line(line, DBX_KILL_AT="after:rename:new:1"), SIGKILLED)
        self.assertEqual(os.listdir(self.folder), ["new"])

    def test_the_nth_call_on_the_named_file_is_meant(self):
        line = "; ".join(f"os.{verb}dir('{self.folder}/{name}')" for name in ("a", "b", "a") for verb in ("mk", "rm"))
        self.assertEqual(self.run_line(line, DBX_KILL_AT="before:mkdir:a:2"), SIGKILLED)
        self.assertEqual(self.run_line(line, DBX_KILL_AT="before:mkdir:b:2"), 0)

    def test_a_mapped_file_is_known_by_the_place_of_its_bytes(self):
        line = (f"import mmap; file = open('{self.folder}/heap', 'w+b'); file.truncate(8192); "
                "memory = mmap.mmap(file.fileno(), 0); memory.flush(4096, 4096)")
        self.assertEqual(self.run_line(line, DBX_KILL_AT="before:sync:heap:1"), SIGKILLED)
        self.assertEqual(self.run_line(line, DBX_KILL_AT="before:sync:heap:2"), 0)

    def test_the_trace_names_calls_under_the_directory_only(self):
        trace = os.path.join(self.folder, "trace")
        line = f"os.mkdir('{self.folder}/a'); os.rmdir('{self.folder}/a'); os.fsync(os.open('{self.folder}', 0))"
        self.assertEqual(self.run_line(line, DBX_KILL_TRACE=trace, DBX_KILL_UNDER=self.folder), 0)
        with open(trace, encoding="utf-8") as file:
            self.assertEqual(file.read().splitlines(), ["mkdir a", "rmdir a", "sync ."])
        self.assertEqual(self.run_line(line, DBX_KILL_AT="before:mkdir:a:1", DBX_KILL_UNDER="/elsewhere"), 0)


class AckFileTest(unittest.TestCase):
    def holds(self, *offsets):
        with tempfile.NamedTemporaryFile() as file:
            file.write(struct.pack("<8sIIQQQ", b"header", 3, 0, 1, 4, (56 << 20) * 2))  # four workers of 14 MiB
            file.truncate(64 << 20)
            for offset in offsets:
                file.seek(offset)
                file.write(b"\1")
            file.flush()
            return holds_bits(file.name)

    def test_a_header_is_no_acknowledgement(self):
        self.assertFalse(self.holds())
        self.assertFalse(holds_bits("missing"))

    def test_a_bit_behind_holes_is_found(self):
        self.assertTrue(self.holds(ACK_HEADER_BYTES))
        self.assertTrue(self.holds((48 << 20) + 17))

    def test_readers_and_their_notes_are_no_acknowledgement_of_a_writer(self):
        self.assertFalse(self.holds(ACK_HEADER_BYTES + (56 << 20), (64 << 20) - 1))


if __name__ == "__main__":
    unittest.main()
