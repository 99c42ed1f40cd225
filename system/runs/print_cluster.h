// What a cluster of masters has left, printed for log_dump: the directory cluster-NNNN, one of its Log Stores', or one
// of a store's files. Frames are printed of a file and of a store, of a cluster what the stores say together: of each
// master's log how far it is durable, and its records.
//
// Main's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"

namespace dbx {

struct PrintClusterOptions {
  uint64_t records = 0;  // printed of each log
  bool frames = true;    // of files and stores
};

// Whether `path` is of a cluster.
bool IsOfCluster(const std::string& path);
// The directory cluster-NNNN that it is, or lies in.
std::string ClusterDirectoryOf(const std::string& path);

// Damage goes to `report`, as far as more can be printed. Throws Error.
void PrintCluster(const std::string& path, const PrintClusterOptions& options,
                  const std::function<void(const Error&)>& report);

}  // namespace dbx
