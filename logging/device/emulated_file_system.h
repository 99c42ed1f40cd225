// A file system whose log directories are devices of a DeviceProfile, each directory its own (models FileSystem). All
// of them share the profile's channel, if it has one.
//
// It forwards everything to the underlying file system, which does the writing, syncing and crashing, and then waits
// until an EmulatedDevice would be done: durability is unchanged, only its completion is reported later. It cannot make
// the underlying directory faster. Operations on names take no time: they belong to the begin and the end of a run. Nor
// do preallocation and Map, which reads small files and, for --verify, outside of all measurements; nor Discard, which
// transfers nothing.
//
// Threads: as file_system.h says.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "logging/device/emulated_device.h"
#include "logging/device/file_system.h"

namespace dbx {

class EmulatedFileSystem final : public FileSystem {
 public:
  // `files`, and `clock` if there is one, outlive it and its files. Files in none of the directories, or below, are
  // left as they are.
  EmulatedFileSystem(FileSystem& files, const DeviceProfile& profile, const std::vector<std::string>& directories,
                     DeviceClock* clock = nullptr);

  std::vector<std::string> List(const std::string& directory) override { return files_.List(directory); }
  Entry KindOf(const std::string& path) override { return files_.KindOf(path); }
  std::string IdentityOf(const std::string& directory) override { return files_.IdentityOf(directory); }
  bool MakeDirectory(const std::string& path) override { return files_.MakeDirectory(path); }
  void RemoveDirectory(const std::string& path) override { files_.RemoveDirectory(path); }
  void Remove(const std::string& path) override { files_.Remove(path); }
  void Rename(const std::string& from, const std::string& to) override { files_.Rename(from, to); }
  void SyncDirectory(const std::string& path) override { files_.SyncDirectory(path); }
  DirectoryLock LockDirectory(const std::string& path, LockKind kind) override {
    return files_.LockDirectory(path, kind);
  }
  void Rewrite(const std::string& path, uint64_t from, uint64_t to) override;
  bool Discard(const std::string& path, uint64_t from, uint64_t to) override { return files_.Discard(path, from, to); }
  std::unique_ptr<BlockDevice> Create(const std::string& path, const DeviceOptions& options) override;
  std::unique_ptr<PageFile> CreatePages(const std::string& path, bool durable) override;
  std::unique_ptr<PersistentMemory> MapPersistent(const std::string& path, const PersistentMapping& mapping) override;
  std::unique_ptr<BlockDevice> Open(const std::string& path) override;
  FileBytes Map(const std::string& path) override { return files_.Map(path); }
  DirectoryKind Describe(const std::string& directory, const DeviceOptions& options) override;

 private:
  // Null if the path lies outside.
  std::shared_ptr<EmulatedDevice> DeviceOf(const std::string& path) const;
  uint32_t NumberOf(const std::string& path);
  std::unique_ptr<BlockDevice> Wrap(std::unique_ptr<BlockDevice> file, bool durable);

  FileSystem& files_;
  const DeviceProfile profile_;
  std::vector<std::pair<std::string, std::shared_ptr<EmulatedDevice>>> devices_;  // by directory
  std::map<std::string, uint32_t> file_numbers_;                                  // by path
  DeviceClock host_clock_;
  DeviceClock& clock_;
};

}  // namespace dbx
