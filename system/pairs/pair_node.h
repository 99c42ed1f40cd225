// The node of one pair of concurrency control and log scheme.
#pragma once

#include <type_traits>
#include <utility>

#include "system/node.h"
#include "system/transaction/row_copier.h"
#include "system/transaction/worker.h"

namespace dbx {

// A lock table holds the log metadata of the rows that are locked in it, instead of the rows.
template <class Cc, class Log>
constexpr RowLayout RowLayoutOf(uint32_t logs) {
  const size_t log_bytes = Log::meta_bytes(logs);
  return {.log_bytes = Cc::kTraits.lock_table ? 0 : log_bytes, .cc_bytes = Cc::kRowBytes, .leaf_log_bytes = log_bytes};
}

template <ConcurrencyControl Cc, LogScheme Log>
class PairNode final : public Node {
 public:
  PairNode(uint32_t logs, uint32_t workers) : Node(RowLayoutOf<Cc, Log>(logs), workers) {}

  LogSet* logs() override { return logs_.get(); }
  const LogTraits& log_traits() const override { return Log::kTraits; }
  const CcTraits& cc_traits() const override { return Cc::kTraits; }

  void CheckTables(const LogOptions& options, uint64_t max_record_bytes) const override {
    Log::CheckTables(database_, options, max_record_bytes);
  }

  void OpenLog([[maybe_unused]] std::unique_ptr<LogSet> logs, [[maybe_unused]] const LogOptions& options) override {
    if constexpr (Log::kTraits.version_heap) {
      log_ = std::make_unique<Log>(*options.heap);
    } else if constexpr (Log::kTraits.logs) {
      logs_ = std::move(logs);
      log_ = std::make_unique<Log>(*logs_, options);
      logs_->Start(*log_);
    } else {
      log_ = std::make_unique<Log>();
    }
  }

  void OpenControl(uint64_t lock_table_buckets, [[maybe_unused]] Isolation isolation,
                   [[maybe_unused]] Timestamp after) override {
    shared_ = std::make_unique<typename Cc::Shared>(*log_, epochs_, lock_table_buckets, control_.stop);
    if constexpr (Cc::kTraits.multi_version) {
      shared_->isolation = isolation;
      shared_->timestamps.StartAfter(after);
    }
  }

  std::unique_ptr<WorkerThread> MakeWorker(WorkerId id, WorkloadRef workload, CallList calls,
                                           const WorkerOptions& options, AckFile* ack_file) override {
    const auto make = [&]<class WorkloadT>(WorkloadT* known) -> std::unique_ptr<WorkerThread> {
      return std::make_unique<Worker<Cc, Log, WorkloadT>>(id, *shared_, *log_, *known, std::move(calls), options,
                                                          ack_file);
    };
    return std::visit(make, workload);
  }

  void StartCheckpoints() override {
    if constexpr (Log::kTraits.needs_pages) log_->StartCheckpoints();
  }

  std::unique_ptr<RowSource> MakeRowCopier([[maybe_unused]] WorkerId id) override {
    if constexpr (Log::kTraits.row_checkpoints) {
      return std::make_unique<RowCopier<Cc, Log>>(id, *shared_, *log_, database_);
    }
    return nullptr;
  }

  void ThrowIfLogFailed() const override { log_->ThrowIfFailed(); }
  void EndLog(const std::optional<std::pair<uint64_t, uint64_t>>& digest) override {
    if constexpr (Log::kTraits.version_heap) {
      log_->WriteRunEnd(digest);
    } else if constexpr (Log::kTraits.logs) {
      logs_->Stop();
      log_->ThrowIfFailed();
      logs_->WriteRunEnd(digest);
    }
  }
  std::optional<CentralCounters> central_counters() const override { return log_->central_counters(); }
  std::optional<CheckpointCounters> checkpoint_counters() const override { return log_->checkpoint_counters(); }
  CheckpointMarks checkpoint_marks() const override {
    if constexpr (Log::kTraits.needs_pages) return log_->checkpoint_marks();
    return {};
  }
  std::optional<DeadlockCounters> deadlocks() const override {
    if constexpr (Cc::kTraits.detects_deadlocks) return shared_->policy.deadlocks();
    return std::nullopt;
  }
  size_t control_bytes() const override { return shared_->memory_bytes(); }

 private:
  // The writers of logs_ call log_ until they are stopped, so it is destroyed after them.
  std::unique_ptr<Log> log_;
  std::unique_ptr<LogSet> logs_;
  std::unique_ptr<typename Cc::Shared> shared_;
};

}  // namespace dbx
