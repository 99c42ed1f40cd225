"""What the files under experiments/ say: figures, the series they draw, and the scales they are run at.

A figure file (experiments/PAPER/figNN_NAME.yaml, or experiments/ablation/NAME.yaml for a figure of ours) has

  figure: 5                         number in the paper; A: its appendix A; none: it has no such figure. A figure of ours has no such key
  title, section                    of the plot; where the paper has it (a figure of ours: no section)
  device: nvme | ssd | hdd | disk29 | pm | ram | real   under the logs (planning.py), of the series that name none
                                    (series.yaml)
  machine: taurus | eleda           the paper whose machine has the device, for a figure of ours with nvme or hdd
  written_on: ram                   where the logs of recoveries were written, if not on emulated devices, too: a run
                                    that only leaves logs need not wait for them
  step: run | recover | bench       which step's figures are drawn
  bench: {program, name}            of build/micro, for bench: NAME/i/x gives the point of the series that is its label
  base: {flag: value}               of every run; {SCALE: value} for a value, laptop's where a scale is not named.
                                    Beside the engine's those of OF_PLANS
  panels: {NAME: {flag: value}}     one plot each; among the flags, series: [NAME]: what the panel draws, not all;
                                    program: NAME: instead of the figure's
  x: {flag, values, label, log, of} the swept flag. values: a list, {SCALE: list}, or "threads". of: recover for a flag
                                    of the recovery; the run before it has as many workers as the scale's largest.
                                    flag: devices for the number of directories with logs; larger ones than there are
                                    are left out
  y: {metric, label, log}           a name in the JSON record's metrics, dots for what is nested
     {parts: {NAME: FORMULA}, label}   for draw: parts, formulas over such names (formula.py); NAME, of series.yaml, is
                                    the part's look. A point is the sum of its parts, and so are claims. A metric or
                                    a formula may be {SERIES: ...}, where series are several measures of one run; a
                                    part of which a series has none is 0 there
  draw: lines | cdf | shares | parts   cdf: of the latencies at the largest x. shares: a bar for each x, in which a
                                    series is y's entry of that name (series.yaml: parts of a worker's time). parts: a
                                    bar for each x and series, made up of y's parts
  program: rundb-all | rundb-timed | rundb-charged   the second tells workers' time apart, and is slower for it; in
                                    the third workers pay for reads of persistent memory
  series: [NAME]                    of experiments/series.yaml
  claims: [...]                     claims.py
  modelled: [...]                   modelled.py: series that go on beyond the threads that this host has

Flags are the engine's long names. With `masters` among them a run is one of several masters (system/cluster/): it has
neither cc nor log, one directory on a device as it is, and no recovery. Errors are one line with the file's name.
"""
from __future__ import annotations

import functools
import math
import os
import re
from dataclasses import dataclass, field, replace
from typing import Optional

import yaml

import looks
from experiment import formula
from experiment.host_scale import AS_THEY_WERE, KNOWN_DEVICES, REAL_DEVICES
from experiment.records import is_number

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(REPOSITORY, "experiments")
PROGRAMS = ("rundb-all", "rundb-timed", "rundb-charged")
PAPERS = ("taurus", "eleda", "differential", "write_behind", "taurus_mm")
OURS = "ablation"  # the folder of the figures that no paper has
DEVICES = (*sorted({device for _, device in KNOWN_DEVICES}), *REAL_DEVICES)
# Flags of a run that stand for several of the engine's (planning.py): directories with a log each; these, and as many
# more with a part of the backup each; transactions of all workers together, by whose number the run ends; the same by
# the mean number of writes of each row that WRITE_KEYS says is written; the latency of the persistent memory under the
# logs, a multiple of DRAM's.
OF_PLANS = ("disks", "disks_of_each", "transactions", "writes_per_key", "pm_latency")
CLUSTER = "masters"  # among a run's flags: it is one of several masters
LOGS = ("none", "one_disk", "striped", "each")
# What a claim is of, exactly one of these, and what it may have beside the keys of every claim.
CLAIM_KINDS = {"over": {"at", "than", "over_at"}, "expect": {"from", "to"}, "above": {"at"}, "below": {"at"},
               "at_most": {"at"}}
