"""out/report.html: one file that holds the table, the plots, the host, its limits and how to read them.

Used by main_job.py. Plots are SVG in data URIs, drawn for light and for dark; nothing is fetched.
"""
from __future__ import annotations

import base64
import html
import os

import host
import plots
import stop
import summary
from cells import STEP_NAMES, cell_from_dict

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

HOW_TO_READ = (
    ("ack'd, exec'd", "Transactions per second that were acknowledged (durable, with all that they read from) and "
     "that were executed. Only acknowledged ones count as throughput."),
    ("of none", "Acknowledged throughput over that of the same concurrency control without a log: where both were "
     "measured in rounds, the median of the shares within a round. An exclamation mark: above 100 %, which no log "
     "gives; the scatter of the runs is larger than what the log costs."),
    ("look-ahead", "A worker prefetches what the calls behind the current one in its queue will need, as a server with "
     "queued requests can. With look-ahead 0 it does not: compare these figures with engines that take one transaction "
     "at a time."),
    ("of floor", "YCSB: over a bare loop on this host, with as many threads, that copies one random 1 KB row and "
     "overwrites another, prefetched; no index, no transactions. A limit of the memory, not a rival."),
    ("ack p50, p99", "Time from when a call is taken from its worker's queue to its acknowledgement, of the "
     "transactions that count as acknowledged: within the measured interval."),
    ("log B/txn, MB/s", "Bytes of the records of transactions that wrote; all bytes of the log per second. The short "
     "vertical mark beside a throughput (or recovery) bar is what the log device admits for records of that size "
     "when written (or read) alone."),
    ("recov.", "Transactions (and log bytes) per second of replay, reading and decoding included, loading the "
     "initial database and verifying excluded."),
    ("clean end, killed", "Checks that held after recovery. a: the state equals a second, single-threaded replay with "
     "its own parser on a fresh load. b: it equals the digest that the run took at its clean end. c: every "
     "acknowledged transaction was recovered (lost=0). d: the TPC-C consistency conditions. A killed run has no b, and "
     "a clean end of a run that continues none needs no a."),
)


def _escape(value) -> str:
    return html.escape(str(value))


def _results(rows: list[dict]) -> str:
    return _table(summary.summarise(rows), summary.COLUMNS, summary.cells_of_table)


def _commits(rows: list[dict]) -> str:
    logged = [item for item in summary.summarise(rows) if item.cell.logs and item.metrics("run")]
    return _table(logged, summary.COMMIT_COLUMNS, lambda item: [text(item) for _, _, text in summary.COMMIT_COLUMNS])


def _table(items: list, columns: tuple, texts_of) -> str:
    """A workload's name stands above its lines. What names a line (the first columns of text) heads its card where the
    window is narrow."""
    head = "".join(f'<th class="{"name" if i in summary.TEXT_COLUMNS else ""}">{_escape(a)}<br>{_escape(b)}</th>'
                   for i, (a, b, _) in enumerate(columns) if i > 0)
    lines, workload = [], ""
    for item in items:
        if item.cell.workload != workload:
            workload = item.cell.workload
            lines.append(f'<tr class="group"><td class="key" colspan="{len(columns) - 1}">{_escape(workload)}</td>'
                         "</tr>")
        cells = [_cell(i, f"{columns[i][0]} {columns[i][1]}".strip(), text)
                 for i, text in enumerate(texts_of(item)) if i > 0]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return (f'<div class="scroll"><table class="cards"><thead><tr>{head}</tr></thead>'
            f'<tbody>{"".join(lines)}</tbody></table></div>')


NAMING_COLUMNS = 3  # workload, concurrency control, log


def _cell(i: int, label: str, text: str) -> str:
    kind = "name" if i in summary.TEXT_COLUMNS else ""
    if text == "FAILED":
        kind += " bad"
    elif text.startswith("ok"):
        kind += " good"
    if i < NAMING_COLUMNS:
        return f'<td class="{kind} key">{_escape(text)}</td>'
    return f'<td class="{kind.strip()}" data-label="{_escape(label)}">{_escape(text)}</td>'


