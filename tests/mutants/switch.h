// Which mutant is on. Only the copy of the sources that generate.py writes asks; 0: none.
#pragma once

#include <cstdint>

namespace dbx {

inline uint32_t active_mutant = 0;

inline bool MutantIsOn(uint32_t number) { return active_mutant == number; }

}  // namespace dbx
