// The mutants by name, for the programs that are built from the mutated sources. Not for several threads.
#pragma once

#include <span>
#include <string_view>

namespace dbx {

struct MutantName {
  const char* name;
  const char* trap;   // what goes wrong
  const char* cells;  // of the simulation: only those whose name contains this can tell
  const char* model;  // of one that needs minutes: the test of a small model in which the same fault is found,
  const char* test;   // or the test of the engine that fails under it
};

std::span<const MutantName> AllMutants();

// From now on, and no other; false if none is called so.
bool TurnMutantOn(std::string_view name);

}  // namespace dbx
