#!/usr/bin/env python3
"""Every list of log schemes or of concurrency controls names those of the two registries, logging/schemes.h and
concurrency_control/controls.h, and no others.

A list that can be made from a registry is made from it, and is not here. Run by test.sh; prints one line per violation
and exits 1 if there is any. A list that is not found where it is looked for is a violation too.
"""
from __future__ import annotations

import ast
import os
import re
import sys
from dataclasses import dataclass, field
from typing import Callable

from include_rules import REPOSITORY, report

sys.path.insert(0, os.path.join(REPOSITORY, "scripts"))
import registry

CONFIGS = ("config.h", "config-std.h")
VALUES = re.compile(r"^// (\w+)\. Built: ([^\n]*)\n((?:#define \w+ \d+\n)+)", re.MULTILINE)
DESCRIBED = r"^// Log scheme\. Built:\n((?://   LOG_\w+ [^\n]*\n)+)#ifndef LOG_ALGORITHM$"
LABELS = r"^schemes:\n((?:  LOG_\w+: \{[^\n]*\}\n)+)"
MATRIX = r"^<!-- matrix: begin [^\n]*\n\| \|([^\n]*)\|\n\|[-|]+\n((?:\|[^\n]*\n)+)"


class Missing(Exception):
    """Where a list should be, and is not."""


@dataclass
class Tree:
    root: str
    texts: dict[str, str] = field(default_factory=dict)

    def text(self, path: str) -> str:
        if path not in self.texts:
            with open(os.path.join(self.root, path), encoding="utf-8") as file:
                self.texts[path] = file.read()
        return self.texts[path]

    def find(self, path: str, shape: str, what: str) -> re.Match:
        found = re.search(shape, self.text(path), re.MULTILINE)
        if not found:
            raise Missing(f"{path}: {what} is not where it was; adapt tests/lint/one_list.py")
        return found

    def schemes(self) -> set[str]:
        return {scheme.name for scheme in registry.schemes(self.root)}

    def controls(self) -> set[str]:
        return {control.name for control in registry.controls(self.root)}

    def other_names(self) -> set[str]:
        return {control.other_name for control in registry.controls(self.root)} - {""}


def differences(place: str, listed: set[str], right: set[str], of: str) -> list[str]:
    return ([f"{place} lacks {name}, which {of} has" for name in sorted(right - listed)]
            + [f"{place} has {name}, which {of} has not" for name in sorted(listed - right)])


# ---- the configuration -------------------------------------------------------------------------------------

def values_of(tree: Tree, path: str, switch: str) -> tuple[set[str], set[str]]:
    """The names of a switch's values: all of them, and those that the comment above them excepts."""
    for found in VALUES.finditer(tree.text(path)):
        if found[1] == switch:
            excepted = re.match(r"all but ([^.;]*)", found[2])
            return set(re.findall(r"^#define (\w+)", found[3], re.MULTILINE)), set(
                re.findall(r"[A-Z]\w+", excepted[1]) if excepted else [])
    raise Missing(f"{path}: the values of {switch} are not where they were; adapt tests/lint/one_list.py")


def values(tree: Tree) -> list[str]:
    found = []
    for path in CONFIGS:
        for switch, of, built in (("LOG_ALGORITHM", registry.SCHEMES, tree.schemes()),
                                  ("CC_ALG", registry.CONTROLS, tree.controls() | tree.other_names())):
            named, excepted = values_of(tree, path, switch)
            place = f"{path}: above the values of {switch}, the comment"
            found += [f"{place} excepts {name}, which has no value" for name in sorted(excepted - named)]
            found += differences(f"{path}: the values of {switch} that are built:", named - excepted, built, of)
        described = set(re.findall(r"^//   (LOG_\w+)", tree.find(path, DESCRIBED, "the list of log schemes")[1],
                                   re.MULTILINE))
        found += differences(f"{path}: above LOG_ALGORITHM, the comment", described, tree.schemes(), registry.SCHEMES)
    return found


def not_built(tree: Tree) -> list[str]:
    """What switches.cpp says of a name: that it is not built, which is more than that it is unknown."""
    path = "system/command_line/switches.cpp"
    switch, name = "CC_ALG", "kCcNotBuilt"
    listed = tree.find(path, rf"^constexpr std::array {name} = \{{([^;]*)\}};", name)[1]
    return differences(f"{path}: {name}", set(re.findall(r'"(\w+)"', listed)),
                       values_of(tree, "config.h", switch)[1], f"config.h above the values of {switch}")


