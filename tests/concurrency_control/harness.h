// A small engine for directed tests: one table of 32-byte tuples by default, streams over files in memory whose writers
// run only when the test says so, any number of workers driven by hand, in one thread, where a wait for a lock ends at
// once, or each in its own, after LetWorkersWait.
//
// A transaction is a lambda over the context, run in two halves if need be: Begin with accesses, then Commit. Each
// worker may also be a thread of its own.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "base/epoch.h"
#include "concurrency_control/dl_detect.h"
#include "concurrency_control/hekaton.h"
#include "concurrency_control/lock_table.h"
#include "concurrency_control/no_wait.h"
#include "concurrency_control/silo.h"
#include "concurrency_control/tictoc.h"
#include "concurrency_control/two_phase_locking.h"
#include "concurrency_control/wait_die.h"
#include "logging/device/faulty_file_system.h"
#include "logging/log_set.h"
#include "logging/none/no_log.h"
#include "logging/plover/plover_log.h"
#include "logging/serial/serial_log.h"
#include "logging/silo_r/silo_r_log.h"
#include "logging/taurus/taurus_log.h"
#include "storage/database.h"
#include "system/pair_types.h"
#include "system/transaction.h"

namespace dbx::testing {

struct Tuple {
  uint64_t value;
  uint64_t rest[3];
};

template <class Log>
using NoWaitRows = TwoPhaseLocking<Log, RowLocks, NoWait>;
template <class Log>
using NoWaitTable = TwoPhaseLocking<Log, LockTableLocks, NoWait>;
template <class Log>
using WaitDieRows = TwoPhaseLocking<Log, RowLocks, WaitDie>;
template <class Log>
using WaitDieTable = TwoPhaseLocking<Log, LockTableLocks, WaitDie>;
template <class Log>
using DlDetectRows = TwoPhaseLocking<Log, RowLocks, DlDetect>;
template <class Log>
using DlDetectTable = TwoPhaseLocking<Log, LockTableLocks, DlDetect>;

// Its Shared is told of the isolation level before workers are made.
template <class Log>
class HekatonSnapshot : public Hekaton<Log> {
 public:
  struct Shared : Hekaton<Log>::Shared {
    explicit Shared(auto&&... args) : Hekaton<Log>::Shared(args...) { this->isolation = Isolation::kSnapshot; }
  };
  using Hekaton<Log>::Hekaton;
};

// A workload whose procedure is whatever lambda it was given last.
template <class F>
struct Script {
  F body;
  Outcome Run(auto& ctx, ProcedureId, std::span<const std::byte>) { return body(ctx); }
};

template <class Cc, class Log>
class Harness {
 public:
  static constexpr uint32_t kWorkers = 4;
  using CommitPoint = typename Log::CommitPoint;

  // The functions that name a value are for tuples of the usual size.
  explicit Harness(uint32_t logs = 2, uint64_t ring_bytes = 1 << 20, bool ordered = false,
                   size_t tuple_bytes = sizeof(Tuple))
      : database_(RowLayoutOf<Cc, Log>(logs), kWorkers), epochs_(kWorkers) {
    Schema schema;
    schema.name = "T";
    schema.tuple_bytes = tuple_bytes;
    schema.expected_rows = 1000;
    schema.ordered = ordered;
    table_ = &database_.CreateTable(schema);
    std::vector<LogSet::Target> targets;
    for (uint32_t i = 0; i < logs; ++i) {
      auto device = files_.Create("log" + std::to_string(i), {});
      std::vector<std::byte> header(format::kStreamOffset);
      device->StartWrite(0, header);
      device->Complete(true);
      targets.push_back({std::move(device), 0});
    }
    LogSetOptions options;
    options.run_id = 7;
    options.ring_bytes = ring_bytes;
    options.workers = kWorkers;
    logs_ = std::make_unique<LogSet>(std::move(targets), options);
    if constexpr (Log::kTraits.logs) {
      LogOptions log_options;
      if constexpr (Log::kTraits.needs_epochs) {
        log_options.epochs = &epochs_;
        log_options.frontier = std::make_shared<FrontierFile>(files_.Create("frontier", {}), options.run_id);
      }
      log_ = std::make_unique<Log>(*logs_, log_options);
    } else {
      log_ = std::make_unique<Log>();
    }
    shared_ = std::make_unique<typename Cc::Shared>(*log_, epochs_, 64, stop_);
    for (uint32_t w = 0; w < kWorkers; ++w) {
      epochs_.Enter(WorkerId(w));
      if constexpr (Log::kTraits.logs) log_->InitWorker(states_[w], WorkerId(w));
      transactions_.push_back(std::make_unique<Transaction<Cc, Log>>(*shared_, *log_, states_[w], WorkerId(w)));
    }
  }

  void LoadRow(Key key, uint64_t value) {
    const Tuple tuple{value, {}};
    table_->LoadRow(WorkerId(0), key, std::as_bytes(std::span(&tuple, 1)));
  }

  // Runs `body(ctx)` as a transaction of `worker`; its commit point goes to point(worker).
  template <class F>
  CallResult Run(uint32_t worker, F body) {
    args_[worker][0] = TxnId::Make(WorkerId(worker), sequences_[worker]++).value;
    return RunAgain(worker, body);
  }
  // The worker's last transaction, which was aborted.
  template <class F>
  CallResult RunAgain(uint32_t worker, F body) {
    Script<F> script{body};
    Call call{ProcedureId(1), std::as_writable_bytes(std::span(args_[worker]))};
    return transactions_[worker]->Run(script, call, CommitPoint(points_[worker].data()));
  }

