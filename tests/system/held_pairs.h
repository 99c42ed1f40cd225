// Sanitizer builds hold some of the pairs only: tests of the others are skipped there.
#pragma once

#include <algorithm>

#include "system/pairs/registry.h"

namespace dbx::testing {

inline bool IsHeld(const Options& options) {
  const auto held = Registry::Global().Supported();
  return std::find(held.begin(), held.end(), PairName::Of(options)) != held.end();
}

}  // namespace dbx::testing
