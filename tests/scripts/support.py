"""What the tests of the scripts share: paths, and the main job run against the stand-ins."""
from __future__ import annotations

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
for folder in ("scripts", os.path.join("tests", "lint"), os.path.join("tests", "mutants")):
    sys.path.insert(0, os.path.join(REPOSITORY, folder))

FAKE_RUNDB = os.path.join(HERE, "fake_rundb.py")
FAKE_TORTURE = os.path.join(HERE, "fake_torture.py")
FAKE_MUTANT_TESTS = os.path.join(HERE, "fake_mutant_tests.py")
FAKE_LIMITS = os.path.join(HERE, "fake_host_limits.py")


def main_job_command(directory: str, *arguments: str) -> list[str]:
    return [sys.executable, os.path.join(REPOSITORY, "scripts", "main_job.py"), "--short", "--seconds=0.1",
            f"--out={directory}/out", f"--log_dir={directory}/logs", f"--binary={FAKE_RUNDB}",
            f"--host_limits={FAKE_LIMITS}", *arguments]


def run_main_job(directory: str, *arguments: str, fail: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(main_job_command(directory, *arguments), capture_output=True, text=True, cwd=directory,
                          stdin=subprocess.DEVNULL, timeout=120, env={**os.environ, "FAKE_FAIL": fail})


def rows_of(directory: str) -> list[dict]:
    with open(os.path.join(directory, "out", "results.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def clipped_texts(figure) -> list[str]:
    """Of a matplotlib figure: what reaches beyond its edges. Labels of ticks beyond the axes are not drawn."""
    figure.canvas.draw()
    width, height = figure.get_size_inches() * figure.dpi
    ticks = {id(label) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)
             for tick in axis.get_major_ticks() + axis.get_minor_ticks() for label in (tick.label1, tick.label2)}
    boxes = [(text.get_text(), text.get_window_extent()) for text in figure.findobj(match=type(figure.text(0, 0, "")))
             if text.get_visible() and text.get_text().strip() and id(text) not in ticks]
    return [text for text, box in boxes if box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1]
