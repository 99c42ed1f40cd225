#include "multi_master/page/buffer_pool.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace dbx::mm {

BufferPool::BufferPool(const Options& options, MayDrop may_drop)
    : frames_max_(options.frames_max), may_drop_(std::move(may_drop)) {
  const size_t count = options.partitions > 0 ? options.partitions : std::clamp<size_t>(frames_max_ / 256, 1, 16);
  CHECK(count <= frames_max_);
  for (size_t i = 0; i < count; ++i) {
    partitions_.push_back(std::make_unique<Partition>());
    partitions_.back()->frames_max = frames_max_ / count + (i < frames_max_ % count ? 1 : 0);
  }
}

BufferPool::PinResult BufferPool::Pin(PageId page, LockMode mode, bool may_wait) {
  CHECK(page != PageId());
  Partition& partition = PartitionOf(page);
  std::unique_lock<Mutex> lock(partition.mutex);
  const auto found = partition.pages.find(page);
  Frame* frame = found != partition.pages.end() ? found->second : nullptr;
  if (frame == nullptr) {
    PageId release_first;
    frame = FreeFrame(partition, release_first);
    if (frame == nullptr) return {PinStatus::kFull, nullptr, release_first};
    frame->id = page;
    partition.pages.emplace(page, frame);
  } else if (!may_wait && !frame->IsLatchFree(mode)) {
    return {PinStatus::kWouldWait, nullptr, PageId()};
  }
  ++frame->pins;
  frame->referenced = true;
  Latch(*frame, mode, lock);
  return {frame->is_filled ? PinStatus::kHit : PinStatus::kFresh, frame, PageId()};
}

PageFrame* BufferPool::PinIfPresent(PageId page) {
  Partition& partition = PartitionOf(page);
  std::unique_lock<Mutex> lock(partition.mutex);
  const auto found = partition.pages.find(page);
  if (found == partition.pages.end()) return nullptr;
  Frame& frame = *found->second;
  ++frame.pins;
  Latch(frame, LockMode::kExclusive, lock);
  if (frame.is_filled) return &frame;
  // The thread that was about to fill it has discarded it.
  DiscardLatched(partition, frame);
  return nullptr;
}

void BufferPool::Latch(Frame& frame, LockMode mode, std::unique_lock<Mutex>& lock) {
  if (!frame.IsLatchFree(mode)) {
    // Later shared latches wait behind it, or writers of a page that is read all the time would wait for ever.
    if (mode == LockMode::kExclusive) ++frame.exclusive_waiting;
    frame.latch_freed.wait(lock, [&] { return frame.IsFreeFor(mode); });
    if (mode == LockMode::kExclusive) --frame.exclusive_waiting;
  }
  if (mode == LockMode::kShared && frame.is_filled) {
    ++frame.sharers;
  } else {
    frame.exclusive = true;
  }
}

void BufferPool::Unpin(PageFrame& page_frame, LockMode mode) {
  auto& frame = static_cast<Frame&>(page_frame);
  Partition& partition = PartitionOf(frame.id);
  const std::lock_guard<Mutex> lock(partition.mutex);
  CHECK(frame.pins > 0);
  --frame.pins;
  if (mode == LockMode::kExclusive) {
    CHECK(frame.exclusive);
    frame.exclusive = false;
    frame.is_filled = true;
  } else {
    CHECK(frame.sharers > 0);
    --frame.sharers;
  }
  frame.latch_freed.notify_all();
}

void BufferPool::Downgrade(PageFrame& page_frame) {
  auto& frame = static_cast<Frame&>(page_frame);
  const std::lock_guard<Mutex> lock(PartitionOf(frame.id).mutex);
  CHECK(frame.exclusive);
  frame.exclusive = false;
  frame.is_filled = true;
  ++frame.sharers;
  frame.latch_freed.notify_all();
}

void BufferPool::Discard(PageFrame& page_frame) {
  auto& frame = static_cast<Frame&>(page_frame);
  Partition& partition = PartitionOf(frame.id);
  const std::lock_guard<Mutex> lock(partition.mutex);
  DiscardLatched(partition, frame);
}

void BufferPool::DiscardLatched(Partition& partition, Frame& frame) {
  CHECK(frame.exclusive && frame.pins > 0);
  --frame.pins;
  frame.exclusive = false;
  if (frame.pins == 0) {
    Forget(partition, frame);
    partition.free.push_back(&frame);
    return;
  }
  Clear(frame);
  frame.latch_freed.notify_all();
}

bool BufferPool::Drop(PageId page) {
  Partition& partition = PartitionOf(page);
  const std::lock_guard<Mutex> lock(partition.mutex);
  const auto found = partition.pages.find(page);
  if (found == partition.pages.end()) return true;
  Frame& frame = *found->second;
  if (frame.pins > 0) return false;
  Forget(partition, frame);
  partition.free.push_back(&frame);
  return true;
}

size_t BufferPool::CountPages() {
  size_t count = 0;
  for (const auto& partition : partitions_) {
    const std::lock_guard<Mutex> lock(partition->mutex);
    count += partition->pages.size();
  }
  return count;
}

BufferPool::Frame* BufferPool::FreeFrame(Partition& partition, PageId& release_first) {
  if (!partition.free.empty()) {
    Frame* frame = partition.free.back();
    partition.free.pop_back();
    return frame;
  }
  if (partition.frames.size() == partition.frames_max) return Evict(partition, release_first);
  partition.frames.push_back(std::make_unique<Frame>());
  return partition.frames.back().get();
}

BufferPool::Frame* BufferPool::Evict(Partition& partition, PageId& release_first) {
  const size_t count = partition.frames.size();
  // The first round at most takes away what `referenced` protects.
  for (size_t i = 0; i < 2 * count; ++i) {
    Frame& frame = *partition.frames[partition.hand];
    partition.hand = (partition.hand + 1) % count;
    if (frame.pins > 0 || std::exchange(frame.referenced, false)) continue;
    if (may_drop_(frame)) {
      Forget(partition, frame);
      return &frame;
    }
    if (release_first == PageId()) release_first = frame.id;
  }
  if (release_first != PageId()) return nullptr;
  throw Error(ExitStatus::kNoSpace, "the buffer pool is full: all " + std::to_string(count) + " frames of " +
                                        (partitions_.size() > 1 ? "a partition" : "it") +
                                        " are pinned; set a larger one");
}

void BufferPool::Forget(Partition& partition, Frame& frame) {
  partition.pages.erase(frame.id);
  frame.id = PageId();
  Clear(frame);
}

void BufferPool::Clear(Frame& frame) {
  std::ranges::fill(frame.page.bytes(), std::byte{0});
  frame.newest = VsVector();
  frame.log_end = Lsn();
  frame.is_filled = false;
}

}  // namespace dbx::mm
