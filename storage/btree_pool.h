// Memory for the nodes of BTreeIndex: one pool per size of node, in huge pages where there are any.
//
// Nodes are handed out as they were left, zeroed the first time, and are not returned to the system before the pool is
// destroyed: a reader that follows a stale pointer reads a node, if not the one it wanted. A node that others may still
// read is retired, and handed out again once they cannot.
//
// In builds with a sanitizer each node lies right before a page that cannot be accessed, so that a load of one element
// beyond the node is a SIGSEGV at that load. A page, not poisoned bytes: it stops accesses that no sanitizer sees as
// well (ThreadSanitizer knows no bounds, and a test may ask for it in any build), and unmapped pages are what readers
// hit where a node is the last of its mapping. The price is 8 KiB and two mappings for each node.
//
// Thread safe. One mutex, as a node is allocated once in dozens of inserts.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "base/types.h"
#include "storage/heap/arena.h"

namespace dbx {

class EpochClock;

// How the nodes of a pool lie in memory.
enum class NodePlacement : uint8_t {
  kPacked,
  kBeforeGuardPages,  // a few thousand of each process; further ones have no guard page
};
// kPacked, but in builds with a sanitizer.
NodePlacement DefaultNodePlacement();

class BTreePool {
 public:
  // `node_bytes` is a multiple of a cache line.
  BTreePool(size_t node_bytes, NodePlacement placement);
  ~BTreePool();

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

  void* AllocateFresh();
  void Guard(std::byte* page);

  const size_t node_bytes_;
  const NodePlacement placement_;
  const size_t slot_bytes_;  // of a node and its guard page
  mutable Mutex mutex_;      // guards what follows
  RowArena arena_;
  size_t ahead_ = 0;  // nodes of the arena that Prefault has backed
  int guards_ = 0;    // pages that cannot be accessed
  std::vector<void*> free_;
  std::deque<Retired> retired_;  // stamps ascend
};

}  // namespace dbx
