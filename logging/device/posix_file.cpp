#include "logging/device/posix_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <system_error>

#include "base/error.h"
#include "logging/device/write_fully.h"

namespace dbx {
namespace {

ExitStatus StatusOf(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:  // RLIMIT_FSIZE, or the largest file that the file system can hold
    case ENOMEM:
      return ExitStatus::kNoSpace;
    default:
      return ExitStatus::kIo;
  }
}

// std::strerror shares a buffer between threads.
std::string ReasonOf(int error) { return std::generic_category().message(error); }

// The type that /proc/self/mountinfo gives for a device number; empty if it has none (btrfs, containers).
std::string MountedType(dev_t device) {
  std::ostringstream wanted;
  wanted << major(device) << ':' << minor(device);
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    // "36 35 98:0 /root /mount options [optional fields] - type source super_options"
    std::istringstream fields(line);
    std::string id, parent, device_number, word;
    fields >> id >> parent >> device_number;
    if (device_number != wanted.str()) continue;
    while (fields >> word && word != "-") {
    }
    if (fields >> word) return word;
  }
  return "";
}

std::string TypeByMagic(uint64_t magic) {
  switch (magic) {
    case TMPFS_MAGIC:
      return "tmpfs";
    case RAMFS_MAGIC:
      return "ramfs";
    case EXT4_SUPER_MAGIC:
      return "ext4";
    case XFS_SUPER_MAGIC:
      return "xfs";
    case BTRFS_SUPER_MAGIC:
      return "btrfs";
    case OVERLAYFS_SUPER_MAGIC:
      return "overlay";
    case NFS_SUPER_MAGIC:
      return "nfs";
    default: {
      char text[32];
      std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(magic));
      return text;
    }
  }
}

// All that statfs tells apart: ext2, ext3 and ext4 have one number. Numbers that <linux/magic.h> lacks are spelt out.
constexpr uint64_t kZfsMagic = 0x2fc12fc1, kBcachefsMagic = 0xca451a4e, kJfsMagic = 0x3153464a;
constexpr uint64_t kHonourDsync[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, kZfsMagic,
                                     kBcachefsMagic,   kJfsMagic,       TMPFS_MAGIC,       RAMFS_MAGIC};

}  // namespace

bool HonoursDsync(uint64_t file_system_magic) {
  return std::find(std::begin(kHonourDsync), std::end(kHonourDsync), file_system_magic) != std::end(kHonourDsync);
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}

void ThrowErrno(const char* verb, const std::string& path, int error) {
  throw Error(StatusOf(error), std::string("cannot ") + verb + " " + path + ": " + ReasonOf(error));
}

void ThrowErrno(const char* verb, const std::string& path, uint64_t offset, int error) {
  ThrowErrno(verb, path + "@" + std::to_string(offset), error);
}

int WriteFully(int fd, uint64_t offset, std::span<const std::byte> data, int flags, size_t& done) {
  return dbx::WriteFully(offset, data, done, [&](uint64_t at, std::span<const std::byte> part) -> int64_t {
    const iovec io{const_cast<std::byte*>(part.data()), part.size()};
    const ssize_t n = ::pwritev2(fd, &io, 1, static_cast<off_t>(at), flags);
    return n < 0 ? -errno : n;
  });
}

void IgnoreFileSizeSignal() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    if (::sigaction(SIGXFSZ, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) ::signal(SIGXFSZ, SIG_IGN);
  });
}

void SyncDirectory(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) ThrowErrno("open directory", path, errno);
  // EINVAL: a file system whose directories have nothing to sync.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) ThrowErrno("sync directory", path, errno);
}

FileSystemType FileSystemTypeOf(const std::string& path) {
  struct statfs file_system {};
  struct stat file {};
  if (::statfs(path.c_str(), &file_system) != 0 || ::stat(path.c_str(), &file) != 0) {
    ThrowErrno("look at", path, errno);
  }
  FileSystemType result;
  const auto magic = static_cast<uint64_t>(file_system.f_type);
  constexpr unsigned kRamDiskMajor = 1;  // /dev/ram0, whatever file system lies on it
  result.is_ram = magic == TMPFS_MAGIC || magic == RAMFS_MAGIC || major(file.st_dev) == kRamDiskMajor;
  result.honours_dsync = HonoursDsync(magic);
  result.name = MountedType(file.st_dev);
  if (result.name.empty()) result.name = TypeByMagic(magic);
  return result;
}

}  // namespace dbx
