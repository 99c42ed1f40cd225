// What the engine takes for a free slot of a persistent heap is told here, so that it can be looked at on the spot:
// that a slot which was not free leads to a wrong row takes a rare crash.
#pragma once

#include <functional>

namespace dbx::sim {

// nullptr: nothing is looked at.
inline std::function<void(const void*)> on_free_slot;

inline void FreeSlot(const void* slot) {
  if (on_free_slot) on_free_slot(slot);
}

}  // namespace dbx::sim
