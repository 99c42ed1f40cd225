// A run with differential logs in miniature, for tests of recovery: pages of four slots in memory, transactions under
// strict two-phase locking that change them, logs of their changes, fuzzy checkpoints. One thread calls its steps in
// any order that an engine could take them in. At any time it can crash, its logs cut anywhere behind what is durable;
// then it knows which state must be recovered.
//
// Nothing here is shared with the engine but the format: changes, numbers, dirty bits and vectors are kept anew, byte
// by byte.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "logging/backup/anchor_file.h"
#include "logging/differential_methods.h"
#include "logging/lane_recovery.h"
#include "storage/database.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/log_builder.h"

namespace dbx {

class PagedRun {
 public:
  static constexpr uint64_t kRunId = 0xD1FF;
  static constexpr uint32_t kRowsPerPage = 4;
  static constexpr std::array<uint32_t, 2> kTupleBytes = {24, 10};

  struct Place {
    uint16_t table = 0;
    uint32_t page = 0;
    uint16_t slot = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  // The rows that are there, by table and key.
  using State = std::map<std::pair<uint16_t, Key>, std::string>;

  struct Shape {
    uint32_t logs = 1;
    uint32_t parts = 1;
    bool runs = false;  // of changed words, where they are shorter
    DiffMethod method = DiffMethod::kDl1p;
  };

  // What a crash leaves, and what must be recovered from it.
  struct Crashed {
    std::vector<std::vector<std::byte>> logs;
    BackupAnchor anchor;
    FaultyFileSystem::Image backup;
    std::vector<std::string> directories;
    State state;
    std::set<uint64_t> winners;
  };

  explicit PagedRun(const Shape& shape);
  const Shape& shape() const { return shape_; }

  // Before Start, which writes the backup with which the run begins.
  void Load(const Place& at, Key key, uint64_t value);
  void Start();

  // --- transactions. Each attempt has its changes in one log. ---

  // The next attempt is about to change something.
  void Announce(uint64_t id, uint32_t log);
  bool IsAnnounced(uint64_t id) const { return attempts_.contains(id); }
  bool IsFree(const Place& at, uint64_t id) const;
  bool IsPresent(const Place& at) const { return SlotAt(at).present; }
  Key KeyAt(const Place& at) const { return SlotAt(at).key; }
  // A row that is not there is inserted; a page that is not there is added, with all before it.
  void Put(uint64_t id, const Place& at, Key key, uint64_t value);
  void Delete(uint64_t id, const Place& at);
  void Read(uint64_t id, const Place& at);
  // Of the COMMIT or ABORT of a method that has stamps; without it they draw it themselves.
  void DrawStamp(uint64_t id) { attempts_.at(id).stamp = ++last_stamp_; }
  void Commit(uint64_t id);  // no record, if nothing was changed
  // With compensations if a checkpoint runs, or if the method asks for them.
  void Abort(uint64_t id);
  // The transaction has ended, and a checkpoint still finds it announced until Forget.
  void Linger(uint64_t id, uint32_t log, uint64_t first) { lingering_[id] = {log, first}; }
  void Forget(uint64_t id) { lingering_.erase(id); }
  // All transactions of the worker with lower sequences have ended.
  void SetEndedBelow(uint32_t worker, uint64_t sequence) {
    if (ended_below_.size() <= worker) ended_below_.resize(worker + 1);
    ended_below_[worker] = sequence;
  }

  // --- a checkpoint, step by step ---

  void RaiseFlag();
  void AppendBegin(uint32_t log);
  void CountPages();  // once BEGIN is in all logs
  void CopyPage(uint16_t table, uint32_t page);
  void EndCheckpoint();  // the copy is complete
  void ListActive();
  void AppendEnd(uint32_t log);
  void WriteAnchor();  // once all ENDs are durable
  // Several steps.
  void BeginCheckpoint();
  void CopyPages();
  void AppendEnds();
  void Checkpoint();
  // There was no space: all pages count as reached, and as not in the copy.
  void FailCheckpoint();
  bool checkpoint_runs() const { return checkpoint_runs_; }
  uint32_t pages(uint16_t table) const { return static_cast<uint32_t>(pages_[table].size()); }
  uint32_t pages_to_copy(uint16_t table) const { return next_.tables[table].pages; }
  const BackupAnchor& anchor() const { return anchor_; }

  // --- logs ---

