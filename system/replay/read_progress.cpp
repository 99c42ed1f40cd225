#include "system/replay/read_progress.h"

#include <fmt/format.h>

#include <cstdio>
#include <mutex>
#include <utility>

namespace dbx {
namespace {

uint64_t BytesOf(const std::vector<LogSource>& logs) {
  uint64_t bytes = 0;
  for (const LogSource& log : logs) {
    const Lsn end = log.FileEnd();
    if (end > log.First()) bytes += end - log.First();
  }
  return bytes;
}

}  // namespace

class ReadProgress::CountedDevice final : public BlockDevice {
 public:
  CountedDevice(BlockDevice& device, ReadProgress& progress) : device_(device), progress_(progress) {}

  void StartWrite(uint64_t offset, std::span<const std::byte> data) override { device_.StartWrite(offset, data); }
  uint64_t Complete(bool wait) override { return device_.Complete(wait); }
  size_t Read(uint64_t offset, std::span<std::byte> to) override {
    const size_t bytes = device_.Read(offset, to);
    progress_.Advance(bytes);
    return bytes;
  }
  uint64_t SkipHole(uint64_t offset) override { return device_.SkipHole(offset); }
  size_t disks() const override { return device_.disks(); }
  bool is_memory() const override { return device_.is_memory(); }
  uint64_t SizeBytes() override { return device_.SizeBytes(); }
  const std::string& path() const override { return device_.path(); }
  std::string PlaceOf(uint64_t offset) const override { return device_.PlaceOf(offset); }

 private:
  BlockDevice& device_;
  ReadProgress& progress_;
};

ReadProgress::Surroundings ReadProgress::OfProcess() {
  return {host::MonotonicNanos, [](const std::string& line) { std::fwrite(line.data(), 1, line.size(), stderr); }};
}

ReadProgress::ReadProgress(std::vector<LogSource> logs, uint32_t run, uint64_t times, Surroundings surroundings)
    : surroundings_(std::move(surroundings)),
      logs_(std::move(logs)),
      progress_(fmt::format("reading the logs of run-{:04}", run), "less if a log ends before its file",
                times * BytesOf(logs_), surroundings_.now_nanos()) {
  for (LogSource& log : logs_) {
    devices_.push_back(std::make_unique<CountedDevice>(*log.device, *this));
    log.device = devices_.back().get();
  }
}

ReadProgress::~ReadProgress() = default;

void ReadProgress::Advance(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::string line = progress_.Advance(bytes, surroundings_.now_nanos());
  if (!line.empty()) surroundings_.print(line);
}

}  // namespace dbx
