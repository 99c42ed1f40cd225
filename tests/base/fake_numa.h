// A NumaSystem that notes what it is asked for, by any thread, and refuses what the test says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/numa_memory.h"

namespace dbx {

struct FakeNuma final : NumaSystem {
  struct Bound {
    std::byte* at;
    size_t bytes;
    MemoryPolicy policy;
  };

  std::vector<uint32_t> Nodes() override { return nodes; }
  int Bind(void* at, size_t bytes, MemoryPolicy policy) override {
    const std::lock_guard lock(mutex);
    bound.push_back({static_cast<std::byte*>(at), bytes, policy});
    return error;
  }

  // Is all of this in one of the mappings that were bound?
  bool Holds(std::span<const std::byte> memory) const {
    for (const Bound& b : bound) {
      if (memory.data() >= b.at && memory.data() + memory.size() <= b.at + b.bytes) return true;
    }
    return false;
  }

  std::vector<uint32_t> nodes = {0, 1};
  int error = 0;
  std::vector<Bound> bound;
  std::mutex mutex;
};

}  // namespace dbx
