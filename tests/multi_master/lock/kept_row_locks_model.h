// KeptRowLocks (multi_master/lock/kept_row_locks.h) as a map of maps, for one thread: what its counts are held against.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "base/types.h"
#include "multi_master/lock/row_locks.h"
#include "multi_master/names.h"

namespace dbx::mm {

class KeptRowLocksModel {
 public:
  // `row`: tells trees apart, too. Returns the messages.
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
