"""What tests of scripts/exp share: it runs here, against the stand-in for the engine, into a directory of the test."""
import contextlib
import functools
import io
import json
import os
import tempfile
import unittest
from unittest import mock

import support
import exp
from experiment import drawing, host_scale, planning, running, spec

HOST = host_scale.HostScale("cores", 2)


def plan_of(*names, scale="smoke", host=HOST, **more):
    series = spec.load_series()
    return planning.make_plan(spec.select_figures(list(names), series), series, spec.load_scale(scale), host, **more)


class ExpCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = folder.name
        lock = mock.patch.object(running, "LOCK_PATH", os.path.join(self.out, "lock"))
        lock.start()
        self.addCleanup(lock.stop)

    def exp(self, *words, devices="cores", seconds=0.01, binary=support.FAKE_RUNDB, log_dir=None,
            ram_dir=None, out=None, draw=False):
        """Its exit status, and what it printed. Plots take seconds; they are left out unless they are asked for."""
        said = io.StringIO()
        progress = functools.partial(running.Progress, stream=said)
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.redirect_stdout(said))
            stack.enter_context(contextlib.redirect_stderr(said))
            stack.enter_context(mock.patch.object(running, "Progress", progress))
            if not draw:
                stack.enter_context(mock.patch.object(drawing, "write_files"))
                stack.enter_context(mock.patch.object(drawing, "panel_svg", return_value="<svg/>"))
            once = [] if any(word.startswith("--repeats") for word in words) else ["--repeats=1"]
            status = exp.main([*words, *once, f"--out={out or self.out}", f"--log_dir={log_dir or self.out}",
                               f"--ram_dir={ram_dir or self.out}", f"--seconds={seconds}", f"--devices={devices}",
                               f"--models={self.out}",
                               f"--binary={binary}"])
        return status, said.getvalue()

    def results(self, devices="cores"):
        return os.path.join(self.out, "smoke" if devices == "throughput" else f"smoke-{devices}")

    def rows(self):
        return running.load_rows(self.results())

    def lines(self):
        """How many steps were ever written down."""
        with open(os.path.join(self.results(), "results.jsonl"), encoding="utf-8") as file:
            return len(file.readlines())

    def page(self):
        with open(os.path.join(self.results(), "report.html"), encoding="utf-8") as file:
            return file.read()

    def change_rows(self, change):
        path = os.path.join(self.results(), "results.jsonl")
        rows = self.rows()
        with open(path, "w", encoding="utf-8") as file:
            for row in rows:
                change(row)
                file.write(json.dumps(row) + "\n")
