// Random runs of the model of Taurus MM, and the scenarios of both kinds of search.
#include <algorithm>
#include <array>
#include <random>

#include "tests/models/multi_master_expectations.h"

namespace dbx::models::multi_master {

const std::vector<Scenario>& RandomScenarios() {
  static const std::vector<Scenario> scenarios = {
      {.name = "two writers, two pages", .programs = {{0, "wawc"}, {1, "wcwa"}, {1, "rbrc"}}, .evictions = 1},
      {.name = "readers share pages", .programs = {{0, "rarcwb"}, {1, "rbwc"}, {1, "wa"}}, .evictions = 2},
      {.name = "third master reads",
       .masters = 3,
       .programs = {{0, "wa"}, {0, "wc"}, {1, "wawc"}, {2, "ra"}},
       .reads = 3},
      {.name = "abort", .programs = {{0, "wawc!!"}, {1, "wa"}, {1, "rawc"}}},
      {.name = "write skew", .programs = {{0, "rawc"}, {1, "rcwa"}}, .evictions = 2},
      {.name = "reads only", .programs = {{0, "rarc"}, {1, "wa"}, {1, "wc"}}, .evictions = 2},
      {.name = "lock outlives a holder", .masters = 3, .programs = {{0, "wb"}, {1, "wa"}, {2, "wawcrcwa"}}},
      {.name = "read here, written there", .programs = {{0, "wc"}, {1, "rcwa"}}, .reads = 6},
      {.name = "chain of three",
       .masters = 3,
       .programs = {{0, "wawc"}, {1, "wa"}, {1, "wb"}, {2, "wcwb"}, {2, "ra"}},
       .reads = 3},
      {.name = "split beside writers", .programs = {{0, "wbsbwa"}, {1, "wb"}, {1, "wawb"}}, .reads = 3},
      {.name = "split, then writes", .programs = {{0, "sbwb"}, {1, "wbwc"}, {1, "rb"}, {0, "wc"}}, .reads = 3},
      {.name = "split, abort", .programs = {{0, "wbsbwc!!"}, {1, "wbwa"}, {1, "rb"}}},
      {.name = "scan beside a split", .programs = {{0, "gawc"}, {1, "rcwb"}, {1, "sb"}}},
      {.name = "readers of a split page",
       .masters = 3,
       .programs = {{0, "rbwc"}, {1, "sbwb"}, {2, "wbwa"}, {2, "rcwb"}}},
      {.name = "split under read locks", .programs = {{1, "rbrb"}, {1, "wb"}, {0, "sb"}}},
      {.name = "splits under read locks", .programs = {{1, "rbrb"}, {1, "wb"}, {0, "sb"}, {0, "wa"}}, .evictions = 2},
      {.name = "split under a third master's locks",
       .masters = 3,
       .programs = {{0, "rbwc"}, {1, "sb"}, {1, "wa"}, {2, "rcwb"}, {2, "wa"}},
       .reads = 3},
  };
  return scenarios;
}

const std::vector<Scenario>& SmallScenarios() {
  static const std::vector<Scenario> scenarios = {
      {.name = "two writers of a row", .programs = {{0, "wa"}, {1, "wa"}}, .evictions = 0, .reads = 1},
      {.name = "two rows of a page", .programs = {{0, "wa"}, {1, "wb"}}, .evictions = 0, .reads = 0},
      {.name = "write skew", .programs = {{0, "rawc"}, {1, "rcwa"}}, .evictions = 1, .reads = 0},
      {.name = "shared locks on two masters", .programs = {{0, "ra"}, {1, "rawa"}}, .evictions = 2, .reads = 0},
      {.name = "abort against write", .programs = {{0, "wa!!"}, {1, "wa"}}, .evictions = 0, .reads = 0},
      {.name = "crash", .programs = {{0, "wa"}, {1, "wa"}}, .evictions = 0, .reads = 0, .crashes = 1},
      {.name = "split against write", .programs = {{0, "sb"}, {1, "wb"}}, .evictions = 0, .reads = 0},
      {.name = "split, abort", .programs = {{0, "wbsb!!"}, {1, "wb"}}, .evictions = 0, .reads = 0},
      {.name = "statement beside a split",
       .programs = {{0, "sb"}, {1, "wb"}},
       .evictions = 0,
       .reads = 1,
       .points = "b"},
      {.name = "pruned lists",
       .programs = {{0, "wa"}, {1, "wa"}},
       .evictions = 0,
       .reads = 1,
       .prunes = 1,
       .points = "a"},
      {.name = "cut, crash", .programs = {{0, "wa"}, {1, "wa"}}, .evictions = 0, .reads = 0, .crashes = 1, .cuts = 1},
      {.name = "restart", .programs = {{0, "wa"}, {1, "wa"}}, .evictions = 0, .reads = 0, .restarts = 1},
      {.name = "restart under read locks",
       .programs = {{0, "rawa"}, {1, "ra"}},
       .evictions = 1,
       .reads = 0,
       .restarts = 1},
      {.name = "restart, told ends",
       .programs = {{0, "wa"}, {1, "wa"}},
       .evictions = 0,
       .reads = 0,
       .restarts = 1,
       .tells = true},
      {.name = "two restarts", .programs = {{0, "wa"}, {1, "wa"}}, .evictions = 0, .reads = 0, .restarts = 2},
      {.name = "restart, split", .programs = {{0, "sb"}, {1, "wb"}}, .evictions = 0, .reads = 0, .restarts = 1},
      {.name = "restart, cut log",
       .programs = {{0, "wa"}, {1, "wa"}},
       .evictions = 0,
       .reads = 0,
       .restarts = 1,
       .cuts = 1},
      {.name = "restart, crash",
       .programs = {{0, "wa"}, {1, "wa"}},
       .evictions = 0,
       .reads = 0,
       .crashes = 1,
       .restarts = 1},
      {.name = "slow releases, crash",
       .programs = {{0, "wa"}, {1, "wa"}},
       .evictions = 0,
       .reads = 0,
       .crashes = 1,
       .slow_releases = true},
      {.name = "two pages, crash", .programs = {{0, "wawc"}, {1, "wc"}}, .evictions = 0, .reads = 0, .crashes = 1},
      {.name = "split, crash", .programs = {{0, "wbsb"}, {1, "wb"}}, .evictions = 0, .reads = 0, .crashes = 1},
      {.name = "scan beside a split", .programs = {{0, "sb"}, {1, "wb"}}, .evictions = 0, .reads = 1},
  };
  return scenarios;
}

namespace {

// How often a kind of move is taken, compared with the others. Flushes, applied LFBs and messages about ENDs are rare
// in some runs.
class Weights {
 public:
  explicit Weights(std::mt19937_64& random) {
    weights_.fill(1);
    Of(Move::kDeliver) = Of(Move::kStep) = 4, Of(Move::kRelease) = 2;
    Of(Move::kSend) = 2, Of(Move::kReadPage) = 1.5;
    Of(Move::kDiscard) = Of(Move::kPrune) = Of(Move::kPruneGlobal) = 0.4;
    Of(Move::kCut) = random() % 2 == 0 ? 0.3 : 2;
    Of(Move::kEvict) = 0.5, Of(Move::kRead) = 0.4, Of(Move::kStrict) = 0.3;
    Of(Move::kRestart) = 0.3;
    Of(Move::kCrash) = random() % 2 == 0 ? 0.15 : 0.5;
    Of(Move::kFlush) = random() % 2 == 0 ? 0.3 : 2;
    Of(Move::kApply) = random() % 2 == 0 ? 0.2 : 3;
    Of(Move::kTell) = random() % 2 == 0 ? 0.3 : 2;
  }
  double& Of(Move::Kind kind) { return weights_[kind]; }

