"""scripts/setup.sh with stand-ins for dpkg-query, apt-get, id and sudo: what it installs, and when it stays silent."""
import os
import shutil
import stat
import subprocess
import tempfile
import unittest

from support import REPOSITORY

SETUP = os.path.join(REPOSITORY, "scripts", "setup.sh")
DPKG = """#!/bin/sh
for name in "$@"; do case " $MISSING " in *" $name "*) ;; *) echo "installed $name" ;; esac; done
"""
APT = """#!/bin/sh
echo "$0 $*" | sed 's|.*/||' >> "$RECORD"
"""


class SetupTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.record = os.path.join(self.folder, "record")
        self.tool("dpkg-query", DPKG)
        self.tool("apt-get", APT)
        self.tool("apt-cache", "#!/bin/sh\ncase \" $UNKNOWN \" in *\" $2 \"*) ;; *) echo \"$2 | 1\" ;; esac\n")
        self.tool("g++", "#!/bin/sh\necho 12\n")

    def tool(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def setup(self, *arguments, missing="", unknown="", uid="0"):
        self.tool("id", f"#!/bin/sh\necho {uid}\n")
        self.tool("sudo", "#!/bin/sh\nexit 1\n")
        environment = {"PATH": f"{self.folder}:/usr/bin:/bin", "MISSING": missing, "UNKNOWN": unknown,
                       "RECORD": self.record}
        return subprocess.run([SETUP, *arguments], env=environment, capture_output=True, text=True)

    def recorded(self):
        if not os.path.exists(self.record):
            return ""
        with open(self.record, encoding="utf-8") as file:
            return file.read()

    def test_with_nothing_missing_it_says_and_does_nothing(self):
        done = self.setup("--tests")
        self.assertEqual((done.returncode, done.stdout, done.stderr, self.recorded()), (0, "", "", ""))

    def test_root_updates_and_installs_only_what_is_missing(self):
        done = self.setup(missing="libfmt-dev make")
        self.assertEqual(done.returncode, 0, done.stderr)
        update, install = self.recorded().splitlines()
        self.assertTrue(update.endswith("update"))
        self.assertTrue(install.endswith("install --no-install-recommends make libfmt-dev"), install)

    def test_packages_for_tests_are_left_out_unless_asked_for(self):
        self.assertEqual(self.setup(missing="libgtest-dev").stderr, "")

    def test_the_tools_of_make_check_and_make_coverage_come_with_dev(self):
        tools = "clang-format-14 clang-tidy-14 gcovr"
        self.assertEqual(self.setup("--tests", missing=tools).stderr, "")
        done = self.setup("--dev", missing=tools)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f" {tools}\n", self.recorded())

    def test_make_check_without_its_tools_says_so_in_one_line(self):
        # In a folder of its own: make notes its variables under build/.
        for name in ("Makefile", "config.h"):
            shutil.copy(os.path.join(REPOSITORY, name), self.folder)
        done = subprocess.run(["make", "--no-print-directory", "check", "CHECK_TOOLS=clang-format-0"], cwd=self.folder,
                              capture_output=True, text=True)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertIn("scripts/setup.sh --dev", errors[0])

    def test_an_installed_alternative_will_do(self):
        self.assertEqual(self.setup("--tests", missing="clang-14").stderr, "")

    def test_the_alternative_that_apt_knows_is_installed(self):
        self.setup("--tests", missing="clang-14 clang", unknown="clang-14")
        self.assertIn(" clang\n", self.recorded())

    def test_without_root_and_sudo_it_prints_the_line_and_fails(self):
        done = self.setup(missing="libfmt-dev", uid="1000")
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt-get update && apt-get install -y --no-install-recommends libfmt-dev", done.stderr)
        self.assertEqual(self.recorded(), "")

    def test_an_old_compiler_gets_a_newer_one_beside_it(self):
        self.tool("g++", "#!/bin/sh\necho 11\n")
        self.tool("g++-12", "#!/bin/sh\necho 11\n")
        self.setup()
        self.assertIn(" g++-12", self.recorded())

    def test_an_interrupted_installation_is_mended_first(self):
        self.tool("dpkg", '#!/bin/sh\n[ "$1" = --audit ] && { echo make is half configured; exit 0; }\n'
                          'echo "dpkg $*" >> "$RECORD"\n')
        done = self.setup(missing="libfmt-dev")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.recorded().splitlines()[0], "dpkg --configure -a")

    def test_without_root_the_line_that_mends_it_is_printed(self):
        self.tool("dpkg", '#!/bin/sh\n[ "$1" = --audit ] && echo make is half configured\n')
        done = self.setup(missing="libfmt-dev", uid="1000")
        self.assertEqual(done.returncode, 1)
        self.assertIn("  dpkg --configure -a && apt-get update && apt-get install", done.stderr)

    def test_what_cannot_be_mended_is_told_with_the_line_to_try(self):
        self.tool("dpkg", '#!/bin/sh\n[ "$1" = --audit ] && { echo make is half configured; exit 0; }\nexit 1\n')
        done = self.setup(missing="libfmt-dev")
        self.assertEqual((done.returncode, self.recorded()), (1, ""))
        self.assertIn("dpkg --configure -a && apt-get -f install", done.stderr)

    def test_a_python_with_these_modules_is_printed(self):
        self.tool("python3", "#!/bin/sh\necho \"$2\" | grep -q matplotlib && exit 1\nexit 0\n")
        self.assertEqual(self.setup("--python", "yaml").stdout, f"{self.folder}/python3\n")

    def test_an_unknown_argument_is_refused(self):
        self.assertEqual(self.setup("--nix").returncode, 2)


if __name__ == "__main__":
    unittest.main()
