#!/usr/bin/env python3
"""Writes the sources with all mutants in them: generate.py OUT [--plain] copies the engine to OUT, rewriting only what
changed. They are tuned for the simulation, and know of it; with --plain they differ by the mutants alone.

Every edit must find its text exactly once, or this fails: a mutant that no longer fits its source is out of date.
"""
from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from catalogue import MUTANTS  # noqa: E402
from edits import Edit  # noqa: E402
from tuning import TUNING  # noqa: E402

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ["base", "storage", "concurrency_control", "logging", "multi_master", "benchmarks", "system"]
SWITCH = "tests/mutants/switch.h"
SIMULATION = ("tests/simulation/scheduler.h", "tests/simulation/allocation.h")


def mutated(edit: Edit, number: int, text: str) -> str:
    on = f"::dbx::MutantIsOn({number})"
    if edit.kind == "raw":
        return edit.replace.format(on=on)
    if edit.kind == "statement":
        return f"if ({on}) {{ {edit.replace} }} else {{ {text} }}"
    # An initialisation "type name = value;" keeps its declaration.
    if text.endswith(";") and " = " in text:
        head, value = text[:-1].split(" = ", 1)
        return f"{head} = {on} ? ({edit.replace[:-1].split(' = ', 1)[1]}) : ({value});"
    if text.endswith("};") and "{" in text:
        head, value = text[:-2].split("{", 1)
        return f"{head}{{{on} ? ({edit.replace[:-2].split('{', 1)[1]}) : ({value})}};"
    if text.endswith(";"):
        return f"{on} ? ({edit.replace[:-1]}) : ({text[:-1]});"
    if text.endswith("}") and "{" in text and "(" not in text.split("{")[0]:
        head, value = text[:-1].split("{", 1)
        return f"{head}{{{on} ? ({edit.replace[:-1].split('{', 1)[1]}) : ({value})}}"
    return f"({on} ? ({edit.replace}) : ({text}))"


def apply_tuning(sources: dict[str, str]) -> None:
    for file, find, replace in TUNING:
        if sources.get(file, "").count(find) != 1:
            sys.exit(f"error: the text to tune occurs {sources.get(file, '').count(find)} times in {file}, not once: {find}")
        sources[file] = sources[file].replace(find, replace)


def apply_all(sources: dict[str, str]) -> None:
    originals = dict(sources)
    edits = [(edit, number, mutant) for number, mutant in enumerate(MUTANTS, 1) for edit in mutant.edits]
    # Long texts first: what is within them stays whole in their last branch.
    for edit, number, mutant in sorted(edits, key=lambda entry: -len(entry[0].find)):
        count = originals.get(edit.file, "").count(edit.find)
        if count != 1:
            sys.exit(f"error: mutant {mutant.name}: its text occurs {count} times in {edit.file}, not once")
        text = sources[edit.file]
        at = text.rfind(edit.find)
        if at < 0:
            sys.exit(f"error: mutant {mutant.name}: another mutant has taken its text in {edit.file} apart")
        sources[edit.file] = text[:at] + mutated(edit, number, edit.find) + text[at + len(edit.find):]


def main() -> int:
    out, plain = sys.argv[1], sys.argv[2:] == ["--plain"]
    headers = (SWITCH,) if plain else (SWITCH, *SIMULATION)
    sources: dict[str, str] = {}
    for folder in FOLDERS:
        for directory, _, names in os.walk(os.path.join(REPOSITORY, folder)):
            for name in names:
                path = os.path.relpath(os.path.join(directory, name), REPOSITORY)
                if name.endswith((".h", ".cpp")) and "micro" not in path and not name.endswith("_test.cpp"):
                    with open(os.path.join(REPOSITORY, path), encoding="utf-8") as file:
                        sources[path] = file.read()
    originals = dict(sources)
    if not plain:
        apply_tuning(sources)
    apply_all(sources)
    for path, text in sources.items():
        if text != originals[path]:
            include = "".join(f'#include "{header}"\n' for header in headers)
            text = text.replace("#pragma once\n", "#pragma once\n" + include, 1) if path.endswith(".h") else include + text
        target = os.path.join(out, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.exists(target):
            with open(target, encoding="utf-8") as file:
                if file.read() == text:
                    continue
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
    with open(os.path.join(out, "mutant_names.inc"), "w", encoding="utf-8") as file:
        file.writelines(f'{{"{m.name}", "{m.trap}", "{m.cells}", "{m.model}", "{m.test}"}},\n' for m in MUTANTS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
