// Is the recovered database right? (--verify after a recovery)
//
//   a  it equals the reference replay of the same logs over a fresh load, or over a checkpoint with the digest of what
//      it was made from, and the recovered set is the same
//   b  it equals the digest that a clean end left in RUN_END
//   c  every acknowledged writer of the ack file was recovered
//   d  the workload's own consistency conditions hold
//
// What checks the engine is not the engine: this is the one place of the product that uses tests/reference, which has
// a parser, an order and a replay of its own. Any violation is an Error(kInternal) that names the first one.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "logging/lane_recovery.h"
#include "storage/digest.h"
#include "system/ack_file.h"
#include "system/log_files.h"
#include "system/options.h"
#include "system/workloads.h"
#include "tests/reference/reference_run.h"

namespace dbx {

// The ids of the recovered transactions, ascending. Throws when one occurs twice.
std::vector<uint64_t> SortedIds(const std::vector<std::vector<TxnId>>& recovered);

// (a), the set: throws when the engine and the reference do not recover the same transactions.
void CheckSameSet(const std::vector<uint64_t>& engine, const std::vector<uint64_t>& reference);

// (b): true if every log ends cleanly with a digest; throws when it differs.
bool CheckRunEndDigest(const ReplaySummary& summary, const Digest128& digest);

// (c): throws when a writer of the ack file is missing from `recovered`.
void CheckAcknowledged(const std::string& ack_file, uint64_t run_id, const std::vector<uint64_t>& recovered);

// What the engine recovered of one run.
struct RecoveredRun {
  ReplaySummary summary;
  std::vector<std::vector<TxnId>> names;  // by worker
};

// The bytes of a run's files, for the reference to read.
reference::RunImage ImageOf(const OldRun& run, FileSystem& files);

// (a): that the reference replay of the chain over a fresh load, or over its checkpoint, recovers the same
// transactions of each run and ends with this digest.
template <class WorkloadT>
void CheckAgainstReference(const Options& options, FileSystem& files, const OldRuns& runs,
                           const std::vector<RecoveredRun>& recovered, const Digest128& digest) {
  const auto violated = [](const std::string& what) {
    throw Error(ExitStatus::kInternal, "verification a failed: " + what);
  };
  auto fresh = MakeWorkload<WorkloadT>(options);
  Database expected(0, options.thread_cnt);
  CreateTables(options, fresh, expected);
  if (runs.FromCheckpoint()) {
    const auto then = reference::LoadCheckpoint(ImageOf(runs.chain.front(), files), expected);
    fresh.Adopt(expected, options.seed);
    if (then && DigestOf(expected, options.thread_cnt) != Digest128{then->first, then->second}) {
      violated("the checkpoint differs from what was continued");
    }
  } else {
    fresh.Load(expected, options.seed, options.thread_cnt);
  }
  for (size_t i = 0; i < runs.chain.size(); ++i) {
    const reference::ReferenceLogs logs = reference::ReadRun(ImageOf(runs.chain[i], files));
    const reference::RecoveredSet set = reference::Recover(logs);
    if (!set.damage.empty()) violated(set.damage);
    CheckSameSet(SortedIds(recovered[i].names), set.txn_ids);
    const reference::ReplayResult replayed = reference::Replay(logs, set, fresh, expected);
    if (!replayed.without_effect.empty()) violated("a logged transaction does not replay");
    if (logs.frozen_digest) {
      const Digest128 then{logs.frozen_digest->first, logs.frozen_digest->second};
      if (DigestOf(expected, options.thread_cnt) != then) violated("a run differs from what was continued once");
    }
  }
  if (DigestOf(expected, options.thread_cnt) != digest) violated("the database differs from the reference replay's");
}

struct Verification {
  std::string checks;  // the letters of those that applied, "a,b,d"
  Digest128 digest;    // of the database
};

// All that apply. (b) and (c) are about the newest run.
template <class WorkloadT>
Verification VerifyRecovery(const Options& options, FileSystem& files, const OldRuns& runs,
                            const std::vector<RecoveredRun>& recovered, WorkloadT& workload, const Database& database) {
  const Digest128 digest = DigestOf(database, options.thread_cnt);
  if (const auto what = workload.Inconsistency(database)) {
    throw Error(ExitStatus::kInternal, "verification d failed: " + *what);
  }
  CheckAgainstReference<WorkloadT>(options, files, runs, recovered, digest);
  std::string verified = "a";
  if (CheckRunEndDigest(recovered.back().summary, digest)) verified += ",b";
  if (!options.ack_file.empty()) {
    CheckAcknowledged(options.ack_file, runs.newest().header().run_id, SortedIds(recovered.back().names));
    verified += ",c";
  }
  return {verified + ",d", digest};
}

}  // namespace dbx
