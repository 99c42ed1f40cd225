// Superseded versions of rows, their memory and its garbage collection: one store per worker that runs or replays
// transactions.
//
// A row holds its newest version; the older ones form a version chain beside it, newest first, each valid from its
// begin timestamp to its end timestamp, which is the begin of the version before it in the chain. The worker that
// supersedes a version allocates it here and frees it when no transaction can need it: it ended at or below the
// watermark, a lower bound of all current and future snapshots.
//
// Nothing is unlinked from a chain. A reader follows it to the next version only from one that begins after its
// snapshot, and stops at the first that does not; so it never follows the pointer that leads to a version that ended at
// or below the watermark, and that pointer may dangle.
//
// Threads: a store belongs to one worker. A version is written before it is linked and constant from then on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/types.h"
#include "storage/heap/arena.h"
#include "storage/row.h"

namespace dbx {

// Followed by `meta_bytes` of log metadata, the version's own, and by the tuple, unless the version is a tombstone.
struct RowVersion {
  RowVersion* older;  // in the chain
  RowVersion* later;  // in its worker's queue or free list
  Timestamp begin;
  Timestamp end;
  uint32_t size_class;
  bool absent;

  Meta meta() { return reinterpret_cast<std::byte*>(this + 1); }
  std::byte* tuple(size_t meta_bytes) { return meta() + meta_bytes; }
};
static_assert(sizeof(RowVersion) % 8 == 0);

class VersionStore {
 public:
  // Memory for a version with `bytes` of metadata and tuple; contents undefined. Throws Error (kNoSpace).
  RowVersion* Take(size_t bytes) {
    const size_t size_class = (sizeof(RowVersion) + bytes + kClassBytes - 1) / kClassBytes;
    if (size_class >= free_.size() || free_[size_class] == nullptr) return TakeNew(size_class);
    RowVersion* const version = free_[size_class];
    free_[size_class] = version->later;
    return version;
  }

  // The version has been superseded at version->end. One that ended later than its successors in the queue keeps them
  // from being freed.
  void Retire(RowVersion* version) {
    version->later = nullptr;
    (newest_ == nullptr ? oldest_ : newest_->later) = version;
    newest_ = version;
    ++waiting_;
  }

  // Frees versions that ended at or below `watermark`, the oldest first: a few versions or, if many wait, a share of
  // them, so that a long queue gets shorter and no call takes long.
  void Collect(Timestamp watermark) {
    for (size_t most = std::max(kFreedPerCall, waiting_ / 8); most > 0; --most) {
      if (oldest_ == nullptr || oldest_->end > watermark) return;
      RowVersion* const version = oldest_;
      oldest_ = version->later;
      if (oldest_ == nullptr) newest_ = nullptr;
      --waiting_;
      version->later = free_[version->size_class];
      free_[version->size_class] = version;
    }
  }

  size_t waiting() const { return waiting_; }  // superseded and not free yet
  size_t memory_bytes() const;                 // all memory ever taken for versions, in pages

 private:
  static constexpr size_t kClassBytes = 64;
  static constexpr size_t kFreedPerCall = 8;
  static constexpr size_t kFirstChunkBytes = size_t{64} << 10;
  static constexpr size_t kLastChunkBytes = size_t{16} << 20;

  RowVersion* TakeNew(size_t size_class);

  std::vector<RowVersion*> free_;  // by size class, each a list
  RowVersion* oldest_ = nullptr;   // the queue, about in the order of ends
  RowVersion* newest_ = nullptr;
  size_t waiting_ = 0;
  std::byte* next_ = nullptr;  // in the last chunk
  size_t left_bytes_ = 0;
  std::vector<MappedMemory> chunks_;
};

}  // namespace dbx
