// The search for crashes finds the shortest run, and tells an end from a dead end.
#include "tests/models/crash_search.h"

#include <gtest/gtest.h>

namespace dbx::models {
namespace {

// Two counters that count up to `most` each; a crash with `bad` in them is not recovered.
struct Counters {
  struct State {
    uint8_t counts[2];
  };
  static constexpr uint8_t kMoves = 2;
  uint8_t most;
  State bad = {255, 255};
  uint8_t end = most;

  State Initial() const { return {}; }
  bool Take(State& state, uint8_t move, std::string* text) const {
    if (state.counts[move] == most) return false;
    ++state.counts[move];
    if (text != nullptr) *text = move == 0 ? "left" : "right";
    return true;
  }
  std::string Judge(const State& state) const {
    return state.counts[0] == bad.counts[0] && state.counts[1] == bad.counts[1] ? "bad" : "";
  }
  bool IsEnd(const State& state) const { return state.counts[0] == end && state.counts[1] == end; }
  static uint64_t FingerprintOf(const State& state) { return 1u + (state.counts[0] << 8 | state.counts[1]); }
};

Findings Search(Counters model) { return CrashSearch<Counters>(model).Run(); }

TEST(CrashSearchModel, EveryStateIsReachedOnce) {
  const Findings found = Search({100});
  EXPECT_EQ(found.states, 101u * 101);
  EXPECT_EQ(found.fault, "");
}

TEST(CrashSearchModel, AFaultHasAShortestTrace) {
  const Findings found = Search({100, {2, 1}});
  EXPECT_EQ(found.fault, "bad");
  EXPECT_EQ(found.Text(), "bad\n  1. left\n  2. left\n  3. right\n");
}

TEST(CrashSearchModel, TheFirstStateIsJudgedToo) { EXPECT_EQ(Search({3, {0, 0}}).fault, "bad"); }

TEST(CrashSearchModel, AStateWithoutMovesThatIsNoEndIsAFault) {
  const Findings found = Search({2, {255, 255}, 3});
  EXPECT_EQ(found.fault, "nothing can move");
  EXPECT_EQ(found.trace.size(), 4u);
}

TEST(CrashSearchModel, FingerprintsAreFoundAgainWhenTheSetHasGrown) {
  Fingerprints set;
  for (uint64_t i = 1; i <= 10'000; ++i) EXPECT_TRUE(set.Insert(i * i));
  for (uint64_t i = 1; i <= 10'000; ++i) EXPECT_FALSE(set.Insert(i * i));
  EXPECT_EQ(set.size(), 10'000u);
}

}  // namespace
}  // namespace dbx::models
