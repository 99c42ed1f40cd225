// The TEST workload: small tables, high contention, and procedures that make errors of concurrency control, logging and
// replay visible in the database itself.
//
// READ_WRITE: transfers between the accounts of a group, which keep its sum; audits, which read the group and store the
// sum they saw (a quiet one only if it is wrong: such a transaction is read-only as long as the sum is right); and
// programs over slots and shelves, rows that are inserted and deleted: reads, misses, inserts, deletes and rewrites,
// and over shelves, whose table is ordered, scans. Every fourth program is quiet too if it turns out to be read-only.
// CONFLICT: programs over a few counters. A counter ends at the number of committed increments.
//
// Each transaction that is not quiet leaves a row in HISTORY under its id, with the version of each row it read, wrote
// or missed; a version is named by the transaction that wrote it, and a row names its predecessor too. From these,
// benchmarks/test/history.h rebuilds the graph of dependencies and finds cycles. Values are hash chains over all values
// that the transaction saw, so that writes do not commute and a wrong read persists. Threads: Generate, Run and
// ValidArgs may run in any number of threads after Load.
#pragma once

#include <algorithm>
#include <array>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "benchmarks/test/history.h"
#include "benchmarks/workload.h"
#include "storage/tuple.h"

namespace dbx {

struct TestConfig {
  bool read_write = true;
  bool conflict = true;
  bool snapshot = false;  // write skew is no anomaly
  // Each read sees committed versions, of a time of its own: audits need not find the sum, and no rw edge counts.
  bool read_committed = false;
  uint32_t account_groups = 4;
  uint32_t counters = 4;
  uint32_t slots = 1024;                    // and as many shelves
  uint64_t expected_transactions = 10'000;  // of the whole run, for the size of HISTORY's index
};

namespace test {

inline constexpr ProcedureId kTransfer{0};
inline constexpr ProcedureId kAudit{1};
inline constexpr ProcedureId kProgram{2};

inline constexpr uint32_t kAccountsPerGroup = 8;
inline constexpr int64_t kInitialBalance = 100;
inline constexpr size_t kOperationsMax = 4;  // of a program, and perhaps kGiveUp
inline constexpr size_t kAccessesMax = 8;

inline constexpr Key kKeysPerScan = 4;
inline constexpr size_t kOperationsPerScan = 2;  // the number of operations that it counts as, by its accesses

enum class Place : uint8_t { kAccount, kCounter, kSlot, kShelf };
inline constexpr size_t kPlaces = 4;

// A row that transactions access: a place and a key in it, in one word.
inline constexpr int kObjectKeyBits = 48;
constexpr uint64_t MakeObject(Place place, Key key) { return static_cast<uint64_t>(place) << kObjectKeyBits | key; }
constexpr Place PlaceOf(uint64_t object) { return static_cast<Place>(object >> kObjectKeyBits); }
constexpr Key KeyOf(uint64_t object) { return object & ((uint64_t{1} << kObjectKeyBits) - 1); }

enum class Operation : uint8_t {
  kRead = 1,   // hit or miss
  kWrite,      // rewrite, or miss
  kReadWrite,  // read, then rewrite: a lock is upgraded, a read is validated before its own write
  kInsert,     // if absent, else read
  kDelete,     // if present, else miss
  kToggle,     // read, then insert or delete
  kScan,       // kKeysPerScan keys from this one on, all of them
  kScanBack,   // the same down from the last, up to the first row
  kGiveUp,     // rolls back all before; the last word of a program, without an object
};

// A word of a program's arguments.
inline constexpr int kOperationShift = 56;
constexpr uint64_t MakeOperation(Operation operation, uint64_t object) {
  return static_cast<uint64_t>(operation) << kOperationShift | object;
}

struct TransferArgs {
  TxnId id;
  uint32_t group;
  uint8_t from;
  uint8_t to;
  uint16_t amount;
};
static_assert(sizeof(TransferArgs) == 16);

struct AuditArgs {
  TxnId id;
  uint32_t group;
  uint32_t quiet;  // 1: store nothing if the sum is right
};
static_assert(sizeof(AuditArgs) == 16);

// A row of ACCOUNT, COUNTER, SLOT or SHELF.
struct TestRow {
  TxnId writer;
  TxnId predecessor;  // the writer before, kNoVersion for an inserted row
  uint64_t chain;     // a hash over the row's whole history
  int64_t value;      // balance, count
};
static_assert(sizeof(TestRow) == 32);

struct LoggedAccess {
  uint64_t kind_and_object;  // AccessKind << 56 | object
  TxnId version;
};

// A row of HISTORY: the accesses of one transaction.
struct HistoryRow {
  uint32_t procedure;
  uint32_t access_count;
  int64_t result;  // of an audit: the sum
  LoggedAccess accesses[kAccessesMax];

  void Add(AccessKind kind, uint64_t object, TxnId version) {
    ASSERT(access_count < kAccessesMax);
    accesses[access_count++] = {static_cast<uint64_t>(kind) << kOperationShift | object, version};
  }
  bool OnlyReads() const {
    return std::all_of(accesses, accesses + access_count, [](const LoggedAccess& access) {
      return access.kind_and_object >> kOperationShift <= static_cast<uint64_t>(AccessKind::kMiss);
    });
  }
};
static_assert(sizeof(HistoryRow) == 144);

// A transaction that leaves nothing in HISTORY, and its read set; a note of it in memory that survives the process.
struct QuietReader {
  TxnId id;
  HistoryRow row;
};
static_assert(sizeof(QuietReader) == 152);
inline constexpr uint64_t kReadersNotedMax = 1 << 16;  // of a worker, the first

}  // namespace test

class TestWorkload {
 public:
  static constexpr std::array kProcedureNames = {"transfer", "audit", "program"};

