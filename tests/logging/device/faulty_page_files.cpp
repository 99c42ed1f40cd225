// Files of a FaultyFileSystem whose pages are written in place, as posix_page_file.h does it: a write is in the page
// cache when it returns, and pending until the next sync. And blocks of any file that are freed, which is pending, too.
#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "logging/device/posix_file.h"
#include "logging/device/write_fully.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {

class FaultyFileSystem::Pages final : public PageFile {
 public:
  Pages(FaultyFileSystem& owner, std::string path, InodePtr inode, bool durable)
      : owner_(owner), path_(std::move(path)), inode_(std::move(inode)), durable_(durable) {}

  void WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
    constexpr size_t kBlockBytes = 4096;
    CHECK(offset % kBlockBytes == 0);
    CHECK(bytes.size() % kBlockBytes == 0);
    const Lock lock(owner_.mutex_);
    FailWith([&] {
      size_t done = 0;
      const auto write_some = [this](uint64_t at, std::span<const std::byte> part) { return WriteSome(at, part); };
      const int error = WriteFully(offset, bytes, done, write_some);
      if (error != 0) ThrowErrno("write", path_, offset + done, error);
    });
  }

  void Sync() override {
    Lock lock(owner_.mutex_);
    FailWith([&] {
      if (!durable_) return;
      owner_.resumed_.wait(lock, [this] { return !owner_.IsStalled(path_); });
      owner_.BeginSync(*inode_, path_);
      if (!owner_.syncs_lie_) MakeDurable(*inode_);
    });
  }

  const std::string& path() const override { return path_; }

 private:
  // One request, as pwrite would take it. The bytes of a failed request may still arrive.
  int64_t WriteSome(uint64_t at, std::span<const std::byte> part) {
    if (owner_.IsInterrupted()) return -EINTR;
    part = part.first(owner_.BytesTaken(part.size()));
    try {
      owner_.Begin(Operation::kWrite, "write", path_, at);
    } catch (const Error&) {
      if (!owner_.power_is_off()) AddPending(at, part, /*succeeded=*/false);
      throw;
    }
    inode_->current.Write(at, part);
    AddPending(at, part, /*succeeded=*/true);
    return static_cast<int64_t>(part.size());
  }

  // In place is what lies over durable bytes.
  void AddPending(uint64_t at, std::span<const std::byte> part, bool succeeded) {
    const uint64_t durable_end = std::max(at, inode_->durable.size());
    const auto over = static_cast<size_t>(std::min<uint64_t>(part.size(), durable_end - at));
    const auto add = [&](uint64_t offset, std::span<const std::byte> bytes, bool in_place) {
      if (bytes.empty()) return;
      auto data = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
      inode_->pending.push_back({offset, std::move(data), succeeded, succeeded, in_place});
    };
    add(at, part.first(over), true);
    add(at + over, part.subspan(over), false);
  }

  // Once an action has failed, so does every later one.
  template <class Action>
  void FailWith(Action&& action) {
    if (failure_) throw Error(*failure_);
    try {
      action();
    } catch (const Error& failure) {
      failure_ = failure;
      throw;
    }
  }

  FaultyFileSystem& owner_;
  const std::string path_;
  const InodePtr inode_;
  const bool durable_;
  std::optional<Error> failure_;
};

std::unique_ptr<PageFile> FaultyFileSystem::CreatePages(const std::string& path, bool durable) {
  const Lock lock(mutex_);
  return std::make_unique<Pages>(*this, path, MakeFile(path, 0), durable);
}

// Block by block, and up to the middle if it fails: until a sync of the file it is not known which of them are zeros.
bool FaultyFileSystem::Discard(const std::string& path, uint64_t from, uint64_t to) {
  constexpr uint64_t kBlockBytes = 4096;
  CHECK(from % kBlockBytes == 0 && to % kBlockBytes == 0 && from < to);
  const Lock lock(mutex_);
  const InodePtr inode = Find(path);
  if (!inode || inode->is_directory) ThrowErrno("open", path, ENOENT);
  CHECK(to <= inode->current.size());
  if (refuses_discards_) return false;
  static const auto zeros = std::make_shared<const std::vector<std::byte>>(kBlockBytes);
  const auto discard = [&](uint64_t end) {
    for (uint64_t at = from; at < end; at += kBlockBytes) {
      inode->current.Write(at, *zeros);
      inode->pending.push_back({at, zeros, true, true, /*in_place=*/true});
    }
  };
  try {
    Begin(Operation::kDiscard, "free blocks of", path, from);
  } catch (const Error&) {
    if (!power_is_off()) discard(from + (to - from) / 2 / kBlockBytes * kBlockBytes);
    throw;
  }
  discard(to);
  return true;
}

}  // namespace dbx
