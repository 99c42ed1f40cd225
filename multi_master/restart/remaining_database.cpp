#include "multi_master/restart/remaining_database.h"

#include <string>

#include "base/error.h"

namespace dbx::mm {
namespace {

// Versions above their bases are folded when records of so many bytes are kept for them.
constexpr uint64_t kUnfoldedBytesMax = 64 << 20;

VsVector Everything() {
  VsVector all;
  for (uint8_t i = 0; i < kMastersMax; ++i) all.Set(MasterId(i), VsTime(UINT64_MAX));
  return all;
}

[[noreturn]] void Damaged(const std::string& what) { throw Error(ExitStatus::kCorrupt, "damaged logs: " + what); }

std::string NameOf(PageId page) { return "page " + std::to_string(page.value()); }

std::string NameOf(const TxnName& txn) {
  return "transaction " + std::to_string(txn.sequence) + " of master " + std::to_string(txn.master.value());
}

}  // namespace

void RemainingDatabase::Replay(std::vector<std::unique_ptr<RemainingLog>>& logs) {
  std::vector<std::optional<FollowedFlush>> next(logs.size());
  const auto fetch = [&](size_t i) {
    if (std::optional<LfbGroup> group = logs[i]->Next()) {
      next[i] = DecodeFlush(logs[i]->master(), std::make_shared<const LfbGroup>(std::move(*group)));
    }
  };
  for (size_t i = 0; i < logs.size(); ++i) fetch(i);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < logs.size(); ++i) {
      while (next[i] && clock_.MayApply(next[i]->lfb)) {
        clock_.OnApplied(next[i]->lfb);
        Take(*std::exchange(next[i], std::nullopt));
        fetch(i);
        moved = true;
      }
    }
  }
  // Pages that no row is read from have changes that must fit, too.
  pages_.FoldBelow(Everything());
  ThrowIfStuck(next);
  if (pages_.waiting() > 0) Damaged("changes of pages wait for versions that no log has");
  for (const auto& log : logs) counters_.log_bytes += log->position().value();
}

void RemainingDatabase::ThrowIfStuck(const std::vector<std::optional<FollowedFlush>>& next) const {
  for (const std::optional<FollowedFlush>& flush : next) {
    if (!flush) continue;
    for (uint8_t j = 0; j < kMastersMax; ++j) {
      const VsTime needed = flush->lfb.stamp.of(MasterId(j));
      if (j == flush->lfb.master.value() || clock_.applied().Covers(MasterId(j), needed)) continue;
      Damaged("the log of master " + std::to_string(flush->lfb.master.value()) + " builds upon time " +
              std::to_string(needed.value()) + " of master " + std::to_string(j) + ", whose log ends at time " +
              std::to_string(clock_.applied().of(MasterId(j)).value()));
    }
  }
}

void RemainingDatabase::Take(FollowedFlush flush) {
  ++counters_.flushes;
  counters_.changes += flush.changes.size();
  const auto& group = *static_cast<const LfbGroup*>(flush.bytes.get());
  for (const LogRecord& record : group.records) counters_.mini_transactions += record.kind == kPagesKind;
  unfolded_bytes_ += group.bytes.size();
  pages_.Take(flush.changes, flush.bytes);
  for (const FollowedFlush::End& end : flush.ends) {
    // A survivor that died when the END of a loser was durable, and before it told of it, has left it to another one.
    if (!ended_.insert(end.txn).second) continue;
    counters_.committed += end.outcome == TxnOutcome::kCommitted;
    counters_.aborted += end.outcome == TxnOutcome::kAborted;
    counters_.readers += end.outcome == TxnOutcome::kReadOnly;
    if (end.outcome == TxnOutcome::kCommitted) committed_.push_back(end.id);
  }
  if (unfolded_bytes_ < kUnfoldedBytesMax) return;
  pages_.FoldBelow(Everything());
  unfolded_bytes_ = 0;
}

std::unique_ptr<SlottedPage> RemainingDatabase::PageOf(PageId page, TreeId tree) {
  PageVersion version = pages_.Newest(page, Everything());
  if (const char* why = version.page->WhyInvalid(page)) Damaged(NameOf(page) + ": " + why);
  if (version.page->tree() != tree) Damaged(NameOf(page) + " is of another tree");
  return std::move(version.page);
}

// Of each row that a loser wrote last the page keeps the version before. A row's earlier writer had ended before the
// loser had its lock, durably.
void RemainingDatabase::RestoreLosers(SlottedPage& leaf) {
  const auto is_loser = [&](const TxnName& writer) { return writer != TxnName() && !ended_.contains(writer); };
  for (uint32_t slot = 0; slot < leaf.slots(); ++slot) {
    const RowView row = leaf.RowAt(slot);
    if (!is_loser(row.current.writer)) continue;
    const TxnName loser = row.current.writer, before = row.before.writer;
    const PageLsn lsn = leaf.lsn();
    const PageChange change{leaf.id(), {lsn.master, VsTime(lsn.time.value() + 1)}, lsn, RestoreRow{row.key, loser}};
    if (Apply(leaf, change) != ApplyStatus::kApplied) Damaged(NameOf(leaf.id()) + ": a row without its last version");
    if (is_loser(before)) Damaged(NameOf(loser) + " wrote over " + NameOf(before) + ", which has no END");
    losers_.insert(loser);
    ++counters_.rows_restored;
  }
  counters_.losers = losers_.size();
}

void RemainingDatabase::ForEachRow(TreeId tree, PageId root, const SeeRow& see) {
  std::unique_ptr<SlottedPage> page = PageOf(root, tree);
  while (!page->is_leaf()) {
    const uint8_t level = page->level();
    page = PageOf(page->ChildAt(0), tree);
    if (page->level() + 1 != level) Damaged(NameOf(page->id()) + " is of another level");
  }
  for (Key low = 0;;) {
    RestoreLosers(*page);
    ++counters_.pages;
    for (uint32_t slot = 0; slot < page->slots(); ++slot) {
      const RowView row = page->RowAt(slot);
      if (row.key < low) Damaged(NameOf(page->id()) + " has a key of the page to its left");
      if (!row.current.present) continue;
      see(row.key, row.current.image);
      ++counters_.rows;
    }
    if (!page->has_right()) return;
    if (page->high_key() <= low) Damaged(NameOf(page->id()) + " is in a circle of pages");
    low = page->high_key();
    page = PageOf(page->right(), tree);
    if (!page->is_leaf()) Damaged(NameOf(page->id()) + " is no leaf");
  }
}

}  // namespace dbx::mm
