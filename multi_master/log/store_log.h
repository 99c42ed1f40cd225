// One master's log at a Log Store, on disk and in memory (multi_master.md, 14.8): frames on block devices.
//
//   log-MASTER-NUMBER    frames (store_file.h), a new file each time the store is opened
//
// Frames are numbered through all files. Opening reads them all. The first frame of the newest file that is not whole
// ends the log, if it may be torn: if no later frame shows that it had been synced (each holds how many frames were
// when it was written); else, or in an older file below the end that its successor states, the log is damaged: Error
// (kCorrupt) with its place. What is relied upon is written again and synced first, as an earlier sync may have failed
// (FileSystem::Rewrite).
//
// Threads: one; reads by another one (log_store.h keeps them apart).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "logging/device/aligned_buffer.h"
#include "logging/device/file_system.h"
#include "multi_master/log/log_messages.h"
#include "multi_master/log/store_file.h"

namespace dbx::mm {

// What a log is, apart from its bytes: the same after each frame whether it is written or read.
struct StoreLogState {
  ClusterEpoch fence;          // no older epoch writes
  ClusterEpoch writer;         // of the last kOpen
  Lsn end;                     // the log is here up to this
  Lsn sealed;                  // up to this it is sealed
  std::vector<Lsn> part_ends;  // of the sealed parts, ascending
};

struct FrameToWrite {
  StoreFrame kind = StoreFrame::kData;
  ClusterEpoch epoch;
  Lsn at;
  uint32_t length = 0;
  std::vector<std::byte> bytes;
};

class StoreLog {
 public:
  // kRead: changes nothing in the directory, and is not written.
  enum class Use : uint8_t { kWrite, kRead };

  // Reads the log in `directory`, or begins an empty one; begins a new file. Throws Error: kCorrupt; kMismatch for
  // files of another version, cluster or log.
  StoreLog(FileSystem& files, const std::string& directory, MasterId log, uint32_t salt, Use use = Use::kWrite);

  // Of all frames that are synced.
  const StoreLogState& state() const { return state_; }
  // Writes frames as one batch, and syncs. They follow each other: a kData begins at the end of what is before. Changes
  // nothing that a Read sees, and may run beside one.
  void Sync(const std::vector<FrameToWrite>& frames);
  // The frames of the last Sync count from now on.
  void Publish(std::vector<FrameToWrite> frames);

  // Up to `bytes_max` of the log from `at` on, below `until`, and within one of its parts.
  std::vector<std::byte> Read(Lsn at, Lsn until, size_t bytes_max);
  // The end of the sealed part in which `at` lies; 0: it is not sealed.
  Lsn PartEnd(Lsn at) const;
  // Where that part begins.
  Lsn PartBegin(Lsn at) const;

  static void Apply(const FrameToWrite& frame, StoreLogState& state);

 private:
  // A piece of the log: where its bytes are.
  struct Piece {
    Lsn at;
    uint32_t length = 0;
    uint32_t file = 0;    // of files_
    uint64_t offset = 0;  // of its bytes there
    uint32_t bytes = 0;
    std::vector<std::byte> cached;  // the bytes, if they are still in memory
  };

  void ReadFile(uint32_t file, uint64_t end_frame, bool is_newest);
  bool HasFrame(BlockDevice& file) const;
  void Begin(const std::string& path);
  void Take(FrameToWrite frame, uint32_t file, uint64_t offset, bool caches);
  void CutPieces(Lsn at);
  void OpenFiles();
  std::string PathOf(uint32_t number) const;
  [[noreturn]] void Damaged(uint32_t file, uint64_t offset, const std::string& why) const;

  static constexpr uint64_t kCachedBytesMax = 16 << 20;

  FileSystem& file_system_;
  const std::string directory_;
  const MasterId log_;
  const uint32_t salt_;
  const Use use_;
  std::vector<std::unique_ptr<BlockDevice>> files_;  // the last is written
  std::vector<uint64_t> first_frames_;               // of those that were there
  StoreLogState state_;
  uint64_t next_frame_ = 0;  // its number
  uint64_t write_offset_ = 0;
  std::deque<Piece> pieces_;
  uint64_t cached_bytes_ = 0;
  size_t first_cached_ = 0;  // of pieces_
};

}  // namespace dbx::mm
