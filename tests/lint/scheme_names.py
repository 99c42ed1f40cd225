#!/usr/bin/env python3
"""No concurrency control names a log scheme, nor does system/ but for its registry: what either needs to know of a
scheme, it learns through the contract and from traits.

The schemes are those of logging/schemes.h, and those that config.h has a value for; a comment may cite the paper of
one, with the place in it. Run by test.sh; prints one line per violation and exits 1 if there is any.
"""
from __future__ import annotations

import os
import re
import sys

from include_rules import REPOSITORY, report, tracked_sources

sys.path.insert(0, os.path.join(REPOSITORY, "scripts"))
import registry

FOLDERS = ("concurrency_control/", "system/")
# The second parser of logs knows them, as its tables must not be the engine's.
EXEMPT = "system/reference/"
# Where system/ lists the schemes: their types, and the ends of their macros.
REGISTRY = ("system/pairs/scheme_types.h", "system/pairs/configured.h")

# (file, what it may name), and why.
EXCEPTIONS = (
)

# The papers' names of schemes and of their parts, however they are written.
PROPER_NAMES = r"taurus|eleda|plover|silo[-_]?r(?![a-z])|grasshopper|write[-_]behind"
CITATION = re.compile(rf"\b(?:{PROPER_NAMES}),? (?:sections?|figs?\.|figures?|algs?\.|tables?) ?\d", re.IGNORECASE)
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def read(root: str, path: str) -> str:
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def names_of(root: str) -> re.Pattern:
    """What may not be said. Of a word like `serial` only what the code makes of it: the scheme, not the adverb."""
    listed = registry.schemes(root)
    values = re.search(r"^// LOG_ALGORITHM\.[^\n]*\n((?:#define LOG_\w+ \d+\n)+)", read(root, "config.h"), re.MULTILINE)
    if not values:
        raise SystemExit("the values of LOG_ALGORITHM in config.h have changed their shape: adapt "
                         "tests/lint/scheme_names.py")
    words = [rf"\b{name}\b" for name in re.findall(r"LOG_\w+", values[1]) + [scheme.name for scheme in listed]]
    for scheme in listed:
        # kNone is not a scheme's number, but that there is none.
        words += [] if scheme.enumerator == "kNone" else [rf"\bScheme::{scheme.enumerator}\b"]
        camel = "".join(word.capitalize() for word in scheme.folder.split("_"))
        words += [rf"\b{camel}(?:Log|Recovery)\b", rf"\blogging/{scheme.folder}/"]
    return re.compile("|".join(dict.fromkeys(words)) + f"|(?i:{PROPER_NAMES})")


def without_citations(line: str, following: str) -> str:
    """`line`, where a citation in its comment, which may end on the next line, is left out."""
    begin = STRING.sub(lambda text: "_" * len(text[0]), line).find("//")
    if begin < 0:
        return line
    comment = line[begin:]
    both = comment + " " + following.strip().removeprefix("//").strip()
    cited = [(at.start(), at.end()) for at in CITATION.finditer(both) if at.start() < len(comment)]
    for start, end in reversed(cited):
        comment = comment[:start] + comment[min(end, len(comment)):]
    return line[:begin] + comment


def violations(root: str) -> list[str]:
    names, found = names_of(root), []
    for path in tracked_sources(root):
        if not path.startswith(FOLDERS) or path in REGISTRY or path.startswith(EXEMPT):
            continue
        lines = read(root, path).splitlines()
        for number, (line, following) in enumerate(zip(lines, lines[1:] + [""]), 1):
            for at in names.finditer(without_citations(line, following)):
                if (path, at[0]) not in EXCEPTIONS:
                    found.append(f"{path}:{number}: names the log scheme {at[0]}; ask its traits, or list it in "
                                 f"{REGISTRY[0]}")
    return found


if __name__ == "__main__":
    sys.exit(report(violations, "no log scheme is named outside the registry"))
