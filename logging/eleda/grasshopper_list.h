// A grasshopper list (ELEDA, section 4.1): the places that one producer has filled and that are not known to be durable
// yet. Two lists in one: the crawling list holds every such place in ascending order, the hopping list the first one in
// each range of the hopping index.
//
//   gc <= head <= tail            positions in the crawling list
//   [gc, head)    SBL is beyond   the owner collects them as SDL advances, and calls back waiters
//   [head, tail)  pending         the ELEDA worker consumes them as SBL advances
//
// Access rights are the paper's Table 2, enforced by type: the owner has the list itself, with `tail` and `gc`; the
// ELEDA worker has a GrasshopperHead, which reads the list and keeps `head` to itself. Neither can write the other's
// fields.
//
// Both lists are rings. `gc` bounds the crawling list, which the owner watches (HasSpace). The hopping list cannot
// overflow: its entries in use belong to different ranges between SBL and the last place, less than the index has.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/host.h"
#include "base/types.h"
#include "logging/eleda/hopping_index.h"
#include "logging/fill_tracker.h"

namespace dbx {

class GrasshopperList {
 public:
  struct Node {
    Lsn lsn{};
    uint32_t bytes = 0;
    bool awaited = false;  // a transaction waits for it to be durable: its callback is due
    Lsn end() const { return lsn + bytes; }
  };
  // The first node of a range.
  struct Hop {
    uint64_t range = 0;
    uint64_t node = 0;
  };

  // `nodes_max` is a power of two.
  GrasshopperList(HoppingIndex& index, size_t nodes_max)
      : index_(index), nodes_(nodes_max), hops_(std::bit_ceil(index.ranges_max() + 1)) {
    CHECK(std::has_single_bit(nodes_max));
  }

  // --- the owner's ---

  bool HasSpace() const { return tail_.load(std::memory_order_relaxed) - gc_ < nodes_.size(); }

  // The place is filled. The order of the three steps is the paper's (section 4.1.2): the worker that finds a range
  // complete must find the nodes that complete it, and a hop always leads to a node.
  void Enqueue(const LogPlace& place, bool awaited) {
    AppendNode(place, awaited);
    AppendHop(index_.RangeOf(place.lsn));
    index_.Add(place);
  }

  // The first two steps. Called by themselves only by tests that stop an owner between its steps.
  void AppendNode(const LogPlace& place, bool awaited) {
    ASSERT(HasSpace());
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    nodes_[tail & (nodes_.size() - 1)] = {place.lsn, place.bytes, awaited};
    // Release: the worker that sees the tail sees the node and the bytes of the record.
    tail_.store(tail + 1, std::memory_order_release);
  }
  // Unless the range of the newest node has a hop already.
  void AppendHop(uint64_t range) {
    if (range == last_range_) return;
    last_range_ = range;
    const uint64_t tail = hop_tail_.load(std::memory_order_relaxed);
    hops_[tail & (hops_.size() - 1)] = {range, tail_.load(std::memory_order_relaxed) - 1};
    hop_tail_.store(tail + 1, std::memory_order_release);
  }

  // Frees durable places and calls back for them, in order. `callback` takes the end of an awaited place, not its start
  // as in section 4.1.2: a record is durable when its last byte is.
  template <class Callback>
  void Collect(Lsn sdl, Callback&& callback) {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    // The paper's Spec 2: gc stops where SDL is, so it never passes the worker's head, which is at SBL or beyond. The
    // caller ensures that SDL is not beyond SBL (EledaWorker::Collect).
    for (; gc_ != tail && node(gc_).end() <= sdl; ++gc_) {
      if (node(gc_).awaited) callback(node(gc_).end());
    }
  }

  // --- the ELEDA worker's, through a GrasshopperHead ---

  // Acquire: nodes that the owner had appended before it stored the tail are visible.
  uint64_t tail() const { return tail_.load(std::memory_order_acquire); }
  uint64_t hop_tail() const { return hop_tail_.load(std::memory_order_acquire); }
  const Node& node(uint64_t position) const { return nodes_[position & (nodes_.size() - 1)]; }
  const Hop& hop(uint64_t position) const { return hops_[position & (hops_.size() - 1)]; }

 private:
  HoppingIndex& index_;
  std::vector<Node> nodes_;
  std::vector<Hop> hops_;
  uint64_t last_range_ = UINT64_MAX;  // that has a hop
  uint64_t gc_ = 0;
  // On a line of their own: the worker reads them while the owner continues.
  alignas(kNoSharingBytes) Atomic<uint64_t> tail_{0};
  Atomic<uint64_t> hop_tail_{0};
};

// The heads of a grasshopper list, which are the ELEDA worker's alone.
class GrasshopperHead {
 public:
  explicit GrasshopperHead(const GrasshopperList& list) : list_(list) {}

  // The paper's Spec 1: the head never passes the tail. The owner's cache line with the tails is read only when all
  // known nodes are consumed: each read makes the owner wait for the line at its next record.
  bool empty() {
    if (head_ != known_tail_) return false;
    LookAtTails();
    return head_ == known_tail_;
  }
  const GrasshopperList::Node& front() const { return list_.node(head_); }

  // How many entries of the hopping list it passed.
  uint64_t Pop() {
    ASSERT(head_ != known_tail_);
    ++head_;
    const uint64_t from = hop_head_;
    // Of a range whose first node was crawled over. An entry that is not there yet is removed by a later call.
    while (hop_head_ != known_hop_tail_ && list_.hop(hop_head_).node < head_) ++hop_head_;
    return hop_head_ - from;
  }

  struct Skipped {
    uint64_t nodes = 0;
    uint64_t hops = 0;  // entries of the hopping list: one for each range that a skipped node is the first in
    Lsn end{};          // of the last node
  };
  // Passes every node that starts below `range`, all bytes below which are filled.
  Skipped SkipTo(uint64_t range, Lsn begin_of_range) {
    LookAtTails();
    Skipped skipped;
    for (; hop_head_ != known_hop_tail_ && list_.hop(hop_head_).range < range; ++hop_head_) ++skipped.hops;
    uint64_t to = known_tail_;
    if (hop_head_ != known_hop_tail_) {
      to = list_.hop(hop_head_).node;
    } else if (to != head_ && list_.node(to - 1).lsn >= begin_of_range) {
      --to;
    }
    ASSERT(head_ <= to && to <= list_.tail());
    if (to == head_) return skipped;
    skipped.nodes = to - head_;
    skipped.end = list_.node(to - 1).end();
    head_ = to;
    return skipped;
  }

 private:
  // In this order: of the nodes below the tail only the last may be without its hop.
  void LookAtTails() {
    known_tail_ = list_.tail();
    known_hop_tail_ = list_.hop_tail();
  }

  const GrasshopperList& list_;
  uint64_t head_ = 0;
  uint64_t hop_head_ = 0;
  uint64_t known_tail_ = 0;
  uint64_t known_hop_tail_ = 0;
};

}  // namespace dbx
