// What a directory cluster-NNNN of several masters says of the cluster: the file `cluster`, written once before its
// processes start. With the logs it is all that a recovery needs.
//
//   block of 4,096 bytes: magic, version, CRC32C of the block with itself zero, cluster id, masters, workers of each,
//   version of the logs, "NAME=value\n" lines of the switches that decide what was loaded
//
// Threads: no shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "logging/device/file_system.h"

namespace dbx {

inline constexpr const char* kClusterFileName = "cluster";

struct ClusterDescription {
  uint64_t cluster = 0;  // id
  uint32_t masters = 0;
  uint32_t workers = 0;  // of each master
  std::string config;
};

void WriteClusterFile(FileSystem& files, const std::string& directory, const ClusterDescription& description);

// Throws Error: kIo if there is none, kCorrupt, kMismatch for another version.
ClusterDescription ReadClusterFile(FileSystem& files, const std::string& directory);

// The directory has the file, or those of Log Stores.
bool IsClusterDirectory(FileSystem& files, const std::string& directory);

// Of all Log Stores, whether they are there or not.
std::vector<std::string> StoreDirectories(const std::string& directory);

// cluster-0007 in these directories: that of this number, or the newest. Throws Error (kIo): there is none.
std::string FindCluster(FileSystem& files, const std::string& parent, std::optional<uint32_t> number);

}  // namespace dbx
