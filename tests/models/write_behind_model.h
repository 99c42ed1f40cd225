// Write-behind logging (Arulraj, Perron, Pavlo, PVLDB 10(4), 2016) as a model, with the departures that
// logging/write_behind/README.md explains: a version is written once, to a free slot of the persistent heap, which
// names its key and its stamp; nothing persistent is a pointer. Two workers run a few transactions, write back what
// they have installed, and one committer commits groups; a collector zeroes the slots that are not needed any more. At
// any moment the power may fail. Memory then holds, of each 8-byte word, what was drained last or any value stored
// since. A restart from each of these images must show what a serial execution of the recovered transactions gives, and
// serves transactions of the next life, after which the power may fail again.
//
// A step is one access that others can see, or several that are made under the same lock. The order of the steps of a
// commit, of a group commit and of a restart is what the model is about; a Fault exchanges two of them, or leaves one
// out.
//
// Steps are in write_behind_worker.cpp and write_behind_commit.cpp, restart and verdict in write_behind_restart.cpp,
// the search is crash_search.h.
//
// Symbols: c_p: what is durable up to it but for long runners; c_d: below it all stamps of this life that were
// promised; C: the clock as a committer has loaded it; DTT: dirty tuple table, the slots that are installed and not yet
// drained; R: the recovered transactions.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/models/crash_search.h"

namespace dbx::models::write_behind {

inline constexpr size_t kWorkers = 2, kTxnsOfWorker = 2, kTxns = kWorkers * kTxnsOfWorker, kWritesMax = 2;
inline constexpr size_t kKeys = 3, kSlots = 5, kPlaces = 2, kLives = 3;
inline constexpr uint8_t kLoadStamp = 1;

// What is wrong with the rules. A comment says what is right where the name does not.
enum class Fault : uint8_t {
  kNone,
  // of workers
  kEntryLeavesBeforeDrain,  // the DTT forgets a slot when it is written back
  kAnnouncedAfterDraw,
  kStampedBeforeRecheck,  // and an abort does not take the stamp back
  kLimitIgnored,          // a stamp at or above the durable c_d is installed
  kClearedBeforeEntries,  // the worker's word is 0 before its slots are in the DTT
  kReleasedBeforeClear,   // locks are released while the word still is the stamp
  kGroupBeforeClear,      // the number of the group is loaded while the word still is the stamp
  kWordKeptUntilDrain,    // so that what others have read may be listed as a long runner
  kLastLineLeftOut,       // a tuple's last line is not written back
  // of the committer
  kClockAfterWords,
  kDirtyLeftOut,         // the committer does not write back what the workers have not
  kForeignDrainTrusted,  // ... and takes what a worker has written back for drained
  kCpFalls,              // c_p is not kept at what it was
  kLimitBeforeDrain,     // c_d counts before its record is drained
  kAckBeforeDrain,
  kGapsForgotten,  // a record does not carry the gaps of earlier lives
  kGapDroppedWithLosers,
  kGapDroppedUndrained,  // ... when its losers are zeroed, not drained
  kOnePlace,             // a record overwrites the newest
  kWriterByStamp,        // durable once c_p covers it, though the record may list it
  kReaderByStamp,
  kReaderAtOnce,
  // of the collector
  kFreedAtInstall,   // a version is freed when its successor is installed
  kFreedByStamp,     // ... when c_p covers its successor, though the record may list that
  kSnapshotIgnored,  // a version is freed that a reader may still look for
  kReusedUnzeroed,
  kReusedUndrained,
  kTombstoneFirst,  // a tombstone is freed before what it hides
  // of a restart
  kServesBeforeRecord,    // transactions begin before the first record of their life is durable
  kLongRunnersForgotten,  // those of the last record do not become gaps
  kGapShortAbove,         // the last stamp below c_d is not in the gap
  kGapShortBelow,         // c_p + 1 is not in the gap
  kClockFromCp,           // the clock goes on from c_p
  kOldestAdopted,         // of a key's versions not the newest
};

// ---- What transactions do ----

// A write of up to two keys, which may abort when its stamp is drawn, or a read of one.
struct Script {
  enum Kind : uint8_t { kNothing, kWrite, kAbort, kRead } kind = kNothing;
  std::array<uint8_t, kWritesMax> keys = {}, values = {};  // 0: no key; a value of 0 deletes
};
using Scripts = std::array<std::array<Script, kTxnsOfWorker>, kWorkers>;  // of one life

struct Scenario {
  std::string_view name;
  std::array<Scripts, kLives> lives;
  uint8_t life_count = 2;
  uint8_t window = 3;  // c_d = C + window + 1
  uint8_t slots = 4;
  uint8_t groups = 2;  // in a life, at most
};

// ---- States ----

// The actor that writes back and drains: a worker, or one of these. Drain covers the caller's own.
enum Caller : uint8_t { kCommitter = kWorkers, kCollector, kCallers };

// A word of persistent memory: what is durable, and what was stored since.
struct Word {
  static constexpr size_t kValuesMax = 4;
  uint8_t count;  // of values, at least 1
  uint8_t values[kValuesMax];
  uint8_t written_back[kCallers];  // the position that the caller's Drain will make durable; 0: none

