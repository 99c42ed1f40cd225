"""Helpers that damage files of runs, for cli_check.py, heap_check.py and dump_check.py.

The layout of logs is in logging/README.md, that of heaps in storage/heap/heap_format.h and superblock.cpp, and that of
their records in logging/gaps/gap_log.cpp. Checksums are CRC-32C.
"""
from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Callable, Iterator

HEADER_BYTES = 4096  # two copies lead a log file (logging/README.md)
VERSION_OFFSET, CRC_OFFSET = 8, 12


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def change_sealed(path: str, change: Callable[[bytearray], None]) -> None:
    """Changes both copies of a header or a superblock, with right checksums."""
    with open(path, "r+b") as file:
        copy = bytearray(file.read(HEADER_BYTES))
        change(copy)
        struct.pack_into("<I", copy, CRC_OFFSET, 0)
        struct.pack_into("<I", copy, CRC_OFFSET, crc32c(bytes(copy)))
        file.seek(0)
        file.write(copy * 2)


def set_version(path: str, version: int) -> None:
    """Both header copies claim another version."""
    change_sealed(path, lambda copy: struct.pack_into("<I", copy, VERSION_OFFSET, version))


def flip(path: str, *offsets: int) -> None:
    with open(path, "r+b") as file:
        for offset in offsets:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 0x40]))


def write(path: str, offset: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def cut(path: str, size: int) -> None:
    os.truncate(path, size)


def swap(one: str, other: str) -> None:
    os.rename(one, one + ".x")
    os.rename(other, one)
    os.rename(one + ".x", other)


def files_of(directory: str, run: int = 1) -> list[str]:
    folder = os.path.join(directory, f"run-{run:04d}")
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


def logs_of(directory: str, run: int = 1) -> list[str]:
    return [path for path in files_of(directory, run) if os.path.basename(path).startswith("log-")]


# ---- Persistent heaps ----

BLOCK_BYTES, SLOT_HEADER_BYTES, RECORD_HEADER_BYTES = 4096, 64, 88
STATE_OFFSET, TABLES_OFFSET, DIRECTORY_OFFSET = 64, 72, 2 * BLOCK_BYTES
STATE_LOADING = 1
SLOT_TABLE_OFFSET, SLOT_FLAGS_OFFSET, SLOT_BYTES_OFFSET = 24, 26, 28
PARTITION_BITS = 48


def heap_of(directory: str, run: int = 1) -> str:
    return os.path.join(directory, f"run-{run:04d}", "heap.pm")


def gaps_of(directory: str, run: int = 1) -> str:
    return os.path.join(directory, f"run-{run:04d}", "gaps.log")


@dataclass
class GapRecord:
    offset: int
    sequence: int
    c_p: int
    c_d: int
    losers: list[tuple[int, int]]
    last_sequences: tuple[int, ...]

    def counts(self, stamp: int) -> bool:
        return 0 < stamp <= self.c_p and not any(low <= stamp < high for low, high in self.losers)


def gap_records(path: str) -> list[GapRecord]:
    """The valid ones, by sequence."""
    with open(path, "rb") as file:
        data = file.read()
    found = []
    for at in range(0, len(data), BLOCK_BYTES):
        crc, length, magic = struct.unpack_from("<II8s", data, at)
        if magic != b"gapkcerd" or crc32c(data[at + 4:at + length]) != crc:
            continue
        sequence, c_p, c_d = struct.unpack_from("<QQQ", data, at + 32)
        gaps, runners, workers = struct.unpack_from("<III", data, at + 76)
        numbers = struct.unpack_from(f"<{2 * gaps + runners + workers}Q", data, at + RECORD_HEADER_BYTES)
        losers = list(zip(numbers[0:2 * gaps:2], numbers[1:2 * gaps:2]))
        losers += [(stamp, stamp + 1) for stamp in numbers[2 * gaps:2 * gaps + runners]]
        found.append(GapRecord(at, sequence, c_p, c_d, losers, numbers[2 * gaps + runners:]))
    return sorted(found, key=lambda record: record.sequence)


class Heap:
    """Where things lie in a heap of one table."""

    def __init__(self, path: str):
        self.path = path
        with open(path, "rb") as file:
            self.data_ = file.read()
        self.extent_bytes_, = struct.unpack_from("<Q", self.data_, 48)
        self.partitions, self.tuple_bytes = struct.unpack_from("<QI", self.data_, TABLES_OFFSET)
        extents = (len(self.data_) - DIRECTORY_OFFSET) // (self.extent_bytes_ + 8)
        while self._first(extents) + extents * self.extent_bytes_ > len(self.data_):
            extents -= 1
        self.first_ = self._first(extents)
        self.directory_ = struct.unpack_from(f"<{extents}Q", self.data_, DIRECTORY_OFFSET)
        self.slot_bytes = (SLOT_HEADER_BYTES + self.tuple_bytes + 63) // 64 * 64

    @staticmethod
    def _first(extents: int) -> int:
        return -(-(DIRECTORY_OFFSET + 8 * extents) // BLOCK_BYTES) * BLOCK_BYTES

    def word_in_use(self) -> int:
        """The offset of a word of the directory."""
        return DIRECTORY_OFFSET + 8 * next(i for i, word in enumerate(self.directory_) if word != 0)

    def counted(self, record: GapRecord) -> Iterator[int]:
        """The offsets of the slots that count."""
        for extent, word in enumerate(self.directory_):
            if word == 0:
                continue
            begin = self.first_ + extent * self.extent_bytes_
            for at in range(begin, begin + self.extent_bytes_ - self.slot_bytes + 1, self.slot_bytes):
                if record.counts(struct.unpack_from("<Q", self.data_, at)[0]):
                    yield at

    def slot(self, at: int) -> bytes:
        return self.data_[at:at + self.slot_bytes]


def newest_heap(directory: str) -> tuple[Heap, GapRecord]:
    return Heap(heap_of(directory)), gap_records(gaps_of(directory))[-1]


def set_state(directory: str, state: int) -> None:
    change_sealed(heap_of(directory), lambda copy: struct.pack_into("<I", copy, STATE_OFFSET, state))


def empty_gaps(directory: str) -> None:
    for record in gap_records(gaps_of(directory)):
        write(gaps_of(directory), record.offset, bytes(RECORD_HEADER_BYTES))


def tear_newest_record(directory: str) -> None:
    """As a crash leaves one that was being written."""
    record = gap_records(gaps_of(directory))[-1]
    flip(gaps_of(directory), record.offset + 40)


def change_slot(directory: str, offset: int, data: bytes) -> None:
    """Of the first slot that counts."""
    heap, record = newest_heap(directory)
    write(heap.path, next(heap.counted(record)) + offset, data)


def promise_more(directory: str) -> None:
    """A slot bears the first stamp that was never promised."""
    change_slot(directory, 0, struct.pack("<Q", newest_heap(directory)[1].c_d))


def repeat_slot(directory: str) -> None:
    """A version is there twice."""
    heap, record = newest_heap(directory)
    counted = heap.counted(record)
    one, other = next(counted), next(counted)
    write(heap.path, other, heap.slot(one))


def flip_tuple(directory: str) -> None:
    heap, record = newest_heap(directory)
    flip(heap.path, next(heap.counted(record)) + SLOT_HEADER_BYTES + 5)


def give_extent(directory: str, table: int, partition: int) -> None:
    """The directory gives an extent to this partition."""
    heap = Heap(heap_of(directory))
    write(heap.path, heap.word_in_use(), struct.pack("<Q", (table << PARTITION_BITS | partition) + 1))
