#include "system/command_line/options.h"

#include <algorithm>

#include "base/check.h"

namespace dbx {

WorkloadKind WorkloadNamed(std::string_view name) {
  const auto found = std::find(kWorkloadNames.begin(), kWorkloadNames.end(), name);
  CHECK(found != kWorkloadNames.end());
  return static_cast<WorkloadKind>(found - kWorkloadNames.begin());
}

}  // namespace dbx