  uint8_t now() const { return values[count - 1]; }
  void Store(uint8_t value);
  void WriteBack(Caller caller) { written_back[caller] = static_cast<uint8_t>(count - 1); }
  void Drain(Caller caller);
};

struct Record {
  uint32_t long_runners = 0, gaps = 0;  // stamps, a bit each
  uint8_t sequence = 0, c_p = 0, c_d = 0, valid = 0;
};
struct Place {
  Record durable, pending;
  uint32_t is_pending = 0;
};

struct Slot {
  enum Status : uint8_t { kFree, kPrivate, kVersion, kSuperseded, kLoser, kZeroing, kZeroingLoser };
  uint8_t status;
  uint8_t successor;  // of kSuperseded: the transaction that did so, + 1; 0: of an earlier life
  uint8_t dirty;      // in the DTT: the worker + 1
  uint8_t unused;
};

// The stages of a transaction that writes, in this order. A fault exchanges some.
enum class Stage : uint8_t {
  kTake,      // takes its slots and fills them
  kLock,      // its rows; and loads the clock
  kAnnounce,  // a bound of its stamp
  kDraw,
  kPublish,  // its word is its stamp
  kInstall,  // stores stamp and pointers, or aborts
  kEnter,    // its slots join the DTT
  kClear,    // its word is 0
  kGroup,    // loads the number of its group
  kRelease,  // its locks
  kEnd
};
using Stages = std::array<Stage, static_cast<size_t>(Stage::kEnd)>;
Stages StagesUnder(Fault fault);

struct Worker {
  // A Stage's position, or one of these.
  enum : uint8_t { kReading = 100, kHasRead, kFlushing };  // has its snapshot; has read; has written back
  uint8_t at, txn;                                         // txn: the number of the transaction in its script
  uint8_t word, word_is_stamp;                             // 0, an announced bound, or a drawn stamp: one word
  uint8_t bound, slots[kWritesMax];
  uint8_t unused;
};

struct Committer {
  enum Pc : uint8_t { kIdle, kClock, kWords, kWriteBack, kDrain, kRecord, kDrainRecord };
  uint8_t pc, at, clock;
  uint8_t words[kWorkers], words_are_stamps[kWorkers];
  uint8_t unused;
};

struct TxnState {
  enum End : uint8_t { kNone, kDrawn, kInstalled, kFinished, kAborted, kAcknowledged };
  uint8_t end, stamp, group;
  uint8_t saw;                    // of a reader: the stamp of what it read
  uint8_t overwrote[kWritesMax];  // stamps
};

struct State {
  Word words[kSlots][3];  // key, value, begin
  Slot slots[kSlots];
  Worker workers[kWorkers];
  Committer committer;
  TxnState txns[kTxns];
  uint8_t locks[kKeys + 1];     // by key: the worker + 1
  uint8_t in_flight[kCallers];  // slots whose write-back the caller has not drained
  uint8_t clock, limit, c_p, collecting, done, sequence;
  uint8_t until;    // up to it all is durable or aborted: c_p, but for the long runners of each record
  uint8_t served;   // the first record of this life is durable
  uint8_t twice;    // a stamp was drawn that was drawn before
  uint8_t misread;  // a reader did not see the version of its snapshot
  uint8_t unused[3];
  Place places[kPlaces];
  uint32_t gaps, used;  // stamps: in gaps of the last record; drawn in any life

