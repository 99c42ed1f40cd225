// Pages of rows at addresses that never change, for logs whose records name a page and a slot (differential logging).
//
// One reserved range of addresses per table: page i begins at i << shift, with a presence bit for each slot and then
// the rows. A page is the smallest power of two that is at least PageShape::page_bytes_min and holds four rows; a run
// that continues from a backup keeps its number of rows per page. Beside the pages lies one word for each: its latch,
// whether the current checkpoint has reached it, and a dirty bit for each of the two copies of the backup. In the page
// these bits would cost a cache miss for each change.
//
// The image of a slot is its key and its tuple if its presence bit is set, and zeros otherwise. Control words, metadata
// of logs and concurrency controls, and what absent rows hold are no part of it. Images are what changes are the
// difference of, and what a backup holds: packed, so that another number of logs changes nothing on disk.
//
// Threads: TakePages from any thread. The presence bit and the tuple of a slot change under the page's latch, by the
// thread that holds the row's lock; so that thread reads them without the latch, and the holder of the latch reads the
// images of all slots. A slot without its bit belongs to one thread, which writes the key of a new row there;
// optimistic readers may read a tuple while it changes, and find another version of the row afterwards.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/host.h"
#include "base/spin.h"
#include "storage/heap/checkpoint_clock.h"
#include "storage/row.h"

namespace dbx {

struct PageShape {
  size_t row_bytes = 0;     // in memory, from row to row
  size_t tuple_offset = 0;  // within a row
  size_t tuple_bytes = 0;
  size_t alignment_bytes = 16;  // of rows
  size_t page_bytes_min = 16 << 10;
  uint32_t rows_per_page = 0;  // 0: as many as a page holds
};

class PageSpace {
 public:
  static constexpr int kCopies = 2;  // of a backup
  // A page is found at `offset >> shift`; the number of a slot is 16 bits in a record.
  static constexpr uint32_t kRowsPerPageMax = 1 << 15;

  struct Place {
    uint32_t page;
    uint32_t slot;
  };

  // Throws Error (kNoSpace) where the range of addresses is not to be had.
  PageSpace(const PageShape& shape, CheckpointClock& clock);
  ~PageSpace();
  PageSpace(const PageSpace&) = delete;
  PageSpace& operator=(const PageSpace&) = delete;

  uint32_t rows_per_page() const { return rows_per_page_; }
  uint32_t tuple_bytes() const { return static_cast<uint32_t>(shape_.tuple_bytes); }
  size_t page_bytes() const { return size_t{1} << shift_; }
  // Pages that were taken so far, numbered from 0.
  uint32_t page_count() const { return page_count_.load(std::memory_order_acquire); }
  // As many as there are addresses for.
  uint32_t pages_max() const { return pages_max_; }
  // Of the pages, their words included.
  size_t memory_bytes() const { return page_count() * (page_bytes() + sizeof(uint32_t)); }

  // The first of `count` new pages, zeroed, adjacent and dirty for both copies. Throws Error (kNoSpace).
  uint32_t TakePages(uint32_t count);
  // Before any transaction: there are pages up to `count` at least.
  void GrowTo(uint32_t count);
  // Backs `count` of the pages that will be taken next with memory, ahead of a measured interval; calls add up.
  void FaultInAhead(uint32_t count);

  Place PlaceOf(const Row* row) const {
    const auto offset = static_cast<size_t>(reinterpret_cast<const std::byte*>(row) - base_);
    const auto in_page = static_cast<uint32_t>(offset & (page_bytes() - 1));
    ASSERT(in_page >= bits_bytes_);
    return {static_cast<uint32_t>(offset >> shift_), (in_page - bits_bytes_) / row_bytes_};
  }
  Row* RowAt(const Place& place) const {
    return reinterpret_cast<Row*>(page(place.page) + bits_bytes_ + size_t{place.slot} * row_bytes_);
  }
  std::byte* TupleOf(Row* row) const { return reinterpret_cast<std::byte*>(row) + shape_.tuple_offset; }

  // By the holder of the row's lock, or of the page's latch.
  bool IsPresent(const Place& place) const {
    return (BitsOf(place).load(std::memory_order_relaxed) >> place.slot % 8 & 1) != 0;
  }

  void PrefetchPresence(const Row* row) const { Prefetch(&BitsAt(PlaceOf(row))); }

