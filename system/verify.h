// Is the recovered database right? (--verify after a recovery)
//
//   a  it equals the reference replay of the same logs over a fresh load, and the recovered set is the same
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
#include "tests/reference/reference_replay.h"

namespace dbx {

// The ids of the recovered transactions, ascending. Throws when one occurs twice.
std::vector<uint64_t> SortedIds(const std::vector<std::vector<TxnId>>& recovered);

// (a), the set: throws when the engine and the reference do not recover the same transactions.
void CheckSameSet(const std::vector<uint64_t>& engine, const std::vector<uint64_t>& reference);

// (b): true if every log ends cleanly with a digest; throws when it differs.
bool CheckRunEndDigest(const ReplaySummary& summary, const Digest128& digest);

// (c): throws when a writer of the ack file is missing from `recovered`.
void CheckAcknowledged(const std::string& ack_file, uint64_t run_id, const std::vector<uint64_t>& recovered);

// The bytes of the logs, for the reference to read.
std::vector<reference::FileImage> ImagesOf(const OldLogFiles& logs, FileSystem& files);

// All that apply to a recovery of the transactions `ids`; returns their letters, "a,b,d".
template <class WorkloadT>
std::string VerifyRecovery(const Options& options, FileSystem& files, const OldLogFiles& logs,
                           const ReplaySummary& summary, const std::vector<uint64_t>& ids, WorkloadT& workload,
                           const Database& database) {
  const Digest128 digest = DigestOf(database, options.thread_cnt);
  std::string verified;

  if (const auto what = workload.Inconsistency(database)) {
    throw Error(ExitStatus::kInternal, "verification d failed: " + *what);
  }
  {
    const reference::ReferenceLogs reference_logs = reference::ReadLogs(ImagesOf(logs, files));
    const reference::RecoveredSet set = reference::Recover(reference_logs);
    if (!set.damage.empty()) throw Error(ExitStatus::kInternal, "verification a failed: " + set.damage);
    CheckSameSet(ids, set.txn_ids);
    auto fresh = MakeWorkload<WorkloadT>(options);
    Database expected(0, options.thread_cnt);
    fresh.CreateTables(expected);
    fresh.Load(expected, options.seed, options.thread_cnt);
    const reference::ReplayResult replayed = reference::Replay(reference_logs, set, fresh, expected);
    if (!replayed.without_effect.empty()) {
      throw Error(ExitStatus::kInternal, "verification a failed: a logged transaction does not replay");
    }
    if (DigestOf(expected, options.thread_cnt) != digest) {
      throw Error(ExitStatus::kInternal, "verification a failed: the database differs from the reference replay's");
    }
  }
  verified = "a";
  if (CheckRunEndDigest(summary, digest)) verified += ",b";
  if (!options.ack_file.empty()) {
    CheckAcknowledged(options.ack_file, logs.headers.front().run_id, ids);
    verified += ",c";
  }
  return verified + ",d";
}

}  // namespace dbx
