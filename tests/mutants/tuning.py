"""What the simulated engine is built with, besides its faults."""
from sources import (
    ALIGNED_BUFFER, ARENA, BTREE_NODE, CHECKPOINT, CONSOLIDATION, DIFFERENTIAL_RECOVERY, ELEDA_WORKER, GAP_LOG_H,
    HEAP_VERSIONS, HEKATON, HELD_LEAVES, KEPT_LOG, LANES_H, LANE_RECOVERY, LOCKING, LOG_FILES, OPTIMISTIC,
    PAGE_SPACE, READER, READER_H, RECOVERY, STREAM, STREAM_BUILDER, STREAM_H, TABLE_VERSIONS, TAURUS,
    TAURUS_RECOVERY, TICTOC, TXN, VERSIONS, WATERMARKS, WRITER, WRITE_BEHIND, XOR,
)

# Not faults: what small simulated runs need to meet what large ones do. (file, text, replacement)
TUNING = [
    # Time for work that touches no atomic, where a model of time charges for it.
    ("multi_master/process/log_follower.cpp", "      if (group) take_(",
     "      if (group) ::dbx::sim::FollowLog(group->bytes.size());\n      if (group) take_("),
    # A fibre may stop in the middle of filling its place.
    (STREAM_BUILDER, "  header.body_crc = Crc32c(", "  ::dbx::sim::Step();\n  header.body_crc = Crc32c("),
    # The oracle hears of a commit when nothing can stop it and no other transaction sees it.
    (TXN, "    log_.Submit(log_state_, *this);",
     "    observer::PreCommitted(call_->txn_id());\n    log_.Submit(log_state_, *this);"),
    (TXN, "    cc_.Release();\n    return {Outcome::kOk, AbortReason::kCount, false};",
     "    observer::PreCommitted(call_->txn_id());\n"
     "    cc_.Release();\n    return {Outcome::kOk, AbortReason::kCount, false};"),
    # Some runs preallocate next to nothing: their logs grow, and can be cut short.
    (LOG_FILES, "(per_log / format::kBlockBytes + 256)",
     "(options.seed % 4 == 0 ? 2 : per_log / format::kBlockBytes + 256)"),
    (WRITER, "kPadBelowBytes = 32 * format::kBlockBytes;", "kPadBelowBytes = 2 * format::kBlockBytes;"),
    (STREAM_H, "std::max<uint64_t>(bytes, 16 * format::kBlockBytes)", "std::max<uint64_t>(bytes, 4 * format::kBlockBytes)"),
    # Anchors find no room more often than in a ring of megabytes; in an empty one there is room.
    (STREAM, "std::optional<Lsn> LogStream::AppendOwn(format::RecordKind kind, std::span<const uint64_t> words) {\n",
     "std::optional<Lsn> LogStream::AppendOwn(format::RecordKind kind, std::span<const uint64_t> words) {\n"
     "  if (reserved_until() != persistent_until() && ::dbx::sim::Random() % 4 == 0) return std::nullopt;\n"),
    (READER_H, "kBatchRecords = 32;", "kBatchRecords = 4;"),
    (LANES_H, "kQueueBatches = 16;", "kQueueBatches = 4;"),
    (TAURUS, "kTxnsPerTurn = 256;", "kTxnsPerTurn = 4;"),
    (LOCKING, "kTxnsPerSweep = 64;", "kTxnsPerSweep = 4;"),
    (OPTIMISTIC, "kTxnsPerSweep = 64;", "kTxnsPerSweep = 4;"),
    # A scan that failed once holds its leaves.
    (HELD_LEAVES, "kFailedScansMax = 3;", "kFailedScansMax = 1;"),
    # Timestamps of small runs are small. With fewer bits than these, two readers of the same thirty rows may move each
    # other's wts for ever.
    (TICTOC, "kDeltaBits = 15;", "kDeltaBits = 6;"),
    # An audit whose sum is wrong stores it, and a transaction that stores anything has its reads checked again: a wrong
    # snapshot would go unseen.
    ("benchmarks/test/procedures.h", "  return args.quiet != 0 && right ?",
     "  if constexpr (requires { Ctx::kReadsAreOfOneMoment; }) CHECK(right || !Ctx::kReadsAreOfOneMoment);\n"
     "  return args.quiet != 0 && right ?"),
    # What short runs supersede is freed while they last.
    (HEKATON, "std::max(kCommitsPerWatermark, 4 * shared.timestamps.workers())", "2"),
    (RECOVERY, "kRecordsPerCollect = 32;", "kRecordsPerCollect = 1;"),
    (WATERMARKS, "kLagMax = 4096;", "kLagMax = 16;"),
    # A reader of a freed version sees something else, even before the version is used again.
    (VERSIONS, "version->later = free_[version->size_class];",
     "version->absent = !version->absent;\n      version->later = free_[version->size_class];"),
    # Between taking a place and filling it the writer may lose the processor for long.
    (STREAM, "std::memcpy(at(place) + sizeof(format::RecordHeader), words.data(), words.size_bytes());",
     "if (sim::Random() % 16 == 0) sim::SleepFor(5000);\n"
     "  std::memcpy(at(place) + sizeof(format::RecordHeader), words.data(), words.size_bytes());"),
    # A fibre may stop in the middle of a change of a slot, and of the copy of a page.
    (XOR, "    x ^= y;\n", "    x ^= y;\n    ::dbx::sim::Step();\n"),
    (PAGE_SPACE, "    std::memcpy(image, &row->key, kKeyBytes);\n",
     "    ::dbx::sim::Step();\n    std::memcpy(image, &row->key, kKeyBytes);\n"),
    # Leaves and inner nodes of a handful of entries split, and become empty.
    (BTREE_NODE, "kSlots = 62;", "kSlots = 6;"),
    (BTREE_NODE, "kKeysMax = 62;", "kKeysMax = 6;"),
    (BTREE_NODE, "sizeof(BTreeLeaf) == 1024 && sizeof(BTreeInner) == 1024", "sizeof(BTreeLeaf) < 1024"),
    (WRITER, "kIdleRoundsBeforeLongSleep = 64;", "kIdleRoundsBeforeLongSleep = 2;"),
    (LANE_RECOVERY, "kNanosToSuspect = 20'000'000;", "kNanosToSuspect = 200'000;"),
    (TAURUS_RECOVERY, "kSampleRecords = 1 << 16;", "kSampleRecords = 16;"),
    # Some of a log is still in memory when it is replayed backward, and some is read again.
    (DIFFERENTIAL_RECOVERY, "kKeptBytes = size_t{256} << 20;", "kKeptBytes = size_t{32} << 10;"),
    (KEPT_LOG, "kChunkBytes = size_t{1} << 20;", "kChunkBytes = size_t{4} << 10;"),
    # A worker without work for a while, in some runs: writers fall asleep.
    ("system/transaction/worker.h", "    if (acks_.full()) WaitForAcks(control);",
     "    ::dbx::sim::MayPause();\n    if (acks_.full()) WaitForAcks(control);"),
    (ELEDA_WORKER, "kNodesMax = 1 << 15;", "kNodesMax = 16;"),
    # A worker that waits by the clock and keeps the highest priority would never let the holder of its lock go on.
    ("system/transaction/worker.h", "      LookForAcks(control);\n    } while (Clock::ToNanos(now_ - begin)",
     "      LookForAcks(control);\n      ::dbx::sim::YieldTurn(1000);\n    } while (Clock::ToNanos(now_ - begin)"),
    # The worker with the lock that others group behind may lose the processor for long.
    (CONSOLIDATION, "members_[worker].group = kAlone;",
     "members_[worker].group = kAlone;\n  if (sim::Random() % 8 == 0) sim::SleepFor(5000);"),
    ("system/run_control.h", "ack_queue_length = 1 << 15;", "ack_queue_length = 16;"),
    # Heaps of small tables have several partitions and many extents, and what fills up in long runs, or is done every
    # so often, comes in short ones.
    ("system/runs/heap_run.cpp", "kRowsPerPartition = 512;", "kRowsPerPartition = 16;"),
    ("system/runs/heap_run.cpp", "kExtentsPerPartition = 4;", "kExtentsPerPartition = 1;"),
    ("system/runs/heap_run.cpp", "kExtentBytesMin = 64 << 10;", "kExtentBytesMin = 1 << 10;"),
    (HEAP_VERSIONS, "kZeroedPerDrain = 16;", "kZeroedPerDrain = 2;"),
    (HEAP_VERSIONS, "kZeroedPerSlowDrain = 512;", "kZeroedPerSlowDrain = 5;"),
    (WRITE_BEHIND, "kBeginsPerSweep = 32;", "kBeginsPerSweep = 2;"),
    ("logging/write_behind/dirty_tuples.h", "kEntries = 4096;", "kEntries = 8;"),
    ("logging/write_behind/closed_transactions.h", "kEntries = 1 << 15;", "kEntries = 16;"),
    (GAP_LOG_H, "kStampWindow = uint64_t{1} << 24;", "kStampWindow = 32;"),
    (GAP_LOG_H, "kBlocks = 64,", "kBlocks = 20,"),
    # A reader of a freed version sees something else there, too. What joins a free list is looked at.
    (TABLE_VERSIONS, '#include "storage/heap/table_versions.h"\n',
     '#include "storage/heap/table_versions.h"\n#include "tests/simulation/free_slots.h"\n'),
    (TABLE_VERSIONS, "void TableVersions::Free(WorkerId worker, HeapSlot* slot) {\n",
     "void TableVersions::Free(WorkerId worker, HeapSlot* slot) {\n"
     "  slot->flags ^= HeapSlot::kAbsent;\n  ::dbx::sim::FreeSlot(slot);\n"),
    (TABLE_VERSIONS, "  for (HeapSlot* const slot : free_slots) partition.AddFree(slot);",
     "  for (HeapSlot* const slot : free_slots) ::dbx::sim::FreeSlot(slot);\n"
     "  for (HeapSlot* const slot : free_slots) partition.AddFree(slot);"),
    # Memory that the engine takes without operator new may run out too.
    (ARENA, "mmap(nullptr, bytes, PROT_READ", "::dbx::sim::Map(nullptr, bytes, PROT_READ"),
    (READER, "std::aligned_alloc(", "::dbx::sim::AlignedAlloc("),
    (CHECKPOINT, "std::aligned_alloc(", "::dbx::sim::AlignedAlloc("),
    (ALIGNED_BUFFER, "std::aligned_alloc(", "::dbx::sim::AlignedAlloc("),
]
