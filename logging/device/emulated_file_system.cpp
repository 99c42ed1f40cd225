#include "logging/device/emulated_file_system.h"

#include <algorithm>
#include <deque>

#include "logging/device/emulated_memory.h"

namespace dbx {
namespace {

// The usual lateness of a sleep; more is caused by other threads, which affect a real device too.
constexpr uint64_t kLateNanosMax = 100'000;

// One file on an emulated device. As block_device.h says, StartWrite and Complete belong to one thread.
class EmulatedFile final : public BlockDevice {
 public:
  EmulatedFile(std::unique_ptr<BlockDevice> file, std::shared_ptr<EmulatedDevice> device, DeviceClock& clock,
               uint32_t number, bool durable)
      : file_(std::move(file)), device_(std::move(device)), clock_(clock), number_(number), durable_(durable) {}

  void StartWrite(uint64_t offset, std::span<const std::byte> data) override {
    const uint64_t now = clock_.NowNanos();
    // Had the last wait ended in time, this write would have been requested as much earlier.
    const uint64_t done = device_->Write(number_, offset, data.size(), durable_, now - std::min(now, late_nanos_));
    file_->StartWrite(offset, data);
    in_flight_.push_back({offset, done});
  }

  uint64_t Complete(bool wait) override {
    const uint64_t end = file_->Complete(wait);
    if (wait && !in_flight_.empty()) AwaitLast();
    const uint64_t now = clock_.NowNanos();
    while (!in_flight_.empty() && in_flight_.front().done_nanos <= now) in_flight_.pop_front();
    return in_flight_.empty() ? end : std::min(end, in_flight_.front().offset);
  }

  size_t Read(uint64_t offset, std::span<std::byte> to) override {
    const uint64_t now = clock_.NowNanos();
    const size_t bytes = file_->Read(offset, to);
    if (bytes > 0) clock_.WaitUntil(device_->Read(number_, reader_, offset, bytes, now));
    return bytes;
  }

  uint64_t SizeBytes() override { return file_->SizeBytes(); }
  const std::string& path() const override { return file_->path(); }
  std::string PlaceOf(uint64_t offset) const override { return file_->PlaceOf(offset); }

 private:
  struct Write {
    uint64_t offset;
    uint64_t done_nanos;
  };

  // Writes of one file are done in the order in which they were started.
  void AwaitLast() {
    const uint64_t done = in_flight_.back().done_nanos;
    uint64_t now = clock_.NowNanos();
    if (now < done) {
      clock_.WaitUntil(done);
      now = clock_.NowNanos();
      late_nanos_ = std::min(now - done, kLateNanosMax);
    } else {
      // The lateness of the last wait is still to be compensated; slowness of the directory itself is not compensated.
      late_nanos_ = std::min(now - done, late_nanos_);
    }
  }

  const std::unique_ptr<BlockDevice> file_;
  const std::shared_ptr<EmulatedDevice> device_;
  DeviceClock& clock_;
  const uint32_t number_;
  const bool durable_;
  std::deque<Write> in_flight_;  // oldest first
  uint64_t late_nanos_ = 0;
  EmulatedDevice::Reader reader_;
};

// One file of pages on an emulated device. Two of its writes may be under way while the caller prepares the next, as
// behind a small cache: so the device is never idle between them, files on several devices are written side by side,
// and a log on the same device waits behind no more than these.
class EmulatedPageFile final : public PageFile {
 public:
  EmulatedPageFile(std::unique_ptr<PageFile> file, std::shared_ptr<EmulatedDevice> device, DeviceClock& clock,
                   uint32_t number, bool durable)
      : file_(std::move(file)), device_(std::move(device)), clock_(clock), number_(number), durable_(durable) {}

  void WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
    clock_.WaitUntil(before_last_done_nanos_);
    const uint64_t now = clock_.NowNanos();
    file_->WriteAt(offset, bytes);
    before_last_done_nanos_ = last_done_nanos_;
    last_done_nanos_ = device_->Write(number_, offset, bytes.size(), /*durable=*/false, now);
  }

  void Sync() override {
    const uint64_t now = clock_.NowNanos();
    file_->Sync();
    clock_.WaitUntil(durable_ ? device_->Flush(now) : last_done_nanos_);
  }

