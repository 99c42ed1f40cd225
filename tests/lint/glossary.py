#!/usr/bin/env python3
"""Every `file:name` in docs/glossary.md exists: the file, and the name in it."""
import os
import re
import sys

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GLOSSARY = os.path.join(REPOSITORY, "docs", "glossary.md")


def stale_entries(text: str, repository: str) -> list[str]:
    stale = []
    for path, name in re.findall(r"`([\w/.-]+\.(?:h|cpp|py)):(\w+)`", text):
        try:
            with open(os.path.join(repository, path), encoding="utf-8") as file:
                found = re.search(rf"\b{name}\b", file.read())
        except OSError:
            stale.append(f"{path} does not exist")
            continue
        if not found:
            stale.append(f"{path} has no {name}")
    return stale


def main() -> int:
    with open(GLOSSARY, encoding="utf-8") as file:
        stale = stale_entries(file.read(), REPOSITORY)
    for entry in stale:
        print(f"docs/glossary.md: {entry}")
    if not stale:
        print("every entry of the glossary is where it says")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
