// A file system whose devices take their time, in the virtual time of a simulation: between a write and its sync other
// fibres run, logs overtake each other, and a crash finds writes under way.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "logging/device/file_system.h"
#include "tests/simulation/scheduler.h"

namespace dbx::sim {

class SlowFiles final : public FileSystem {
 public:
  // Each sync takes up to `sync_nanos_max`; one in `stall_one_in`, a hundred times as long.
  SlowFiles(FileSystem& files, uint64_t sync_nanos_max, uint32_t stall_one_in)
      : files_(files), sync_nanos_max_(sync_nanos_max), stall_one_in_(stall_one_in) {}

  // Called before each operation on names, and before each sync of a file by its name.
  std::function<void()> before_operation;

  // Syncs that failed right after the removal of a directory of theirs. Only they may fail without harm: what is
  // removed is not needed, and may come back.
  uint64_t failed_removals() const { return failed_removals_; }

  std::vector<std::string> List(const std::string& directory) override { return files_.List(directory); }
  Entry KindOf(const std::string& path) override { return files_.KindOf(path); }
  std::string IdentityOf(const std::string& directory) override { return files_.IdentityOf(directory); }
  bool MakeDirectory(const std::string& path) override { return Next().MakeDirectory(path); }
  void RemoveDirectory(const std::string& path) override {
    Next().RemoveDirectory(path);
    removed_from_ = ParentDirectory(path);
  }
  void Remove(const std::string& path) override { Next().Remove(path); }
  void Rename(const std::string& from, const std::string& to) override { Next().Rename(from, to); }
  void SyncDirectory(const std::string& path) override {
    const bool syncs_removal = path == std::exchange(removed_from_, "");
    try {
      Next().SyncDirectory(path);
    } catch (const Error&) {
      if (syncs_removal) ++failed_removals_;
      throw;
    }
  }
  DirectoryLock LockDirectory(const std::string& path, LockKind kind) override {
    return files_.LockDirectory(path, kind);
  }
  void Sync(const std::string& path) override { Next().Sync(path); }
  std::unique_ptr<BlockDevice> Create(const std::string& path, const DeviceOptions& options) override {
    return std::make_unique<Device>(*this, Next().Create(path, options));
  }
  std::unique_ptr<BlockDevice> Open(const std::string& path) override {
    return std::make_unique<Device>(*this, files_.Open(path));
  }
  FileBytes Map(const std::string& path) override { return files_.Map(path); }
  DirectoryKind Describe(const std::string& directory, const DeviceOptions& options) override {
    return files_.Describe(directory, options);
  }

 private:
  class Device final : public BlockDevice {
   public:
    Device(SlowFiles& files, std::unique_ptr<BlockDevice> device) : files_(files), device_(std::move(device)) {}
    void StartWrite(uint64_t offset, std::span<const std::byte> data) override {
      Step();
      device_->StartWrite(offset, data);
      Step();
    }
    uint64_t Complete(bool wait) override {
      if (wait) files_.Wait();
      const uint64_t end = device_->Complete(wait);
      Step();
      return end;
    }
    size_t Read(uint64_t offset, std::span<std::byte> to) override {
      Step();
      return device_->Read(offset, to);
    }
    uint64_t SizeBytes() override { return device_->SizeBytes(); }
    const std::string& path() const override { return device_->path(); }

   private:
    SlowFiles& files_;
    std::unique_ptr<BlockDevice> device_;
  };

  // For an operation on names.
  FileSystem& Next() {
    Step();
    if (before_operation) before_operation();
    return files_;
  }

  void Wait() const {
    if (!Running()) return;
    uint64_t nanos = Random() % (sync_nanos_max_ + 1);
    if (Random() % stall_one_in_ == 0) nanos *= 100;
    SleepFor(nanos);
  }

  FileSystem& files_;
  const uint64_t sync_nanos_max_;
  const uint32_t stall_one_in_;
  std::string removed_from_;
  uint64_t failed_removals_ = 0;
};

}  // namespace dbx::sim
