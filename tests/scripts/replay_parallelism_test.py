"""The plot of modelled replays: which records it takes, what its lines are, and what it refuses."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from support import REPOSITORY, clipped_texts
from replay_parallelism import ORDER_STYLE, Refused, caption_of, draw, label_of, load, points, title_of

SCRIPT = os.path.join(REPOSITORY, "scripts", "replay_parallelism.py")


def order_of(name: str, limit: float) -> dict:
    """An order that scales up to `limit`."""
    times = [{"threads": n, "time_ns": 1e6 / min(n, limit), "speedup": min(n, limit), "modelled": True}
             for n in (16, 1, 2, 4)]
    times.append({"threads": "unlimited", "time_ns": 1e6 / limit, "speedup": limit, "modelled": True})
    return {"order": name, "records": 10, "work_ns": 1e6, "critical_path_ns": 1e6 / limit, "parallelism": limit,
            "modelled": True, "times": times}


def record_of(**changes) -> dict:
    return {"schema_version": 1, "kind": "replay_parallelism", "modelled": True, "run": "11", "scheme": "taurus",
            "payload": "data", "logs": 2, "records": 10, "dropped": 0, "replay_ns": 100.0, "byte_ns": 0.05,
            "procedure_ns": {}, "device_mb_per_s": 0, "orders": [order_of("lsn_vectors", 3), order_of("total", 1)],
            **changes}


class PlotTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, *rows: dict) -> str:
        path = os.path.join(self.folder, "replay.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        return path

    def call(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=60)

    def test_a_line_has_the_points_of_its_order_by_threads(self):
        self.assertEqual(points(order_of("lsn_vectors", 3)), [(1, 1), (2, 2), (4, 3), (16, 3)])
        figure = draw([record_of()])
        self.addCleanup(replay_plt().close, figure)
        lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
        self.assertEqual(list(lines), ["lsn_vectors (3)", "total (1)"])
        self.assertEqual(list(lines["lsn_vectors (3)"].get_ydata()), [1, 2, 3, 3])

    def test_titles_and_caption_say_that_it_is_modelled(self):
        self.assertEqual(title_of(record_of()), "taurus, data, 2 logs: modelled")
        self.assertEqual(title_of(record_of(logs=1)), "taurus, data, 1 log: modelled")
        self.assertEqual(title_of(record_of(device_mb_per_s=29)), "taurus, data, 2 logs at 29 MB/s: modelled")
        self.assertIn("not measured", caption_of([record_of()]))
        both = [record_of(), record_of(device_mb_per_s=500)]
        self.assertIn("devices of 500 MB/s or no device limit", caption_of(both))
        figure = draw([record_of()])
        self.addCleanup(replay_plt().close, figure)
        self.assertEqual(figure.axes[0].get_title(), title_of(record_of()))
        self.assertIn("modelled", figure._suptitle.get_text())

    def test_labels_have_the_inherent_parallelism_without_powers_of_ten(self):
        for parallelism, text in ((30103.46, "total (30,103)"), (32.48, "total (32.5)"), (1, "total (1)")):
            self.assertEqual(label_of({"order": "total", "parallelism": parallelism}), text)

    def test_panels_stay_within_the_page(self):
        for count in (1, 4):
            figure = draw([record_of(orders=[order_of(name, 300000) for name in ORDER_STYLE])] * count)
            self.addCleanup(replay_plt().close, figure)
            self.assertEqual(clipped_texts(figure), [])

    def test_the_orders_of_log_dump_have_a_look_each(self):
        with open(os.path.join(REPOSITORY, "system", "runs", "replay_parallelism.h"), encoding="utf-8") as file:
            names = file.read().split("kOrderNames = {")[1].split("}")[0]
        self.assertEqual({name.strip().strip('"') for name in names.split(",")}, set(ORDER_STYLE))
        self.assertEqual(len(set(ORDER_STYLE.values())), len(ORDER_STYLE))

    def test_other_records_of_a_file_are_passed_over(self):
        self.assertEqual(len(load([self.file({"kind": "run"}, record_of(), record_of())])), 2)

    def test_what_cannot_be_drawn_is_refused(self):
        unlimited = {**order_of("total", 1), "times": order_of("total", 1)["times"][-1:]}
        for rows, why in (([{"kind": "run"}], "has no record of log_dump"), ([], "has no record of log_dump"),
                          ([record_of(orders=[unlimited])], "no times by numbers of threads")):
            with self.assertRaisesRegex(Refused, why):
                load([self.file(*rows)])

    def test_a_plot_is_written_in_the_format_that_its_name_asks_for(self):
        for ending, begin in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
            out = os.path.join(self.folder, "plots", f"replay.{ending}")
            done = self.call(self.file(record_of()), "--out", out)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, out + "\n", ""))
            with open(out, "rb") as file:
                self.assertTrue(file.read().startswith(begin))

    def test_bad_input_is_one_line_and_status_2(self):
        for arguments, why in (([os.path.join(self.folder, "missing")], "no such file"),
                               ([self.file(record_of()), "--out", "replay.txt"], "--out ends with"),
                               ([self.file(record_of()), "--out", "/proc/none/replay.png"], "cannot write")):
            done = self.call(*arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(why, done.stderr)


def replay_plt():
    from experiment import style
    return style.plt


if __name__ == "__main__":
    unittest.main()
