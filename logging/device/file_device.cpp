#include "logging/device/file_device.h"

#include <fcntl.h>
#include <liburing.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "logging/device/aligned_buffer.h"
#include "logging/device/write_fully.h"
#include "logging/device/write_window.h"

namespace dbx {
namespace {

constexpr size_t kBlockBytes = 4096;
constexpr size_t kZeroBytes = size_t{1} << 20;

// How a file is written; determined by Probe.
struct IoChoice {
  bool uring = false;
  bool direct = false;
  bool dsync = false;  // each write syncs itself; else fdatasync
  std::string text;
};

AlignedBuffer ZeroedBuffer(size_t bytes) {
  try {
    AlignedBuffer buffer = AllocateBlocks(bytes);
    std::fill_n(buffer.get(), bytes, std::byte{0});
    return buffer;
  } catch (const std::bad_alloc&) {
    throw Error(ExitStatus::kNoSpace, "no memory for an I/O buffer");
  }
}

void CheckAligned(uint64_t offset, std::span<const std::byte> data) {
  CHECK(offset % kBlockBytes == 0);
  CHECK(data.size() % kBlockBytes == 0);
  CHECK(reinterpret_cast<uintptr_t>(data.data()) % kBlockBytes == 0);
}

// Up to the end of the file; returns how many bytes there were.
size_t ReadAll(int fd, const std::string& path, uint64_t offset, std::span<std::byte> to) {
  size_t done = 0;
  const int error = ReadFully(offset, to, done, [fd](uint64_t at, std::span<std::byte> part) -> int64_t {
    const ssize_t n = ::pread(fd, part.data(), part.size(), static_cast<off_t>(at));
    return n < 0 ? -errno : n;
  });
  if (error != 0) ThrowErrno("read", path, offset + done, error);
  return done;
}

// Through pwrite, in the caller's thread.
class PwriteDevice final : public FileDevice {
 public:
  PwriteDevice(UniqueFd fd, UniqueFd read_fd, std::string path, const IoChoice& choice, bool sync)
      : FileDevice(std::move(fd), std::move(read_fd), std::move(path), choice.text),
        write_flags_(sync && choice.dsync ? RWF_DSYNC : 0),
        sync_in_complete_(sync && !choice.dsync) {}

  void StartWrite(uint64_t offset, std::span<const std::byte> data) override {
    ThrowIfFailed();
    CheckAligned(offset, data);
    CHECK(!started_ || offset == written_end_);
    if (!started_) complete_end_ = offset;
    started_ = true;
    size_t done = 0;
    const int error = WriteFully(fd(), offset, data, write_flags_, done);
    if (error != 0) Fail("write", offset + done, error);
    written_end_ = offset + data.size();
    if (!sync_in_complete_) complete_end_ = written_end_;
  }

  uint64_t Complete(bool) override {
    ThrowIfFailed();
    if (complete_end_ != written_end_) {
      // Never tried again: after a failed sync the page cache may have dropped dirty pages, and the next sync would
      // report success.
      if (::fdatasync(fd()) != 0) Fail("sync", complete_end_, errno);
      complete_end_ = written_end_;
    }
    return complete_end_;
  }

 private:
  const int write_flags_;
  const bool sync_in_complete_;
  bool started_ = false;
  uint64_t written_end_ = 0;
  uint64_t complete_end_ = 0;
};

// A ring of the kernel's; closed with the object.
class Ring {
 public:
  // Check valid() before anything else.
  explicit Ring(unsigned entries) : error_(-io_uring_queue_init(entries, &ring_, 0)) {}
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    if (valid()) io_uring_queue_exit(&ring_);
  }
  bool valid() const { return error_ == 0; }
  int error() const { return error_; }
  io_uring* get() { return &ring_; }

 private:
  io_uring ring_{};
  int error_;
};

// Through io_uring, several writes in flight.
class UringDevice final : public FileDevice {
 public:
  UringDevice(UniqueFd fd, UniqueFd read_fd, std::string path, const IoChoice& choice, bool sync,
              std::unique_ptr<Ring> ring, uint32_t writes_in_flight)
      : FileDevice(std::move(fd), std::move(read_fd), std::move(path), choice.text),
        write_flags_(sync ? RWF_DSYNC : 0),
        ring_(std::move(ring)),
        window_(writes_in_flight),
        rest_(writes_in_flight) {}

  // The kernel reads the caller's memory until the last request is back.
  ~UringDevice() override { AwaitAllQuietly(); }

