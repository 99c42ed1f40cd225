"""The workflow of many hosts with Snakemake's local executor, against a stand-in for the engine.

Skipped where Snakemake is not installed (experiments/workflow/install.sh does that).
"""
import os
import shutil
import subprocess
import tempfile
import unittest

from support import FAKE_RUNDB, REPOSITORY

SNAKEFILE = os.path.join(REPOSITORY, "experiments", "workflow", "Snakefile")
INSTALLED = os.path.join(REPOSITORY, "build", "workflow", "bin", "snakemake")  # by install.sh
SNAKEMAKE = INSTALLED if os.path.exists(INSTALLED) else shutil.which("snakemake")


@unittest.skipUnless(SNAKEMAKE, "Snakemake is not installed (experiments/workflow/install.sh)")
class WorkflowTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = folder.name

    def snakemake(self, *words, retry=False, **environment):
        # What the profile "local" says, as flags.
        command = [SNAKEMAKE, "--snakefile", SNAKEFILE, "--directory", self.out, "--cores", "all", "--resources",
                   "hosts=1", *words, "--config", "figures=eleda/fig20", "devices=cores", "seconds=0.01",
                   f"out={self.out}", f"log_dir={self.out}/logs", f"ram_dir={self.out}", f"binary={FAKE_RUNDB}",
                   *["retry=1"] * retry]
        # A lock of its own: another experiment on this host is none of the test's business.
        environment = {**os.environ, "DBX_EXPERIMENT_LOCK": f"{self.out}/lock", "XDG_CACHE_HOME": self.out, **environment}
        return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)

    def written(self, *parts):
        path = os.path.join(self.out, "smoke-cores", *parts)
        return sorted(os.listdir(path)) if os.path.isdir(path) else os.path.exists(path)

    def test_a_dry_run_plans_every_job_and_measures_none(self):
        done = self.snakemake("--dry-run")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout + done.stderr, r"(?m)^job +2$")
        self.assertFalse(self.written("jobs"))

    def test_jobs_are_run_and_reported(self):
        done = self.snakemake()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(len(self.written("jobs")), 2)
        self.assertTrue(self.written("report.html"))
        self.assertTrue(self.written("eleda-fig20_crawling.csv"))

    def test_a_failure_is_a_row_of_the_report_and_the_exit_status(self):
        self.assertNotEqual(self.snakemake(FAKE_FAIL="run").returncode, 0)
        self.assertEqual(len(self.written("jobs")), 2)
        with open(os.path.join(self.out, "smoke-cores", "report.html"), encoding="utf-8") as file:
            self.assertIn("pretended failure of run", file.read())
        done = self.snakemake(retry=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