def _picture(rows: list[dict], metric: plots.Metric, workload: str) -> str:
    stop.check()
    images = {}
    for theme in ("light", "dark"):
        svg = plots.panel_svg(rows, metric, workload, theme)
        if svg is None:
            return ""
        images[theme] = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    alt = _escape(f"{workload}: {metric.title} (the table has the figures)")
    note = f'<figcaption class="soft small">{_escape(metric.mark)}</figcaption>' if metric.mark else ""
    return (f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{images["dark"]}">'
            f'<img alt="{alt}" src="{images["light"]}"></picture>{note}</figure>')


def _pairs(pairs) -> str:
    return "<dl>" + "".join(f"<dt>{_escape(k)}</dt><dd>{_escape(v)}</dd>" for k, v in pairs) + "</dl>"


def _gib(value) -> str:
    return f"{float(value) / (1 << 30):.1f} GiB"


def _device_words(directory: dict) -> str:
    """Of an emulated one: its name and figures."""
    device = directory.get("emulation")
    if device is None:
        return ""
    rate = f"{device['bytes_per_second'] / 1e6:g} MB/s" if device["bytes_per_second"] else "no limit of bandwidth"
    return (f" {device['profile']}: {rate}, flush {device['flush_us']:g} us, seek {device['seek_us']:g} us, "
            f"depth {device['queue_depth']}")


def _host_section(rows: list[dict]) -> str:
    described = next((row for row in rows if row.get("step") == "host"), {})
    environment = next((row["record"].get("environment", {}) for row in rows if row.get("record")), {})
    pairs = [("Processor", f"{environment.get('cpu') or described.get('cpu', '?')}, "
                           f"{environment.get('cores') or described.get('cores', '?')} cores")]
    if described:
        pairs += [("Memory", _gib(described["memory_bytes"])),
                  ("Virtual machine", "yes" if described["virtualised"] else "no sign of one"),
                  ("Log directory", f"{described['log_dir']} ({described['file_system']}, {described['log_device']})"),
                  ("Time", described["time"])]
    for key, name in (("kernel", "Kernel"), ("virtualisation", "Virtualisation"), ("governor", "Governor"),
                      ("numa_nodes", "NUMA nodes"), ("huge_pages", "Huge pages"), ("compiler", "Compiler"),
                      ("flags", "Flags"), ("allocator", "Allocator"), ("commit", "Commit")):
        if environment.get(key) not in (None, ""):
            pairs.append((name, environment[key]))
    for directory in environment.get("log_directories", []):
        pairs.append(("Log I/O", f"{directory.get('io_engine')} on {directory.get('file_system')} "
                                 f"({directory.get('kind')}{_device_words(directory)})"))
    return _pairs(pairs)


def _limits_section(rows: list[dict]) -> str:
    row = next((row for row in rows if row.get("step") == "limits"), None)
    if row is None:
        return '<p class="soft">Not measured.</p>'
    if not row["limits"]:
        return f'<p class="bad">Could not be measured: {_escape(row["why"])}</p>'
    lines = "".join(f'<tr><td class="name">{_escape(what)}</td><td class="name">{_escape(how)}</td>'
                    f"<td>{_escape(value)}</td></tr>" for what, how, value in host.limits_table(rows))
    return ('<div class="scroll"><table class="words"><thead><tr><th class="name">limit</th><th class="name">how</th>'
            f"<th>value</th></tr></thead><tbody>{lines}</tbody></table></div>")


def _configuration_section(rows: list[dict]) -> str:
    """Switches that all runs share, then per cell the ones in which it differs."""
    runs = [row for row in rows if row.get("step") in ("run", "round") and row.get("record", {}).get("config")]
    if not runs:
        return '<p class="soft">No run left a record.</p>'
    configurations = [row["record"]["config"] for row in runs]
    names = list(dict.fromkeys(name for c in configurations for name in c))
    shared = [n for n in names if len({str(c.get(n)) for c in configurations}) == 1]
    parts = [_pairs((n, configurations[0][n]) for n in shared)]
    for row, configuration in zip(runs, configurations):
        own = [f"{n}={configuration[n]}" for n in configuration if n not in shared]
        parts.append(f"<details><summary>{_escape(cell_from_dict(row['cell']).label)}</summary>"
                     f"<pre>{_escape(chr(10).join(own))}</pre></details>")
    return "".join(parts)


