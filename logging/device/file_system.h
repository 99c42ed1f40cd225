// The operations that log storage needs of a file system, so that tests can substitute one that crashes.
//
// It is called when files are created, found, opened and removed, never per transaction: an open file is a BlockDevice
// with direct access to its bytes. Changes to a directory's entries (Create, MakeDirectory, Rename, Remove) may be
// lost, each by itself, until SyncDirectory of that directory has returned; Create syncs its own entry.
//
// Locks are on directories and between processes; within one process each holder is distinct.
//
// Models: PosixFileSystem (the product), EmulatedFileSystem over another one, FaultyFileSystem (tests). Errors are one
// line with verb, path and reason: kNoSpace, or kIo. Threads: one at a time, main's, or while transactions run the
// checkpointer's; devices and page files are used as block_device.h and page_file.h say.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "logging/device/block_device.h"
#include "logging/device/device_profile.h"
#include "logging/device/page_file.h"
#include "storage/persistent_memory.h"

namespace dbx {

enum class IoEngine { kAuto, kUring, kPwrite };

// How a new file is written.
struct DeviceOptions {
  IoEngine engine = IoEngine::kAuto;
  bool sync = true;    // false: a write is complete when the kernel has taken it; nothing is durable
  bool direct = true;  // O_DIRECT where the file system takes it
  // The file is created this large, so that no write allocates blocks or moves the end of the file.
  uint64_t preallocate_bytes = 0;
  // On a disk the preallocated blocks are also filled with zeros: the first write to a block that was
  // allocated only makes the file system log that change, which halves the rate of small synced writes.
  bool write_zeros = true;
  std::function<void(uint64_t)> zeros_written{};  // called with how many more, while Create writes; may be empty
  std::string named{};                            // the path that it will be renamed to, for its errors; may be empty
  uint32_t writes_in_flight = 8;                  // io_uring
};

struct DirectoryKind {
  std::string path;
  std::string kind;         // "real", "ram" or "emulated"
  std::string file_system;  // "ext4", "tmpfs", ...
  std::string io_engine;    // the engine that Create would use there; "pread, buffered" if it cannot write
  std::optional<DeviceEmulation> emulation{};
};

// All bytes of a file, read into memory, as long as `owner` exists.
struct FileBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

// Held until it is destroyed or the process ends, in whatever way.
using DirectoryLock = std::shared_ptr<const void>;

class FileSystem {
 public:
  enum class Entry { kNone, kFile, kDirectory, kOther };
  // kShared: any number of holders; kExclusive: exactly one.
  enum class LockKind { kShared, kExclusive };

  virtual ~FileSystem() = default;

  // The names in a directory, in order.
  virtual std::vector<std::string> List(const std::string& directory) = 0;
  // The kind of the entry at `path` itself; a link is kOther. kNone only if there is none: throws if that cannot be
  // determined.
  virtual Entry KindOf(const std::string& path) = 0;
  // The same text for every path that leads to this directory, another for any other. Throws unless it is one.
  virtual std::string IdentityOf(const std::string& directory) = 0;

  // False if an entry of that name exists.
  virtual bool MakeDirectory(const std::string& path) = 0;
  virtual void RemoveDirectory(const std::string& path) = 0;
  virtual void Remove(const std::string& path) = 0;
  // Within one directory; atomically replaces an entry `to`.
  virtual void Rename(const std::string& from, const std::string& to) = 0;
  virtual void SyncDirectory(const std::string& path) = 0;
  // Does not wait: null if another holder is in the way. Where there are no locks it excludes no process, with a
  // notice.
  virtual DirectoryLock LockDirectory(const std::string& path, LockKind kind) = 0;
  // Writes [from, to) of this file, as far as it goes, again in place, with the bytes that readers see, and syncs the
  // file. A sync alone does not suffice where an earlier one may have failed: Linux marks the pages clean then, so that
  // readers see bytes that the disk lacks, and later syncs succeed without writing it.
  virtual void Rewrite(const std::string& path, uint64_t from, uint64_t to) = 0;
  // Frees the blocks [from, to) of a file, which lie within it and are whole, and which no thread reads or writes; from
  // then on they are zeros. Nothing makes that durable: a crash may leave any of these blocks as they were. False: the
  // file system cannot, and nothing has changed.
  virtual bool Discard(const std::string& path, uint64_t from, uint64_t to) = 0;

  // A new file, for writing and reading; whole blocks are written. It and its entry are durable on return; after an
  // Error it is removed again.
  virtual std::unique_ptr<BlockDevice> Create(const std::string& path, const DeviceOptions& options) = 0;
  // A new file of pages that are written in place. It and its entry are durable on return; after an Error it is removed
  // again. Without `durable` its Sync does nothing.
  virtual std::unique_ptr<PageFile> CreatePages(const std::string& path, bool durable) = 0;
  // A file as memory.
  virtual std::unique_ptr<PersistentMemory> MapPersistent(const std::string& path,
                                                          const PersistentMapping& mapping) = 0;
  // For reading.
  virtual std::unique_ptr<BlockDevice> Open(const std::string& path) = 0;
  // Reads all of it now, so that a failing disk is an Error; zeros take no memory.
  virtual FileBytes Map(const std::string& path) = 0;

  // Examines a directory; tries the engines on a file that is deleted at once.
  virtual DirectoryKind Describe(const std::string& directory, const DeviceOptions& options) = 0;
};

// Creates a directory and its missing parents, durably.
void CreateDirectories(FileSystem& files, const std::string& directory);

// A new file `path` that holds `bytes`, padded with zeros to whole blocks: after a crash at any point it exists whole
// or not at all. Written as PATH.tmp, synced, renamed; then the directory is synced.
void WriteFileAtomically(FileSystem& files, const std::string& path, std::span<const std::byte> bytes);
// The same in two steps, for a caller to which a failure of the first makes no difference: `path` is untouched then.
// After a failure of the second it cannot be told which file a crash leaves there.
void WriteTemporaryFile(FileSystem& files, const std::string& path, std::span<const std::byte> bytes);
void PutTemporaryFileInPlace(FileSystem& files, const std::string& path);

// The name of a file that WriteFileAtomically has not finished.
std::string TemporaryName(const std::string& path);

// The directory that holds `path`: "a/b" for "a/b/c", "." for "c".
std::string ParentDirectory(const std::string& path);

// Is `path` the directory, or below it?
bool LiesIn(const std::string& path, const std::string& directory);

}  // namespace dbx
