// The ways to fill a central log, as the switch CENTRAL_LOG names them: their one list. They are described in
// eleda/central_log.h, which is not needed to name them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace dbx {

enum class CentralMethod : uint8_t { kEleda, kMutex, kConsolidation, kBitmap };

// By the method's number.
inline constexpr std::array<std::string_view, 4> kCentralMethodNames = {"ELEDA", "MUTEX", "CONSOLIDATION", "BITMAP"};

constexpr std::optional<CentralMethod> CentralMethodNamed(std::string_view name) {
  const auto found = std::find(kCentralMethodNames.begin(), kCentralMethodNames.end(), name);
  if (found == kCentralMethodNames.end()) return std::nullopt;
  return static_cast<CentralMethod>(found - kCentralMethodNames.begin());
}

static_assert(CentralMethodNamed("ELEDA") == CentralMethod::kEleda &&
              CentralMethodNamed("MUTEX") == CentralMethod::kMutex &&
              CentralMethodNamed("CONSOLIDATION") == CentralMethod::kConsolidation &&
              CentralMethodNamed("BITMAP") == CentralMethod::kBitmap);

}  // namespace dbx
