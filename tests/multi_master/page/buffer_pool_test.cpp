// Frames, latches, eviction.
#include "multi_master/page/buffer_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/error.h"
#include "base/host.h"
#include "base/random.h"

namespace dbx::mm {
namespace {

using Status = BufferPool::PinStatus;
constexpr auto kShared = LockMode::kShared;
constexpr auto kExclusive = LockMode::kExclusive;

class BufferPoolTest : public ::testing::Test {
 protected:
  explicit BufferPoolTest(size_t frames = 4)
      : pool_({frames, 1}, [this](PageFrame& frame) {
          if (kept_.contains(frame.id)) return false;
          dropped_.push_back(frame.id);
          return true;
        }) {}
  // Brings a page in and leaves it unpinned.
  void Touch(uint64_t page) {
    const auto result = pool_.Pin(PageId(page), kExclusive, true);
    ASSERT_NE(result.frame, nullptr);
    if (result.status == Status::kFresh) result.frame->page.Format(PageId(page), TreeId(1), 0, PageId(), 0);
    pool_.Unpin(*result.frame, kExclusive);
  }

  std::set<PageId> kept_;
  std::vector<PageId> dropped_;
  BufferPool pool_;
};

TEST_F(BufferPoolTest, AFreshFrameIsFilledByTheThreadThatPinnedItFirst) {
  const auto fresh = pool_.Pin(PageId(1), kShared, true);
  ASSERT_EQ(fresh.status, Status::kFresh);
  EXPECT_EQ(fresh.frame->page.id(), PageId());
  EXPECT_EQ(pool_.Pin(PageId(1), kShared, false).status, Status::kWouldWait) << "it is not filled yet";
  fresh.frame->page.Format(PageId(1), TreeId(1), 0, PageId(), 0);
  pool_.Downgrade(*fresh.frame);
  const auto hit = pool_.Pin(PageId(1), kShared, false);
  EXPECT_EQ(hit.status, Status::kHit);
  EXPECT_EQ(hit.frame, fresh.frame);
  EXPECT_EQ(pool_.Pin(PageId(1), kExclusive, false).status, Status::kWouldWait);
  pool_.Unpin(*hit.frame, kShared);
  pool_.Unpin(*fresh.frame, kShared);
  EXPECT_EQ(pool_.Pin(PageId(1), kExclusive, false).status, Status::kHit);
}

TEST_F(BufferPoolTest, TheClockSparesWhatWasUsedSinceItPassed) {
  for (uint64_t page = 1; page <= 4; ++page) Touch(page);
  Touch(5);  // all were used: the hand goes round once, and takes the first
  EXPECT_EQ(dropped_, std::vector<PageId>{PageId(1)});
  Touch(2);
  Touch(6);
  EXPECT_EQ(dropped_.back(), PageId(3));
  EXPECT_EQ(pool_.Pin(PageId(2), kShared, true).status, Status::kHit);
}

TEST_F(BufferPoolTest, APageComesBackEmptyAfterItsEviction) {
  for (uint64_t page = 1; page <= 5; ++page) Touch(page);
  const auto again = pool_.Pin(PageId(1), kShared, true);
  EXPECT_EQ(again.status, Status::kFresh);
  EXPECT_EQ(again.frame->page.id(), PageId());
  EXPECT_TRUE(again.frame->newest.IsEmpty());
}

TEST_F(BufferPoolTest, PagesThatTheirOwnerKeepsAreNamedForRelease) {
  for (uint64_t page = 1; page <= 4; ++page) {
    Touch(page);
    kept_.insert(PageId(page));
  }
  const auto full = pool_.Pin(PageId(5), kShared, true);
  EXPECT_EQ(full.status, Status::kFull);
  EXPECT_TRUE(kept_.contains(full.release_first));
  kept_.erase(full.release_first);
  EXPECT_EQ(pool_.Pin(PageId(5), kShared, true).status, Status::kFresh);
  EXPECT_EQ(dropped_, std::vector<PageId>{full.release_first});
}

TEST_F(BufferPoolTest, APoolOfPinnedPagesIsAnErrorThatSaysSo) {
  for (uint64_t page = 1; page <= 4; ++page) ASSERT_NE(pool_.Pin(PageId(page), kShared, true).frame, nullptr);
  try {
    pool_.Pin(PageId(5), kShared, true);
    FAIL() << "a fifth page in four frames";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kNoSpace);
    EXPECT_STREQ(error.what(), "the buffer pool is full: all 4 frames of it are pinned; set a larger one");
  }
  EXPECT_EQ(pool_.CountPages(), 4u);
}

TEST_F(BufferPoolTest, ADiscardedPageIsFreshForTheNext) {
  const auto fresh = pool_.Pin(PageId(1), kShared, true);
  fresh.frame->page.Format(PageId(1), TreeId(1), 0, PageId(), 0);
  pool_.Discard(*fresh.frame);
  EXPECT_EQ(pool_.CountPages(), 0u);
  EXPECT_EQ(pool_.Pin(PageId(1), kShared, true).status, Status::kFresh);
}

TEST_F(BufferPoolTest, APinnedPageIsNotDropped) {
  const auto fresh = pool_.Pin(PageId(1), kExclusive, true);
  EXPECT_FALSE(pool_.Drop(PageId(1)));
  pool_.Unpin(*fresh.frame, kExclusive);
  EXPECT_TRUE(pool_.Drop(PageId(1)));
  EXPECT_EQ(pool_.CountPages(), 0u);
}

TEST_F(BufferPoolTest, AnExclusiveLatchGoesBeforeLaterSharedOnes) {
  Touch(1);
  const auto held = pool_.Pin(PageId(1), kShared, true);
  Atomic<bool> has_it = false;
  Thread writer([&] {
    const auto result = pool_.Pin(PageId(1), kExclusive, true);
    has_it = true;
    pool_.Unpin(*result.frame, kExclusive);
  });
  // Shared latches are given until the writer waits.
  for (;;) {
    const auto result = pool_.Pin(PageId(1), kShared, false);
    if (result.frame == nullptr) break;
    pool_.Unpin(*result.frame, kShared);
    host::Yield();
  }
  EXPECT_FALSE(has_it);
  pool_.Unpin(*held.frame, kShared);
  writer.join();
  EXPECT_TRUE(has_it);
}

// Threads count on pages that are evicted under them; fills fail now and then.
TEST(BufferPoolThreadsTest, LatchesExcludeAndEvictionLosesNothing) {
  constexpr uint32_t kThreads = 4, kRounds = 4000, kPages = 12;
  std::vector<uint64_t> store(kPages + 1);  // by page, the time of its LSN; guarded by the page's exclusive latch
  BufferPool pool({6, 1}, [&](PageFrame& frame) {
    store[frame.id.value()] = frame.page.lsn().time.value();
    return true;
  });
  std::vector<uint64_t> counted(kThreads);
  std::vector<Thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(t + 1);
      for (uint32_t i = 0; i < kRounds; ++i) {
        const PageId page(random.Between(1, kPages));
        const LockMode mode = random.Chance(0.5) ? kExclusive : kShared;
        const auto result = pool.Pin(page, mode, true);
        if (result.status == Status::kFresh) {
          if (random.Chance(0.1)) {
            pool.Discard(*result.frame);
            continue;
          }
          result.frame->page.Format(page, TreeId(1), 0, PageId(), 0);
          result.frame->page.set_lsn({MasterId(), VsTime(store[page.value()])});
          if (mode == kShared) pool.Downgrade(*result.frame);
        }
        SlottedPage& image = result.frame->page;
        if (mode == kExclusive) {
          image.set_lsn({MasterId(), VsTime(image.lsn().time.value() + 1)});
          ++counted[t];
        }
        pool.Unpin(*result.frame, mode);
      }
    });
  }
  threads.clear();
  for (uint64_t page = 1; page <= kPages; ++page) {
    const auto result = pool.Pin(PageId(page), kShared, true);
    if (result.status == Status::kHit) store[page] = result.frame->page.lsn().time.value();
    if (result.status == Status::kHit) pool.Unpin(*result.frame, kShared);
    if (result.status == Status::kFresh) pool.Discard(*result.frame);
  }
  uint64_t total = 0, expected = 0;
  for (const uint64_t count : store) total += count;
  for (const uint64_t count : counted) expected += count;
  EXPECT_EQ(total, expected);
}

TEST(BufferPoolSizeTest, PartitionsShareTheFrames) {
  BufferPool pool({10, 4}, [](PageFrame&) { return true; });
  for (uint64_t page = 1; page <= 100; ++page) {
    pool.Unpin(*pool.Pin(PageId(page), LockMode::kExclusive, true).frame, LockMode::kExclusive);
  }
  EXPECT_EQ(pool.CountPages(), 10u);
}

}  // namespace
}  // namespace dbx::mm
