// The losers of dead masters that are not undone yet, in the lock process, and which master undoes each.
//
// A loser leaves with the news of its END, which is durable then. Until then it is given to another master whenever the
// one that undoes it dies: what that one has undone, durably or not, is found by the rows' writers. The other one is
// named the end of its log, too, so it is given the loser only when that is known.
//
// Not thread-safe: its owner's latch protects it.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "multi_master/lock/ends.h"
#include "multi_master/lock/lock_messages.h"
#include "multi_master/recovery/dead_log.h"

namespace dbx::mm {

class LoserTable {
 public:
  // Of a master whose log ends at `log_end`.
  void Add(std::vector<Loser> losers, VsTime log_end);
  // What `master` is to undo: all losers that no living master has been given.
  std::vector<UndoLoser> GiveTo(MasterId master);
  // Its log is sealed and ends at `log_end`: what it was given, and has not ended, is to be given again.
  void OnDead(MasterId master, VsTime log_end);
  // True: with it the last loser of its master has ended.
  bool OnEnded(const EndedTxns& news);

  size_t size() const { return losers_.size(); }
  size_t CountOf(MasterId dead) const;

 private:
  struct Entry {
    std::vector<UndoLoser::Row> rows;
    VsVector after;  // UndoLoser::after
    std::optional<MasterId> given_to;
  };

  std::map<TxnName, Entry> losers_;
};

}  // namespace dbx::mm
