#include "storage/heap/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/host.h"
#include "base/numa_memory.h"
#include "storage/heap/page_space.h"

namespace dbx {
namespace {

[[noreturn]] void ThrowNoMemory(size_t bytes, int error) {
  throw Error(ExitStatus::kNoSpace,
              "no memory: mapping " + std::to_string(bytes) + " bytes failed: " + std::strerror(error));
}

std::byte* Map(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) ThrowNoMemory(bytes, errno);
  return static_cast<std::byte*>(at);
}

// Maps one huge page more than is needed and unmaps the rest around the aligned part.
std::byte* MapHugeAligned(size_t bytes) {
  std::byte* const start = Map(bytes + kHugePageBytes);
  const auto address = reinterpret_cast<uintptr_t>(start);
  const size_t before = RoundUp(address, kHugePageBytes) - address;
  const size_t after = kHugePageBytes - before;
  if (before > 0) munmap(start, before);
  if (after > 0) munmap(start + before + bytes, after);
  // A refusal is no error: without huge pages everything works, only slower.
  (void)madvise(start + before, bytes, MADV_HUGEPAGE);
  return start + before;
}

}  // namespace

MappedMemory::MappedMemory(size_t bytes) : bytes_(RoundUp(bytes, kPageBytes)) {
  data_ = bytes_ >= kHugePageBytes ? MapHugeAligned(bytes_) : Map(bytes_);
  if (bytes_ > 0) PlaceMemory(data_, bytes_);
}

MappedMemory::~MappedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

MappedMemory::MappedMemory(MappedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void FaultInMemory(std::byte* at, size_t bytes) {
  if (bytes == 0) return;
  const auto address = reinterpret_cast<uintptr_t>(at);
  const size_t before = address % kPageBytes;
  if (madvise(at - before, before + bytes, MADV_POPULATE_WRITE) == 0) return;
  if (errno == ENOMEM) ThrowNoMemory(bytes, errno);
  // Kernels before 5.14 do not know the advice.
  TouchMemory(at, bytes);
}

void TouchMemory(std::byte* at, size_t bytes) {
  const std::byte* const end = at + bytes;
  while (at < end) {
    AtomicRef<uint8_t>(*reinterpret_cast<uint8_t*>(at)).fetch_or(0, std::memory_order_relaxed);
    at += kPageBytes - reinterpret_cast<uintptr_t>(at) % kPageBytes;
  }
}

void MappedMemory::FaultIn(size_t offset, size_t bytes) const {
  CHECK(offset + bytes <= bytes_);
  FaultInMemory(data_ + offset, bytes);
}

RowArena::RowArena(size_t row_bytes, size_t alignment_bytes, PageSpace* pages) : row_bytes_(row_bytes), pages_(pages) {
  CHECK(std::has_single_bit(alignment_bytes));
  CHECK(alignment_bytes >= 16 && alignment_bytes <= kPageBytes);
  CHECK(row_bytes >= sizeof(Row) && row_bytes % alignment_bytes == 0);
}

Row* RowArena::TakeFree() {
  Row* const row = free_;
  free_ = reinterpret_cast<Row*>(row->key);
  // All but the control word, which says kGone until its new owner sets it.
  std::memset(&row->key, 0, row_bytes_ - offsetof(Row, key));
  return row;
}

void RowArena::Recycle(Row* row) {
  row->control.store(Row::kGone, std::memory_order_relaxed);  // No other thread can reach the row.
  row->key = reinterpret_cast<Key>(free_);
  free_ = row;
}

void RowArena::AdoptPage(uint32_t page) {
  if (adopted_.empty() || adopted_.back().end != page) {
    adopted_.push_back({page, page + 1});
  } else {
    ++adopted_.back().end;
  }
}

void RowArena::AddChunk() {
  // Doubles from the first size to the last; a row that is larger than the chunk gets a chunk of its own.
  size_t bytes = kLastChunkBytes;
  if (chunks_.size() < std::bit_width(kLastChunkBytes / kFirstChunkBytes)) bytes = kFirstChunkBytes << chunks_.size();
  chunks_.push_back(Chunk{MappedMemory(std::max(bytes, row_bytes_))});
}

void RowArena::NextChunk() {
  if (pages_ != nullptr) return NextPage();
  if (chunks_opened_ == chunks_.size()) AddChunk();
  const MappedMemory& memory = chunks_[chunks_opened_++].memory;
  next_ = memory.data();
  rows_left_ = memory.bytes() / row_bytes_;
}

void RowArena::NextPage() {
  if (next_page_ == pages_end_ && !adopted_.empty()) {
    next_page_ = adopted_.back().first;
    pages_end_ = adopted_.back().end;
    adopted_.pop_back();
  }
  if (next_page_ == pages_end_) {
    next_page_ = pages_->TakePages(kPagesPerTake);
    pages_end_ = next_page_ + kPagesPerTake;
  }
  next_ = reinterpret_cast<std::byte*>(pages_->RowAt({next_page_++, 0}));
  rows_left_ = pages_->rows_per_page();
}

void RowArena::PrefaultPages(size_t rows) {
  const size_t taken = rows_left_ + size_t{pages_end_ - next_page_} * pages_->rows_per_page();
  if (rows > taken)
    pages_->FaultInAhead(static_cast<uint32_t>((rows - taken) / pages_->rows_per_page() + kPagesPerTake));
}

void RowArena::Prefault(size_t bytes) {
  size_t rows = (bytes + row_bytes_ - 1) / row_bytes_;
  if (pages_ != nullptr) return PrefaultPages(rows);
  if (chunks_opened_ == 0) NextChunk();
  for (size_t i = chunks_opened_ - 1; rows > 0; ++i) {
    if (i == chunks_.size()) AddChunk();
    Chunk& chunk = chunks_[i];
    const size_t used = UsedBytes(i);
    const size_t ahead = std::min(rows, (chunk.memory.bytes() - used) / row_bytes_) * row_bytes_;
    rows -= ahead / row_bytes_;
    const size_t from = std::max(used, chunk.faulted_bytes), until = used + ahead;
    if (until <= from) continue;
    chunk.memory.FaultIn(from, until - from);
    chunk.faulted_bytes = until;
  }
}

size_t RowArena::UsedBytes(size_t chunk) const {
  if (chunk >= chunks_opened_) return 0;
  const MappedMemory& memory = chunks_[chunk].memory;
  if (chunk + 1 < chunks_opened_) return memory.bytes();
  return static_cast<size_t>(next_ - memory.data());
}

size_t RowArena::memory_bytes() const {
  size_t total = 0;
  for (size_t i = 0; i < chunks_.size(); ++i) {
    const MappedMemory& memory = chunks_[i].memory;
    const size_t touched = RoundUp(std::max(UsedBytes(i), chunks_[i].faulted_bytes), memory.page_bytes());
    total += std::min(touched, memory.bytes());
  }
  return total;
}

}  // namespace dbx
