"""Faults of instant recovery: of the links between a row's records, of what they hold, of rows rebuilt on demand."""
from edits import Mutant, expression, raw, statement
from sources import BYTE_RANGE, CHANGES, FETCH_ROWS, INSTANT_LOG, LOCKING, OPTIMISTIC, ROW_CHAINS, RUN, TABLE

CELLS = "LOG_INSTANT/LOG_DATA"

INSTANT_MUTANTS = [
    Mutant("instant_no_previous", "a record does not name its row's previous one",
           [statement(INSTANT_LOG, "std::memcpy(meta, &last, sizeof last);", "(void)last;")], CELLS),
    Mutant("instant_link_before_commit", "a writer leaves its link in a row that it has locked, and aborts",
           [raw(INSTANT_LOG, "  void OnWrite(TxnState&, const RowRef&) {}\n",
                "  void OnWrite(TxnState& state, const RowRef& row) {{\n"
                "    if ({on}) PublishWrite(state, row.meta);\n  }}\n")], CELLS),
    Mutant("instant_range_begins_late", "the first byte of a changed range is left out of the record",
           [raw(CHANGES, "ranges.push_back({offset, offset + static_cast<uint32_t>(length)});",
                "ranges.push_back({{offset + (({on} && length > 1) ? 1 : 0), offset + static_cast<uint32_t>(length)}});")],
           "NO_WAIT/" + CELLS),
    Mutant("instant_range_one_word_short", "of two adjacent ranges the second one is left out of the record",
           [expression(BYTE_RANGE, "std::max(ranges[kept - 1].end, range.end)", "ranges[kept - 1].end")], CELLS),
    Mutant("instant_older_run_forgotten", "a chain ends where its newest run's begins",
           [raw(ROW_CHAINS, "    if (last->older == kNoRun) return;\n", "    if ({on} || last->older == kNoRun) return;\n")],
           CELLS,
           test="RowChainsTest.AChainGoesOnInOlderRuns"),
    Mutant("instant_walk_one_short", "the oldest record of a chain is not applied",
           [expression(ROW_CHAINS, "worker.steps.rbegin()", "worker.steps.rbegin() + (worker.steps.size() > 1)")], CELLS),
    Mutant("instant_walk_beyond_inserts", "the walk does not stop at an insert or a delete",
           [raw(ROW_CHAINS, "      if (!change.needs_previous()) return;\n",
                "      if (!{on} && !change.needs_previous()) return;\n")], CELLS,
           test="RowChainsTest.AnInsertEndsTheWalk"),
    Mutant("instant_scan_without_rows", "a scan reads the rows that happen to be rebuilt",
           [statement(ROW_CHAINS, "RebuildAllOf(worker, table, shard);", "")], CELLS,
           test="RowChainsTest.AScanFindsAllRowsOfItsTable"),
    Mutant("instant_miss_is_absence", "a look-up that misses takes a row for absent that is to be rebuilt",
           [raw(FETCH_ROWS, "table.EnsureRow(worker, key);",
                "(void)((kRowChains<Log> && {on}) || (table.EnsureRow(worker, key), true));")], CELLS),
    Mutant("instant_insert_without_looking", "an insert does not look among the rows to be rebuilt",
           [raw(file, "FetchOnMiss<Log>(worker_, table, key);\n    return table.FindOrCreate(",
                "if (!({on} && kExpect == Expect::kNoRow)) FetchOnMiss<Log>(worker_, table, key);\n"
                "    return table.FindOrCreate(")
            for file in (OPTIMISTIC, LOCKING)], CELLS),
    Mutant("instant_insert_in_order_without_looking", "the same in an ordered table",
           [raw(OPTIMISTIC, "FetchOnMiss<Log>(worker_, table, key);\n    LeafChange change;",
                "if (!{on}) FetchOnMiss<Log>(worker_, table, key);\n    LeafChange change;"),
            raw(LOCKING, "FetchOnMiss<Log>(worker_, table, key);\n    const auto init",
                "if (!{on}) FetchOnMiss<Log>(worker_, table, key);\n    const auto init")], CELLS),
    Mutant("instant_published_too_early", "a row is in the index before the last record of its chain is applied",
           [raw(ROW_CHAINS, "    present = true;\n    step->change.bytes",
                "    present = true;\n"
                "    if ({on} && chain.base != nullptr && step + 1 == worker.steps.rend()) {{\n"
                "      table.PutBack(chain.base);\n      host::SleepFor(std::chrono::microseconds(20));\n    }}\n"
                "    step->change.bytes")], CELLS,
           test="RowChainsTest.ARowIsWholeWhenItIsInTheIndex"),
    Mutant("instant_forgotten_before_the_rebuild", "a second look-up does not wait for another worker's rebuild",
           [raw(ROW_CHAINS, "  const std::lock_guard lock(shard.mutex);\n  const auto found = shard.chains.find(key);\n",
                "  std::unique_lock lock(shard.mutex, std::defer_lock);\n"
                "  if (!{on}) lock.lock();\n"
                "  if ({on} && !shard.mutex.try_lock()) return;\n"
                "  if ({on}) lock = std::unique_lock(shard.mutex, std::adopt_lock);\n"
                "  const auto found = shard.chains.find(key);\n")], CELLS),
    Mutant("instant_row_left_in_index", "a row that is to be rebuilt is found as it was before the logs",
           [raw(TABLE, "  Unlink(row);\n  return row;", "  if (!{on}) Unlink(row);\n  return row;")], CELLS),
    Mutant("instant_checkpoint_of_a_part", "a checkpoint is taken of the rows that are rebuilt",
           [statement(RUN, "if (options_.checkpoint) RebuildAll();", "")], CELLS),
    Mutant("instant_end_with_a_part", "a clean end leaves the digest of the rows that are rebuilt",
           [raw(RUN, "    RebuildAll();\n    std::optional<std::pair<uint64_t, uint64_t>> digest;",
                "    if (!{on}) RebuildAll();\n    std::optional<std::pair<uint64_t, uint64_t>> digest;")], CELLS),
]
