// A non-unique secondary index: a search key leads to the primary keys of the rows that have it, in the order given by
// a sort key (TPC-C: customers by warehouse, district and last name, ordered by first name).
//
// Filled during the load, then frozen by Freeze; read-only and shared without locks afterwards. A workload
// whose transactions change indexed columns needs the ordered index instead. What is frozen can be written to a file,
// which a later process maps (FreezeOver): its layout is part of a file format, as is the hash of search keys.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/types.h"

namespace dbx {

class SecondaryIndex {
 public:
  explicit SecondaryIndex(std::string name) : name_(std::move(name)) {}

  // Entries of one search key are ordered by (sort_key, primary). Thread safe until Freeze.
  void Add(uint64_t search_key, std::string sort_key, Key primary);
  void Freeze();
  // Alternative to Add and Freeze: takes the slots and primary keys of a frozen index, in memory that outlives this
  // one. False: they are not those of a frozen index.
  bool FreezeOver(std::span<const std::byte> slots, std::span<const std::byte> primaries);
  bool frozen() const { return frozen_; }
  // After Freeze only.
  std::span<const std::byte> slots() const { return std::as_bytes(slots_); }
  std::span<const std::byte> primaries() const { return std::as_bytes(primaries_); }

  // The primary keys under `search_key`, perhaps none. After Freeze only.
  std::span<const Key> Find(uint64_t search_key) const;
  void Prefetch(uint64_t search_key) const;

  const std::string& name() const { return name_; }
  uint64_t entry_count() const { return primaries_.size(); }
  size_t memory_bytes() const;
  // A digest of every entry, independent of the order in which they were added. After Freeze only.
  uint64_t Digest() const;

 private:
  struct Entry {
    uint64_t search_key;
    std::string sort_key;
    Key primary;
  };
  struct Slot {  // an open-addressing table of runs in primaries_
    uint64_t search_key = 0;
    uint32_t begin = 0;
    uint32_t count = 0;  // 0: empty slot
  };

  size_t HomeSlot(uint64_t search_key) const;
  void BuildSlots(const std::vector<Slot>& runs);
  bool Holds(const Slot& slot) const {
    return slot.begin <= primaries_.size() && slot.count <= primaries_.size() - slot.begin;
  }

  std::string name_;
  bool frozen_ = false;
  Mutex mutex_;  // guards loading_ until Freeze
  std::vector<Entry> loading_;
  std::vector<Slot> own_slots_;
  std::vector<Key> own_primaries_;
  std::span<const Slot> slots_;  // a power of two, at most half full; these are its own, or another's
  std::span<const Key> primaries_;
};

}  // namespace dbx
