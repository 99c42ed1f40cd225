// What a cluster would send that locks rows globally and keeps the locks: baseline 1 of Taurus MM, appendix A ("Impact
// of hybrid locks"), counted beside a run.
//
// A master keeps each row lock until another master needs the row in a conflicting mode. A row lock that it has costs
// nothing; any other one a request and a grant, and a reclaim and a release for each master that keeps a conflicting
// one. Gap locks are counted by the rows that their scans lock.
//
// The table is in memory that all processes of a cluster share: they are forked after it was made. The count is exact,
// as locks are counted in the order of their grants: a row lock is counted while its page is pinned, so no other master
// is granted a conflicting one before that. Locks in S of several masters may be counted at once; their sum is the same
// in any order.
//
// Each tree has a hash table of its own, with open addressing. A slot's key is set once, and never goes; its state is
// the masters that keep the row, and whether the one of them keeps it in X. Relaxed: a key and a state are one word
// each, changed by compare-and-swap, and the messages of page locks are between conflicting grants.
//
// Threads and processes: any.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "base/random.h"
#include "base/shared_memory.h"
#include "base/types.h"
#include "multi_master/lock/row_locks.h"
#include "multi_master/names.h"
#include "multi_master/page/slotted_page.h"

namespace dbx::mm {

struct KeptRowLockCounters {
  uint64_t messages = 0;
  uint64_t first = 0;  // of them, for rows that no master had locked before
};

class KeptRowLocks {
 public:
  // The trees 1, 2 ... have so many rows at first.
  explicit KeptRowLocks(std::span<const uint64_t> rows);

  // A transaction of the master has the lock, newly or from before. Throws Error (kNoSpace) where so many rows were
  // locked that there is no room for this one.
  void OnRowLock(MasterId master, TreeId tree, Key row, RowLockKind kind);

  // Of this master's requests.
  KeptRowLockCounters counters(MasterId master) const {
    const PerMaster& of = masters()[master.value()];
    return {of.messages.load(std::memory_order_relaxed), of.first.load(std::memory_order_relaxed)};
  }

 private:
  struct Slot {
    Atomic<uint64_t> key;    // + 1; 0: free
    Atomic<uint32_t> state;  // a bit for each master, and kExclusiveBit
    uint32_t unused;
  };
  static_assert(sizeof(Slot) == 16);
  struct alignas(kNoSharingBytes) PerMaster {
    Atomic<uint64_t> messages;
    Atomic<uint64_t> first;
  };
  struct Tree {
    uint64_t begin;  // its first slot
    uint64_t slots;  // a power of two
  };

  static constexpr uint32_t kExclusiveBit = uint32_t{1} << kMastersMax;
  static constexpr uint64_t kNewRows = uint64_t{1} << 19;  // room for inserts and for keys that are missing
  static constexpr uint64_t kProbesMax = 4096;

  static std::vector<Tree> Layout(std::span<const uint64_t> rows);
  static size_t BytesOf(const std::vector<Tree>& trees);
  PerMaster* masters() const { return reinterpret_cast<PerMaster*>(memory_.data()); }
  Slot* slots() const { return reinterpret_cast<Slot*>(memory_.data() + kMastersMax * sizeof(PerMaster)); }
  Slot& SlotOf(const Tree& tree, Key row) const;

  const std::vector<Tree> trees_;
  const SharedMemory memory_;
};

}  // namespace dbx::mm
