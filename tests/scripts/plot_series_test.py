"""The plot of a series: marks, gaps, what is refused; that nothing is clipped, and the command as a user calls it."""
import os
import subprocess
import sys
import tempfile
import unittest

import support
import plot_series

SCRIPT = os.path.join(support.REPOSITORY, "scripts", "plot_series.py")
HEADING = ",".join(plot_series.COLUMNS)


def step(begin, end, **values):
    """As the file has it; what is not named is 0."""
    known = {**dict.fromkeys(plot_series.COLUMNS, 0.0), "begin_s": begin, "end_s": end, "p50_us": 20.0,
             "p99_us": 900.0, "acknowledged_per_s": 1e6, "executed_per_s": 1.1e6, "log_mb_per_s": 300.0}
    return {**known, **values}


def line(one):
    return ",".join("" if one[name] is None else str(one[name]) for name in plot_series.COLUMNS)


def begun(*pairs):
    """Steps of 1 s, with how many checkpoints began and ended in each."""
    return [step(i, i + 1, checkpoints_begun=b, checkpoints_ended=e) for i, (b, e) in enumerate(pairs)]


def spans(marks):
    return [(mark.begin, mark.end) for mark in marks]


class MarksTest(unittest.TestCase):
    def test_a_checkpoint_is_marked_from_its_first_step_to_its_last(self):
        self.assertEqual(spans(plot_series.checkpoints(begun((0, 0), (1, 0), (0, 0), (0, 1), (0, 0)))), [(1, 4)])
        self.assertEqual(spans(plot_series.checkpoints(begun((1, 1), (0, 0), (2, 2)))), [(0, 1), (2, 3)])

    def test_one_in_progress_at_either_end_is_marked(self):
        self.assertEqual(spans(plot_series.checkpoints(begun((0, 0), (0, 1), (0, 0), (1, 0)))), [(0, 2), (3, 4)])

    def test_one_that_begins_where_another_ends_is_marked_with_it(self):
        self.assertEqual(spans(plot_series.checkpoints(begun((1, 0), (1, 1), (0, 1)))), [(0, 3)])

    def test_without_any_there_is_no_mark(self):
        self.assertEqual(plot_series.checkpoints(begun((0, 0))), [])
        self.assertEqual(plot_series.stalls([step(0, 1)], "log_full_ms"), [])

    def test_a_stall_weighs_as_much_as_its_share_of_the_step(self):
        marks = plot_series.stalls([step(0, 2, log_full_ms=500), step(2, 4), step(4, 5, log_full_ms=3000)],
                                   "log_full_ms")
        self.assertEqual([(mark.begin, mark.weight) for mark in marks], [(0, 0.25), (4, 1)])


class DrawingTest(unittest.TestCase):
    def draw(self, steps, title="run.csv"):
        figure = plot_series.draw(steps, title)
        from experiment.style import plt
        self.addCleanup(plt.close, figure)
        return figure

    def labels(self, figure):
        return [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]

    def test_lines_and_marks_are_named_once(self):
        figure = self.draw([step(0, 1, checkpoints_begun=1, checkpoints_ended=1, log_full_ms=9),
                            step(1, 2, ack_wait_ms=5), step(2, 3, checkpoints_begun=1, log_full_ms=9)])
        self.assertEqual(sorted(self.labels(figure)), sorted(
            ["acknowledged", "executed", "p50", "p99", "log", "checkpoint", "log buffer full",
             "waits for acknowledgements"]))
        self.assertEqual(len(figure.axes), 3 + 1)  # and the legend's

    def test_each_step_has_its_value_and_one_without_leaves_a_gap(self):
        figure = self.draw([step(0, 1), step(1, 2, p50_us=None, p99_us=None), step(2, 2.5)])
        stairs = figure.axes[1].patches[0].get_data()
        self.assertEqual(list(stairs.edges), [0, 1, 2, 2.5])
        self.assertEqual([str(value) for value in stairs.values], ["20.0", "nan", "20.0"])

    def test_latencies_lie_within_their_axis(self):
        axes = self.draw([step(0, 1), step(1, 2, p99_us=30000.0), step(2, 3, p50_us=None, p99_us=None)]).axes[1]
        bottom, top = axes.get_ylim()
        self.assertEqual(axes.get_yscale(), "log")
        self.assertTrue(1 < bottom < 20 and 30000 < top < 1e6, (bottom, top))

    def test_without_a_log_there_is_no_panel_of_one(self):
        self.assertEqual(len(self.draw([step(0, 1, log_mb_per_s=None)]).axes), 2 + 1)

    def test_one_short_step_and_one_without_transactions_can_be_drawn(self):
        self.draw([step(0, 0.001)]).canvas.draw()
        self.draw([step(0, 1, p50_us=None, p99_us=None, acknowledged_per_s=0, executed_per_s=0)]).canvas.draw()

    def test_nothing_is_clipped(self):
        steps = [step(i, i + 1, checkpoints_begun=1, checkpoints_ended=1, log_full_ms=9, ack_wait_ms=5)
                 for i in range(3)]
        self.assertFalse(support.clipped_texts(self.draw(steps)))


class CommandTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.file = os.path.join(directory.name, "run.csv")

    def run_on(self, text, *arguments):
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(text)
        return subprocess.run([sys.executable, SCRIPT, self.file, *arguments], capture_output=True, text=True,
                              timeout=120)

    def test_each_format_is_written(self):
        text = "\n".join([HEADING, line(step(0, 1)), line(step(1, 1.5, p50_us=None, p99_us=None))]) + "\n"
        for ending, magic in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")):
            out = self.file[:-4] + ending
            done = self.run_on(text, *(() if ending == ".png" else (f"--out={out}",)))
            self.assertEqual((done.returncode, done.stdout), (0, out + "\n"), done.stderr)
            with open(out, "rb") as file:
                self.assertTrue(file.read(8).startswith(magic), ending)

    def test_what_is_no_series_is_refused_in_one_line(self):
        good = line(step(0, 1))
        for text, words in (("", "it has no column begin_s"), ("a,b\n1,2\n", "it has no column begin_s"),
                            (HEADING + "\n", "has no steps"), (f"{HEADING}\n{good}\n0,1\n", ":3: acknowledged is ''"),
                            (f"{HEADING}\n{good.replace('20.0', 'soon')}\n", ":2: p50_us is 'soon'"),
                            (f"{HEADING}\n{good.replace('20.0', 'inf')}\n", "not a finite number")):
            done = self.run_on(text)
            self.assertEqual(done.returncode, 2, text)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(words, done.stderr)
        self.assertFalse(os.path.exists(self.file[:-4] + ".png"))

    def test_other_mistakes_are_refused_in_one_line(self):
        text = f"{HEADING}\n{line(step(0, 1))}\n"
        for out, words in (("plot.txt", "--out ends in .png"), ("/no/such/plot.png", "cannot write /no/such/plot.png")):
            done = self.run_on(text, f"--out={out}")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(words, done.stderr)
        os.unlink(self.file)
        done = subprocess.run([sys.executable, SCRIPT, self.file], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot read", done.stderr)


if __name__ == "__main__":
    unittest.main()