  // A page with its latch held. Nothing under a latch waits.
  class Latched {
   public:
    Latched(const PageSpace& space, uint32_t page) : space_(space), page_(page), word_(space.words_[page]) {
      SpinWait wait;
      // Acquire: pairs with the release of the last holder, whose changes of the page are seen.
      while ((seen_ = word_.fetch_or(kLatch, std::memory_order_acquire)) & kLatch) wait.Wait();
    }
    ~Latched() { word_.store(seen_ & ~kLatch, std::memory_order_release); }
    Latched(const Latched&) = delete;
    Latched& operator=(const Latched&) = delete;

    // Of the last checkpoint that has reached the page. The clock is loaded under the latch: if the page was reached by
    // the checkpoint that is running, its number is seen, and otherwise either number gives the same.
    uint32_t number() const {
      const uint32_t current = space_.clock_.number();
      return ((seen_ & kParity) != 0) == (current % 2 != 0) ? current : current - 1;
    }
    void SetNumber(uint32_t number) { seen_ = (seen_ & ~kParity) | (number % 2 != 0 ? kParity : 0); }
    void SetDirty() { seen_ |= kDirty[0] | kDirty[1]; }
    bool IsDirty(int copy) const { return (seen_ & kDirty[copy]) != 0; }
    void SetClean(int copy) { seen_ &= ~kDirty[copy]; }
    void SetDirty(int copy) { seen_ |= kDirty[copy]; }

    // The slot's presence bit.
    void SetPresent(uint32_t slot, bool present) {
      const auto bits = space_.BitsOf({page_, slot});
      const auto bit = static_cast<uint8_t>(1 << slot % 8);
      const uint8_t now = bits.load(std::memory_order_relaxed);
      bits.store(present ? now | bit : now & ~bit, std::memory_order_relaxed);
    }

   private:
    const PageSpace& space_;
    const uint32_t page_;
    const AtomicRef<uint32_t> word_;
    uint32_t seen_ = 0;
  };

  // Packed images of a page: presence bits in whole words of 8 bytes, then for each slot its key and its tuple, the
  // tuple padded with zeros to whole words.
  size_t ImageBytes() const { return kKeyBytes + RoundedUpToWords(shape_.tuple_bytes); }  // of a slot
  size_t BitsImageBytes() const { return RoundedUpToWords((rows_per_page_ + 7) / 8); }
  size_t PageImageBytes() const { return BitsImageBytes() + rows_per_page_ * ImageBytes(); }
  // Copies the packed images of a page, whose latch is held; `to` has PageImageBytes.
  void CopyImages(uint32_t page, std::byte* to) const;
  // Makes the page, which has no images yet, hold these. Control words stay 0.
  void PutImages(uint32_t page, const std::byte* from);
  // Combines the images with those of the page by XOR, bits included; the latch is held if others do so too.
  void XorImages(uint32_t page, const std::byte* from);

 private:
  friend class Latched;
  static constexpr size_t kKeyBytes = sizeof(Key);
  // Bits of a page's word.
  static constexpr uint32_t kLatch = 1;
  static constexpr uint32_t kParity = 2;  // of the number of the last checkpoint that has reached the page
  static constexpr uint32_t kDirty[kCopies] = {4, 8};

  std::byte* page(uint32_t number) const { return base_ + (size_t{number} << shift_); }
  uint8_t& BitsAt(const Place& place) const { return reinterpret_cast<uint8_t*>(page(place.page))[place.slot / 8]; }
  AtomicRef<uint8_t> BitsOf(const Place& place) const { return AtomicRef<uint8_t>(BitsAt(place)); }
  // The same while the caller holds the clock's page_additions().
  void Grow(uint32_t until);

  const PageShape shape_;
  CheckpointClock& clock_;
  const size_t reserved_bytes_;  // of addresses; what is not used costs nothing
  int shift_ = 0;
  uint32_t rows_per_page_ = 0;
  uint32_t bits_bytes_ = 0;  // of a page, up to its first row
  uint32_t row_bytes_ = 0;
  std::byte* reserved_ = nullptr;  // the range, with what lies in front of its first huge page
  std::byte* base_ = nullptr;
  uint32_t* words_ = nullptr;  // by page
  uint32_t pages_max_ = 0;
  Atomic<uint32_t> page_count_{0};
  uint32_t faulted_until_ = 0;  // guarded by the clock's page_additions()
};

}  // namespace dbx
