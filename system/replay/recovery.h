// Recovery, the whole of it:
//
//     recover: [device] -> decode -> order -> replay
//
// Redo only: logs hold records of pre-committed transactions alone, so nothing is undone. A log scheme's recovery knows
// the device, the format and the order; the replayer knows rows and procedures, single-version or multi-version.
// Reading, checking and replaying overlap: every worker decodes when nothing is ready. Whether the logs end in a torn
// tail or in damage is decided last; an Error leaves a database that must be thrown away.
#pragma once

#include <concepts>
#include <exception>
#include <functional>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "base/thread_place.h"
#include "base/types.h"
#include "logging/lane_recovery.h"
#include "storage/database.h"
#include "storage/version_store.h"
#include "system/replay/replayer.h"

namespace dbx {

// A scheme's recovery as the replay sees it; logging/schemes.h lists those that model it.
template <class R>
concept LogRecovery = requires(R& recovery, const std::vector<LogSource>& logs, WorkerId worker, uint32_t log) {
  { recovery.Open(logs) } -> std::same_as<void>;
  { recovery.Decode(worker) } -> std::same_as<bool>;
  { recovery.NextReady(worker) } -> std::same_as<TxnRecord*>;
  { recovery.MarkReplayed(worker) } -> std::same_as<void>;
  { recovery.Stop() } -> std::same_as<void>;
  { recovery.Finish() } -> std::same_as<ReplaySummary>;
  { recovery.source(log) } -> std::same_as<const LogSource&>;
  { recovery.Watermark() } -> std::same_as<Timestamp>;
};

// Runs `work(WorkerId)` on `workers` threads, one of them the caller's. After an exception it calls `stop`, waits
// for all of them and throws the first one again.
template <class Work, class Stop>
void RunWorkers(uint32_t workers, Work&& work, Stop&& stop) {
  Mutex mutex;
  std::exception_ptr first;
  const auto run_as = [&](uint32_t worker) {
    const ThreadPlace place = ThreadPlace::OfWorker(worker);
    work(WorkerId(worker));
  };
  const auto guard = [&](auto&& run) {
    try {
      run();
    } catch (...) {
      stop();
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  {
    std::vector<Thread> threads;
    guard([&] {
      for (uint32_t worker = 1; worker < workers; ++worker) {
        threads.emplace_back([&, worker] { guard([&] { run_as(worker); }); });
      }
      run_as(0);
    });
  }
  if (first) std::rethrow_exception(first);
}

// The loop of one worker until everything is replayed. `of_txn` is for the context of the transactions.
template <ReplayMode kMode, LogRecovery R, Workload W>
void ReplayRecords(R& recovery, Database& db, W& workload, WorkerId worker, std::vector<TxnId>* names,
                   auto&&... of_txn) {
  constexpr uint32_t kRecordsPerCollect = 32;
  Replayer<W, kMode> replayer(db, workload, names, of_txn...);
  uint32_t records = 0;
  while (recovery.Decode(worker)) {
    while (TxnRecord* record = recovery.NextReady(worker)) {
      replayer.Replay(*record, recovery.source(record->log));
      recovery.MarkReplayed(worker);
      if constexpr (kMode == ReplayMode::kManyVersions) {
        if (++records % kRecordsPerCollect == 0) replayer.Collect(recovery.Watermark());
      }
    }
  }
  if constexpr (kMode == ReplayMode::kManyVersions) replayer.Collect(recovery.Watermark());
}

// The same on all workers, in the mode of the logs. The transaction ids are appended to (*recovered)[worker], if it is
// not null.
template <LogRecovery R, Workload W>
void ReplayOnWorkers(R& recovery, bool many_versions, Database& db, W& workload, uint32_t workers,
                     std::vector<std::vector<TxnId>>* recovered) {
  const auto run = [&](auto&& replay) {
    const auto with_names = [&](WorkerId worker) {
      std::vector<TxnId> names;
      replay(worker, recovered == nullptr ? nullptr : &names);
      if (recovered != nullptr) (*recovered)[worker.value()] = std::move(names);
    };
    RunWorkers(workers, with_names, [&] { recovery.Stop(); });
  };
  if constexpr (R::kManyVersions) {
    if (many_versions) {
      // Read by all workers, so they stay until the last one has ended, error or not.
      std::vector<CachePadded<VersionStore>> versions(workers);
      return run([&](WorkerId worker, std::vector<TxnId>* names) {
        ReplayRecords<ReplayMode::kManyVersions>(recovery, db, workload, worker, names, worker,
                                                 versions[worker.value()].value);
      });
    }
  }
  constexpr ReplayMode kMode = R::kNewestWins ? ReplayMode::kNewestWins : ReplayMode::kInOrder;
  run([&](WorkerId worker, std::vector<TxnId>* names) {
    ReplayRecords<kMode>(recovery, db, workload, worker, names, worker);
  });
}

// Replays `logs` into a freshly loaded `db`, with as many workers as `recovery` was created for. Where commands have
// timestamps its rows have room for a version chain. `recovered`, if not null, gets one list of transaction ids per
// worker; `replayed`, if not null, is called between replay and the verdict on the logs' ends. Throws Error.
template <LogRecovery R, Workload W>
ReplaySummary Recover(R& recovery, const std::vector<LogSource>& logs, Database& db, W& workload, uint32_t workers,
                      std::vector<std::vector<TxnId>>* recovered = nullptr,
                      const std::function<void()>* replayed = nullptr) {
  if (recovered != nullptr) recovered->assign(workers, {});
  recovery.Open(logs);
  ReplayOnWorkers(recovery, logs.front().many_versions, db, workload, workers, recovered);
  if (replayed != nullptr) (*replayed)();
  return recovery.Finish();
}

}  // namespace dbx
