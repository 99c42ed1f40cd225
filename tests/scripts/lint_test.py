"""The lint scripts find what they are there to find, and leave alone what is right."""
import os
import shutil
import tempfile
import unittest

from support import REPOSITORY  # puts tests/lint on the path
import include_rules
import one_list
import scheme_names
import style_ratchet


def rules_broken(path, text, **how):
    return sorted({rule for rule, _, _ in style_ratchet.check_file(path, text, **how)})


def function(lines, head="int F(int x) {"):
    return "// A file.\n" + head + "\n" + "  ++x;\n" * (lines - 2) + "}\n"


class IncludeRulesTest(unittest.TestCase):
    def test_downward_is_allowed_and_upward_is_not(self):
        self.assertTrue(include_rules.allowed("storage/table.h", "base/types.h"))
        self.assertFalse(include_rules.allowed("base/types.h", "storage/table.h"))

    def test_neighbours_do_not_know_each_other(self):
        self.assertFalse(include_rules.allowed("logging/contract.h", "concurrency_control/silo.h"))
        self.assertFalse(include_rules.allowed("benchmarks/ycsb/ycsb.cpp", "logging/contract.h"))

    def test_a_scheme_does_not_know_another_scheme(self):
        self.assertFalse(include_rules.allowed("logging/taurus/a.h", "logging/serial/b.h"))
        self.assertTrue(include_rules.allowed("logging/taurus/a.h", "logging/device/b.h"))

    def test_what_schemes_share_knows_no_scheme(self):
        self.assertFalse(include_rules.allowed("logging/contract.h", "logging/taurus/a.h"))

    def test_the_product_uses_no_tests(self):
        self.assertFalse(include_rules.allowed("system/run.cpp", "tests/logging/log_builder.h"))

    def test_the_reference_shares_no_code_with_what_it_checks(self):
        self.assertTrue(include_rules.allowed("system/reference/reference_run.h", "storage/database.h"))
        self.assertTrue(include_rules.allowed("system/replay/verify.cpp", "system/reference/reference_run.h"))
        for engine in ("logging/log_reader.h", "system/replay/recovery.h", "benchmarks/tpcc/tpcc.h"):
            self.assertFalse(include_rules.allowed("system/reference/reference_run.h", engine), engine)

    def violations_of(self, path, text):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, os.path.dirname(path)))
            with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                file.write(text)
            return include_rules.violations(folder)

    def test_a_violation_names_file_and_line(self):
        (found,) = self.violations_of("base/a.h", '// A.\n#include "storage/b.h"\n')
        self.assertTrue(found.startswith("base/a.h:2: "))

    def test_threads_their_cpus_and_clocks_come_from_the_seam(self):
        found = self.violations_of("logging/a.h", "std::mutex a;  // std::thread\nMutex b;  // std::mutex\n"
                                   "std::memory_order c;\nauto d = std::chrono::steady_clock::now();\n"
                                   "sched_setaffinity(0, sizeof e, &e);\n")
        self.assertEqual([line.split(" goes")[0] for line in found],
                         ["logging/a.h:1: std::mutex", "logging/a.h:4: std::chrono::steady_clock",
                          "logging/a.h:5: sched_setaffinity"])

    def test_prefetches_are_those_that_stay(self):
        (found,) = self.violations_of("storage/a.h", "Prefetch(a);  // not __builtin_prefetch(a)\n"
                                      "__builtin_prefetch(a, 1, 3);\n")
        self.assertTrue(found.startswith("storage/a.h:2: "))


class SchemeNamesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = folder.name
        for name in ("logging", "system", "concurrency_control"):
            os.mkdir(os.path.join(self.tree, name))
        for path in ("config.h", "logging/schemes.h"):
            shutil.copy(os.path.join(REPOSITORY, path), os.path.join(self.tree, path))

    def named(self, text, path="system/a.cpp"):
        """The lines of `text`, as a file of the tree, that name a scheme."""
        os.makedirs(os.path.dirname(os.path.join(self.tree, path)), exist_ok=True)
        with open(os.path.join(self.tree, path), "w", encoding="utf-8") as file:
            file.write(text)
        found = scheme_names.violations(self.tree)
        self.assertTrue(all(line.startswith(path + ":") for line in found), found)
        return [int(line.split(":")[1]) for line in found]

    def test_a_scheme_is_found_however_it_is_written(self):
        for text in ('"of LOG_SERIAL"', "LOG_NO", "LOG_WBL", "format::Scheme::kSerial", "SerialRecovery recovery;",
                     "SiloRLog<P> log;", "// As Plover does.", "// Silo-R, too", "taurus_log", "GRASSHOPPER",
                     '#include "logging/serial/serial_recovery.h"'):
            for path in ("system/a.cpp", "concurrency_control/a.h"):
                self.assertEqual(self.named(f"// A.\n{text}\n", path), [2], text)
                os.unlink(os.path.join(self.tree, path))

    def test_words_that_are_no_scheme_pass(self):
        self.assertEqual(self.named("Serializable Serially serial LOG_DATA LOG_COMMAND Silo SiloRecord kSerial\n"
                                    "format::Scheme::kNone NoLog LogScheme\n"), [])

    def test_a_comment_may_cite_a_paper_with_the_place_in_it(self):
        self.assertEqual(self.named("// Late (Taurus, section 4.1): why.\nint x;  // ELEDA, Fig. 3\n"
                                    "// It ends on the next line (Taurus,\n// section 4.4).\n"), [])
        self.assertEqual(self.named("// Taurus, section 4.1, for LOG_TAURUS.\n"), [1])
        self.assertEqual(self.named('F("Taurus, section 4.1");\n'), [1])

    def test_the_registry_lists_them_and_other_folders_say_what_they_like(self):
        for path in (*scheme_names.REGISTRY, "logging/a.h"):
            self.assertEqual(self.named('#include "logging/taurus/taurus_log.h"\nLOG_TAURUS\n', path), [])

    def test_a_scheme_that_is_added_to_the_list_is_guarded_too(self):
        self.assertEqual(self.named("LOG_TOUR\nTourLog\nScheme::kTour\n"), [])
        listed = os.path.join(self.tree, "logging", "schemes.h")
        with open(listed, encoding="utf-8") as file:
            text = file.read()
        with open(listed, "w", encoding="utf-8") as file:
            file.write(text.replace("});\n", '    {format::Scheme::kTour, "LOG_TOUR", "tour", true},\n});\n', 1))
        self.assertEqual(self.named("LOG_TOUR\nTourLog\nScheme::kTour\n"), [1, 2, 3])

    def test_a_list_that_lost_its_shape_is_an_error_and_no_silence(self):
        with open(os.path.join(self.tree, "logging", "schemes.h"), "w", encoding="utf-8") as file:
            file.write("// Empty.\n")
        self.assertRaisesRegex(SystemExit, "changed its shape", scheme_names.violations, self.tree)


