// Mini-transactions: all or nothing, and no wait against the order.
#include "multi_master/page/mini_transaction.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/multi_master/page/memory_source.h"

namespace dbx::mm {
namespace {

constexpr auto kShared = LockMode::kShared;
constexpr auto kExclusive = LockMode::kExclusive;
constexpr TxnName kWriter{MasterId(1), ClusterEpoch(1), 5};

// Root 1 over the leaves 2 and 3.
class MiniTransactionTest : public ::testing::Test {
 protected:
  MiniTransactionTest() {
    SlottedPage page;
    page.Format(PageId(1), TreeId(1), 1, PageId(), 0);
    std::vector<std::byte> first, second;
    EncodeChild(0, PageId(2), first);
    EncodeChild(50, PageId(3), second);
    EXPECT_TRUE(page.Insert(0, first) && page.Insert(1, second));
    source_.Store(page);
    page.Format(PageId(2), TreeId(1), 0, PageId(3), 50);
    source_.Store(page);
    page.Format(PageId(3), TreeId(1), 0, PageId(), 0);
    source_.Store(page);
  }
  // Another thread's pin of a page.
  PageFrame* Hold(uint64_t page, LockMode mode) { return source_.Pin(PageId(page), mode, true); }

  MemorySource source_;
};

TEST_F(MiniTransactionTest, ItsChangesAreOneRecord) {
  MiniTransaction mini(source_);
  PageFrame* left = mini.Pin(PageId(2), kExclusive);
  PageFrame* right = mini.Pin(PageId(3), kExclusive);
  mini.Add(*left, MakeDelete(7, kWriter));
  mini.Add(*right, MakeDelete(60, kWriter));
  mini.Add(*left, MakeDelete(8, kWriter));
  EXPECT_EQ(left->page.slots(), 0u) << "nothing changes before all of it does";
  mini.Submit();
  EXPECT_EQ(left->page.slots(), 2u);
  EXPECT_EQ(right->page.slots(), 1u);
  EXPECT_EQ(left->page.lsn().time.value(), right->page.lsn().time.value() + 1);
  EXPECT_EQ(left->newest.of(MasterId(1)), left->page.lsn().time);
  EXPECT_EQ(left->log_end, right->log_end);
  EXPECT_EQ(source_.bodies().size(), 1u);
}

TEST_F(MiniTransactionTest, ThePagesStayPinnedUntilItLetsGo) {
  MiniTransaction mini(source_);
  mini.Add(*mini.Pin(PageId(2), kExclusive), MakeDelete(7, kWriter));
  mini.Submit();
  EXPECT_EQ(source_.Pin(PageId(2), kShared, false), nullptr);
  mini.LetGo();
  EXPECT_NE(source_.Pin(PageId(2), kShared, false), nullptr);
}

TEST_F(MiniTransactionTest, AbandonedItHasChangedNothing) {
  {
    MiniTransaction mini(source_);
    mini.Add(*mini.Pin(PageId(2), kExclusive), MakeDelete(7, kWriter));
  }
  EXPECT_TRUE(source_.bodies().empty());
  EXPECT_EQ(Hold(2, kExclusive)->page.slots(), 0u);
}

TEST_F(MiniTransactionTest, ACrashBeforeTheRecordChangesNothing) {
  source_.before_record = [](std::span<const PageChange>) { throw Crash(); };
  {
    MiniTransaction mini(source_);
    mini.Add(*mini.Pin(PageId(2), kExclusive), MakeDelete(7, kWriter));
    EXPECT_THROW(mini.Submit(), Crash);
  }
  EXPECT_TRUE(source_.bodies().empty());
  EXPECT_EQ(Hold(2, kExclusive)->page.slots(), 0u);
}

TEST_F(MiniTransactionTest, AgainstTheOrderItDoesNotWait) {
  PageFrame* held = Hold(2, kExclusive);
  MiniTransaction mini(source_);
  ASSERT_NE(mini.Pin(PageId(3), kShared), nullptr);
  EXPECT_EQ(mini.Pin(PageId(2), kShared), nullptr) << "left of what it holds";
  source_.Unpin(*held, kExclusive);
  EXPECT_NE(mini.Pin(PageId(2), kShared), nullptr) << "no need to wait";
}

TEST_F(MiniTransactionTest, DownwardAndRightwardItWaits) {
  for (const auto& [from, to] : {std::pair(1, 3), std::pair(2, 3)}) {
    PageFrame* held = Hold(static_cast<uint64_t>(to), kExclusive);
    Atomic<bool> pinned = false;
    Thread thread([&, from = from, to = to] {
      MiniTransaction mini(source_);
      mini.Pin(PageId(static_cast<uint64_t>(from)), kShared);
      EXPECT_NE(mini.Pin(PageId(static_cast<uint64_t>(to)), kShared), nullptr);
      pinned = true;
    });
    for (uint32_t i = 0; i < 100; ++i) host::Yield();
    EXPECT_FALSE(pinned);
    source_.Unpin(*held, kExclusive);
    thread.join();
    EXPECT_TRUE(pinned);
  }
}

TEST_F(MiniTransactionTest, ANewPageDoesNotCountInTheOrder) {
  PageFrame* held = Hold(2, kShared);
  Atomic<bool> pinned = false;
  Thread thread([&] {
    MiniTransaction mini(source_);
    mini.PinNew(source_.NewPage());
    EXPECT_NE(mini.Pin(PageId(2), kExclusive), nullptr);
    pinned = true;
  });
  for (uint32_t i = 0; i < 100; ++i) host::Yield();
  EXPECT_FALSE(pinned);
  source_.Unpin(*held, kShared);
  thread.join();
  EXPECT_TRUE(pinned);
}

TEST_F(MiniTransactionTest, MovedItHoldsItsPages) {
  MiniTransaction mini(source_);
  mini.Pin(PageId(2), kExclusive);
  {
    MiniTransaction other(std::move(mini));
    EXPECT_EQ(source_.Pin(PageId(2), kShared, false), nullptr);
  }
  EXPECT_NE(source_.Pin(PageId(2), kShared, false), nullptr);
}

}  // namespace
}  // namespace dbx::mm
