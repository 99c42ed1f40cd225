// A run of differential logging in miniature, and its crashes: workers that change slots in place under strict
// two-phase locking, abort with and without compensations, and run again under the same id; fuzzy checkpoints that
// succeed, fail, or are cut off; pages that appear while a checkpoint begins. One step at a time, in an order drawn
// from a seed. What a crash leaves are the bytes of logs, anchor and backups, and what the transactions that survive it
// had left.
//
// It is written from the protocol in logging/differential/README.md, and shares no code with the engine. Tests recover
// its crashes. Single-threaded.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "logging/format.h"
#include "tests/logging/log_builder.h"
#include "tests/reference/backup_builder.h"

namespace dbx {

class DifferentialRun {
 public:
  static constexpr uint64_t kRunId = 0xD1FF;
  static constexpr uint32_t kSlots = 4;  // of a page
  static constexpr uint32_t kTupleBytes = 8;
  static constexpr uint32_t kPagesMax = 8;
  static constexpr uint32_t kWorkers = 3;

  struct Image {
    bool present = false;
    uint64_t key = 0;
    uint64_t value = 0;
    bool operator==(const Image&) const = default;
  };
  using Images = std::map<std::pair<uint32_t, uint32_t>, Image>;  // by page and slot; those that are present

  struct Disk {
    std::vector<std::vector<std::byte>> logs;
    std::vector<std::byte> anchor;
    std::map<std::string, std::vector<std::byte>> backups;  // parts of the anchored copy, by name
    Images expected;                                        // what the winners left
    std::vector<uint64_t> winners;                          // ascending
    uint32_t number = 0;                                    // of the anchored checkpoint
  };

  // Of method DL1P or DL2P.
  DifferentialRun(uint64_t seed, uint32_t logs, format::DiffMethod method);
  void Step();
  // The power fails now: of each log everything that is durable is there, and any number of filled records behind it.
  Disk Crash();

 private:
  static constexpr uint32_t kParts = 2;
  enum class At : uint8_t {
    kIdle,
    kNext,       // the next change, or the end
    kApply,      // has a place, and does it
    kFill,       // has done it, and fills the place
    kCommit,     // has a place for its COMMIT
    kAbort,      // looks at the flag, and decides how
    kReserve,    // found it reset, and has no place for its ABORT yet
    kLookAgain,  // has a place for its ABORT
    kUndo,       // undoes without records
    kTakeBack,   // the next compensation, or ABORT
    kEnded       // is active still
  };
  enum class Checkpoint : uint8_t { kNone, kBegin, kCount, kWait, kPages, kReset, kList, kEnd, kSync, kAnchor };

  struct Slot {
    Image image;
    std::vector<uint64_t> lv;  // of its last writer
    int locked_by = -1;
  };
  struct Page {
    uint32_t number = 0;
    std::array<bool, 2> dirty = {true, true};
    std::array<Slot, kSlots> slots;
  };
  struct Record {
    format::RecordHeader header{};
    std::string body;
    bool filled = false;
  };
  struct Change {
    uint32_t page = 0;
    uint32_t slot = 0;
    bool presence = false;
    uint64_t key = 0;  // these two: the difference
    uint64_t value = 0;
  };
  struct Worker {
    At at = At::kIdle;
    uint64_t sequence = 0;
    bool runs_again = false;
    bool is_active = false;
    uint32_t log = 0;
    uint64_t first_lsn = 0;
    uint32_t changes_left = 0;
    std::vector<Change> undo;
    std::map<std::pair<uint32_t, uint32_t>, Image> after;
    std::vector<uint64_t> lv;
    Change change;
    size_t place = 0;  // the record in its log
    bool compensates = false;
  };
  struct Commit {
    uint64_t id;
    uint32_t log;
    size_t place;
    std::vector<uint64_t> lv;
    Images after;  // absent slots too
  };
  struct Backup {
    std::map<uint32_t, std::pair<uint32_t, BuiltPage>> pages;  // number and images, by page
  };

  bool OneIn(uint32_t n) { return random_() % n == 0; }
  uint64_t IdOf(uint32_t w) const { return TxnId::Make(WorkerId(w), workers_[w].sequence).value; }
  Slot& SlotOf(const Change& change) { return pages_[change.page].slots[change.slot]; }

  size_t Reserve(uint32_t log, format::RecordKind kind, size_t body_bytes);
  void FillEmpty(uint32_t log, format::RecordKind kind, std::string_view body);
  size_t ReadyUntil(uint32_t log) const;

  void StepOf(uint32_t w);
  void Begin(Worker& worker);
  void Next(uint32_t w);
  void ReserveChange(uint32_t w, bool compensates);
  void Apply(Worker& worker);
  void Fill(uint32_t w);
  void FinishCommit(uint32_t w);
  void LookAgain(Worker& worker);
  void Undo(Worker& worker);
  void FillAbort(uint32_t w);
  void End(uint32_t w, bool aborted);
  void AddPage();

  void StepCheckpoint();
  void BeginCheckpoint();
  void CopyPage();
  void AppendCheckpointEnd();
  void WriteAnchor();
  static BuiltPage ImagesOf(const Page& page);

  std::mt19937_64 random_;
  const uint32_t logs_count_;
  const bool compensates_always_;
  std::vector<std::vector<Record>> logs_;
  std::vector<uint64_t> reserved_;  // by log
  std::vector<size_t> durable_;     // records, by log
  std::vector<Page> pages_;
  std::vector<Worker> workers_;
  std::vector<Commit> commits_;
  Images initial_;
  uint64_t next_value_ = 1000;

  Checkpoint checkpoint_ = Checkpoint::kNone;
  bool flag_ = false;
  uint32_t number_ = 0;         // of the last checkpoint that began
  uint32_t new_pages_are_ = 0;  // the number of a page that appears
  uint32_t counted_ = 0, next_page_ = 0, next_log_ = 0;
  bool fails_ = false;
  std::vector<std::pair<uint64_t, uint32_t>> listed_;  // active transactions and their logs
  std::array<Backup, 2> backups_;
  BuiltAnchor draft_, anchor_;
};

}  // namespace dbx