class OneListTest(unittest.TestCase):
    FILES = ("config.h", "config-std.h", "logging/schemes.h", "concurrency_control/controls.h", "Makefile", "docs/pairs.md",
             "system/command_line/switches.cpp", "system/pairs/configured.h", "system/reference/reference_replay.cpp",
             "scripts/run_tests.py", "experiments/main_job.yaml", "scripts/looks.py", "scripts/experiment/style.py")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = folder.name
        for path in self.FILES:
            os.makedirs(os.path.dirname(os.path.join(self.tree, path)), exist_ok=True)
            shutil.copy(os.path.join(REPOSITORY, path), os.path.join(self.tree, path))

    def found_after(self, path, before, after):
        """The violations with every `before` of a file changed; the file is as it was afterwards."""
        whole = os.path.join(self.tree, path)
        with open(whole, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(before, text, path)
        try:
            with open(whole, "w", encoding="utf-8") as file:
                file.write(text.replace(before, after))
            return one_list.violations(self.tree)
        finally:
            with open(whole, "w", encoding="utf-8") as file:
                file.write(text)

    def test_the_lists_as_they_are_agree(self):
        self.assertEqual(one_list.violations(self.tree), [])

    def test_a_list_that_lacks_a_name_or_has_one_more_is_named(self):
        for path, before, after, says in (
                ("config.h", "#define LOG_PLOVER 5\n", "", "values of LOG_ALGORITHM that are built: lacks LOG_PLOVER"),
                ("config-std.h", "#define DL_DETECT 3\n", "", "values of CC_ALG that are built: lacks DL_DETECT"),
                ("config-std.h", "#define MVCC 5\n", "", "values of CC_ALG that are built: lacks MVCC"),
                ("config.h", "HSTORE, OCC and VLL;", "HSTORE and VLL;", "CC_ALG that are built: has OCC"),
                ("config.h", "// LOG_ALGORITHM. Built: all.", "// LOG_ALGORITHM. Built: all but LOG_X.", "excepts LOG_X"),
                ("config.h", "//   LOG_ELEDA ", "//   LOG_ALEDE ", "above LOG_ALGORITHM, the comment has LOG_ALEDE"),
                ("system/command_line/switches.cpp", 'Names("OCC"), ', "", "kCcNotBuilt lacks OCC"),
                ("system/pairs/configured.h", "#undef TICTOC\n", "", "#undef lacks TICTOC"),
                ("system/pairs/configured.h", "#undef LOG_NO\n", "#undef LOG_NONE\n", "#undef has LOG_NONE"),
                ("Makefile", "LOG_PLOVER:LOG_DATA ", "", "Makefile: LOGS and PAIRS lacks LOG_PLOVER"),
                ("Makefile", " SILO:0:LOG_BATCH:LOG_DATA", "", "Makefile: LOGS and PAIRS lacks LOG_BATCH"),
                ("scripts/run_tests.py", "TICTOC:0:LOG_TAURUS:LOG_DATA ", "", "SANITISED_PAIRS lacks TICTOC"),
                ("scripts/run_tests.py", "NO_WAIT:0:LOG_PLOVER:LOG_DATA ", "", "SANITISED_PAIRS lacks LOG_PLOVER"),
                ("experiments/main_job.yaml", "  LOG_ELEDA: ", "  LOG_X: ", "schemes has LOG_X"),
                ("scripts/looks.py", '    ("LOG_BATCH", ', '    ("LOG_X", ', "SCHEME_STYLE lacks LOG_BATCH"),
                ("scripts/experiment/style.py", '"DL_DETECT": ', '"DETECT": ', "CC_HATCH has DETECT"),
                ("docs/pairs.md", "| SILO + lock table ", "", "the matrix' columns lacks SILO + lock table"),
                ("docs/pairs.md", "| LOG_BATCH, ", "| LOG_BITCH, ", "the matrix' rows has LOG_BITCH"),
                ("system/reference/reference_replay.cpp", "true,   // eleda", "false,  // eleda", "eleda true")):
            with self.subTest(f"{path}: {says}"):
                found = self.found_after(path, before, after)
                self.assertTrue(any(line.startswith(path) and says in line for line in found), found)

    def test_a_name_that_a_registry_gains_is_missed_in_each_list(self):
        scheme = self.found_after("logging/schemes.h", "});\n",
                                  '    {format::Scheme::kTour, "LOG_TOUR", "tour", true},\n});\n')
        self.assertEqual(len(scheme), 10, scheme)
        control = self.found_after("concurrency_control/controls.h", "});\n",
                                   '    {CcAlg::kTrek, "TREK", true, true, "HIKE"},\n});\n')
        self.assertEqual(len([line for line in control if "TREK" in line]), 6, control)
        self.assertEqual(len([line for line in control if "HIKE" in line]), 2, control)

    def test_a_list_that_lost_its_shape_is_a_violation(self):
        for path, before in (("Makefile", "LOGS :="), ("scripts/looks.py", "SCHEME_STYLE ="),
                             ("experiments/main_job.yaml", "schemes:"),
                             ("docs/pairs.md", "<!-- matrix: begin"), ("config.h", "// CC_ALG. Built:"),
                             ("logging/schemes.h", "{format::Scheme::"),
                             ("concurrency_control/controls.h", ", true, true}"),
                             ("system/reference/reference_replay.cpp", "kHasOneLog[] =")):
            with self.subTest(path):
                found = self.found_after(path, before, "OTHER_" + before)
                self.assertTrue(any(line.startswith(path) and "adapt" in line for line in found), found)


class StyleTest(unittest.TestCase):
    def test_a_function_of_70_lines_passes_and_71_do_not(self):
        self.assertEqual(rules_broken("a/b.cpp", function(70)), [])
        self.assertEqual(rules_broken("a/b.cpp", function(71)), ["function-length"])

    def test_a_head_over_several_lines_counts(self):
        text = function(80, "void Class::Name(int one,\n                 int x) const {")
        self.assertEqual(rules_broken("a/b.cpp", text), ["function-length"])

    def test_methods_in_a_class_are_looked_into_and_the_class_is_none(self):
        short = "// A.\n#pragma once\nclass A : public B<int()> {\n" + "  void F() {\n    G();\n  }\n" * 40 + "};\n"
        long = "// A.\n#pragma once\nclass A {\n  void F() {\n" + "    G();\n" * 80 + "  }\n};\n"
        self.assertEqual(rules_broken("a/b.h", short), [])
        self.assertEqual(rules_broken("a/b.h", long), ["function-length"])

    def test_a_table_is_no_function(self):
        self.assertEqual(rules_broken("a/b.cpp", function(100, "const Entry kTable[] = {").replace("++x", "F()")), [])

    def test_functions_in_a_table_are_not_taken_for_one(self):
        entry = '    {"Name", "why:",\n     [](Context& c) {\n       F(c);\n     }},\n'
        self.assertEqual(rules_broken("a/b.cpp", "// A.\nconst Entry kTable[] = {\n" + entry * 40 + "};\n"), [])

    def test_conditionals_belong_to_the_configuration_and_back_ends(self):
        text = "// A.\n#pragma once\n#if X\n#endif\n"
        self.assertEqual(rules_broken("system/a.h", text), ["preprocessor"])
        for path in ("system/pairs/configured.h", "config.h", "logging/lsn_vector_simd.h"):
            self.assertEqual(rules_broken(path, text), [])

    def test_volatile_is_found_but_not_in_comments_strings_and_assembly(self):
        self.assertEqual(rules_broken("a/b.cpp", "// A.\nvolatile int x;\n"), ["volatile"])
        self.assertEqual(rules_broken("a/b.cpp", '// volatile\nauto s = "volatile";\nasm volatile("");\n'), [])

    def test_headers_need_pragma_once_and_no_using_namespace(self):
        self.assertEqual(rules_broken("a/b.h", "// A.\nusing namespace std;\n"), ["pragma-once", "using-namespace"])

    def test_a_source_without_header_needs_an_opening_comment(self):
        self.assertEqual(rules_broken("a/b.cpp", "int x;\n"), ["opening-comment"])
        self.assertEqual(rules_broken("a/b.cpp", "int x;\n", has_header=True), [])

    def test_comments_name_what_they_speak_of(self):
        for comment in ("Whoever waits is told.", "what nobody reads", "A lane is hungry", "to whom it is due",
                        "the run is born"):
            self.assertEqual(rules_broken("a/b.cpp", f"// A.\nint x;  // {comment}\n"), ["wording"], comment)
        (found,) = style_ratchet.check_file("a/b.cpp", "// A.\n\n// The thread, or somebody else.\n")
        self.assertEqual(found, ("wording", 3, "not 'somebody'"))

    def test_whose_may_be_said_and_code_and_strings_may_name_anybody(self):
        self.assertEqual(rules_broken("a/b.cpp", "// A row whose writer holds it.\n"
                                      'Meeting nobody(1);\nF("nobody", who);  // a lock\n'), [])

    def test_comments_and_docstrings_of_scripts_are_read_too(self):
        text = ('"""Nobody reads it."""\nimport os\n\n\ndef f(who="nobody"):\n'
                '    """Text\n    whoever wrote it."""\n    return "who"  # whose, born\n')
        self.assertEqual([(line, word) for _, line, word in style_ratchet.check_wording("a.py", text)],
                         [(1, "not 'Nobody'"), (7, "not 'whoever'"), (8, "not 'born'")])

    def test_the_ratchet_fails_above_and_below_its_baseline(self):
        found = {"a.cpp volatile": [(3, "x")]}
        self.assertEqual(style_ratchet.compare(found, {"a.cpp volatile": 1}), [])
        self.assertEqual(len(style_ratchet.compare(found, {})), 1)
        self.assertIn("--update", style_ratchet.compare({}, {"a.cpp volatile": 1})[0])


if __name__ == "__main__":
    unittest.main()
