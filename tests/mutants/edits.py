"""What a mutant is made of.

Kinds of edits: a statement (or several, none of them a declaration that is used behind them), an expression, or "raw":
the replacement is used as it is, with {on} for "this mutant is switched on".
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    file: str
    find: str
    replace: str
    kind: str = "statement"  # expression, raw


@dataclass(frozen=True)
class Mutant:
    name: str
    trap: str  # what goes wrong, in a sentence
    edits: list[Edit]
    cells: str = ""  # only cells whose name contains this can tell
    # A rare one, which the simulation needs minutes for, is not in the quick tests' rotation. It names one of these, or
    # gets more time.
    model: str = ""  # the test of a small model (tests/models) in which the same fault is found
    test: str = ""  # the test of the engine that fails under it
    rare: bool = False


def statement(file: str, find: str, replace: str) -> Edit:
    return Edit(file, find, replace)


def expression(file: str, find: str, replace: str) -> Edit:
    return Edit(file, find, replace, "expression")


def raw(file: str, find: str, replace: str) -> Edit:
    return Edit(file, find, replace, "raw")
