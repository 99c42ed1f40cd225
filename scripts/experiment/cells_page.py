"""report.html of the main job: the table, the plots, the host, its limits and how to read them.

Used by main_job.py.
"""
from __future__ import annotations

import host
from experiment import bars, page, summary
from experiment.cells import STEPS, cell_from_dict

NAMING_COLUMNS = 2  # concurrency control and log: a workload's name stands above its lines

HOW_TO_READ = (
    ("ack'd, exec'd", "Transactions per second that were acknowledged (durable, with all that they read from) and "
     "that were executed. Only acknowledged ones count as throughput."),
    ("of none", "Acknowledged throughput over that of the same concurrency control without a log: where both were "
     "measured in rounds, the median of the shares within a round. An exclamation mark: above 100 %, which no log "
     "gives; the scatter between runs exceeds the cost of the log."),
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

def _results(rows: list[dict]) -> str:
    return _table(summary.summarise(rows), summary.COLUMNS, summary.cells_of_table)


def _commits(rows: list[dict]) -> str:
    logged = [item for item in summary.summarise(rows) if item.cell.logs and item.metrics("run")]
    return _table(logged, summary.COMMIT_COLUMNS, lambda item: [text(item) for _, _, text in summary.COMMIT_COLUMNS])


def _table(items: list, columns: tuple, texts_of) -> str:
    lines, workload = [], ""
    for item in items:
        if item.cell.workload != workload:
            workload = item.cell.workload
            lines.append(workload)
        lines.append([(text, _tone(text)) for text in texts_of(item)[1:]])
    return page.table([f"{first}\n{second}" for first, second, _ in columns[1:]], lines, NAMING_COLUMNS,
                      [i - 1 for i in summary.TEXT_COLUMNS])


def _tone(text: str) -> str:
    return "bad" if text == "FAILED" else "good" if text.startswith("ok") else ""


def _pictures(rows: list[dict]) -> str:
    return "".join(page.picture(lambda theme, m=metric, w=workload: bars.panel_svg(rows, m, w, theme),
                                f"{workload}: {metric.title} (the table has the figures)", metric.mark)
                   for metric in bars.METRICS for workload in bars.workloads_of(rows)
                   if bars.items_of(rows, metric, workload))


def _device_words(directory: dict) -> str:
    """Of an emulated one: its name and figures."""
    device = directory.get("emulation")
    if device is None:
        return ""
    rate = f"{device['bytes_per_second'] / 1e6:g} MB/s" if device["bytes_per_second"] else "no limit of bandwidth"
    channel = device.get("channel_bytes_per_second", 0)  # records of older builds know of none
    return (f" {device['profile']}: {rate}, flush {device['flush_us']:g} us, seek {device['seek_us']:g} us, "
            f"depth {device['queue_depth']}" + (f", one channel {channel / 1e6:g} MB/s" if channel else ""))


def _host_section(rows: list[dict]) -> str:
    described = next((row for row in rows if row.get("step") == "host"), {})
    pairs = dict(page.host_pairs([{"record": {"environment": described}}]))
    pairs.update(page.host_pairs(rows))
    if described:
        pairs["Virtual machine"] = "yes" if described["virtualised"] else "no sign of one"
        pairs["Log directory"] = f"{described['log_dir']} ({described['file_system']}, {described['log_device']})"
        pairs["Time"] = described["time"]
    environment = next((row["record"].get("environment", {}) for row in rows if row.get("record")), {})
    pairs["Log I/O"] = [f"{directory.get('io_engine')} on {directory.get('file_system')} "
                        f"({directory.get('kind')}{_device_words(directory)})"
                        for directory in environment.get("log_directories", [])]
    return page.definitions((name, value) for name, value in pairs.items() if value)


def _limits_section(rows: list[dict]) -> str:
    row = next((row for row in rows if row.get("step") == "limits"), None)
    if row is None:
        return page.paragraph("Not measured.")
    if not row["limits"]:
        return page.paragraph(f"Could not be measured: {row['why']}", "bad")
    return page.table(["limit", "how", "value"], host.limits_table(rows), texts=(0, 1), kind="words")


def _configuration_section(rows: list[dict]) -> str:
    """Switches that all runs share, then the ones in which cells and runs differ."""
    configs: dict[str, list[dict]] = {item.cell.label: [] for item in summary.summarise(rows)}
    for row in rows:
        if row.get("step") in ("run", "round") and row.get("record", {}).get("config"):
            configs[cell_from_dict(row["cell"]).label].append(row["record"]["config"])
    if not any(configs.values()):
        return page.paragraph("No run left a record.")
    shared, own, changing = page.configuration_difference(configs)
    return page.definitions(shared.items()) + page.details("how the cells differ, and what changes from run to run",
                                                           page.own_lines(own, changing))


def _matrix_section(rows: list[dict]) -> str:
    matrix = next((row["matrix"] for row in rows if row.get("step") == "pairs"), None)
    if not matrix:
        return page.paragraph("Not known.")
    lines = {"ISOLATION_LEVEL": matrix["levels"], **matrix["lines"]}
    reasons = "".join(f"<li>{page.escape(reason)}</li>" for reason in matrix["reasons"])
    table = page.table(["", *matrix["controls"]], [[name, *cells] for name, cells in lines.items()])
    return f"{table}<ol>{reasons}</ol>"


def _commands_section(rows: list[dict]) -> str:
    return page.details("every command line of this job", (
        f"# {_step_name(row)}\n{row['command']}" for row in rows if "cell" in row and row.get("command")))


def _step_name(row: dict) -> str:
    name = cell_from_dict(row["cell"]).label + ": " if "cell" in row else ""
    return name + (STEPS[row["step"]].name if row["step"] in STEPS else row["step"])


def _repeated(rows: list[dict]) -> str:
    lines = summary.repeated(rows)
    return page.table(summary.REPEATED_HEADINGS, lines) if lines else ""


def _failures(rows: list[dict]) -> str:
    failed = [row for row in rows if row.get("status") == "failed"]
    return "<h2>What failed</h2>" * bool(failed) + "".join(
        page.failure(f"{_step_name(row)} failed: {row['why']}", row.get("command", "")) for row in failed)


def write_report(rows: list[dict], path: str) -> None:
    steps = [row for row in rows if "cell" in row]
    good = sum(1 for row in steps if row["status"] == "ok")
    recoveries = [row for row in steps if row["step"] in ("recover", "crash_recover")]
    verified = sum(1 for row in recoveries if row["status"] == "ok")
    notes = "".join(f"<li>{page.escape(line.removeprefix('note: '))}</li>" for line in summary.notes(rows))
    counts = f"{good} of {len(steps)} steps succeeded; {verified} of {len(recoveries)} recoveries verified."
    page.write(path, "DBx1000-Durable: run, crash, recover, verify", f"""\
{page.paragraph(counts, "good" if good == len(steps) else "bad")}
{_failures(rows)}
<ul class="notes">{notes}</ul>
<h2>Plots</h2>
<p class="soft">A colour and a marker belong to one log scheme in every plot; NO_WAIT is solid, any other concurrency
control hatched or hollow. Dashed lines and short vertical marks are limits of this host.</p>
<div class="plots">{_pictures(rows)}</div>
<h2>Results</h2>{_results(rows)}
{_repeated(rows)}
<h2>What a commit costs</h2>{_commits(rows)}
<p class="soft">Bytes of a logged transaction: its record, with the part that every record has; then VOIDs (records of
aborted transactions), padding, and the log's own records, divided by the transactions. Then its time to
acknowledgement, sampled: until it has its place in the log, until its record is complete, until the record is durable,
and until all that it depends on is durable.</p>
<h2>How to read this</h2>{page.definitions(HOW_TO_READ)}
<h2>The host</h2>{_host_section(rows)}
<h2>The host's limits, measured before the runs</h2>{_limits_section(rows)}
<h2>Effective configuration</h2>{_configuration_section(rows)}
<h2>The pairs of this build</h2>
<p class="soft">What each concurrency control runs with; a number is the reason, below, why it does not.</p>
{_matrix_section(rows)}
<h2>Commands</h2>{_commands_section(rows)}""")
