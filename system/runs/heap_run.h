// The persistent heap of a run and the log of its gaps (storage/heap, logging/gaps), from their creation or a restart
// to the end: the files `heap.pm` and `gaps.log` in the run's directory, and `indexes.pm` (index_file.h).
//
// A restart goes on in the same files, as the run's next life. It begins with a record that is durable before anything
// is served, adopted or changed: the stamps that the life before had promised and not made durable become a gap. Life n
// numbers its transactions from (n - 1) * 2^32 on.
//
// Threads: main's; the sweep, and adoption on demand through the tables, by workers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "logging/device/file_system.h"
#include "logging/gaps/gap_log.h"
#include "logging/gaps/heap_options.h"
#include "storage/database.h"
#include "storage/heap/adoption.h"
#include "storage/heap/superblock.h"
#include "storage/heap/version_heap.h"
#include "system/runs/log_files.h"

namespace dbx {

class HeapRun {
 public:
  static constexpr int kSequenceBitsOfLife = 32;

  // A new run's, of `heap_bytes`, or of as many as the rows that the tables expect need, and their later versions: its
  // files are durable, in the state of loading. The tables of `database`, which outlives this, have their versions in
  // it from now on. Throws Error: kUsage where it is too small for the tables, kNoSpace, kIo.
  static std::unique_ptr<HeapRun> Create(FileSystem& files, const RunNames& names, uint64_t heap_bytes,
                                         FlushInstruction flush, Database& database);
  // A run's whose process has ended; `private_copy`: the files stay as they are. Nothing is changed yet. Throws Error:
  // kCorrupt, kMismatch (another run's, of tables of another shape, or its load was never complete), kIo.
  static std::unique_ptr<HeapRun> Open(FileSystem& files, const RunNames& names, bool private_copy,
                                       FlushInstruction flush, Database& database);

  // Of a new one: the database is loaded, and its secondary indexes are frozen. Its first record is durable on return.
  void EndLoad(FileSystem& files, const RunNames& names);

  // Of a restart. Throws Error (kCorrupt) for the first slot that cannot be; with `checksums`, of the versions that
  // count these are verified too. Changes nothing.
  void Check(uint32_t threads, bool checksums) const { adoption_->CheckAll(threads, checksums); }
  // The record of the new life is durable on return. Throws Error: kNoSpace after 2^16 lives, kCorrupt, kIo.
  void StartLife(uint32_t threads);
  // Transactions may run from now on.
  void NoteReady() { ready_ticks_ = Clock::NowTicks(); }
  // What is left to adopt; of a private copy without a new life.
  void AdoptAll(uint32_t threads);

  // What the log is given. Workers adopt what is left, if there is anything. With `index_lines`, as many lines for each
  // change of an index, in an extent of each worker's own: throws Error (kNoSpace) where the heap has none left.
  HeapOptions OptionsOfLog(uint64_t flush_interval_us, uint32_t index_lines = 0);

  const GapRecord& newest() const { return *gaps_->newest(); }
  uint64_t first_sequence() const { return FirstSequenceOf(newest().life); }
  // No snapshot lies below it, and no transaction draws it or one before it.
  Timestamp start() const { return Timestamp(newest().c_p); }
  const VersionHeap& heap() const { return *heap_; }
  std::string memory_kind() const { return memory_->kind(); }
  // Of the clock, 0: not yet.
  uint64_t opened_ticks() const { return opened_ticks_; }
  uint64_t ready_ticks() const { return ready_ticks_; }
  uint64_t adopted_ticks() const { return adopted_ticks_.load(std::memory_order_acquire); }

  static uint64_t FirstSequenceOf(uint64_t life) { return (life - 1) << kSequenceBitsOfLife; }

 private:
  HeapRun(Database& database, std::unique_ptr<PersistentMemory> memory, std::unique_ptr<PersistentMemory> gaps_memory,
          const Superblock& superblock);
  void NoteAdopted();
  std::vector<std::byte*> TakeLines(WorkerId worker);

  Database& database_;
  const std::unique_ptr<PersistentMemory> memory_, gaps_memory_;
  Superblock superblock_;
  const uint64_t opened_ticks_;
  uint64_t ready_ticks_ = 0;
  Atomic<uint64_t> adopted_ticks_{0};
  std::unique_ptr<VersionHeap> heap_;
  std::unique_ptr<GapLog> gaps_;
  std::unique_ptr<Adoption> adoption_;         // of a restart
  std::unique_ptr<PersistentMemory> indexes_;  // which the database's secondary indexes need
};

}  // namespace dbx
