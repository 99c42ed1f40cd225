#include "system/run.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/epoch.h"
#include "base/error.h"
#include "base/host.h"
#include "base/stop.h"
#include "base/thread_place.h"
#include "logging/backup/backup_options.h"
#include "logging/backup/checkpointer.h"
#include "storage/digest.h"
#include "system/log_interval.h"
#include "system/pairs/pair_types.h"
#include "system/perf_counters.h"
#include "system/replay/heap_restart.h"
#include "system/replay/recovery_run.h"
#include "system/replay/verify.h"
#include "system/replay/workload_check.h"
#include "system/runs/row_checkpoint.h"
#include "system/series_sampler.h"

namespace dbx {
namespace {

CheckpointOptions CheckpointOptionsOf(const Options& options) {
  return {options.checkpoint_interval_ms, options.checkpoint_bytes};
}

// One run's moving parts, declared in the order of their construction.
class Run {
 public:
  Run(const Options& options, LogStorage& storage, Node& node, WorkloadRef workload)
      : options_(options),
        storage_(storage),
        node_(node),
        workload_(workload),
        database_(node.database()),
        control_(node.control()) {}

  RunResult Measure() {
    // Inherited by all threads that the run starts.
    if (options_.perf) perf_.emplace();
    Load();
    OpenLogs();
    MakeRowCheckpoints();
    const EpochTicker ticker(node_.epochs(), std::chrono::milliseconds(options_.epoch_period_ms));
    StartWorkers();
    AwaitWorkers();
    Finish();
    return std::move(result_);
  }

 private:
  const LogTraits& log_traits() const { return node_.log_traits(); }
  // Rows for more transactions are faulted in as they are inserted.
  static constexpr uint64_t kPrefaultTransactionsMax = 1'000'000;

  void Load() {
    const uint64_t begin = Clock::NowTicks();
    if (options_.continue_run) {
      log_traits().version_heap ? RestartOldHeap() : RecoverOldRuns();
    } else {
      MakeTables({});
      // Into a heap once its file is there.
      if (!log_traits().version_heap) LoadTables();
    }
    result_.load_seconds = Clock::ToSeconds(Clock::NowTicks() - begin);
  }

  void LoadTables() {
    std::visit([this](auto* workload) { workload->Load(database_, options_.seed, options_.thread_cnt); }, workload_);
  }

  // `rows_per_page`, by table: of the pages that are recovered, where tables are paged.
  void MakeTables(std::vector<uint32_t> rows_per_page) {
    if (log_traits().needs_pages) database_.PageEveryTable(options_.page_bytes, std::move(rows_per_page));
    if (log_traits().version_heap) database_.ExpectVersionHeap();
    std::visit([this](auto* workload) { CreateTables(options_, *workload, database_); }, workload_);
    node_.CheckTables(LogOptionsOf(options_, {}),
                      std::min(options_.max_log_entry_size, LogStream::RingBytes(options_.log_buffer_size) / 4));
  }

  // Restarts the run's heap, in which this run goes on as its next life.
  void RestartOldHeap() {
    old_runs_ = storage_.Open(options_);
    OldRun& run = old_runs_->chain.back();
    MakeTables({});
    RefuseForHeaps(options_, run);
    CheckLogsMatch(run, log_traits(), SchemaHash(database_));
    CheckContinuable(run, options_);
    // Of a copy: the heap is as it was if that throws.
    if (options_.verify) VerifyHeap(options_, storage_.files(), run, workload_);
    node_.Hold(RestartHeap(options_, storage_, run, workload_, database_));
    result_.run_number = run.number;
    result_.directories = storage_.Describe(options_, run);
    first_sequence_ = node_.heap()->first_sequence();
    first_stamp_ = StampOf(node_.heap()->start());
    CreateAckFile(run.header().run_id);
    node_.Hold(std::move(run.locks));
    old_runs_.reset();
  }

  // A new run's, with the database in it.
  void LoadHeap(const RunNames& names) {
    auto heap = HeapRun::Create(storage_.files(), names, options_.heap_bytes, FlushOf(options_), database_);
    LoadTables();
    heap->EndLoad(storage_.files(), names);
    first_stamp_ = StampOf(heap->start());
    node_.Hold(std::move(heap));
  }

