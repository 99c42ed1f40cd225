#include "logging/device/posix_page_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "logging/device/file_system.h"
#include "logging/device/posix_file.h"

namespace dbx {
namespace {

constexpr size_t kBlockBytes = 4096;

class PosixPageFile final : public PageFile {
 public:
  PosixPageFile(UniqueFd fd, std::string path, bool durable)
      : fd_(std::move(fd)), path_(std::move(path)), durable_(durable) {}

  void WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
    CHECK(offset % kBlockBytes == 0);
    CHECK(bytes.size() % kBlockBytes == 0);
    if (failure_) throw Error(*failure_);
    size_t done = 0;
    const int error = WriteFully(fd_.get(), offset, bytes, 0, done);
    if (error != 0) Fail("write", path_ + "@" + std::to_string(offset + done), error);
  }

  void Sync() override {
    if (failure_) throw Error(*failure_);
    if (durable_ && ::fdatasync(fd_.get()) != 0) Fail("sync", path_, errno);
  }

  const std::string& path() const override { return path_; }

 private:
  [[noreturn]] void Fail(const char* verb, const std::string& place, int error) {
    try {
      ThrowErrno(verb, place, error);
    } catch (const Error& failure) {
      failure_ = failure;
      throw;
    }
  }

  const UniqueFd fd_;
  const std::string path_;
  const bool durable_;
  std::optional<Error> failure_;
};

}  // namespace

std::unique_ptr<PageFile> CreatePageFile(const std::string& path, bool durable) {
  IgnoreFileSizeSignal();
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) ThrowErrno("create", path, errno);
  try {
    if (::fsync(fd.get()) != 0) ThrowErrno("sync", path, errno);
    SyncDirectory(ParentDirectory(path));
  } catch (const Error&) {
    ::unlink(path.c_str());
    throw;
  }
  return std::make_unique<PosixPageFile>(std::move(fd), path, durable);
}

}  // namespace dbx
