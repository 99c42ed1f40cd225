#include "tests/mutants/names.h"

#include <cstddef>

#include "tests/mutants/switch.h"

namespace dbx {
namespace {

constexpr MutantName kMutants[] = {
#include "mutant_names.inc"
};

}  // namespace

std::span<const MutantName> AllMutants() { return kMutants; }

bool TurnMutantOn(std::string_view name) {
  for (size_t i = 0; i < AllMutants().size(); ++i) {
    if (name != kMutants[i].name) continue;
    active_mutant = static_cast<uint32_t>(i + 1);
    return true;
  }
  return false;
}

}  // namespace dbx
