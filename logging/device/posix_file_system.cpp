#include "logging/device/posix_file_system.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "logging/device/file_device.h"
#include "logging/device/posix_file.h"

namespace dbx {

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

void PosixFileSystem::Sync(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) ThrowErrno("open", path, errno);
  if (::fsync(fd.get()) != 0) ThrowErrno("sync", path, errno);
}

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
