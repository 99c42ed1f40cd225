// The buffer of a process: a bounded number of page frames, with pins and latches.
//
// A latch is shared or exclusive; exclusive ones that wait go before later shared ones. A frame that is pinned, which
// includes waiting for its latch, keeps its page. Eviction goes by the clock: a frame that was pinned since the hand
// last passed stays once more. Only pages that the owner gives away are evicted: a master gives a page away when it has
// released its page lock, so the page's changes are durable in the log and Page Stores can make it again.
//
// The frames are divided into partitions by page id, each with a mutex, so that threads on different pages rarely meet.
//
// Threads: any. Pin may wait for a latch, under base/host.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/host.h"
#include "multi_master/page/page_source.h"

namespace dbx::mm {

class BufferPool {
 public:
  // Whether the page of an unpinned frame may be dropped. Called under a partition's mutex: it neither waits nor calls
  // the pool.
  using MayDrop = std::function<bool(PageFrame& frame)>;

  struct Options {
    size_t frames_max = 1024;
    size_t partitions = 0;  // 0: one for each 256 frames, 16 at most
  };

  BufferPool(const Options& options, MayDrop may_drop);
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  enum class PinStatus : uint8_t {
    kHit,
    // The page was not in the pool. The frame is latched exclusively, whatever was asked for, and its page was never
    // formatted: the caller fills it and may then Downgrade, or unpins it with Discard.
    kFresh,
    kWouldWait,  // only without may_wait
    // No page may be dropped, but `release_first` is unpinned: the caller makes the owner give it away and tries again.
    kFull,
  };
  struct PinResult {
    PinStatus status;
    PageFrame* frame;
    PageId release_first;
  };
  // Throws Error if all frames of the page's partition are pinned.
  PinResult Pin(PageId page, LockMode mode, bool may_wait);
  // Pins the page exclusively if the pool has it; waits for its latch. Null: it does not, or no longer, and no frame
  // was taken for it.
  PageFrame* PinIfPresent(PageId page);
  void Unpin(PageFrame& frame, LockMode mode);
  // An exclusive latch becomes a shared one.
  void Downgrade(PageFrame& frame);
  // Unpins a frame that is latched exclusively and forgets its page. Threads that wait for its latch find it fresh.
  void Discard(PageFrame& frame);
  // Forgets the page, unless it is pinned. True: the page is not in the pool.
  bool Drop(PageId page);

  size_t frames_max() const { return frames_max_; }
  size_t CountPages();

 private:
  struct Frame : PageFrame {
    uint32_t pins = 0;
    uint32_t sharers = 0;
    bool exclusive = false;
    uint32_t exclusive_waiting = 0;
    bool is_filled = false;
    bool referenced = false;  // since the hand passed
    ConditionVariable latch_freed;

    // For a thread that waits for it already. A frame that is not filled is latched exclusively.
    bool IsFreeFor(LockMode mode) const {
      return !exclusive && (sharers == 0 || (mode == LockMode::kShared && is_filled));
    }
    bool IsLatchFree(LockMode mode) const {
      return IsFreeFor(mode) && (mode == LockMode::kExclusive || exclusive_waiting == 0);
    }
  };
  struct Partition {
    Mutex mutex;
    size_t frames_max = 0;
    std::vector<std::unique_ptr<Frame>> frames;  // made when first needed
    std::vector<Frame*> free;
    std::unordered_map<PageId, Frame*> pages;
    size_t hand = 0;
  };

  Partition& PartitionOf(PageId page) { return *partitions_[page.value() % partitions_.size()]; }
  Frame* FreeFrame(Partition& partition, PageId& release_first);
  Frame* Evict(Partition& partition, PageId& release_first);
  void Forget(Partition& partition, Frame& frame);
  // Of Discard, under the partition's mutex.
  void DiscardLatched(Partition& partition, Frame& frame);
  static void Clear(Frame& frame);
  static void Latch(Frame& frame, LockMode mode, std::unique_lock<Mutex>& lock);

  const size_t frames_max_;
  const MayDrop may_drop_;
  std::vector<std::unique_ptr<Partition>> partitions_;
};

}  // namespace dbx::mm
