// Memory for rows, and for the nodes of BTreePool: zeroed, in huge pages where the system has any, one arena per table
// and worker.
//
// MappedMemory is one anonymous mapping; the hash index uses it too. RowArena hands out rows of one size from chunks of
// such memory by moving a pointer, and keeps a free list. The chunks of a paged table's arenas are the pages of its
// PageSpace.
//
// An arena belongs to one thread at a time. Its chunks grow from 64 KiB to 64 MiB, so that a tiny table
// stays tiny; they are address space until rows are handed out, so the unused end of a chunk costs nothing
// but the rest of its last page. The thread that allocates is the first to touch a page, which places it on
// that thread's NUMA node, unless the run has another policy (base/numa_memory.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/cache_line.h"
#include "storage/row.h"

namespace dbx {

class PageSpace;

inline constexpr size_t kPageBytes = 4096;
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Backs [at, at + bytes) of zeroed memory with pages now rather than at first touch. Other threads may be using it:
// what they write stays. Throws Error (kNoSpace).
void FaultInMemory(std::byte* at, size_t bytes);
// The same on kernels that cannot do it by one call.
void TouchMemory(std::byte* at, size_t bytes);

// Zeroed memory from the system. From 2 MiB on it starts on a huge page and asks for huge pages; where
// there are none it works with small ones. Throws Error (kNoSpace) if the system has no more.
class MappedMemory {
 public:
  MappedMemory() = default;
  explicit MappedMemory(size_t bytes);
  ~MappedMemory();
  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // How much one page fault maps.
  size_t page_bytes() const { return bytes_ >= kHugePageBytes ? kHugePageBytes : kPageBytes; }

  // Backs [offset, offset + bytes), which has not been written yet, with pages now rather than at first touch.
  void FaultIn(size_t offset, size_t bytes) const;

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

class alignas(kNoSharingBytes) RowArena {
 public:
  static constexpr size_t kFirstChunkBytes = size_t{64} << 10;
  static constexpr size_t kLastChunkBytes = size_t{64} << 20;

  // `row_bytes` is a multiple of `alignment_bytes`, a power of two from 16 to a page. `pages`, if not null, is where
  // rows lie; it outlives the arena.
  RowArena(size_t row_bytes, size_t alignment_bytes, PageSpace* pages = nullptr);

  // A row whose bytes are all zero; the control word of a recycled one is kGone. Throws Error (kNoSpace).
  Row* Allocate() {
    if (free_ != nullptr) return TakeFree();
    if (rows_left_ == 0) NextChunk();
    --rows_left_;
    std::byte* row = next_;
    next_ += row_bytes_;
    return reinterpret_cast<Row*>(row);
  }

  // Takes back a row of this size, from whatever arena, that no thread can reach any more.
  void Recycle(Row* row);
  // Of a paged table: hands over a page of zeros, none of whose rows was ever handed out.
  void AdoptPage(uint32_t page);

  // Backs the next `bytes` that Allocate will hand out with pages, ahead of a measured interval.
  void Prefault(size_t bytes);

  // Memory handed out or faulted in, in whole pages; none of a paged table, whose PageSpace counts its own.
  size_t memory_bytes() const;

 private:
  // Pages taken at a time: one lock for all of them.
  static constexpr uint32_t kPagesPerTake = 16;

  struct Chunk {
    MappedMemory memory;
    size_t faulted_bytes = 0;  // from its start, by Prefault
  };

  Row* TakeFree();
  void NextChunk();
  void NextPage();
  void PrefaultPages(size_t rows);
  void AddChunk();
  size_t UsedBytes(size_t chunk) const;

  size_t row_bytes_;
  std::byte* next_ = nullptr;
  size_t rows_left_ = 0;  // in the current chunk, from next_ on
  Row* free_ = nullptr;   // linked through the keys
  std::vector<Chunk> chunks_;
  size_t chunks_opened_ = 0;  // the last of these is current; Prefault may have mapped more
  PageSpace* pages_;
  uint32_t next_page_ = 0, pages_end_ = 0;  // taken and not opened
  struct PageRange {
    uint32_t first;
    uint32_t end;
  };
  std::vector<PageRange> adopted_;  // the same, opened from the last range on
};

}  // namespace dbx
