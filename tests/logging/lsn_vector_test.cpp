// LSN vector operations: every instruction set against plain loops, and concurrent raises.
#include "logging/lsn_vector.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "base/error.h"

namespace dbx {
namespace {

class EveryInstructionSet : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      SelectLsnVectorOps(GetParam());
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  void TearDown() override { SelectLsnVectorOps("auto"); }
};
INSTANTIATE_TEST_SUITE_P(Simd, EveryInstructionSet, ::testing::Values("scalar", "avx2", "avx512"));

TEST_P(EveryInstructionSet, AgreesWithPlainLoopsForEveryLength) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    const size_t n = 1 + random() % 16;
    std::vector<uint64_t> lv(n), shared(n), expected(n);
    uint32_t exceeds = 0;
    for (size_t j = 0; j < n; ++j) {
      // Values that differ in the low bits, the high bits or not at all.
      lv[j] = random() >> (random() % 63 + 1);
      shared[j] = random() % 3 == 0 ? lv[j] : random() >> (random() % 63 + 1);
      expected[j] = std::max(lv[j], shared[j]);
      exceeds |= uint32_t{lv[j] > shared[j]} << j;
    }
    ASSERT_EQ(lv::Exceeds(lv.data(), shared.data(), n), exceeds);
    ASSERT_EQ(lv::CoveredBy(lv.data(), shared.data(), n), exceeds == 0);
    std::vector<uint64_t> raised = lv;
    lv::Raise(raised.data(), shared.data(), n);
    ASSERT_EQ(raised, expected);
    std::vector<uint64_t> raised_shared = shared;
    lv::RaiseShared(raised_shared.data(), lv.data(), n);
    ASSERT_EQ(raised_shared, expected);
    lv::StoreShared(shared.data(), lv.data(), n);
    ASSERT_EQ(shared, lv);
  }
}

TEST_P(EveryInstructionSet, NeverTouchesElementsBehindTheVector) {
  for (size_t n = 1; n <= 16; ++n) {
    std::vector<uint64_t> lv(17, 5), shared(17, 9);
    lv::Raise(lv.data(), shared.data(), n);
    EXPECT_EQ(lv[n], 5u);
    lv::StoreShared(shared.data(), lv.data(), n);
    lv::RaiseShared(shared.data(), lv.data(), n);
    EXPECT_EQ(shared[n], 9u);
  }
}

// A plain copy by one of two concurrent readers would lose the other's raise.
TEST_P(EveryInstructionSet, ConcurrentRaisesKeepTheMaximumOfAll) {
  constexpr size_t kLogs = 4;
  constexpr uint64_t kRaises = 20'000;
  alignas(64) uint64_t shared[kLogs] = {};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 1; i <= kRaises; ++i) {
        // Thread 0 leads in even elements, thread 1 in odd ones.
        uint64_t lv[kLogs];
        for (size_t j = 0; j < kLogs; ++j) lv[j] = j % 2 == t ? 2 * i : i;
        lv::RaiseShared(shared, lv, kLogs);
        for (size_t j = 0; j < kLogs; ++j) ASSERT_GE(lv::Load(shared[j]), lv[j]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const uint64_t element : shared) EXPECT_EQ(element, 2 * kRaises);
}

}  // namespace
}  // namespace dbx
