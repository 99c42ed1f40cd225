#!/usr/bin/env python3
"""Lays out a log scheme of one stream in logging/NAME/, with its recovery, its tests and its line in every list.

What it makes runs, recovers and is tested at once, and is there to be changed: CONTRIBUTING.md, "A new log scheme".
The files come from scripts/new_scheme_files. Every list is found by its shape, which must occur exactly once; nothing
is written unless all of them are. Exit status 2 and one line say why not.
"""
from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import dataclass
from typing import Callable

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(HERE)
FILES = os.path.join(HERE, "new_scheme_files")
NAME_LENGTH_MAX = 16

# Of its two payloads in plots, the first of which no other scheme has the markers. No colour is left that colour-blind
# readers tell apart from all others.
SPARE_STYLES = ((("#009e73", "p"), ("#f0e442", "8")), (("#0072b2", "d"), ("#56b4e9", "1")),
                (("#d55e00", "2"), ("#e69f00", "3")))


class Refused(Exception):
    """One line that says what is wrong; nothing was written."""


@dataclass(frozen=True)
class Names:
    folder: str  # my_log

    @property
    def log(self) -> str:  # LOG_MY_LOG
        return "LOG_" + self.folder.upper()

    @property
    def camel(self) -> str:  # MyLog
        return "".join(word.capitalize() for word in self.folder.split("_"))

    def fill_in(self, text: str) -> str:
        for mark, value in (("@folder@", self.folder), ("@LOG@", self.log), ("@Class@", self.camel)):
            text = text.replace(mark, value)
        return text


def read(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from error


# ---- Names -----------------------------------------------------------------------------------------------

def check_name(root: str, name: str) -> Names:
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise Refused(f"'{name}' is no name for a scheme: lower-case words joined by _, such as my_log")
    if len(name) > NAME_LENGTH_MAX:
        raise Refused(f"'{name}' is too long: at most {NAME_LENGTH_MAX} characters")
    names = Names(name)
    taken = [path for path in (f"logging/{name}", f"tests/logging/{name}") if os.path.exists(os.path.join(root, path))]
    if taken:
        raise Refused(f"'{name}' is taken: there is {taken[0]}")
    config = read(root, "config.h")
    if re.search(rf"\b{names.log}\b", config + read(root, "system/command_line/switches.cpp")):
        raise Refused(f"'{name}' is taken: {names.log} is a name of config.h or a switch already")
    # Scripts set a switch by an expression that would hit a longer name too (tests/lint/config_switches.py).
    for switch in re.findall(r"^#ifndef (\w+)", config, re.MULTILINE):
        if names.log.startswith(switch):
            raise Refused(f"'{name}' is taken: {names.log} begins with the switch {switch}")
    if re.search(rf"\bk{names.camel}\b", enumerators_of(read(root, "logging/format.h"))):
        raise Refused(f"'{name}' is taken: logging/format.h has Scheme::k{names.camel}")
    for path in headers(os.path.join(root, "logging")):
        found = re.search(rf"\b(?:class|struct|using) ({names.camel}(?:Log|Recovery))\b", read(root, path))
        if found:
            raise Refused(f"'{name}' is taken: {os.path.relpath(path, root)} has a {found[1]}")
    return names


def enumerators_of(text: str) -> str:
    found = re.search(r"enum class Scheme : uint8_t \{[^}]*\}", text)
    return found[0] if found else ""


def headers(folder: str) -> list[str]:
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names
                  if name.endswith(".h"))


# ---- Lists -----------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Edit:
    path: str
    what: str  # is added there
    shape: str  # of the place, which occurs once
    make: Callable[[re.Match, Names], str]  # what stands there afterwards


def apply(edit: Edit, text: str, names: Names) -> str:
    found = list(re.finditer(edit.shape, text, re.MULTILINE))
    if len(found) != 1:
        raise Refused(f"{edit.path} has changed its shape: the place for {edit.what} is there {len(found)} times. "
                      "Adapt EDITS in scripts/new_scheme.py")
    at = found[0]
    return text[:at.start()] + edit.make(at, names) + text[at.end():]


def behind(addition: str) -> Callable[[re.Match, Names], str]:
    return lambda found, names: found[0] + names.fill_in(addition)


def next_number(found: re.Match) -> int:
    return 1 + max(int(number) for number in re.findall(r"^#define LOG_\w+ (\d+)$", found[0], re.MULTILINE))


def with_value(found: re.Match, names: Names) -> str:
    return f"{found[0]}#define {names.log} {next_number(found)}\n"


def with_description(found: re.Match, names: Names) -> str:
    return f"{found[0]}//   {names.log:<10}  one stream, as scripts/new_scheme lays it out\n"


def with_enumerator(found: re.Match, names: Names) -> str:
    return f"{found[1]}  k{names.camel} = {int(found[2]) + 1},\n  kLast = k{names.camel},\n"


def with_includes(*parts: str):
    def change(found: re.Match, names: Names) -> str:
        lines = set(found[0].splitlines())
        lines |= {f'#include "logging/{names.folder}/{names.folder}_{part}.h"' for part in parts}
        return "".join(line + "\n" for line in sorted(lines))
    return change


def with_style(found: re.Match, names: Names) -> str:
    for styles in SPARE_STYLES:
        if not any(f'"{marker}"' in found[0] for _, marker in styles):
            return found[0] + "".join(f'    ("{names.log}", "{log_type}"): ("{colour}", "{marker}"),\n' for
                                      log_type, (colour, marker) in zip(("LOG_DATA", "LOG_COMMAND"), styles))
    return found[0]  # plots draw it in UNKNOWN_STYLE


