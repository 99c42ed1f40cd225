// Prints the files of a run that are no logs, for log_dump: each in a few lines, and checked as a recovery checks it.
//
// Main's thread only.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace dbx {

// False, and nothing is done, for a log. Throws Error for what makes no sense; damage of single pages of a backup, or
// of what a heap holds, goes to `report`.
bool PrintRunFile(const std::string& path, const std::function<void(const Error&)>& report);

}  // namespace dbx
