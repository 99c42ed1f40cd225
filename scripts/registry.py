"""The log schemes and the concurrency controls that are built, read from the lists of the engine: logging/schemes.h and
concurrency_control/controls.h. A list of a script is made from these, or compared with them by tests/lint/one_list.py.
"""
from __future__ import annotations

import os
import re
from dataclasses import dataclass

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCHEMES = "logging/schemes.h"
CONTROLS = "concurrency_control/controls.h"
SCHEME = re.compile(r'^ *\{format::Scheme::(k\w+), "(LOG_\w+)", "(\w+)", (true|false)\b.*\},$', re.MULTILINE)
CONTROL = re.compile(r'^ *\{CcAlg::k\w+, "(\w+)", (true|false), (true|false)(?:, "(\w+)")?\},$', re.MULTILINE)
ENTRY = r"^ *\{{{0}::k\w+, .*$"


class Malformed(SystemExit):
    """One line that says which list has another shape than a script can read; ends a script that does not catch it."""


@dataclass(frozen=True)
class Scheme:
    """As SchemeInfo."""

    enumerator: str  # kSiloR
    name: str        # LOG_BATCH
    folder: str
    one_log: bool


@dataclass(frozen=True)
class Control:
    """As ControlInfo."""

    name: str
    locks_rows: bool
    has_commands: bool
    other_name: str  # "" without one


def schemes(root: str = REPOSITORY) -> tuple[Scheme, ...]:
    return tuple(Scheme(enumerator, name, folder, one_log == "true")
                 for enumerator, name, folder, one_log in _entries(root, SCHEMES, SCHEME, "format::Scheme"))


def controls(root: str = REPOSITORY) -> tuple[Control, ...]:
    return tuple(Control(name, locks_rows == "true", has_commands == "true", other_name)
                 for name, locks_rows, has_commands, other_name in _entries(root, CONTROLS, CONTROL, "CcAlg"))


def _entries(root: str, path: str, shape: re.Pattern, enumeration: str) -> list[tuple[str, ...]]:
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = file.read()
    found = shape.findall(text)
    if not found or len(found) != len(re.findall(ENTRY.format(enumeration), text, re.MULTILINE)):
        raise Malformed(f"{path} has changed its shape: adapt scripts/registry.py")
    return found
