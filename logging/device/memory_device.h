// A BlockDevice in memory, for tests: it loses what was not synced.
//
// StartWrite only queues. Complete(true) makes everything that was started durable; Complete(false) the
// oldest write alone, so that a writer that polls comes forward, one write at a time. A crash image can be
// taken at any moment, from any thread, while the run goes on: the durable bytes, with or without a seeded
// choice of the pending sectors, each old, new, zeroed or garbage. The nth write or sync can be told to fail;
// as with every device that is final.
//
// Threads: everything is safe to call from any, its Power guards it all.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "logging/device/block_device.h"

namespace dbx {

class MemoryDevice final : public BlockDevice {
 public:
  static constexpr size_t kSectorBytes = 512;

  enum class Crash {
    kDurableOnly,  // everything pending is lost
    kTorn,         // every pending sector is old, new, zeroed or garbage
  };

  // Devices that share one of these crash together: who holds it sees all of them at one moment.
  using Power = std::shared_ptr<std::recursive_mutex>;

  // `image` is what the device holds durably at first: nothing, preallocated zeros or a crash image.
  explicit MemoryDevice(std::string path, std::vector<std::byte> image = {},
                        Power power = std::make_shared<std::recursive_mutex>());

  void StartWrite(uint64_t offset, std::span<const std::byte> data) override;
  uint64_t Complete(bool wait) override;
  // Sees pending writes too, as the page cache would.
  size_t Read(uint64_t offset, std::span<std::byte> to) override;
  uint64_t SizeBytes() override;
  const std::string& path() const override { return path_; }

  // What a power loss now would leave. The same seed and history give the same image.
  std::vector<std::byte> CrashImage(Crash crash, uint64_t seed = 0);

  // The nth write or sync from now (1: the next) fails with errno value `error`. A sync is a call of
  // Complete that has something to complete. Of a failed write or sync any sector may have arrived.
  void FailWrite(uint64_t nth, int error);
  void FailSync(uint64_t nth, int error);

  uint64_t write_count();
  uint64_t sync_count();

 private:
  struct Range {
    uint64_t offset;
    uint64_t bytes;
  };
  struct Fault {
    uint64_t countdown = 0;  // 0: none
    int error = 0;
  };

  // Counts the fault down; when it is due, fails the device and throws.
  void MaybeFail(Fault& fault, const char* verb, uint64_t offset);
  void ThrowIfFailed() const;

  const std::string path_;
  const Power power_;
  std::vector<std::byte> durable_;
  std::vector<std::byte> current_;  // with the pending writes
  std::deque<Range> pending_;       // ascending, gapless
  bool started_ = false;
  uint64_t started_end_ = 0;
  uint64_t complete_end_ = 0;
  uint64_t writes_ = 0;
  uint64_t syncs_ = 0;
  Fault write_fault_;
  Fault sync_fault_;
  std::optional<Error> failure_;
};

}  // namespace dbx