def with_rows(found: re.Match, names: Names) -> str:
    """The matrix as readme_matrix.py makes it: sorted, and with the refusals of a scheme of the same traits."""
    rows = found[2].splitlines()
    rows += [row.replace("| LOG_SERIAL,", f"| {names.log},") for row in rows if row.startswith("| LOG_SERIAL,")]
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
         behind('    {format::Scheme::k@Class@, "@LOG@", "@folder@", true},\n')),
    Edit("system/pairs/configured.h", "the end of its macro", r"^#undef LOG_NO\n", behind("#undef @LOG@\n")),
    Edit("system/pairs/scheme_types.h", "its headers", r'^(?:#include "logging/[^\n]*\n)+',
         with_includes("log", "recovery")),
    Edit("system/pairs/scheme_types.h", "its types", r"^(?:template <>\nstruct TypesOf<[^\n]*\n)+", behind(TYPES_OF)),
    Edit("Makefile", "its pairs", r"^LOGS := (?:[^\n]*\\\n)*[^\n]*[^\n\\](?=\n)",
         behind(" \\\n        @LOG@:LOG_DATA @LOG@:LOG_COMMAND")),
    Edit("system/reference/reference_replay.cpp", "the scheme's number in the second parser",
         r"^constexpr bool kHasOneLog\[\] = \{\n(?:    (?:true|false),[^\n]*\n)+", behind("    true,   // @folder@\n")),
    Edit("scripts/cells.py", "the main job's cells", r'^SCHEMES = \{\n(?:    "LOG_\w+": Scheme\([^\n]*\),\n)+',
         behind('    "@LOG@": Scheme("@folder@", one_log=True),\n')),
    Edit("scripts/looks.py", "its look in plots", r'^SCHEME_STYLE = \{\n(?:    \("LOG_\w+", [^\n]*\n)+', with_style),
    Edit("README.md", "the matrix of pairs",
         r"^(<!-- matrix: begin [^\n]*\n\| \|[^\n]*\n\|[-|]+\n)((?:\|[^\n]*\n)+)", with_rows),
]

# Template -> the file that becomes of it.
NEW_FILES = {
    "log.h.in": "logging/@folder@/@folder@_log.h",
    "recovery.h.in": "logging/@folder@/@folder@_recovery.h",
    "recovery.cpp.in": "logging/@folder@/@folder@_recovery.cpp",
    "log_test.cpp.in": "tests/logging/@folder@/@folder@_log_test.cpp",
    "recovery_test.cpp.in": "tests/logging/@folder@/@folder@_recovery_test.cpp",
}


# ---- All of it -------------------------------------------------------------------------------------------

def plan(root: str, name: str) -> tuple[Names, dict[str, str], dict[str, str]]:
    """The new files, and the changed ones, as path -> text."""
    names = check_name(root, name)
    made = {names.fill_in(path): names.fill_in(read(FILES, template)) for template, path in NEW_FILES.items()}
    changed: dict[str, str] = {}
    for edit in EDITS:
        text = changed[edit.path] if edit.path in changed else read(root, edit.path)
        changed[edit.path] = apply(edit, text, names)
    return names, made, changed


def write_all(root: str, made: dict[str, str], changed: dict[str, str]) -> None:
    """All or, where a file cannot be written, none."""
    before = {path: read(root, path) for path in changed}
    begun: list[str] = []
    try:
        for path, text in {**made, **changed}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            begun.append(path)
            write(root, path, text)
    except OSError as error:
        for path in begun:
            if path in before:
                write(root, path, before[path])
            elif os.path.exists(os.path.join(root, path)):
                os.unlink(os.path.join(root, path))
        raise Refused(f"cannot write {begun[-1] if begun else root}: {error.strerror}") from error


def write(root: str, path: str, text: str) -> None:
    with open(os.path.join(root, path), "w", encoding="utf-8") as file:
        file.write(text)


NEXT = """\
run, recover, look (the first build takes some minutes):
  make -j LOG_ALGORITHM=@LOG@ LOG_TYPE=LOG_COMMAND rundb log_dump
  ./rundb --log_overwrite --verify && ./rundb -Lr1 --verify
  ./log_dump --records 5 logs/run-*/log-00.log
test:
  make -j tests TESTS=tests/logging/@folder@ PAIRS=NO_WAIT:0:@LOG@:LOG_COMMAND && build/all_tests
change:
  logging/@folder@/@folder@_log.h        start with Reserve: it decides what order means
  logging/@folder@/@folder@_recovery.cpp then NextReady: what may be replayed when
CONTRIBUTING.md, "A new log scheme", walks on from here.
"""


def main(argv: list[str] | None = None, root: str = REPOSITORY) -> int:
    parser = argparse.ArgumentParser(prog=os.environ.get("DBX_PROGRAM", "new_scheme.py"),
                                     description="Lays out a log scheme that runs, recovers and is tested, to be changed.")
    parser.add_argument("name", metavar="NAME", help="of the scheme and its folder, such as my_log")
    parser.add_argument("--dry_run", action="store_true", help="say what would be made, and write nothing")
    arguments = parser.parse_args(argv)
    try:
        names, made, changed = plan(root, arguments.name)
        if not arguments.dry_run:
            write_all(root, made, changed)
    except Refused as why:
        print(f"error: {why}", file=sys.stderr)
        return 2
    print("would make:" if arguments.dry_run else "made:")
    print("".join(f"  {path}\n" for path in made) + "one line or two in:")
    print("".join(f"  {path}\n" for path in changed) + names.fill_in(NEXT), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
