// A transaction scans a range and then comes to a key in it that has no row: it creates an absent one. Before it locks
// or reads that, another may find the row and fill it, without a change of the leaf. What was scanned does not hold
// then, and the transaction must not commit.
#include <gtest/gtest.h>

#include <functional>

#include "tests/concurrency_control/harness.h"

namespace dbx::testing {
namespace interrupted {

// What happens once, before the next lock of a row or right after the next load of what a row holds.
std::function<void()> interruption;
void Interrupt() {
  if (const auto happens = std::exchange(interruption, nullptr)) happens();
}

template <LogObserver Log>
class InterruptedLocks : public RowLocks<Log> {
 public:
  using RowLocks<Log>::RowLocks;
  using Handle = typename RowLocks<Log>::Handle;
  LockResult TryShared(Row* row, Handle& handle) {
    Interrupt();
    return RowLocks<Log>::TryShared(row, handle);
  }
  LockResult TryExclusive(Row* row, Handle& handle) {
    Interrupt();
    return RowLocks<Log>::TryExclusive(row, handle);
  }
};

class InterruptedLog : public NoLog {
 public:
  static void OnRead(TxnState&, const RowRef&) { Interrupt(); }
};

}  // namespace interrupted

namespace {

using interrupted::InterruptedLocks;
using interrupted::InterruptedLog;

template <class CcT, class LogT>
struct Case {
  using Cc = CcT;
  using Log = LogT;
};

template <class C>
class CreatedRow : public ::testing::Test {
 protected:
  static constexpr Key kGap = 15;

  void SetUp() override {
    for (const Key key : {0, 10, 20}) h_.LoadRow(key, key);
  }

  // A transaction of worker 0 that finds no row between the others, then comes to one there, and writes. Before it does
  // so, `meanwhile` happens.
  CallResult ScanAndAccess(auto&& access, const std::function<void()>& meanwhile) {
    return h_.Run(0, [&](TestContext& ctx) {
      size_t found = 0;
      const auto count = [&](Key, const TestTuple&) { return ++found > 0; };
      const Outcome scanned = ctx.Scan(h_.table(), 11, 19, ScanOrder::kAscending, count);
      EXPECT_EQ(found, 0u);
      if (scanned != Outcome::kOk) return scanned;
      interrupted::interruption = meanwhile;
      const Outcome accessed = access(ctx);
      EXPECT_EQ(interrupted::interruption, nullptr) << "nothing came in between";
      if (accessed == Outcome::kConflict) return accessed;
      return ctx.Update(h_.table(), 0, [](TestTuple& tuple) { tuple.SetAt<uint64_t>(0, 1); });
    });
  }
  CallResult ScanAndRead(const std::function<void()>& meanwhile) {
    return ScanAndAccess([&](TestContext& ctx) { return ctx.Read(h_.table(), kGap, [](const TestTuple&) {}); },
                         meanwhile);
  }
  CallResult ScanAndInsert(const std::function<void()>& meanwhile) {
    const Tuple tuple{1, {}};
    const auto bytes = std::as_bytes(std::span(&tuple, 1));
    return ScanAndAccess([&](TestContext& ctx) { return ctx.Insert(h_.table(), kGap, bytes); }, meanwhile);
  }

  Harness<typename C::Cc, typename C::Log> h_{1, 1 << 20, /*ordered=*/true};
};

using EveryWay =
    ::testing::Types<Case<TwoPhaseLocking<NoLog, InterruptedLocks, NoWait>, NoLog>,
                     Case<Silo<InterruptedLog>, InterruptedLog>, Case<TicToc<InterruptedLog>, InterruptedLog>,
                     Case<Hekaton<InterruptedLog>, InterruptedLog>>;
TYPED_TEST_SUITE(CreatedRow, EveryWay);

TYPED_TEST(CreatedRow, IsNoConflictIfNobodyElseCame) {
  EXPECT_EQ(this->ScanAndRead([] {}).outcome, Outcome::kOk);
}

TYPED_TEST(CreatedRow, IsAConflictIfAnotherFilledItFirst) {
  const CallResult result = this->ScanAndRead([&] { EXPECT_EQ(this->h_.Insert(1, 15, 7).outcome, Outcome::kOk); });
  EXPECT_EQ(result.outcome, Outcome::kConflict);
  EXPECT_EQ(this->h_.ValueOf(15), 7u);
}

TYPED_TEST(CreatedRow, IsNoConflictIfAnotherFilledAndEmptiedIt) {
  const CallResult result = this->ScanAndRead([&] {
    EXPECT_EQ(this->h_.Insert(1, 15, 7).outcome, Outcome::kOk);
    EXPECT_EQ(this->h_.Delete(1, 15).outcome, Outcome::kOk);
  });
  // The gap is as it was; where the deletion is later than the snapshot, that is no longer known.
  EXPECT_TRUE(result.outcome == Outcome::kOk || TypeParam::Cc::kTraits.multi_version);
}

// Where locks are taken as rows are accessed, inserts can be interrupted in the same place.
using CreatedRowUnderLocks = CreatedRow<Case<TwoPhaseLocking<NoLog, InterruptedLocks, NoWait>, NoLog>>;

TEST_F(CreatedRowUnderLocks, AnInsertIsAConflictIfAnotherFilledItFirst) {
  EXPECT_EQ(ScanAndInsert([&] { EXPECT_EQ(h_.Insert(1, 15, 7).outcome, Outcome::kOk); }).outcome, Outcome::kConflict);
}
TEST_F(CreatedRowUnderLocks, AnInsertIsNoConflictIfNobodyElseCame) {
  EXPECT_EQ(ScanAndInsert([] {}).outcome, Outcome::kOk);
}

}  // namespace
}  // namespace dbx::testing
