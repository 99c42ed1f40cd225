// GRASSHOPPER (ELEDA, sections 3.2 and 4, Alg. 1): advances SBL, the sequentially buffered LSN, over places that any
// number of producers fill in any order.
//
// Symbols of the paper and their names here:
//   SBL           sbl()                  every byte below is filled; always the end of a record
//   SDL           LogStream::persistent_until()
//   2^H           the distance of the HoppingIndex
//   c-list, h-list                       grasshopper_list.h
//
// Two ways to advance. *Hopping* passes whole ranges that are complete according to the index, without reading their
// records. *Crawling* passes one record after the other, the lowest pending one first, the top of the LSN-heap.
//
// The cost of a hop does not depend on the number of records that it passes, but on the producers: a few operations for
// each of them, and one for each range in which it wrote. A range of 2^H bytes holds so many records that their share
// of this is small compared with a producer's cost for each of them, which is to append a node and to add to the index:
// with 32 producers and 1,024 records in a range it adds some 8 % (grasshopper_test.cpp). Crawling costs a record some
// operations and at most the height of the heap, the logarithm of the producers.
//
// Where this differs from the paper:
// - After a hop Alg. 1 (line 12) sets SBL to the least end of the hopping lists' heads that reaches the boundary. Those
//   are first nodes *behind* it: the record that lies across it is none of them, and where its successor is still a
//   hole the least is beyond that hole. SBL is here the end of the record that holds the last byte below the boundary,
//   which is the last node skipped.
// - Alg. 1 (lines 17-19) publishes SBL before it moves the head. The flusher may make the node durable and its owner
//   reuse it in between. Heads move first.
//
// Threads: Advance: one, the ELEDA worker. sbl(): any, the flusher first of all. Heads, heap and counters are the
// worker's own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "base/types.h"
#include "logging/central_counters.h"
#include "logging/eleda/grasshopper_list.h"
#include "logging/eleda/hopping_index.h"
#include "logging/eleda/lsn_heap.h"

namespace dbx {

class Grasshopper {
 public:
  Grasshopper(const HoppingIndex& index, const std::vector<std::unique_ptr<GrasshopperList>>& lists, Lsn start_lsn);

  // Passes all places filled without a hole below `reserved_until`, the end of the last place before the call.
  void Advance(Lsn reserved_until);

  // Acquire: below it every record is in the buffer.
  Lsn sbl() const { return Lsn(sbl_.load(std::memory_order_acquire)); }

  CentralCounters counters() const;

 private:
  // SBL lags a whole range behind, and that range is complete (section 4.2.1).
  bool CanHop(Lsn reserved_until);
  void Hop(Lsn reserved_until);
  void Crawl(Lsn reserved_until);
  void Step();
  void InsertNewHeads();
  void RebuildHeap();
  void Publish(Lsn sbl);

  const HoppingIndex& index_;
  std::vector<GrasshopperHead> heads_;
  std::vector<bool> in_heap_;
  LsnHeap heap_;
  Lsn own_sbl_;  // a copy
  CentralCounters counters_;
  uint64_t rebuild_moves_ = 0;  // of the heap's
  alignas(kNoSharingBytes) Atomic<uint64_t> sbl_;
};

}  // namespace dbx