  // The transactions that tests are made of.
  CallResult Write(uint32_t worker, Key key, uint64_t value) {
    return Run(worker, [&](auto& ctx) {
      return ctx.Update(*table_, key, [&](auto& tuple) { tuple.template SetAt<uint64_t>(0, value); });
    });
  }
  CallResult Insert(uint32_t worker, Key key, uint64_t value) {
    return Run(worker, [&](auto& ctx) {
      const Tuple tuple{value, {}};
      return ctx.Insert(*table_, key, std::as_bytes(std::span(&tuple, 1)));
    });
  }
  CallResult Delete(uint32_t worker, Key key) {
    return Run(worker, [&](auto& ctx) { return ctx.Delete(*table_, key); });
  }
  // kMissing if there is no such row.
  static constexpr uint64_t kMissing = ~uint64_t{0};
  CallResult Read(uint32_t worker, Key key, uint64_t* value = nullptr) {
    return Run(worker, [&](auto& ctx) {
      uint64_t seen = kMissing;
      const Outcome outcome =
          ctx.Read(*table_, key, [&](const auto& tuple) { seen = tuple.template GetAt<uint64_t>(0); });
      if (value != nullptr) *value = seen;
      return outcome == Outcome::kNotFound ? Outcome::kOk : outcome;
    });
  }
  // The keys of a range as a transaction of its own sees them.
  CallResult Scan(uint32_t worker, Key low, Key high, std::vector<Key>* keys = nullptr) {
    return Run(worker, [&](auto& ctx) {
      if (keys != nullptr) keys->clear();
      return ctx.Scan(*table_, low, high, ScanOrder::kAscending, [&](Key key, const auto&) {
        if (keys != nullptr) keys->push_back(key);
        return true;
      });
    });
  }
  uint64_t ValueOf(Key key) {
    uint64_t value = 0;
    EXPECT_EQ(Read(kWorkers - 1, key, &value).outcome, Outcome::kOk);
    return value;
  }

  // One flush of log `i`, by hand.
  void Flush(uint32_t i) {
    LogStream& stream = logs_->stream(i);
    stream.AppendPad();
    stream.StartFlush(1 << 20);
    stream.CompleteFlush(true);
  }
  void FlushAll() {
    for (uint32_t i = 0; i < logs_->count(); ++i) Flush(i);
  }

  // Makes everything durable that was committed, as the writers and the ticker of epochs would.
  void HardenAll() {
    if constexpr (Log::kTraits.logs) {
      for (uint32_t w = 0; w < kWorkers; ++w) log_->Idle(states_[w]);
      epochs_.Advance();
      for (uint32_t w = 0; w < kWorkers; ++w) epochs_.Refresh(WorkerId(w));
      for (uint32_t i = 0; i < logs_->count(); ++i) log_->BeforeFlush(logs_->stream(i));
      FlushAll();
      for (uint32_t i = 0; i < logs_->count(); ++i) log_->AfterFlush(logs_->stream(i));
      // A scheme may have a thread of its own that finds out.
      for (int i = 0; i < 1000 && !IsDurable(0); ++i) host::SleepFor(std::chrono::milliseconds(1));
    }
  }

  // Lets a worker unlink what has become forgettable.
  void Sweep(uint32_t worker) {
    for (int i = 0; i < 5; ++i) {
      epochs_.Advance();
      for (uint32_t w = 0; w < kWorkers; ++w) epochs_.Refresh(WorkerId(w));
    }
    SweepInThisEpoch(worker);
  }
  void SweepInThisEpoch(uint32_t worker) {
    for (int i = 0; i < 300; ++i) (void)Run(worker, [](auto&) { return Outcome::kOk; });
  }

  // Of the worker's transaction that runs, or ran last.
  TxnId id(uint32_t worker) const { return TxnId{args_[worker][0]}; }
  // From now on a worker waits for a lock until it has it or the test says Stop.
  void LetWorkersWait() { stop_.store(false); }
  void Stop() { stop_.store(true); }

  const uint64_t* point(uint32_t worker) const { return points_[worker].data(); }
  bool IsDurable(uint32_t worker) { return log_->IsDurable(CommitPoint(points_[worker].data())); }
  typename Log::TxnState& state(uint32_t worker) { return states_[worker]; }

  Table& table() { return *table_; }
  Log& log() { return *log_; }
  LogSet& logs() { return *logs_; }
  EpochClock& epochs() { return epochs_; }
  Stamp frontier_stamp() { return ReadFrontier(files_.Map("frontier").bytes, 7, "frontier").stamp; }
  uint64_t frontier_bytes() { return files_.Open("frontier")->SizeBytes(); }
  typename Cc::Shared& shared() { return *shared_; }

 private:
  Database database_;
  EpochClock epochs_;
  Table* table_;
  FaultyFileSystem files_;
  std::unique_ptr<LogSet> logs_;
  std::unique_ptr<Log> log_;
  Atomic<bool> stop_{true};
  std::unique_ptr<typename Cc::Shared> shared_;
  std::array<typename Log::TxnState, kWorkers> states_;
  std::array<std::array<uint64_t, format::kMaxLogs>, kWorkers> points_{};
  std::array<std::array<uint64_t, 2>, kWorkers> args_{};
  std::vector<std::unique_ptr<Transaction<Cc, Log>>> transactions_;
  std::array<uint64_t, kWorkers> sequences_{};
};

}  // namespace dbx::testing
