// Memory that runs out, in the simulation only: operator new, and the few places where the engine maps or aligns memory
// itself (TUNING in tests/mutants/catalogue.py).
//
// Only the engine's allocations count. What the simulation needs for itself, its scheduler, its files and its oracle,
// it takes under Exempt. Everything here belongs to the one thread of the simulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace dbx::sim {

// The n-th allocation from now (1: the next; 0: none) fails, and the `more` that follow it.
void FailAllocations(uint64_t nth, uint64_t more);
// From now on there is memory. Returns how many allocations have failed since FailAllocations.
uint64_t StopFailingAllocations();
uint64_t FailedAllocations();

// Which allocation of a recovery to let fail: any, and the first ones more often than those of the replay.
uint64_t SomeAllocation(std::mt19937_64& random);

// Whether the allocation that is about to be made fails. Counts it.
bool AllocationFails();
// As the functions that they are named after, when there is memory; else they fail as those do.
void* AlignedAlloc(size_t alignment, size_t bytes);
void* Map(void* at, size_t bytes, int protection, int flags, int fd, long offset);

// When it ends there is memory again.
struct EndOfNeed {
  EndOfNeed() = default;
  EndOfNeed(const EndOfNeed&) = delete;
  EndOfNeed& operator=(const EndOfNeed&) = delete;
  ~EndOfNeed() { StopFailingAllocations(); }
};

// Allocations between its begin and its end succeed, and count for nothing. No fibre may lose its turn meanwhile.
class Exempt {
 public:
  Exempt();
  ~Exempt();
  Exempt(const Exempt&) = delete;
  Exempt& operator=(const Exempt&) = delete;

 private:
  const uint64_t left_;
};
auto Exempted(auto&& make) {
  const Exempt exempt;
  return make();
}

}  // namespace dbx::sim
