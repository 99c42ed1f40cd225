"""A copy of the tree, without what was built, for tests that change sources."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from typing import Callable

from support import REPOSITORY

RELEASE = os.path.join("build", "release")


def copy_tree(to: str) -> None:
    listed = subprocess.run(["git", "-C", REPOSITORY, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout
    for path in listed.split("\0"):
        source = os.path.join(REPOSITORY, path)
        if path and os.path.isfile(source):
            os.makedirs(os.path.dirname(os.path.join(to, path)), exist_ok=True)
            shutil.copy2(source, os.path.join(to, path))


def lay_out(tree: str, script: str, *arguments: str) -> subprocess.CompletedProcess:
    """`script` is new_scheme or new_cc, of the copy."""
    return subprocess.run([os.path.join(tree, "scripts", script), *arguments], cwd=tree, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=60)


def run_python(tree: str, script: str, *arguments: str) -> subprocess.CompletedProcess:
    """A script of the copy, which then looks at the copy."""
    return subprocess.run([sys.executable, os.path.join(tree, script), *arguments], cwd=tree, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=120)


def snapshot(tree: str) -> dict[str, bytes]:
    files = {}
    for where, folders, names in os.walk(tree):
        folders[:] = [f for f in folders if f not in ("__pycache__", "build", ".git")]
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                files[os.path.relpath(path, tree)] = file.read()
    return files


def scratch_copy(add_cleanup: Callable) -> str:
    """A copy of the tree in a directory that `add_cleanup`, a test's or its class', takes away again."""
    need_git()
    folder = tempfile.TemporaryDirectory()
    add_cleanup(folder.cleanup)
    tree = os.path.join(folder.name, "tree")
    copy_tree(tree)
    return tree


def copy_objects(to: str) -> None:
    """What `make` has compiled here, so that the copy compiles only what differs. Without the pairs, which differ."""
    if os.path.isdir(os.path.join(REPOSITORY, RELEASE)):
        shutil.copytree(os.path.join(REPOSITORY, RELEASE), os.path.join(to, RELEASE),
                        ignore=shutil.ignore_patterns("pairs", "timed", "*.a"))


def need_git() -> None:
    if not os.path.exists(os.path.join(REPOSITORY, ".git")):
        raise unittest.SkipTest("no repository to copy from")
