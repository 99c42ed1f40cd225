"""Series that are modelled, not measured: what two instruments compute for more threads than this host has.

In a figure file, each entry beside those it names:

  modelled:
    - {panels: [NAME], series: [NAME], sweep: lines_8_logs, flags: -Ln8}   throughput by the model of line transfers, of
                                       scripts/line_transfers sweep --out out/lines_8_logs --flags=-Ln8
    - {panels: [NAME], series: [NAME], replay: true}   recovery: one thread's measured rate without its reads and
                                       checks, times the speedup of log_dump --parallelism; scripts/exp model FIGURE

A modelled point is no Line, so no claim is judged by it: `beside` shows the modelled ratio next to the paper's and gives
no verdict. Sweeps are taken only if scripts/line_transfers validate has found that the model predicts this host. What is
absent is not drawn, and a sentence names the command that makes it.
"""
from __future__ import annotations

import json
import os
from statistics import median
from typing import Optional

from experiment import records
from experiment.data import FigureData, Modelled, ModelledLine
from experiment.planning import Plan
from experiment.spec import REPOSITORY, Figure, Series, baselines, is_number
from lines import prediction
from lines.runs import Cell

VALIDATION = os.path.join("lines", "validation.json")
REPLAYS = os.path.join("replay", "replays.jsonl")
# The order in which this engine replays a scheme's records (docs/running.md, How parallel a replay can be).
ORDER_OF = {"LOG_SERIAL": "total", "LOG_ELEDA": "total", "LOG_TAURUS": "lanes", "LOG_PLOVER": "partitions",
            "LOG_BATCH": "newest_wins"}
LINES_TEXT = "line transfers of cores at one distance, without look-ahead and without a device's limit"
REPLAY_TEXT = ("the order of replay of logs that 64 workers wrote on this host's cores in turns, without reads, checks and "
               "a device's limit")


def flags_of(figure: Figure, panel: str, series: Series) -> dict:
    return {"cc": "NO_WAIT", **figure.base, **figure.panels[panel], **series.flags}


def cell_of(flags: dict) -> Cell:
    log = flags["log"]
    return Cell(flags["cc"], log, "-" if log == "LOG_NO" else flags["log_type"])


def add(data: FigureData, plan: Plan, series: dict[str, Series], folder: str) -> None:
    """To the measured data. `folder`: out, with the results of the instruments."""
    found = data.modelled
    for entry in data.figure.modelled:
        if "sweep" in entry:
            _add_sweep(found, data.figure, entry, series, folder)
        else:
            _add_replays(data, plan, entry, series, folder)


def targets(figure: Figure, entry: dict) -> list[tuple[str, str]]:
    return [(panel, name) for panel in entry["panels"] for name in entry["series"] if name in figure.drawn_in(panel)]


def refusal(folder: str) -> str:
    """Why sweeps are not shown; empty if they are."""
    path = os.path.join(folder, VALIDATION)
    try:
        with open(path, encoding="utf-8") as file:
            holds, text = prediction.verdict(json.load(file))
    except FileNotFoundError:
        return "the model of line transfers has not been compared with this host: scripts/line_transfers validate"
    except (OSError, ValueError, TypeError, KeyError):
        return f"{path} is damaged: scripts/line_transfers validate"
    return "" if holds else f"the model of line transfers does not predict this host: {text}"


def _add_sweep(found: Modelled, figure: Figure, entry: dict, series: dict[str, Series], folder: str) -> None:
    out, flags = os.path.join(folder, entry["sweep"]), entry.get("flags", "")
    if why := refusal(folder):
        found.missing += [why] * (why not in found.missing)
        return
    rows = records.load(os.path.join(out, "sweep.jsonl"))
    if rows and _flags_there(out) != flags:
        found.missing.append(f"{out} is a sweep with --flags='{_flags_there(out)}', not '{flags}'")
        return
    absent = []
    for panel, name in targets(figure, entry):
        cell = cell_of(flags_of(figure, panel, series[name])).name
        of_cell = {row["workers"]: row for row in rows if row["cell"] == cell and row.get("modelled") is True}
        if of_cell:
            costs = " or ".join(sorted({f"{row['transfer_nanos']:g} ns each" for row in of_cell.values()}))
            points = {workers: of_cell[workers]["modelled_throughput"] for workers in sorted(of_cell)}
            found.lines[panel, name] = ModelledLine(f"{LINES_TEXT} ({costs})", points)
        elif cell not in absent:
            absent.append(cell)
    if absent:
        words = [f"--out {out.removeprefix(REPOSITORY + os.sep)}"] * (entry["sweep"] != "lines") + [f"--flags='{flags}'"] * bool(flags)
        found.missing.append(" ".join(["scripts/line_transfers sweep", *words, f"--cells '{','.join(absent)}'"]))


