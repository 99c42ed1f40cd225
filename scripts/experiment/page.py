"""report.html of an experiment: per figure its plot, the paper's claims beside ours, and how its series differ."""
from __future__ import annotations

import base64
import html
import os
from collections import Counter

import stop
from report import STYLE

from experiment import claims, drawing, origin
from experiment.data import FigureData
from experiment.spec import Series

TONE = {claims.HOLDS: "good", claims.SHAPE: "good", claims.CONTRADICTED: "bad", claims.UNKNOWN: "soft"}
PAPERS = {"taurus": "Taurus (Xia et al., PVLDB 14(2), 2021)", "eleda": "ELEDA (Jung et al., PVLDB 11(2), 2017)"}

OF_ONE_RUN = ("LOG_DIR", "JSON_FILE", "SEED")

# Names of figures and paths in failures are longer than a phone is wide.
LONG_WORDS = "a { color: inherit; } p, li, h2, summary { overflow-wrap: anywhere; }"


def _escape(value) -> str:
    return html.escape(str(value))


def _pictures(data: FigureData, series: dict[str, Series], caption: str) -> str:
    """A picture for each panel, so that a narrow window has them below each other."""
    pictures = "".join(_picture(data, series, panel) for panel in data.figure.panels)
    return f'<div class="plots">{pictures}</div><p class="soft small">{_escape(caption)}</p>'


def _picture(data: FigureData, series: dict[str, Series], panel: str) -> str:
    stop.check()
    images = {}
    for theme in ("light", "dark"):
        svg = drawing.panel_svg(data, series, panel, theme)
        images[theme] = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    alt = _escape(f"{data.figure.heading}, {panel} (the CSV file has the points)")
    return (f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{images["dark"]}">'
            f'<img alt="{alt}" src="{images["light"]}"></picture></figure>')


def _claims_table(verdicts: list[claims.Verdict]) -> str:
    if not verdicts:
        return ""
    lines = "".join(
        f'<tr><td class="name key">{_escape(v.claim)}</td><td class="name" data-label="paper">{_escape(v.paper)}</td>'
        f'<td class="name" data-label="ours">{_escape(v.ours)}</td>'
        f'<td data-label="verdict" class="name {TONE[v.verdict]}">{_escape(v.text)}'
        f'{": " + _escape(v.why) if v.why else ""}</td></tr>' for v in verdicts)
    return ('<div class="scroll"><table class="cards words"><thead><tr><th class="name">claim</th>'
            '<th class="name">paper</th><th class="name">ours</th>'
            f'<th class="name">verdict</th></tr></thead><tbody>{lines}</tbody></table></div>')


def configuration_difference(data: FigureData) -> tuple[dict[str, str], dict[str, dict[str, str]], dict[str, str]]:
    """Of the effective configurations of all runs: what all share; per series what is its own; and what changes within
    a series, from point to point or panel to panel, with its values."""
    by_series: dict[str, list[dict]] = {}
    for (_, name), line in data.lines.items():
        by_series.setdefault(name, []).extend(row["record"].get("config", {}) for row in line.rows)
    by_series = {name: configs for name, configs in by_series.items() if configs}
    shared: dict[str, str] = {}
    changing: dict[str, str] = {}
    own: dict[str, dict[str, str]] = {name: {} for name in by_series}
    names = dict.fromkeys(key for configs in by_series.values() for config in configs for key in config)
    for key in (name for name in names if name not in OF_ONE_RUN):
        values = {name: list(dict.fromkeys(str(config.get(key)) for config in configs))
                  for name, configs in by_series.items()}
        every = list(dict.fromkeys(value for of_one in values.values() for value in of_one))
        if len(every) == 1:
            shared[key] = every[0]
        elif any(len(of_one) > 1 for of_one in values.values()):
            changing[key] = ", ".join(every)
        else:
            for name, of_one in values.items():
                own[name][key] = of_one[0]
    return shared, own, changing


def _differences(data: FigureData, series: dict[str, Series]) -> str:
    shared, own, changing = configuration_difference(data)
    paragraphs = [[f"{series[name].label}: " + ", ".join(f"{k}={v}" for k, v in values.items())
                   for name, values in own.items()],
                  [f"from run to run: {key}={values}" for key, values in changing.items()],
                  [f"{key}={value}" for key, value in sorted(shared.items())]]
    text = "\n\n".join("\n".join(lines) for lines in paragraphs if lines)
    return ("<details><summary>how the series differ, what changes from run to run, and what all share</summary>"
            f"<pre>{_escape(text)}</pre></details>")


