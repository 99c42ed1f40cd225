// The file system of the operating system (models FileSystem): files are FileDevices, PosixPageFiles and memory.
// Threads: no state, save that a notice was given.
#pragma once

#include <string>
#include <vector>

#include "logging/device/file_system.h"

namespace dbx {

class PosixFileSystem final : public FileSystem {
 public:
  std::vector<std::string> List(const std::string& directory) override;
  Entry KindOf(const std::string& path) override;
  std::string IdentityOf(const std::string& directory) override;
  bool MakeDirectory(const std::string& path) override;
  void RemoveDirectory(const std::string& path) override;
  void Remove(const std::string& path) override;
  void Rename(const std::string& from, const std::string& to) override;
  void SyncDirectory(const std::string& path) override;
  DirectoryLock LockDirectory(const std::string& path, LockKind kind) override;
  void Rewrite(const std::string& path, uint64_t from, uint64_t to) override;
  bool Discard(const std::string& path, uint64_t from, uint64_t to) override;
  std::unique_ptr<BlockDevice> Create(const std::string& path, const DeviceOptions& options) override;
  std::unique_ptr<PageFile> CreatePages(const std::string& path, bool durable) override;
  std::unique_ptr<PersistentMemory> MapPersistent(const std::string& path, const PersistentMapping& mapping) override;
  std::unique_ptr<BlockDevice> Open(const std::string& path) override;
  FileBytes Map(const std::string& path) override;
  DirectoryKind Describe(const std::string& directory, const DeviceOptions& options) override;
};

}  // namespace dbx