  // Throws Error(kUsage) if there is nothing to do or a size is out of range.
  explicit TestWorkload(const TestConfig& config);

  void CreateTables(Database& db);
  void Load(Database& db, uint64_t seed, uint32_t threads);
  void Adopt(Database&, uint64_t) {}
  CallList Generate(WorkerId worker, uint64_t count, uint64_t seed) const;
  // Backs the HISTORY rows that `transactions` of this worker will insert with pages.
  void Prefault(WorkerId worker, uint64_t transactions) { history_->PrefaultRows(worker, transactions); }

  template <TxnContext Ctx>
  Outcome Run(Ctx& ctx, ProcedureId procedure, std::span<const std::byte> args);

  bool ValidArgs(ProcedureId procedure, std::span<const std::byte> args) const;
  // Everything but the history stays in the caches.
  void PrefetchBuckets(const Call&) const {}
  void PrefetchRows(const Call&, WrittenRows) const {}

  // Sums, counts, and an anomaly of the history, in this order. Takes some seconds per million of transactions. Quiet
  // readers in `readers`, which have been acknowledged, are part of the history: the versions that they saw must be
  // there.
  std::optional<std::string> Inconsistency(const Database& db) const { return Inconsistency(db, {}); }
  std::optional<std::string> Inconsistency(const Database& db, std::span<const test::QuietReader> readers) const;
  // The history, with these readers, in Elle's format.
  void WriteHistory(const Database& db, std::span<const test::QuietReader> readers, std::ostream& out) const;

  // Notes of quiet readers: bytes that a worker needs, where it stores them, and those that it stored. The note of an
  // aborted attempt is overwritten by that of the retry.
  static constexpr uint64_t kNoteBytes = sizeof(test::QuietReader);
  static uint64_t NoteBytesFor(uint64_t transactions) {
    return kNoteBytes * std::min(transactions, test::kReadersNotedMax);
  }
  void NoteReadersIn(WorkerId worker, std::span<std::byte> notes) {
    if (worker.value() < notes_.size()) notes_[worker.value()] = {.left = notes};
  }
  static std::vector<test::QuietReader> ReadersIn(std::span<const std::byte> notes);

  // The table of a place.
  Table& table(test::Place place) const { return *tables_[static_cast<size_t>(place)]; }
  Table& history_table() const { return *history_; }

 private:
  static constexpr size_t kWorkersNotedMax = 1024;

  // An active transaction: the hash of what it has seen, and its HISTORY row.
  struct Progress {
    TxnId id;
    uint64_t seen;
    test::HistoryRow row{};
  };

  template <TxnContext Ctx>
  Outcome LookForUpdate(Ctx& ctx, uint64_t object, test::TestRow& row);
  template <TxnContext Ctx>
  Outcome Transfer(Ctx& ctx, const test::TransferArgs& args);
  template <TxnContext Ctx>
  Outcome Audit(Ctx& ctx, const test::AuditArgs& args);
  template <TxnContext Ctx>
  Outcome Program(Ctx& ctx, std::span<const std::byte> args);

  // Each returns kOk whether the object was there or not, and passes on every other outcome.
  template <TxnContext Ctx>
  Outcome Do(Ctx& ctx, test::Operation operation, uint64_t object, Progress& progress);
  template <TxnContext Ctx>
  Outcome Look(Ctx& ctx, uint64_t object, test::TestRow& row);
  template <TxnContext Ctx>
  Outcome Rewrite(Ctx& ctx, uint64_t object, int64_t value_change, Progress& progress, test::TestRow& before);
  template <TxnContext Ctx>
  Outcome Read(Ctx& ctx, uint64_t object, Progress& progress);
  template <TxnContext Ctx>
  Outcome Write(Ctx& ctx, uint64_t object, Progress& progress);
  template <TxnContext Ctx>
  Outcome ReadWrite(Ctx& ctx, uint64_t object, Progress& progress);
  template <TxnContext Ctx>
  Outcome Insert(Ctx& ctx, uint64_t object, Progress& progress);
  template <TxnContext Ctx>
  Outcome Delete(Ctx& ctx, uint64_t object, Progress& progress);
  template <TxnContext Ctx>
  Outcome DeleteSeen(Ctx& ctx, uint64_t object, const test::TestRow& row, Progress& progress);
  template <TxnContext Ctx>
  Outcome Toggle(Ctx& ctx, uint64_t object, Progress& progress);
  template <TxnContext Ctx>
  Outcome Scan(Ctx& ctx, ScanOrder order, uint64_t object, Progress& progress);
  template <TxnContext Ctx>
  Outcome Finish(Ctx& ctx, Progress& progress);
  Outcome FinishQuietly(const Progress& progress);

  // Adds an access to the hash and to the history row.
  static void Note(Progress& progress, AccessKind kind, uint64_t object, TxnId version, uint64_t chain);

  uint64_t objects_in(test::Place place) const;
  static bool Allowed(test::Operation operation, test::Place place);
  bool ValidTransfer(std::span<const std::byte> args) const;
  bool ValidAudit(std::span<const std::byte> args) const;
  bool ValidProgram(std::span<const std::byte> args) const;

  TestConfig config_;
  Table* tables_[test::kPlaces] = {};
  Table* history_ = nullptr;
  struct alignas(64) Notes {
    std::span<std::byte> left;
    TxnId last_id{};
    std::byte* last = nullptr;  // the note of `last_id`
  };
  std::vector<Notes> notes_{kWorkersNotedMax};  // by worker
};

}  // namespace dbx