  // Recovers the run to be continued and freezes it: no client sees any of its state before that is durable.
  void RecoverOldRuns() {
    old_runs_ = storage_.Open(options_);
    MakeTables(RowsPerPage(*old_runs_));
    for (const OldRun& run : old_runs_->chain) CheckLogsMatch(run, log_traits(), SchemaHash(database_));
    CheckContinuable(old_runs_->newest(), options_);
    const uint64_t checkpoint_rows =
        LoadStart(StartStateOf(*old_runs_), storage_.files(), options_.seed, options_.thread_cnt, workload_, database_);
    const std::vector<RecoveredRun> recovered =
        options_.redo_on_demand()
            ? FindChains()
            : ReplayRuns(log_traits().scheme, options_, storage_.files(), *old_runs_, workload_, database_);
    OldRun& newest = old_runs_->chain.back();
    std::optional<Digest128> digest;
    if (options_.verify) {
      // These files are the new run's.
      Options without_acks = options_;
      without_acks.ack_file.clear();
      without_acks.history_file.clear();
      digest = chains_
                   ? VerifyReplayed(without_acks)
                   : VerifyRecovery(without_acks, storage_.files(), *old_runs_, recovered, workload_, database_).digest;
    }
    // What a checkpoint will have.
    if (digest && chains_ && chains_->is_complete() && DigestOf(database_, options_.thread_cnt) != *digest) {
      throw Error(ExitStatus::kInternal, "the rows that were rebuilt are not those of the replayed logs");
    }
    if (newest.frozen) {
      storage_.KeepFrozen(newest);
    } else {
      const ReplaySummary& summary = recovered.back().summary;
      storage_.Freeze(newest, SourcesOf(newest), summary.durable, FrozenOf(summary, digest));
    }
    result_.before.parent_run = newest.number;
    result_.before.runs = recovered.size();
    for (const RecoveredRun& run : recovered) result_.before.recovered += run.summary.recovered;
    result_.before.checkpoint_rows = checkpoint_rows;
  }

  // Rows will be rebuilt when they are needed. A checkpoint needs all of them.
  std::vector<RecoveredRun> FindChains() {
    const uint64_t begin = Clock::NowTicks();
    chains_ = std::make_unique<RowChains>(database_);
    std::vector<RecoveredRun> recovered = AnalyseRuns(log_traits().scheme, options_, *old_runs_, *chains_);
    chains_->TakeOut(options_.thread_cnt);
    result_.redo.emplace().rows = chains_->rows_at_start();
    result_.redo->analysis_seconds = Clock::ToSeconds(Clock::NowTicks() - begin);
    if (options_.checkpoint) RebuildAll();
    return recovered;
  }

  void RebuildAll() {
    if (!chains_) return;
    result_.redo->rebuilt_on_demand = chains_->rebuilt_on_demand();
    chains_->EnsureAll(options_.thread_cnt);
    result_.redo->records_read = chains_->records_read();
  }

  // What the logs leave, replayed as a whole into a database of its own: the run's is not complete.
  Digest128 VerifyReplayed(const Options& options) {
    const auto verify = [&]<class WorkloadT>(WorkloadT*) {
      WorkloadT fresh = MakeWorkload<WorkloadT>(options);
      Database replayed({}, options.thread_cnt);
      CreateTables(options, fresh, replayed);
      LoadStart(StartStateOf(*old_runs_), storage_.files(), options.seed, options.thread_cnt, &fresh, replayed);
      const std::vector<RecoveredRun> recovered =
          ReplayRuns(log_traits().scheme, options, storage_.files(), *old_runs_, &fresh, replayed);
      return VerifyRecovery(options, storage_.files(), *old_runs_, recovered, &fresh, replayed).digest;
    };
    return std::visit(verify, workload_);
  }

  FrozenRun FrozenOf(const ReplaySummary& summary, const std::optional<Digest128>& digest) const {
    const OldRun& run = old_runs_->newest();
    FrozenRun frozen;
    frozen.database_id = run.header().database_id;
    frozen.run_id = run.header().run_id;
    frozen.frontier = summary.frontier;
    if (digest) frozen.digest.emplace(digest->low, digest->high);
    // A run without transactions of its own still has stamps above those that it continues.
    const RunManifest before = run.manifest.value_or(RunManifest());
    frozen.next_sequence = std::max(summary.next_sequence, before.first_sequence);
    frozen.highest_stamp = std::max(summary.highest_stamp, before.first_stamp);
    frozen.highest_lsn = summary.highest_lsn;
    frozen.stamp_end = summary.stamp_end;
    return frozen;
  }

