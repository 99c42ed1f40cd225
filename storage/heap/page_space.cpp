#include "storage/heap/page_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "base/numa_memory.h"
#include "base/xor_bytes.h"
#include "storage/heap/arena.h"

namespace dbx {
namespace {

constexpr size_t kRowsPerPageMin = 4;

[[noreturn]] void ThrowNoMemory(size_t bytes, int error) {
  throw Error(ExitStatus::kNoSpace,
              "no memory: reserving " + std::to_string(bytes) + " bytes of addresses failed: " + std::strerror(error));
}

// Addresses without memory: a page of the system is there, zeroed, from its first access on.
std::byte* ReserveAddresses(size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) ThrowNoMemory(bytes, errno);
  PlaceMemory(at, bytes);
  return static_cast<std::byte*>(at);
}

// No table is larger than the host's memory.
size_t MostBytes() {
  constexpr size_t kLeast = size_t{1} << 30;
  const auto pages = static_cast<size_t>(std::max<long>(sysconf(_SC_PHYS_PAGES), 0));
  return std::bit_ceil(std::max(pages * kPageBytes, kLeast));
}

// The presence bits in front of the rows of a page, whose first row is aligned.
size_t BitsBytes(size_t rows, size_t alignment_bytes) {
  return RoundUp((rows + 7) / 8, std::max<size_t>(alignment_bytes, 8));
}

size_t RowsIn(size_t page_bytes, const PageShape& shape) {
  size_t rows = page_bytes / shape.row_bytes;
  while (rows > 0 && BitsBytes(rows, shape.alignment_bytes) + rows * shape.row_bytes > page_bytes) --rows;
  return rows;
}

}  // namespace

PageSpace::PageSpace(const PageShape& shape, CheckpointClock& clock)
    : shape_(shape), clock_(clock), reserved_bytes_(MostBytes()), row_bytes_(static_cast<uint32_t>(shape.row_bytes)) {
  CHECK(shape.row_bytes >= sizeof(Row) && shape.row_bytes % shape.alignment_bytes == 0);
  CHECK(shape.tuple_offset + shape.tuple_bytes <= shape.row_bytes && shape.tuple_offset % 8 == 0);
  CHECK(shape.rows_per_page <= kRowsPerPageMax);
  size_t rows = shape.rows_per_page;
  const size_t rows_min = std::max<size_t>(rows, kRowsPerPageMin);
  const size_t bytes = BitsBytes(rows_min, shape.alignment_bytes) + rows_min * shape.row_bytes;
  const size_t page_bytes = std::bit_ceil(std::max(rows == 0 ? shape.page_bytes_min : 0, bytes));
  if (rows == 0) rows = std::min<size_t>(RowsIn(page_bytes, shape), kRowsPerPageMax);
  shift_ = std::countr_zero(page_bytes);
  rows_per_page_ = static_cast<uint32_t>(rows);
  bits_bytes_ = static_cast<uint32_t>(BitsBytes(rows, shape.alignment_bytes));
  pages_max_ = static_cast<uint32_t>(std::min<size_t>(reserved_bytes_ >> shift_, UINT32_MAX));
  reserved_ = ReserveAddresses(reserved_bytes_ + kHugePageBytes);
  base_ = reinterpret_cast<std::byte*>(RoundUp(reinterpret_cast<uintptr_t>(reserved_), kHugePageBytes));
  // Not the first, so that a small table stays small. A refusal is no error: without huge pages everything works, only
  // slower.
  (void)madvise(base_ + kHugePageBytes, reserved_bytes_ - kHugePageBytes, MADV_HUGEPAGE);
  words_ = reinterpret_cast<uint32_t*>(ReserveAddresses(size_t{pages_max_} * sizeof(uint32_t)));
}

PageSpace::~PageSpace() {
  munmap(words_, size_t{pages_max_} * sizeof(uint32_t));
  munmap(reserved_, reserved_bytes_ + kHugePageBytes);
}

uint32_t PageSpace::TakePages(uint32_t count) {
  const std::lock_guard lock(clock_.page_additions());
  const uint32_t first = page_count();
  Grow(first + count);
  return first;
}

void PageSpace::GrowTo(uint32_t count) {
  const std::lock_guard lock(clock_.page_additions());
  if (count > page_count()) Grow(count);
}

// A page counts as reached by the current checkpoint, which does not copy it: it is not among those that it counted.
// Dirty for both copies, as neither has it: one whose rows never become present would be a hole in the next backup.
void PageSpace::Grow(uint32_t until) {
  if (until > pages_max_) ThrowNoMemory(size_t{until} << shift_, ENOMEM);
  const uint32_t word = kDirty[0] | kDirty[1] | (clock_.number() % 2 != 0 ? kParity : 0);
  for (uint32_t i = page_count(); i < until; ++i) AtomicRef<uint32_t>(words_[i]).store(word, std::memory_order_relaxed);
  // Release: a thread that finds the page counted sees its word.
  page_count_.store(until, std::memory_order_release);
}

// They are not added yet: a checkpoint would write them, and a restart read them.
void PageSpace::FaultInAhead(uint32_t count) {
  uint32_t first, end;
  {
    const std::lock_guard lock(clock_.page_additions());
    first = std::max(page_count(), faulted_until_);
    end = faulted_until_ = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{first} + count, pages_max_));
  }
  if (first < end) FaultInMemory(page(first), size_t{end - first} << shift_);
}

void PageSpace::CopyImages(uint32_t number, std::byte* to) const {
  const std::byte* const from = page(number);
  std::memset(to, 0, BitsImageBytes());
  std::memcpy(to, from, (rows_per_page_ + 7) / 8);
  std::byte* image = to + BitsImageBytes();
  for (uint32_t slot = 0; slot < rows_per_page_; ++slot, image += ImageBytes()) {
    if (!IsPresent({number, slot})) {
      std::memset(image, 0, ImageBytes());
      continue;
    }
    Row* const row = RowAt({number, slot});
    std::memset(image + ImageBytes() - 8, 0, 8);
    std::memcpy(image, &row->key, kKeyBytes);
    std::memcpy(image + kKeyBytes, TupleOf(row), shape_.tuple_bytes);
  }
}

void PageSpace::PutImages(uint32_t number, const std::byte* from) {
  std::memcpy(page(number), from, (rows_per_page_ + 7) / 8);
  const std::byte* image = from + BitsImageBytes();
  for (uint32_t slot = 0; slot < rows_per_page_; ++slot, image += ImageBytes()) {
    Row* const row = RowAt({number, slot});
    std::memcpy(&row->key, image, kKeyBytes);
    std::memcpy(TupleOf(row), image + kKeyBytes, shape_.tuple_bytes);
  }
}

void PageSpace::XorImages(uint32_t number, const std::byte* from) {
  XorBytes(page(number), from, (rows_per_page_ + 7) / 8);
  const std::byte* image = from + BitsImageBytes();
  for (uint32_t slot = 0; slot < rows_per_page_; ++slot, image += ImageBytes()) {
    Row* const row = RowAt({number, slot});
    XorBytes(reinterpret_cast<std::byte*>(&row->key), image, kKeyBytes);
    XorBytes(TupleOf(row), image + kKeyBytes, shape_.tuple_bytes);
  }
}

}  // namespace dbx
