#!/usr/bin/env python3
"""What this host has and lacks for honest figures, and what to do about it. Reads, and changes nothing.

  scripts/doctor [--log_dir DIR[,DIR...]] [--ram_dir DIR] [--table_bytes 10G] [--masters N [--page_stores N]]

A line each: ok, or what distorts figures here and the fix. Exit status 0, also with findings: a laptop is a host too.
"""
from __future__ import annotations

import argparse
import ctypes
import glob
import os
import resource
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import host

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IO_URING_SETUP = 425  # x86-64
KEEP_SIZE, PUNCH_HOLE = 1, 2  # modes of fallocate
RAM_DISK_BYTES = 2400 << 20  # scale laptop of experiments/scales.yaml: a run's logs and a tenth
LOG_STORES = 3  # kLogStores of multi_master/log/log_messages.h
MASTERS_MAX = 16  # kMastersMax of multi_master/names.h
PAGE_STORES_MAX = 4  # of PAGE_STORES in system/command_line/switches.cpp
FRAME_BYTES = 8192 * 16384  # BUFFER_PAGES of each master, by default
OWN_DESCRIPTORS = 32  # of a process of a cluster, whatever the number of the others: standard streams, event loop


def read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


class Findings:
    def __init__(self):
        self.lines: list[tuple[bool, str, str, str]] = []

    def add(self, good: bool, what: str, value: str, fix: str) -> None:
        self.lines.append((good, what, value, fix))

    def show(self) -> None:
        for good, what, value, fix in self.lines:
            print(f"{'ok  ' if good else 'note'}  {what + ':':24} {value}" + ("" if good else f"\n{'':32}{fix}"))
        notes = sum(not line[0] for line in self.lines)
        print(f"{len(self.lines) - notes} ok, {notes} to know of")


def check_processor(found: Findings) -> None:
    cores = len(os.sched_getaffinity(0))
    found.add(cores >= 4, "cores", str(cores),
              "workers, log writers and this shell share them; keep THREAD_CNT below the number of cores")
    governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    found.add(governor in ("", "performance"), "frequency governor", governor or "none visible",
              "cpupower frequency-set -g performance")
    turbo = read("/sys/devices/system/cpu/intel_pstate/no_turbo")
    found.add(turbo != "0", "turbo", {"0": "on", "1": "off"}.get(turbo, "unknown"),
              "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or quote figures as with turbo")
    siblings = read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    shared = any(separator in siblings for separator in ",-")
    found.add(not shared, "SMT", f"core 0 shares with {siblings}" if shared else "off or invisible",
              "two workers on one core measure each other: --pin=compact and --pin=scatter take one CPU of each core first "
              "(compact: of a node), or switch SMT off")
    virtual = " hypervisor" in read("/proc/cpuinfo")
    found.add(not virtual, "virtualisation", "a virtual machine" if virtual else "none visible",
              "neighbours change figures from run to run: repeat, alternate, and quote medians with their spread")


def check_nodes(found: Findings) -> None:
    """With one NUMA node no placement of memory differs from another."""
    nodes = max(1, len(glob.glob("/sys/devices/system/node/node[0-9]*")))
    found.add(nodes == 1, "NUMA nodes", "1: --numa has nothing to gain" if nodes == 1 else str(nodes),
              "unpinned threads move between nodes: try --pin=compact (workers on as few nodes as they fit), and with "
              "workers on several nodes --pin=scatter --numa=interleave; quote what you chose")
    policy = memory_policy()
    found.add(policy in ("default", "local", "unknown"), "memory policy", policy,
              "numactl has set it for all memory of its commands; --numa=local overrules it for tables, and records say so")


def memory_policy() -> str:
    """NUMA policy of this process, and of what the same shell starts."""
    first = read("/proc/self/numa_maps").split("\n", 1)[0].split()
    return first[1] if len(first) > 1 else "unknown"