  // The new run's files; with the state that it continues, if there is one.
  NewLogFiles CreateFiles() {
    const auto prepare = [this](const RunNames& names) {
      if (log_traits().version_heap) LoadHeap(names);
      CreateAckFile(names.run_id);
    };
    if (!old_runs_) return storage_.Create(options_, log_traits(), SchemaHash(database_), prepare, database_);
    const uint64_t begin = Clock::NowTicks();
    const Continuation continuation{old_runs_->newest(), database_, options_.checkpoint};
    first_sequence_ = continuation.first_sequence();
    start_lsn_ = continuation.start_lsn();
    first_stamp_ = continuation.first_stamp();
    NewLogFiles files =
        storage_.Create(options_, log_traits(), SchemaHash(database_), prepare, database_, &continuation);
    if (options_.drop_old_runs) DropOldRuns();
    // Their logs are read until all chains are done with.
    if (!chains_ || chains_->is_complete()) old_runs_.reset();
    result_.recovery_seconds = result_.load_seconds + Clock::ToSeconds(Clock::NowTicks() - begin);
    return files;
  }

  // The new run does not need them, so a failed deletion is only a notice.
  void DropOldRuns() {
    const std::string notice = storage_.DeleteOldRuns(options_, *old_runs_);
    if (!notice.empty()) std::fprintf(stderr, "notice: %s\n", notice.c_str());
  }

  void CreateAckFile(uint64_t run_id) {
    if (options_.ack_file.empty()) return;
    const uint64_t most = MostTransactionsPerWorker(options_);
    uint64_t note_bytes = 0;
    const auto note_bytes_of = [&]<class WorkloadT>(const WorkloadT*) {
      if constexpr (requires { WorkloadT::kNoteBytes; }) note_bytes = WorkloadT::NoteBytesFor(most);
    };
    std::visit(note_bytes_of, workload_);
    ack_file_ = AckFile::Create(options_.ack_file, run_id, options_.thread_cnt, most, first_sequence_, note_bytes);
  }

  LogOptions OptionsOfLog(const NewLogFiles& files) {
    LogOptions options = LogOptionsOf(options_, first_stamp_);
    if (files.backup) {
      auto backup = std::make_shared<BackupOptions>(BackupOptions{&database_,
                                                                  &storage_.files(),
                                                                  files.backup,
                                                                  files.anchor_path,
                                                                  *files.anchor,
                                                                  CheckpointOptionsOf(options_),
                                                                  {},
                                                                  options_.checkpoint_cpu_perc});
      if (options_.log_truncation) backup->truncated_logs = files.log_paths;
      options.backup = std::move(backup);
    }
    if (node_.heap() != nullptr) {
      options.heap = std::make_shared<const HeapOptions>(
          node_.heap()->OptionsOfLog(options_.log_flush_interval_us, options_.index_lines));
    }
    if (log_traits().needs_epochs) {
      node_.epochs().StartAfter(EpochTid::EpochOf(TidOf(first_stamp_)));
      options.epochs = &node_.epochs();
      options.frontier = files.frontier;
    }
    return options;
  }

  void OpenLogs() {
    if (node_.heap() != nullptr) {
      node_.OpenLog(nullptr, OptionsOfLog({}));
    } else if (log_traits().logs) {
      NewLogFiles files = CreateFiles();
      result_.checkpoint_bytes = files.checkpoint_bytes;
      result_.run_number = files.run_number;
      result_.directories = files.directories;
      row_files_ = files.rows;
      node_.Hold(std::move(files.locks));
      std::unique_ptr<LogSet> logs;
      if (!log_traits().version_heap) {
        logs = std::make_unique<LogSet>(std::move(files.targets), LogSetOptionsOf(options_, files.run_id, start_lsn_));
      }
      node_.OpenLog(std::move(logs), OptionsOfLog(files));
      if (node_.logs() != nullptr && !options_.series_file.empty()) node_.logs()->TimeSpaceWaits();
    } else {
      node_.OpenLog(nullptr, {});
      CreateAckFile(0);
    }
    // Above those of all transactions in the logs, recovered or dropped.
    node_.OpenControl(LockTableBuckets(options_), IsolationOf(options_), TimestampOf(first_stamp_));
  }

