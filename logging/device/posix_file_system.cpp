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
#include <cstring>
#include <filesystem>
#include <span>

#include "logging/device/file_device.h"
#include "logging/device/posix_file.h"
#include "logging/device/posix_page_file.h"
#include "logging/device/posix_persistent_memory.h"

namespace dbx {
namespace {

// EBADF: NFS locks exclusively only files open for writing, and no directory ever is.
bool MeansNoLocks(int error) { return error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS || error == EBADF; }

void NoticeOnce(const std::string& path) {
  static std::atomic<bool> noticed{false};
  if (noticed.exchange(true)) return;
  std::fprintf(stderr, "notice: no locks on the file system of %s: nothing keeps other processes away\n", path.c_str());
}

// The only errors which show that a path does not exist: after any other one it may.
bool MeansAbsent(int error) { return error == ENOENT || error == ENOTDIR; }

// False once another directory, or none, has the path under which `fd` was opened.
bool IsStillAt(int fd, const std::string& path) {
  struct stat opened {
  }, there{};
  if (::fstat(fd, &opened) != 0) ThrowErrno("lock", path, errno);
  if (::stat(path.c_str(), &there) != 0) {
    if (!MeansAbsent(errno)) ThrowErrno("lock", path, errno);
    return false;
  }
  return opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

// Memory of zeros, of which only pages that are written to take space.
FileBytes SparseMemory(const std::string& path, size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) ThrowErrno("read", path, errno);
  return {std::shared_ptr<const void>(at, [bytes](const void* p) { ::munmap(const_cast<void*>(p), bytes); }),
          {static_cast<const std::byte*>(at), bytes}};
}

// Copies the blocks that are not all zeros.
void CopyWritten(std::span<const std::byte> from, std::byte* to) {
  constexpr size_t kBlockBytes = 4096;
  static constexpr std::byte kZeros[kBlockBytes] = {};
  for (size_t at = 0; at < from.size(); at += kBlockBytes) {
    const auto block = from.subspan(at, std::min(kBlockBytes, from.size() - at));
    if (std::memcmp(block.data(), kZeros, block.size()) != 0) std::memcpy(to + at, block.data(), block.size());
  }
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
  if (::lstat(path.c_str(), &status) != 0) {
    if (!MeansAbsent(errno)) ThrowErrno("look at", path, errno);
    return Entry::kNone;
  }
  if (S_ISREG(status.st_mode)) return Entry::kFile;
  return S_ISDIR(status.st_mode) ? Entry::kDirectory : Entry::kOther;
}

std::string PosixFileSystem::IdentityOf(const std::string& directory) {
  struct stat status {};
  const int error = ::stat(directory.c_str(), &status) == 0 ? 0 : errno;
  if (error == ENOENT) {
    throw Error(ExitStatus::kIo,
                "cannot use log directory " + directory + ": it does not exist; mkdir -p " + directory + " makes it");
  }
  if (error != 0) ThrowErrno("use log directory", directory, error);
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
  // The process that had the lock before may have deleted the directory.
  if (!IsStillAt(fd->get(), path)) return nullptr;
  return fd;
}

void PosixFileSystem::Rewrite(const std::string& path, uint64_t from, uint64_t to) { RewriteFile(path, from, to); }

bool PosixFileSystem::Discard(const std::string& path, uint64_t from, uint64_t to) {
  return DiscardBlocks(path, from, to);
}

std::unique_ptr<BlockDevice> PosixFileSystem::Create(const std::string& path, const DeviceOptions& options) {
  return CreateFileDevice(path, options);
}

std::unique_ptr<PageFile> PosixFileSystem::CreatePages(const std::string& path, bool durable) {
  return CreatePageFile(path, durable);
}

std::unique_ptr<PersistentMemory> PosixFileSystem::MapPersistent(const std::string& path,
                                                                 const PersistentMapping& mapping) {
  return MapPosixMemory(path, mapping);
}

std::unique_ptr<BlockDevice> PosixFileSystem::Open(const std::string& path) { return OpenFileDevice(path); }

// Not mapped: a block that cannot be read would end the process with SIGBUS.
FileBytes PosixFileSystem::Map(const std::string& path) {
  constexpr size_t kPieceBytes = size_t{1} << 20;
  const auto device = OpenFileDevice(path);
  const auto size = static_cast<size_t>(device->SizeBytes());
  if (size == 0) return {};
  FileBytes file = SparseMemory(path, size);
  auto* const to = const_cast<std::byte*>(file.bytes.data());
  std::vector<std::byte> piece(std::min(kPieceBytes, size));
  for (size_t at = 0; at < size;) {
    const size_t bytes = device->Read(at, std::span(piece).first(std::min(piece.size(), size - at)));
    if (bytes == 0) ThrowErrno("read", path, at, EIO);  // it was truncated meanwhile
    CopyWritten(std::span(piece).first(bytes), to + at);
    at += bytes;
  }
  return file;
}

DirectoryKind PosixFileSystem::Describe(const std::string& directory, const DeviceOptions& options) {
  return dbx::Describe(directory, options);
}

}  // namespace dbx