  void StartWrite(uint64_t offset, std::span<const std::byte> data) override {
    ThrowIfFailed();
    CheckAligned(offset, data);
    while (window_.Full()) ReapOne(true);
    const size_t slot = window_.Start(offset, data.size());
    rest_[slot] = Rest{offset, data};
    Submit(slot);
  }

  uint64_t Complete(bool wait) override {
    ThrowIfFailed();
    while (!window_.Empty() && ReapOne(wait)) {
    }
    return window_.prefix_end();
  }

 private:
  // The unwritten rest of the write in a slot.
  struct Rest {
    uint64_t offset = 0;
    std::span<const std::byte> data;
  };

  void Submit(size_t slot) {
    const Rest& rest = rest_[slot];
    io_uring_sqe* entry = io_uring_get_sqe(ring_->get());
    CHECK(entry != nullptr);  // the ring has as many entries as the window
    const size_t part = std::min(rest.data.size(), kRequestBytesMax);
    io_uring_prep_write(entry, fd(), rest.data.data(), static_cast<unsigned>(part), rest.offset);
    entry->rw_flags = write_flags_;
    io_uring_sqe_set_data(entry, reinterpret_cast<void*>(slot));
    int submitted = 0;
    do {
      submitted = io_uring_submit(ring_->get());
    } while (submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY);
    if (submitted < 0) FailDrained("write", rest.offset, -submitted);
    ++in_kernel_;
  }

  // Takes one completion; false if there is none and `wait` is false.
  bool ReapOne(bool wait) {
    io_uring_cqe* completion = nullptr;
    int error = 0;
    do {
      error = wait ? io_uring_wait_cqe(ring_->get(), &completion) : io_uring_peek_cqe(ring_->get(), &completion);
    } while (error == -EINTR);
    if (error == -EAGAIN) return false;
    if (error < 0) Fail("write", window_.prefix_end(), -error);
    const auto slot = reinterpret_cast<size_t>(io_uring_cqe_get_data(completion));
    const int result = completion->res;
    io_uring_cqe_seen(ring_->get(), completion);
    --in_kernel_;
    Advance(slot, result);
    return true;
  }

  void Advance(size_t slot, int result) {
    Rest& rest = rest_[slot];
    if (result == -EINTR || result == -EAGAIN) return Submit(slot);
    if (result < 0) FailDrained("write", rest.offset, -result);
    if (result == 0 && !rest.data.empty()) FailDrained("write", rest.offset, EIO);
    rest.offset += static_cast<size_t>(result);
    rest.data = rest.data.subspan(static_cast<size_t>(result));
    if (rest.data.empty()) return window_.Finish(slot);
    Submit(slot);
  }

  // The caller may free its memory once it has the error, so no request may be in the kernel any more.
  [[noreturn]] void FailDrained(const char* verb, uint64_t offset, int error) {
    AwaitAllQuietly();
    Fail(verb, offset, error);
  }

  void AwaitAllQuietly() {
    while (in_kernel_ > 0) {
      io_uring_cqe* completion = nullptr;
      const int error = io_uring_wait_cqe(ring_->get(), &completion);
      if (error == -EINTR || error == -EAGAIN) continue;
      if (error < 0) return;
      io_uring_cqe_seen(ring_->get(), completion);
      --in_kernel_;
    }
  }

  const int write_flags_;
  std::unique_ptr<Ring> ring_;
  WriteWindow window_;
  std::vector<Rest> rest_;  // by slot
  size_t in_kernel_ = 0;    // requests submitted and not reaped
};

class ReadDevice final : public FileDevice {
 public:
  ReadDevice(UniqueFd fd, std::string path, bool is_ram)
      : FileDevice(UniqueFd(), std::move(fd), std::move(path), "pread, buffered"), is_ram_(is_ram) {}
  void StartWrite(uint64_t offset, std::span<const std::byte>) override { ThrowErrno("write", path(), offset, EBADF); }
  uint64_t Complete(bool) override { return 0; }
  bool is_memory() const override { return is_ram_; }
  // In RAM an allocated, never written block is a hole. On a disk it was filled with zeros, which are no hole.
  uint64_t SkipHole(uint64_t offset) override {
    if (!is_ram_) return offset;
    const off_t data = ::lseek(read_fd(), static_cast<off_t>(offset), SEEK_DATA);
    if (data >= 0) return static_cast<uint64_t>(data);
    return errno == ENXIO ? std::max(offset, SizeBytes()) : offset;
  }

