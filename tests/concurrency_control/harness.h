// The engine of directed tests (test_engine.h) under a pair of concurrency control and log scheme, for tests that are
// of that pair alone.
#pragma once

#include "concurrency_control/dl_detect.h"
#include "concurrency_control/hekaton.h"
#include "concurrency_control/lock_table.h"
#include "concurrency_control/no_wait.h"
#include "concurrency_control/silo.h"
#include "concurrency_control/tictoc.h"
#include "concurrency_control/two_phase_locking.h"
#include "concurrency_control/wait_die.h"
#include "logging/differential/differential_log.h"
#include "logging/none/no_log.h"
#include "logging/plover/plover_log.h"
#include "logging/serial/serial_log.h"
#include "logging/silo_r/silo_r_log.h"
#include "logging/taurus/taurus_log.h"
#include "system/pairs/pair_node.h"
#include "system/transaction/transaction.h"
#include "tests/concurrency_control/heap_only_log.h"
#include "tests/concurrency_control/test_engine.h"

namespace dbx::testing {

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

// A workload of one procedure.
struct Script {
  const Procedure& body;
  Outcome Run(auto& ctx, ProcedureId, std::span<const std::byte>) {
    TestContextOf context(ctx);
    return body(context);
  }
};

template <class Cc, class Log>
class Harness : public TestEngine {
 public:
  using CommitPoint = typename Log::CommitPoint;

  explicit Harness(const EngineOptions& options)
      : TestEngine(options, RowLayoutOf<Cc, Log>(options.logs), Log::kTraits) {
    if constexpr (Log::kTraits.logs) {
      LogOptions log_options;
      log_options.compress = options.compress;
      log_options.change_image = options.change_image;
      log_options.diff_method = options.diff_method;
      if constexpr (Log::kTraits.needs_pages) log_options.backup = NoBackup();
      if constexpr (Log::kTraits.needs_epochs) {
        log_options.epochs = &epochs_;
        log_options.frontier = std::make_shared<FrontierFile>(files_.Create("frontier", {}), kRunId);
      }
      log_ = std::make_unique<Log>(*logs_, log_options);
    } else {
      log_ = std::make_unique<Log>();
    }
    shared_ = std::make_unique<typename Cc::Shared>(*log_, epochs_, 64, stop_);
    if constexpr (Log::kTraits.version_heap && Cc::kTraits.multi_version)
      shared_->timestamps.StartAfter(Timestamp(heap_format::kLoadStamp));
    for (uint32_t w = 0; w < kWorkers; ++w) {
      epochs_.Enter(WorkerId(w));
      if constexpr (Log::kTraits.logs) log_->InitWorker(states_[w], WorkerId(w));
      transactions_.push_back(std::make_unique<Transaction<Cc, Log>>(*shared_, *log_, states_[w], WorkerId(w)));
    }
  }
  explicit Harness(uint32_t logs = 2, uint64_t ring_bytes = 1 << 20, bool ordered = false,
                   size_t tuple_bytes = sizeof(Tuple))
      : Harness(EngineOptions{logs, ring_bytes, ordered, tuple_bytes}) {}

  void HardenAll() override {
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
  bool IsDurable(uint32_t worker) override { return log_->IsDurable(CommitPoint(points_[worker].data())); }
  Lsn own_dependency([[maybe_unused]] uint32_t worker) override {
    if constexpr (requires { states_[worker].own_dependency; }) return Lsn(states_[worker].own_dependency);
    return {};
  }
  Lsn place([[maybe_unused]] uint32_t worker) override {
    if constexpr (requires { states_[worker].place.lsn; }) return states_[worker].place.lsn;
    return {};
  }
  Isolation isolation() override {
    if constexpr (Cc::kTraits.multi_version) return shared_->isolation;
    return Isolation::kSerializable;
  }
  uint64_t deadlocks_found() override {
    if constexpr (Cc::kTraits.detects_deadlocks) return shared_->policy.deadlocks().cycles;
    return 0;
  }

  typename Log::TxnState& state(uint32_t worker) { return states_[worker]; }
  Log& log() { return *log_; }
  typename Cc::Shared& shared() { return *shared_; }

 private:
  CallResult Attempt(uint32_t worker, const Procedure& body) override {
    Script script{body};
    const Call call{ProcedureId(1), args(worker)};
    return transactions_[worker]->Run(script, call, CommitPoint(points_[worker].data()));
  }

  std::unique_ptr<Log> log_;
  std::unique_ptr<typename Cc::Shared> shared_;
  std::array<typename Log::TxnState, kWorkers> states_;
  std::vector<std::unique_ptr<Transaction<Cc, Log>>> transactions_;
};

}  // namespace dbx::testing
