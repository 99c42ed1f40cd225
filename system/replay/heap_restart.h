// A restart of a run with a persistent heap (LogTraits::version_heap): into the same heap, to go on in it, or a
// recovery
// (-Lr1), which looks at a private copy and changes nothing.
//
// There is nothing to replay: a version counts if the newest record says so (logging/gaps/gap_log.h). Main's thread.
#pragma once

#include <memory>

#include "storage/digest.h"
#include "system/command_line/options.h"
#include "system/result.h"
#include "system/runs/heap_run.h"
#include "system/runs/log_files.h"
#include "system/workloads.h"

namespace dbx {

// Of options that mean nothing to such a run. Throws Error (kUsage).
void RefuseForHeaps(const Options& options, const OldRun& run);

// Goes on in the heap of `run`, which is locked for that: the record of its next life is durable, and the workload has
// adopted what it needs. `database` has its tables. Throws Error as HeapRun.
std::unique_ptr<HeapRun> RestartHeap(const Options& options, LogStorage& storage, const OldRun& run,
                                     WorkloadRef workload, Database& database);

// -Lr1. Throws Error as HeapRun, and kInternal where --verify finds that something is wrong.
RecoveryResult RecoverHeap(const Options& options, LogStorage& storage, const LogTraits& traits);

// What --verify checks, of a private copy (system/replay/verify.h has the letters):
//   a  the same rows as the reference finds, by a parser of its own
//   b  the digest that a clean end left in the newest record
//   c  every acknowledged writer of the ack file has a number below that of the record for its worker
//   d  the workload's own conditions
void VerifyHeap(const Options& options, FileSystem& files, const OldRun& run, WorkloadRef workload);

// What a result says of a heap.
HeapResult ResultOf(const HeapRun& heap);

}  // namespace dbx
