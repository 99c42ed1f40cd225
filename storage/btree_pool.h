// Memory for the nodes of BTreeIndex: one pool per size of node, in huge pages where there are any.
//
// Nodes are handed out as they were left, zeroed the first time, and never go back to the system before the pool does:
// a reader that follows a stale pointer reads a node, if not the one it wanted. A node that others may still read is
// retired, and handed out again once they cannot.
//
// Thread safe. One mutex, because a node is asked for once in dozens of inserts.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "base/types.h"
#include "storage/arena.h"

namespace dbx {

class EpochClock;

class BTreePool {
 public:
  // `node_bytes` is a multiple of a cache line.
  explicit BTreePool(size_t node_bytes) : node_bytes_(node_bytes), arena_(node_bytes, kCacheLineBytes) {}

  // Throws Error (kNoSpace).
  void* Allocate();
  // Takes back a node that no other thread has seen.
  void Free(void* node);
  // Takes back a node that this worker, within its epoch section, has unlinked.
  void Retire(void* node, EpochClock& clock, WorkerId worker);

  // Backs `nodes` more that Allocate will hand out, beside those of earlier calls, with pages.
  void Prefault(size_t nodes);

  size_t memory_bytes() const;

 private:
  struct Retired {
    void* node;
    Epoch stamp;
  };

  const size_t node_bytes_;
  mutable Mutex mutex_;  // guards what follows
  RowArena arena_;
  size_t ahead_ = 0;  // nodes of the arena that Prefault has backed
  std::vector<void*> free_;
  std::deque<Retired> retired_;  // stamps ascend
};

}  // namespace dbx
