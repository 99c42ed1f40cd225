"""The parts of every report.html: one file that fetches nothing; plots are SVG in data URIs, for light and for dark.

cells_page.py puts the main job's page together from them, figures_page.py that of the figures. Texts are escaped here.
"""
from __future__ import annotations

import base64
import html
import os
from collections import Counter
from typing import Callable, Container, Iterable, Sequence

import stop

STYLE = """
:root { color-scheme: light dark; --text: #1c1c1c; --soft: #5e5e5e; --line: #d9d9d9; --page: #fff; --card: #f5f6f8;
  --bad: #b3261e; --good: #1b6e3c; }
@media (prefers-color-scheme: dark) { :root { --text: #ececec; --soft: #a8a8a8; --line: #3a3d42; --page: #1b1d21;
  --card: #25282d; --bad: #ff8a80; --good: #7fd6a0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 76rem; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
p { max-width: 50rem; } .soft { color: var(--soft); } .bad { color: var(--bad); font-weight: 600; }
.good { color: var(--good); }
.scroll { overflow-x: auto; } .small { font-size: .8rem; max-width: none; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .45rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; } .name { text-align: left; }
tr.group td { text-align: left; font-weight: 600; padding-top: .8rem; border-bottom: 2px solid var(--soft); }
.words td { white-space: normal; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)); gap: 1.2rem; }
.plots img { width: 100%; height: auto; display: block; } figure { margin: 0; max-width: 40rem; }
ul.notes { background: var(--card); border-radius: .5rem; padding: .7rem 1rem .7rem 2rem; max-width: 60rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; font-size: .875rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
pre, code { font: .8rem/1.45 ui-monospace, "DejaVu Sans Mono", monospace; }
pre { background: var(--card); border-radius: .5rem; padding: .7rem 1rem; overflow-x: auto; }
/* Names of figures and paths in failures are longer than a phone is wide. */
a { color: inherit; } p, li, h2, summary { overflow-wrap: anywhere; }
details { margin: .5rem 0; } summary { cursor: pointer; }
/* Too narrow for all columns: each line of a table is a card that has its figures below their names. */
@media (max-width: 70rem) {
  .cards, .cards tbody { display: block; } .cards thead { display: none; }
  .cards tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(5.4rem, 1fr)); gap: .1rem .5rem;
    padding: .5rem 0; border-bottom: 1px solid var(--line); }
  .cards.words tr { grid-template-columns: 1fr; }
  .cards td { border: 0; padding: 0; text-align: left; white-space: normal; overflow-wrap: anywhere; }
  .cards td.key { font-weight: 600; grid-column: 1 / -1; }
  .cards td[data-label]::before { content: attr(data-label); display: block; color: var(--soft); font-size: .75rem;
    font-weight: 400; }
}
@media (max-width: 40rem) { body { padding: .8rem; } dl { grid-template-columns: 1fr; } dd { margin-bottom: .3rem; } }
"""


def escape(value) -> str:
    return html.escape(str(value))


def paragraph(text, kind: str = "soft") -> str:
    name = f' class="{kind}"' if kind else ""
    return f"<p{name}>{escape(text)}</p>" if text else ""


def failure(why: str, command: str) -> str:
    return paragraph(why, "bad") + f"<pre>{escape(command)}</pre>"


def details(summary: str, lines: Iterable[str]) -> str:
    return f"<details><summary>{escape(summary)}</summary><pre>{escape(chr(10).join(lines))}</pre></details>"


def definitions(pairs: Iterable[tuple]) -> str:
    """Of names and their values: a list's stand below each other."""
    def text(value):
        return "<br>".join(map(escape, value)) if isinstance(value, list) else escape(value)
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{text(value)}</dd>" for name, value in pairs) + "</dl>"


