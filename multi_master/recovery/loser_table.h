// The losers of dead masters that are not undone yet, in the lock process, and which master undoes each.
//
// A loser leaves with the news of its END, which is durable then. Until then it is given to another master whenever the
// one that undoes it dies: what that one has undone, durably or not, is found by the rows' writers.
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
  void Add(std::vector<Loser> losers);
  // What `master` is to undo: all losers that no living master has been given.
  std::vector<UndoLoser> GiveTo(MasterId master);
  void OnDead(MasterId master);
  // True: with it the last loser of its master has ended.
  bool OnEnded(const EndedTxns& news);

  size_t size() const { return losers_.size(); }
  size_t CountOf(MasterId dead) const;

 private:
  struct Entry {
    std::vector<UndoLoser::Row> rows;
    std::optional<MasterId> given_to;
  };

  std::map<TxnName, Entry> losers_;
};

}  // namespace dbx::mm
