// Logs in memory that forget what was not synced: a run writes them, the test takes crash images of all logs at one
// moment while the run goes on, and recoveries read an image.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "logging/device/memory_device.h"
#include "system/log_files.h"

namespace dbx::testing {

class MemoryStorage : public LogStorage {
 public:
  using Image = std::vector<std::vector<std::byte>>;  // by log index

  NewLogFiles Create(const Options& options, const LogTraits& traits, uint64_t schema_hash) override {
    const RunIdentity identity = IdentityOf(options, traits, schema_hash);
    NewLogFiles files;
    files.run_id = identity.run_id;
    const std::lock_guard guard(*power_);
    for (uint32_t i = 0; i < options.num_logger; ++i) {
      devices_.push_back(std::make_unique<MemoryDevice>(NameOf(i), std::vector<std::byte>(), power_));
      WriteHeader(*devices_.back(), MakeHeader(identity, i));
      // Two directories, so that two writers run when there are two logs.
      files.targets.push_back({std::make_unique<Borrowed>(*devices_.back()), i % 2});
    }
    created_ = options.num_logger;
    return files;
  }

  OldLogFiles Open(const Options&) override {
    OldLogFiles logs;
    for (uint32_t i = 0; i < image_.size(); ++i) {
      logs.paths.push_back(NameOf(i));
      logs.devices.push_back(std::make_unique<MemoryDevice>(NameOf(i), image_[i]));
      logs.headers.push_back(ReadHeader(*logs.devices.back()));
    }
    logs.images = image_;
    CheckSameRun(logs.headers, logs.paths);
    return logs;
  }

  bool created() const { return created_.load() > 0; }

  // While the run goes on. Empty before its logs exist.
  Image Crash(MemoryDevice::Crash how, uint64_t seed) {
    Image image;
    const std::lock_guard guard(*power_);
    for (const auto& device : devices_) image.push_back(device->CrashImage(how, seed++));
    return image;
  }
  void set_image(Image image) { image_ = std::move(image); }
  MemoryDevice& device(uint32_t i) { return *devices_[i]; }

 private:
  // The run's handle on a device that outlives it.
  class Borrowed : public BlockDevice {
   public:
    explicit Borrowed(MemoryDevice& device) : device_(device) {}
    void StartWrite(uint64_t offset, std::span<const std::byte> data) override { device_.StartWrite(offset, data); }
    uint64_t Complete(bool wait) override { return device_.Complete(wait); }
    size_t Read(uint64_t offset, std::span<std::byte> to) override { return device_.Read(offset, to); }
    uint64_t SizeBytes() override { return device_.SizeBytes(); }
    const std::string& path() const override { return device_.path(); }

   private:
    MemoryDevice& device_;
  };

  static std::string NameOf(uint32_t i) { return "memory/log-" + std::to_string(i); }

  MemoryDevice::Power power_ = std::make_shared<std::recursive_mutex>();
  std::vector<std::unique_ptr<MemoryDevice>> devices_;
  std::atomic<uint32_t> created_{0};
  Image image_;
};

}  // namespace dbx::testing
