// A map whose keys are numbers that ascend: of transactions, by their sequence numbers. Nearly all numbers come in
// their order and none is left out, so an entry is appended, or found where the distance from the first one says.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

namespace dbx::mm {

template <class Value>
class SequenceMap {
 public:
  using Entries = std::deque<std::pair<uint64_t, Value>>;
  using iterator = typename Entries::iterator;
  using const_iterator = typename Entries::const_iterator;

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  iterator begin() { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator end() const { return entries_.end(); }

  // end(): it is not there.
  const_iterator find(uint64_t sequence) const {
    const auto at = entries_.cbegin() + PlaceOf(sequence);
    return at != entries_.end() && at->first == sequence ? at : entries_.end();
  }
  iterator find(uint64_t sequence) {
    return entries_.begin() + (std::as_const(*this).find(sequence) - entries_.cbegin());
  }
  bool contains(uint64_t sequence) const { return find(sequence) != end(); }

  Value& operator[](uint64_t sequence) {
    if (entries_.empty() || entries_.back().first < sequence) return entries_.emplace_back(sequence, Value()).second;
    const auto at = entries_.begin() + PlaceOf(sequence);
    return at->first == sequence ? at->second : entries_.insert(at, {sequence, Value()})->second;
  }

  void pop_front() { entries_.pop_front(); }
  // Removes the entries for which must_go(entry) is true; mostly they are the oldest ones.
  void RemoveIf(auto&& must_go) {
    while (!entries_.empty() && must_go(entries_.front())) entries_.pop_front();
    std::erase_if(entries_, must_go);
  }

 private:
  // Of the first entry with this number or a larger one.
  std::ptrdiff_t PlaceOf(uint64_t sequence) const {
    if (entries_.empty() || sequence <= entries_.front().first) return 0;
    const uint64_t distance = sequence - entries_.front().first;
    if (distance < entries_.size() && entries_[distance].first == sequence)
      return static_cast<std::ptrdiff_t>(distance);
    // Each number is larger than the one before it, so it is not behind that place.
    const auto last = entries_.begin() + static_cast<std::ptrdiff_t>(std::min<uint64_t>(distance, entries_.size()));
    return std::partition_point(entries_.begin(), last, [&](const auto& entry) { return entry.first < sequence; }) -
           entries_.begin();
  }

  Entries entries_;
};

}  // namespace dbx::mm
