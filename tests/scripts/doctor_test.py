"""The doctor: what it finds on a host, with the host's files made up."""
import contextlib
import io
import os
import tempfile
import unittest
from unittest import mock

import support  # noqa: F401 (sets the path)
import doctor


def said_by(*checks):
    found = doctor.Findings()
    for check in checks:
        check(found)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        found.show()
    return said.getvalue()


class DoctorTest(unittest.TestCase):
    def test_a_finding_comes_with_its_fix_and_is_counted(self):
        found = doctor.Findings()
        found.add(True, "memory", "16 GiB", "buy more")
        found.add(False, "governor", "powersave", "set performance")
        said = said_by(lambda there: there.lines.extend(found.lines))
        self.assertIn("ok    memory:", said)
        self.assertNotIn("buy more", said)
        self.assertRegex(said, r"note  governor: +powersave\n +set performance\n")
        self.assertTrue(said.endswith("1 ok, 1 to know of\n"))

    def test_processor(self):
        files = {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave",
                 "/sys/devices/system/cpu/intel_pstate/no_turbo": "0",
                 "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list": "0,4",
                 "/proc/cpuinfo": "flags : fpu hypervisor avx"}
        with mock.patch.object(doctor, "read", lambda path: files.get(path, "")):
            said = said_by(doctor.check_processor)
        for what in ("powersave", "note  turbo:                   on", "shares with 0,4", "a virtual machine"):
            self.assertIn(what, said)
        with mock.patch.object(doctor, "read", lambda path: ""):
            said = said_by(doctor.check_processor)
        for what in ("none visible", "off or invisible"):
            self.assertIn(what, said)

    def nodes_said(self, nodes, policy="default"):
        folders = [f"/sys/devices/system/node/node{n}" for n in range(nodes)]
        maps = f"55d0 {policy} file=/bin/x\n55d1 default heap" if policy else ""
        with mock.patch.object(doctor.glob, "glob", lambda pattern: folders), \
                mock.patch.object(doctor, "read", lambda path: {"/proc/self/numa_maps": maps}.get(path, "")):
            return said_by(doctor.check_nodes)

    def test_several_nodes_come_with_the_places_to_try(self):
        said = self.nodes_said(2)
        for what in ("note  NUMA nodes:              2", "try --pin=compact", "--pin=scatter --numa=interleave"):
            self.assertIn(what, said)

    def test_one_node_has_nothing_to_gain(self):
        for nodes in (0, 1):
            said = self.nodes_said(nodes)
            self.assertIn("ok    NUMA nodes:              1: --numa has nothing to gain", said)
            self.assertNotIn("--pin", said)

    def test_a_policy_of_numactl_is_told(self):
        self.assertIn("note  memory policy:           interleave:0-1", self.nodes_said(2, "interleave:0-1"))
        self.assertIn("ok    memory policy:           default", self.nodes_said(2))
        self.assertIn("ok    memory policy:           unknown", self.nodes_said(2, ""))

    def test_siblings_come_with_the_places_to_try(self):
        files = {"/sys/devices/system/cpu/cpu0/topology/thread_siblings_list": "0,4"}
        with mock.patch.object(doctor, "read", lambda path: files.get(path, "")):
            self.assertIn("take one CPU of each core first", said_by(doctor.check_processor))

    def test_memory_is_measured_against_the_table(self):
        self.assertIn("ok    memory:", said_by(lambda found: doctor.check_memory(found, 1 << 20)))
        self.assertIn("note  memory:", said_by(lambda found: doctor.check_memory(found, 1 << 50)))

    def test_persistent_memory_is_named_and_how_to_make_some(self):
        plain = "/dev/sda / ext4 rw,relatime 0 0\n"
        for cpu, mounts, devices, wanted in (
                ("flags : clflush clflushopt clwb", plain + "/dev/pmem0 /pm ext4 rw,dax=always 0 0", ["/dev/pmem0"],
                 ("ok    cache lines:             CLWB, CLFLUSHOPT, CLFLUSH", "ok    persistent memory:       /pm")),
                ("flags : clflush", plain, [], ("note  cache lines:             CLFLUSH", "memmap=8G!16G")),
                ("flags : clwb", plain, ["/dev/pmem0"], ("mkfs.ext4 /dev/pmem0",))):
            files = {"/proc/cpuinfo": cpu, "/proc/mounts": mounts}
            with mock.patch.object(doctor, "read", lambda path, files=files: files.get(path, "")), \
                    mock.patch.object(doctor.glob, "glob", lambda pattern, there=devices: there if "pmem" in pattern else []):
                said = said_by(doctor.check_persistent_memory)
            for what in wanted:
                self.assertIn(what, said)

    def test_directories_on_one_device_are_told_and_those_to_come_are_taken(self):
        with tempfile.TemporaryDirectory() as folder:
            said = said_by(lambda found: doctor.check_devices(
                found, [folder, os.path.join(folder, "not", "there", "yet")]))
            self.assertIn("are on one device", said)
            self.assertEqual(os.listdir(folder), [])

    def test_a_ram_disk_is_called_one(self):
        with mock.patch.object(doctor.host, "file_system_of", return_value="tmpfs"):
            self.assertIn("keeps nothing through a power failure",
                          said_by(lambda found: doctor.check_devices(found, ["."])))

    def test_space_is_measured_against_two_copies_of_the_table(self):
        free = mock.Mock(f_bavail=10 << 18, f_frsize=4096)  # 10 GiB
        with mock.patch.object(doctor.os, "statvfs", return_value=free):
            for table_bytes, enough in ((1 << 29, True), (1 << 30, False)):
                found = said_by(lambda found, size=table_bytes: doctor.check_devices(found, ["."], size))
                self.assertEqual("two copies of its tables" not in found, enough, found)

    def test_a_file_system_that_takes_no_holes_is_told(self):
        self.assertTrue(doctor.takes_holes("/dev/shm"))
        self.assertFalse(doctor.takes_holes("/proc"))
        with mock.patch.object(doctor, "takes_holes", return_value=False):
            self.assertIn("checkpoints cannot truncate logs", said_by(lambda found: doctor.check_devices(found, ["."])))

    def test_the_ram_disk_of_experiments_is_looked_at(self):
        for kind, blocks, said in (("tmpfs", 16 << 10, "0.1 GiB free"), ("tmpfs", 1 << 20, ""),
                                   ("ext4", 1 << 20, "is none")):
            free = mock.Mock(f_bavail=blocks, f_frsize=4096)
            with mock.patch.object(doctor.host, "file_system_of", return_value=kind), \
                    mock.patch.object(doctor.os, "statvfs", return_value=free):
                found = said_by(lambda found: doctor.check_ram_disk(found, "/"))
            self.assertEqual("note  RAM disk" in found and said in found and "--ram_dir" in found, bool(said), found)

    def test_io_uring_that_is_refused_has_a_fix(self):
        with mock.patch.object(doctor, "has_io_uring", return_value=False):
            self.assertIn("pwrite is used instead", said_by(lambda found: doctor.check_devices(found, ["."])))

    def test_findings_are_no_failure_and_wrong_options_are(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), mock.patch.object(doctor.sys, "argv", ["doctor", "--table_bytes=2G"]):
            self.assertEqual(doctor.main(), 0)
        self.assertIn("to know of", said.getvalue())
        self.assertIn("RAM disk /dev/shm:", said.getvalue())
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as left, \
                mock.patch.object(doctor.sys, "argv", ["doctor", "--table_bytes=big"]):
            doctor.main()
        self.assertEqual(left.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
