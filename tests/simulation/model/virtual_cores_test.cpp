#include "tests/simulation/model/virtual_cores.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/host.h"

namespace dbx::sim {
namespace {

constexpr Group kNode = 1, kOther = 2;

// Virtual time of `fibres` fibres that compute for 1 ms each on a node.
uint64_t NanosOf(uint32_t fibres, const NodeShape& shape, uint64_t* busy = nullptr) {
  uint64_t nanos = 0;
  Simulate({}, [&] {
    SetNode(kNode, shape);
    const uint64_t begin = NowNanos();
    std::vector<FibreId> ids;
    for (uint32_t i = 0; i < fibres; ++i) {
      ids.push_back(StartGroup(kNode, [] {
        for (int part = 0; part < 1000; ++part) Charge(1000);
      }));
    }
    for (const FibreId id : ids) JoinFibre(id);
    nanos = NowNanos() - begin;
    if (busy != nullptr) *busy = UseOf(kNode).busy_nanos;
  });
  return nanos;
}

TEST(VirtualCoresTest, FibresOfANodeRunAtOnceUpToItsCores) {
  EXPECT_EQ(NanosOf(1, {4, 0}), 1'000'000u);
  EXPECT_EQ(NanosOf(4, {4, 0}), 1'000'000u);
}

TEST(VirtualCoresTest, MoreFibresThanCoresShareThem) {
  uint64_t busy = 0;
  EXPECT_NEAR(static_cast<double>(NanosOf(8, {2, 0}, &busy)), 4e6, 1e5);
  EXPECT_EQ(busy, 8'000'000u);
}

TEST(VirtualCoresTest, StepsTakeTheNodesTime) {
  Atomic<uint64_t> counter{0};
  uint64_t nanos = 0;
  Simulate({}, [&] {
    SetNode(kNode, {1, 2.5});
    const uint64_t begin = NowNanos();
    JoinFibre(StartGroup(kNode, [&] {
      for (int i = 0; i < 1000; ++i) counter.fetch_add(1);
    }));
    nanos = NowNanos() - begin;
    EXPECT_EQ(UseOf(kNode).steps, 1000u);
  });
  EXPECT_NEAR(static_cast<double>(nanos), 2500, 50);
}

TEST(VirtualCoresTest, NodesDoNotWaitForEachOthersCores) {
  uint64_t nanos = 0;
  Simulate({}, [&] {
    SetNode(kNode, {1, 0});
    SetNode(kOther, {1, 0});
    const uint64_t begin = NowNanos();
    const FibreId a = StartGroup(kNode, [] { Charge(1'000'000); });
    const FibreId b = StartGroup(kOther, [] { Charge(1'000'000); });
    JoinFibre(a);
    JoinFibre(b);
    nanos = NowNanos() - begin;
  });
  EXPECT_EQ(nanos, 1'000'000u);
}

TEST(VirtualCoresTest, AFibreThatWakesUpGetsTheCoreOfOneThatComputes) {
  uint64_t woke_at = 0, begin = 0;
  Simulate({}, [&] {
    SetNode(kNode, {1, 0});
    begin = NowNanos();
    const FibreId sleeper = StartGroup(kNode, [&] {
      SleepFor(100'000);
      woke_at = NowNanos();
    });
    const FibreId computes = StartGroup(kNode, [] {
      for (int i = 0; i < 10'000; ++i) Charge(1000);
    });
    JoinFibre(sleeper);
    JoinFibre(computes);
  });
  EXPECT_GE(woke_at - begin, 100'000u);
  EXPECT_LE(woke_at - begin, 100'000 + kWakeSliceNanos + 2 * kSlackNanos);
}

TEST(VirtualCoresTest, ALatchIsHeldForTheTimeThatItsHolderTakes) {
  Mutex latch;
  std::vector<uint64_t> got_at;
  Simulate({}, [&] {
    SetNode(kNode, {4, 1});
    std::vector<FibreId> ids;
    for (int i = 0; i < 4; ++i) {
      ids.push_back(StartGroup(kNode, [&] {
        const std::lock_guard guard(latch);
        got_at.push_back(NowNanos());
        Charge(10'000);
      }));
    }
    for (const FibreId id : ids) JoinFibre(id);
  });
  ASSERT_EQ(got_at.size(), 4u);
  for (size_t i = 1; i < got_at.size(); ++i) EXPECT_GE(got_at[i], got_at[i - 1] + 10'000);
}

TEST(VirtualCoresTest, FibresThatWaitForEachOtherAreStuck) {
  int place = 0;
  EXPECT_THROW(Simulate({}, [&] { BlockOn(&place); }), Stuck);
}

}  // namespace
}  // namespace dbx::sim
