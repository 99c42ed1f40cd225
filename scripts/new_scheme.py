#!/usr/bin/env python3
"""Lays out a log scheme of one stream in logging/NAME/, with its recovery, its tests and its line in every list.

What it makes runs, recovers and is tested at once, and is there to be changed: CONTRIBUTING.md, "A new log scheme".
The files come from scripts/new_scheme_files; new_part.py does the work. Exit status 2 and one line say why not.
"""
from __future__ import annotations

import os
import re
import sys

from new_part import (
    Edit, Names, Part, Refused, behind, main, read, refuse_classes, sanitised, with_includes, with_value,
)

# Of its two payloads in plots, the first of which no other scheme has the markers. No colour is left that colour-blind
# readers tell apart from all others.
SPARE_STYLES = ((("#009e73", "p"), ("#f0e442", "8")), (("#0072b2", "d"), ("#56b4e9", "1")),
                (("#d55e00", "2"), ("#e69f00", "3")))
UNKNOWN_STYLES = (("#8a8a8a", "*"),) * 2  # where none is spare


def check(root: str, names: Names) -> None:
    if re.search(rf"\bk{names.camel}\b", enumerators_of(read(root, "logging/format.h"))):
        raise Refused(f"'{names.name}' is taken: logging/format.h has Scheme::k{names.camel}")
    refuse_classes(root, names, ("logging",), f"{names.camel}(?:Log|Recovery)")


def enumerators_of(text: str) -> str:
    found = re.search(r"enum class Scheme : uint8_t \{[^}]*\}", text)
    return found[0] if found else ""


# ---- Lists -----------------------------------------------------------------------------------------------

def with_description(found: re.Match, names: Names) -> str:
    return f"{found[0]}//   {names.word:<10}  one stream, as scripts/new_scheme lays it out\n"


def with_enumerator(found: re.Match, names: Names) -> str:
    return f"{found[1]}  k{names.camel} = {int(found[2]) + 1},\n  kLast = k{names.camel},\n"


def with_style(found: re.Match, names: Names) -> str:
    spare = (styles for styles in SPARE_STYLES if not any(f'"{marker}"' in found[0] for _, marker in styles))
    return found[0] + "".join(f'    ("{names.word}", "{log_type}"): ("{colour}", "{marker}"),\n' for
                              log_type, (colour, marker) in
                              zip(("LOG_DATA", "LOG_COMMAND"), next(spare, UNKNOWN_STYLES)))


def with_rows(found: re.Match, names: Names) -> str:
    """The matrix as pairs_matrix.py makes it: sorted, and with the refusals of a scheme of the same traits."""
    rows = found[2].splitlines()
    rows += [row.replace("| LOG_SERIAL,", f"| {names.word},") for row in rows if row.startswith("| LOG_SERIAL,")]
    return found[1] + "".join(row + "\n" for row in sorted(rows, key=lambda row: row.split(" | ")[0]))


TYPES_OF = """\
template <>
struct TypesOf<format::Scheme::k@Class@> : SchemeTypes<@Class@Log, @Class@Recovery> {};
"""

EDITS = [
    *(edit for path in ("config.h", "config-std.h") for edit in (
        Edit(path, "the value of LOG_ALGORITHM",
             r"^// LOG_ALGORITHM\. Built: [^\n]*\n(?:#define LOG_\w+ \d+\n)+", with_value),
        Edit(path, "the scheme's description",
             r"^// Log scheme\. Built:\n(?://   LOG_\w+ [^\n]*\n)+(?=#ifndef LOG_ALGORITHM\n)", with_description))),
    Edit("logging/format.h", "the scheme's number in a log's header",
         r"^(enum class Scheme : uint8_t \{\n(?:  k\w+ = \d+,\n)*  k\w+ = (\d+),\n)  kLast = k\w+,\n", with_enumerator),
    Edit("logging/schemes.h", "the scheme's names",
         r"^    \{format::Scheme::k\w+, [^\n]*\},\n(?=\}\);)",
         behind('    {format::Scheme::k@Class@, "@NAME@", "@name@", true},\n')),
    Edit("system/pairs/configured.h", "the end of its macro", r"^#undef LOG_NO\n", behind("#undef @NAME@\n")),
    Edit("system/pairs/scheme_types.h", "its headers", r'^(?:#include "logging/[^\n]*\n)+',
         with_includes("logging/@name@/@name@_log.h", "logging/@name@/@name@_recovery.h")),
    Edit("system/pairs/scheme_types.h", "its types", r"^(?:template <>\nstruct TypesOf<[^\n]*\n)+", behind(TYPES_OF)),
    Edit("Makefile", "its pairs", r"^LOGS := (?:[^\n]*\\\n)*[^\n]*[^\n\\](?=\n)",
         behind(" \\\n        @NAME@:LOG_DATA @NAME@:LOG_COMMAND")),
    sanitised("NO_WAIT:0:@NAME@:LOG_COMMAND"),
    Edit("system/reference/reference_replay.cpp", "the scheme's number in the second parser",
         r"^constexpr bool kHasOneLog\[\] = \{\n(?:    (?:true|false),[^\n]*\n)+", behind("    true,   // @name@\n")),
    Edit("experiments/main_job.yaml", "the main job's cells", r"^schemes:\n(?:  LOG_\w+: \{[^\n]*\}\n)+",
         behind('  @NAME@: {label: "@name@", payloads: [LOG_DATA, LOG_COMMAND]}\n')),
    Edit("scripts/looks.py", "its look in plots", r'^SCHEME_STYLE = \{\n(?:    \("LOG_\w+", [^\n]*\n)+', with_style),
    Edit("docs/pairs.md", "the matrix of pairs",
         r"^(<!-- matrix: begin [^\n]*\n\| \|[^\n]*\n\|[-|]+\n)((?:\|[^\n]*\n)+)", with_rows),
]

# Template -> the file that is made from it.
NEW_FILES = {
    "log.h.in": "logging/@name@/@name@_log.h",
    "recovery.h.in": "logging/@name@/@name@_recovery.h",
    "recovery.cpp.in": "logging/@name@/@name@_recovery.cpp",
    "log_test.cpp.in": "tests/logging/@name@/@name@_log_test.cpp",
    "recovery_test.cpp.in": "tests/logging/@name@/@name@_recovery_test.cpp",
}

NEXT = """\
run, recover, look (the first build takes some minutes):
  make -j LOG_ALGORITHM=@NAME@ LOG_TYPE=LOG_COMMAND rundb log_dump
  ./rundb --log_overwrite --verify && ./rundb -Lr1 --verify
  ./log_dump --records 5 logs/run-*/log-00.log
test:
  make -j tests TESTS=tests/logging/@name@ PAIRS=NO_WAIT:0:@NAME@:LOG_COMMAND && build/all_tests
change:
  logging/@name@/@name@_log.h        start with Reserve: it decides what order means
  logging/@name@/@name@_recovery.cpp then NextReady: what may be replayed when
CONTRIBUTING.md, "A new log scheme", walks on from here.
"""

PART = Part(script="new_scheme", kind="scheme", example="my_log", prefix="LOG_",
            description="Lays out a log scheme that runs, recovers and is tested, to be changed.",
            templates=os.path.join(os.path.dirname(os.path.abspath(__file__)), "new_scheme_files"), new_files=NEW_FILES,
            edits=EDITS, check=check, next_steps=NEXT)

if __name__ == "__main__":
    sys.exit(main(PART))
