"""The processes of a run of several masters, as /proc has them."""
from __future__ import annotations


def children_of(pid: int) -> list[int]:
    """In the order in which they were forked; none of a process that has ended."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