def _failures(data: FigureData) -> str:
    return "".join(f'<p class="bad">failed: {_escape(row["why"])}</p><pre>{_escape(row["command"])}</pre>'
                   for row in data.failures)


def _section(data: FigureData, series: dict[str, Series], verdicts: list[claims.Verdict], caption: str) -> str:
    figure = data.figure
    anchor = figure.name.replace("/", "-")
    missing = "".join(f'<p class="{"soft" if gap.excused else "bad"}">{_escape(gap)}</p>'
                      for gap in data.gaps.values())
    note = f'<p class="soft">{_escape(figure.note)}</p>' if figure.note else ""
    whose = "" if figure.ours else PAPERS.get(figure.paper, figure.paper).split(" (")[0] + ": "
    return (f'<h2 id="{anchor}">{_escape(whose)}{_escape(figure.heading)}</h2>'
            f'<p class="soft">{_escape(figure.section)}</p>{missing}{_failures(data)}'
            f"{_pictures(data, series, caption)}{note}{_claims_table(verdicts)}{_differences(data, series)}")


def _host(rows: list[dict]) -> str:
    """All values that the rows have, the commonest first."""
    environments = [row["record"]["environment"] for row in rows if row["record"].get("environment")]
    names = ("cpu", "cores", "memory_bytes", "kernel", "virtualisation", "governor", "numa_nodes", "huge_pages",
             "compiler", "flags", "allocator", "commit", "dirty")
    pairs = ""
    for name in names:
        values = Counter(str(environment[name]) for environment in environments if name in environment)
        lines = "<br>".join(_escape(value) for value, _ in values.most_common())
        pairs += f"<dt>{name}</dt><dd>{lines}</dd>" if values else ""
    return f"<dl>{pairs}</dl>"


def _origin(rows: list[dict]) -> str:
    """Whose figures these are, in the page's head."""
    hosts, commits = origin.hosts_of(rows), origin.commits_of(rows)
    if not hosts:
        return ""
    named = "; ".join(map(str, hosts))
    warned = "".join(f'<p class="bad">{_escape(warning)}</p>' for warning in origin.warnings(rows))
    return f'<p>Measured on {_escape(named)}; commit {_escape(", ".join(commits))}.</p>{warned}'


def _counted(verdicts: list[claims.Verdict]) -> str:
    counts = Counter(v.verdict for v in verdicts)
    return ", ".join(f"{counts[name]} {name}" for name in TONE if counts[name])


def write_page(path: str, collected: list[tuple[FigureData, list[claims.Verdict], str]], series: dict[str, Series],
               heading: str) -> None:
    summary = _counted([v for _, verdicts, _ in collected for v in verdicts])
    contents = "".join(f'<li><a href="#{data.figure.name.replace("/", "-")}">{_escape(data.figure.name)}</a>: '
                       f"{_escape(_counted(verdicts) or 'no claim')}</li>" for data, verdicts, _ in collected)
    sections = "".join(_section(data, series, verdicts, caption) for data, verdicts, caption in collected)
    rows = [row for data, _, _ in collected for row in data.rows()]
    text = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>DBx1000-Durable: the papers' figures</title><style>{STYLE} {LONG_WORDS}</style></head><body>
<h1>DBx1000-Durable: the papers' figures</h1>
<p>{_escape(heading)}</p>{_origin(rows)}<p>Of the claims: {_escape(summary or "none")}.</p>
<p class="soft">A claim holds where our ratio reaches nine tenths of the paper's (of its logarithm), or the line goes as
the paper says; it has the same shape where the same scheme is ahead. What lies within 5 % of equal, interval and all,
decides nothing; without an interval, within 15 %. A line is inverse where y times x differs by no more than a factor
of {claims.INVERSE:g}, interval and all, or 15 % more than what single runs say; a share holds where it is above or below the limit that the claim gives. Absolute figures are
those of other machines and are not compared.</p>
<ul class="notes">{contents}</ul>{sections}
<h2>The host{"s" * (len(origin.hosts_of(rows)) > 1)}</h2>{_host(rows)}
</body></html>
"""
    temporary = path + ".new"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)
