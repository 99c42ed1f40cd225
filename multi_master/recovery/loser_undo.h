// Undoes the losers of a dead master at a master that lives (multi_master.md, section 6).
//
//   UndoLoser -> each row, last first: its leaf under page X; the row's writer is still the loser? restore, logged
//             -> its master's log is applied up to the seal
//             -> END (aborted) that names the loser -> durable -> the lock process is told, which tells all masters
//
// No row lock is taken: the loser's own are in the pages' lists, and keep all others out until its END is known. That
// is told after it is durable, or a row could be locked by others while another death still brings the loser's version
// back. A row that the loser had restored itself, or that a survivor did which died since, has another writer and is
// passed over.
//
// A TV that covers the END must cover all that undid the loser, or a statement takes for committed what it finds of it.
// Rows that the loser had restored itself, or a survivor that died, are restored in other logs: these are applied here
// first, so the LFB behind the END builds upon them, and every TV that covers it covers them.
//
// Threads: one runs Run; Offer and OnApplied by any, which do not wait.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/host.h"
#include "multi_master/lock/lock_messages.h"
#include "multi_master/master/master_log.h"
#include "multi_master/page/paged_tree.h"

namespace dbx::mm {

class LoserUndo {
 public:
  // Called by the thread of Run: the END is durable.
  using Told = std::function<void(const EndedTxns& news)>;

  // `trees`: tree t + 1 at t. `self` is the master whose log it is.
  LoserUndo(MasterId self, const std::vector<std::unique_ptr<PagedTree>>& trees, PageSource& pages, MasterLog& log,
            Told told)
      : self_(self), trees_(trees), pages_(pages), log_(log), told_(std::move(told)) {}

  void Offer(UndoLoser undo);
  // A flush was applied here.
  void OnApplied();
  // Until Stop. Throws what reading a page or writing the log throws.
  void Run();
  void Stop();

  uint64_t rows_undone() const { return rows_undone_.load(std::memory_order_relaxed); }

 private:
  void Undo(const UndoLoser& undo);
  // False: stopped.
  bool AwaitApplied(const VsVector& logs);
  void UndoRow(const TxnName& loser, const UndoLoser::Row& row);
  PagedTree& TreeWith(PageId page);

  const MasterId self_;
  const std::vector<std::unique_ptr<PagedTree>>& trees_;
  PageSource& pages_;
  MasterLog& log_;
  const Told told_;
  Atomic<uint64_t> rows_undone_{0};  // relaxed

  Mutex latch_;  // of the rest
  ConditionVariable changed_;
  std::deque<UndoLoser> due_;
  bool stopped_ = false;
};

}  // namespace dbx::mm