 private:
  const bool is_ram_;
};

std::unique_ptr<Ring> OpenRing(uint32_t entries) {
  auto ring = std::make_unique<Ring>(entries);
  if (!ring->valid()) return ring;
  io_uring_probe* probe = io_uring_get_probe_ring(ring->get());
  const bool writes = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
  io_uring_free_probe(probe);
  return writes ? std::move(ring) : nullptr;
}

std::string ChoiceText(const IoChoice& choice, bool sync) {
  std::string text = choice.uring ? "io_uring" : "pwrite";
  text += choice.direct ? ", O_DIRECT" : ", buffered";
  text += !sync ? ", no sync" : choice.dsync ? ", O_DSYNC" : ", fdatasync";
  return text;
}

// Determines how the file can be written, on its first block; the file is new, and empty again afterwards. Leaves
// O_DIRECT set if it works, and `ring` open if io_uring is to be used.
IoChoice Probe(int fd, const std::string& path, const FileSystemType& home, const DeviceOptions& options,
               std::unique_ptr<Ring>& ring) {
  IoChoice choice;
  const int flags = ::fcntl(fd, F_GETFL);
  choice.direct = options.direct && !home.is_ram && ::fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
  const AlignedBuffer zeros = ZeroedBuffer(kBlockBytes);
  const std::span<const std::byte> block(zeros.get(), kBlockBytes);
  size_t done = 0;
  int error = WriteFully(fd, 0, block, RWF_DSYNC, done);
  if (error == EINVAL && choice.direct) {
    choice.direct = false;
    if (::fcntl(fd, F_SETFL, flags) != 0) ThrowErrno("write", path, errno);
    error = WriteFully(fd, 0, block, RWF_DSYNC, done);
  }
  choice.dsync = error == 0 && home.honours_dsync;
  if (error == EOPNOTSUPP || error == ENOSYS) error = WriteFully(fd, 0, block, 0, done);
  if (error != 0) ThrowErrno("write", path, done, error);
  if (::ftruncate(fd, 0) != 0) ThrowErrno("truncate", path, errno);

  const bool wanted = options.engine == IoEngine::kUring || (options.engine == IoEngine::kAuto && choice.direct);
  if (wanted && choice.dsync) ring = OpenRing(options.writes_in_flight);
  choice.uring = ring != nullptr && ring->valid();
  if (options.engine == IoEngine::kUring && !choice.uring) {
    const int reason = ring != nullptr ? ring->error() : EOPNOTSUPP;
    ThrowErrno("use io_uring (the pwrite engine works without it) for", path, reason);
  }
  // One fdatasync for all buffered writes of a flush is cheaper than a sync with each of them.
  if (!choice.uring && !choice.direct) choice.dsync = false;
  choice.text = ChoiceText(choice, options.sync);
  return choice;
}

// A file without a name, so that a kill leaves nothing behind; where that is not supported, one that is unlinked at
// once.
UniqueFd TemporaryFile(const std::string& directory) {
  UniqueFd fd(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.valid()) return fd;
  std::string name = directory + "/.probe-XXXXXX";
  fd = UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
  if (fd.valid()) ::unlink(name.c_str());
  return fd;
}

void Preallocate(int fd, const std::string& path, bool is_ram, const DeviceOptions& options) {
  const uint64_t bytes = RoundUp(options.preallocate_bytes, kBlockBytes);
  if (bytes == 0) return;
  int error = 0;
  do {
    error = ::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (error == EINTR);
  const bool allocated = error == 0;
  if (!allocated && error != EOPNOTSUPP && error != ENOSYS) ThrowErrno("allocate", path, bytes, error);
  // On a RAM disk the pages exist now, and a write waits for nothing else.
  if (!options.write_zeros || (allocated && is_ram)) return;
  const AlignedBuffer zeros = ZeroedBuffer(kZeroBytes);
  for (uint64_t at = 0; at < bytes; at += kZeroBytes) {
    const std::span<const std::byte> part(zeros.get(), std::min<uint64_t>(kZeroBytes, bytes - at));
    size_t done = 0;
    error = WriteFully(fd, at, part, 0, done);
    if (error != 0) ThrowErrno("write", path, at + done, error);
    if (options.zeros_written) options.zeros_written(part.size());
  }
}

// Sets up a new file except for its directory entry.
std::unique_ptr<FileDevice> SetUp(UniqueFd fd, const std::string& path, const DeviceOptions& options) {
  const FileSystemType home = FileSystemTypeOf(ParentDirectory(path));
  std::unique_ptr<Ring> ring;
  const IoChoice choice = Probe(fd.get(), path, home, options, ring);
  Preallocate(fd.get(), path, home.is_ram, options);
  if (::fsync(fd.get()) != 0) ThrowErrno("sync", path, errno);
  UniqueFd read_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!read_fd.valid()) ThrowErrno("open", path, errno);
  const std::string& name = options.named.empty() ? path : options.named;
  if (!choice.uring) {
    return std::make_unique<PwriteDevice>(std::move(fd), std::move(read_fd), name, choice, options.sync);
  }
  return std::make_unique<UringDevice>(std::move(fd), std::move(read_fd), name, choice, options.sync, std::move(ring),
                                       options.writes_in_flight);
}

}  // namespace