  void MakeRowCheckpoints() {
    if (!TakesRowCheckpoints(options_, log_traits())) return;
    control_.ended_below = std::vector<CachePadded<Atomic<uint64_t>>>(options_.thread_cnt);
    for (auto& ended : control_.ended_below) ended.value.store(first_sequence_);
    const std::string truncated = row_files_.truncated.paths.empty() ? "" : row_files_.truncated.paths.front();
    LogSet& logs = *node_.logs();
    checkpointer_ = std::make_unique<Checkpointer>(
        std::make_unique<RowCheckpoint>(storage_.files(), database_, logs, node_.epochs(), control_,
                                        node_.MakeRowCopier(WorkerId(options_.thread_cnt)), row_files_,
                                        CheckpointPace(options_.checkpoint_cpu_perc)),
        [&logs] { return logs.reserved_bytes(); }, CheckpointOptionsOf(options_), truncated);
  }

  // Once the workers run: the time in which their calls are generated is not to fill the figures with checkpoints of
  // nothing.
  void StartCheckpoints() {
    try {
      checkpointer_ ? checkpointer_->Start() : node_.StartCheckpoints();
    } catch (...) {
      EndThreads();
      throw;
    }
  }

  void StartWorkers() {
    WorkerOptions worker_options = WorkerOptionsOf(options_);
    worker_options.first_sequence = first_sequence_;
    const uint64_t calls = CallListLength(options_);
    workers_.resize(options_.thread_cnt);
    errors_.resize(options_.thread_cnt);
    generation_ticks_.resize(options_.thread_cnt);
    for (uint32_t w = 0; w < options_.thread_cnt; ++w) {
      StartThread([this, w, calls, worker_options] {
        try {
          const ThreadPlace place = ThreadPlace::OfWorker(w);
          workers_[w] = MakeWorker(WorkerId(w), calls, worker_options);
          ready_.fetch_add(1);
          workers_[w]->Run(control_);
        } catch (...) {
          errors_[w] = std::current_exception();
          if (node_.logs() != nullptr) node_.logs()->Fail(errors_[w]);
          ready_.fetch_add(1);
          control_.warm.fetch_add(1);
          control_.finished.fetch_add(1);
          control_.stop.store(true);
        }
      });
    }
  }

  // By the thread that uses it: its memory is NUMA-local, and the lists are generated in parallel.
  std::unique_ptr<WorkerThread> MakeWorker(WorkerId id, uint64_t calls, const WorkerOptions& worker_options) {
    const uint64_t transactions = std::min(ExpectedTransactionsPerWorker(options_), kPrefaultTransactionsMax);
    // A restart into a heap serves at once.
    const bool prefaults = node_.heap() == nullptr || node_.heap()->newest().life == 1;
    const uint64_t begin = Clock::NowTicks();
    const auto generate = [&](auto* workload) {
      if (prefaults) workload->Prefault(id, transactions);
      return workload->Generate(id, calls, options_.seed + first_sequence_);
    };
    CallList list = std::visit(generate, workload_);
    generation_ticks_[id.value()] = Clock::NowTicks() - begin;
    return node_.MakeWorker(id, workload_, std::move(list), worker_options, ack_file_.get());
  }

  // Throws when a thread cannot be created, after the running ones have ended.
  void StartThread(auto body) {
    try {
      threads_.emplace_back(std::move(body));
    } catch (...) {
      EndThreads();
      throw;
    }
  }
  // They wait for `go`, which will never be set otherwise.
  void EndThreads() {
    control_.stop.store(true);
    control_.go.store(true);
    for (Thread& thread : threads_) thread.join();
  }

  static constexpr std::chrono::milliseconds kTick{2};
  void AwaitAll(const Atomic<uint32_t>& workers) {
    while (workers.load() < options_.thread_cnt) {
      if (ReasonToStop() != nullptr) control_.stop.store(true);
      host::SleepFor(kTick);
    }
  }

  // From here on all workers run.
  void WarmUp() {
    if (options_.warmup_seconds == 0) return;
    const uint64_t begin = Clock::NowTicks();
    const auto lasts = [&] { return Clock::ToSeconds(Clock::NowTicks() - begin) < options_.warmup_seconds; };
    while (lasts() && ReasonToStop() == nullptr && !control_.stop.load()) host::SleepFor(kTick);
    control_.warmup_over.store(true);
  }

