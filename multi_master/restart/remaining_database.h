// The database of a dead cluster, from the logs of all its masters: every flush in the order of what it builds upon,
// page by page, then without the transactions that have no END (losers).
//
//   RemainingLog each -> flushes, as stamps allow (VsClock::MayApply) -> PageVersions -> losers' rows restored -> rows
//
// Pages are kept in memory; nothing is written.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "multi_master/process/log_follower.h"
#include "multi_master/restart/remaining_log.h"
#include "multi_master/store/page_versions.h"

namespace dbx::mm {

struct RestartCounters {
  uint64_t flushes = 0;
  uint64_t mini_transactions = 0;
  uint64_t changes = 0;
  uint64_t committed = 0, aborted = 0, readers = 0;  // ENDs
  uint64_t log_bytes = 0;                            // up to the last LFB of each log
  uint64_t losers = 0;                               // transactions without END that have rows
  uint64_t rows_restored = 0;                        // of losers
  uint64_t pages = 0;                                // leaves
  uint64_t rows = 0;
};

class RemainingDatabase {
 public:
  explicit RemainingDatabase(PageVersions::LoadedPage loaded) : pages_(std::move(loaded)) {}

  // All flushes of all logs; log i is of master i. Throws Error (kCorrupt), also where a flush builds upon one that its
  // log lacks.
  void Replay(std::vector<std::unique_ptr<RemainingLog>>& logs);

  using SeeRow = std::function<void(Key key, std::span<const std::byte> image)>;
  // After Replay: the present rows of the tree with this root, in the order of keys, without those of losers.
  void ForEachRow(TreeId tree, PageId root, const SeeRow& see);

  const RestartCounters& counters() const { return counters_; }
  // Of the transactions that had committed, in no order.
  const std::vector<TxnId>& committed() const { return committed_; }

 private:
  void Take(FollowedFlush flush);
  // Throws Error if one is left: it builds upon what no log has.
  void ThrowIfStuck(const std::vector<std::optional<FollowedFlush>>& next) const;
  // The newest version of a page, which must be there.
  std::unique_ptr<SlottedPage> PageOf(PageId page, TreeId tree);
  void RestoreLosers(SlottedPage& leaf);

  PageVersions pages_;
  VsClock clock_{MasterId(0)};  // for the order of flushes
  std::unordered_set<TxnName> ended_, losers_;
  std::vector<TxnId> committed_;
  uint64_t unfolded_bytes_ = 0;
  RestartCounters counters_;
};

}  // namespace dbx::mm
