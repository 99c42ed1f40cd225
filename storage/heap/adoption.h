// What a restart makes of a persistent heap (write-behind logging; Arulraj et al., PVLDB 10(4), 2016, section 4.3).
//
// Of each slot its `begin` decides: 0 is free; the stamp of a loser, a transaction that does not count, makes it free;
// of a key's other slots the newest is its version, and the older ones are superseded. If the newest is a tombstone,
// the key is absent. A partition is *adopted* once what it has to lose is durably 0, a tombstone last, its free slots
// are known and its rows are in the index. That is one pass over its slots' headers.
//
// Partitions are adopted all at once, or each when a look-up in it misses; then idle moments are for the rest. So a
// restart serves its first transaction after a time that grows neither with the history nor with the heap.
//
// What it finds is checked: a slot whose header cannot be that of its table and partition, a stamp that no transaction
// can have drawn, a stamp twice on a key. Of a loser nothing is checked, as it may be torn.
//
// Slots and extents that look free may never have been made durable, where the process was killed before that: the
// zeros of free slots and the directory words of extents are stored and written back again.
//
// Threads: EnsureAdopted and SweepOne by workers beside transactions, each under its own WorkerId; the rest by one.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "base/host.h"
#include "storage/database.h"
#include "storage/heap/gap_set.h"
#include "storage/rows_on_demand.h"

namespace dbx {

class Adoption final : public RowsOnDemand {
 public:
  // `losers`: the stamps that do not count. From `stamps_end` on no stamp was drawn. Throws Error (kCorrupt) for a
  // directory that names what is not there; errors are "PLACE@OFFSET: why", for which `place` names the heap's file and
  // what is wrong with it. `database` has its versions in a heap, and outlives this.
  Adoption(Database& database, GapSet losers, uint64_t stamps_end, std::string place = "heap.pm");
  Adoption(const Adoption&) = delete;
  Adoption& operator=(const Adoption&) = delete;

  // Changes nothing. Throws Error (kCorrupt) for the first slot that cannot be; with `checksums`, those of the versions
  // that count are verified too.
  void CheckAll(uint32_t threads, bool checksums) const;
  // By as many threads as the database has workers at most.
  void AdoptAll(uint32_t threads);

  // Returns once the partition is adopted, by this worker or another one. Throws Error (kCorrupt), and from then on.
  void EnsureAdopted(WorkerId worker, Table& table, uint64_t partition);
  bool HasRowsOf(const Table& table) const override;
  // Of the key's partition; of those of all ranges of keys that [low, high] touches.
  void EnsureRow(WorkerId worker, Table& table, Key key) override;
  void EnsureRange(WorkerId worker, Table& table, Key low, Key high) override;
  // Adopts one partition more. False: none is left.
  bool SweepOne(WorkerId worker);
  // None is left, and what losers held is durably 0.
  bool is_complete() const { return unadopted_.load(std::memory_order_acquire) == 0; }

 private:
  // What a partition's slots are.
  struct Found {
    std::vector<HeapSlot*> versions;    // newest of their keys, present
    std::vector<HeapSlot*> tombstones;  // newest of their keys
    std::vector<HeapSlot*> dead;        // losers and superseded ones
    std::vector<HeapSlot*> free;
  };
  struct Place {
    Table* table;
    uint64_t partition;
  };

  void CheckDirectory() const;
  Found Inspect(const Table& table, uint64_t partition, bool checksums) const;
  void CheckSlot(const Table& table, uint64_t partition, const HeapSlot& slot, bool checksum) const;
  void Sort(const Table& table, std::vector<HeapSlot*>& counted, Found& found) const;
  void Adopt(WorkerId worker, Table& table, uint64_t partition);
  static void MakeFree(WorkerId worker, const TableVersions& versions, const std::vector<HeapSlot*>& slots);
  [[noreturn]] void Refuse(const Table& table, const HeapSlot& slot, const char* why) const;
  [[noreturn]] void Refuse(const void* at, const std::string& why) const;  // `at` lies in the heap

  Database& database_;
  const GapSet losers_;
  const uint64_t stamps_end_;
  const std::string place_;
  std::vector<Place> places_;  // the partitions that had extents at the restart
  Atomic<uint64_t> next_{0};   // of places_, to be swept
  Atomic<uint64_t> unadopted_{0};
  Atomic<bool> failed_{false};
  Mutex mutex_;
  std::exception_ptr failure_;  // guarded by mutex_
};

}  // namespace dbx
