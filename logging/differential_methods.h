// The methods of differential logging, as the switch DIFF_METHOD names them: their one list. They are described in
// differential/README.md, which is not needed to name them.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "logging/format.h"

namespace dbx {

using format::DiffMethod;

// By the method's number.
inline constexpr std::array<std::string_view, 3> kDiffMethodNames = {"DL1P", "DL2P", "PL2P"};
static_assert(kDiffMethodNames.size() == static_cast<size_t>(DiffMethod::kLast) + 1);

constexpr std::string_view NameOf(DiffMethod method) { return kDiffMethodNames[static_cast<size_t>(method)]; }
constexpr std::optional<DiffMethod> DiffMethodNamed(std::string_view name) {
  const auto found = std::find(kDiffMethodNames.begin(), kDiffMethodNames.end(), name);
  if (found == kDiffMethodNames.end()) return std::nullopt;
  return static_cast<DiffMethod>(found - kDiffMethodNames.begin());
}

static_assert(DiffMethodNamed("DL1P") == DiffMethod::kDl1p && DiffMethodNamed("DL2P") == DiffMethod::kDl2p &&
              DiffMethodNamed("PL2P") == DiffMethod::kPl2p);

}  // namespace dbx
