#include "logging/device/posix_file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "logging/device/file_device.h"
#include "logging/device/posix_file.h"

namespace dbx {
namespace {

// EBADF: NFS locks exclusively only what is open for writing, and no directory ever is.
bool MeansNoLocks(int error) { return error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS || error == EBADF; }

void NoticeOnce(const std::string& path) {
  static std::atomic<bool> noticed{false};
  if (noticed.exchange(true)) return;
  std::fprintf(stderr, "notice: no locks on the file system of %s: nothing keeps other processes away\n", path.c_str());
}

// False once another directory, or none, has the path under which `fd` was opened.
bool IsStillAt(int fd, const std::string& path) {
  struct stat opened {
  }, there{};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &there) == 0 && opened.st_dev == there.st_dev &&
         opened.st_ino == there.st_ino;
}

}  // namespace

std::vector<std::string> PosixFileSystem::List(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator at(directory, error);
  std::vector<std::string> names;
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  if (error) ThrowErrno("read directory", directory, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

FileSystem::Entry PosixFileSystem::KindOf(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return Entry::kNone;
  if (S_ISREG(status.st_mode)) return Entry::kFile;
  return S_ISDIR(status.st_mode) ? Entry::kDirectory : Entry::kOther;
}

std::string PosixFileSystem::IdentityOf(const std::string& directory) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) ThrowErrno("use log directory", directory, errno);
  if (!S_ISDIR(status.st_mode)) ThrowErrno("use log directory", directory, ENOTDIR);
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

bool PosixFileSystem::MakeDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) return true;
  if (errno != EEXIST) ThrowErrno("create directory", path, errno);
  return false;
}

void PosixFileSystem::RemoveDirectory(const std::string& path) {
  if (::rmdir(path.c_str()) != 0) ThrowErrno("delete", path, errno);
}

void PosixFileSystem::Remove(const std::string& path) {
  if (::unlink(path.c_str()) != 0) ThrowErrno("delete", path, errno);
}

void PosixFileSystem::Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) ThrowErrno("rename", from, errno);
}

void PosixFileSystem::SyncDirectory(const std::string& path) { dbx::SyncDirectory(path); }

DirectoryLock PosixFileSystem::LockDirectory(const std::string& path, LockKind kind) {
  auto fd = std::make_shared<const UniqueFd>(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd->valid()) ThrowErrno("lock", path, errno);
  const int operation = kind == LockKind::kExclusive ? LOCK_EX : LOCK_SH;
  const int error = ::flock(fd->get(), operation | LOCK_NB) == 0 ? 0 : errno;
  if (error == EWOULDBLOCK) return nullptr;
  if (MeansNoLocks(error)) {
    NoticeOnce(path);
  } else if (error != 0) {
    ThrowErrno("lock", path, error);
  }
  // Whoever had the lock before may have deleted the directory.
  if (!IsStillAt(fd->get(), path)) return nullptr;
  return fd;
}

void PosixFileSystem::Rewrite(const std::string& path, uint64_t from, uint64_t to) { RewriteFile(path, from, to); }

std::unique_ptr<BlockDevice> PosixFileSystem::Create(const std::string& path, const DeviceOptions& options) {
  return CreateFileDevice(path, options);
}

std::unique_ptr<BlockDevice> PosixFileSystem::Open(const std::string& path) { return OpenFileDevice(path); }

FileBytes PosixFileSystem::Map(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) ThrowErrno("open", path, errno);
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return {};
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (at == MAP_FAILED) ThrowErrno("map", path, errno);
  return {std::shared_ptr<const void>(at, [size](const void* p) { ::munmap(const_cast<void*>(p), size); }),
          {static_cast<const std::byte*>(at), size}};
}

DirectoryKind PosixFileSystem::Describe(const std::string& directory, const DeviceOptions& options) {
  return dbx::Describe(directory, options);
}

}  // namespace dbx