def undefined(tree: Tree) -> list[str]:
    """A value that stays a macro is its number, and reaches other code."""
    path = "system/pairs/configured.h"
    named = {name for found in VALUES.finditer(tree.text("config.h"))
             for name in re.findall(r"^#define (\w+)", found[3], re.MULTILINE)}
    ended = set(re.findall(r"^#undef (?!DBX_)(\w+)", tree.text(path), re.MULTILINE))
    return differences(f"{path}: the list of #undef", ended, named, "config.h")


# ---- what is built, and shown ------------------------------------------------------------------------------

def built_pairs(tree: Tree) -> list[str]:
    lists = tree.find("Makefile", r"^LOGS := (?:[^\n]*\\\n)*[^\n]*\nPAIRS := (?:[^\n]*\\\n)*[^\n]*\n", "LOGS")[0]
    return differences("Makefile: LOGS and PAIRS", set(re.findall(r"\b(LOG_\w+):LOG_", lists)), tree.schemes(),
                       registry.SCHEMES)


def sanitised_pairs(tree: Tree) -> list[str]:
    pairs = [pair.split(":") for pair in assigned(tree, "scripts/run_tests.py", "SANITISED_PAIRS").split()]
    place = "scripts/run_tests.py: SANITISED_PAIRS"
    return (differences(place, {pair[0] for pair in pairs}, tree.controls(), registry.CONTROLS)
            + differences(place, {pair[2] for pair in pairs}, tree.schemes(), registry.SCHEMES))


def assigned(tree: Tree, path: str, name: str):
    for node in ast.parse(tree.text(path)).body:
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets):
            return ast.literal_eval(node.value)
    raise Missing(f"{path}: there is no {name}; adapt tests/lint/one_list.py")


def looks(tree: Tree) -> list[str]:
    """Labels, colours, markers and hatches."""
    labelled = tree.find("experiments/main_job.yaml", LABELS, "the list of schemes")[1]
    labels = set(re.findall(r"^  (LOG_\w+):", labelled, re.MULTILINE))
    styles = {log for log, _ in assigned(tree, "scripts/looks.py", "SCHEME_STYLE")}
    hatches = set(assigned(tree, "scripts/experiment/style.py", "CC_HATCH"))
    return (differences("experiments/main_job.yaml: schemes", labels, tree.schemes(), registry.SCHEMES)
            + differences("scripts/looks.py: SCHEME_STYLE", styles, tree.schemes(), registry.SCHEMES)
            + differences("scripts/experiment/style.py: CC_HATCH", hatches, tree.controls(), registry.CONTROLS))


def matrix(tree: Tree) -> list[str]:
    head, rows = tree.find("docs/pairs.md", MATRIX, "the matrix of pairs").groups()
    columns = {name.strip() for name in head.split("|")}
    right = {name + table for name in tree.controls() for table in ("", " + lock table")}
    logs = set(re.findall(r"^\| (LOG_\w+)", rows, re.MULTILINE))
    return (differences("docs/pairs.md: the matrix' columns", columns, right, registry.CONTROLS)
            + differences("docs/pairs.md: the matrix' rows", logs, tree.schemes(), registry.SCHEMES))


def second_parser(tree: Tree) -> list[str]:
    """It shares no code with the engine, and so has a table of its own, by the number in a log's header."""
    path = "system/reference/reference_replay.cpp"
    table = tree.find(path, r"^constexpr bool kHasOneLog\[\] = \{\n((?:    (?:true|false),[^\n]*\n)+)", "kHasOneLog")[1]
    listed = re.findall(r"(true|false), +// (\w+)", table)
    right = [("true" if scheme.one_log else "false", scheme.folder) for scheme in registry.schemes(tree.root)]
    return [] if listed == right else [f"{path}: kHasOneLog is not, in the order of {registry.SCHEMES}, "
                                       + ", ".join(f"{folder} {one_log}" for one_log, folder in right)]


LISTS: tuple[Callable[[Tree], list[str]], ...] = (values, not_built, undefined, built_pairs, sanitised_pairs, looks,
                                                  matrix, second_parser)


def violations(root: str) -> list[str]:
    found, tree = [], Tree(root)
    for check in LISTS:
        try:
            found += check(tree)
        except (Missing, registry.Malformed) as why:
            found.append(str(why))
    return list(dict.fromkeys(found))


if __name__ == "__main__":
    sys.exit(report(violations, "every list of log schemes and concurrency controls is that of its registry"))
