// In which order a scan visits the keys of its range.
#pragma once

#include <cstdint>

namespace dbx {

enum class ScanOrder : uint8_t { kAscending, kDescending };

}  // namespace dbx
