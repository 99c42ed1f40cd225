#include "system/replay/verify.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "logging/schemes.h"
#include "system/reference/reference_apply.h"
#include "system/reference/reference_pages.h"
#include "system/replay/workload_check.h"
#include "system/transaction/ack_file.h"
#include "system/workloads.h"

namespace dbx {
namespace {

std::string NameOf(uint64_t id) {
  const TxnId txn{id};
  return "transaction " + std::to_string(txn.sequence()) + " of worker " + std::to_string(txn.worker().value());
}

void CheckDigest(const Database& database, const std::pair<uint64_t, uint64_t>& digest, uint32_t threads,
                 const char* what) {
  if (DigestOf(database, threads) != Digest128{digest.first, digest.second}) ThrowViolated(what);
}

// What is there before the logs of the chain are replayed: the initial state, or a checkpoint.
template <class WorkloadT>
void LoadReferenceStart(const Options& options, FileSystem& files, const OldRuns& runs, WorkloadT& fresh,
                        Database& expected) {
  if (!runs.FromCheckpoint()) return fresh.Load(expected, options.seed, options.thread_cnt);
  const auto then = reference::LoadCheckpoint(ImageOf(runs.chain.front(), files), expected);
  if (runs.chain.front().rows() != nullptr) return;  // adopted behind its logs
  fresh.Adopt(expected, options.seed);
  if (then)
    CheckDigest(expected, *then, options.thread_cnt, "a failed: the checkpoint differs from what was continued");
}

// Replays a run over what is there; one that began with a backup, over that.
template <class WorkloadT>
void ReplayByReference(const Options& options, FileSystem& files, const OldRun& run,
                       const std::vector<std::vector<TxnId>>& names, WorkloadT& fresh, Database& expected) {
  const reference::RunImage image = ImageOf(run, files);
  const reference::ReferenceLogs logs = reference::ReadRun(image);
  const reference::RecoveredSet set = reference::Recover(logs);
  if (!set.damage.empty()) ThrowViolated("a failed: " + set.damage);
  CheckSameSet(SortedIds(names), set.txn_ids);
  if (run.anchor) {
    reference::ReplayPages(image, logs, set, expected);
    fresh.Adopt(expected, options.seed);
  } else if (!reference::Replay(logs, set, fresh, expected).without_effect.empty()) {
    ThrowViolated("a failed: a logged transaction does not replay");
  }
  // Its rows were of different moments.
  if (run.rows() != nullptr) fresh.Adopt(expected, options.seed);
  if (logs.frozen_digest) {
    CheckDigest(expected, *logs.frozen_digest, options.thread_cnt,
                "a failed: a run differs from what was continued once");
  }
}

// (a): that the reference replay of the chain over a fresh load, or over its checkpoint or backup, recovers the same
// transactions of each run. Returns the digest of its final state.
template <class WorkloadT>
Digest128 ReferenceDigest(const Options& options, FileSystem& files, const OldRuns& runs,
                          const std::vector<RecoveredRun>& recovered) {
  auto fresh = MakeWorkload<WorkloadT>(options);
  Database expected({}, options.thread_cnt);
  CreateTables(options, fresh, expected);
  if (!runs.chain.front().anchor) LoadReferenceStart(options, files, runs, fresh, expected);
  for (size_t i = 0; i < runs.chain.size(); ++i) {
    ReplayByReference(options, files, runs.chain[i], recovered[i].names, fresh, expected);
  }
  return DigestOf(expected, options.thread_cnt);
}

}  // namespace

void ThrowViolated(const std::string& what) { throw Error(ExitStatus::kInternal, "verification " + what); }

reference::RunImage ImageOf(const OldRun& run, FileSystem& files) {
  const auto image_of = [&files](const std::string& path) {
    FileBytes bytes = files.Map(path);
    return reference::FileImage{path, bytes.bytes, std::move(bytes.owner)};
  };
  reference::RunImage image;
  for (const std::string& path : run.paths) image.logs.push_back(image_of(path));
  for (const std::string& path : run.committed_paths) image.committed.push_back(image_of(path));
  if (run.frozen) image.frozen = image_of(run.frozen_path);
  if (run.manifest) image.manifest = image_of(run.manifest_path);
  if (run.frontier) image.frontier = image_of(run.frontier_path);
  for (const std::string& path : run.checkpoint_paths) image.checkpoint.push_back(image_of(path));
  if (InfoOf(static_cast<format::Scheme>(run.header().scheme)).version_heap) {
    image.heap = image_of(run.heap_path);
    image.gaps = image_of(run.gaps_path);
  }
  if (run.anchor) image.anchor = image_of(run.anchor_path);
  if (run.row_anchor) image.row_anchor = image_of(run.row_anchor_path);
  for (const std::string& path : run.backup_paths) image.backups.push_back(image_of(path));
  return image;
}

std::vector<uint64_t> SortedIds(const std::vector<std::vector<TxnId>>& recovered) {
  std::vector<uint64_t> ids;
  for (const auto& names : recovered) {
    for (const TxnId id : names) ids.push_back(id.value);
  }
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end()) ThrowViolated("a failed: " + NameOf(*twice) + " was recovered twice");
  return ids;
}