def _matrix_section(rows: list[dict]) -> str:
    matrix = next((row["matrix"] for row in rows if row.get("step") == "pairs"), None)
    if not matrix:
        return '<p class="soft">Not known.</p>'
    head = "".join(f'<th class="name">{_escape(control)}</th>' for control in ("", *matrix["controls"]))
    lines = {"ISOLATION_LEVEL": matrix["levels"], **matrix["lines"]}
    body = "".join(f'<tr><td class="name key">{_escape(name)}</td>'
                   + "".join(f'<td class="name" data-label="{_escape(control)}">{_escape(cell)}</td>'
                             for control, cell in zip(matrix["controls"], cells)) + "</tr>"
                   for name, cells in lines.items())
    reasons = "".join(f"<li>{_escape(reason)}</li>" for reason in matrix["reasons"])
    return (f'<div class="scroll"><table class="cards"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
            f"<ol>{reasons}</ol>")


def _commands_section(rows: list[dict]) -> str:
    lines = []
    for row in rows:
        if "cell" in row and row.get("command"):
            lines.append(f"# {cell_from_dict(row['cell']).label}: {STEP_NAMES[row['step']]}\n{row['command']}")
    return f"<pre>{_escape(chr(10).join(lines))}</pre>"


def _repeated(rows: list[dict]) -> str:
    lines = summary.repeated(rows)
    if not lines:
        return ""
    head = "".join(f'<th class="name">{_escape(text)}</th>' for text in summary.REPEATED_HEADINGS)
    body = "".join("<tr>" + "".join(f'<td class="name">{_escape(text)}</td>' for text in line) + "</tr>"
                   for line in lines)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _failures(rows: list[dict]) -> str:
    failed = [row for row in rows if row.get("status") == "failed"]
    if not failed:
        return ""
    parts = []
    for row in failed:
        name = cell_from_dict(row["cell"]).label + ": " if "cell" in row else ""
        parts.append(f'<p class="bad">{_escape(name + STEP_NAMES.get(row["step"], row["step"]))} failed: '
                     f'{_escape(row["why"])}</p><pre>{_escape(row.get("command", ""))}</pre>')
    return "<h2>What failed</h2>" + "".join(parts)


def write_report(rows: list[dict], path: str) -> None:
    steps = [row for row in rows if "cell" in row]
    good = sum(1 for row in steps if row["status"] == "ok")
    recoveries = [row for row in steps if row["step"] in ("recover", "crash_recover")]
    verified = sum(1 for row in recoveries if row["status"] == "ok")
    notes = "".join(f"<li>{_escape(line.removeprefix('note: '))}</li>" for line in summary.notes(rows))
    pictures = "".join(_picture(rows, metric, workload)
                       for metric in plots.METRICS for workload in plots.workloads_of(rows))
    reading = "".join(f"<dt>{_escape(k)}</dt><dd>{_escape(v)}</dd>" for k, v in HOW_TO_READ)
    state = "good" if good == len(steps) else "bad"
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>DBx1000-Durable: run, crash, recover, verify</title><style>{STYLE}</style></head><body>
<h1>DBx1000-Durable: run, crash, recover, verify</h1>
<p class="{state}">{good} of {len(steps)} steps succeeded; {verified} of {len(recoveries)} recoveries verified.</p>
{_failures(rows)}
<ul class="notes">{notes}</ul>
<h2>Plots</h2>
<p class="soft">A colour and a marker belong to one log scheme in every plot; NO_WAIT is solid, any other concurrency
control hatched or hollow. Dashed lines and short vertical marks are limits of this host.</p>
<div class="plots">{pictures}</div>
<h2>Results</h2>{_results(rows)}
{_repeated(rows)}
<h2>What a commit costs</h2>{_commits(rows)}
<p class="soft">Bytes of a logged transaction: its record, of which so much is the same for every record; and shared out over all
of them what was reserved in vain, filled up, and written by the log itself. Then where the time goes, by samples: until it
has its place in the log, until its record is complete, until that is durable, until what it depends on is.</p>
<h2>How to read this</h2><dl>{reading}</dl>
<h2>The host</h2>{_host_section(rows)}
<h2>The host's limits, measured before the runs</h2>{_limits_section(rows)}
<h2>Effective configuration</h2>{_configuration_section(rows)}
<h2>The pairs of this build</h2>
<p class="soft">What each concurrency control runs with; a number is the reason, below, why it does not.</p>
{_matrix_section(rows)}
<h2>Commands</h2><details><summary>every command line of this job</summary>{_commands_section(rows)}</details>
</body></html>
"""
    temporary = path + ".new"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(page)
    os.replace(temporary, path)
