// What a cluster would send that locks rows globally and keeps the locks: GLM_KEEP of figure 9, counted beside the run.
//
// A master keeps each row lock until another master needs the row in a conflicting mode. A row lock that it has costs
// nothing; any other one a request and a grant, and a reclaim and a release for each master that keeps a conflicting
// one. Gap locks are counted by the rows that their scans lock.
//
// Fed with the row locks of all masters in the order in which they are granted, so by an experiment that has them all
// in one process. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "base/types.h"
#include "multi_master/lock/row_locks.h"
#include "multi_master/names.h"

namespace dbx::mm {

class KeptRowLocks {
 public:
  // `row`: the key with what tells trees apart, not the page, which may be split. Returns the messages.
  uint64_t OnRowLock(MasterId master, Key row, RowLockKind kind) {
    if (kind != RowLockKind::kShared && kind != RowLockKind::kExclusive) return 0;
    std::map<MasterId, LockMode>& keepers = keepers_[row];
    const LockMode mode = kind == RowLockKind::kShared ? LockMode::kShared : LockMode::kExclusive;
    const auto own = keepers.find(master);
    if (own != keepers.end() && Suffices(own->second, mode)) return 0;
    uint64_t messages = 2;
    messages += 2 * std::erase_if(keepers, [&](const auto& keeper) {
                  return keeper.first != master && Conflict(keeper.second, mode);
                });
    keepers[master] = mode;
    messages_ += messages;
    return messages;
  }

  uint64_t messages() const { return messages_; }

 private:
  std::unordered_map<Key, std::map<MasterId, LockMode>> keepers_;
  uint64_t messages_ = 0;
};

}  // namespace dbx::mm
