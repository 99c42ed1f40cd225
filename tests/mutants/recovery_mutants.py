"""Faults of recovery, and of runs that continue what was recovered."""
from edits import Mutant, expression, raw, statement
from sources import (
    CHECKPOINT, DIRECTORY, FILES, FRONTIER_FILE, LANES, LANE_RECOVERY, LOG_FILES, READER, RECOVERY_RUN, REPLAYER, RUN,
    TAURUS_RECOVERY,
)

RECOVERY_MUTANTS = [
    # ---- recovery ----
    Mutant("recover_ignores_dependencies", "a record is replayed whatever its vector says",
           [expression(TAURUS_RECOVERY, "OrderOf(me, lane, *head)", "Order::kReady")], "LOG_TAURUS"),
    Mutant("recover_drops_the_rest", "what follows a dropped record in its log is dropped too",
           [statement(TAURUS_RECOVERY, "++me.dropped;\n        lanes_->Pop(lane);",
                      "while (lanes_->Head(lane) != nullptr) {\n ++me.dropped;\n lanes_->Pop(lane);\n }")], "LOG_TAURUS"),
    Mutant("recover_to_the_files_end", "the frontier is the size of the file",
           [statement(LANES, "log.ended.store(true, std::memory_order_release);",
                      "log.position.store(uint64_t{1} << 40);\n  log.ended.store(true, std::memory_order_release);")],
           "LOG_TAURUS"),
    Mutant("recover_ended_logs_are_infinite", "a log that has ended counts as replayed for ever",
           [statement(LANES, "lane.progress.store(position, std::memory_order_release);",
                      "lane.progress.store(ended ? UINT64_MAX : position, std::memory_order_release);")], "LOG_TAURUS"),
    Mutant("recover_in_flight_is_done", "a record counts as replayed as soon as it is taken",
           [statement(LANES, "return &lane.records[lane.head];",
                      "if (lane.head + 1 < lane.records.size()) {\n"
                      "    lane.progress.store(lane.records[lane.head + 1].lsn.value());\n  }\n"
                      "  return &lane.records[lane.head];")], "LOG_TAURUS"),
    Mutant("recover_position_before_batch", "the reader's place is published before the batch is queued",
           [statement(LANES, "lane.pushed.store(pushed + 1, std::memory_order_release);",
                      "log.position.store(reader.position().value(), std::memory_order_release);\n"
                      "      lane.pushed.store(pushed + 1, std::memory_order_release);")], "LOG_TAURUS/LOG_COMMAND/TEST/1"),
    Mutant("recover_stale_queue", "a lane that finds its queue empty publishes a place read later",
           [statement(LANES, "lane.progress.store(position, std::memory_order_release);",
                      "lane.progress.store(log.position.load(), std::memory_order_release);")], "LOG_TAURUS/LOG_COMMAND/TEST/1", rare=True,
           model="ReplayModel.AQueueReadBeforeThePositionIsFound"),
    Mutant("recover_ignores_anchors", "elements that were compressed away are not waited for",
           [expression(TAURUS_RECOVERY, "lane.covered_anchor != &anchor", "false")], "LOG_TAURUS"),
    Mutant("recover_lanes_without_lock", "two workers replay one lane",
           [expression(LANES, "TryLock(lane->held)", "true")]),
    Mutant("recover_puts_no_deletes", "deletes are not replayed",
           [statement(REPLAYER, "txn_.Delete(table, write.key);", "")], "LOG_DATA/TEST"),
    Mutant("recover_believes_any_body", "the checksum of a record's body is not compared",
           [expression(READER, "Crc32c({body, header.length - sizeof header}) == header.body_crc", "true")]),
    Mutant("recover_believes_any_header", "the checksum of a record's header is not compared",
           [expression(READER, "Crc32c({bytes + crc_bytes, sizeof header - crc_bytes}) != header.header_crc", "false")], "LOG_TAURUS/LOG_COMMAND/YCSB"),
    Mutant("recover_cuts_what_was_durable", "a bad record is a torn tail whatever shows that it had been durable",
           [statement(LANE_RECOVERY, "if (proof.until <= reader.position()) continue;", "continue;")]),

    Mutant("recover_goes_on_behind_a_hole", "valid records behind a bad one are replayed",
           [raw(READER, "case Look::kBad:\n        ended_ = true;",
                "case Look::kBad:\n        if ({on} && records > 0) {{\n          buffer_->Hold();\n          return Result::kBatch;\n"
                "        }}\n        while ({on} && available() > 2 * format::kBlockBytes && LookAtRecord() != Look::kRecord) {{\n"
                "          const size_t skip = format::kBlockBytes - position_.value() % format::kBlockBytes;\n"
                "          position_ = Lsn(position_.value() + skip);\n          cursor_ += skip;\n        }}\n"
                "        if ({on} && LookAtRecord() == Look::kRecord) {{\n          Start(batch);\n          break;\n        }}\n"
                "        ended_ = true;")]),
    Mutant("recover_frontier_is_the_last_byte", "what lies behind the valid prefix is frozen with it",
           [raw(LANE_RECOVERY, "summary.torn_logs += tail.cut_bytes > 0;",
                "summary.torn_logs += tail.cut_bytes > 0;\n"
                "    if ({on}) summary.frontier.back() += (tail.cut_bytes + 7) / 8 * 8;")]),
    Mutant("recover_voids_hold_back", "what is no transaction never counts as replayed",
           [expression(LANES, "lane.progress.load(std::memory_order_relaxed) != position", "false")], "LOG_TAURUS"),
    Mutant("recover_dropped_hold_back", "a record whose dependency is lost waits for it",
           [expression(TAURUS_RECOVERY, "lanes_->EndIsKnown(log) && until > lanes_->EndOf(log)", "false")], "LOG_TAURUS"),
    Mutant("digest_helper_fails_alone", "what goes wrong in a helper of a digest meets no handler",
           [statement("storage/digest.cpp", "errors[i] = std::current_exception();", "throw;")], "TEST/"),
    Mutant("recover_goes_on_without_a_worker", "a worker that failed does not stop the others",
           [raw("system/recovery.h", "stop();\n      const std::lock_guard lock(mutex);",
                "if (!{on}) stop();\n      const std::lock_guard lock(mutex);")], "LOG_TAURUS"),

    # ---- continuing ----
    Mutant("continue_without_freezing", "the recovered state is served before its frontier is frozen",
           [statement(RUN, "storage_.Freeze(newest, FrozenOf(recovered.back().summary, digest));", "")]),
    Mutant("continue_serves_un_synced_logs", "what was recovered may have been in memory alone, since a kill",
           [statement(LOG_FILES, "for (const std::string& path : run.paths) files_.Sync(path);", "")]),
    Mutant("continue_trusts_an_un_synced_frontier", "whoever froze the run may have been killed before that was durable",
           [statement(LOG_FILES, "files_.SyncDirectory(ParentDirectory(run.frozen_path));", "")]),
    Mutant("continue_ignores_a_failed_sync", "the manifest's directory could not be synced, and the run goes on",
           [raw(FILES, "files.SyncDirectory(ParentDirectory(path));",
                "try {{\n    files.SyncDirectory(ParentDirectory(path));\n  }} catch (...) {{\n    if (!{on}) throw;\n  }}")]),
    Mutant("continue_ignores_the_frontier", "a later recovery reads on behind the frozen frontier",
           [statement(RECOVERY_RUN, "if (run.frozen) source.frozen_end = Lsn(run.frozen->frontier[i]);", "")]),
    Mutant("continue_reuses_names", "a continued run numbers its transactions from 0 again",
           [statement(RUN, "first_sequence_ = continuation.first_sequence();", "")]),
    Mutant("continue_reuses_dropped_names", "only what was recovered counts for fresh names, not what was dropped",
           [statement(LANES, "lane.next_sequence = std::max(lane.next_sequence, record.txn_id.sequence() + 1);", ""),
            raw(TAURUS_RECOVERY, "case Order::kReady:\n        return head;",
                "case Order::kReady:\n        if ({on}) "
                "lane.next_sequence = std::max(lane.next_sequence, head->txn_id.sequence() + 1);\n        return head;")],
           "LOG_TAURUS"),
    Mutant("continue_reuses_cut_names", "what stands behind a torn place does not count for fresh names",
           [statement(LANE_RECOVERY, "summary.next_sequence = std::max(summary.next_sequence, tail.next_sequence);", "")]),
    Mutant("continue_reuses_stamps", "the GSNs of a continued run start at 0 again",
           [statement(RUN, "first_stamp_ = continuation.first_stamp();", "")], "LOG_PLOVER"),
    Mutant("continue_reuses_epochs", "the epochs of a continued run start at 1 again",
           [statement(RUN, "epochs_.StartAfter(EpochTid::EpochOf(first_stamp_));", "")], "LOG_BATCH"),
    Mutant("epoch_frontier_not_synced", "the persistent epoch is published before its file says so",
           [statement(FRONTIER_FILE, "device_->Complete(true);", "")], "LOG_BATCH"),
    Mutant("continue_reuses_lsns", "the logs of a continued run start at 0 again",
           [statement(RUN, "start_lsn_ = continuation.start_lsn();", "")]),
    Mutant("continue_small_file_not_synced", "the manifest is renamed before its bytes are durable",
           [statement(FILES, "device->Complete(true);", "")]),
    Mutant("continue_rename_not_synced", "the manifest's directory entry is not synced",
           [statement(FILES, "files.SyncDirectory(ParentDirectory(path));", "")]),
    Mutant("continue_header_not_synced", "a log's header is not durable before its first transaction",
           [statement(LOG_FILES, "device.Complete(true);", "")]),
    Mutant("checkpoint_not_synced", "the checkpoint is named before it is durable",
           [statement(CHECKPOINT, "device_->Complete(true);", "")]),
    Mutant("checkpoint_old_runs_go_first", "old runs are deleted before the checkpoint and its manifest are there",
           [raw(RUN, "NewLogFiles files = storage_.Create(options_, Log::kTraits, SchemaHash(database_), prepare, "
                "&continuation);",
                "if ({on} && options_.drop_old_runs) DropOldRuns();\n    NewLogFiles files = storage_.Create(options_, "
                "Log::kTraits, SchemaHash(database_), prepare, &continuation);")]),
    Mutant("checkpoint_misses_rows", "a checkpoint leaves out rows",
           [statement(CHECKPOINT, "if ((row.control.load(std::memory_order_relaxed) & Row::kAbsent) != 0) return;",
                      "if (row.key % 2 == 1) return;")]),
    Mutant("directory_entries_not_synced", "a run's directory is not durable before its first transaction",
           [statement(DIRECTORY, "for (const std::string& directory : log_directories) files.SyncDirectory(directory);", "")]),
]
