// Pages of a tree in memory: a buffer pool over a "Page Store" that is made from the record bodies alone. A page that
// is evicted comes back from there, so replay is part of every test with a small pool.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/host.h"
#include "multi_master/page/buffer_pool.h"
#include "multi_master/page/page_change.h"
#include "multi_master/page/page_source.h"

namespace dbx::mm {

struct Crash {};

class MemorySource : public PageSource {
 public:
  explicit MemorySource(size_t frames_max = 1024)
      : clock_(MasterId(1)), pool_({frames_max, 0}, [](PageFrame&) { return true; }) {}

  // As it was loaded.
  void Store(const SlottedPage& page) {
    stored_[page.id()] = page;
    first_free_ = std::max(first_free_, page.id().value() + 1);
  }
  void StoreEmptyRoot(TreeId tree, PageId root) {
    SlottedPage page;
    page.Format(root, tree, 0, PageId(), 0);
    Store(page);
  }
  // Called before a record is written; may throw Crash, as if the process had ended there.
  std::function<void(std::span<const PageChange>)> before_record;

  PageFrame* Pin(PageId page, LockMode mode, bool may_wait) override {
    const BufferPool::PinResult result = pool_.Pin(page, mode, may_wait);
    if (result.status == BufferPool::PinStatus::kWouldWait) return nullptr;
    CHECK(result.frame != nullptr);
    if (result.status == BufferPool::PinStatus::kHit) return result.frame;
    if (!Fill(*result.frame)) {
      pool_.Discard(*result.frame);
      throw Error(ExitStatus::kCorrupt, "no page " + std::to_string(page.value()));
    }
    if (mode == LockMode::kShared) pool_.Downgrade(*result.frame);
    return result.frame;
  }
  PageFrame* PinNew(PageId page) override {
    PageFrame* frame = pool_.Pin(page, LockMode::kExclusive, true).frame;
    CHECK(frame != nullptr && frame->page.id() == PageId());
    return frame;
  }
  void Unpin(PageFrame& frame, LockMode mode) override { pool_.Unpin(frame, mode); }

  PageId NewPage() override {
    const std::lock_guard<Mutex> lock(mutex_);
    if (given_back_.empty()) return PageId(first_free_++);
    const PageId page = given_back_.back();
    given_back_.pop_back();
    return page;
  }
  void GiveBack(PageId page) override {
    const std::lock_guard<Mutex> lock(mutex_);
    given_back_.push_back(page);
  }
  Lsn EndMini(std::span<PageChange> changes) override {
    const std::lock_guard<Mutex> lock(mutex_);
    if (before_record) before_record(changes);
    StampChanges(clock_, changes);
    bodies_.push_back(EncodePages(changes));
    log_end_ += bodies_.back().size();
    return log_end_;
  }

  const std::vector<std::vector<std::byte>>& bodies() const { return bodies_; }
  // All pages as the record bodies make them.
  const std::map<PageId, SlottedPage>& StoredPages() {
    const std::lock_guard<Mutex> lock(mutex_);
    ReplayNewBodies();
    return stored_;
  }
  BufferPool& pool() { return pool_; }

 private:
  bool Fill(PageFrame& frame) {
    const std::lock_guard<Mutex> lock(mutex_);
    ReplayNewBodies();
    const auto found = stored_.find(frame.id);
    if (found == stored_.end()) return false;
    frame.page = found->second;
    EXPECT_EQ(frame.page.WhyInvalid(frame.id), nullptr);
    return true;
  }
  void ReplayNewBodies() {
    for (; replayed_ < bodies_.size(); ++replayed_) {
      const std::optional<std::vector<PageChange>> changes = DecodePages(bodies_[replayed_]);
      CHECK(changes.has_value());
      for (const PageChange& change : *changes) {
        CHECK(Apply(stored_[change.page], change) == ApplyStatus::kApplied);
      }
    }
  }

  Mutex mutex_;
  VsClock clock_;
  std::map<PageId, SlottedPage> stored_;
  std::vector<std::vector<std::byte>> bodies_;
  size_t replayed_ = 0;
  Lsn log_end_;
  uint64_t first_free_ = 1;
  std::vector<PageId> given_back_;
  BufferPool pool_;
};

}  // namespace dbx::mm
