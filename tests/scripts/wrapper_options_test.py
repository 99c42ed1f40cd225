"""run.sh, test.sh, scripts/torture and scripts/exp read their options first: with python3, and on a system without one."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from support import REPOSITORY

WRAPPERS = ("run.sh", "test.sh", "scripts/torture", "scripts/exp")
TOOLS = ("bash", "env", "dirname", "sed", "grep", "awk", "cat", "id", "tr", "nproc")
# What any of these would do is written down: nothing may be installed or built.
RECORDED = ("apt-get", "make", "g++", "sudo", "dpkg")
MISSING = "#!/bin/sh\nexit 1\n"  # dpkg-query: nothing is installed


class WrapperOptionsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for tool in TOOLS:
            os.symlink(shutil.which(tool), os.path.join(self.folder, tool))
        for tool in RECORDED:
            self.tool(tool, f'#!/bin/sh\necho "{tool} $*" >> {self.folder}/record\nexit 1\n')
        self.tool("dpkg-query", MISSING)
        self.tool("apt-cache", MISSING)

    def tool(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def run_wrapper(self, wrapper, *words, python=False):
        if python and not os.path.exists(os.path.join(self.folder, "python3")):
            os.symlink("/usr/bin/python3", os.path.join(self.folder, "python3"))
        done = subprocess.run([os.path.join(REPOSITORY, wrapper), *words], env={"PATH": self.folder, "COLUMNS": "200"},
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "record")), f"{wrapper} {words}: {done.stderr}")
        return done

    def test_help_installs_nothing(self):
        for wrapper in WRAPPERS:
            for python in (False, True):
                done = self.run_wrapper(wrapper, "--help", python=python)
                self.assertEqual(done.returncode, 0, f"{wrapper}, python: {python}: {done.stderr}")
                self.assertIn("--", done.stdout)
            os.unlink(os.path.join(self.folder, "python3"))

    def test_a_mistyped_flag_is_refused_and_installs_nothing(self):
        for wrapper in WRAPPERS:
            for python in (False, True):
                done = self.run_wrapper(wrapper, *["plan"] * wrapper.endswith("exp"), "--sekonds=3", python=python)
                self.assertEqual(done.returncode, 2, f"{wrapper}, python: {python}: {done.stdout}")
                self.assertIn("--sekonds=3", done.stderr)
            os.unlink(os.path.join(self.folder, "python3"))

    def test_the_help_without_python_has_every_option_of_the_help_with_it(self):
        for wrapper in WRAPPERS:
            short = self.run_wrapper(wrapper, "--help").stdout
            whole = self.run_wrapper(wrapper, "--help", python=True).stdout
            os.unlink(os.path.join(self.folder, "python3"))
            for name in set(re.findall(r"--[a-z_]+", whole)) - {"--help"}:
                self.assertRegex(short, rf"(?m)^  {name} ", wrapper)


if __name__ == "__main__":
    unittest.main()
