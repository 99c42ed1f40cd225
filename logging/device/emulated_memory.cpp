#include "logging/device/emulated_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace dbx {
namespace {

class EmulatedWriter final : public PersistentWriter {
 public:
  EmulatedWriter(std::unique_ptr<PersistentWriter> writer, const std::byte* base, const MemoryDevice& device)
      : writer_(std::move(writer)), base_(base), device_(device), block_bytes_(device.device->profile().block_bytes) {}

  void WriteBack(const std::byte* from, size_t bytes) override {
    writer_->WriteBack(from, bytes);
    const auto begin = static_cast<uint64_t>(from - base_);
    const Blocks blocks{begin / block_bytes_, (begin + bytes + block_bytes_ - 1) / block_bytes_};
    if (!ranges_.empty() && ranges_.back().end == blocks.begin) {
      ranges_.back().end = blocks.end;
    } else if (blocks.begin < blocks.end) {
      ranges_.push_back(blocks);
    }
  }

  void Drain() override {
    const uint64_t now = device_.clock->NowNanos();
    writer_->Drain();
    if (ranges_.empty()) return;
    std::sort(ranges_.begin(), ranges_.end(), [](const Blocks& a, const Blocks& b) { return a.begin < b.begin; });
    uint64_t done = now;
    for (size_t i = 0; i < ranges_.size();) {
      Blocks blocks = ranges_[i];
      while (++i < ranges_.size() && ranges_[i].begin <= blocks.end) blocks.end = std::max(blocks.end, ranges_[i].end);
      const uint64_t bytes = (blocks.end - blocks.begin) * block_bytes_;
      // One flush, behind the last.
      done = device_.device->Write(device_.file, blocks.begin * block_bytes_, bytes, i == ranges_.size(), now);
    }
    ranges_.clear();
    device_.clock->WaitUntil(done);
  }

 private:
  struct Blocks {
    uint64_t begin, end;
  };

  const std::unique_ptr<PersistentWriter> writer_;
  const std::byte* const base_;
  const MemoryDevice device_;
  const uint64_t block_bytes_;  // a power of two
  std::vector<Blocks> ranges_;  // written back since the last Drain
};

class EmulatedMemory final : public PersistentMemory {
 public:
  EmulatedMemory(std::unique_ptr<PersistentMemory> memory, const MemoryDevice& device)
      : memory_(std::move(memory)), device_(device) {}

  std::span<std::byte> bytes() const override { return memory_->bytes(); }
  std::unique_ptr<PersistentWriter> NewWriter() override {
    return std::make_unique<EmulatedWriter>(memory_->NewWriter(), bytes().data(), device_);
  }
  bool drains_are_slow() const override {
    return device_.device->profile().flush_nanos >= DeviceClock::kSpinNanosMax || memory_->drains_are_slow();
  }
  std::string kind() const override { return "emulated over " + memory_->kind(); }

 private:
  const std::unique_ptr<PersistentMemory> memory_;
  const MemoryDevice device_;
};

}  // namespace

std::unique_ptr<PersistentMemory> EmulateMemory(std::unique_ptr<PersistentMemory> memory, const MemoryDevice& device) {
  return std::make_unique<EmulatedMemory>(std::move(memory), device);
}

}  // namespace dbx