  LogBuilder& log(uint32_t index) { return logs_[index]; }
  uint64_t end(uint32_t index) const { return logs_[index].End(); }
  uint64_t durable(uint32_t index) const { return durable_[index]; }
  // All of the log is durable.
  void Flush(uint32_t index) { durable_[index] = end(index); }
  // An anchor of LSN vectors: the elements that it covers are left out.
  void AppendLvAnchor(uint32_t index) { log(index).Anchor(durable_); }

  // With logs that end at `ends`, and with an older anchor if it is given.
  Crashed Crash(const std::vector<uint64_t>& ends, const BackupAnchor* anchor = nullptr) const;
  Crashed Crash() const;  // with whole logs

 private:
  static constexpr uint32_t kCopies = 2;

  struct Slot {
    bool present = false;
    Key key = 0;
    std::string tuple;
    std::optional<uint64_t> holder{};
    std::vector<uint64_t> lv{};  // of its last writer
  };
  struct Page {
    std::vector<Slot> slots;
    uint32_t number = 0;
    bool dirty[kCopies] = {true, true};
  };
  struct Change {
    Place at;
    bool presence;
    Key key;
    std::string delta;
    // Afterwards; nothing: the row is gone.
    std::optional<std::pair<Key, std::string>> row;
  };
  struct Attempt {
    uint32_t log;
    uint64_t first;
    std::vector<Change> changes{};
    std::vector<uint64_t> lv;
    std::optional<uint64_t> stamp{};
  };
  struct Committed {
    uint64_t id;
    uint32_t log;
    uint64_t end;
    std::vector<uint64_t> lv;  // without its own place
    std::vector<Change> changes;
  };
  struct CopiedPage {
    std::string images;
    uint32_t number = 0;  // of the checkpoint that wrote it
  };
  struct Lingering {
    uint32_t log;
    uint64_t first;
  };

  Slot& SlotAt(const Place& at) { return pages_[at.table].at(at.page).slots.at(at.slot); }
  const Slot& SlotAt(const Place& at) const { return pages_[at.table].at(at.page).slots.at(at.slot); }
  void AddPages(uint16_t table, uint32_t count);
  void Lock(uint64_t id, const Place& at);
  void Release(uint64_t id, const std::vector<uint64_t>* lv);
  void Make(uint64_t id, const Change& change);
  void Append(uint64_t id, const Change& change, uint16_t flags);
  void AppendAbort(uint64_t id);
  uint64_t StampOf(uint64_t id);
  static std::string ImagesOf(const Slot& before, const std::string& delta);
  void Apply(const Change& change);
  static std::string ImagesOf(const Page& page);
  bool IsWinner(const Committed& committed, const std::vector<uint64_t>& ends) const;
  void WriteBackup(Crashed& to) const;

  const Shape shape_;
  std::vector<LogBuilder> logs_;
  std::vector<uint64_t> durable_;
  std::vector<Page> pages_[kTupleBytes.size()];
  std::map<Place, std::pair<Key, std::string>> loaded_;
  std::map<uint64_t, Attempt> attempts_;
  std::map<uint64_t, Lingering> lingering_;
  std::vector<uint64_t> ended_below_ = {0};  // by worker
  std::vector<Committed> committed_;
  uint64_t last_stamp_ = 0;  // of a COMMIT or an ABORT
  std::vector<CopiedPage> copies_[kCopies][kTupleBytes.size()];
  BackupAnchor anchor_;                        // of the last complete checkpoint
  BackupAnchor next_;                          // of the one that is being written
  std::vector<std::vector<uint64_t>> active_;  // by log, when the checkpoint ended
  uint32_t number_ = 0;                        // of the last checkpoint that has begun
  bool checkpoint_runs_ = false;
};

// The same with logs that were truncated below what the anchor needs: there is something there that is no record.
PagedRun::Crashed Truncated(PagedRun::Crashed crashed);

// A recovery of what a crash has left.
struct Restarted {
  ReplaySummary summary;
  PagedRun::State state;
  std::set<uint64_t> winners;
};
// The levels that the method has.
std::vector<uint32_t> LevelsOf(DiffMethod method);
struct RestartOptions {
  uint32_t level = 1;
  uint32_t workers = 2;
  size_t block_bytes = 4096;
  uint64_t ring_bytes = 1 << 20;
};
// Throws what it throws. `use`, if it is given, may use the database afterwards.
Restarted Restart(const PagedRun::Crashed& crashed, const RestartOptions& options = {},
                  const std::function<void(Database&)>& use = {});

}  // namespace dbx
