// What tests of the model of differential logging expect: that rules have no fault, or that the shortest run in which a
// rule fails is so long and ends so. docs/errata.md quotes the runs that are printed.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/models/differential_model.h"

namespace dbx::models::differential {

// The baselines: compensations always.
inline Rules TwoPass(Rules rules = {}) {
  rules.undo = Undo::kCompensated;
  rules.restart = Restart::kTwoPass;
  return rules;
}
inline Rules Physical(Rules rules = {}) {
  rules.undo = Undo::kCompensated;
  rules.restart = Restart::kPhysical;
  return rules;
}

inline void ExpectNoFault(const Rules& rules, const std::vector<Scenario>& scenarios) {
  for (const Scenario& scenario : scenarios) {
    Model model(rules, scenario);
    const Findings found = CrashSearch<Model>(model).Run();
    EXPECT_EQ(found.fault, "") << scenario.Name() << ": " << found.Text();
    EXPECT_EQ(model.newest_backup(), scenario.checkpoints) << scenario.Name();
    std::printf("%s: %zu states, %zu crash images\n", scenario.Name().c_str(), found.states, model.images());
  }
}

// The same scenario has no fault under the rules of this testbed for the same kind of restart.
inline void ExpectFault(const Rules& rules, const Scenario& scenario, size_t steps, const std::string& fault) {
  Model model(rules, scenario);
  const Findings found = CrashSearch<Model>(model).Run();
  EXPECT_EQ(found.fault, fault);
  EXPECT_EQ(found.trace.size(), steps);
  std::printf("%s", found.Text().c_str());
  const bool two_pass = rules.restart == Restart::kTwoPass, physical = rules.restart == Restart::kPhysical;
  ExpectNoFault(two_pass ? TwoPass() : physical ? Physical() : Rules{}, {scenario});
}

}  // namespace dbx::models::differential
