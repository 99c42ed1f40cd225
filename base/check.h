// Checks: CHECK for conditions that must hold in release (input and output, formats), ASSERT for invariants that only
// debug builds test. A failed check prints one line and ends the process with status 7. Errors that a user can cause
// are not checks: they throw `Error` (base/error.h).
#pragma once

namespace dbx {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);
}  // namespace dbx

#define CHECK(condition) \
  (__builtin_expect(!!(condition), 1) ? void(0) : ::dbx::CheckFailed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define ASSERT(condition) (void(sizeof(!(condition))))
#else
#define ASSERT(condition) CHECK(condition)
#endif
