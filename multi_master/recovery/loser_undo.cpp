#include "multi_master/recovery/loser_undo.h"

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"

namespace dbx::mm {

void LoserUndo::Offer(UndoLoser undo) {
  const std::lock_guard latch(latch_);
  due_.push_back(std::move(undo));
  changed_.notify_all();
}

void LoserUndo::OnApplied() {
  const std::lock_guard latch(latch_);
  changed_.notify_all();
}

void LoserUndo::Stop() {
  const std::lock_guard latch(latch_);
  stopped_ = true;
  changed_.notify_all();
}

void LoserUndo::Run() {
  std::unique_lock latch(latch_);
  for (;;) {
    changed_.wait(latch, [this] { return stopped_ || !due_.empty(); });
    if (stopped_) return;
    const UndoLoser undo = std::move(due_.front());
    due_.pop_front();
    latch.unlock();
    Undo(undo);
    latch.lock();
  }
}

void LoserUndo::Undo(const UndoLoser& undo) {
  for (const UndoLoser::Row& row : undo.rows) UndoRow(undo.loser, row);
  if (!undo.is_last || !AwaitApplied(undo.after)) return;
  const VsTime end = log_.AppendEnd(undo.loser, EndKind::kAborted, TxnId());
  log_.AwaitDurable(end);
  EndedTxns news{undo.loser.master, undo.loser.epoch, 0, {}, {}, {}};
  news.above.push_back({undo.loser.sequence, {self_, end}});
  told_(news);
}

bool LoserUndo::AwaitApplied(const VsVector& logs) {
  std::unique_lock latch(latch_);
  changed_.wait(latch, [&] { return stopped_ || log_.applied().Covers(logs); });
  return !stopped_;
}

void LoserUndo::UndoRow(const TxnName& loser, const UndoLoser::Row& row) {
  PagedTree& tree = TreeWith(row.page);
  PinnedLeaf leaf = tree.PinLeaf(row.key, LockMode::kExclusive);
  const std::optional<RowView> found = leaf.Find(row.key);
  if (!found || found->current.writer != loser) return;
  tree.Restore(leaf, row.key, loser);
  rows_undone_.fetch_add(1, std::memory_order_relaxed);
}

// A page stays in its tree for ever, whatever has become of the row's place.
PagedTree& LoserUndo::TreeWith(PageId page) {
  PageFrame* frame = pages_.Pin(page, LockMode::kShared, true);
  const uint32_t tree = frame->page.tree().value();
  pages_.Unpin(*frame, LockMode::kShared);
  if (tree == 0 || tree > trees_.size()) {
    throw Error(ExitStatus::kCorrupt, "page " + std::to_string(page.value()) + ": not a page of a table");
  }
  return *trees_[tree - 1];
}

}  // namespace dbx::mm
