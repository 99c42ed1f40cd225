// A master of a cluster as the body of a child: its process, its workers, and what they have measured.
//
//   start -> warm-up -> [child: warm] -> go -> workers' runs -> [child: result] -> serve -> [verify: verdict]* -> end
//
// Threads: a child's first one, and a thread for each worker.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/host.h"
#include "benchmarks/workload.h"
#include "multi_master/master/copy_rows.h"
#include "multi_master/process/processes.h"
#include "system/cluster/acknowledged_rows.h"
#include "system/cluster/children.h"
#include "system/cluster/cluster_result.h"
#include "system/cluster/cluster_worker.h"
#include "system/command_line/options.h"
#include "system/replay/workload_check.h"
#include "system/transaction/ack_file.h"
#include "system/workloads.h"

namespace dbx {

// The rows that a master sees, judged by the workload, and by what was acknowledged (`acks` may be null).
template <class WorkloadT>
std::string Verdict(const Options& options, const WorkloadT& workload, mm::Master& master, const AckFile* acks) {
  mm::MmTransaction txn = master.NewTransaction(mm::Isolation::kSerializable);
  for (;;) {
    Database left({}, 1);
    auto tables = MakeWorkload<WorkloadT>(options);
    CreateTables(options, tables, left);
    tables.Adopt(left, options.seed);
    txn.Begin(mm::BeginTime(1));
    if (mm::CopyRows(txn, left) == Outcome::kOk) {
      txn.Commit();
      std::optional<std::string> fault = CheckWorkload(options, workload, left, acks);
      if (!fault && acks != nullptr) fault = MissingAcknowledged(workload, left, *acks);
      return fault.value_or("consistent");
    }
    txn.Abort();
  }
}

template <class WorkloadT>
class MasterRun {
 public:
  MasterRun(Channel& parent, const Options& options, const mm::ClusterPlan& plan, uint8_t index, const Database& tables,
            WorkloadT& workload, AckFile* acks)
      : parent_(parent),
        options_(options),
        workload_(workload),
        acks_(acks),
        network_(Join(parent, plan, {mm::Role::kMaster, index})),
        process_(plan, mm::MasterId(index), tables, *network_),
        kept_(plan.kept_row_locks) {
    ClusterWorkerOptions of_worker;
    of_worker.txn_count = options.seconds > 0 ? 0 : options.max_txns_per_thread;
    of_worker.warmup_count = options.warmup;
    of_worker.timed_warmup = options.warmup_seconds > 0;
    of_worker.latency_hiding = options.latency_hiding;
    of_worker.abort_penalty_ns = options.abort_penalty_ns;
    for (uint32_t i = 0; i < options.thread_cnt; ++i) {
      const WorkerId id(index * options.thread_cnt + i);
      workers_.push_back(std::make_unique<ClusterWorker<WorkloadT>>(
          id, process_.master(), workload, workload.Generate(id, CallsOf(options), options.seed), of_worker, acks));
    }
  }

  void Run() {
    process_.Start();
    parent_.SendValue(Started());
    AwaitBegin();
    {
      std::vector<Thread> threads;
      // Before the workers are joined: of those that wait, none waits for ever.
      const StopOnError stops{*this};
      for (auto& worker : workers_) {
        threads.emplace_back([this, &worker] { RunWorker(*worker); });
      }
      WarmUp();
      parent_.SendValue(uint8_t{1});
      Measure();
    }
    errors_.ThrowIfAny();
    parent_.SendValue(Result());
    ServeUntilEnd();
    process_.Stop();
    process_.ThrowIfFailed();
  }

 private:
  struct StopOnError {
    ~StopOnError() {
      run.control_.stop = true;
      if (std::uncaught_exceptions() > 0) run.process_.master().Stop();
    }
    MasterRun& run;
  };

  static uint64_t CallsOf(const Options& options) {
    if (options.query_list_len > 0) return options.query_list_len;
    return options.seconds > 0 ? 20'000 : std::clamp<uint64_t>(options.max_txns_per_thread, 1, 100'000);
  }

  void RunWorker(ClusterWorker<WorkloadT>& worker) {
    try {
      worker.Run(control_);
    } catch (...) {
      errors_.Set(std::current_exception());
      control_.stop = true;
      control_.finished.fetch_add(1);
    }
  }
  // Looks at the parent; true: the run is to end.
  bool Look(std::chrono::milliseconds time) {
    process_.ThrowIfFailed();
    errors_.ThrowIfAny();
    const auto text = parent_.ReceiveText(time);
    if (text && *text == kGo) control_.go = true;
    return (text && *text == kStop) || control_.stop.load();
  }
  void AwaitBegin() {
    for (;;) {
      process_.ThrowIfFailed();
      if (parent_.ReceiveText(kPoll) == kBegin) return;
    }
  }
  void WarmUp() {
    const uint64_t begin = host::MonotonicNanos();
    const auto is_over = [&] {
      return static_cast<double>(host::MonotonicNanos() - begin) >= options_.warmup_seconds * 1e9;
    };
    while (control_.warm.load() < workers_.size() && !control_.stop.load()) {
      if (is_over()) control_.warmup_over = true;
      if (Look(std::chrono::milliseconds(5))) control_.stop = true;
    }
  }
  void Measure() {
    uint64_t begin = 0;
    while (control_.finished.load() < workers_.size()) {
      if (Look(std::chrono::milliseconds(5))) control_.stop = true;
      if (!control_.go.load()) continue;
      if (begin == 0) {
        begin = host::MonotonicNanos();
        before_ = Counters();
      }
      const double seconds = static_cast<double>(host::MonotonicNanos() - begin) / 1e9;
      if (options_.seconds > 0 && seconds >= options_.seconds) control_.stop = true;
    }
  }
  MasterResult Result() {
    MasterResult all = Counters();
    all.Subtract(before_);
    for (const auto& worker : workers_) {
      const MasterResult& one = worker->result();
      all.executed += one.executed, all.acknowledged += one.acknowledged, all.rollbacks += one.rollbacks;
      all.victims += one.victims, all.timeouts += one.timeouts;
      all.seconds = std::max(all.seconds, one.seconds);
      all.latency.Merge(one.latency);
    }
    return all;
  }
  // Up to now.
  MasterResult Counters() {
    MasterResult all;
    all.locks = process_.master().locks().counters();
    all.pages = process_.master().pages().counters();
    all.reads = process_.master().views().counters();
    all.log = process_.log().volume();
    if (kept_ != nullptr) all.kept = kept_->counters(process_.master().locks().self());
    for (const auto& tree : process_.master().trees()) all.splits += tree->splits();
    return all;
  }
  // Other masters still need what this one has locked.
  void ServeUntilEnd() {
    for (;;) {
      process_.ThrowIfFailed();
      const auto text = parent_.ReceiveText(kPoll);
      if (text && *text == kEndOfRun) return;
      if (text && *text == kVerify) parent_.Send(Verdict(options_, workload_, process_.master(), acks_));
    }
  }

  Channel& parent_;
  const Options& options_;
  WorkloadT& workload_;
  AckFile* const acks_;  // null: there is no such file
  std::unique_ptr<mm::TcpNetwork> network_;
  mm::MasterProcess process_;
  const mm::KeptRowLocks* const kept_;
  std::vector<std::unique_ptr<ClusterWorker<WorkloadT>>> workers_;
  ClusterRunControl control_;
  MasterResult before_;  // counters when the measured interval began
  mm::FirstError errors_;
};

}  // namespace dbx