  uint8_t now(size_t slot, int what) const { return words[slot][what].now(); }
  // The newest version of a key, with a stamp of at most `until`; kSlots: none.
  size_t Newest(uint8_t key, uint8_t until = 255) const;
};
enum { kKey, kValue, kBegin };  // the words of a slot

inline uint32_t BitOf(unsigned stamp) { return uint32_t{1} << stamp; }
inline size_t TxnOf(size_t worker, const State& state) { return worker * kTxnsOfWorker + state.workers[worker].txn; }

// What a power failure left, and what it must be taken for.
struct Image {
  uint8_t words[kSlots][3] = {};
  Record record;
  uint8_t expected[kKeys + 1] = {};  // by key: the value, 0: none
  uint32_t used = 0;
};

template <class... Args>
void Tell(std::string* text, fmt::format_string<Args...> format, Args&&... args) {
  if (text != nullptr) *text = fmt::format(format, std::forward<Args>(args)...);
}

// ---- The model ----

// What the searches of all lives share.
struct Memory {
  Fingerprints images;  // that were restarted from, with the life
  size_t crash_images = 0, states = 0;
  std::vector<std::string> trace;  // of the lives after the first, of the fault that was found
};

class Model {
 public:
  using State = write_behind::State;
  // A step of each worker; it writes back and drains; a step of the committer; the collector frees a slot, and drains.
  static constexpr uint8_t kFlushMove = kWorkers, kCommitMove = 2 * kWorkers, kFreeMove = kCommitMove + 1,
                           kDrainMove = kFreeMove + kSlots, kMoves = kDrainMove + 1;

  // The first life, or, with an image, a later one.
  Model(Fault fault, const Scenario& scenario, Memory& memory);
  Model(Fault fault, const Scenario& scenario, Memory& memory, const Image& image, uint8_t life);

  State Initial() const { return initial_; }
  bool Take(State& state, uint8_t move, std::string* text) const;
  std::string Judge(const State& state);
  bool IsEnd(const State& state) const;
  static uint64_t FingerprintOf(const State& state);

 private:
  bool Is(Fault fault) const { return fault_ == fault; }
  const Scripts& scripts() const { return scenario_.lives[life_]; }
  const Script& ScriptOf(size_t worker, const State& state) const {
    return scripts()[worker][state.workers[worker].txn];
  }

  // write_behind_worker.cpp
  bool TakeWorkerStep(State& state, size_t worker, std::string* text) const;
  bool Begin(State& state, size_t worker, std::string* text) const;
  bool Read(State& state, size_t worker, std::string* text) const;
  uint8_t ValueAt(const State& state, uint8_t key, uint8_t snapshot) const;
  bool EndRead(State& state, size_t worker, std::string* text) const;
  bool TakeSlots(State& state, size_t worker, std::string* text) const;
  bool LockKeys(State& state, size_t worker, std::string* text) const;
  bool Announce(State& state, size_t worker, std::string* text) const;
  bool Draw(State& state, size_t worker, std::string* text) const;
  bool Publish(State& state, size_t worker, std::string* text) const;
  bool Install(State& state, size_t worker, std::string* text) const;
  void Supersede(State& state, size_t worker, size_t write) const;
  bool Abort(State& state, size_t worker, std::string* text) const;
  bool Enter(State& state, size_t worker, std::string* text) const;
  bool Clear(State& state, size_t worker, std::string* text) const;
  bool LoadGroup(State& state, size_t worker, std::string* text) const;
  bool Release(State& state, size_t worker, std::string* text) const;
  bool Flush(State& state, size_t worker, std::string* text) const;
  void WriteBack(State& state, size_t slot, Caller caller) const;
  void Drain(State& state, Caller caller) const;
  void Next(State& state, size_t worker) const;

  // write_behind_commit.cpp
  bool TakeCommitStep(State& state, std::string* text) const;
  bool StartGroup(State& state, std::string* text) const;
  bool LoadForGroup(State& state, std::string* text) const;
  bool WriteBackDirty(State& state, std::string* text) const;
  void WriteRecord(State& state, std::string* text) const;
  void DrainRecord(State& state, std::string* text) const;
  Record NextRecord(const State& state) const;
  void Acknowledge(State& state) const;
  bool IsDurable(const State& state, size_t txn, bool by_stamp) const;
  bool MayFree(const State& state, size_t slot) const;
  bool MayFreeTombstone(const State& state, size_t slot) const;
  bool FreeSlot(State& state, size_t slot, std::string* text) const;
  bool DrainFreed(State& state, std::string* text) const;

  // write_behind_restart.cpp
  void Adopt(const Image& image);
  std::string JudgeImage(const State& state, Image& image);
  std::string JudgeRecovered(const State& state, const Record& record, uint32_t& recovered) const;
  std::string JudgeNextLife(const Image& image);

  const Fault fault_;
  const Stages stages_;
  const Scenario& scenario_;
  Memory& memory_;
  const uint8_t life_ = 0;
  uint8_t base_[kKeys + 1] = {};  // what this life began with
  std::string first_fault_;       // of the restart itself
  State initial_ = {};
};

}  // namespace dbx::models::write_behind
