// A PageFile over one file of the operating system: pwrite through the page cache, and fdatasync. The cache lets the
// kernel order the writes of a scan, and a checkpoint does not wait for any of them before its end.
// Threads: one at a time.
#pragma once

#include <memory>
#include <string>

#include "logging/device/page_file.h"

namespace dbx {

// Creates the file, which must not exist, and returns once it and its directory entry are durable. Without `durable`
// its Sync does nothing. Throws Error: kNoSpace, kIo; then the file is removed again.
std::unique_ptr<PageFile> CreatePageFile(const std::string& path, bool durable);

}  // namespace dbx