CLAIM_KEYS = {"claim", "paper", "of", "panels", "needs_cores", "found", "least_txns"}
CLAIM_NUMBERS = ("above", "below", "at_most", "from", "to", "needs_cores", "least_txns")
CLAIM_WORDS = {"at": ("first", "last", "peaks"), "over_at": ("first", "last"),
               "expect": ("rises", "falls", "flat", "inverse")}


class SpecError(Exception):
    """A file under experiments/ that cannot be used: one line."""


@dataclass(frozen=True)
class Series:
    name: str
    label: str
    flags: dict
    colour: str = ""    # as its scheme is drawn (looks.py), if nothing is said
    marker: str = ""
    dashed: bool = False
    logs: str = "each"  # of LOGS: one log on one disk or striped over all (RAID-0), or logs on each
    recover: dict = field(default_factory=dict)  # flags of its recoveries
    recovered: str = ""  # in figures of recoveries: its metric, instead of y's
    device: str = ""     # under its logs, instead of the figure's; emulated whatever the directories are


@dataclass(frozen=True)
class Scale:
    name: str
    seconds: float
    repeats: int
    devices: int       # directories
    log_limit: str
    threads: tuple     # "cores" stands for as many as there are
    base: dict         # flags of every run
    workloads: dict    # WORKLOAD -> flags
    # series -> where it is not drawn, to save its time: how "FIGURE, PANEL" begins
    without: dict = field(default_factory=dict)

    def draws(self, series: str, figure: str, panel: str) -> bool:
        return not any(f"{figure}, {panel}".startswith(where) for where in self.without.get(series, []))


@dataclass(frozen=True)
class Axis:
    flag: str
    values: object
    label: str
    log: bool = False
    of: str = "run"


@dataclass(frozen=True)
class Measure:
    label: str
    metric: object = ""                        # or series -> metric
    log: bool = False
    parts: dict = field(default_factory=dict)  # name -> formula, or series -> formula; instead of a metric

    def metric_of(self, series: str) -> str:
        return self.metric.get(series, "") if isinstance(self.metric, dict) else self.metric

    def parts_of(self, series: str) -> dict[str, str]:
        """name -> formula; an empty one for nothing."""
        return {name: of.get(series, "") if isinstance(of, dict) else of for name, of in self.parts.items()}


@dataclass(frozen=True)
class Figure:
    path: str
    paper: str
    number: object  # None, or a letter for an appendix
    title: str
    section: str
    device: str
    step: str
    base: dict
    panels: dict
    x: Axis
    y: Measure
    draw: str
    series: tuple
    claims: tuple
    recover: dict = field(default_factory=dict)  # flags of every recovery
    bench: dict = field(default_factory=dict)
    note: str = ""
    program: str = PROGRAMS[0]
    panel_series: dict = field(default_factory=dict)  # of the panels that do not draw all series
    panel_programs: dict = field(default_factory=dict)
    machine: str = ""                                 # the paper whose machine has the device
    modelled: tuple = ()
    written_on: str = ""                              # "ram": of figures of recoveries; the runs wait for no device

    @property
    def ours(self) -> bool:
        return self.paper == OURS

    @property
    def name(self) -> str:
        return f"{self.paper}/{os.path.basename(self.path).removesuffix('.yaml')}"

    @property
    def heading(self) -> str:
        if self.ours:
            return f"{self.title} (ours)"
        if isinstance(self.number, str):
            return f"App. {self.number}: {self.title}"
        return f"Fig. {self.number}: {self.title}" if self.number else f"{self.title} (not in the paper)"

    def drawn_in(self, panel: str) -> tuple:
        """Names of series."""
        return tuple(self.panel_series.get(panel, self.series))

    def panel_of(self, panel: str, name: str) -> str:
        """Where a series is drawn with the panel's flags: where schemes of data and of commands have a panel each, a
        claim compares across them."""
        same = [panel, *(other for other, flags in self.panels.items() if flags == self.panels[panel])]
        return next((other for other in same if name in self.drawn_in(other)), panel)


