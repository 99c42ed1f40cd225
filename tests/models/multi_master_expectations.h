// Runs of the model of Taurus MM that are drawn at random, and searches of all interleavings of small scenarios.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/models/multi_master_model.h"

namespace dbx::models::multi_master {

const std::vector<Scenario>& RandomScenarios();  // two and three masters
const std::vector<Scenario>& SmallScenarios();   // for exhaustive searches

// Of one run: empty if nothing is wrong, else what is.
std::string RunAtRandom(const Scenario& scenario, Fault fault, uint64_t seed);

// The seeds from 0 on, over all random scenarios; every second run has crashes, every third reordered messages; the
// GLM tells of ENDs, releases take two steps, and the GLM may restart, in every second.
struct Sample {
  size_t runs = 0;
  std::string fault;  // the first, with its scenario and seed
};
Sample RunsAtRandom(Fault fault, size_t seeds);

inline Findings Search(Fault fault, const Scenario& scenario) {
  Model model(scenario, fault);
  return CrashSearch<Model>(model).Run();
}

inline void ExpectNoFault(const Scenario& scenario) {
  const Findings found = Search(Fault::kNone, scenario);
  EXPECT_EQ(found.fault, "") << scenario.name << ": " << found.Text();
  std::printf("%s: %zu states\n", std::string(scenario.name).c_str(), found.states);
}

// The shortest run has so many steps and ends so.
inline void ExpectShortest(Fault fault, const Scenario& scenario, size_t steps, Failure failure) {
  const Findings found = Search(fault, scenario);
  EXPECT_EQ(found.fault, TextOf(failure));
  EXPECT_EQ(found.trace.size(), steps);
  std::printf("%s", found.Text().c_str());
}

// Also, without the fault the scenario has none.
inline void ExpectFault(Fault fault, const Scenario& scenario, size_t steps, Failure failure) {
  ExpectShortest(fault, scenario, steps, failure);
  ExpectNoFault(scenario);
}

}  // namespace dbx::models::multi_master