  void AwaitWorkers() {
    AwaitAll(ready_);
    StartCheckpoints();
    WarmUp();
    AwaitAll(control_.warm);
    LogInterval interval(node_.logs());
    interval.Begin();
    SeriesSampler series(options_, node_, workers_, checkpointer_.get(), interval);
    series.Begin();
    if (perf_) perf_->Begin();
    const uint64_t begin = Clock::NowTicks();
    if (const char* reason = ReasonToStop()) {
      result_.interval_began = false;
      result_.stop_reason = reason;
    }
    control_.go.store(true, std::memory_order_release);
    while (control_.finished.load() < options_.thread_cnt) {
      const double elapsed = Clock::ToSeconds(Clock::NowTicks() - begin);
      if (options_.seconds > 0 && elapsed >= options_.seconds) break;
      if (const char* reason = ReasonToStop()) {
        result_.stop_reason = reason;
        break;
      }
      series.Look(elapsed);
      // The last tick ends with the interval, and one with each step of the series.
      const double left = series.SecondsLeft(elapsed, options_.seconds > 0 ? options_.seconds - elapsed : 1.0);
      host::SleepFor(
          std::min<std::chrono::nanoseconds>(kTick, std::chrono::nanoseconds(static_cast<int64_t>(left * 1e9))));
    }
    // Workers count nothing more from here on, so that everything counted is before the end that is taken next.
    control_.stop.store(true);
    interval.End();
    uint64_t end = Clock::NowTicks();
    if (options_.seconds > 0) {
      series.Stop();
      if (perf_) result_.perf = perf_->End();
    }
    for (Thread& thread : threads_) thread.join();
    // A counted run ends when the last transaction is acknowledged, a timed run on time.
    if (options_.seconds == 0) interval.End(), end = Clock::NowTicks();
    if (perf_ && options_.seconds == 0) result_.perf = perf_->End();
    result_.seconds = Clock::ToSeconds(end - begin);
    result_.series = series.End(result_.seconds);
    result_.interval_log_bytes = interval.bytes();
    for (const std::exception_ptr& error : errors_) {
      if (error) std::rethrow_exception(error);
    }
  }

  // A thread of the log may fail beside workers that never wait for it.
  bool LogHasFailed() const {
    try {
      node_.ThrowIfLogFailed();
      if (checkpointer_) checkpointer_->ThrowIfFailed();
      return false;
    } catch (...) {
      return true;
    }
  }

  // Why the run must end early, or nullptr.
  const char* ReasonToStop() const {
    if (StopRequested()) return "signal";
    if (LogHasFailed()) return "failure";
    if (node_.logs() != nullptr && node_.logs()->kept_bytes() >= options_.log_limit_bytes) return "log_limit";
    return nullptr;
  }

  void Finish() {
    if (checkpointer_) {
      checkpointer_->Stop();
      checkpointer_->ThrowIfFailed();
    }
    if (node_.heap() != nullptr) node_.heap()->AdoptAll(options_.thread_cnt);
    RebuildAll();
    std::optional<std::pair<uint64_t, uint64_t>> digest;
    if (options_.verify) digest = VerifyCleanEnd();
    uint64_t acknowledged_bytes = 0;
    for (const auto& worker : workers_) {
      acknowledged_bytes += worker->stats().acknowledged_log_bytes;
      result_.workers.push_back(worker->stats());
      // The worker may have waited for ring space when the interval ended.
      double& run_seconds = result_.workers.back().run_seconds;
      run_seconds = std::min(run_seconds, result_.seconds);
      result_.latency.Merge(worker->latency());
      result_.commit_parts.Add(worker->commit_parts());
    }
    // What reaches a heap is in no log.
    if (node_.logs() != nullptr) CheckAcknowledgedBytes(acknowledged_bytes, result_.interval_log_bytes);
    const auto names_of = []<class WorkloadT>(const WorkloadT*) {
      return std::vector<std::string>(WorkloadT::kProcedureNames.begin(), WorkloadT::kProcedureNames.end());
    };
    result_.procedure_names = std::visit(names_of, workload_);
    MeasureMemory();
    result_.deadlocks = node_.deadlocks();
    node_.EndLog(digest);
    if (node_.logs() != nullptr) MeasureLogs(*node_.logs());
    if (node_.heap() != nullptr) MeasureHeap(*node_.heap());
  }

  // The digest of the final state; the workload's own conditions are checked too.
  std::pair<uint64_t, uint64_t> VerifyCleanEnd() {
    const auto violated = [this](const auto* workload) {
      return CheckWorkload(options_, *workload, database_, ack_file_.get());
    };
    if (const auto what = std::visit(violated, workload_)) {
      throw Error(ExitStatus::kInternal, "the run left an inconsistent database: " + *what);
    }
    const Digest128 digest = DigestOf(database_, options_.thread_cnt);
    result_.verified = "d";
    return {digest.low, digest.high};
  }