def load(path: str) -> dict:
    try:
        with open(path, encoding="utf-8") as file:
            value = yaml.safe_load(file)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:  # ValueError: no UTF-8, or no such date
        raise SpecError(f"{os.path.relpath(path)}: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(value, dict):
        raise SpecError(f"{os.path.relpath(path)}: a mapping is expected")
    _refuse_infinities(os.path.relpath(path), value)
    return value


def _refuse_infinities(where: str, value) -> None:
    """NaN and infinity, which YAML has and no switch, scale or claim can use."""
    if isinstance(value, float) and not math.isfinite(value):
        raise SpecError(f"{where}: {value} is not a number that can be used")
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        _refuse_infinities(f"{where}: {key}" if isinstance(value, dict) else where, inner)


def checked(kind, where: str, values: dict, **more):
    """kind(**values), or which of its fields are missing or unknown."""
    known = set(kind.__dataclass_fields__)
    unknown = sorted(set(values) - known)
    if unknown:
        raise SpecError(f"{where}: unknown {', '.join(map(str, unknown))}; "
                        f"known: {', '.join(sorted(known - set(more)))}")
    try:
        return kind(**values, **more)
    except TypeError as error:
        raise SpecError(f"{where}: {str(error).split('__init__() ')[-1]}") from None


def load_series() -> dict[str, Series]:
    path = os.path.join(FOLDER, "series.yaml")
    series = {name: checked(Series, f"series.yaml: {name}", values, name=name) for name, values in load(path).items()}
    for one in series.values():
        if one.logs not in LOGS:
            raise SpecError(f"series.yaml: {one.name}: logs is one of {', '.join(LOGS)}")
        if one.device and one.logs != "one_disk":
            raise SpecError(f"series.yaml: {one.name}: a series with a device of its own has one log, on one_disk")
        check_switches(f"series.yaml: {one.name}", one.flags, OF_PLANS)
        check_switches(f"series.yaml: {one.name}", one.recover)
    return {name: one if one.colour else _as_its_scheme(one) for name, one in series.items()}


def _as_its_scheme(one: Series) -> Series:
    colour, marker = looks.of_scheme(one.flags.get("log", ""), one.flags.get("log_type", ""), one.logs == "striped")
    return replace(one, colour=colour, marker=marker)


def load_scale(name: str) -> Scale:
    scales = load(os.path.join(FOLDER, "scales.yaml"))
    if name not in scales:
        raise SpecError(f"no scale is called '{name}'; there are {', '.join(scales)}")
    scale = checked(Scale, f"scales.yaml: {name}", scales[name], name=name)
    for flags in (scale.base, *scale.workloads.values()):
        check_switches(f"scales.yaml: {name}", flags)
    if strange := set(scale.without) - set(load_series()):
        raise SpecError(f"scales.yaml: {name}: series.yaml has no {', '.join(sorted(strange))}")
    return scale


@functools.cache
def engine_switches() -> frozenset[str]:
    """Long names of the engine's flags, from the table that it has them from."""
    with open(os.path.join(REPOSITORY, "system", "command_line", "switches.cpp"), encoding="utf-8") as file:
        table = file.read().partition("kSwitches[] = {")[2].partition("\n};")[0]
    names = set()
    for entry in re.findall(r"^    (\S.*(?:\n     .*)*)", table, re.M):
        name = re.search(r'\b(?:Whole|Bytes|Real|Seconds|Duration|Bool|Bare|Text|List|Choice|Cpus|Device)\(\s*"(\w+)"',
                         entry)
        given = re.search(r'\),\s*"(\w+)"(?:,\s*"(\w+)")?\)', entry) if "Named(" in entry else None
        if name:
            names |= {word for word in given.groups() if word} if given else {name[1].lower()}
    return frozenset(names)


def check_switches(where: str, flags: dict, more: tuple = ()) -> None:
    unknown = sorted(str(name) for name in flags if name not in engine_switches() and name not in more)
    if unknown:
        raise SpecError(f"{where}: the engine has no switch {', '.join(unknown)}")


def figure_paths() -> list[str]:
    return [os.path.join(FOLDER, paper, file) for paper in (*PAPERS, OURS)
            for file in sorted(os.listdir(os.path.join(FOLDER, paper))) if file.endswith(".yaml")]


def load_figure(path: str, series: dict[str, Series]) -> Figure:
    where, values = os.path.relpath(path), dict(load(path))
    for key, kind in (("x", Axis), ("y", Measure)):
        if not isinstance(values.get(key), dict):
            raise SpecError(f"{where}: {key} is missing")
        values[key] = checked(kind, f"{where}: {key}", values[key])
    paper = os.path.basename(os.path.dirname(path))
    number = _number(where, paper, values)
    values = {"draw": "lines", "claims": [], "number": number, "machine": paper, **values}
    panels = {name: dict(flags) for name, flags in _flags_of_panels(where, values.pop("panels", {})).items()}
    own, programs = ({name: flags.pop(key) for name, flags in panels.items() if key in flags}
                     for key in ("series", "program"))
    figure = checked(Figure, where, values, path=path, paper=paper, panels=panels, panel_series=own,
                     panel_programs=programs)
    _check_figure(figure, where, series)
    if not isinstance(figure.claims, list) or not all(isinstance(claim, dict) for claim in figure.claims):
        raise SpecError(f"{where}: claims: a list of mappings is expected")
    for claim in figure.claims:
        _check_claim(figure, where, claim)
    return figure


def _number(where: str, paper: str, values: dict) -> object:
    """Takes `figure` out of the values: the number in the paper. A figure of ours has neither that nor a section."""
    if paper == OURS:
        if {"figure", "section"} & set(values):
            raise SpecError(f"{where}: a figure of ours has neither figure nor section, which are a paper's")
        values["section"] = "ours"
        return None
    number = values.pop("figure", "")
    is_appendix = isinstance(number, str) and re.fullmatch("[A-Z]", number)
    if number != "none" and not is_appendix and not (is_number(number) and number >= 1):
        raise SpecError(f"{where}: figure is the number in the paper, or none")
    return None if number == "none" else number


def _flags_of_panels(where: str, panels) -> dict:
    if not isinstance(panels, dict):
        raise SpecError(f"{where}: panels: a mapping is expected")
    for name, flags in panels.items():
        if not isinstance(flags, dict):
            raise SpecError(f"{where}: panel {name}: a mapping of flags is expected, {{}} for none")
    return panels


def _check_figure(figure: Figure, where: str, series: dict[str, Series]) -> None:
    for key in ("base", "recover", "bench"):
        if not isinstance(getattr(figure, key), dict):
            raise SpecError(f"{where}: {key}: a mapping is expected, {{}} for nothing")
    swept = {} if figure.x.flag == "devices" or figure.step == "bench" else {figure.x.flag: 0}
    for flags in (figure.base, swept, *figure.panels.values()):
        check_switches(where, flags, OF_PLANS)
    check_switches(where, figure.recover)
    strange = [name for name in figure.series if name not in series]
    if strange:
        raise SpecError(f"{where}: series.yaml has no {', '.join(strange)}")
    for panel, names in figure.panel_series.items():
        strange = [name for name in names if name not in figure.series]
        if strange:
            raise SpecError(f"{where}: panel {panel}: the figure's series have no {', '.join(strange)}")
    for panel, program in figure.panel_programs.items():
        if program not in PROGRAMS:
            raise SpecError(f"{where}: panel {panel}: program is one of {', '.join(PROGRAMS)}")
    for key, allowed in (("device", DEVICES), ("step", ("run", "recover", "bench")),
                         ("draw", ("lines", "cdf", "shares", "parts")), ("program", PROGRAMS),
                         ("written_on", ("", "ram"))):
        if getattr(figure, key) not in allowed:
            raise SpecError(f"{where}: {key} is one of {', '.join(filter(None, allowed))}")
    _check_measure(figure, where, series)
    _check_modelled(figure, where)
    _check_clusters(figure, where, series)
    if figure.written_on and figure.step != "recover":
        raise SpecError(f"{where}: written_on is for figures of recoveries")
    own = {series[name].device for name in figure.series} - {""}
    lacking = [device for device in sorted(own) if (figure.machine, device) not in AS_THEY_WERE]
    if figure.device not in REAL_DEVICES and (figure.machine, figure.device) not in KNOWN_DEVICES:
        lacking.append(figure.device)
    if lacking:
        raise SpecError(f"{where}: what a machine of {figure.machine} with {lacking[0]} had is not known "
                        "(scripts/experiment/host_scale.py)")


def _check_modelled(figure: Figure, where: str) -> None:
    where = f"{where}: modelled"
    kinds = {"run": ({"panels", "series", "sweep"}, {"flags"}), "recover": ({"panels", "series", "replay"}, set())}
    if not isinstance(figure.modelled, (list, tuple)):
        raise SpecError(f"{where}: a list of mappings is expected")
    for entry in figure.modelled:
        if figure.draw != "lines" or figure.x.flag != "thread_cnt" or figure.step not in kinds:
            raise SpecError(f"{where} is for lines over thread_cnt, of runs or recoveries")
        needed, more = kinds[figure.step]
        if not isinstance(entry, dict) or not needed <= set(entry) <= needed | more:
            raise SpecError(f"{where}: {', '.join(sorted(needed))} are expected"
                            + f" and {', '.join(more)} possible" * bool(more))
        strange = [name for key, known in (("panels", figure.panels), ("series", figure.series))
                   for name in entry[key] if name not in known]
        if strange:
            raise SpecError(f"{where}: the figure has no {', '.join(map(str, strange))}")


def _check_clusters(figure: Figure, where: str, series: dict[str, Series]) -> None:
    flags = {figure.x.flag: 0, **figure.base, **{name: 0 for panel in figure.panels.values() for name in panel}}
    if CLUSTER not in {*flags, *(name for one in figure.series for name in series[one].flags)}:
        return
    own = [series[name].name for name in figure.series if series[name].device or series[name].logs != "one_disk"]
    if figure.device not in REAL_DEVICES or own:
        raise SpecError(f"{where}: several masters have one directory (logs: one_disk), on a device as it is (ram, real)")
    if figure.step != "run" or {figure.program, *figure.panel_programs.values()} != {PROGRAMS[0]}:
        raise SpecError(f"{where}: several masters are runs of {PROGRAMS[0]}")


def _check_measure(figure: Figure, where: str, series: dict[str, Series]) -> None:
    parts = figure.y.parts
    if not isinstance(parts, dict):
        raise SpecError(f"{where}: y: parts: a mapping of formulas is expected")
    if bool(parts) != (figure.draw == "parts") or bool(parts) == bool(figure.y.metric):
        raise SpecError(f"{where}: y has parts if the figure draws parts, else a metric")
    for name, text in parts.items():
        if name not in series:
            raise SpecError(f"{where}: series.yaml has no {name}")
        _check_names_of_series(figure, f"{where}: y: {name}", text)
        if not all(map(formula.is_formula, text.values() if isinstance(text, dict) else [text])):
            raise SpecError(f"{where}: y: {name}: names with ' + ', ' - ' or ' / ' between them are expected")
    _check_names_of_series(figure, f"{where}: y: metric", figure.y.metric)
    if isinstance(figure.y.metric, dict) and set(figure.y.metric) != set(figure.series):
        raise SpecError(f"{where}: y: metric: one for each series is expected")


def _check_names_of_series(figure: Figure, where: str, measure) -> None:
    strange = sorted(set(measure) - set(figure.series)) if isinstance(measure, dict) else []
    if strange:
        raise SpecError(f"{where}: the figure has no series {', '.join(map(str, strange))}")


def baselines(claim: dict) -> list[str]:
    """What a ratio is over: one series, or several of which the fastest counts."""
    over = claim.get("over", [])
    return over if isinstance(over, list) else [over]


def _check_claim(figure: Figure, where: str, claim: dict) -> None:
    """A word that is not understood would leave a claim judged as another one."""
    where = f"{where}: claim '{claim.get('claim', '?')}'"
    kinds = sorted(set(CLAIM_KINDS) & set(claim))
    if len(kinds) != 1:
        raise SpecError(f"{where}: {' and '.join(kinds) or 'none'} of {', '.join(CLAIM_KINDS)}, which takes one")
    if not {"claim", "of"} <= set(claim):
        raise SpecError(f"{where}: claim or of is missing")
    if figure.ours and "paper" in claim:
        raise SpecError(f"{where}: a figure of ours has no paper's value to be held against")
    allowed_here = CLAIM_KEYS | {kinds[0]} | CLAIM_KINDS[kinds[0]]
    if claim.get("expect") == "inverse":
        allowed_here -= {"from", "to"}  # of all points
    unknown = sorted(map(str, set(claim) - allowed_here))
    if unknown:
        raise SpecError(f"{where}: {', '.join(unknown)} not known beside {kinds[0]}: {claim[kinds[0]]}")
    _check_claim_values(where, claim)
    for key, allowed in CLAIM_WORDS.items():
        a_point = key in ("at", "over_at") and is_number(claim.get(key))
        if key in claim and claim[key] not in allowed and not a_point:
            raise SpecError(f"{where}: {key} is one of {', '.join(allowed)}")
    if "over_at" in claim and claim.get("at", "peaks") == "peaks":
        raise SpecError(f"{where}: over_at needs at, a point")
    if "than" in claim and not (isinstance(claim["than"], dict) and set(claim["than"]) == {"figure", "panel"}):
        raise SpecError(f"{where}: than is {{figure, panel}}")
    strange = [panel for panel in claim.get("panels", []) if panel not in figure.panels]
    strange += [name for name in [claim["of"], *baselines(claim)] if name not in figure.series]
    if strange:
        raise SpecError(f"{where}: the figure has no {', '.join(map(str, strange))}")


def _check_claim_values(where: str, claim: dict) -> None:
    no_numbers = [key for key in CLAIM_NUMBERS if key in claim and not is_number(claim[key])]
    if no_numbers:
        raise SpecError(f"{where}: {', '.join(no_numbers)} must be numbers")
    if is_number(claim.get("paper")) and claim["paper"] <= 0:
        raise SpecError(f"{where}: paper is a ratio above 0, or a text")
    for key in ("over", "panels"):
        value = claim.get(key, [""])
        names = value if isinstance(value, list) else [value]
        if not names or not all(isinstance(name, str) for name in names):
            raise SpecError(f"{where}: {key} names one or several")


def select_figures(words: list[str], series: dict[str, Series]) -> list[Figure]:
    """Figures that one of the words names: as a whole, else as part of the name; 'all' for those of the papers. Without
    words, the papers' and ours. Raises SpecError where a word fits none."""
    figures = [load_figure(path, series) for path in figure_paths()]
    if not words:
        return figures
    chosen = {figure.name for figure in figures if not figure.ours and "all" in words}
    for word in set(words) - {"all"}:
        named = _named(word, [figure.name for figure in figures])
        if not named:
            raise SpecError(f"no figure is called '{word}'; there are\n  " + "\n  ".join(f.name for f in figures))
        chosen |= set(named)
    return [figure for figure in figures if figure.name in chosen]


def _named(word: str, names: list[str]) -> list[str]:
    word = re.sub(r"(?i)\bfig(\d)(?!\d)", r"fig0\1", word)  # fig9
    whole = [name for name in names if word in (name, *name.split("/"))]
    return whole or [name for name in names if word and word in name]
