// A device for benchmarks that leave out I/O.
#pragma once

#include <span>
#include <string>

#include "logging/device/block_device.h"

namespace dbx {

// Writes are complete at once; the bytes are lost.
class NullDevice : public BlockDevice {
 public:
  void StartWrite(uint64_t offset, std::span<const std::byte> data) override { end_ = offset + data.size(); }
  uint64_t Complete(bool) override { return end_; }
  size_t Read(uint64_t, std::span<std::byte>) override { return 0; }
  uint64_t SizeBytes() override { return end_; }
  const std::string& path() const override { return path_; }

 private:
  uint64_t end_ = 0;
  std::string path_ = "null";
};

}  // namespace dbx
