// How much of a long test's work an instrumented build does.
#pragma once

#include <cstdint>

// Of the sanitizers' runtimes; null where none is linked.
extern "C" void __asan_init() __attribute__((weak));
extern "C" void __tsan_init() __attribute__((weak));

namespace dbx::testing {

// Instrumented code takes ten times as long, and what a sanitizer looks for shows in the first accesses of a kind.
inline uint64_t WorkShare(uint64_t count) {
  return &__asan_init != nullptr || &__tsan_init != nullptr ? count / 5 : count;
}

}  // namespace dbx::testing
