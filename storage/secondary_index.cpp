#include "storage/secondary_index.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>
#include <utility>

// The hash's code, not its library: nothing to link with.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/cache_line.h"
#include "base/check.h"

namespace dbx {

void SecondaryIndex::Add(uint64_t search_key, std::string sort_key, Key primary) {
  CHECK(!frozen_);
  const std::lock_guard lock(mutex_);
  loading_.push_back(Entry{search_key, std::move(sort_key), primary});
}

void SecondaryIndex::Freeze() {
  CHECK(!frozen_);
  frozen_ = true;
  std::sort(loading_.begin(), loading_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.search_key, a.sort_key, a.primary) < std::tie(b.search_key, b.sort_key, b.primary);
  });
  CHECK(loading_.size() <= std::numeric_limits<uint32_t>::max());
  std::vector<Slot> runs;
  own_primaries_.reserve(loading_.size());
  for (const Entry& entry : loading_) {
    if (runs.empty() || runs.back().search_key != entry.search_key) {
      runs.push_back(Slot{entry.search_key, static_cast<uint32_t>(own_primaries_.size()), 0});
    }
    ++runs.back().count;
    own_primaries_.push_back(entry.primary);
  }
  std::vector<Entry>().swap(loading_);
  primaries_ = own_primaries_;
  BuildSlots(runs);
}

void SecondaryIndex::BuildSlots(const std::vector<Slot>& runs) {
  own_slots_.resize(std::bit_ceil(runs.size() * 2 + 1));
  slots_ = own_slots_;
  for (const Slot& run : runs) {
    size_t i = HomeSlot(run.search_key);
    while (own_slots_[i].count != 0) i = (i + 1) & (own_slots_.size() - 1);
    own_slots_[i] = run;
  }
}

bool SecondaryIndex::FreezeOver(std::span<const std::byte> slots, std::span<const std::byte> primaries) {
  CHECK(!frozen_ && loading_.empty());
  CHECK(reinterpret_cast<uintptr_t>(slots.data()) % alignof(Slot) == 0);
  CHECK(reinterpret_cast<uintptr_t>(primaries.data()) % alignof(Key) == 0);
  slots_ = {reinterpret_cast<const Slot*>(slots.data()), slots.size() / sizeof(Slot)};
  primaries_ = {reinterpret_cast<const Key*>(primaries.data()), primaries.size() / sizeof(Key)};
  frozen_ =
      std::has_single_bit(slots_.size()) && std::ranges::all_of(slots_, [this](const Slot& s) { return Holds(s); });
  // A look-up of what is not there ends at an empty slot.
  return frozen_ && std::ranges::any_of(slots_, [](const Slot& slot) { return slot.count == 0; });
}

size_t SecondaryIndex::HomeSlot(uint64_t search_key) const {
  const auto product = static_cast<unsigned __int128>(search_key ^ 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
  const uint64_t hash = static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
  return hash & (slots_.size() - 1);
}

std::span<const Key> SecondaryIndex::Find(uint64_t search_key) const {
  ASSERT(frozen_);
  for (size_t i = HomeSlot(search_key);; i = (i + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[i];
    if (slot.count == 0) return {};
    if (slot.search_key == search_key) return {&primaries_[slot.begin], slot.count};
  }
}

void SecondaryIndex::Prefetch(uint64_t search_key) const { dbx::Prefetch(&slots_[HomeSlot(search_key)]); }

size_t SecondaryIndex::memory_bytes() const {
  return slots_.size_bytes() + primaries_.size_bytes() + loading_.capacity() * sizeof(Entry);
}

uint64_t SecondaryIndex::Digest() const {
  CHECK(frozen_);
  uint64_t sum = 0;
  // The order of a run is part of it; the order of the runs is not.
  for (const Slot& slot : slots_) {
    if (slot.count == 0) continue;
    sum += XXH3_64bits_withSeed(&primaries_[slot.begin], slot.count * sizeof(Key), slot.search_key);
  }
  return sum;
}

}  // namespace dbx
