#include "multi_master/master/master_pages.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

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
  // Before the changes have times: a TV that covers one of them finds what it needs.
  for (const PageChange& change : changes) NoteSplit(change);
  const Lsn end = log_.AppendPages(changes);
  for (const PageChange& change : changes) locks_.SetLsn(change.page, change.lsn);
  return end;
}

void MasterPages::NoteSplit(const PageChange& change) {
  if (IsLoaded(change.page) || MakerOf(change.page) == self_ || change.previous.master == self_) return;
  const std::lock_guard latch(splits_latch_);
  // Once: its rows were moved there when it was made.
  const bool is_first = noted_.insert(change.page).second;
  if (!is_first) return;
  splits_needed_.RaiseTo(change.previous.master, change.previous.time);
}

VsVector MasterPages::splits_needed() const {
  const std::lock_guard latch(splits_latch_);
  return splits_needed_;
}

void MasterPages::FetchPage(PageId page, const PageLsn& lsn) {
  PageFrame& frame = *PinFrame(page, LockMode::kExclusive, true)->frame;
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

std::optional<BufferPool::PinResult> MasterPages::PinFrame(PageId page, LockMode mode, bool may_wait) {
  for (;;) {
    const BufferPool::PinResult pin = pool_.Pin(page, mode, may_wait);
    if (pin.status == BufferPool::PinStatus::kWouldWait) return std::nullopt;
    if (pin.status != BufferPool::PinStatus::kFull) return pin;
    // Its release makes what it holds durable first.
    if (locks_.Evict(pin.release_first)) {
      evicted_.fetch_add(1, std::memory_order_relaxed);
      locks_.ReleaseDue();
    }
    host::Yield();
  }
}

void MasterPages::Check(PageId page, const PageVersion& version) {
  if (const char* fault = version.page->WhyInvalid(page); fault != nullptr) {
    throw Error(ExitStatus::kCorrupt,
                "page " + std::to_string(page.value()) + " as a Page Store sent it: " + std::string(fault));
  }
}

void MasterPages::Fill(PageFrame& frame, PageId page, const PageLsn& lsn) {
  PageVersion version = fetcher_.Fetch(page, lsn);
  CHECK(version);
  const bool is_unformatted = version.page->id() == PageId() && lsn == PageLsn();
  if (!is_unformatted) Check(page, version);
  if (version.page->lsn() != lsn) {
    throw Error(ExitStatus::kCorrupt, "page " + std::to_string(page.value()) +
                                          " as a Page Store sent it: another version than the one asked for");
  }
  frame.page = *version.page;
  frame.newest = version.newest;
  frame.log_end = Lsn();
  fetched_.fetch_add(1, std::memory_order_relaxed);
}

// --- Other masters' flushes ---

void MasterPages::ApplyFlush(const LfbStamp& lfb, std::span<const PageChange> changes) {
  {
    const std::lock_guard latch(begun_latch_);
    begun_.RaiseTo(lfb.master, lfb.time());
  }
  // A page is pinned once for all of its changes. Threads that have it latched do not wait for flushes to be applied.
  std::vector<const PageChange*> by_page;
  for (const PageChange& change : changes) by_page.push_back(&change);
  std::stable_sort(by_page.begin(), by_page.end(),
                   [](const PageChange* a, const PageChange* b) { return a->page < b->page; });
  for (size_t begin = 0, end; begin < by_page.size(); begin = end) {
    const PageId page = by_page[begin]->page;
    for (end = begin + 1; end < by_page.size() && by_page[end]->page == page;) ++end;
    PageFrame* frame = pool_.PinIfPresent(page);
    for (size_t i = begin; i < end && frame != nullptr; ++i) {
      const PageChange& change = *by_page[i];
      if (!frame->page.lsn().IsOlderThan(change.lsn)) continue;
      if (frame->page.lsn() == change.previous) {
        ApplyTo(*frame, change);
        continue;
      }
      dropped_.fetch_add(1, std::memory_order_relaxed);
      pool_.Discard(*std::exchange(frame, nullptr));
    }
    if (frame != nullptr) pool_.Unpin(*frame, LockMode::kExclusive);
  }
}

void MasterPages::ApplyTo(PageFrame& frame, const PageChange& change) {
  // The same function applied it to the same version where it was made.
  CHECK(Apply(frame.page, change) == ApplyStatus::kApplied);
  frame.newest.RaiseTo(change.lsn.master, change.lsn.time);
  changes_followed_.fetch_add(1, std::memory_order_relaxed);
}

// --- Versions ---

// A version that this master made last may hold more of other logs than TV: then the versions before it are not all
// covered. Nor is it a version of TV if a row lock was dropped from the page for an END beyond TV, as a transaction of
// this master may have read what that END's transaction wrote. This holds wherever the version comes from.
MasterPages::Fit MasterPages::Judge(const PageFrame& frame, PageId page, const ReadView& view) {
  // Made by a split behind the statement's back.
  if (frame.page.id() != page) return Fit::kInvalid;
  const PageLsn lsn = frame.page.lsn();
  if (lsn.time == VsTime()) return Fit::kFits;
  if (lsn.master != self_) return view.tv.Covers(lsn.master, lsn.time) ? Fit::kFits : Fit::kTooNew;
  if (!view.tv.Covers(frame.newest)) return Fit::kInvalid;
  return view.tv.Covers(locks_.AfterListOf(page)) ? Fit::kFits : Fit::kInvalid;
}

MasterPages::VersionPin MasterPages::PinVersion(PageId page, const ReadView& view, bool may_wait) {
  const auto pin = PinFrame(page, LockMode::kShared, may_wait);
  if (!pin) return {};
  PageFrame& frame = *pin->frame;
  if (pin->status == BufferPool::PinStatus::kFresh) return FillAt(frame, page, view);
  const Fit fit = Judge(frame, page, view);
  if (fit == Fit::kFits) {
    versions_from_buffer_.fetch_add(1, std::memory_order_relaxed);
    return {&frame, nullptr};
  }
  UnpinVersion(frame);
  if (fit == Fit::kInvalid) return {};
  return {nullptr, FetchAt(page, view)};
}

// The frame is latched exclusively, so no flush and no grant passes by from here on. The own changes of a page that was
// not in the buffer are durable: its lock was released after them.
MasterPages::VersionPin MasterPages::FillAt(PageFrame& fresh, PageId page, const ReadView& view) {
  bool is_current = view.tv.Covers(self_, log_.durable_until());
  {
    const std::lock_guard latch(begun_latch_);
    is_current = is_current && view.tv.Covers(begun_);
  }
  std::unique_ptr<PageFrame> version;
  try {
    version = FetchAt(page, view);
  } catch (...) {
    pool_.Discard(fresh);
    throw;
  }
  if (version == nullptr || !is_current) {
    pool_.Discard(fresh);
    return {nullptr, std::move(version)};
  }
  fresh.page = version->page;
  fresh.newest = version->newest;
  fresh.log_end = Lsn();
  pool_.Downgrade(fresh);
  return {&fresh, nullptr};
}

std::unique_ptr<PageFrame> MasterPages::FetchAt(PageId page, const ReadView& view) {
  PageVersion version = fetcher_.FetchBelow(page, StoreTv(view));
  if (!version || version.page->id() == PageId()) return nullptr;
  Check(page, version);
  versions_from_store_.fetch_add(1, std::memory_order_relaxed);
  auto frame = std::make_unique<PageFrame>(PageFrame{page, *version.page, version.newest, Lsn()});
  return Judge(*frame, page, view) == Fit::kFits ? std::move(frame) : nullptr;
}

// A Page Store never gets own records that are not durable, so it would wait for them. What was applied of the own log
// is durable, though this master may not have heard so.
VsVector MasterPages::StoreTv(const ReadView& view) const {
  VsVector tv = view.applied;
  tv.RaiseTo(self_, log_.durable_until());
  tv.LowerTo(view.tv);
  return tv;
}

PageCounters MasterPages::counters() const {
  return {fetched_.load(std::memory_order_relaxed),
          from_buffer_.load(std::memory_order_relaxed),
          evicted_.load(std::memory_order_relaxed),
          versions_from_buffer_.load(std::memory_order_relaxed),
          versions_from_store_.load(std::memory_order_relaxed),
          changes_followed_.load(std::memory_order_relaxed),
          dropped_.load(std::memory_order_relaxed)};
}

}  // namespace dbx::mm
