#include "base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace dbx::crc32c_internal {

uint32_t UpdateLong(uint32_t state, const std::byte* data, size_t bytes) {
  // ISA-L counts in int and inverts nothing, neither the initial value nor the result.
  constexpr size_t kPieceBytes = size_t{1} << 30;
  while (bytes > 0) {
    const size_t piece = std::min(bytes, kPieceBytes);
    // The parameter is not const in ISA-L 2.30, though nothing is written through it.
    auto* from = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(data));
    state = crc32_iscsi(from, static_cast<int>(piece), state);
    data += piece;
    bytes -= piece;
  }
  return state;
}

}  // namespace dbx::crc32c_internal
