// What tests of models expect of them: that nothing is found, or that it is what a fault leads to.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/models/explorer.h"

namespace dbx::models {

template <class Model>
void ExpectNone(const char* name, const Model& model) {
  const Findings found = Explore(model);
  EXPECT_EQ(found.fault, "") << name << ": " << found.Text();
  std::printf("%s: %zu states\n", name, found.states);
}

template <class Model>
void ExpectFound(const Model& model, const std::string& what) {
  const Findings found = Explore(model);
  EXPECT_EQ(found.fault, what);
  std::printf("%s", found.Text().c_str());
}

}  // namespace dbx::models
