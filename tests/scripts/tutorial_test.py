"""The tutorials of CONTRIBUTING.md can be followed: read as they stand, their edits find their places in a copy of the
tree, and what they name is there. Nothing is compiled; tutorial_check.py does what they say.
"""
import os
import re
import tempfile
import unittest

import tutorial
from scratch_tree import lay_out, scratch_copy
from support import REPOSITORY


def section(body, title=tutorial.SCHEME):
    return f"# C\n\n## {title}\n\nWords.\n\n{body}\n## Another\n\n    not this\n"


class ReadingTest(unittest.TestCase):
    def actions(self, *block):
        (step,) = tutorial.steps_of(section("**1. Do it.** Thus:\n\n" + "".join(line + "\n" for line in block)))
        return step.actions

    def test_steps_have_a_title_prose_and_what_they_ask_for(self):
        one, two = tutorial.steps_of(section("**1. Do it.** So `verified: a` comes:\n\n    make\n    ls\n\nMore.\n\n"
                                             "**2. Rest.** Words.\n"))
        self.assertEqual((one.title, [command.line for command in one.actions]), ("Do it", ["make", "ls"]))
        self.assertEqual(one.claims("verified:"), ["verified: a"])
        self.assertEqual((two.number, two.title, two.actions), (2, "Rest", []))

    def test_sections_are_told_apart(self):
        text = section("**1. Do it.** Words.\n") + section("**1. Do that.** Words.\n", tutorial.CONTROL)
        for title, step in ((tutorial.SCHEME, "Do it"), (tutorial.CONTROL, "Do that")):
            self.assertEqual([one.title for one in tutorial.steps_of(text, title)], [step])

    def test_a_line_may_be_said_to_fail(self):
        self.assertEqual(self.actions("    ls x   # fails: NoSuch"), [tutorial.Command("ls x", "NoSuch")])

    def test_a_block_that_begins_with_a_file_is_an_edit_of_it(self):
        self.assertEqual(self.actions("      a/b.h:", "       x", "      -  y", "      +  z", "      ...", "       w",
                                      "      +"),
                         [tutorial.Edit("a/b.h", (("x\n  y\n", "x\n  z\n"), ("w\n", "w\n\n")))])

    def test_what_cannot_be_followed_is_said(self):
        for block, says in ((["    a.h:", "    *x"], "begins with neither"), (["    a.h:", "    +x"], "no place"),
                            (["    a.h:", "     x"], "changes nothing")):
            self.assertRaisesRegex(tutorial.Malformed, says, self.actions, *block)
        self.assertRaisesRegex(tutorial.Malformed, "no section", tutorial.steps_of, "# C\n")
        self.assertRaisesRegex(tutorial.Malformed, "numbered", tutorial.steps_of, section("**2. Do it.** Thus.\n"))


class ApplyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def apply(self, text, *hunks):
        path = os.path.join(self.root, "a.h")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            tutorial.apply(tutorial.Edit("a.h", hunks), self.root)
        finally:
            with open(path, encoding="utf-8") as file:
                self.text = file.read()

    def test_whole_lines_are_replaced_in_their_order(self):
        self.apply("x\n x\ny\n", ("x\n", "1\n"), ("y\n", "2\n"))
        self.assertEqual(self.text, "1\n x\n2\n")

    def test_a_place_that_is_missing_or_ambiguous_changes_nothing(self):
        for text, count in (("y\n", 0), ("x\ny\nx\n", 2)):
            with self.assertRaisesRegex(tutorial.Malformed, f"a.h has {count} times"):
                self.apply(text, ("y\n", "z\n"), ("x\n", ""))
            self.assertEqual(self.text, text)

    def test_a_missing_file_is_named(self):
        self.assertRaisesRegex(tutorial.Malformed, "no b.h", tutorial.apply, tutorial.Edit("b.h", ()), self.root)


class TutorialCase:
    """Mixed into a TestCase: one tutorial."""

    TITLE, SCRIPT, NAME = "", "", ""  # of the section, and the script and the part of its first step

    @classmethod
    def setUpClass(cls):
        cls.tree = scratch_copy(cls.addClassCleanup)
        made = lay_out(cls.tree, cls.SCRIPT, cls.NAME)
        assert made.returncode == 0, made.stderr
        with open(os.path.join(REPOSITORY, "CONTRIBUTING.md"), encoding="utf-8") as file:
            cls.steps = tutorial.steps_of(file.read(), cls.TITLE)

    def test_every_edit_finds_its_place(self):
        edits = [(step, action) for step in self.steps for action in step.actions if isinstance(action, tutorial.Edit)]
        self.assertEqual({step.title for step, _ in edits}, {"Change it", "Break it", "Keep the trap"})
        for step, edit in edits:
            with self.subTest(step.title):
                tutorial.apply(edit, self.tree)

    def test_every_file_that_it_names_is_there(self):
        said = "\n".join(step.prose + "".join(f"\n`{action.line}`" for action in step.actions
                                              if isinstance(action, tutorial.Command)) for step in self.steps)
        named = set(re.findall(r"(?<![\w./*-])((?:base|concurrency_control|logging|scripts|system|tests)/[\w./]*\w/?)",
                               said))
        self.assertGreater(len(named), 10)
        self.assertEqual([path for path in sorted(named) if not os.path.exists(os.path.join(self.tree, path))], [])

    def test_it_begins_with_the_script(self):
        self.assertEqual(self.steps[0].actions[0], tutorial.Command(f"scripts/{self.SCRIPT} {self.NAME}"))


class SchemeTutorialTest(TutorialCase, unittest.TestCase):
    TITLE, SCRIPT, NAME = tutorial.SCHEME, "new_scheme", "tour"


class ControlTutorialTest(TutorialCase, unittest.TestCase):
    TITLE, SCRIPT, NAME = tutorial.CONTROL, "new_cc", "trek"


if __name__ == "__main__":
    unittest.main()