def _flags_there(out: str) -> str:
    try:
        with open(os.path.join(out, "flags.txt"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def job_of(plan: Plan, figure: Figure, panel: str, name: str) -> str:
    """Whose log the series recovers; empty if the scale does not draw it."""
    return next((point.job for point in plan.points[figure.name] if (point.panel, point.series) == (panel, name)), "")


def _add_replays(data: FigureData, plan: Plan, entry: dict, series: dict[str, Series], folder: str) -> None:
    replays = {row["job"]: row["replay"] for row in records.load(os.path.join(folder, REPLAYS))}
    absent = False
    for panel, name in targets(data.figure, entry):
        job = job_of(plan, data.figure, panel, name)
        if not job:
            continue
        rate = _rate_of_one_thread(data, panel, name)
        speedups = _speedups(replays.get(job), series[name].flags["log"])
        if speedups and rate is not None:
            data.modelled.lines[panel, name] = ModelledLine(REPLAY_TEXT, {n: rate * speedup / speedups[1]
                                                                            for n, speedup in speedups.items()})
        absent = absent or not speedups
    if absent:
        data.modelled.missing.append(f"scripts/exp model {data.figure.name}")


def _rate_of_one_thread(data: FigureData, panel: str, name: str) -> Optional[float]:
    """Records per second of the time in which it replayed, and did not read or check; None without a measurement."""
    rates = []
    for row in data.line(panel, name).rows_of.get(1, []):
        metrics = row["record"].get("metrics", {})
        busy = metrics.get("replay_seconds", 0) * metrics.get("parallelism", 0)
        if busy > 0 and metrics.get("recovered_txns", 0) > 0:
            rates.append(metrics["recovered_txns"] / busy)
    return median(rates) if rates else None


def _speedups(record: Optional[dict], log: str) -> dict[int, float]:
    """By threads, from one on, in the order of replay of the scheme; empty if there are none."""
    for order in (record or {}).get("orders", []):
        if order["order"] == ORDER_OF[log]:
            found = {time["threads"]: time["speedup"] for time in order["times"] if is_number(time["threads"])}
            return dict(sorted(found.items())) if 1 in found else {}
    return {}


def beside(data: FigureData, claim: dict) -> str:
    """The claim's ratio by the model, per panel; empty where the model lacks a series of it. It is no verdict."""
    if {"than", "over_at", "above", "below"} & set(claim) or claim.get("expect") == "inverse":
        return ""
    texts = []
    for panel in claim.get("panels") or data.figure.panels:
        lines = data.modelled.in_panel(panel)
        if all(name in lines for name in [claim["of"], *baselines(claim)]):
            text = _change(lines[claim["of"]], claim) if "expect" in claim else _ratio(lines, claim)
            texts += [f"{panel}, {text}" if len(data.figure.panels) > 1 else text] * bool(text)
    return "; ".join(texts)


def _ratio(lines: dict[str, ModelledLine], claim: dict) -> str:
    """At the claim's number of threads, else at the largest that all have."""
    above, others = lines[claim["of"]].points, [lines[name].points for name in baselines(claim)]
    common = [x for x in above if all(x in points for points in others)]
    at = claim["at"] if is_number(claim.get("at")) else max(common, default=None)
    if at not in common:
        return ""
    return f"{at} threads: {above[at] / max(points[at] for points in others):.2f}x"


def _change(line: ModelledLine, claim: dict) -> str:
    first, last = claim.get("from", min(line.points)), claim.get("to", max(line.points))
    if first == last or not {first, last} <= set(line.points):
        return ""
    return f"{first} to {last} threads: {line.points[last] / line.points[first]:.2f}x"


def papers_text(claim: dict) -> str:
    return f"the paper's {claim['paper']:g}x" if is_number(claim.get("paper")) else "the paper's claim"


def caption_of(data: FigureData) -> str:
    """What a reader of the plot alone has to know of its dashed lines; empty without any."""
    hows = list(dict.fromkeys(line.how for line in data.modelled.lines.values()))
    if not hows:
        return ""
    ratios = [f"{claim['claim']}: {text}, beside {papers_text(claim)}" for claim in data.figure.claims
              if (text := beside(data, claim))]
    return "; ".join([f"modelled, not measured (thin dashes): {' and '.join(hows)}", *ratios])
