#!/usr/bin/env python3
"""Lays out a concurrency control, two-phase locking with a waiting rule of its own, with its tests and its line in
every list.

What it makes runs under every log and is tested at once, and is there to be changed: CONTRIBUTING.md, "A new
concurrency control". The files come from scripts/new_cc_files; new_part.py does the work. Exit status 2 and one line
say why not.
"""
from __future__ import annotations

import os
import re
import sys

from new_part import (
    Edit, Names, Part, Refused, behind, headers, main, read, refuse_classes, sanitised, with_includes, with_value,
)

ENGINE = ("base", "storage", "concurrency_control", "logging", "benchmarks", "system")
# In plots; that of other controls is in experiment/style.py.
SPARE_HATCHES = ("oo", "**", "++", "OO")
UNKNOWN_HATCH = "...."  # where none is spare


def check(root: str, names: Names) -> None:
    refuse_classes(root, names, (*ENGINE, "tests/concurrency_control"), f"{names.camel}(?:Rows|Table)?")
    for folder in ENGINE:
        for path in headers(os.path.join(root, folder)):
            if re.search(rf"^ *# *define {names.word}\b", read(root, path), re.MULTILINE):
                raise Refused(f"'{names.name}' is taken: {os.path.relpath(path, root)} defines {names.word}")


# ---- Lists -----------------------------------------------------------------------------------------------

def with_description(found: re.Match, names: Names) -> str:
    return f"// {names.word}: two-phase locking, as scripts/new_cc lays it out.\n{found[0]}"


def with_hatch(found: re.Match, names: Names) -> str:
    hatch = next((hatch for hatch in SPARE_HATCHES if f'"{hatch}"' not in found[0]), UNKNOWN_HATCH)
    return f'{found[0]}    "{names.word}": "{hatch}",\n'


def with_columns(found: re.Match, names: Names) -> str:
    """The matrix as pairs_matrix.py makes it: sorted, and with the refusals of a control of the same traits."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found[2].splitlines()]
    table = " + lock table"
    columns = [("", False), *((name.removesuffix(table), name.endswith(table)) for name in rows[0][1:])]
    for added in ((names.word, False), (names.word, True)):
        at = next((i for i, column in enumerate(columns) if column > added), len(columns))
        model = columns.index(("WAIT_DIE", added[1]))
        for number, row in enumerate(rows):
            row.insert(at, added[0] + table * added[1] if number == 0 else row[model])
        columns.insert(at, added)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines[0] = "| |" + lines[0].removeprefix("|  |")
    lines[1] = "|---" * len(columns) + "|"
    return found[1] + "".join(line + "\n" for line in lines)


TYPE_OF = """\
template <bool kLocktable, class Log>
struct CcOf<CcAlg::k@Class@, kLocktable, Log> : LockingOf<kLocktable, Log, @Class@> {};
"""

EDITS = [
    *(edit for path in ("config.h", "config-std.h") for edit in (
        Edit(path, "the value of CC_ALG", r"^// CC_ALG\. Built: [^\n]*\n(?:#define \w+ \d+\n)+", with_value),
        Edit(path, "the control's description", r"^#ifndef CC_ALG\n", with_description))),
    Edit("concurrency_control/controls.h", "its enumerator", r"^enum class CcAlg : uint8_t \{\n(?:  k\w+,\n)+",
         behind("  k@Class@,\n")),
    Edit("concurrency_control/controls.h", "its names", r"^    \{CcAlg::k\w+, [^\n]*\},\n(?=\}\);)",
         behind('    {CcAlg::k@Class@, "@NAME@", true, true},\n')),
    Edit("system/pairs/configured.h", "the end of its macro", r"^#undef NO_WAIT\n", behind("#undef @NAME@\n")),
    Edit("system/pairs/control_types.h", "its header", r'^(?:#include "concurrency_control/[^\n]*\n)+',
         with_includes("concurrency_control/@name@.h")),
    Edit("system/pairs/control_types.h", "its type",
         r"^(?:template <bool kLocktable, class Log>\nstruct CcOf<[^\n]*\n)+", behind(TYPE_OF)),
    sanitised("@NAME@:0:LOG_TAURUS:LOG_COMMAND"),
    Edit("scripts/experiment/style.py", "its hatch in plots",
         r'^CC_HATCH = \{\n(?:    "\w+": "[^\n]*",\n)+', with_hatch),
    Edit("docs/pairs.md", "the matrix of pairs", r"^(<!-- matrix: begin [^\n]*\n)((?:\|[^\n]*\n)+)", with_columns),
    Edit("tests/concurrency_control/pair_of.h", "its pairs", r"^(?:std::vector<TestPair> \w+Pairs\(\);\n)+",
         behind("std::vector<TestPair> @Class@Pairs();\n")),
    Edit("tests/concurrency_control/pairs.cpp", "its pairs", r"^(?:    add\(\w+Pairs\(\)\);\n)+",
         behind("    add(@Class@Pairs());\n")),
]

# Template -> the file that is made from it.
NEW_FILES = {
    "cc.h.in": "concurrency_control/@name@.h",
    "cc_test.cpp.in": "tests/concurrency_control/@name@_test.cpp",
    "pairs.cpp.in": "tests/concurrency_control/pairs_@name@.cpp",
}

NEXT = """\
run, recover (the first build takes some minutes):
  make -j CC_ALG=@NAME@ LOG_ALGORITHM=LOG_TAURUS LOG_TYPE=LOG_COMMAND rundb
  ./rundb --log_overwrite --verify && ./rundb -Lr1 --verify
test:
  make -j tests TESTS=tests/concurrency_control/@name@_test.cpp PAIRS= && build/all_tests
change:
  concurrency_control/@name@.h  start with MayWaitFor: it decides whether a worker waits or aborts
CONTRIBUTING.md, "A new concurrency control", walks on from here.
"""

PART = Part(script="new_cc", kind="concurrency control", example="my_cc", prefix="",
            description="Lays out a concurrency control that runs under every log and is tested, to be changed.",
            templates=os.path.join(os.path.dirname(os.path.abspath(__file__)), "new_cc_files"), new_files=NEW_FILES,
            edits=EDITS, check=check, next_steps=NEXT)

if __name__ == "__main__":
    sys.exit(main(PART))
