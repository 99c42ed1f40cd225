"""What new_scheme.py and new_cc.py share: a part of the engine that is laid out from templates, and its line in every
list.

Every list is found by its shape, which must occur exactly once; nothing is written unless all of them are found.
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
NAME_LENGTH_MAX = 16


class Refused(Exception):
    """One line that says what is wrong; nothing was written."""


@dataclass(frozen=True)
class Names:
    """Of one part, in the spellings that its files need."""

    name: str    # my_log
    prefix: str  # of its name in config.h: LOG_

    @property
    def word(self) -> str:  # LOG_MY_LOG
        return self.prefix + self.name.upper()

    @property
    def camel(self) -> str:  # MyLog
        return "".join(part.capitalize() for part in self.name.split("_"))

    def fill_in(self, text: str) -> str:
        for mark, value in (("@name@", self.name), ("@NAME@", self.word), ("@Class@", self.camel)):
            text = text.replace(mark, value)
        return text


@dataclass(frozen=True)
class Edit:
    path: str
    what: str  # is added there
    shape: str  # of the place, which occurs once
    make: Callable[[re.Match, Names], str]  # what stands there afterwards


@dataclass(frozen=True)
class Part:
    """What a script lays out."""

    script: str              # new_scheme
    kind: str                # of part: scheme
    example: str             # of a name: my_log
    prefix: str              # of its name in config.h
    description: str         # for --help
    templates: str           # the folder of the templates
    new_files: dict[str, str]  # template -> the file that is made from it
    edits: list[Edit]
    check: Callable[[str, Names], None]  # raises Refused where a name is taken
    next_steps: str          # printed in the end


def read(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from error


# ---- Names -----------------------------------------------------------------------------------------------

def check_name(root: str, part: Part, name: str) -> Names:
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise Refused(f"'{name}' is no name for a {part.kind}: lower-case words joined by _, such as {part.example}")
    if len(name) > NAME_LENGTH_MAX:
        raise Refused(f"'{name}' is too long: at most {NAME_LENGTH_MAX} characters")
    names = Names(name, part.prefix)
    # The path of each file that is made, or of its folder where that is the part's own.
    for path in map(names.fill_in, part.new_files.values()):
        folder = os.path.dirname(path)
        taken = folder if os.path.basename(folder) == name else path
        if os.path.exists(os.path.join(root, taken)):
            raise Refused(f"'{name}' is taken: there is {taken}")
    config = read(root, "config.h")
    if re.search(rf"\b{names.word}\b", config + read(root, "system/command_line/switches.cpp")):
        raise Refused(f"'{name}' is taken: {names.word} is a name of config.h or a switch already")
    # Scripts set a switch by an expression that would hit a longer name too (tests/lint/config_switches.py).
    for switch in re.findall(r"^#ifndef (\w+)", config, re.MULTILINE):
        if names.word.startswith(switch):
            raise Refused(f"'{name}' is taken: {names.word} begins with the switch {switch}")
    part.check(root, names)
    return names


def refuse_classes(root: str, names: Names, folders: tuple[str, ...], classes: str) -> None:
    """Where a header in one of the folders has a class, or another type, that the expression `classes` describes."""
    for folder in folders:
        for path in headers(os.path.join(root, folder)):
            found = re.search(rf"\b(?:class|struct|using|concept) ({classes})\b", read(root, path))
            if found:
                raise Refused(f"'{names.name}' is taken: {os.path.relpath(path, root)} has a {found[1]}")


def headers(folder: str) -> list[str]:
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names
                  if name.endswith(".h"))


# ---- Lists -----------------------------------------------------------------------------------------------

def apply(edit: Edit, text: str, names: Names, script: str) -> str:
    found = list(re.finditer(edit.shape, text, re.MULTILINE))
    if len(found) != 1:
        raise Refused(f"{edit.path} has changed its shape: the place for {edit.what} is there {len(found)} times. "
                      f"Adapt EDITS in scripts/{script}.py")
    at = found[0]
    return text[:at.start()] + edit.make(at, names) + text[at.end():]


def behind(addition: str) -> Callable[[re.Match, Names], str]:
    return lambda found, names: found[0] + names.fill_in(addition)


def with_value(found: re.Match, names: Names) -> str:
    """Of a list of names in config.h: with the next number."""
    number = 1 + max(int(value) for value in re.findall(r"^#define \w+ (\d+)$", found[0], re.MULTILINE))
    return f"{found[0]}#define {names.word} {number}\n"


def with_includes(*paths: str) -> Callable[[re.Match, Names], str]:
    def change(found: re.Match, names: Names) -> str:
        lines = set(found[0].splitlines()) | {f'#include "{names.fill_in(path)}"' for path in paths}
        return "".join(line + "\n" for line in sorted(lines))
    return change


def sanitised(pair: str) -> Edit:
    return Edit("scripts/run_tests.py", "a pair of the sanitised builds",
                r'^SANITISED_PAIRS = \((?: *"[^\n]*"\n)+ *"[^\n]*"(?=\)\n)', behind(f'\n                   " {pair}"'))


# ---- All of it -------------------------------------------------------------------------------------------

def plan(root: str, part: Part, name: str) -> tuple[Names, dict[str, str], dict[str, str]]:
    """The new files, and the changed ones, as path -> text."""
    names = check_name(root, part, name)
    made = {names.fill_in(path): names.fill_in(read(part.templates, template))
            for template, path in part.new_files.items()}
    changed: dict[str, str] = {}
    for edit in part.edits:
        text = changed[edit.path] if edit.path in changed else read(root, edit.path)
        changed[edit.path] = apply(edit, text, names, part.script)
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


def main(part: Part, argv: list[str] | None = None, root: str = REPOSITORY) -> int:
    parser = argparse.ArgumentParser(prog=os.environ.get("DBX_PROGRAM", f"{part.script}.py"),
                                     description=part.description)
    parser.add_argument("name", metavar="NAME", help=f"of the {part.kind} and its files, such as {part.example}")
    parser.add_argument("--dry_run", action="store_true", help="say what would be made, and write nothing")
    arguments = parser.parse_args(argv)
    try:
        names, made, changed = plan(root, part, arguments.name)
        if not arguments.dry_run:
            write_all(root, made, changed)
    except Refused as why:
        print(f"error: {why}", file=sys.stderr)
        return 2
    print("would make:" if arguments.dry_run else "made:")
    print("".join(f"  {path}\n" for path in made) + "one line or two in:")
    print("".join(f"  {path}\n" for path in changed) + names.fill_in(part.next_steps), end="")
    return 0