 private:
  std::array<double, Move::kBreak + 1> weights_;
};

}  // namespace

std::string RunAtRandom(const Scenario& scenario, Fault fault, uint64_t seed) {
  constexpr size_t kStepsMax = 4000;
  std::mt19937_64 random(seed);
  Weights weights(random);
  const Model model(scenario, fault);
  State state = model.Initial();
  World world(state, scenario, fault);
  for (size_t step = 0; step < kStepsMax; ++step) {
    std::vector<Move> moves;
    double total = 0;
    bool goes_on = false;
    for (const Move& move : model.moves()) {
      if (!world.Can(move)) continue;
      moves.push_back(move);
      total += weights.Of(move.kind);
      goes_on |= !IsOptional(move.kind);
    }
    if (!goes_on) world.Finish();
    if (!goes_on || state.failure != Failure::kNothing) return TextOf(state);
    double at = static_cast<double>(random() >> 11) * 0x1p-53 * total;
    size_t chosen = 0;
    while (chosen + 1 < moves.size() && (at -= weights.Of(moves[chosen].kind)) >= 0) ++chosen;
    world.Do(moves[chosen]);
    if (state.failure != Failure::kNothing) return TextOf(state);
  }
  return "no end";
}

Sample RunsAtRandom(Fault fault, size_t seeds) {
  Sample sample;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    for (Scenario scenario : RandomScenarios()) {
      scenario.crashes = static_cast<uint8_t>(seed % 2 * (scenario.masters - 1u));
      scenario.reorders = seed % 3 == 2;
      scenario.strict = 1;
      scenario.restarts = static_cast<uint8_t>(seed / 16 % 2);
      scenario.prunes = scenario.discards = scenario.cuts = 3;
      scenario.tells = seed / 2 % 2 == 1;
      scenario.slow_releases = seed / 4 % 2 == 1;
      scenario.points = std::array{"", "", "cba", "bac"}[seed / 8 % 4];
      ++sample.runs;
      sample.fault = RunAtRandom(scenario, fault, seed);
      if (sample.fault.empty()) continue;
      sample.fault += fmt::format(" ({}, seed {})", scenario.name, seed);
      return sample;
    }
  }
  return sample;
}

}  // namespace dbx::models::multi_master
