// RacyLoad over a base/racy.h whose RacyCopy is not the product's. Included by that header, behind its RacyCopy.
#pragma once

#include <cstddef>
#include <type_traits>

namespace dbx {

void RacyCopy(void* to, const void* from, size_t bytes);

template <class T>
T RacyLoad(const void* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  RacyCopy(&value, from, sizeof(T));
  return value;
}

}  // namespace dbx
