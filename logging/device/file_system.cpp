#include "logging/device/file_system.h"

#include "base/bytes.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace dbx {
namespace {

constexpr size_t kBlockBytes = 4096;

struct FreeDeleter {
  void operator()(std::byte* p) const { std::free(p); }
};

}  // namespace

std::string ParentDirectory(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void CreateDirectories(FileSystem& files, const std::string& directory) {
  if (directory.empty() || files.KindOf(directory) == FileSystem::Entry::kDirectory) return;
  const std::string parent = ParentDirectory(directory);
  if (parent != directory) CreateDirectories(files, parent);
  files.MakeDirectory(directory);
  files.SyncDirectory(parent);
}

std::string TemporaryName(const std::string& path) { return path + ".tmp"; }

void WriteFileAtomically(FileSystem& files, const std::string& path, std::span<const std::byte> bytes) {
  WriteTemporaryFile(files, path, bytes);
  PutTemporaryFileInPlace(files, path);
}

void WriteTemporaryFile(FileSystem& files, const std::string& path, std::span<const std::byte> bytes) {
  const size_t padded = RoundUp(bytes.size(), kBlockBytes);
  // Devices that bypass the page cache need aligned memory.
  const std::unique_ptr<std::byte, FreeDeleter> block(static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, padded)));
  if (!block) throw std::bad_alloc();
  std::memset(block.get(), 0, padded);
  std::memcpy(block.get(), bytes.data(), bytes.size());
  const std::string temporary = TemporaryName(path);
  // A crash may have left one.
  if (files.KindOf(temporary) == FileSystem::Entry::kFile) files.Remove(temporary);
  const auto device = files.Create(temporary, {.engine = IoEngine::kPwrite, .direct = false});
  device->StartWrite(0, {block.get(), padded});
  device->Complete(true);
}

void PutTemporaryFileInPlace(FileSystem& files, const std::string& path) {
  files.Rename(TemporaryName(path), path);
  files.SyncDirectory(ParentDirectory(path));
}

}  // namespace dbx
