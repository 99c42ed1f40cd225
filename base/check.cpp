#include "base/check.h"

#include <unistd.h>

#include <cstdio>

#include "base/error.h"

namespace dbx {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "error: internal check failed %s:%d: %s\n", file, line, condition);
  std::fflush(stderr);
  // No destructors and no exit handlers: other threads still run and must not get any further.
  _exit(static_cast<int>(ExitStatus::kInternal));
}

}  // namespace dbx
