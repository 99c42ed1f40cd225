// A file whose pages are written in place, again and again: a part of a backup (logging/backup/). It is read through
// FileSystem::Open.
//
// A write is not durable before the next Sync has returned, and until then a crash leaves any mix of the old sectors
// and the new ones: a page of several sectors may be torn. So the pages of a backup that recovery may need are never
// written over. After an error the file has failed for good and every call throws it again: a failed sync is never
// retried, as the page cache may have dropped the bytes.
//
// Threads: one at a time. Models: the files of PosixFileSystem, EmulatedFileSystem and FaultyFileSystem (tests).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dbx {

class PageFile {
 public:
  virtual ~PageFile() = default;

  // Whole blocks of 4096 bytes, at a multiple of these; makes the file longer if need be. `bytes` need no alignment,
  // and may be changed when it returns. Throws Error (kIo, kNoSpace) with path, offset and errno's text.
  virtual void WriteAt(uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Makes all that was written durable.
  virtual void Sync() = 0;

  virtual const std::string& path() const = 0;
};

}  // namespace dbx
