#include "logging/device/file_system.h"

#include "base/bytes.h"
#include "logging/device/aligned_buffer.h"
#include "logging/format.h"

namespace dbx {

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
  const AlignedBuffer blocks = CopyToBlocks(bytes);
  const std::string temporary = TemporaryName(path);
  // A crash may have left one.
  if (files.KindOf(temporary) == FileSystem::Entry::kFile) files.Remove(temporary);
  const auto device = files.Create(temporary, {.engine = IoEngine::kPwrite, .direct = false});
  device->StartWrite(0, {blocks.get(), RoundUp(bytes.size(), format::kBlockBytes)});
  device->Complete(true);
}

void PutTemporaryFileInPlace(FileSystem& files, const std::string& path) {
  files.Rename(TemporaryName(path), path);
  files.SyncDirectory(ParentDirectory(path));
}

bool LiesIn(const std::string& path, const std::string& directory) {
  return path.starts_with(directory) &&
         (path.size() == directory.size() || directory.ends_with('/') || path[directory.size()] == '/');
}

}  // namespace dbx
