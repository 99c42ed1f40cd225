#include "logging/eleda/grasshopper.h"

#include <algorithm>

#include "base/check.h"

namespace dbx {

Grasshopper::Grasshopper(const HoppingIndex& index, const std::vector<std::unique_ptr<GrasshopperList>>& lists,
                         Lsn start_lsn)
    : index_(index), in_heap_(lists.size(), false), heap_(lists.size()), own_sbl_(start_lsn), sbl_(start_lsn.value()) {
  for (const auto& list : lists) heads_.emplace_back(*list);
}

void Grasshopper::Advance(Lsn reserved_until) {
  for (Lsn before = own_sbl_;; before = own_sbl_) {
    if (CanHop(reserved_until)) Hop(reserved_until);
    Crawl(reserved_until);
    if (own_sbl_ == before) return;
  }
}

bool Grasshopper::CanHop(Lsn reserved_until) {
  // A range that the log has not left cannot be complete. This saves crawling most reads of an entry that all producers
  // write.
  const uint64_t range = index_.RangeOf(own_sbl_);
  if (range >= index_.RangeOf(reserved_until)) return false;
  ++counters_.index_checks;
  const bool is_complete = index_.IsComplete(range);
  // A check that leads to no hop counts as crawling.
  ++(is_complete ? counters_.hop_operations : counters_.crawl_operations);
  return is_complete;
}

void Grasshopper::Hop(Lsn reserved_until) {
  uint64_t range = index_.RangeOf(own_sbl_) + 1;  // the first that may not be complete
  for (; range < index_.RangeOf(reserved_until); ++range) {
    ++counters_.index_checks;
    ++counters_.hop_operations;
    if (!index_.IsComplete(range)) break;
  }
  Lsn end = own_sbl_;
  for (GrasshopperHead& head : heads_) {
    const GrasshopperHead::Skipped skipped = head.SkipTo(range, index_.BeginOf(range));
    end = std::max(end, skipped.end);
    counters_.hopped_records += skipped.nodes;
    counters_.hop_operations += skipped.hops;
  }
  ASSERT(end >= index_.BeginOf(range));
  const uint64_t moves = heap_.moves();
  RebuildHeap();
  rebuild_moves_ += heap_.moves() - moves;
  counters_.hop_operations += 2 * heads_.size();
  counters_.hopped_bytes += end - own_sbl_;
  Publish(end);
}

void Grasshopper::RebuildHeap() {
  heap_.Clear();
  std::fill(in_heap_.begin(), in_heap_.end(), false);
  InsertNewHeads();
}

void Grasshopper::InsertNewHeads() {
  for (uint32_t i = 0; i < heads_.size(); ++i) {
    if (in_heap_[i] || heads_[i].empty()) continue;
    ASSERT(heads_[i].front().lsn >= own_sbl_);
    heap_.Insert({heads_[i].front().lsn, i});
    in_heap_[i] = true;
  }
}

void Grasshopper::Crawl(Lsn reserved_until) {
  InsertNewHeads();
  ASSERT(heap_.empty() || heap_.top().lsn >= own_sbl_);
  // No further than requested: producers may keep up with this loop, and the flusher waits for the result.
  while (own_sbl_ < reserved_until && !heap_.empty() && heap_.top().lsn == own_sbl_) {
    Step();
    if (CanHop(reserved_until)) return;
  }
}

void Grasshopper::Step() {
  const uint32_t list = heap_.top().list;
  GrasshopperHead& head = heads_[list];
  const Lsn end = head.front().end();
  counters_.crawl_operations += head.Pop();
  if (head.empty()) {
    heap_.Pop();
    in_heap_[list] = false;
  } else {
    heap_.ReplaceTop(head.front().lsn);
  }
  ++counters_.crawled_records;
  counters_.crawled_bytes += end - own_sbl_;
  // Last: from here on the node may be reused.
  Publish(end);
}

void Grasshopper::Publish(Lsn sbl) {
  ASSERT(sbl >= own_sbl_);
  own_sbl_ = sbl;
  // Release: the flusher sees the records, and the worker is done with their nodes.
  sbl_.store(sbl.value(), std::memory_order_release);
}

CentralCounters Grasshopper::counters() const {
  CentralCounters counters = counters_;
  counters.heap_operations = heap_.moves();
  counters.crawl_operations += counters_.crawled_records + heap_.moves() - rebuild_moves_;
  counters.hop_operations += rebuild_moves_;
  return counters;
}

}  // namespace dbx
