"""Faults of row checkpoints."""
from edits import Mutant, expression, raw, statement
from sources import ROW_CHECKPOINT, ROW_COPIER, WORKER

TAURUS_ROWS = "LOG_TAURUS/LOG_DATA"
SERIAL_ROWS = "LOG_SERIAL/LOG_DATA"

ROW_MUTANTS = [
    Mutant("rows_no_pause", "the positions at which replay begins are read while transactions run",
           [expression(ROW_CHECKPOINT, "!epochs_.IsIdle(WorkerId(worker))", "false")], TAURUS_ROWS),
    Mutant("rows_entered_in_the_pause", "a worker that waited elsewhere begins a transaction in the pause",
           [expression(WORKER, "!control.pause.load()", "true")], TAURUS_ROWS, rare=True),
    Mutant("rows_copied_before_the_start", "replay begins where the logs were when all rows had been copied",
           [statement(ROW_CHECKPOINT, "TakeStart(next, stopped);\n  next.parts = CopyRows(next.copy, stopped);",
                      "next.parts = CopyRows(next.copy, stopped);\n  TakeStart(next, stopped);")], SERIAL_ROWS),
    Mutant("rows_anchor_before_durable", "a checkpoint has rows of transactions that a crash may still take",
           [statement(ROW_CHECKPOINT, "AwaitDurable(next.end, stopped);", "")], SERIAL_ROWS),
    Mutant("rows_copied_as_they_are", "rows are copied without the concurrency control",
           [raw(ROW_COPIER, "        const Outcome outcome = transaction.Read(table, keys[i], [&](const auto& tuple) "
                "{ tuple.CopyAt(0, to); });\n",
                "        Outcome outcome = Outcome::kNotFound;\n"
                "        if ({on}) {{\n"
                "          if (const Row* const row = table.Find(keys[i])) {{\n"
                "            outcome = (row->control.load() & Row::kAbsent) != 0 ? Outcome::kNotFound : Outcome::kOk;\n"
                "            std::memcpy(to.data(), table.tuple(row), bytes);\n"
                "          }}\n"
                "        }} else {{\n"
                "          outcome = transaction.Read(table, keys[i], [&](const auto& tuple) {{ tuple.CopyAt(0, to); }});\n"
                "        }}\n")], SERIAL_ROWS, test="RowCopierTest/0.AChangeIsNotCopiedBeforeItCommits"),
    Mutant("rows_truncated_before_the_anchor", "logs are truncated while the older anchor needs them",
           [raw(ROW_CHECKPOINT, "  if (stopped()) throw GivenUp();\n  WriteTemporaryFile(",
                "  if ({on}) truncation_.Truncate(next.start);\n"
                "  if (stopped()) throw GivenUp();\n  WriteTemporaryFile(")], SERIAL_ROWS),
    Mutant("rows_over_the_named_copy", "a checkpoint overwrites the files that the anchor names",
           [expression(ROW_CHECKPOINT, "1 - anchor_.copy", "anchor_.copy")], SERIAL_ROWS),
]
