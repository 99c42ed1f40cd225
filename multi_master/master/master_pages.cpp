#include "multi_master/master/master_pages.h"

#include <string>

#include "base/check.h"
#include "base/error.h"

namespace dbx::mm {

MasterPages::MasterPages(MasterId self, ClusterEpoch epoch, size_t frames_max, LocalLocks& locks, MasterLog& log,
                         PageFetcher& fetcher)
    : self_(self),
      epoch_(epoch),
      locks_(locks),
      log_(log),
      fetcher_(fetcher),
      pool_({.frames_max = frames_max}, [this](PageFrame& frame) { return !locks_.HeldMode(frame.id).has_value(); }) {
  CHECK(epoch.value() <= kPageEpochMax);
}

PageFrame* MasterPages::Pin(PageId page, LockMode mode, bool may_wait) {
  switch (locks_.Acquire(page, mode, may_wait)) {
    case PinResult::kPinned:
      break;
    case PinResult::kWouldWait:
      return nullptr;
    case PinResult::kStopped:
      throw Error(ExitStatus::kIo, "master " + std::to_string(self_.value()) + " has stopped");
  }
  const BufferPool::PinResult pin = pool_.Pin(page, mode, may_wait);
  if (pin.status == BufferPool::PinStatus::kWouldWait) {
    locks_.Unpin(page);
    return nullptr;
  }
  // A locked page is not dropped.
  CHECK(pin.status == BufferPool::PinStatus::kHit);
  return pin.frame;
}

PageFrame* MasterPages::PinNew(PageId page) { return Pin(page, LockMode::kExclusive, true); }

void MasterPages::Unpin(PageFrame& frame, LockMode mode) {
  const PageId page = frame.id;
  pool_.Unpin(frame, mode);
  locks_.Unpin(page);
}

PageId MasterPages::NewPage() {
  const uint32_t count = last_page_.fetch_add(1, std::memory_order_relaxed) + 1;
  CHECK(count != 0);
  return PageIdOf(self_, epoch_, count);
}

Lsn MasterPages::EndMini(std::span<PageChange> changes) {
  const Lsn end = log_.AppendPages(changes);
  for (const PageChange& change : changes) locks_.SetLsn(change.page, change.lsn);
  return end;
}

void MasterPages::FetchPage(PageId page, const PageLsn& lsn) {
  PageFrame& frame = PinForFetch(page);
  // A frame of zeros is what a page at PageLsn() is that was never formatted: one of a transaction's new pages.
  const bool is_there = frame.page.lsn() == lsn && (frame.page.id() == page || (lsn == PageLsn() && !IsLoaded(page)));
  try {
    if (is_there) {
      from_buffer_.fetch_add(1, std::memory_order_relaxed);
    } else {
      Fill(frame, page, lsn);
    }
  } catch (...) {
    pool_.Discard(frame);
    throw;
  }
  pool_.Unpin(frame, LockMode::kExclusive);
}

PageFrame& MasterPages::PinForFetch(PageId page) {
  for (;;) {
    const BufferPool::PinResult pin = pool_.Pin(page, LockMode::kExclusive, true);
    if (pin.status != BufferPool::PinStatus::kFull) return *pin.frame;
    // Its release makes what it holds durable first.
    if (locks_.Evict(pin.release_first)) {
      evicted_.fetch_add(1, std::memory_order_relaxed);
      locks_.ReleaseDue();
    }
    host::Yield();
  }
}

void MasterPages::Fill(PageFrame& frame, PageId page, const PageLsn& lsn) {
  PageVersion version = fetcher_.Fetch(page, lsn);
  CHECK(version);
  const bool is_unformatted = version.page->id() == PageId() && lsn == PageLsn();
  const char* fault = is_unformatted ? nullptr : version.page->WhyInvalid(page);
  if (fault == nullptr && version.page->lsn() != lsn) fault = "another version than the one asked for";
  if (fault != nullptr) {
    throw Error(ExitStatus::kCorrupt,
                "page " + std::to_string(page.value()) + " as a Page Store sent it: " + std::string(fault));
  }
  frame.page = *version.page;
  frame.newest = version.newest;
  frame.log_end = Lsn();
  fetched_.fetch_add(1, std::memory_order_relaxed);
}

PageCounters MasterPages::counters() const {
  return {fetched_.load(std::memory_order_relaxed), from_buffer_.load(std::memory_order_relaxed),
          evicted_.load(std::memory_order_relaxed)};
}

}  // namespace dbx::mm
