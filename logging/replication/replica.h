// The copy of a run's files that a replica keeps: it applies the frames of a connection (frame.h), in their order, to
// directories of its own.
//
// A connection begins with a run that is new: a replica creates every file that it changes, in directories that it made
// for this connection, and refuses any other path. Each directory is locked until the end, so that no process serves a
// run that still changes.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "logging/device/file_system.h"
#include "logging/replication/channel.h"
#include "logging/replication/frame.h"

namespace dbx {

class Replica {
 public:
  struct Result {
    uint64_t frames = 0;
    uint64_t bytes = 0;                    // of their bodies
    bool clean = false;                    // the run has ended by itself; else the connection was lost
    std::vector<std::string> directories;  // of the run
  };

  // `directories` are there. All three outlive it.
  Replica(FileSystem& files, const std::vector<std::string>& directories, ReplicaChannel& channel,
          FlushInstruction flush = FlushInstruction::kAuto)
      : files_(files), directories_(directories), channel_(channel), flush_(flush) {}

  // Until the run has ended or the connection is lost; without any frame it was no run's. Throws Error where a frame
  // cannot be applied (kCorrupt, kMismatch, kNoSpace, kIo), once the run has been told.
  Result Run();
  // The other side has said that it is a run.
  bool has_begun() const { return result_.frames > 0; }

 private:
  struct OpenFile {
    std::unique_ptr<BlockDevice> blocks;  // one of the three
    uint64_t end = 0;                     // of the blocks that were written
    std::unique_ptr<PageFile> pages;
    std::unique_ptr<PersistentMemory> memory;
    std::unique_ptr<PersistentWriter> writer;  // of the memory
  };

  bool ReceiveNext(ReceivedFrame& frame);
  void Apply(const ReceivedFrame& frame);
  void CheckHello(FrameReader reader) const;
  void MakeDirectory(const std::string& path);
  void Create(const FrameHeader& header, FrameReader reader);
  void Discard(const std::string& path, uint64_t from, uint64_t to);
  void Write(OpenFile& file, FrameReader reader);
  void Answer(FrameKind kind, uint64_t number, const std::string& text);
  OpenFile& FileOf(const FrameHeader& header);
  // Of a file in a directory that was made for this connection.
  std::string PathOf(const std::string& sent) const;
  // Of a log directory, or of one below.
  std::string DirectoryOf(const std::string& sent) const;

  FileSystem& files_;
  const std::vector<std::string>& directories_;
  ReplicaChannel& channel_;
  const FlushInstruction flush_;
  Result result_;
  std::set<std::string> made_;
  std::vector<DirectoryLock> locks_;
  std::map<uint32_t, OpenFile> open_;
};

}  // namespace dbx
