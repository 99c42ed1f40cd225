"""What a reader of a plot alone has to know of its figures, as the records tell it: what was planned says less."""
from __future__ import annotations

from experiment import modelled, origin
from experiment.data import FigureData
from experiment.records import lookup
from experiment.spec import Series

HOW_MANY = "{n}"


def _device_texts(rows: list[dict]) -> list[str]:
    """Where logs lay: runs that differ in the number of directories alone are told together."""
    counts: dict[str, set[int]] = {}
    for row in rows:
        counts.setdefault(_device_text(row), set()).add(len(origin.log_directories(row)))
    return sorted(text.replace(HOW_MANY, " or ".join(map(str, sorted(numbers)))) for text, numbers in counts.items()
                  if text)


def _device_text(row: dict) -> str:
    """Empty where there were no logs; HOW_MANY stands for the number of directories."""
    directories = origin.log_directories(row)
    several, kinds = len(directories) > 1, {directory.get("kind") for directory in directories}
    if "emulated" in kinds:
        over = {one["emulation"].get("over") for one in directories if "emulation" in one}
        below = "a RAM disk" if over == {"ram"} else "a disk as it is" if over == {"real"} else "what is not known"
        return f"emulated device {origin.device_of(row)} over {below}, {HOW_MANY} of them"
    if kinds == {"ram"}:
        return f"{HOW_MANY} log directories on a RAM disk" if several else "RAM disk"
    if not kinds:
        return ""
    mixed = ", some of them on a RAM disk" * ("ram" in kinds)
    return (f"{HOW_MANY} log directories as they are" if several else "log directory as it is") + mixed


def _repeats_text(least: int, most: int) -> str:
    if most <= 1:
        return "one run a point"
    return f"medians of {most} runs" if least == most else f"medians of {least} to {most} runs"


def _caches_text(rows: list[dict]) -> list[str]:
    """What the page cache held before recoveries from real disks; nothing of other rows, which lie in it for good."""
    on_disk = [row for row in rows if any(one.get("kind") == "real" for one in origin.log_directories(row))]
    told = {row["caches"] for row in on_disk if row.get("caches", "as they are") != "as they are"}
    kept = ", ".join(sorted(one.removeprefix("kept: ") for one in told if one != "dropped"))
    return (["page cache dropped before each recovery"] * ("dropped" in told)
            + [f"page cache kept ({kept}): recoveries may have read memory"] * bool(kept))


def _in_runs_of(data: FigureData, series: dict[str, Series], path: str) -> str:
    """The runs whose record has something at `path`: of which series, where it is not all; empty if it is none."""
    told: dict[str, set[bool]] = {}
    for (_, name), line in data.lines.items():
        told.setdefault(name, set()).update(bool(lookup(row["record"], path)) for row in line.rows)
    if not any(True in values for values in told.values()):
        return ""
    if not any(False in values for values in told.values()):
        return "in all runs"
    texts = [how + " / ".join(series[name].label for name, values in told.items() if values == wanted)
             for how, wanted in (("in all runs of ", {True}), ("in some runs of ", {True, False}))
             if wanted in told.values()]
    return " and ".join(texts)


def caption_of(data: FigureData, series: dict[str, Series]) -> str:
    rows = data.rows()
    if not rows:
        return "nothing was measured"
    environments = [row["record"].get("environment", {}) for row in rows]
    words = [" and ".join(map(str, origin.hosts_of(rows)))]
    if any(environment.get("virtualisation", "none") not in ("", "none") for environment in environments):
        words.append("virtual machine")
    commits = origin.commits_of(rows)
    words += [f"builds {' and '.join(commits)}"] * (len(commits) > 1)
    words += _device_texts(rows)
    networks = sorted({str(row["record"]["transport"]) for row in rows if "transport" in row["record"]})
    words += [f"network: {' and '.join(networks)}"] * bool(networks)
    words += _caches_text(rows)
    words.append(_repeats_text(*data.repeats()))
    words += [f"device ceiling by {data.ceiling_source}"] * bool(data.ceiling_source)
    for what, path in (("log writes UNSYNCED", "metrics.unsynced"),
                       ("more threads than cores", "environment.oversubscribed"),
                       ("all masters share this host's cores", "oversubscribed")):
        if where := _in_runs_of(data, series, path):
            words.append(f"{what} {where}")
    of_logs = [series[name].label for name in dict.fromkeys(name for _, name in data.lines)
               if data.figure.step == "recover" and series[name].recovered == "restart.log_throughput"]
    words += [f"{', '.join(of_logs)}: the passes over the logs alone, without the backup"] * bool(of_logs)
    words.append(modelled.caption_of(data))
    return "; ".join(filter(None, words))
