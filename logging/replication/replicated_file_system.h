// A file system whose log directories have a copy elsewhere (models FileSystem): each change of a run's files goes to
// the file system beneath, and once it is durable there, to a replica.
//
// What the replica has is thus, after every frame, what a power failure could have left of the run itself at that
// moment: a failover is a restart from these files (Arulraj et al., "Write-Behind Logging", section 5, send images and
// commit records instead; logging/replication/README.md). The replica is never ahead.
//
// With a synchronous replica a write to a log is complete, and a Drain of a memory that commits (PersistentMapping)
// returns, only when the replica has it durably too. Nothing else waits.
//
// Files that this file system did not create, those of older runs among them, have no copy. Threads: as file_system.h
// says.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "logging/device/file_system.h"
#include "logging/replication/replica_stream.h"

namespace dbx {

class ReplicatedFileSystem final : public FileSystem {
 public:
  // `files` and `stream` outlive it and its files.
  ReplicatedFileSystem(FileSystem& files, std::vector<std::string> directories, ReplicaStream& stream)
      : files_(files), directories_(std::move(directories)), stream_(stream) {}

  std::vector<std::string> List(const std::string& directory) override { return files_.List(directory); }
  Entry KindOf(const std::string& path) override { return files_.KindOf(path); }
  std::string IdentityOf(const std::string& directory) override { return files_.IdentityOf(directory); }
  bool MakeDirectory(const std::string& path) override;
  void RemoveDirectory(const std::string& path) override;
  void Remove(const std::string& path) override;
  void Rename(const std::string& from, const std::string& to) override;
  void SyncDirectory(const std::string& path) override;
  DirectoryLock LockDirectory(const std::string& path, LockKind kind) override {
    return files_.LockDirectory(path, kind);
  }
  void Rewrite(const std::string& path, uint64_t from, uint64_t to) override { files_.Rewrite(path, from, to); }
  bool Discard(const std::string& path, uint64_t from, uint64_t to) override;
  std::unique_ptr<BlockDevice> Create(const std::string& path, const DeviceOptions& options) override;
  std::unique_ptr<PageFile> CreatePages(const std::string& path, bool durable) override;
  std::unique_ptr<PersistentMemory> MapPersistent(const std::string& path, const PersistentMapping& mapping) override;
  std::unique_ptr<BlockDevice> Open(const std::string& path) override { return files_.Open(path); }
  FileBytes Map(const std::string& path) override { return files_.Map(path); }
  DirectoryKind Describe(const std::string& directory, const DeviceOptions& options) override {
    return files_.Describe(directory, options);
  }

 private:
  // As frames have it; "" if the path lies in no log directory.
  std::string SentPathOf(const std::string& path) const;
  // Of something in a directory that was made here.
  bool HasCopy(const std::string& path) const { return made_.contains(ParentDirectory(path)); }
  void PutPath(FrameKind kind, const std::string& path) const;

  FileSystem& files_;
  const std::vector<std::string> directories_;
  ReplicaStream& stream_;
  std::set<std::string> made_;
  uint32_t next_file_ = 0;
};

}  // namespace dbx
