"""The overview against a stand-in for the engine: every configuration runs in every round, and stands in its table."""
import os
import re
import unittest
from unittest import mock

import support  # noqa: F401  (puts scripts/ on the path)
import registry
from exp_case import ExpCase
from experiment import comparison, origin, overview, records, running, spec, stats


class OverviewTest(ExpCase):
    def overview(self, *words, fail="", **how):
        with mock.patch.dict(os.environ, {"FAKE_FAIL": fail}):
            return self.exp("overview", *words, **how)

    @property
    def path(self):
        return os.path.join(self.out, "overview", "results.jsonl")

    def all_rows(self):
        return records.load(self.path)

    def left(self):
        return [name for name in os.listdir(self.out) if name.startswith(running.WORK_PREFIX)]

    def test_each_line_has_its_runs_share_and_recoveries(self):
        status, said = self.overview("schemes")
        self.assertEqual(status, 0, said)
        lines = [line for line in said.splitlines() if line.startswith("| serial command |")]
        self.assertEqual(len(lines), 3)  # YCSB, TPC-C, the full mix
        self.assertRegex(lines[0], r"^\| serial command \| 4,\d{3} \(.*\) \| (6|7)\d % \| 0\.12 ms \| 78 \| "
                                   r"[34],\d{3}( / [34],\d{3})? \|$")
        self.assertEqual(self.left(), [])
        # Confined recoveries see fewer processors, and are of this host all the same.
        confined = [row for row in self.all_rows() if row["command"].startswith("taskset -c ")]
        self.assertTrue(confined)
        for row in confined:
            self.assertIsNone(origin.host_of(row))
        self.assertEqual(origin.warnings(self.all_rows()), [])

    def test_controls_stand_beside_each_other(self):
        status, said = self.overview("controls", "--repeats=2")
        self.assertEqual(status, 0, said)
        lines = re.findall(r"^\| ([^|]+) \| [\d,]+ \(", said, re.MULTILINE)
        controls = [control.name for control in registry.controls()]
        self.assertEqual(lines, [*controls, "HEKATON, SNAPSHOT", "NO_WAIT over B+trees"])
        self.assertNotIn("of no log", said)

    def test_logs_are_recovered_in_the_last_repeat_alone_on_the_first_processors(self):
        wanted = overview.load(["schemes"], cores=2)
        recovered = {repeat for repeat, job in wanted.order(3, 1) if job.recoveries}
        self.assertEqual(recovered, {2})
        for point in wanted.plan.points["schemes"]:
            job = wanted.plan.jobs[point.job]
            self.assertEqual([flags["thread_cnt"] for flags in job.recoveries.values()],
                             [1, 2] if job.logs and "look-ahead 0" not in point.series else [], point.series)

    def test_what_was_interrupted_goes_on_where_it_stopped(self):
        self.overview("controls")
        rows = self.all_rows()
        os.unlink(self.path)
        for row in rows[:-1]:
            records.append(self.path, row)
        status, said = self.overview("controls")
        self.assertEqual((status, len(self.all_rows())), (0, len(rows)), said)
        self.assertIn("[1/1] ", said)

    def test_a_confined_recovery_has_a_partner_in_results_of_another_checkout(self):
        command = "taskset -c 0 /{0}/rundb-all --log_recover=1 --thread_cnt=1 --log_dir=/{0}"
        steps = {comparison._asked_for(command.format(place)) for place in ("here", "there")}
        self.assertEqual(steps, {"rundb-all --log_recover=1 --thread_cnt=1"})

    def test_what_is_compared_with_other_engines_looks_nowhere_ahead(self):
        status, said = self.overview("controls_0")
        self.assertEqual(status, 0, said)
        self.assertIn("| look-ahead 0: k/s (lowest-highest) | YCSB |", said)
        for name, table in overview.load([]).tables.items():
            for line, flags in table.all_lines().items():
                self.assertEqual(flags.get("lookahead") == 0, name == "controls_0" or "look-ahead 0" in line, line)

    def test_a_share_above_one_hundred_percent_is_marked(self):
        self.assertEqual([stats.percent(share, " %") for share in (0.5, 1.004, 1.03)], ["50 %", "100 %", "103 %!"])

    def test_a_run_that_fails_ends_it_with_the_command(self):
        status, said = self.overview("controls", fail="run")
        self.assertEqual(status, 1)
        self.assertEqual(len(re.findall(r"^  again: \S*fake_rundb.py --", said, re.MULTILINE)), 1)
        self.assertEqual(self.left(), [])

    def test_what_is_missing_is_said(self):
        status, said = self.overview(binary="/nowhere/rundb-all")
        self.assertEqual(status, 2)
        self.assertIn("rundb-all is missing", said)
        with open(os.path.join(self.out, "file"), "w", encoding="utf-8"):
            pass
        self.assertIn("no logs can be written", self.overview(ram_dir=os.path.join(self.out, "file", "logs"))[1])
        self.assertIn("no table is called 'shemes'; there are schemes, persistent_memory, controls", self.overview("shemes")[1])

    def test_a_switch_that_the_engine_lacks_is_refused(self):
        declared = spec.load(os.path.join(spec.FOLDER, "overview.yaml"))
        with mock.patch.object(spec, "load", return_value={**declared, "base": {"threds": 1}}):
            with self.assertRaisesRegex(spec.SpecError, "overview.yaml: the engine has no switch threds"):
                overview.load([])


if __name__ == "__main__":
    unittest.main()
