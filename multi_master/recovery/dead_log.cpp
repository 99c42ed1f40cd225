#include "multi_master/recovery/dead_log.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "base/error.h"

namespace dbx::mm {
namespace {

[[noreturn]] void Damaged(const PageChange& change, const char* why) {
  throw Error(ExitStatus::kCorrupt, "the log of master " + std::to_string(change.lsn.master.value()) + ", change " +
                                        std::to_string(change.lsn.time.value()) + ": " + why);
}

// A mini-transaction formats the new page before it links to it, in the same record.
bool IsLeaf(std::span<const PageChange> before, const PageChange& split, PageId page) {
  for (auto change = before.rbegin(); change != before.rend(); ++change) {
    const auto* format = std::get_if<FormatPage>(&change->what);
    if (format != nullptr && change->page == page) return format->level == 0;
  }
  Damaged(split, "a split without a new page");
}

}  // namespace

DeadLog::DeadLog(MasterId master, ClusterEpoch epoch) : master_(master), epoch_(epoch) {}

void DeadLog::Take(const FollowedFlush& flush) {
  const std::span<const PageChange> changes = flush.changes;
  for (size_t i = 0; i < changes.size(); ++i) TakeChange(changes.first(i), changes[i]);
  // Behind them: an END is behind all changes of its transaction.
  for (const FollowedFlush::End& end : flush.ends) {
    const auto ended = rows_.find(end.txn);
    if (ended == rows_.end()) continue;
    rows_kept_ -= ended->second.size();
    rows_.erase(ended);
  }
  log_end_ = flush.lfb.time();
}

void DeadLog::TakeChange(std::span<const PageChange> before, const PageChange& change) {
  const uint64_t order = ++changes_;
  versions_[change.page] = change.lsn;
  if (const auto* put = std::get_if<PutRow>(&change.what)) {
    if (put->writer.master != master_ || put->writer.epoch != epoch_) Damaged(change, "another master's transaction");
    std::vector<Written>& rows = rows_[put->writer];
    const UndoLoser::Row row{change.page, put->key};
    if (!rows.empty() && rows.back().row == row) return;
    rows.push_back({order, row});
    rows_kept_max_ = std::max(rows_kept_max_, ++rows_kept_);
  } else if (const auto* split = std::get_if<SplitLeft>(&change.what)) {
    if (!IsLeaf(before, change, split->right)) return;
    splits_.push_back({order, {change.page, split->separator, split->right, {}}});
  } else if (const auto* root = std::get_if<SplitRoot>(&change.what)) {
    if (!IsLeaf(before, change, root->right)) return;
    splits_.push_back({order, {change.page, root->separator, root->right, {}}});
    splits_.push_back({order, {change.page, 0, root->left, {}}});
  }
}

void DeadLog::AddLosers(std::vector<Step>& steps, std::vector<Loser>& losers) {
  for (auto txn = rows_.rbegin(); txn != rows_.rend(); ++txn) {
    Loser loser{txn->first, {}};
    std::set<UndoLoser::Row> seen;
    for (const Written& written : txn->second) {
      if (!seen.insert(written.row).second) continue;
      steps.push_back({written.order, {written.row.page, written.row.key, {}, loser.name}});
      loser.rows.push_back(written.row);
    }
    std::reverse(loser.rows.begin(), loser.rows.end());
    losers.push_back(std::move(loser));
  }
}

DeadLog::Result DeadLog::Finish() {
  Result result{{master_, epoch_, log_end_, {}, {}, {}}, {}};
  std::vector<Step> steps = std::exchange(splits_, {});
  AddLosers(steps, result.losers);
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.first < b.first; });
  for (Step& step : steps) result.dead.steps.push_back(std::move(step.second));
  for (const Loser& loser : result.losers) result.dead.losers.push_back(loser.name.sequence);
  for (const auto& [page, lsn] : versions_) result.dead.versions.push_back({page, lsn});
  std::sort(result.dead.versions.begin(), result.dead.versions.end(),
            [](const auto& a, const auto& b) { return a.page < b.page; });
  return result;
}

}  // namespace dbx::mm