def check_memory(found: Findings, table_bytes: int) -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    needed = int(1.5 * table_bytes)
    found.add(memory >= needed, "memory", f"{memory / (1 << 30):.1f} GiB",
              f"a table of {table_bytes / (1 << 30):.1f} GiB and its recovery want {needed / (1 << 30):.1f}: "
              "smaller SYNTH_TABLE_SIZE or NUM_WH")
    chosen = chosen_of("/sys/kernel/mm/transparent_hugepage/enabled")
    found.add(chosen in ("always", "madvise"), "huge pages", chosen,
              "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    enough = locked == resource.RLIM_INFINITY or locked >= 64 << 20
    found.add(enough, "locked memory", "unlimited" if locked == resource.RLIM_INFINITY else f"{locked >> 10} KiB",
              "ulimit -l unlimited (io_uring may register its buffers)")


def file_systems() -> list[tuple[str, list[str]]]:
    """Directories with the options of their file systems, in the order of mounting."""
    fields = [line.split() for line in read("/proc/mounts").splitlines()]
    return [(mount[1], mount[3].split(",")) for mount in fields if len(mount) > 3]


def dax_mounts() -> list[str]:
    """Where files are mapped to persistent memory itself."""
    return [directory for directory, options in file_systems() if {"dax", "dax=always", "dax=inode"} & set(options)]


def chosen_of(path: str) -> str:
    """Of a file that has all choices, and brackets around the one that holds."""
    choices = read(path)
    return choices[choices.find("[") + 1:choices.find("]")] if "[" in choices else "unknown"


def huge_pages_of(directory: str) -> str:
    """Of a RAM disk: its option, unless the kernel's overrules it."""
    overruled = chosen_of("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
    if overruled in ("deny", "force"):
        return {"deny": "never", "force": "always"}[overruled]
    options = dict(file_systems()).get(directory, [])  # of the last one, which hides the others
    return next((option.removeprefix("huge=") for option in options if option.startswith("huge=")), "never")


def check_persistent_memory(found: Findings) -> None:
    flags = set(read("/proc/cpuinfo").split())
    instructions = [name for name in ("clwb", "clflushopt", "clflush") if name in flags]
    found.add("clwb" in flags, "cache lines", ", ".join(name.upper() for name in instructions) or "unknown",
              "without CLWB a line that is made durable leaves the cache, and the next access to it misses")
    mounts, devices = dax_mounts(), glob.glob("/dev/pmem*") + glob.glob("/dev/dax*")
    found.add(bool(mounts), "persistent memory", ", ".join(mounts or devices) or "none visible",
              f"make a file system on it and mount that with -o dax: mkfs.ext4 {devices[0]}" if devices else
              "a RAM disk stands in for it, and results say so; for a device of DRAM boot with memmap=8G!16G, which takes "
              "8 GiB from 16 GiB on as /dev/pmem0, and mount it with -o dax")
    chosen = huge_pages_of("/dev/shm")
    found.add(chosen in ("always", "within_size", "advise"), "huge pages of /dev/shm", chosen,
              "mount -o remount,huge=advise /dev/shm; a heap there misses the TLB less")


def has_io_uring() -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    parameters = (ctypes.c_char * 120)()
    descriptor = libc.syscall(IO_URING_SETUP, 1, parameters)
    if descriptor >= 0:
        os.close(descriptor)
    return descriptor >= 0


def takes_direct_io(directory: str) -> bool:
    """Opens an unnamed file, which is gone when it is closed."""
    try:
        os.close(os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT, 0o600))
        return True
    except OSError:
        return False


def takes_holes(directory: str) -> bool:
    """Whether a file there can give back the space of its first block, as a truncated log does."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError:
        return False
    os.ftruncate(descriptor, 8192)
    done = libc.fallocate(descriptor, PUNCH_HOLE | KEEP_SIZE, 0, 4096) == 0
    os.close(descriptor)
    return done


def check_devices(found: Findings, directories: list[str], table_bytes: int = 0) -> None:
    uring = has_io_uring()
    found.add(uring, "io_uring", "yes" if uring else "refused",
              "pwrite is used instead; sysctl kernel.io_uring_disabled=0, or a container profile that allows it")
    devices: dict[int, str] = {}
    for directory in directories:
        there = directory
        while not os.path.isdir(there):
            there = os.path.dirname(os.path.abspath(there))
        kind, direct = host.file_system_of(there), takes_direct_io(there)
        ram = kind in host.RAM_FILE_SYSTEMS
        found.add(direct and not ram, f"logs in {directory}", f"{kind}, {'O_DIRECT' if direct else 'buffered'}",
                  "a RAM disk keeps nothing through a power failure; say so with the figures" if ram
                  else "writes go through the page cache and fdatasync; another file system may take O_DIRECT")
        device = os.stat(there).st_dev
        if device in devices:
            found.add(False, "log directories", f"{devices[device]} and {directory} are on one device",
                      "one directory per disk, or --log_device for emulated ones")
        devices[device] = directory
        holes = takes_holes(there)
        found.add(holes, "holes in files", "yes" if holes else "refused",
                  "checkpoints cannot truncate logs here, which end at LOG_LIMIT; ext4, xfs, btrfs and tmpfs can")
        free = os.statvfs(there).f_bavail * os.statvfs(there).f_frsize
        found.add(free > (8 << 30) + 2 * table_bytes, "free space", f"{free / (1 << 30):.1f} GiB",
                  "a run takes LOG_LIMIT (4 GiB by default), and with checkpoints two copies of its tables")


def check_ram_disk(found: Findings, directory: str) -> None:
    """Where scripts/exp has its logs unless it is told otherwise."""
    ram = os.path.isdir(directory) and host.file_system_of(directory) in host.RAM_FILE_SYSTEMS
    free = os.statvfs(directory).f_bavail * os.statvfs(directory).f_frsize if ram else 0
    found.add(free > RAM_DISK_BYTES, f"RAM disk {directory}", f"{free / (1 << 30):.1f} GiB free" if ram else "is none",
              "scripts/exp has logs there, 0.6 GiB at the smallest scale and 2.2 at the next: name a larger tmpfs with "
              "--ram_dir (in a container: --shm-size=4g)")


def links_of(masters: int, page_stores: int) -> int:
    """TCP connections of a cluster at most: of masters with all (strict reads), of Page Stores with Log Stores."""
    servers = 1 + LOG_STORES + page_stores
    return masters * servers + masters * (masters - 1) // 2 + page_stores * LOG_STORES


def takes_loopback() -> bool:
    """Whether a process can listen on 127.0.0.1, at a port that the kernel chooses."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
        return True
    except OSError:
        return False


def free_ports() -> int:
    """Of those that the kernel chooses from: neither reserved nor the local port of a TCP socket."""
    bounds = read("/proc/sys/net/ipv4/ip_local_port_range").split()
    if len(bounds) != 2:
        return 0
    ports = set(range(int(bounds[0]), int(bounds[1]) + 1))
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        ports -= {int(line.split()[1].rsplit(":", 1)[1], 16) for line in read(table).splitlines()[1:]}
    for part in read("/proc/sys/net/ipv4/ip_local_reserved_ports").split(","):
        if part:
            first, _, last = part.partition("-")
            ports -= set(range(int(first), int(last or first) + 1))
    return len(ports)


def check_cluster(found: Findings, masters: int, page_stores: int, table_bytes: int) -> None:
    """All processes of a cluster run on this host."""
    processes = masters + 1 + LOG_STORES + page_stores
    loopback = takes_loopback()
    found.add(loopback, "127.0.0.1", "yes" if loopback else "refused",
              "processes of a cluster listen there: ip link set lo up, or a container profile that allows sockets")
    ports, needed = free_ports(), processes + links_of(masters, page_stores)
    found.add(ports >= needed, "free ports", str(ports),
              f"{masters} masters take {needed}: sysctl net.ipv4.ip_local_port_range='32768 60999'")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    # A Log Store has the most: the parent's channels to processes that were forked before it, a link to each process
    # that reads or writes logs, and two files for each log. With 16 masters it had 63.
    files = OWN_DESCRIPTORS + 3 * processes
    enough = limit == resource.RLIM_INFINITY or limit >= files
    found.add(enough, "open files", "unlimited" if limit == resource.RLIM_INFINITY else str(limit),
              f"a process of this cluster may have {files}: ulimit -n {files}")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # The rows, the initial pages made from them, and the versions that each Page Store has beside these.
    wanted = masters * FRAME_BYTES + (2 + page_stores) * table_bytes
    found.add(memory >= wanted, "memory of a cluster", f"{memory / (1 << 30):.1f} GiB",
              f"{masters} masters and {page_stores} Page Stores want {wanted / (1 << 30):.1f}: fewer of them, smaller "
              "BUFFER_PAGES or tables")


def counted(most: int):
    """A type for argparse: 1 to `most`."""
    def parse(text: str) -> int:
        if not text.isdecimal() or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text} is not between 1 and {most}")
        return int(text)
    return parse


def main() -> int:
    parser = argparse.ArgumentParser(prog="doctor", description=__doc__.splitlines()[0])
    parser.add_argument("--log_dir", default=os.path.join(REPOSITORY, "logs"), help="as of the runs (default: logs)")
    parser.add_argument("--ram_dir", default="/dev/shm", help="as of scripts/exp (default: %(default)s)")
    parser.add_argument("--table_bytes", type=host.parse_bytes, default="1G", help="of the largest table (default: 1G)")
    parser.add_argument("--masters", type=counted(MASTERS_MAX), help="examine what a cluster of so many needs, too")
    parser.add_argument("--page_stores", type=counted(PAGE_STORES_MAX), default=2, help="of the cluster (default: 2)")
    arguments = parser.parse_args()
    found = Findings()
    check_processor(found)
    check_nodes(found)
    check_memory(found, arguments.table_bytes)
    check_persistent_memory(found)
    check_devices(found, arguments.log_dir.split(","), arguments.table_bytes)
    check_ram_disk(found, arguments.ram_dir)
    if arguments.masters:
        check_cluster(found, arguments.masters, arguments.page_stores, arguments.table_bytes)
    found.show()
    return 0


if __name__ == "__main__":
    sys.exit(main())
