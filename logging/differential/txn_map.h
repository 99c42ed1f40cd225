// A hash table of the transactions that a pass over a log is among: few at a time, and many in all, so that entries
// come and go without an allocation. Open addressing with linear probing; an entry whose value is empty is free.
//
// Threads: one.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"

namespace dbx {

// Empty when it is default-constructed.
template <class Value>
requires requires(const Value& value) {
  { value.IsEmpty() } -> std::same_as<bool>;
}
class TxnMap {
 public:
  TxnMap() : entries_(kEntriesMin) {}

  // An empty value, if there is none.
  const Value& Find(TxnId id) const { return entries_[Place(id)].value; }
  // An empty value removes the entry.
  void Set(TxnId id, const Value& value) {
    const size_t at = Place(id);
    const bool was_empty = entries_[at].value.IsEmpty();
    if (!value.IsEmpty()) {
      entries_[at] = {id, value};
      size_ += was_empty;
      if (size_ * 2 > entries_.size()) Grow();
    } else if (!was_empty) {
      Erase(at);
    }
  }
  size_t size() const { return size_; }
  // Calls visit(TxnId, const Value&) for each, in no order.
  void ForEach(auto&& visit) const {
    for (const Entry& entry : entries_) {
      if (!entry.value.IsEmpty()) visit(entry.id, entry.value);
    }
  }

 private:
  static constexpr size_t kEntriesMin = 256;

  struct Entry {
    TxnId id;
    Value value;
  };

  size_t mask() const { return entries_.size() - 1; }
  // Where the search for it begins: by the upper bits of a product, as sequences of workers are consecutive.
  size_t Home(TxnId id) const { return (id.value * 0x9E3779B97F4A7C15u) >> (64 - std::countr_zero(entries_.size())); }
  // Its entry, or the free one in which it belongs.
  size_t Place(TxnId id) const {
    size_t at = Home(id);
    while (!entries_[at].value.IsEmpty() && entries_[at].id != id) at = (at + 1) & mask();
    return at;
  }

  // Moves entries that were pushed behind the place back to it, so that no search ends too early.
  void Erase(size_t at) {
    --size_;
    for (size_t next = (at + 1) & mask(); !entries_[next].value.IsEmpty(); next = (next + 1) & mask()) {
      const size_t distance = (next - Home(entries_[next].id)) & mask();
      if (distance < ((next - at) & mask())) continue;
      entries_[at] = entries_[next];
      at = next;
    }
    entries_[at] = {};
  }

  void Grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (!entry.value.IsEmpty()) entries_[Place(entry.id)] = entry;
    }
  }

  std::vector<Entry> entries_;
  size_t size_ = 0;
};

}  // namespace dbx