  void MeasureMemory() {
    for (uint16_t i = 0; i < database_.table_count(); ++i) {
      const Table& table = database_.table(TableId(i));
      const uint64_t rows = table.row_count();
      result_.table_bytes += rows * table.tuple_bytes();
      result_.row_meta_bytes += rows * table.layout().bytes();
      result_.index_bytes += table.index_bytes();
      result_.memory_bytes += table.memory_bytes();
    }
    for (const auto& index : database_.secondary_indexes()) {
      result_.index_bytes += index->memory_bytes();
      result_.memory_bytes += index->memory_bytes();
    }
    const size_t control_bytes = node_.control_bytes();
    (node_.cc_traits().multi_version ? result_.version_bytes : result_.lock_table_bytes) = control_bytes;
    result_.memory_bytes += control_bytes;
  }

  void MeasureHeap(const HeapRun& heap) {
    result_.heap = ResultOf(heap);
    uint64_t first = 0;
    for (const auto& worker : workers_) {
      const uint64_t ticks = worker->first_acknowledged_ticks();
      if (ticks != 0 && (first == 0 || ticks < first)) first = ticks;
    }
    // Clients would have sent the calls, so the time in which they are generated is no part of the restart. Workers
    // begin together.
    const uint64_t generation = *std::max_element(generation_ticks_.begin(), generation_ticks_.end());
    HeapResult& result = *result_.heap;
    result.generation_seconds = Clock::ToSeconds(generation);
    if (first != 0) result.first_acknowledged_seconds = Clock::ToSeconds(first - heap.opened_ticks() - generation);
    result.adopted_seconds = std::max(result.ready_seconds, result.adopted_seconds - result.generation_seconds);
    result_.fixed_record_bytes = log_traits().fixed_bytes;
  }

  void MeasureLogs(LogSet& logs) {
    result_.log_buffer_bytes = logs.memory_bytes();
    result_.fixed_record_bytes = log_traits().fixed_bytes;
    result_.central_log = node_.central_counters();
    result_.checkpoints = checkpointer_ ? checkpointer_->counters() : node_.checkpoint_counters();
    for (uint32_t i = 0; i < logs.count(); ++i) {
      const LogStream& stream = logs.stream(i);
      StreamStats stats;
      for (uint32_t w = 0; w < options_.thread_cnt; ++w) {
        stats.record_bytes += stream.slot(w).record_bytes;
        stats.void_bytes += stream.slot(w).void_bytes;
        result_.logged_txns += stream.slot(w).txn_count - stream.slot(w).part_count;
      }
      stats.pad_bytes = stream.counters().pad_bytes;
      stats.anchor_bytes = stream.counters().anchor_bytes;
      // Behind the workers' slots is that of the checkpoints.
      if (log_traits().needs_pages) stats.anchor_bytes += stream.slot(options_.thread_cnt).record_bytes;
      stats.flushes = stream.counters().flushes;
      stats.flush_nanos = stream.counters().flush_nanos;
      result_.streams.push_back(stats);
    }
  }

  const Options& options_;
  LogStorage& storage_;
  Node& node_;
  const WorkloadRef workload_;
  Database& database_;   // the node's
  RunControl& control_;  // the node's
  RunResult result_;
  std::optional<PerfCounters> perf_;
  std::optional<OldRuns> old_runs_;    // until the run that continues them is committed
  std::unique_ptr<RowChains> chains_;  // of a restart on demand; it reads the logs of old_runs_
  uint64_t first_sequence_ = 0;
  Lsn start_lsn_;
  Stamp first_stamp_;
  std::unique_ptr<AckFile> ack_file_;
  std::vector<std::unique_ptr<WorkerThread>> workers_;
  std::vector<std::exception_ptr> errors_;
  std::vector<uint64_t> generation_ticks_;  // of the workers' calls
  std::vector<Thread> threads_;
  RowCheckpointFiles row_files_;
  std::unique_ptr<Checkpointer> checkpointer_;  // of row checkpoints
  Atomic<uint32_t> ready_{0};                   // workers whose calls are generated, or that have failed
};

}  // namespace

RunResult MeasureRun(const Options& options, LogStorage& storage, Node& node, WorkloadRef workload) {
  return Run(options, storage, node, workload).Measure();
}

RunResult MeasureRun(const Options& options, LogStorage& storage, Node& node) {
  return WithWorkload(options, [&](auto& workload) { return MeasureRun(options, storage, node, &workload); });
}

}  // namespace dbx