void FileDevice::ThrowIfFailed() const {
  // Pairs with the release in Fail.
  if (failed_.load(std::memory_order_acquire)) throw Error(*failure_);
}

void FileDevice::Fail(const char* verb, uint64_t offset, int error) {
  try {
    ThrowErrno(verb, path_, offset, error);
  } catch (const Error& failure) {
    failure_ = failure;
    failed_.store(true, std::memory_order_release);
    throw;
  }
}

size_t FileDevice::Read(uint64_t offset, std::span<std::byte> to) {
  ThrowIfFailed();
  return ReadAll(read_fd_.get(), path_, offset, to);
}

uint64_t FileDevice::SizeBytes() {
  ThrowIfFailed();
  struct stat status {};
  if (::fstat(read_fd_.get(), &status) != 0) ThrowErrno("look at", path_, errno);
  return static_cast<uint64_t>(status.st_size);
}

std::unique_ptr<FileDevice> CreateFileDevice(const std::string& path, const DeviceOptions& options) {
  CHECK(options.writes_in_flight > 0);
  IgnoreFileSizeSignal();
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) ThrowErrno("create", path, errno);
  try {
    auto device = SetUp(std::move(fd), path, options);
    SyncDirectory(ParentDirectory(path));
    return device;
  } catch (const Error&) {
    ::unlink(path.c_str());
    throw;
  }
}

std::unique_ptr<FileDevice> OpenFileDevice(const std::string& path) {
  // O_NONBLOCK: a pipe of that name must not hang us.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) ThrowErrno("open", path, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) ThrowErrno("look at", path, errno);
  if (!S_ISREG(status.st_mode)) throw Error(ExitStatus::kIo, "cannot open " + path + ": not a regular file");
  // Advice only: where it is refused, reading is only slower.
  (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return std::make_unique<ReadDevice>(std::move(fd), path, FileSystemTypeOf(path).is_ram);
}

void RewriteFile(const std::string& path, uint64_t from, uint64_t to) {
  IgnoreFileSizeSignal();
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) ThrowErrno("open", path, errno);
  std::vector<std::byte> buffer(std::min<uint64_t>(kZeroBytes, to - std::min(from, to)));
  while (from < to) {
    const std::span<std::byte> part = std::span(buffer).first(std::min<uint64_t>(buffer.size(), to - from));
    const size_t got = ReadAll(fd.get(), path, from, part);
    size_t done = 0;
    const int error = WriteFully(fd.get(), from, part.first(got), 0, done);
    if (error != 0) ThrowErrno("write", path, from + done, error);
    if (got < part.size()) break;
    from += got;
  }
  if (::fsync(fd.get()) != 0) ThrowErrno("sync", path, errno);
}

bool DiscardBlocks(const std::string& path, uint64_t from, uint64_t to) {
  CHECK(from % kBlockBytes == 0);
  CHECK(to % kBlockBytes == 0);
  CHECK(from < to);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) ThrowErrno("open", path, errno);
  int error;
  do {
    const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    error = ::fallocate(fd.get(), mode, static_cast<off_t>(from), static_cast<off_t>(to - from)) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error == EOPNOTSUPP || error == ENOSYS) return false;
  if (error != 0) ThrowErrno("free blocks of", path, from, error);
  return true;
}

DirectoryKind Describe(const std::string& directory, const DeviceOptions& options) {
  const FileSystemType file_system = FileSystemTypeOf(directory);
  DirectoryKind kind{directory, file_system.is_ram ? "ram" : "real", file_system.name, "pread, buffered"};
  const UniqueFd fd = TemporaryFile(directory);
  if (!fd.valid()) return kind;
  try {
    std::unique_ptr<Ring> ring;
    kind.io_engine = Probe(fd.get(), directory, file_system, options, ring).text;
  } catch (const Error&) {
    // A full disk, say: cannot be written to, but still be recovered from.
  }
  return kind;
}

}  // namespace dbx