void CheckSameSet(const std::vector<uint64_t>& engine, const std::vector<uint64_t>& reference) {
  std::vector<uint64_t> difference;
  std::set_difference(reference.begin(), reference.end(), engine.begin(), engine.end(), std::back_inserter(difference));
  if (!difference.empty()) ThrowViolated("a failed: " + NameOf(difference.front()) + " was not recovered");
  std::set_difference(engine.begin(), engine.end(), reference.begin(), reference.end(), std::back_inserter(difference));
  if (!difference.empty()) ThrowViolated("a failed: " + NameOf(difference.front()) + " should have been dropped");
}

bool HasRunEndDigest(const ReplaySummary& summary) {
  return summary.clean_end && std::all_of(summary.run_ends.begin(), summary.run_ends.end(),
                                          [](const auto& end) { return end && end->has_digest != 0; });
}

bool CheckRunEndDigest(const ReplaySummary& summary, const Digest128& digest) {
  if (!HasRunEndDigest(summary)) return false;
  for (const auto& run_end : summary.run_ends) {
    if (run_end->digest[0] != digest.low || run_end->digest[1] != digest.high) {
      ThrowViolated("b failed: the database differs from the one that the run ended with");
    }
  }
  return true;
}

void CheckAcknowledged(const std::string& ack_file, uint64_t run_id, const std::vector<uint64_t>& recovered,
                       const std::vector<uint64_t>& ended_below) {
  const auto file = AckFile::Open(ack_file, run_id);
  if (file->unrecorded() > 0) {
    ThrowViolated("c failed: " + std::to_string(file->unrecorded()) + " acknowledged transactions have no bit in " +
                  ack_file);
  }
  file->ForEachAcknowledged([&](TxnId id) {
    const uint32_t worker = id.worker().value();
    if (worker < ended_below.size() && id.sequence() < ended_below[worker]) return;
    if (!std::binary_search(recovered.begin(), recovered.end(), id.value)) {
      ThrowViolated("c failed: acknowledged " + NameOf(id.value) + " is lost");
    }
  });
}

Verification VerifyRecovery(const Options& options, FileSystem& files, const OldRuns& runs,
                            const std::vector<RecoveredRun>& recovered, WorkloadRef workload,
                            const Database& database) {
  // A digest covers the run's changes to its starting state, which is proven where that is a fresh load.
  const bool starts_afresh = runs.chain.size() == 1 && !runs.newest().manifest && runs.newest().rows() == nullptr;
  const bool by_reference = options.reference || !starts_afresh || !HasRunEndDigest(recovered.back().summary);
  const uint64_t run_id = runs.newest().header().run_id;
  const auto acks = options.ack_file.empty() ? nullptr : AckFile::Open(options.ack_file, run_id);
  Digest128 digest, expected;
  const auto check = [&]<class WorkloadT>(const WorkloadT* checked) {
    // In parallel: they share nothing, and the reference takes longest.
    RunInParallel(by_reference ? 2 : 1, [&](uint32_t i) {
      if (i == 1) {
        expected = ReferenceDigest<WorkloadT>(options, files, runs, recovered);
      } else {
        digest = DigestOf(database, options.thread_cnt);
        const auto what = CheckWorkload(options, *checked, database, acks.get());
        if (what) ThrowViolated("d failed: " + *what);
      }
    });
  };
  std::visit(check, workload);
  if (by_reference && expected != digest) ThrowViolated("a failed: the database differs from the reference replay's");
  std::string verified = by_reference ? "a," : "";
  if (CheckRunEndDigest(recovered.back().summary, digest)) verified += "b,";
  if (!options.ack_file.empty()) {
    CheckAcknowledged(options.ack_file, run_id, SortedIds(recovered.back().names),
                      recovered.back().summary.ended_below);
    verified += "c,";
  }
  return {verified + "d", digest};
}

}  // namespace dbx
