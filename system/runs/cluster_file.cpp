#include "system/runs/cluster_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/refusal.h"
#include "logging/format.h"
#include "multi_master/log/log_messages.h"
#include "multi_master/log/records.h"

namespace dbx {
namespace {

constexpr char kMagic[8] = {'D', 'B', 'X', 'M', 'M', 'C', '\r', '\n'};
constexpr uint32_t kVersion = 1;
constexpr std::string_view kDirectoryPrefix = "cluster-", kStorePrefix = "log-store-";

struct Block {
  char magic[8];
  uint32_t version;
  uint32_t crc;
  uint64_t cluster;
  uint32_t masters;
  uint32_t workers;
  uint32_t log_version;
  uint32_t config_bytes;
  char config[format::kBlockBytes - 40];
};
static_assert(sizeof(Block) == format::kBlockBytes);

uint32_t CrcOf(Block block) {
  block.crc = 0;
  return Crc32c(std::as_bytes(std::span(&block, 1)));
}

std::optional<uint32_t> NumberOf(std::string_view name) {
  if (!name.starts_with(kDirectoryPrefix)) return std::nullopt;
  name.remove_prefix(kDirectoryPrefix.size());
  uint32_t number = 0;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (problem != std::errc() || end != name.data() + name.size() || name.size() < 4) return std::nullopt;
  return number;
}

}  // namespace

void WriteClusterFile(FileSystem& files, const std::string& directory, const ClusterDescription& description) {
  Block block{};
  std::memcpy(block.magic, kMagic, sizeof kMagic);
  block.version = kVersion;
  block.cluster = description.cluster;
  block.masters = description.masters;
  block.workers = description.workers;
  block.log_version = mm::kLogVersion;
  block.config_bytes = static_cast<uint32_t>(description.config.size());
  if (description.config.size() > sizeof block.config) {
    throw Error(ExitStatus::kInternal, "the configuration does not fit " + directory + "/" + kClusterFileName);
  }
  std::memcpy(block.config, description.config.data(), description.config.size());
  block.crc = CrcOf(block);
  WriteFileAtomically(files, directory + "/" + kClusterFileName, std::as_bytes(std::span(&block, 1)));
}

ClusterDescription ReadClusterFile(FileSystem& files, const std::string& directory) {
  const std::string path = directory + "/" + kClusterFileName;
  if (files.KindOf(path) != FileSystem::Entry::kFile) {
    throw Error(ExitStatus::kIo, "cannot read " + path + ": there is no such file; is it a cluster's directory?");
  }
  const FileBytes file = files.Map(path);
  const Refusal refuse(path);
  Block block{};
  refuse.Unless(file.bytes.size() == sizeof block, 0, "it has another size");
  std::memcpy(&block, file.bytes.data(), sizeof block);
  refuse.Unless(std::memcmp(block.magic, kMagic, sizeof kMagic) == 0, 0, "it does not begin as such a file");
  refuse.Unless(block.crc == CrcOf(block), offsetof(Block, crc), "bad checksum");
  refuse.Unless(block.version == kVersion, offsetof(Block, version), "its version is not known", ExitStatus::kMismatch);
  refuse.Unless(block.log_version == mm::kLogVersion, offsetof(Block, log_version),
                "its logs are of a version that is not known", ExitStatus::kMismatch);
  refuse.Unless(block.masters >= 1 && block.masters <= mm::kMastersMax, offsetof(Block, masters),
                "impossible number of masters");
  refuse.Unless(block.workers >= 1, offsetof(Block, workers), "masters without workers");
  refuse.Unless(block.config_bytes <= sizeof block.config, offsetof(Block, config_bytes), "impossible length");
  return {block.cluster, block.masters, block.workers, std::string(block.config, block.config_bytes)};
}

bool IsClusterDirectory(FileSystem& files, const std::string& directory) {
  if (files.KindOf(directory) != FileSystem::Entry::kDirectory) return false;
  return std::ranges::any_of(files.List(directory), [](const std::string& name) {
    return name == kClusterFileName || name.starts_with(kStorePrefix);
  });
}

std::vector<std::string> StoreDirectories(const std::string& directory) {
  std::vector<std::string> stores;
  for (uint32_t i = 0; i < mm::kLogStores; ++i) stores.push_back(fmt::format("{}/{}{}", directory, kStorePrefix, i));
  return stores;
}

std::string FindCluster(FileSystem& files, const std::string& parent, std::optional<uint32_t> number) {
  std::optional<uint32_t> newest;
  bool is_there = false;
  if (files.KindOf(parent) == FileSystem::Entry::kDirectory) {
    for (const std::string& name : files.List(parent)) {
      const std::optional<uint32_t> here = NumberOf(name);
      if (here && (!newest || *here > *newest)) newest = here;
      is_there |= here && here == number;
    }
  }
  if (!newest) throw Error(ExitStatus::kIo, fmt::format("{} has no cluster-NNNN to recover", parent));
  if (number && !is_there) {
    throw Error(ExitStatus::kMismatch,
                fmt::format("{} has no cluster-{:04}; the newest is cluster-{:04}", parent, *number, *newest));
  }
  return fmt::format("{}/{}{:04}", parent, kDirectoryPrefix, number.value_or(*newest));
}

}  // namespace dbx