def table(headings: Sequence[str], lines: Iterable, keys: int = 1, texts: Container[int] = range(99),
          kind: str = "") -> str:
    """A line is a list of cells, each a text or (text, tone); or a text, which heads the lines below it. The first
    `keys` columns name a line: they head its card where the window is narrow. `texts`: columns that hold no figures."""
    names = [' class="name"' if i in texts else "" for i in range(len(headings))]
    head = "".join(f"<th{name}>{escape(text).replace(chr(10), '<br>')}</th>" for name, text in zip(names, headings))
    body = "".join(f'<tr class="group"><td class="key" colspan="{len(headings)}">{escape(line)}</td></tr>'
                   if isinstance(line, str) else
                   f"<tr>{''.join(_cell(headings[i], cell, i < keys, i in texts) for i, cell in enumerate(line))}</tr>"
                   for line in lines)
    return (f'<div class="scroll"><table class="{f"cards {kind}".strip()}"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>")


def _cell(heading: str, cell, key: bool, is_text: bool) -> str:
    text, tone = cell if isinstance(cell, tuple) else (cell, "")
    kind = " ".join(["name"] * is_text + ["key"] * key + [tone] * bool(tone))
    label = "" if key else f' data-label="{escape(heading.replace(chr(10), " ").strip())}"'
    return f'<td class="{kind}"{label}>{escape(text)}</td>'


def picture(svg_of: Callable[[str], str], alt: str, note: str = "") -> str:
    """`svg_of`: draws it for a theme. `note` stands below it."""
    images = {}
    for theme in ("light", "dark"):
        stop.check()
        images[theme] = "data:image/svg+xml;base64," + base64.b64encode(svg_of(theme).encode()).decode()
    caption = f'<figcaption class="soft small">{escape(note)}</figcaption>' if note else ""
    return (f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{images["dark"]}">'
            f'<img alt="{escape(alt)}" src="{images["light"]}"></picture>{caption}</figure>')


HOST_NAMES = {"cpu": "Processor", "cores": "Cores", "memory_bytes": "Memory", "kernel": "Kernel",
              "virtualisation": "Virtualisation", "governor": "Governor", "numa_nodes": "NUMA nodes",
              "huge_pages": "Huge pages", "compiler": "Compiler", "flags": "Flags", "allocator": "Allocator",
              "commit": "Commit", "dirty": "Uncommitted changes"}


def host_pairs(rows: Iterable[dict]) -> list[tuple[str, list[str]]]:
    """What the records say of their host and build, for definitions(): all values, the commonest first."""
    environments = [row["record"]["environment"] for row in rows if row.get("record", {}).get("environment")]
    counts = {name: Counter(_host_text(name, environment[name]) for environment in environments if name in environment)
              for name in HOST_NAMES}
    return [(HOST_NAMES[name], texts) for name, count in counts.items()
            if (texts := [text for text, _ in count.most_common() if text])]


def _host_text(name: str, value) -> str:
    if name == "memory_bytes":
        return f"{float(value) / (1 << 30):.1f} GiB"
    return ("yes" if value else "no") if name == "dirty" else str(value)


OF_ONE_RUN = ("LOG_DIR", "JSON_FILE", "SEED")


def configuration_difference(configs_of: dict[str, list[dict]]) -> tuple[dict, dict[str, dict], dict]:
    """Of the effective configurations of all runs, by series or cell: what all share; by name what is its own; and what
    changes within a name, with its values."""
    configs_of = {name: configs for name, configs in configs_of.items() if configs}
    shared: dict[str, str] = {}
    changing: dict[str, str] = {}
    own: dict[str, dict[str, str]] = {name: {} for name in configs_of}
    switches = dict.fromkeys(key for configs in configs_of.values() for config in configs for key in config)
    for key in (switch for switch in switches if switch not in OF_ONE_RUN):
        values = {name: list(dict.fromkeys(str(config.get(key)) for config in configs))
                  for name, configs in configs_of.items()}
        every = list(dict.fromkeys(value for of_one in values.values() for value in of_one))
        if len(every) == 1:
            shared[key] = every[0]
        elif any(len(of_one) > 1 for of_one in values.values()):
            changing[key] = ", ".join(every)
        else:
            for name, of_one in values.items():
                own[name][key] = of_one[0]
    return shared, own, changing


def own_lines(own: dict[str, dict], changing: dict) -> list[str]:
    lines = [f"{name}: " + ", ".join(f"{key}={value}" for key, value in values.items()) for name, values in own.items()]
    return lines + [""] * bool(changing) + [f"from run to run: {key}={values}" for key, values in changing.items()]


def write(path: str, title: str, body: str) -> None:
    """All of it or, where that fails, nothing."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write('<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
                   '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
                   f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n"
                   f"{body}\n</body></html>\n")
    os.replace(path + ".new", path)
