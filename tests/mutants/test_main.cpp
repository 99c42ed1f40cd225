// main of build/mutants/all_tests: gtest's, under the mutant that the environment's DBX_MUTANT names; without it, under
// none.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/mutants/names.h"

int main(int argc, char** argv) {
  const char* const mutant = std::getenv("DBX_MUTANT");
  if (mutant != nullptr && !dbx::TurnMutantOn(mutant)) {
    std::fprintf(stderr, "error: DBX_MUTANT: no mutant is called '%s'\n", mutant);
    return 2;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
