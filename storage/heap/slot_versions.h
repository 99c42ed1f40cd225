// What is told of the slots of a persistent heap by their headers, for all that look at a heap which no transaction
// uses: a restart (adoption.h) and log_dump.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "storage/heap/heap_format.h"

namespace dbx {

// Why no transaction can have left this version in an extent of the table; nullptr: it can be. Not of a loser, which
// may be torn.
inline const char* FaultOf(const HeapSlot& slot, TableId table, uint32_t tuple_bytes, bool checksum) {
  if (slot.table != table) return "it says that it is of another table";
  if ((slot.flags & ~HeapSlot::kAbsent) != 0 || slot.tuple_bytes != (slot.absent() ? 0 : tuple_bytes)) {
    return "its tuple has another size than its table's";
  }
  if (checksum && slot.checksum != heap_format::ChecksumOf(slot)) return "its checksum does not match";
  return nullptr;
}

// Among the versions of its key.
enum class VersionRank : uint8_t { kNewest, kSuperseded, kStampTwice };

// Sorts slots of versions that count, and calls visit(slot, rank) for each.
template <class Slot>
void RankVersions(std::vector<Slot*>& counted, auto&& visit) {
  const auto order = [](const HeapSlot* slot) {
    return std::pair(slot->key, ~slot->begin.load(std::memory_order_relaxed));
  };
  std::sort(counted.begin(), counted.end(),
            [&](const HeapSlot* a, const HeapSlot* b) { return std::pair(order(a), a) < std::pair(order(b), b); });
  for (size_t i = 0; i < counted.size(); ++i) {
    const bool is_newest = i == 0 || counted[i - 1]->key != counted[i]->key;
    const bool is_twice = !is_newest && order(counted[i - 1]) == order(counted[i]);
    visit(*counted[i], is_newest  ? VersionRank::kNewest
                       : is_twice ? VersionRank::kStampTwice
                                  : VersionRank::kSuperseded);
  }
}

}  // namespace dbx
