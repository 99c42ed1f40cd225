#include "tests/simulation/allocation.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <utility>

namespace dbx::sim {
namespace {

constexpr uint64_t kNever = UINT64_MAX;

uint64_t left = kNever;  // allocations until the first that fails
uint64_t more_to_fail = 0;
uint64_t failed = 0;

void* Allocate(size_t bytes) {
  if (AllocationFails()) throw std::bad_alloc();
  void* const at = std::malloc(std::max<size_t>(bytes, 1));
  if (at == nullptr) throw std::bad_alloc();
  return at;
}

void* Allocate(size_t bytes, std::align_val_t alignment) {
  const auto align = static_cast<size_t>(alignment);
  void* const at = AlignedAlloc(align, (std::max<size_t>(bytes, 1) + align - 1) / align * align);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}

}  // namespace

void FailAllocations(uint64_t nth, uint64_t more) {
  left = nth == 0 ? kNever : nth - 1;
  more_to_fail = more;
  failed = 0;
}

uint64_t StopFailingAllocations() {
  left = kNever;
  return failed;
}

uint64_t SomeAllocation(std::mt19937_64& random) { return 1 + random() % (uint64_t{1} << (1 + random() % 14)); }

uint64_t FailedAllocations() { return failed; }

bool AllocationFails() {
  if (left == kNever) return false;
  if (left > 0) {
    --left;
    return false;
  }
  ++failed;
  if (failed > more_to_fail) left = kNever;
  return true;
}

void* AlignedAlloc(size_t alignment, size_t bytes) {
  return AllocationFails() ? nullptr : std::aligned_alloc(alignment, bytes);
}

void* Map(void* at, size_t bytes, int protection, int flags, int fd, long offset) {
  if (!AllocationFails()) return ::mmap(at, bytes, protection, flags, fd, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

Exempt::Exempt() : left_(std::exchange(left, kNever)) {}
Exempt::~Exempt() { left = left_; }

}  // namespace dbx::sim

void* operator new(size_t bytes) { return dbx::sim::Allocate(bytes); }
void* operator new[](size_t bytes) { return dbx::sim::Allocate(bytes); }
void* operator new(size_t bytes, std::align_val_t alignment) { return dbx::sim::Allocate(bytes, alignment); }
void* operator new[](size_t bytes, std::align_val_t alignment) { return dbx::sim::Allocate(bytes, alignment); }
void operator delete(void* at) noexcept { std::free(at); }
void operator delete[](void* at) noexcept { std::free(at); }
void operator delete(void* at, size_t) noexcept { std::free(at); }
void operator delete[](void* at, size_t) noexcept { std::free(at); }
void operator delete(void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete[](void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete(void* at, size_t, std::align_val_t) noexcept { std::free(at); }
void operator delete[](void* at, size_t, std::align_val_t) noexcept { std::free(at); }
