// A small engine for directed tests: one table of 32-byte tuples by default, streams over files in memory whose writers
// run only when the test says so, any number of workers driven by hand, in one thread, where a wait for a lock ends at
// once, or each in its own, after LetWorkersWait.
//
// A transaction is a lambda over a TestContext. Which pair of concurrency control and log scheme it runs under is known
// to Harness<Cc, Log> (harness.h) alone, so that a test is compiled once for all pairs (pairs.h).
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/epoch.h"
#include "concurrency_control/contract.h"
#include "logging/backup/backup_options.h"
#include "logging/contract.h"
#include "logging/frontier_file.h"
#include "logging/log_options.h"
#include "logging/log_set.h"
#include "storage/database.h"
#include "storage/row.h"
#include "system/result.h"
#include "system/transaction/transaction.h"
#include "tests/concurrency_control/test_context.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx::testing {

struct Tuple {
  uint64_t value;
  uint64_t rest[3];
};

using Procedure = std::function<Outcome(TestContext&)>;

struct EngineOptions {
  uint32_t logs = 2;
  uint64_t ring_bytes = 1 << 20;
  bool ordered = false;
  size_t tuple_bytes = sizeof(Tuple);  // the functions that name a value are for tuples of the usual size
  bool compress = true;                // LSN vectors
  ChangeImage change_image = ChangeImage::kSlot;
  DiffMethod diff_method = DiffMethod::kDl1p;
  // Of a persistent heap. A thread that is not scheduled keeps all versions that others supersede meanwhile.
  size_t heap_bytes = size_t{64} << 20;
};

class TestEngine {
 public:
  static constexpr uint32_t kWorkers = 4;

  virtual ~TestEngine() = default;

  void LoadRow(Key key, uint64_t value);
  void LoadRow(Key key, std::span<const std::byte> tuple);

  // Runs `body(ctx)` as a transaction of `worker`; its commit point goes to point(worker).
  CallResult Run(uint32_t worker, const Procedure& body);
  // The worker's last transaction, which was aborted.
  CallResult RunAgain(uint32_t worker, const Procedure& body) { return Attempt(worker, body); }

  // The transactions that tests are made of.
  CallResult Write(uint32_t worker, Key key, uint64_t value);
  CallResult Insert(uint32_t worker, Key key, uint64_t value);
  CallResult Delete(uint32_t worker, Key key);
  // kMissing if there is no such row.
  static constexpr uint64_t kMissing = ~uint64_t{0};
  CallResult Read(uint32_t worker, Key key, uint64_t* value = nullptr);
  // The keys of a range as a transaction of its own sees them.
  CallResult Scan(uint32_t worker, Key low, Key high, std::vector<Key>* keys = nullptr);
  uint64_t ValueOf(Key key);

  // One flush of log `i`, by hand.
  void Flush(uint32_t i);
  void FlushAll();
  // Makes everything durable that was committed, as the writers and the ticker of epochs would.
  virtual void HardenAll() = 0;

  // Lets a worker unlink what has become forgettable.
  void Sweep(uint32_t worker);
  void SweepInThisEpoch(uint32_t worker);

  // Of the worker's transaction that runs, or ran last.
  TxnId id(uint32_t worker) const { return TxnId{args_[worker][0]}; }
  // From now on a worker waits for a lock until it has it or the test says Stop.
  void LetWorkersWait() { stop_.store(false); }
  void Stop() { stop_.store(true); }

  const uint64_t* point(uint32_t worker) const { return points_[worker].data(); }
  virtual bool IsDurable(uint32_t worker) = 0;
  // Of a scheme with commands: up to where its own log must be replayed before the worker's last record, and where that
  // record lies.
  virtual Lsn own_dependency(uint32_t worker) = 0;
  virtual Lsn place(uint32_t worker) = 0;
  virtual Isolation isolation() = 0;
  virtual uint64_t deadlocks_found() = 0;

  Table& table() { return *table_; }
  Database& database() { return database_; }
  LogSet& logs() { return *logs_; }
  FaultyFileSystem& files() { return files_; }
  VersionHeap& heap() { return *heap_; }
  EpochClock& epochs() { return epochs_; }
  Stamp frontier_stamp() { return ReadFrontier(files_.Map("frontier").bytes, kRunId, "frontier").stamp; }
  uint64_t frontier_bytes() { return files_.Open("frontier")->SizeBytes(); }

 protected:
  TestEngine(const EngineOptions& options, const RowLayout& layout, const LogTraits& log);
  // Of a paged database: a backup that is never written.
  std::shared_ptr<BackupOptions> NoBackup();

  static constexpr uint64_t kRunId = 7;

  virtual CallResult Attempt(uint32_t worker, const Procedure& body) = 0;
  void BeginNext(uint32_t worker);
  std::span<std::byte> args(uint32_t worker) { return std::as_writable_bytes(std::span(args_[worker])); }

  FaultyFileSystem files_;
  std::unique_ptr<PersistentMemory> memory_;  // of a heap of versions, if there is one
  std::unique_ptr<VersionHeap> heap_;
  Database database_;
  EpochClock epochs_;
  Table* table_;
  std::unique_ptr<LogSet> logs_;
  Atomic<bool> stop_{true};
  std::array<std::array<uint64_t, format::kMaxLogs>, kWorkers> points_{};

 private:
  std::array<std::array<uint64_t, 2>, kWorkers> args_{};
  std::array<uint64_t, kWorkers> sequences_{};
};

}  // namespace dbx::testing
