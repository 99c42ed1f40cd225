#!/usr/bin/env python3
"""Style rules that only tighten: what breaks a rule is counted per file and rule against a baseline.

Run by test.sh. A count above its baseline fails, naming the places; a count below it fails too, until
`style_ratchet.py --update` has lowered the baseline, which never raises a count. Rules: RULES below.
"""
from __future__ import annotations

import io
import json
import os
import re
import sys
import tokenize

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from include_rules import REPOSITORY, tracked_sources

BASELINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "style_baseline.json")
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
LINE_LENGTH_MAX = 120

RULES = {
    "function-length": f"a function has more than {FUNCTION_LINES_MAX} lines",
    "file-length": f"a file has more than {FILE_LINES_MAX} lines",
    "line-length": f"a line has more than {LINE_LENGTH_MAX} columns",
    "preprocessor": "#if outside config.h, system/pairs/configured*.h, and the SIMD and pmem back-ends",
    "volatile": "volatile is not for threads",
    "using-namespace": "using namespace in a header",
    "pragma-once": "a header without #pragma once",
    "opening-comment": "a file that does not open with a comment (tests, and sources with a header, may)",
    "wording": "a comment that does not name the transaction, thread, process or file that it is about",
}
WORDING = re.compile(r"\b(who(?:ever|m)?|(?:no|some|any|every)body|born|birth|hungry)\b", re.I)
# base/check.h asks for NDEBUG, as assert does.
PREPROCESSOR_ALLOWED = re.compile(r"(^|/)(config(-std)?\.h|configured\w*\.h|base/check\.h|\w*(simd|pmem)\w*\.(h|cpp))$")
NOT_A_FUNCTION = re.compile(r"^\s*(template\s*<.*>\s*)?(export\s+)?(namespace|class|struct|enum|union|extern|concept)\b"
                            r"|=\s*\{$|^\s*[\[({\"]")


def code_only(line: str) -> str:
    """The line without string literals and line comments."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return line.split("//")[0]


def cpp_comments(text: str) -> list[tuple[int, str]]:
    """(line, text) of each line comment."""
    lines = (re.sub(r'"(\\.|[^"\\])*"', '""', line) for line in text.splitlines())
    return [(number, line.split("//", 1)[1]) for number, line in enumerate(lines, 1) if "//" in line]


def python_comments(text: str) -> list[tuple[int, str]]:
    """(line, text) of each comment and of each line of a docstring."""
    found, begins_statement = [], True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and begins_statement):
            found += enumerate(token.string.splitlines(), token.start[0])
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            begins_statement = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    return found


def check_wording(path: str, text: str) -> list[tuple[str, int, str]]:
    comments = python_comments(text) if path.endswith(".py") else cpp_comments(text)
    return [("wording", line, f"not '{word[0]}'") for line, comment in comments for word in WORDING.finditer(comment)]


def long_functions(lines: list[str]) -> list[tuple[int, str]]:
    """Bodies by indentation, which clang-format guarantees: from a line that ends in `{` to its closing brace.

    Only the outermost body counts; classes and namespaces are looked into.
    """
    found, number = [], 0
    while number < len(lines):
        declaration = opening(lines, number)
        if "(" not in declaration or NOT_A_FUNCTION.search(declaration):
            number += 1
            continue
        indent = re.match(r"\s*", lines[number - declaration.count("\n")]).group()
        end = number + 1
        while end < len(lines) and not re.match(rf"{indent}\}}", lines[end]):
            end += 1
        length = end - number + 1
        if length > FUNCTION_LINES_MAX:
            found.append((number + 1, f"{length} lines"))
        number = end + 1
    return found


def opening(lines: list[str], number: int) -> str:
    """What the `{` at the end of this line opens, from the start of its declaration; '' without a `{`."""
    line = code_only(lines[number]).rstrip()
    if not line.endswith("{"):
        return ""
    start = number
    while start > 0 and re.search(r"[^;{}:\s]\s*$", code_only(lines[start - 1])) and not re.match(
            r"\s*(#|//)", lines[start - 1]):
        start -= 1
    return "\n".join(code_only(text).rstrip() for text in lines[start:number + 1])


def check_file(path: str, text: str, has_header: bool = False) -> list[tuple[str, int, str]]:
    """(rule, line, remark) for each violation. `has_header`: its header says what there is to say first."""
    lines = text.splitlines()
    header = path.endswith(".h")
    found = [("function-length", n, remark) for n, remark in long_functions(lines)] + check_wording(path, text)
    if len(lines) > FILE_LINES_MAX:
        found.append(("file-length", len(lines), f"{len(lines)} lines"))
    if not text.lstrip().startswith(("//", "/*")) and not has_header and not path.endswith("_test.cpp"):
        found.append(("opening-comment", 1, ""))
    if header and not path.startswith("config") and not re.search(r"^#pragma once", text, re.M):
        found.append(("pragma-once", 1, ""))
    for number, line in enumerate(lines, 1):
        code = code_only(line)
        if len(line) > LINE_LENGTH_MAX:
            found.append(("line-length", number, f"{len(line)} columns"))
        if re.match(r"\s*#\s*(if|ifdef|ifndef|elif)\b", code) and not PREPROCESSOR_ALLOWED.search(path):
            found.append(("preprocessor", number, line.strip()))
        if re.search(r"\bvolatile\b", code) and not re.search(r"\b(__)?asm(__)?\b", code):
            found.append(("volatile", number, line.strip()))
        if header and re.search(r"\busing\s+namespace\b", code):
            found.append(("using-namespace", number, line.strip()))
    return found


def collect(root: str) -> dict[str, list[tuple[int, str]]]:
    """'path rule' -> places."""
    found: dict[str, list[tuple[int, str]]] = {}
    for path in tracked_sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            has_header = path.endswith(".cpp") and os.path.exists(os.path.join(root, path[:-4] + ".h"))
            for rule, line, remark in check_file(path, file.read(), has_header):
                found.setdefault(f"{path} {rule}", []).append((line, remark))
    for path in tracked_sources(root, (".py", ".h.in", ".cpp.in")):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for rule, line, remark in check_wording(path, file.read()):
                found.setdefault(f"{path} {rule}", []).append((line, remark))
    return found


def compare(found: dict, baseline: dict[str, int]) -> list[str]:
    complaints = []
    for key, places in sorted(found.items()):
        path, rule = key.rsplit(" ", 1)
        if len(places) > baseline.get(key, 0):
            complaints += [f"{path}:{line}: {RULES[rule]}{': ' + remark if remark else ''}" for line, remark in places]
    for key, count in sorted(baseline.items()):
        if len(found.get(key, [])) < count:
            complaints.append(f"{key}: better than its baseline; run tests/lint/style_ratchet.py --update")
    return complaints


def main() -> int:
    arguments = [a for a in sys.argv[1:] if not a.startswith("-")]
    found = collect(arguments[0] if arguments else REPOSITORY)
    baseline = {}
    if os.path.exists(BASELINE):
        with open(BASELINE, encoding="utf-8") as file:
            baseline = json.load(file)
    if "--update" in sys.argv:
        lowered = {key: min(count, len(found.get(key, []))) for key, count in baseline.items()}
        lowered = {key: count for key, count in lowered.items() if count}
        with open(BASELINE, "w", encoding="utf-8") as file:
            file.write(json.dumps(lowered, indent=1, sort_keys=True) + "\n")
        baseline = lowered
    complaints = compare(found, baseline)
    print("\n".join(complaints) if complaints else f"style holds; {sum(baseline.values())} old exceptions left")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
