"""From places in the code to data structures: addr2line names the functions that were inlined at an address, and the
first rule that one of them meets, from the innermost outward, names the structure.

False sharing is counted for the structure whose code wrote the line last: it is what the others have to wait for.
"""
from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# In the order of the plots; the last for what meets no rule.
OTHER = "other"
STRUCTURES = ("lock words", "row data", "LVs", "log tail", "log buffer", "PLV", "epoch", "timestamp counter", "versions",
              "index", "acknowledgement", OTHER)

# (structure, file, function): regular expressions; what is general, such as the standard library, meets none.
RULES = [(structure, re.compile(file), re.compile(function)) for structure, file, function in (
    ("row data", r"base/racy\.h", r""),
    ("timestamp counter", r"concurrency_control/(snapshot_clock|hekaton)\.h|storage/heap/checkpoint_clock\.h",
     r"[Cc]lock|Timestamp|Stamp|Draw"),
    ("epoch", r"base/epoch\.|silo_r/durable_epoch", r""),
    ("LVs", r"logging/(lv_metadata|lsn_vector)\.|taurus/taurus_log\.h", r"lv::|LvMetadata|OnRead|OnWrite|Publish"),
    ("PLV", r"logging/", r"persistent|[Dd]urable|IsDurable"),
    ("log tail", r"logging/log_stream\.|logging/eleda/|logging/plover/|logging/writer_signal|logging/fill_tracker|"
                 r"logging/stream_places|logging/total_order_log",
     r"Reserve|TakePlace|reserved|Filled|Submit$|ReadyUntil|CatchUp|Advance|Grasshopper|Consolidation|Bitmap|Central|"
     r"Gsn|Plover|Eleda|Wake|Tracker|Places|HasFlushable|AppendPad|Void"),
    ("log buffer", r"logging/(payload|record_builder|format|write_entries|row_changes|mirrored_buffer|log_stream|"
                   r"padded_entries|lv_metadata)\.|logging/\w+/\w+_log\.h|logging/differential/|base/crc32c",
     r""),
    ("versions", r"concurrency_control/(hekaton|heap_versions|new_versions)|storage/(version_store|heap/)", r""),
    ("lock words", r"base/waits_for_graph\.h|"
                   r"concurrency_control/(row_locks|queued_locks|lock_table|two_phase_locking|dl_detect|wait_die|"
                   r"no_wait|silo|tictoc|optimistic_accesses|deadlock_counters)\.h", r""),
    ("index", r"storage/(hash_index|btree_\w+|secondary_index|table)\.", r""),
    ("row data", r"storage/(tuple|row)\.h|concurrency_control/(changes|undo_log|changed_bytes)\.h|benchmarks/", r""),
    ("acknowledgement", r"system/transaction/(ack_queue|ack_file|worker)\.h|logging/commit_point", r""),
)]


@dataclass(frozen=True)
class Frame:
    function: str
    file: str


def structure_of(frames: list[Frame]) -> str:
    """`frames`: the innermost first."""
    for frame in frames:
        for structure, file, function in RULES:
            if file.search(frame.file) and function.search(frame.function):
                return structure
    return OTHER


def parse_addr2line(text: str) -> dict[int, list[Frame]]:
    """Of `addr2line -a -i -f -C`: for each address the functions there, the innermost first."""
    found: dict[int, list[Frame]] = {}
    frames: list[Frame] = []
    function = ""
    for line in text.splitlines():
        if re.fullmatch(r"0x[0-9a-f]{8,}", line):
            frames = found.setdefault(int(line, 16), [])
            function = ""
        elif not function:
            function = line
        else:
            frames.append(Frame(function, re.sub(r"^\./", "", line.split(" (")[0])))
            function = ""
    return found


def frames_of(binary: str, addresses: set[int]) -> dict[int, list[Frame]]:
    """Addresses are those that calls return to: the call is before."""
    if not addresses:
        return {}
    command = ["addr2line", "-a", "-i", "-f", "-C", "-e", binary]
    lines = "".join(f"{address - 1:#x}\n" for address in sorted(addresses))
    output = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout
    return {address + 1: frames for address, frames in parse_addr2line(output).items()}


class Namer:
    """The structures of one binary's places; each is looked up once."""

    def __init__(self, binary: str):
        self.binary = binary
        self.known: dict[int, list[Frame]] = {0: []}

    def structures(self, places: list[dict]) -> dict[int, str]:
        addresses = {place[end] for place in places for end in ("at", "written_at")}
        self.known.update(frames_of(self.binary, addresses - set(self.known)))
        return {address: structure_of(self.known.get(address, [])) for address in addresses}

    def code(self, address: int) -> str:
        """The engine's innermost function there, and its line."""
        frames = self.known.get(address, [])
        own = [frame for frame in frames if not frame.file.startswith("/usr/") and "/seam/" not in frame.file]
        own = own or frames or [Frame("?", "?")]
        file = os.path.normpath(own[0].file).removeprefix(REPOSITORY + "/")
        return f"{file}  {own[0].function.split('(')[0]}"


KINDS = ("dirty", "upgrades", "clean", "invalidated", "false_sharing")


def by_structure(places: list[dict], structures: dict[int, str]) -> dict[str, dict[str, int]]:
    """Sums of KINDS. Of a place whose events are mostly false sharing, for the structure that was written last."""
    sums = {structure: dict.fromkeys(KINDS, 0) for structure in STRUCTURES}
    for place in places:
        is_false = 2 * place["false_sharing"] > place["dirty"] + place["upgrades"] and place["written_at"] != 0
        structure = structures[place["written_at"] if is_false else place["at"]]
        for kind in KINDS:
            sums[structure][kind] += place[kind]
    return {structure: counts for structure, counts in sums.items() if any(counts.values())}
