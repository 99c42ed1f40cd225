"""Faults that the crash tests must find: each is one of the traps of logging, put into a copy of the sources.

A mutant replaces text of one or more files where it occurs exactly once; generate.py writes the copy, in which a
run-time switch chooses between the original and each mutant. The product's sources know nothing of this.

Kinds of edits: a statement (or several, none of them a declaration that is used behind them), an expression, or "raw":
the replacement is used as it is, with {on} for "this mutant is switched on".
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    file: str
    find: str
    replace: str
    kind: str = "statement"  # expression, raw


@dataclass(frozen=True)
class Mutant:
    name: str
    trap: str  # what goes wrong, in a sentence
    edits: list[Edit]
    cells: str = ""  # only cells whose name contains this can tell
    rare: bool = False  # needs minutes, or more: not in the rotation of the quick tests
    model: str = ""  # a rare one's small model: the test of build/all_tests in which the same fault is found


def statement(file: str, find: str, replace: str) -> Edit:
    return Edit(file, find, replace)


def expression(file: str, find: str, replace: str) -> Edit:
    return Edit(file, find, replace, "expression")


def raw(file: str, find: str, replace: str) -> Edit:
    return Edit(file, find, replace, "raw")


STREAM_H = "logging/log_stream.h"
STREAM = "logging/log_stream.cpp"
WRITER = "logging/log_writer.cpp"
TAURUS = "logging/taurus/taurus_log.h"
VECTOR = "logging/taurus/lsn_vector.h"
PLOVER = "logging/plover/plover_log.h"
PLOVER_RECOVERY = "logging/plover/plover_recovery.cpp"
SILO_R = "logging/silo_r/silo_r_log.h"
SILO_R_RECOVERY = "logging/silo_r/silo_r_recovery.cpp"
DURABLE_EPOCH = "logging/silo_r/durable_epoch.cpp"
REPLAY_TXN = "system/replay_transaction.h"
TOTAL_ORDER = "logging/total_order_log.h"
HOPPING_INDEX = "logging/eleda/hopping_index.h"
GRASSHOPPER = "logging/eleda/grasshopper.cpp"
GRASSHOPPER_LIST = "logging/eleda/grasshopper_list.h"
ELEDA_WORKER = "logging/eleda/eleda_worker.cpp"
ELEDA_WORKER_H = "logging/eleda/eleda_worker.h"
CONSOLIDATION = "logging/eleda/consolidation_array.cpp"
BITMAP = "logging/eleda/fill_bitmap.cpp"
TAURUS_RECOVERY = "logging/taurus/taurus_recovery.cpp"
LANES = "logging/replay_lanes.cpp"
LANE_RECOVERY = "logging/lane_recovery.cpp"
READER = "logging/log_reader.cpp"
READER_H = "logging/log_reader.h"
BACKGROUND_READ = "logging/device/background_read.h"
LANES_H = "logging/replay_lanes.h"
FRONTIER_FILE = "logging/frontier_file.cpp"
STREAM_BUILDER = "logging/record_builder.h"
TXN = "system/transaction.h"
LOCKING = "concurrency_control/two_phase_locking.h"
QUEUES = "concurrency_control/queued_locks.h"
WAIT_DIE = "concurrency_control/wait_die.h"
DL_DETECT = "concurrency_control/dl_detect.h"
ROW_LOCKS = "concurrency_control/row_locks.h"
TABLE_LOCKS = "concurrency_control/lock_table.h"
OPTIMISTIC = "concurrency_control/optimistic_accesses.h"
SILO = "concurrency_control/silo.h"
TICTOC = "concurrency_control/tictoc.h"
HEKATON = "concurrency_control/hekaton.h"
SNAPSHOTS = "concurrency_control/snapshot_clock.h"
VERSIONS = "storage/version_store.h"
SCANNED_LEAVES = "concurrency_control/scanned_leaves.h"
BTREE = "storage/btree_index.cpp"
BTREE_NODE = "storage/btree_node.h"
REPLAYER = "system/replayer.h"
RUN = "system/run.h"
RECOVERY_RUN = "system/recovery_run.cpp"
LOG_FILES = "system/log_files.cpp"
FILES = "logging/device/file_system.cpp"
CHECKPOINT = "logging/checkpoint.cpp"
DIRECTORY = "logging/log_directory.cpp"
FILE_HEADER = "logging/file_header.cpp"
STRIPES = "logging/device/striped_device.cpp"
FULLY = "logging/device/write_fully.h"
ARENA = "storage/arena.cpp"

# Not faults: what small simulated runs need to meet what large ones do. (file, text, replacement)
TUNING = [
    # A fibre may stop in the middle of filling its place.
    (STREAM_BUILDER, "  header.body_crc = Crc32c(", "  ::dbx::sim::Step();\n  header.body_crc = Crc32c("),
    # The oracle hears of a commit when nothing can stop it and nobody sees it.
    (TXN, "    log_.Submit(log_state_, *this);",
     "    observer::PreCommitted(call_->txn_id());\n    log_.Submit(log_state_, *this);"),
    # Some runs preallocate next to nothing: their logs grow, and can be cut short.
    (LOG_FILES, "(per_log / format::kBlockBytes + 256)",
     "(options.seed % 4 == 0 ? 2 : per_log / format::kBlockBytes + 256)"),
    (WRITER, "kPadBelowBytes = 32 * format::kBlockBytes;", "kPadBelowBytes = 2 * format::kBlockBytes;"),
    (STREAM_H, "std::max<uint64_t>(bytes, 16 * format::kBlockBytes)", "std::max<uint64_t>(bytes, 4 * format::kBlockBytes)"),
    # Anchors find no room more often than in a ring of megabytes; in an empty one there is room.
    (STREAM, "std::optional<uint64_t> LogStream::AppendOwn(format::RecordKind kind, std::span<const uint64_t> words) {\n",
     "std::optional<uint64_t> LogStream::AppendOwn(format::RecordKind kind, std::span<const uint64_t> words) {\n"
     "  if (reserved_until() != persistent_until() && ::dbx::sim::Random() % 4 == 0) return std::nullopt;\n"),
    (READER_H, "kBatchRecords = 32;", "kBatchRecords = 4;"),
    (LANES_H, "kQueueBatches = 16;", "kQueueBatches = 4;"),
    (TAURUS, "kTxnsPerTurn = 256;", "kTxnsPerTurn = 4;"),
    (LOCKING, "kTxnsPerSweep = 64;", "kTxnsPerSweep = 4;"),
    (OPTIMISTIC, "kTxnsPerSweep = 64;", "kTxnsPerSweep = 4;"),
    # Timestamps of small runs are small.
    (TICTOC, "kDeltaBits = 15;", "kDeltaBits = 3;"),
    # An audit whose sum is wrong stores it, and whoever stores anything has its reads checked again: a wrong snapshot
    # would be seen by nobody.
    ("benchmarks/test/procedures.h", "  return args.quiet != 0 && right ?",
     "  if constexpr (requires { Ctx::kReadsAreOfOneMoment; }) CHECK(right || !Ctx::kReadsAreOfOneMoment);\n"
     "  return args.quiet != 0 && right ?"),
    # What short runs supersede is freed while they last.
    (HEKATON, "std::max(kCommitsPerWatermark, 4 * shared.timestamps.workers())", "2"),
    # Leaves and inner nodes of a handful of entries split, and become empty.
    (BTREE_NODE, "kSlots = 62;", "kSlots = 6;"),
    (BTREE_NODE, "kKeysMax = 62;", "kKeysMax = 6;"),
    (BTREE_NODE, "sizeof(BTreeLeaf) == 1024 && sizeof(BTreeInner) == 1024", "sizeof(BTreeLeaf) < 1024"),
    (WRITER, "kIdleRoundsBeforeLongSleep = 64;", "kIdleRoundsBeforeLongSleep = 2;"),
    (LANE_RECOVERY, "kNanosToSuspect = 20'000'000;", "kNanosToSuspect = 200'000;"),
    (TAURUS_RECOVERY, "kSampleRecords = 1 << 16;", "kSampleRecords = 16;"),
    # A worker without work for a while, in some runs: writers fall asleep.
    ("system/worker.h", "    if (acks_.full()) WaitForAcks();",
     "    ::dbx::sim::MayPause();\n    if (acks_.full()) WaitForAcks();"),
    (ELEDA_WORKER, "kNodesMax = 1 << 15;", "kNodesMax = 16;"),
    # Who waits by the clock and keeps the highest priority would never let the holder of its lock go on.
    ("system/worker.h", "      PollAcks();\n    } while (Clock::ToNanos(now_ - begin)",
     "      PollAcks();\n      ::dbx::sim::YieldTurn(1000);\n    } while (Clock::ToNanos(now_ - begin)"),
    # Who holds the lock that others group behind may lose the processor for long.
    (CONSOLIDATION, "members_[worker].group = kAlone;",
     "members_[worker].group = kAlone;\n  if (sim::Random() % 8 == 0) sim::SleepFor(5000);"),
    ("system/worker.h", "ack_queue_length = 1 << 15;", "ack_queue_length = 16;"),
    # Memory that the engine takes without operator new may run out too.
    (ARENA, "mmap(nullptr, bytes, PROT_READ", "::dbx::sim::Map(nullptr, bytes, PROT_READ"),
    (READER, "std::aligned_alloc(", "::dbx::sim::AlignedAlloc("),
    (CHECKPOINT, "std::aligned_alloc(", "::dbx::sim::AlignedAlloc("),
    (FILES, "std::aligned_alloc(", "::dbx::sim::AlignedAlloc("),
]

MUTANTS = [
    # ---- the ring ----
    Mutant("ring_idle_is_zero", "a worker that never writes pins what is ready at 0",
           [expression(STREAM_H, "filling_from{kIdle}", "filling_from{0}")], "LOG_TAURUS"),
    Mutant("ring_bound_after_place", "the filler announces itself after it has taken its place",
           [statement(STREAM_H, "slot.filling_from.store(reserved_until_.load(std::memory_order_relaxed), "
                      "std::memory_order_release);", ""),
            statement(STREAM_H, "if (place.end() > slot.free_until) WaitForSpace(slot, place);",
                      "slot.filling_from.store(place.lsn, std::memory_order_release); "
                      "if (place.end() > slot.free_until) WaitForSpace(slot, place);")], "/TEST/", rare=True,
           model="RingModel.ABoundStoredAfterTheFetchAddIsFound"),
    Mutant("ring_ready_before_filled", "a place counts as filled as soon as it is taken",
           [statement(STREAM_H, "if (place.end() > slot.free_until) WaitForSpace(slot, place);",
                      "if (place.end() > slot.free_until) WaitForSpace(slot, place); "
                      "slot.filling_from.store(kIdle, std::memory_order_release);")]),
    Mutant("ring_slots_before_tail", "the writer looks at the fillers first and at the tail afterwards",
           [expression(STREAM, "uint64_t ready = reserved_until_.load(std::memory_order_acquire);",
                       "uint64_t ready = UINT64_MAX;"),
            statement(STREAM, "return ready;", "return std::min(ready, reserved_until_.load());")], "LOG_SERIAL/LOG_DATA/TEST", rare=True,
           model="RingModel.AWriterThatReadsTheSlotsFirstIsFound"),
    Mutant("ring_overwrites_the_last_lap", "nobody waits for the bytes of the previous lap to be durable",
           [statement(STREAM, "if (place.end() <= slot.free_until) return;", "return;")], "LOG_DATA"),
    Mutant("ring_stale_bound_while_waiting", "a filler that waits for space holds back the flush that would free it",
           [statement(STREAM, "slot.filling_from.store(place.lsn, std::memory_order_release);", "")], "LOG_SERIAL/LOG_DATA/YCSB", rare=True,
           model="RingModel.AnOldBoundOfOneWhoWaitsForSpacePinsTheLog"),
    Mutant("ring_unaligned_places", "places are not rounded up as records are",
           [statement(TAURUS, "state.place = stream.Reserve(state.worker, AlignRecord(bytes));",
                      "state.place = stream.Reserve(state.worker, static_cast<uint32_t>(bytes) + 4);")], "LOG_TAURUS"),
    Mutant("ring_abort_leaves_a_hole", "an abort after the reservation writes no VOID",
           [statement(TXN, "log_.Void(log_state_);", "")], "SILO/LOG_SERIAL/LOG_COMMAND"),
    Mutant("ring_void_is_not_filled", "the place of an aborted transaction is handed over as it is",
           [statement(STREAM_H, "BuildVoid(at(place), place.lsn, place.bytes, salt_, index_);", "")],
           "SILO/LOG_SERIAL/LOG_COMMAND"),

    # ---- what is durable ----
    Mutant("durable_before_sync", "the durable LSN is published before the sync",
           [raw(STREAM, "const uint64_t durable_end = device_->Complete(wait);",
                "if ({on}) AtomicRef<uint64_t>(persistent_).store(LastRecordEnd(started_until_));\n"
                "  const uint64_t durable_end = device_->Complete(wait);")]),
    Mutant("durable_despite_an_error", "a failed sync is taken for a good one",
           [raw(STREAM, "const uint64_t durable_end = device_->Complete(wait);",
                "uint64_t durable_end = 0;\n  try {{\n    durable_end = device_->Complete(wait);\n  }} catch (...) {{\n"
                "    if (!{on}) throw;\n    durable_end = format::kStreamOffset + started_until_;\n  }}")]),
    Mutant("durable_retries_a_failed_sync", "a failed sync is tried again and believed",
           [raw(WRITER, "for (LogStream* stream : streams_) stream->CompleteFlush(true);",
                "for (LogStream* stream : streams_) {{\n    try {{\n      stream->CompleteFlush(true);\n"
                "    }} catch (...) {{\n      if (!{on}) throw;\n    }}\n  }}")]),
    Mutant("failed_run_ends_well", "a run whose log failed ends as if nothing had happened",
           [statement(RUN, "if (error) std::rethrow_exception(error);", ""),
            statement(WRITER, "if (thread_.joinable()) thread_.join();\n  ThrowIfFailed();",
                      "if (thread_.joinable()) thread_.join();"),
            raw(WRITER, "hooks_.BeforeRunEnd(*stream);", "if ({on} && failed()) return;\n    hooks_.BeforeRunEnd(*stream);")]),
    Mutant("failed_end_of_run_is_ignored", "nobody looks at whether RUN_END was written",
           [raw(WRITER, "stream->StartFlush(options_.flush_block_bytes);\n    stream->CompleteFlush(true);",
                "try {{\n      stream->StartFlush(options_.flush_block_bytes);\n      stream->CompleteFlush(true);\n"
                "    }} catch (...) {{\n      if (!{on}) throw;\n    }}")]),
    Mutant("durable_inside_a_record", "the durable LSN is not cut down to the end of a record",
           [expression(STREAM, "const uint64_t record_end = LastRecordEnd(durable);",
                       "const uint64_t record_end = durable;")], "LOG_TAURUS/LOG_DATA/YCSB"),
    Mutant("durable_pad_claims_too_much", "a PAD says that everything before it is durable",
           [expression(STREAM, "const format::PadBody body{persistent_until()};", "const format::PadBody body{lsn};")]),
    Mutant("durable_anchor_claims_too_much", "an anchor holds what is reserved, not what is durable",
           [statement(TAURUS, "durable.lsn[j] = lv::Load(logs_.durable().lsn[j]);",
                      "durable.lsn[j] = logs_.stream(j).reserved_until();")], "LOG_TAURUS"),
    Mutant("writer_sleeps_without_a_last_look", "a place that is taken while the writer falls asleep is not seen",
           [statement(WRITER, "if (!HasWork()) wake_.wait(lock, [this] { return woken_; });",
                      "wake_.wait(lock, [this] { return woken_; });")], rare=True,
           model="RingModel.ASleeperThatAnnouncesItselfTooLateIsFound"),
    Mutant("filler_does_not_wake", "nobody wakes a writer that sleeps for long",
           [statement(STREAM_H, "if (writer_asleep_.load()) WakeWriter();", "")]),
    Mutant("writer_sleeps_too_long", "what is appended while the writer sleeps waits for a hundred thousand flush intervals",
           [expression(WRITER, "std::chrono::microseconds(options_.flush_interval_us)",
                       "std::chrono::microseconds(options_.flush_interval_us * 100'000)")]),

    # ---- devices: requests that stop half-way, stripes ----
    Mutant("device_interrupted_write_is_an_error", "a write that a signal interrupted is not tried again",
           [raw(FULLY, "if (n == -EINTR) continue;\n    if (n < 0) return static_cast<int>(-n);\n    if (n == 0) return EIO;",
                "if (n == -EINTR && !{on}) continue;\n    if (n < 0) return static_cast<int>(-n);\n    if (n == 0) return EIO;")]),
    Mutant("device_interrupted_read_is_an_error", "a read that a signal interrupted is not tried again",
           [raw(FULLY, "if (n == -EINTR) continue;\n    if (n < 0) return static_cast<int>(-n);\n    if (n == 0) break;",
                "if (n == -EINTR && !{on}) continue;\n    if (n < 0) return static_cast<int>(-n);\n"
                "    if ({on}) {{\n      done += static_cast<size_t>(n);\n      break;\n    }}\n    if (n == 0) break;")]),
    Mutant("device_short_write_is_whole", "what a short write left out is never written",
           [raw(FULLY, "while (done < data.size()) {", "while ({on} ? done == 0 : done < data.size()) {{")]),
    Mutant("device_short_read_is_the_end", "a short read is taken for the end of the file",
           [raw(FULLY, "while (done < to.size()) {", "while ({on} ? done == 0 && !to.empty() : done < to.size()) {{")]),
    Mutant("recover_failed_read_is_the_end", "a log that cannot be read is taken for one that ends",
           [raw(READER, "const size_t got = std::min(read_.Take(), left);",
                "size_t got = 0;\n  try {{\n    got = std::min(read_.Take(), left);\n  }} catch (const Error&) {{\n    if (!{on}) throw;\n  }}")]),
    Mutant("recover_taken_before_it_is_read", "a block is cut before its read is complete",
           [expression(BACKGROUND_READ, "state_.load(std::memory_order_acquire) == State::kDone", "started()")]),
    Mutant("raid_last_stripe_only", "only the last stripe is waited for",
           [statement(STRIPES, "end = std::min(end, FirstBehind(i, stripes_[i]->Complete(wait)));",
                      "if (i + 1 == stripes_.size()) end = FirstBehind(i, stripes_[i]->Complete(wait));"),
            raw(STREAM, "if (end + header.length > durable) break;",
                "if (end + header.length > ({on} ? std::min(durable, started_until_) : durable)) break;\n"
                "    if ({on} && header.length == 0) break;")], "LOG_SERIAL"),
    Mutant("raid_first_stripe_only", "only the first stripe is waited for",
           [statement(STRIPES, "end = std::min(end, FirstBehind(i, stripes_[i]->Complete(wait)));",
                      "if (i == 0) end = FirstBehind(i, stripes_[i]->Complete(wait));"),
            raw(STREAM, "while (end < durable) {", "while (end < ({on} ? std::min(durable, started_until_) : durable)) {{")],
           "LOG_SERIAL"),
    Mutant("raid_missing_stripe", "nobody counts the files of a run",
           [statement(FILE_HEADER, "if (seen[index] != nullptr) continue;", "continue;")], "LOG_SERIAL"),
    Mutant("raid_swapped_stripes", "nobody looks whether a file is the stripe that its name says",
           [statement(FILE_HEADER, "if (headers[i].log_index == i) continue;", "continue;")], "LOG_SERIAL"),
    Mutant("files_of_different_runs", "nobody looks whether all files are of one run",
           [expression(FILE_HEADER, "!difference.empty()", "false")]),

    # ---- scans: each fails a test of tests/concurrency_control/scan_test.cpp, which knows no switch ----
    Mutant("scan_leaf_not_rechecked", "what appeared in a scanned gap goes unnoticed",
           [statement(SCANNED_LEAVES,
                      "return std::all_of(leaves_.begin(), leaves_.end(), [](const Leaf& leaf) { return leaf.ref.Unchanged(); });",
                      "return true;")], "LOG_COMMAND/TEST"),
    Mutant("scan_skips_absent_rows", "an absent row that a scan meets is not read",
           [statement(OPTIMISTIC, "NoteRead(row, seen);\n    return EndScanRow(table, entry, seen, visit);",
                      "if ((seen & Row::kAbsent) == 0) NoteRead(row, seen);\n"
                      "    return EndScanRow(table, entry, seen, visit);")], "SILO"),
    Mutant("scan_does_not_lock_absent_rows", "an absent row that a scan meets is not locked",
           [raw(LOCKING, "      // A row that is gone has changed its leaf, or will have.\n",
                "      if ({on} && (entry.row->control.load() & Row::kAbsent) != 0) return ScanStep::kGoOn;\n")],
           "NO_WAIT"),
    Mutant("scan_leaf_metadata_not_published", "a leaf does not learn of who scanned it",
           [statement(LOCKING, "for (const ScannedLeaves::Leaf& leaf : leaves_.leaves()) visit(leaf.ref.leaf->meta());", ""),
            statement(OPTIMISTIC, "for (const ScannedLeaves::Leaf& leaf : leaves_.leaves()) visit(leaf.ref.leaf->meta());", "")],
           "LOG_TAURUS/LOG_COMMAND/TEST"),
    Mutant("scan_metadata_not_inherited", "a row that is created knows nothing of who scanned its gap",
           [statement(OPTIMISTIC, "log_.Absorb(row.meta(), leaf.meta());", ""),
            statement(ROW_LOCKS, "log.Absorb(row.meta(), gap);", ""),
            statement(TABLE_LOCKS, "log.Absorb(entry->meta(), gap);", "")], "LOG_TAURUS/LOG_COMMAND/TEST"),
    Mutant("scan_metadata_lost_with_the_row", "a row that is unlinked leaves nothing of what it knew to its leaf",
           [statement(SCANNED_LEAVES, "log.Absorb(leaf.meta(), meta);", "")], "LOG_TAURUS/LOG_COMMAND/TEST", rare=True),
    Mutant("scan_metadata_lost_with_the_leaf", "an empty leaf leaves nothing of what it knew to its heir",
           [statement(SCANNED_LEAVES, "log.Absorb(heir.meta(), leaving.meta());", "")], "LOG_TAURUS/LOG_COMMAND/TEST", rare=True),
    Mutant("scan_metadata_lost_in_a_split", "the upper part of a leaf that splits knows nothing of who scanned it",
           [statement(BTREE, "CopyMeta(right->meta(), leaf->meta(), meta_bytes_);", "")], "LOG_TAURUS/LOG_COMMAND/TEST", rare=True),
    Mutant("scan_own_split_not_followed", "the upper part of a leaf that the scanner itself split is not re-checked",
           [statement(SCANNED_LEAVES, "if (had_leaf && change.split_off.leaf != nullptr) "
                      "leaves_.push_back({change.split_off, control});", "")], "/TEST", rare=True),
    Mutant("scan_tictoc_leaf_not_raised", "a scan does not tell its gaps how late it commits",
           [statement(TICTOC, "for (const auto& leaf : this->leaves().leaves()) RaiseControl(*leaf.ref.leaf, commit_timestamp_);",
                      "")], "TICTOC", rare=True),
    Mutant("scan_tictoc_row_begins_early", "a row that is created may be inserted before who scanned its gap",
           [expression(TICTOC, "leaf == nullptr ? 0 : leaf->control.load()", "0")], "TICTOC", rare=True),
    Mutant("scan_tictoc_before_the_delete", "a scan commits before the delete that made the gap it found",
           [statement(TICTOC, "least = std::max(least, leaf.control);", "")], "TICTOC", rare=True),
    Mutant("scan_silo_row_begins_early", "a row that is created may be inserted before a delete of its key",
           [expression(SILO, "leaf == nullptr ? 0 : leaf->control.load()", "0")], "SILO", rare=True),

    # ---- acknowledgement ----
    Mutant("ack_readers_at_once_taurus", "a reader is told at once though what it read is not durable",
           [raw(TAURUS, "void ReadOnlyPoint(const TxnState& state, uint64_t* point) const { CommitPoint(state, point); }",
                "void ReadOnlyPoint(const TxnState& state, uint64_t* point) const {{\n    CommitPoint(state, point);\n"
                "    if ({on}) for (uint32_t j = 0; j < n_; ++j) point[j] = 0;\n  }}")], "LOG_TAURUS"),
    Mutant("ack_readers_at_once_serial", "a reader is told at once though what it read is not durable",
           [statement(TOTAL_ORDER, "point[0] = stream_.reserved_until();", "point[0] = 0;")], "LOG_SERIAL"),
    Mutant("ack_first_log_only", "only the first log's durable LSN is looked at",
           [statement(TAURUS, "return lv::CoveredBy(point, logs_.durable().lsn, n_);",
                      "return lv::CoveredBy(point, logs_.durable().lsn, 1);")], "LOG_TAURUS"),
    Mutant("ack_without_own_record", "the commit point leaves out the transaction's own record",
           [statement(TAURUS, "for (uint32_t j = 0; j < n_; ++j) point[j] = state.lv[j];",
                      "for (uint32_t j = 0; j < n_; ++j) point[j] = j == state.log ? state.own_dependency : state.lv[j];")],
           "LOG_TAURUS"),
    Mutant("ack_at_the_records_start", "a record counts as durable when its first byte is",
           [statement(TOTAL_ORDER, "point[0] = state.place.end();", "point[0] = state.place.lsn;")], "LOG_SERIAL"),

    # ---- the central log ----
    Mutant("eleda_ack_at_the_records_start", "the callback of a record is keyed on its start",
           [statement(TOTAL_ORDER, "point[0] = state.place.end();", "point[0] = state.place.lsn;")], "LOG_ELEDA"),
    Mutant("eleda_entry_of_the_last_lap", "an entry of the hopping index counts what the last lap left in it",
           [expression(HOPPING_INDEX,
                       "entries_[range & (entries_.size() - 1)].value.load(std::memory_order_acquire) == Complete(range)",
                       "entries_[range & (entries_.size() - 1)].value.load() >= BeginOf(1)")], "LOG_ELEDA"),
    Mutant("eleda_index_before_list", "bytes are counted before the node that holds them is in the list",
           [statement(GRASSHOPPER_LIST, "// Release: the worker that sees the tail sees the node and the bytes of the "
                      "record.\n    tail_.store(tail + 1, std::memory_order_release);",
                      "index_.Add(place); tail_.store(tail + 1, std::memory_order_release);"),
            statement(GRASSHOPPER_LIST, "index_.Add(place);", "")], "LOG_ELEDA"),
    Mutant("eleda_skips_a_node_without_hop", "a hop passes the newest node though it starts behind the boundary",
           [statement(GRASSHOPPER_LIST, "--to;", "")], "LOG_ELEDA"),
    Mutant("eleda_heap_not_rebuilt", "after a hop the heap still holds the old heads",
           [statement(GRASSHOPPER, "RebuildHeap();", "")], "LOG_ELEDA"),
    Mutant("eleda_sbl_at_the_boundary", "after a hop SBL is the boundary, within a record",
           [statement(GRASSHOPPER, "end = std::max(end, skipped.end);", "end = index_.BeginOf(range);")], "LOG_ELEDA"),
    Mutant("eleda_hops_a_range_too_far", "a hop passes the range that has a hole too",
           [statement(GRASSHOPPER, "if (!index_.IsComplete(range)) break;",
                      "if (!index_.IsComplete(range)) { ++range; break; }")], "LOG_ELEDA"),
    Mutant("eleda_crawls_over_holes", "the lowest pending record is taken for the next one",
           [expression(GRASSHOPPER, "heap_.top().lsn == own_sbl_", "heap_.top().lsn >= own_sbl_")], "LOG_ELEDA"),
    Mutant("eleda_filler_does_not_wake", "nobody wakes a writer that sleeps for long",
           [statement(ELEDA_WORKER_H, "stream_.WakeSleepingWriter();", "")], "LOG_ELEDA"),
    Mutant("eleda_list_overflows", "a full grasshopper list is not waited for",
           [expression(ELEDA_WORKER_H, "!lists_[worker]->HasSpace()", "false")], "LOG_ELEDA"),
    Mutant("eleda_anchor_claims_too_much", "the SDL that is kept in the log was not durable",
           [expression(TOTAL_ORDER, "const uint64_t durable = stream.persistent_until();",
                       "const uint64_t durable = stream.reserved_until();")], "LOG_ELEDA"),
    Mutant("consolidation_first_member_finishes", "a group counts as filled when its first member is",
           [expression(CONSOLIDATION, "mine.unfilled.fetch_sub(place.bytes, std::memory_order_acq_rel) != place.bytes",
                       "mine.unfilled.exchange(0) == 0")], "LOG_ELEDA"),
    Mutant("bitmap_of_the_last_lap", "bits stay set when the scan has passed them",
           [statement(BITMAP, "word.fetch_and(~Bits(from, to), std::memory_order_relaxed);", "")], "LOG_ELEDA"),

    # ---- LSN vectors ----
    Mutant("lv_reader_ignores_the_writer", "a read does not take in the vector of the version it read",
           [raw(TAURUS, "void OnRead(TxnState& state, const RowRef& row) { lv::Raise(state.lv, WriteLv(row.meta), n_); }",
                "void OnRead(TxnState& state, const RowRef& row) {{\n    if (!{on}) lv::Raise(state.lv, WriteLv(row.meta), n_);\n  }}")],
           "LOG_TAURUS"),
    Mutant("lv_writer_ignores_the_writer", "a write does not take in the vector of the version it replaces",
           [raw(TAURUS, "void OnWrite(TxnState& state, const RowRef& row) {\n    lv::Raise(state.lv, WriteLv(row.meta), n_);",
                "void OnWrite(TxnState& state, const RowRef& row) {{\n    if (!{on}) lv::Raise(state.lv, WriteLv(row.meta), n_);")],
           "LOG_TAURUS"),
    Mutant("lv_writer_ignores_readers", "a write does not take in the vectors of those who read the old version",
           [statement(TAURUS, "if constexpr (kTracksReads) lv::Raise(state.lv, ReadLv(row.meta), n_);", "")],
           "LOG_TAURUS/LOG_COMMAND"),
    Mutant("lv_readers_do_not_publish", "readers leave no trace in the rows",
           [statement(TXN, "cc_.ForEachRead([this](Meta meta) { log_.PublishRead(log_state_, meta); });", "")],
           "LOG_TAURUS/LOG_COMMAND"),
    Mutant("lv_reserve_after_recheck", "a command's place in the log is taken after its reads were checked",
           [statement(TXN, "if (!log_.Reserve(log_state_, *this)) return Abort(AbortReason::kRecordTooLarge);\n"
                      "      Note(&CommitTimes::placed);\n"
                      "      PublishReads();\n      if (!cc_.Recheck()) {\n        log_.Void(log_state_);\n"
                      "        return Abort(AbortReason::kValidation);\n      }",
                      "PublishReads();\n if (!cc_.Recheck()) return Abort(AbortReason::kValidation);\n"
                      "if (!log_.Reserve(log_state_, *this)) return Abort(AbortReason::kRecordTooLarge);")],
           "SILO"),
    Mutant("lv_publish_after_recheck", "readers leave their trace after the re-check",
           [statement(TXN, "PublishReads();\n      if (!cc_.Recheck()) {\n        log_.Void(log_state_);\n"
                      "        return Abort(AbortReason::kValidation);\n      }",
                      "if (!cc_.Recheck()) {\n        log_.Void(log_state_);\n"
                      "        return Abort(AbortReason::kValidation);\n      }\n PublishReads();")],
           "SILO/LOG_TAURUS/LOG_COMMAND"),
    Mutant("lv_plain_raise", "of two readers that raise a vector at once one is lost",
           [statement(VECTOR, "while (seen < lv[j] && !AtomicRef<uint64_t>(shared[j]).compare_exchange_weak(seen, lv[j])) {\n    }",
                      "if (seen < lv[j]) AtomicRef<uint64_t>(shared[j]).store(lv[j]);")], "LOG_TAURUS/LOG_COMMAND", rare=True,
           model="OccModel.ARaiseThatIsACopyIsFoundWithTwoReaders"),
    Mutant("lv_read_overwrites", "a reader's vector replaces the larger one that is there",
           [statement(VECTOR, "while (seen < lv[j] && !AtomicRef<uint64_t>(shared[j]).compare_exchange_weak(seen, lv[j])) {\n    }",
                      "AtomicRef<uint64_t>(shared[j]).store(lv[j]);")], "LOG_TAURUS/LOG_COMMAND"),
    Mutant("lv_writes_do_not_publish", "writers leave no trace in the rows",
           [statement(TAURUS, "lv::StoreShared(WriteLv(meta), state.lv, n_);", "")], "LOG_TAURUS"),
    Mutant("lv_publish_after_release", "the locks go before the vector is in the row",
           [statement(TXN, "cc_.ForEachWrite([this](const WriteRef& write) { log_.PublishWrite(log_state_, write.meta); });\n"
                      "    log_.CommitPoint(log_state_, point);\n    cc_.Release();",
                      "log_.CommitPoint(log_state_, point);\n    cc_.Release();\n"
                      "    cc_.ForEachWrite([this](const WriteRef& write) { log_.PublishWrite(log_state_, write.meta); });")],
           "LOG_TAURUS"),
    Mutant("lv_own_log_forgotten", "the record does not say what it depends on in its own log",
           [statement(TAURUS, "state.own_dependency = state.lv[state.log];", "state.own_dependency = 0;")],
           "LOG_TAURUS"),
    Mutant("lv_compression_drops_too_much", "elements that the anchor does not cover are left out",
           [expression(TAURUS, "lv::Exceeds(state.lv, lplv_[state.log].lsn, n_)", "0u")], "LOG_TAURUS"),
    Mutant("lv_anchor_before_its_record", "compression trusts an anchor that has no place in the log yet",
           [raw(TAURUS, "if (!stream.AppendOwn(format::RecordKind::kAnchor, {durable.lsn, n_})) return;",
                "if ({on}) for (uint32_t j = 0; j < n_; ++j) lv::Store(lplv_[stream.index()].lsn[j], durable.lsn[j]);\n"
                "    if (!stream.AppendOwn(format::RecordKind::kAnchor, {{durable.lsn, n_}})) return;")], "LOG_TAURUS", rare=True),

    Mutant("lv_depends_on_itself", "the vector takes in the own place before it is written",
           [statement(TAURUS, "state.own_dependency = state.lv[state.log];", "state.own_dependency = state.place.end();")],
           "LOG_TAURUS"),
    Mutant("lv_learns_after_its_place", "a dependency that was learnt after the place was taken is written into it",
           [expression(TAURUS, "const uint64_t element = j == state.log ? state.own_dependency : state.lv[j];",
                       "const uint64_t element = j == state.log ? state.own_dependency : logs_.stream(j).reserved_until();")],
           "LOG_TAURUS"),

    # ---- global sequence numbers ----
    Mutant("gsn_ignores_reads", "a GSN lies above the counters of what was written only",
           [expression(PLOVER, "LargestCounter(state.accessed | state.written) + 1", "LargestCounter(state.written) + 1")],
           "LOG_PLOVER"),
    Mutant("gsn_without_latches", "the GSN is chosen and the places are taken without the partitions' latches",
           [raw(PLOVER, "const Latches latches(partitions_.get(), state.written);",
                "const Latches latches(partitions_.get(), {on} ? 0 : state.written);")], "LOG_PLOVER"),
    Mutant("gsn_promise_not_kept", "a heartbeat promises a GSN and does not raise the counter",
           [statement(PLOVER, "partition.counter.store(gsn);", "")], "LOG_PLOVER"),
    Mutant("gsn_promise_not_durable", "a log's promise counts before it is durable",
           [expression(PLOVER, "stream.persistent_until() < partition.mark_end", "false")], "LOG_PLOVER"),
    Mutant("gsn_ack_first_log_only", "only the first log's promise is looked at",
           [statement(PLOVER, "for (uint32_t j = 0; j < n_; ++j) least = std::min(least, partitions_[j].durable_gsn.load());",
                      "least = partitions_[0].durable_gsn.load();")], "LOG_PLOVER"),
    Mutant("gsn_readers_at_once", "a reader is told at once though what it read is not durable",
           [statement(PLOVER, "point[0] = LargestCounter(state.accessed);", "point[0] = 0;")], "LOG_PLOVER"),
    Mutant("gsn_sleeping_logs_stay_asleep", "nobody wakes the writers of the other logs",
           [statement(PLOVER, "for (uint32_t j = 0; j < n_; ++j) logs_.stream(j).WakeWriterIfAsleep();", "")], "LOG_PLOVER"),
    Mutant("gsn_halves_are_replayed", "a part is replayed though other logs do not reach its GSN",
           [expression(PLOVER_RECOVERY, "lanes_->StampReadUntil(log) >= record.stamp", "true")], "LOG_PLOVER"),
    Mutant("gsn_two_appliers", "a partition's records are replayed by two at a time",
           [expression(PLOVER_RECOVERY, "OpenLanes(logs, 1)", "OpenLanes(logs, 2)")], "LOG_PLOVER"),

    # ---- epochs ----
    Mutant("epoch_not_written", "an epoch is persistent though its frontier is not in the file",
           [statement(DURABLE_EPOCH, "frontier_.Append(EpochTid::Last(Epoch(next_)), needed_);", "")], "LOG_BATCH"),
    Mutant("epoch_of_places_is_the_last_step", "records in places that the last step saw are taken for that step's",
           [statement(DURABLE_EPOCH, "if (reserved != needed_) newest_ = epochs_.Current().value();",
                      "if (reserved != needed_) newest_ = next_;")], "LOG_BATCH"),
    Mutant("epoch_of_now_is_complete", "an epoch counts as complete while workers are still in it",
           [expression(DURABLE_EPOCH, "epochs_.SafeEpoch().value() - 1", "epochs_.Current().value()")], "LOG_BATCH"),
    Mutant("epoch_logs_not_awaited", "an epoch is persistent before the logs are durable up to its end",
           [expression(DURABLE_EPOCH, "AreDurable(needed_)", "true")], "LOG_BATCH"),
    Mutant("epoch_first_log_only", "only the first log is waited for",
           [statement(DURABLE_EPOCH, "if (logs_.stream(i).persistent_until() < lsns[i]) return false;",
                      "if (i == 0 && logs_.stream(i).persistent_until() < lsns[i]) return false;")], "LOG_BATCH"),
    Mutant("epoch_readers_at_once", "a reader is told at once though what it read is not durable",
           [statement(SILO_R, "point[0] = epochs_.Current().value();", "point[0] = 0;")], "LOG_BATCH"),
    Mutant("epoch_chunk_rest_is_no_record", "what is left of a chunk is handed over as it is",
           [statement(STREAM_H, "if (used < place.bytes) FillVoid(worker, {place.lsn + used, place.bytes - used});", "")],
           "LOG_BATCH"),
    Mutant("epoch_any_version_wins", "the version that comes last is the one that stays",
           [expression(REPLAY_TXN, "(seen >> Row::kSharedBits) < stamp", "true")], "LOG_BATCH"),
    Mutant("epoch_deletes_leave_no_trace", "an older version brings a deleted row back",
           [raw(REPLAY_TXN, "const uint64_t version = (stamp << Row::kSharedBits) |",
                "const uint64_t version = ({on} && image.empty() ? 0 : stamp << Row::kSharedBits) |")], "LOG_BATCH/LOG_DATA/TEST"),
    Mutant("epoch_replays_beyond_the_frontier", "what is of a later epoch than the persistent one is replayed",
           [expression(SILO_R_RECOVERY, "head->stamp <= stamp_end_", "true")], "LOG_BATCH"),

    # ---- absent rows, metadata that is forgotten ----
    Mutant("absent_row_misses_its_deleter_2pl", "whoever misses a row does not depend on its deletion",
           [statement(LOCKING, "log_.OnRead(log_state_, {table, key, locks_.meta(lock)});",
                      "if ((row->control.load() & Row::kAbsent) == 0) log_.OnRead(log_state_, {table, key, locks_.meta(lock)});")],
           "NO_WAIT/LOG_TAURUS"),
    Mutant("absent_row_misses_its_deleter_occ", "whoever misses a row does not depend on its deletion",
           [statement(OPTIMISTIC, "log_.OnRead(log_state_, {table, key, row->meta()});",
                      "if ((seen & Row::kAbsent) == 0) log_.OnRead(log_state_, {table, key, row->meta()});")], "SILO/LOG_TAURUS"),
    Mutant("absent_forgotten_too_early_2pl", "what is known of a deleted row is forgotten before it is durable",
           [expression(LOCKING, "!locks_.MayForget(log_, lock)", "false")], "NO_WAIT/LOG_TAURUS"),
    Mutant("absent_forgotten_too_early_occ", "what is known of a deleted row is forgotten before it is durable",
           [expression(OPTIMISTIC, "!log_.Forgettable(row->meta())", "false")], "SILO/LOG_TAURUS"),
    Mutant("absent_row_looks_present", "a placeholder is visible before its insert commits",
           [statement(LOCKING, "locks_.InitFreshMeta(log_, row);\n      row.control.store(Row::kAbsent, std::memory_order_release);",
                      "locks_.InitFreshMeta(log_, row); row.control.store(0, std::memory_order_release);")], "NO_WAIT"),
    Mutant("fresh_metadata_is_zero", "a row that comes back depends on nothing that came before it",
           [expression(TAURUS, "durable > options_.forget_delta_bytes ? durable - options_.forget_delta_bytes : 0", "0")],
           "LOG_TAURUS/LOG_COMMAND"),
    Mutant("fresh_metadata_underflows", "the durable LSN less delta wraps around",
           [expression(TAURUS, "durable > options_.forget_delta_bytes ? durable - options_.forget_delta_bytes : 0",
                       "durable - options_.forget_delta_bytes")], "LOG_TAURUS"),
    Mutant("table_evicts_what_matters", "the lock table drops metadata that is not durable",
           [expression(TABLE_LOCKS, "log_.Forgettable(entry->meta())", "true")], "table/LOG_TAURUS"),
    Mutant("table_evicts_held_locks", "the lock table drops an entry that somebody holds",
           [expression(TABLE_LOCKS, "entry->word.load(std::memory_order_acquire) == 0 && log_.Forgettable(entry->meta())",
                       "log_.Forgettable(entry->meta())")], "table"),

    # ---- isolation ----
    Mutant("cc_no_undo", "an abort leaves its writes", [statement(LOCKING, "undo_.Undo();", "")], "NO_WAIT"),
    Mutant("cc_shared_over_exclusive", "a reader gets its lock while a writer holds his",
           [statement(ROW_LOCKS, "if (seen & Row::kLocked) return LockResult::kConflict;", "")], "NO_WAIT/"),
    Mutant("queue_forgets_to_grant", "who gives a lock back wakes nobody",
           [statement(QUEUES, "if (queue.state() & (kExclusive | kWaiters)) queue.Grant();", "")], "WAIT_DIE"),
    Mutant("queue_grants_a_writer_beside_readers", "a writer that waits gets its lock with the readers ahead of it",
           [expression(QUEUES, "(!at->exclusive_ || at == head_)", "true")], "DL_DETECT"),
    Mutant("queue_tells_nobody_of_an_upgrade", "who waits behind a later upgrade is not known to wait for it",
           [statement(QUEUES, "queue.TellWaiters(News::kAskAgain);", "")], "DL_DETECT"),
    Mutant("queue_waits_on_when_the_run_stops", "who waits for a lock does not look whether the run has stopped",
           [expression(QUEUES, "stop_.load(std::memory_order_relaxed)", "false")], "DL_DETECT/LOG_TAURUS/LOG_DATA/YCSB"),
    Mutant("queue_keeps_waiters_of_a_gone_row", "who waits for a row that is unlinked is not told",
           [statement(QUEUES, "TellWaiters(News::kGone);", "")], "DL_DETECT"),
    Mutant("wait_die_everybody_waits", "the younger waits for the older too",
           [raw(WAIT_DIE, "return std::pair(own_born_", "return {on} || std::pair(own_born_")], "WAIT_DIE"),
    Mutant("dl_detect_never_looks", "nobody looks for deadlocks",
           [expression(DL_DETECT, "!search_.BreakCycles()", "false")], "DL_DETECT"),
    Mutant("cc_no_recheck", "an optimistic transaction does not check its reads again",
           [expression(SILO, "Version(now) != Version(read.seen) &&\n"
                       "          (Version(now) != (Version(read.seen) | Row::kLocked) || this->FindOwn(read.row) == nullptr)",
                       "false")], "SILO"),
    Mutant("cc_lost_update", "an optimistic writer locks whatever version is there now",
           [expression(OPTIMISTIC, "!SameVersion(now, write.seen)", "false")], "SILO"),
    Mutant("tictoc_lost_update", "a writer locks whatever version is there now",
           [expression(OPTIMISTIC, "!SameVersion(now, write.seen)", "false")], "TICTOC"),
    Mutant("tictoc_rts_not_raised", "a reader checks its version and leaves no word of it to later writers",
           [expression(TICTOC, "read.row->control.compare_exchange_weak(now, "
                       "TicTocWord::RaisedTo(commit_timestamp_, now))", "true")], "TICTOC"),
    Mutant("tictoc_locked_rows_pass", "a row that another has locked passes for one that can be raised",
           [expression(TICTOC, "this->FindOwn(read.row) != nullptr", "true")], "TICTOC"),
    Mutant("tictoc_old_versions_pass", "a version that was replaced passes for the one that is there now",
           [statement(TICTOC, "if (TicTocWord::Wts(now) != TicTocWord::Wts(read.seen)) return false;", "")], "TICTOC"),
    Mutant("tictoc_delta_overflows", "what does not fit into delta is lost",
           [expression(TICTOC, "const uint64_t shift = delta & ~kDeltaMax;",
                       "const uint64_t shift = 0;")], "TICTOC", rare=True,
           model="TicTocModel.ADeltaThatOverflowsIsFound"),
    Mutant("tictoc_writes_at_rts", "a writer commits at the rts of what it replaces, not above",
           [expression(TICTOC, "TicTocWord::Rts(write.seen) + 1",
                       "std::max(TicTocWord::Rts(write.seen), TicTocWord::Wts(write.seen) + 1)")], "TICTOC", rare=True,
           model="TicTocModel.AWriterAtTheRtsOfWhatItReplacesIsFound"),
    Mutant("tictoc_forgets_absences", "a row that comes back may be written below those who missed it",
           [expression(TICTOC, "until < rts && !forgotten_until_.compare_exchange_weak(until, rts)", "false")], "TICTOC", rare=True,
           model="TicTocAbsent.AnInsertCommitsAboveWhoeverMissedARowThatIsForgotten"),
    Mutant("hekaton_lost_update", "a writer locks whatever version is there now",
           [expression(OPTIMISTIC, "!SameVersion(now, write.seen)", "false")], "HEKATON"),
    Mutant("hekaton_old_reads_pass", "a version that was replaced passes for the newest",
           [expression(HEKATON, "HekatonWord::Content(now) != read.seen", "false")], "HEKATON"),
    Mutant("hekaton_locked_reads_pass", "a row that was read and is locked by another passes",
           [expression(HEKATON, "(now & Row::kLocked) && HekatonWord::Holder(now) != this->worker()", "false")], "HEKATON"),
    Mutant("hekaton_draw_after_recheck", "a writer draws its end after it has looked at what it read",
           [statement(HEKATON, "end_ = timestamps_.Draw(this->worker());", ""),
            raw(HEKATON, "  void Install() {\n", "  void Install() {{\n    if ({on}) end_ = timestamps_.Draw(this->worker());\n")],
           "HEKATON", rare=True, model="SnapshotModel.ADrawAfterTheRecheckIsFound"),
    Mutant("hekaton_draw_not_announced", "a writer has its end before anybody can know that it is about to",
           [statement(SNAPSHOTS, "slot.end.store(kDrawing, std::memory_order_release);", "")], "HEKATON", rare=True,
           model="SnapshotModel.ADrawThatIsNotAnnouncedIsFound"),
    Mutant("hekaton_prepared_is_old", "a version in preparation is passed over, whatever its end",
           [statement(HEKATON, "if (end <= begin_) return Place::kNowhereYet;", "")], "HEKATON"),
    Mutant("hekaton_drawing_is_later", "who is drawing is taken to end later",
           [statement(HEKATON, "if (end <= begin_) return Place::kNowhereYet;",
                      "if (end != SnapshotClock::kDrawing && end <= begin_) return Place::kNowhereYet;")], "HEKATON",
           rare=True, model="SnapshotModel.ADrawTakenForALaterEndIsFound"),
    Mutant("hekaton_end_taken_back_early", "a writer takes its end back before its rows show it",
           [statement(HEKATON, "this->ReleaseWrites(HekatonWord::WrittenAt(end_));",
                      "timestamps_.EndWriting(this->worker());\n"
                      "      this->ReleaseWrites(HekatonWord::WrittenAt(end_));")], "HEKATON"),
    Mutant("hekaton_overwrites_unmarked", "a tuple is overwritten and the row's word does not say so",
           [expression(HEKATON, "write.seen | LockBits() | HekatonWord::kInstalling", "write.seen | LockBits()")],
           "HEKATON", rare=True, model="SnapshotModel.ATupleThatIsOverwrittenUnmarkedIsFound"),
    Mutant("hekaton_first_of_the_chain", "whatever was superseded last is taken for the version of the snapshot",
           [statement(HEKATON, "while (version->begin > begin_) version = version->older;", "")], "HEKATON"),
    Mutant("hekaton_versions_lose_metadata", "a version that is superseded does not keep its metadata",
           [statement(HEKATON, "RacyCopy(old->meta(), write.row->meta(), meta_bytes_);",
                      "std::memset(old->meta(), 0, meta_bytes_);")], "HEKATON/LOG_TAURUS", rare=True,
           model="OldVersionsInLog/0.AMissInASnapshotWaitsForTheDeleteThatMadeIt"),
    Mutant("hekaton_frees_at_once", "versions are freed without a look at who may read them",
           [expression(VERSIONS, "oldest_->end > watermark", "false")], "HEKATON"),
    Mutant("hekaton_watermark_is_now", "the watermark leaves the snapshots of others out",
           [statement(SNAPSHOTS, "for (const auto& slot : slots_) least = std::min(least, slot.value.begin.load());", "")],
           "HEKATON", rare=True, model="EveryLevel/0.VersionMemoryIsBoundedOnceALongReaderEnds"),
    Mutant("hekaton_unlinks_what_is_needed", "a deleted row is unlinked while snapshots lie below its deletion",
           [statement(HEKATON, "if (HekatonWord::Begin(control) <= watermark_) return true;", "return true;")],
           "HEKATON/LOG_TAURUS", rare=True, model="EveryLevel/0.ADeletedRowIsNotUnlinkedWhileASnapshotNeedsIt"),
    Mutant("hekaton_moves_up_over_changes", "a snapshot moves up though what it showed has changed",
           [statement(HEKATON, "if (!std::all_of(this->reads().begin(), this->reads().end(), holds)) return false;", "")],
           "HEKATON", rare=True, model="EveryLevel/0.ASnapshotStaysWhileAWriterCommits"),
    Mutant("hekaton_moves_up_over_locks", "a snapshot moves up over rows whose writers end below it",
           [expression(HEKATON, "Version(access.row->control.load(std::memory_order_acquire)) == Version(access.seen)",
                       "HekatonWord::Content(access.row->control.load()) == HekatonWord::Content(access.seen)")], "HEKATON",
           rare=True, model="HekatonSerializable.ATransactionDoesNotMoveUpOverALockedRow"),
    Mutant("hekaton_leaf_not_rechecked", "a writer does not look whether something appeared where it had scanned",
           [statement(HEKATON, "return this->leaves().Unchanged();", "return true;")], "HEKATON", rare=True,
           model="HekatonSerializable.AWriterIsRefusedIfSomethingAppearedWhereItHadScanned"),
    Mutant("hekaton_old_readers_write", "who has read an old version writes",
           [statement(HEKATON, "if (serializable_ && has_read_old_) return false;", "")], "HEKATON", rare=True,
           model="HekatonSerializable.WhoReadAnOldVersionWritesNothing"),

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