  const std::string& path() const override { return file_->path(); }

 private:
  const std::unique_ptr<PageFile> file_;
  const std::shared_ptr<EmulatedDevice> device_;
  DeviceClock& clock_;
  const uint32_t number_;
  const bool durable_;
  uint64_t last_done_nanos_ = 0;  // of its writes
  uint64_t before_last_done_nanos_ = 0;
};

}  // namespace

EmulatedFileSystem::EmulatedFileSystem(FileSystem& files, const DeviceProfile& profile,
                                       const std::vector<std::string>& directories, DeviceClock* clock)
    : files_(files), profile_(profile), clock_(clock == nullptr ? host_clock_ : *clock) {
  std::shared_ptr<EmulatedChannel> channel;
  if (profile.channel_bytes_per_second != 0) {
    channel = std::make_shared<EmulatedChannel>(profile.channel_bytes_per_second);
  }
  for (const std::string& directory : directories) {
    devices_.emplace_back(directory, std::make_shared<EmulatedDevice>(profile, channel));
  }
}

std::shared_ptr<EmulatedDevice> EmulatedFileSystem::DeviceOf(const std::string& path) const {
  std::shared_ptr<EmulatedDevice> device;
  size_t longest = 0;  // a log directory may lie in another one
  for (const auto& [directory, candidate] : devices_) {
    if (!LiesIn(path, directory) || directory.size() < longest) continue;
    device = candidate;
    longest = directory.size();
  }
  return device;
}

uint32_t EmulatedFileSystem::NumberOf(const std::string& path) {
  const uint32_t next = static_cast<uint32_t>(file_numbers_.size());
  return file_numbers_.emplace(path, next).first->second;
}

std::unique_ptr<BlockDevice> EmulatedFileSystem::Wrap(std::unique_ptr<BlockDevice> file, bool durable) {
  std::shared_ptr<EmulatedDevice> device = DeviceOf(file->path());
  if (device == nullptr) return file;
  const uint32_t number = NumberOf(file->path());
  return std::make_unique<EmulatedFile>(std::move(file), std::move(device), clock_, number, durable);
}

void EmulatedFileSystem::Rewrite(const std::string& path, uint64_t from, uint64_t to) {
  const uint64_t now = clock_.NowNanos();
  files_.Rewrite(path, from, to);
  const auto device = DeviceOf(path);
  if (device == nullptr) return;
  const uint64_t bytes = to - std::min(from, to);
  clock_.WaitUntil(bytes == 0 ? device->Flush(now) : device->Write(NumberOf(path), from, bytes, true, now));
}

std::unique_ptr<BlockDevice> EmulatedFileSystem::Create(const std::string& path, const DeviceOptions& options) {
  return Wrap(files_.Create(path, options), options.sync);
}

std::unique_ptr<PageFile> EmulatedFileSystem::CreatePages(const std::string& path, bool durable) {
  std::unique_ptr<PageFile> file = files_.CreatePages(path, durable);
  std::shared_ptr<EmulatedDevice> device = DeviceOf(path);
  if (device == nullptr) return file;
  return std::make_unique<EmulatedPageFile>(std::move(file), std::move(device), clock_, NumberOf(path), durable);
}

std::unique_ptr<PersistentMemory> EmulatedFileSystem::MapPersistent(const std::string& path,
                                                                    const PersistentMapping& mapping) {
  std::unique_ptr<PersistentMemory> memory = files_.MapPersistent(path, mapping);
  std::shared_ptr<EmulatedDevice> device = DeviceOf(path);
  if (device == nullptr || mapping.copy_on_write) return memory;
  return EmulateMemory(std::move(memory), {std::move(device), &clock_, NumberOf(path)});
}

std::unique_ptr<BlockDevice> EmulatedFileSystem::Open(const std::string& path) { return Wrap(files_.Open(path), true); }

DirectoryKind EmulatedFileSystem::Describe(const std::string& directory, const DeviceOptions& options) {
  DirectoryKind kind = files_.Describe(directory, options);
  if (DeviceOf(directory) == nullptr) return kind;
  kind.emulation = DeviceEmulation{profile_, kind.kind};
  kind.kind = "emulated";
  return kind;
}

}  // namespace dbx
