// Is the recovered database right? (--verify after a recovery)
//
//   a  it equals the reference replay of the same logs over a fresh load, over a checkpoint with the digest of the
//      state behind it, or over the run's own backup, and the recovered set is the same; left out where --reference=0,
//      (b) applies, and the run continues no other
//   b  it equals the digest that a clean end left in RUN_END
//   c  every acknowledged writer of the ack file was recovered
//   d  the workload's own consistency conditions hold; of TEST, with an ack file, the read sets of acknowledged readers
//      are part of the history: each version is initial or by a recovered transaction, and fits a serial order with
//      the rest
//
// The engine does not check itself: system/reference has a parser, an order and a replay of its own, and includes none
// of the engine's. Any violation is an Error(kInternal) that names the first one.
#pragma once

#include <string>
#include <vector>

#include "logging/lane_recovery.h"
#include "storage/digest.h"
#include "system/command_line/options.h"
#include "system/reference/reference_run.h"
#include "system/runs/log_files.h"
#include "system/workloads.h"

namespace dbx {

// The ids of the recovered transactions, ascending. Throws when one occurs twice.
std::vector<uint64_t> SortedIds(const std::vector<std::vector<TxnId>>& recovered);

// (a), the set: throws when the engine and the reference do not recover the same transactions.
void CheckSameSet(const std::vector<uint64_t>& engine, const std::vector<uint64_t>& reference);

// Whether every log ends cleanly and with a digest.
bool HasRunEndDigest(const ReplaySummary& summary);

// (b): true if there is a digest to check; throws when it differs.
bool CheckRunEndDigest(const ReplaySummary& summary, const Digest128& digest);

// "verification WHAT", kInternal.
[[noreturn]] void ThrowViolated(const std::string& what);

// (c): throws when a writer of the ack file is missing from `recovered`, and has no lower sequence than `ended_below`
// has for its worker (ReplaySummary).
void CheckAcknowledged(const std::string& ack_file, uint64_t run_id, const std::vector<uint64_t>& recovered,
                       const std::vector<uint64_t>& ended_below = {});

// The transactions that the engine recovered of one run.
struct RecoveredRun {
  ReplaySummary summary;
  std::vector<std::vector<TxnId>> names;  // by worker
};

// The bytes of a run's files, for the reference to read.
reference::RunImage ImageOf(const OldRun& run, FileSystem& files);

struct Verification {
  std::string checks;  // the letters of those that applied, "a,b,d"
  Digest128 digest;    // of the database
};

// All applicable checks. (b) and (c) are about the newest run.
Verification VerifyRecovery(const Options& options, FileSystem& files, const OldRuns& runs,
                            const std::vector<RecoveredRun>& recovered, WorkloadRef workload, const Database& database);

}  // namespace dbx
