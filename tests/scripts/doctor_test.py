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

    def cluster_said(self, masters, *, files=None, limit=1 << 20, memory=1 << 40, loopback=True):
        files = files or {"/proc/sys/net/ipv4/ip_local_port_range": "32768\t60999"}
        with mock.patch.object(doctor, "read", lambda path: files.get(path, "")), \
                mock.patch.object(doctor.resource, "getrlimit", return_value=(limit, limit)), \
                mock.patch.object(doctor.os, "sysconf", lambda name: memory if name == "SC_PHYS_PAGES" else 1), \
                mock.patch.object(doctor, "takes_loopback", return_value=loopback):
            return said_by(lambda found: doctor.check_cluster(found, masters, 2, 1 << 30))

    def test_a_host_that_suffices_for_16_masters_has_no_notes(self):
        self.assertTrue(self.cluster_said(16).endswith("4 ok, 0 to know of\n"))
        self.assertIn("ok    free ports:              28232", self.cluster_said(16))

    def test_ports_that_sockets_have_or_that_are_reserved_are_not_free(self):
        head = "  sl  local_address rem_address\n"
        files = {"/proc/sys/net/ipv4/ip_local_port_range": "40000 40034",
                 "/proc/sys/net/ipv4/ip_local_reserved_ports": "40002-40003,40005,9"}
        # 1 master: 7 processes, 6 + 6 links
        self.assertIn("ok    free ports:              32", self.cluster_said(1, files=files))
        files["/proc/net/tcp"] = head + "".join(
            f"   {n}: 0100007F:{40006 + n:04X} 00000000:0000 0A\n" for n in range(13))
        self.assertIn("ok    free ports:              19", self.cluster_said(1, files=files))
        files["/proc/net/tcp6"] = head + f"   0: {'0' * 32}:{40000:04X} {'0' * 32}:0000 0A\n"
        said = self.cluster_said(1, files=files)
        self.assertRegex(said, r"note  free ports: +18\n +1 masters take 19: sysctl net.ipv4.ip_local_port_range")

    def test_open_files_are_measured_against_the_processes(self):
        self.assertIn("ok    open files:              98", self.cluster_said(16, limit=98))  # 32 + 3 * 22
        self.assertIn("ulimit -n 98", self.cluster_said(16, limit=97))
        self.assertIn("ok    open files:              97", self.cluster_said(15, limit=97))
        self.assertIn("ok    open files:              unlimited",
                      self.cluster_said(16, limit=doctor.resource.RLIM_INFINITY))

    def test_memory_is_measured_against_buffers_and_page_stores(self):
        enough = 16 * (128 << 20) + 4 * (1 << 30)  # 16 buffers; rows, initial pages, two Page Stores
        self.assertIn("ok    memory of a cluster:", self.cluster_said(16, memory=enough))
        self.assertRegex(self.cluster_said(16, memory=enough - 1), "16 masters and 2 Page Stores want 6.0")

    def test_a_host_without_loopback_is_told(self):
        self.assertIn("note  127.0.0.1:               refused", self.cluster_said(1, loopback=False))
        with mock.patch.object(doctor.socket.socket, "bind", side_effect=OSError):
            self.assertFalse(doctor.takes_loopback())
        self.assertTrue(doctor.takes_loopback())

    def test_numbers_of_clusters_are_those_of_the_engine(self):
        for path, wanted in (
                ("multi_master/log/log_messages.h", f"kLogStores = {doctor.LOG_STORES};"),
                ("multi_master/names.h", f"kMastersMax = {doctor.MASTERS_MAX};"),
                ("multi_master/names.h", "kPageBytes = 16 * 1024;"),
                ("system/command_line/options.h", "buffer_pages = 8192;"),
                ("system/command_line/switches.cpp", f"page_stores, 1, {doctor.PAGE_STORES_MAX},")):
            with open(os.path.join(doctor.REPOSITORY, path), encoding="ascii") as file:
                self.assertIn(wanted, file.read())

    def test_a_cluster_is_examined_if_it_is_asked_for(self):
        for flags, lines in (([], 0), (["--masters=2"], 1)):
            said = io.StringIO()
            with contextlib.redirect_stdout(said), mock.patch.object(doctor.sys, "argv", ["doctor", *flags]):
                self.assertEqual(doctor.main(), 0)
            self.assertEqual(said.getvalue().count("memory of a cluster:"), lines)
        for flag in ("--masters=17", "--masters=0", "--masters=-1", "--page_stores=5", "--masters=two"):
            with contextlib.redirect_stderr(io.StringIO()) as error, self.assertRaises(SystemExit) as left, \
                    mock.patch.object(doctor.sys, "argv", ["doctor", flag]):
                doctor.main()
            self.assertEqual(left.exception.code, 2)
            self.assertIn("is not between 1 and", error.getvalue())

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
