// The log of write-behind logging: records that say which stamps are durable, of which the newest valid one counts.
//
//   gaps.log := ring of 64 blocks of 4 KiB
//   record   := header gaps long_runners last_sequences     one to 16 consecutive blocks, from the start of a block
//
// A record is written behind the newest one, or in the ring's first blocks if it would not fit, so that the newest
// valid record is never overwritten: a crash leaves it, or the one that is being written, whole. A record is valid if
// its magic, its length, its heap and its checksum are right.
//
// Threads: one at a time appends.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/types.h"
#include "storage/heap/gap_set.h"
#include "storage/persistent_memory.h"

namespace dbx {

struct LongRunner {
  uint64_t stamp;
  bool operator==(const LongRunner&) const = default;
};

struct GapRecord {
  uint64_t heap_id = 0;
  uint64_t life = 0;      // counts restarts
  uint64_t sequence = 0;  // ascending over all lives
  uint64_t c_p = 0;       // all stamps up to it are durable, but for long runners and gaps
  uint64_t c_d = 0;       // no stamp from it on has been stored
  bool clean = false;     // the last one of a life that ended by itself
  std::optional<std::pair<uint64_t, uint64_t>> digest;  // of the database then
  GapSet gaps;                                          // of earlier lives
  std::vector<LongRunner> long_runners;                 // stamps up to c_p that were drawn and not installed
  std::vector<uint64_t> last_sequences;  // by worker: the number behind that of its last transaction up to c_p
};

// How far stamps may go beyond the clock of a record.
inline constexpr uint64_t kStampWindow = uint64_t{1} << 24;

// The stamps below c_d that do not count if this is the newest record that a restart finds.
GapSet LosersOf(const GapRecord& record);

// The record with which the next life begins, before it serves or adopts anything (Arulraj et al., section 4.3; that it
// is durable first is missing there, docs/errata.md). Its workers' transactions are numbered from `first_sequence` on.
// `drop_gaps`: no slot has the stamp of a loser any more.
GapRecord NextLifeOf(const GapRecord& newest, uint32_t workers, uint64_t first_sequence, bool drop_gaps,
                     uint64_t window = kStampWindow);
// Of a new heap, after its load.
GapRecord FirstRecordOf(uint64_t heap_id, uint32_t workers, uint64_t window = kStampWindow);

class GapLog {
 public:
  static constexpr size_t kBlockBytes = 4096, kBlocks = 64, kRecordBlocksMax = 16;
  static constexpr size_t kBytes = kBlocks * kBlockBytes;

  // Over zeros, or what an earlier life has left. Throws Error (kCorrupt) where the memory has another size.
  GapLog(PersistentMemory& memory, uint64_t heap_id);

  // The newest valid record of the heap.
  const std::optional<GapRecord>& newest() const { return newest_; }
  // Writes it behind the newest; it is durable on return. REQUIRES: its sequence is the newest one's next, it Fits.
  // Throws the error of a device.
  void Append(const GapRecord& record);

  // Whether a record of these, and of as many long runners as workers, fits.
  static bool Fits(size_t gaps, size_t workers);
  // A valid record of this heap, or of any, that begins here, if there is one.
  static std::optional<GapRecord> Decode(std::span<const std::byte> bytes, std::optional<uint64_t> heap_id);

 private:
  PersistentMemory& memory_;
  const std::unique_ptr<PersistentWriter> writer_;
  std::optional<GapRecord> newest_;
  size_t next_block_ = 0;
};

}  // namespace dbx
