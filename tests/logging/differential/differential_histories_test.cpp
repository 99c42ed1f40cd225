// Random histories with checkpoints, aborts, retries and dependencies across logs, which crash anywhere: every level of
// restart gives the state that the recovered transactions leave one after the other.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "tests/logging/differential/paged_history.h"

namespace dbx {
namespace {

// With rings so short that most of the logs are read backward only, and long ones.
RestartOptions AnyWay(uint32_t level, std::mt19937_64& random) {
  constexpr uint64_t kRings[] = {8 << 10, 16 << 10, 1 << 20};
  return {.level = level, .workers = 1 + static_cast<uint32_t>(random() % 3), .ring_bytes = kRings[random() % 3]};
}

void ExpectRecovered(const PagedRun::Crashed& crashed, const RestartOptions& options) {
  const Restarted restarted = Restart(crashed, options);
  ASSERT_EQ(restarted.winners, crashed.winners) << "level " << options.level;
  ASSERT_EQ(restarted.state, crashed.state) << "level " << options.level;
}

// Of logs that were truncated: what is not named had ended.
void ExpectRecoveredThough(const PagedRun::Crashed& truncated, const RestartOptions& options, uint64_t& unnamed) {
  const Restarted restarted = Restart(truncated, options);
  ASSERT_EQ(restarted.state, truncated.state) << "level " << options.level;
  const std::vector<uint64_t>& ended_below = restarted.summary.ended_below;
  ASSERT_EQ(ended_below, truncated.anchor.number > 0 ? truncated.anchor.sequences : std::vector<uint64_t>{});
  for (const uint64_t id : restarted.winners) ASSERT_TRUE(truncated.winners.contains(id));
  for (const uint64_t id : truncated.winners) {
    ASSERT_GT(restarted.summary.next_sequence, TxnId{id}.sequence());
    if (restarted.winners.contains(id)) continue;
    ++unnamed;
    ASSERT_LT(TxnId{id}.sequence(), ended_below[TxnId{id}.worker().value()]);
  }
}

// Crashes of one history; how many, and how many of them dropped transactions, and after how many checkpoints.
struct Counts {
  uint64_t crashes = 0;
  uint64_t dropped = 0;
  uint64_t checkpoints = 0;
  uint64_t unnamed = 0;  // transactions whose COMMITs were truncated
};
void RunHistory(uint64_t seed, DiffMethod method, Counts& counts) {
  SCOPED_TRACE(testing::Message() << "DBX_TEST_SEED=" << seed);
  PagedHistory history(seed, method);
  std::mt19937_64 random(seed);
  for (int step = 0; step < 600; ++step) {
    history.Step();
    if (random() % 60 != 0) continue;
    const PagedRun::Crashed crashed = history.Crash();
    for (const uint32_t level : LevelsOf(method)) {
      ExpectRecovered(crashed, AnyWay(level, random));
      if (testing::Test::HasFatalFailure()) return;
      ExpectRecoveredThough(Truncated(crashed), AnyWay(level, random), counts.unnamed);
      if (testing::Test::HasFatalFailure()) return;
    }
    ++counts.crashes;
    counts.dropped += Restart(crashed).summary.dropped > 0;
  }
  counts.checkpoints += history.run().anchor().number;
}

class DifferentialHistories : public testing::TestWithParam<DiffMethod> {};
INSTANTIATE_TEST_SUITE_P(Methods, DifferentialHistories,
                         testing::Values(DiffMethod::kDl1p, DiffMethod::kDl2p, DiffMethod::kPl2p),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

// DBX_TEST_SEED runs one.
TEST_P(DifferentialHistories, RecoverWhereverTheyCrash) {
  Counts counts;
  if (const char* seed = std::getenv("DBX_TEST_SEED")) {
    return RunHistory(std::strtoull(seed, nullptr, 10), GetParam(), counts);
  }
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    RunHistory(seed, GetParam(), counts);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(counts.crashes, 400u);
  EXPECT_GT(counts.dropped, 15u);
  EXPECT_GT(counts.checkpoints, 300u);
  EXPECT_GT(counts.unnamed, 1000u);
}

}  // namespace
}  // namespace dbx
