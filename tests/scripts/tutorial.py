"""The tutorials of CONTRIBUTING.md as a program reads them: the steps of one, and what each asks for, in order.

An indented block is for the shell, a command on each line, unless it begins with the name of a file: then it is an edit
of that file, as the tutorial's first paragraph explains it.
"""
from __future__ import annotations

import os
import re
import textwrap
from dataclasses import dataclass, field

SCHEME, CONTROL = "A new log scheme", "A new concurrency control"  # the sections, in their order
STEP = re.compile(r"^\*\*(\d+)\. (.+?)\.\*\*", re.MULTILINE)
BLOCK = re.compile(r"(?:^ {4,}\S[^\n]*\n)+", re.MULTILINE)
EDIT_HEAD = re.compile(r"([\w./]+):\n")
FAILS = re.compile(r"\s+# fails: (\w+)$")
BETWEEN = "...\n"


class Malformed(Exception):
    """One line that says where the tutorial is not what a program can follow."""


@dataclass(frozen=True)
class Command:
    line: str
    fails: str = ""  # then it says this


@dataclass(frozen=True)
class Edit:
    path: str
    hunks: tuple[tuple[str, str], ...]  # what stands there, and what stands there afterwards


@dataclass
class Step:
    number: int
    title: str
    prose: str
    actions: list[Command | Edit] = field(default_factory=list)

    def claims(self, word: str) -> list[str]:
        """What the prose quotes that begins with `word`."""
        return re.findall(rf"`({re.escape(word)}[^`]*)`", self.prose)


def steps_of(text: str, title: str = SCHEME) -> list[Step]:
    section = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL)
    if not section:
        raise Malformed(f'there is no section "{title}"')
    heads = list(STEP.finditer(section[1]))
    if [int(head[1]) for head in heads] != list(range(1, len(heads) + 1)) or not heads:
        raise Malformed("its steps are not numbered from 1 on")
    ends = [head.start() for head in heads[1:]] + [len(section[1])]
    steps = []
    for head, end in zip(heads, ends):
        body = section[1][head.start():end]
        step = Step(int(head[1]), head[2], " ".join(BLOCK.sub("", body).split()))
        for block in BLOCK.findall(body):
            step.actions += actions_of(textwrap.dedent(block))
        steps.append(step)
    return steps


def actions_of(block: str) -> list[Command | Edit]:
    head = EDIT_HEAD.match(block)
    if head:
        return [edit_of(head[1], block[head.end():])]
    commands = []
    for line in block.replace("\\\n", " ").splitlines():
        fails = FAILS.search(line)
        commands.append(Command(line[:fails.start()], fails[1]) if fails else Command(line))
    return commands


def edit_of(path: str, body: str) -> Edit:
    hunks = []
    for hunk in re.split(rf"^{re.escape(BETWEEN)}", body, flags=re.MULTILINE):
        lines = hunk.splitlines(keepends=True)
        if not all(line[0] in " +-" for line in lines):
            raise Malformed(f"a line of the edit of {path} begins with neither of blank, + and -")
        before = "".join(line[1:] for line in lines if line[0] != "+")
        after = "".join(line[1:] for line in lines if line[0] != "-")
        if not before.strip() or before == after:
            raise Malformed(f"an edit of {path} has no place, or changes nothing")
        hunks.append((before, after))
    return Edit(path, tuple(hunks))


def apply(edit: Edit, root: str) -> None:
    """Raises Malformed where a place is not there exactly once; the file is as it was then."""
    path = os.path.join(root, edit.path)
    if not os.path.isfile(path):
        raise Malformed(f"there is no {edit.path}")
    with open(path, encoding="utf-8") as file:
        text = "\n" + file.read()
    for before, after in edit.hunks:
        count = text.count("\n" + before)
        if count != 1:
            raise Malformed(f"{edit.path} has {count} times what the tutorial changes:\n{before}")
        text = text.replace("\n" + before, "\n" + after)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[1:])
