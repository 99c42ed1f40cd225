// One device over several, in software (RAID-0): unit u of its bytes lies in stripe u mod n. For a log that is to be as
// fast as several disks, without an md array.
//
// The first `own_bytes` of each stripe are its own (file headers): position p of the striped bytes is at offset
// own_bytes + p here. The durable prefix ends before the first byte of any stripe that is not durable: a stripe that is
// ahead of the others does not count.
//
// Threads: as block_device.h says. The stripes write at the same time as far as their engines do (io_uring); reads of
// them are parallel, by threads that the first long read starts, unless they are on a RAM disk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "logging/device/background_read.h"
#include "logging/device/block_device.h"

namespace dbx {

// How many of the first `bytes` of the striped bytes lie in stripe `index` of `count`.
uint64_t BytesInStripe(uint64_t bytes, size_t index, size_t count, uint64_t unit_bytes);

class StripedDevice final : public BlockDevice {
 public:
  // `unit_bytes` is a multiple of the block size.
  StripedDevice(std::vector<std::unique_ptr<BlockDevice>> stripes, uint64_t own_bytes, uint64_t unit_bytes);

  void StartWrite(uint64_t offset, std::span<const std::byte> data) override;
  uint64_t Complete(bool wait) override;
  // A stripe that ends early reads as zeros up to where the others end.
  size_t Read(uint64_t offset, std::span<std::byte> to) override;
  size_t disks() const override { return is_memory_ ? 1 : stripes_.size(); }
  bool is_memory() const override { return is_memory_; }
  uint64_t SizeBytes() override;
  const std::string& path() const override { return stripes_.front()->path(); }
  std::string PlaceOf(uint64_t offset) const override;

 private:
  // The part of [offset, offset + bytes) that lies in one unit.
  struct Piece {
    size_t stripe;
    uint64_t offset;  // in the stripe
    size_t bytes;
  };
  // In a shorter read most of the time would be the hand-over to other threads, where devices are fast.
  static constexpr size_t kAtOnceBytesMin = 64 << 10;

  Piece PieceAt(uint64_t offset, size_t bytes) const;
  // The part of [offset, offset + to.size()) in one stripe; none of the range is behind the end.
  void ReadShare(size_t stripe, uint64_t offset, std::span<std::byte> to);
  void ReadSharesAtOnce(uint64_t offset, std::span<std::byte> to);
  // The first offset here that lies behind the first `end` bytes of the stripe.
  uint64_t FirstBehind(size_t stripe, uint64_t end) const;

  std::vector<std::unique_ptr<BlockDevice>> stripes_;
  std::vector<std::unique_ptr<BackgroundRead>> shares_;  // by stripe; none until there is a long read
  const bool is_memory_;                                 // all of them
  const uint64_t own_bytes_;
  const uint64_t unit_bytes_;
};

}  // namespace dbx
