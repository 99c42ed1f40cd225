"""report.html of an experiment: per figure its plot, the paper's claims beside ours, and how its series differ."""
from __future__ import annotations

from collections import Counter

from experiment import claims, drawing, modelled, origin, page
from experiment.data import FigureData
from experiment.spec import Series

TONE = {claims.HOLDS: "good", claims.SHAPE: "good", claims.CONTRADICTED: "bad", claims.UNKNOWN: "soft"}
PAPERS = {"taurus": "Taurus (Xia et al., PVLDB 14(2), 2021)", "eleda": "ELEDA (Jung et al., PVLDB 11(2), 2017)",
          "differential": "Differential logging (Lee, Kim, Cha, ICDE 2001)",
          "write_behind": "Write-behind logging (Arulraj, Perron, Pavlo, PVLDB 10(4), 2016)",
          "taurus_mm": "Taurus MM (Depoutovitch et al., PVLDB 16(12), 2023)"}


def _pictures(data: FigureData, series: dict[str, Series], caption: str) -> str:
    """A picture for each panel, so that a narrow window has them below each other."""
    pictures = "".join(page.picture(lambda theme, panel=panel: drawing.panel_svg(data, series, panel, theme),
                                    f"{data.figure.heading}, {panel} (the CSV file has the points)")
                       for panel in data.figure.panels)
    return f'<div class="plots">{pictures}</div>{page.paragraph(caption, "soft small")}'


def _claims_table(data: FigureData, verdicts: list[claims.Verdict]) -> str:
    """The modelled ratio, where the figure has modelled lines, stands beside the paper's and has no part in a verdict."""
    lines = [[v.claim, v.paper, v.ours, (": ".join(filter(None, (v.text, v.why))), TONE[v.verdict])] for v in verdicts]
    headings = ["claim", "paper", "ours", "verdict"]
    if data.modelled.lines:
        headings.append("modelled, no verdict")
        for line, claim in zip(lines, data.figure.claims):
            line.append((modelled.beside(data, claim) or "-", "soft"))
    return page.table(headings, lines, kind="words") if lines else ""


def configurations(data: FigureData) -> dict[str, list[dict]]:
    """Of all runs, by series."""
    by_series: dict[str, list[dict]] = {}
    for (_, name), line in data.lines.items():
        by_series.setdefault(name, []).extend(row["record"].get("config", row["record"].get("configuration", {})) for row in line.rows)
    return by_series


def _differences(data: FigureData, series: dict[str, Series]) -> str:
    shared, own, changing = page.configuration_difference(configurations(data))
    paragraphs = [page.own_lines({series[name].label: values for name, values in own.items()}, changing),
                  [f"{key}={value}" for key, value in sorted(shared.items())]]
    return page.details("how the series differ, what changes from run to run, and what all share",
                        ["\n\n".join("\n".join(lines) for lines in paragraphs if lines)])


def _section(data: FigureData, series: dict[str, Series], verdicts: list[claims.Verdict], caption: str) -> str:
    figure = data.figure
    anchor = figure.name.replace("/", "-")
    missing = "".join(page.paragraph(gap, "soft" if gap.excused else "bad") for gap in data.gaps.values())
    missing += "".join(page.paragraph(f"no modelled series: {why}") for why in data.modelled.missing)
    failures = "".join(page.failure(f"failed: {row['why']}", row["command"]) for row in data.failures)
    whose = "" if figure.ours else PAPERS.get(figure.paper, figure.paper).split(" (")[0] + ": "
    return (f'<h2 id="{anchor}">{page.escape(whose)}{page.escape(figure.heading)}</h2>'
            f"{page.paragraph(figure.section)}{missing}{failures}{_pictures(data, series, caption)}"
            f"{page.paragraph(figure.note)}{_claims_table(data, verdicts)}{_differences(data, series)}")


def _origin(rows: list[dict]) -> str:
    """Whose figures these are, in the page's head."""
    hosts, commits = origin.hosts_of(rows), origin.commits_of(rows)
    if not hosts:
        return ""
    measured = f"Measured on {'; '.join(map(str, hosts))}; commit {', '.join(commits)}."
    return page.paragraph(measured, "") + "".join(page.paragraph(warning, "bad") for warning in origin.warnings(rows))


def _counted(verdicts: list[claims.Verdict]) -> str:
    counts = Counter(v.verdict for v in verdicts)
    return ", ".join(f"{counts[name]} {name}" for name in TONE if counts[name])


def write_page(path: str, collected: list[tuple[FigureData, list[claims.Verdict], str]], series: dict[str, Series],
               heading: str) -> None:
    counted = _counted([v for _, verdicts, _ in collected for v in verdicts])
    contents = "".join(f'<li><a href="#{data.figure.name.replace("/", "-")}">{page.escape(data.figure.name)}</a>: '
                       f"{page.escape(_counted(verdicts) or 'no claim')}</li>" for data, verdicts, _ in collected)
    sections = "".join(_section(data, series, verdicts, caption) for data, verdicts, caption in collected)
    rows = [row for data, _, _ in collected for row in data.rows()]
    page.write(path, "DBx1000-Durable: the papers' figures", f"""\
{page.paragraph(heading, "")}{_origin(rows)}{page.paragraph(f"Of the claims: {counted or 'none'}.", "")}
<p class="soft">A claim holds where our ratio reaches nine tenths of the paper's (of its logarithm), or the line goes as
the paper says; it has the same shape where the same scheme is ahead. What lies within 5 % of equal, interval and all,
decides nothing; without an interval, within 15 %. A line is inverse where y times x differs by no more than a factor
of {claims.INVERSE:g}, interval and all, or 15 % more than what single runs say; a share holds where it is above or
below the limit that the claim gives. Absolute figures are those of other machines and are not compared.</p>
<ul class="notes">{contents}</ul>{sections}
<h2>The host{"s" * (len(origin.hosts_of(rows)) > 1)}</h2>{page.definitions(page.host_pairs(rows))}""")
