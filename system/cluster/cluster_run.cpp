#include "system/cluster/cluster_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/stop.h"
#include "benchmarks/sysbench/sysbench.h"
#include "logging/device/posix_file_system.h"
#include "multi_master/lock/lock_process.h"
#include "multi_master/log/log_store.h"
#include "multi_master/master/copy_rows.h"
#include "multi_master/process/processes.h"
#include "multi_master/tcp_network.h"
#include "system/cluster/child.h"
#include "system/cluster/cluster_worker.h"
#include "system/workloads.h"

namespace dbx {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll{50};
constexpr milliseconds kStart{60'000};
constexpr milliseconds kEnd{20'000};
// In a parent's messages.
const std::string kGo = "go", kStop = "stop", kVerify = "verify", kEndOfRun = "end";

struct Address {
  mm::NodeId node;
  uint16_t port = 0;
};

std::string NewDirectory(const Options& options) {
  const std::string& parent = options.log_dirs.front();
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  for (uint32_t number = 1; !error; ++number) {
    const std::string directory = fmt::format("{}/cluster-{:04}", parent, number);
    if (std::filesystem::create_directory(directory, error)) return directory;
  }
  throw Error(ExitStatus::kIo,
              fmt::format("cannot create a directory for a cluster in {}: {}", parent, error.message()));
}

// What a child does before its process can be reached, and afterwards.
std::unique_ptr<mm::TcpNetwork> Join(Channel& parent, const mm::ClusterPlan& plan, mm::NodeId node) {
  mm::TcpOptions tcp;
  tcp.terms = {plan.cluster, plan.epoch, node};
  tcp.report = [](const std::string& line) { std::fprintf(stderr, "notice: %s\n", line.c_str()); };
  auto network = std::make_unique<mm::TcpNetwork>(tcp);
  parent.SendValue(network->port());
  const auto bytes = parent.Receive(kStart);
  if (!bytes) throw Error(ExitStatus::kIo, "the cluster did not start in time");
  std::vector<Address> addresses(bytes->size() / sizeof(Address));
  std::memcpy(addresses.data(), bytes->data(), bytes->size());
  for (const Address& address : addresses) network->SetAddress(address.node, "127.0.0.1", address.port);
  return network;
}

void AwaitEnd(Channel& parent, const std::function<void()>& look) {
  for (;;) {
    look();
    if (const auto text = parent.ReceiveText(kPoll); text && *text == kEndOfRun) return;
  }
}

void RunLogStore(Channel& parent, const mm::ClusterPlan& plan, uint8_t index, const std::string& directory) {
  const auto network = Join(parent, plan, {mm::Role::kLogStore, index});
  PosixFileSystem files;
  mm::LogStoreOptions options;
  options.cluster = plan.cluster;
  options.directory = directory;
  mm::LogStore store(*network, files, options);
  store.Start();
  AwaitEnd(parent, [&] { store.ThrowIfFailed(); });
  store.Stop();
}

void RunLockProcess(Channel& parent, const mm::ClusterPlan& plan) {
  const auto network = Join(parent, plan, {mm::Role::kLocks, 0});
  mm::LockProcess locks(*network, mm::OptionsOfLocks(plan));
  locks.Start();
  AwaitEnd(parent, [&] { locks.ThrowIfFailed(); });
  parent.SendValue(locks.With([](mm::GlobalLocks& global) { return global.counters(); }));
  locks.Stop();
}

void RunPageStore(Channel& parent, const mm::ClusterPlan& plan, const mm::InitialPages& pages) {
  const auto network = Join(parent, plan, {mm::Role::kPageStore, 0});
  mm::PageStoreProcess store(plan, pages, *network);
  store.Start();
  AwaitEnd(parent, [&] { store.ThrowIfFailed(); });
  parent.SendValue(store.store().counters());
  store.Stop();
}

// The rows that a master sees, judged by the workload.
template <class WorkloadT>
std::string Verdict(const Options& options, const WorkloadT& workload, mm::Master& master) {
  mm::MmTransaction txn = master.NewTransaction();
  for (;;) {
    Database left({}, 1);
    auto tables = MakeWorkload<WorkloadT>(options);
    CreateTables(options, tables, left);
    tables.Adopt(left, options.seed);
    txn.Begin(mm::BeginTime(1));
    if (mm::CopyRows(txn, left) == Outcome::kOk) {
      txn.Commit();
      return workload.Inconsistency(left).value_or("consistent");
    }
    txn.Abort();
  }
}

template <class WorkloadT>
class MasterRun {
 public:
  MasterRun(Channel& parent, const Options& options, const mm::ClusterPlan& plan, uint8_t index, const Database& tables,
            WorkloadT& workload)
      : parent_(parent),
        options_(options),
        workload_(workload),
        network_(Join(parent, plan, {mm::Role::kMaster, index})),
        process_(plan, mm::MasterId(index), tables, *network_) {
    ClusterWorkerOptions of_worker;
    of_worker.txn_count = options.seconds > 0 ? 0 : options.max_txns_per_thread;
    of_worker.warmup_count = options.warmup;
    of_worker.timed_warmup = options.warmup_seconds > 0;
    of_worker.latency_hiding = options.latency_hiding;
    of_worker.abort_penalty_ns = options.abort_penalty_ns;
    for (uint32_t i = 0; i < options.thread_cnt; ++i) {
      const WorkerId id(index * options.thread_cnt + i);
      workers_.push_back(std::make_unique<ClusterWorker<WorkloadT>>(
          id, process_.master(), workload, workload.Generate(id, CallsOf(options), options.seed), of_worker));
    }
  }

  void Run() {
    process_.Start();
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
  bool Look(milliseconds time) {
    process_.ThrowIfFailed();
    errors_.ThrowIfAny();
    const auto text = parent_.ReceiveText(time);
    if (text && *text == kGo) control_.go = true;
    return (text && *text == kStop) || control_.stop.load();
  }
  void WarmUp() {
    const uint64_t begin = host::MonotonicNanos();
    const auto is_over = [&] {
      return static_cast<double>(host::MonotonicNanos() - begin) >= options_.warmup_seconds * 1e9;
    };
    while (control_.warm.load() < workers_.size() && !control_.stop.load()) {
      if (is_over()) control_.warmup_over = true;
      if (Look(milliseconds(5))) control_.stop = true;
    }
  }
  void Measure() {
    uint64_t begin = 0;
    while (control_.finished.load() < workers_.size()) {
      if (Look(milliseconds(5))) control_.stop = true;
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
    all.log_bytes = process_.log().bytes();
    all.record_bytes = process_.log().record_bytes();
    for (const auto& tree : process_.master().trees()) all.splits += tree->splits();
    return all;
  }
  // Other masters still need what this one has locked.
  void ServeUntilEnd() {
    for (;;) {
      process_.ThrowIfFailed();
      const auto text = parent_.ReceiveText(kPoll);
      if (text && *text == kEndOfRun) return;
      if (text && *text == kVerify) parent_.Send(Verdict(options_, workload_, process_.master()));
    }
  }

  Channel& parent_;
  const Options& options_;
  WorkloadT& workload_;
  std::unique_ptr<mm::TcpNetwork> network_;
  mm::MasterProcess process_;
  std::vector<std::unique_ptr<ClusterWorker<WorkloadT>>> workers_;
  ClusterRunControl control_;
  MasterResult before_;  // counters when the measured interval began
  mm::FirstError errors_;
};

// The parent's side.
class Cluster {
 public:
  explicit Cluster(const Options& options) : options_(options) {
    plan_.cluster = mm::ClusterId(host::RandomNumber());
    plan_.masters = options.masters;
    plan_.frames_max = options.buffer_pages;
    plan_.ring_bytes = std::max<uint64_t>(options.log_buffer_size, 4 << 20);
    plan_.writer.flush_interval_us = options.log_flush_interval_us;
    plan_.writer.flush_block_bytes = options.log_flush_block_bytes;
    result_.directory = NewDirectory(options);
  }

  template <class WorkloadT>
  ClusterResult Run(WorkloadT& workload) {
    // Before the processes are forked: they share it.
    Database tables({}, UsableThreads());
    CreateTables(options_, workload, tables);
    workload.Load(tables, options_.seed, UsableThreads());
    const mm::InitialPages pages(tables);
    for (uint8_t i = 0; i < mm::kLogStores; ++i) {
      const std::string directory = result_.directory + "/log-store-" + std::to_string(i);
      if (!PosixFileSystem().MakeDirectory(directory)) throw Error(ExitStatus::kIo, directory + " exists");
      Add({mm::Role::kLogStore, i}, [=, this](Channel& parent) { RunLogStore(parent, plan_, i, directory); });
    }
    Add({mm::Role::kLocks, 0}, [this](Channel& parent) { RunLockProcess(parent, plan_); });
    Add({mm::Role::kPageStore, 0}, [&](Channel& parent) { RunPageStore(parent, plan_, pages); });
    for (uint8_t i = 0; i < options_.masters; ++i) {
      Add({mm::Role::kMaster, i},
          [&, i](Channel& parent) { MasterRun<WorkloadT>(parent, options_, plan_, i, tables, workload).Run(); });
    }
    Connect();
    Measure();
    End();
    return std::move(result_);
  }

 private:
  uint32_t UsableThreads() const { return std::max(1u, options_.thread_cnt); }
  void Add(mm::NodeId node, const std::function<void(Channel&)>& body) {
    children_.emplace_back(mm::NameOf(node), body);
    addresses_.push_back({node, 0});
  }
  std::vector<Child*> Masters() {
    std::vector<Child*> masters;
    for (size_t i = 0; i < children_.size(); ++i) {
      if (addresses_[i].node.role == mm::Role::kMaster) masters.push_back(&children_[i]);
    }
    return masters;
  }
  // A process that is gone has said why, unless a signal ended it.
  [[noreturn]] void Lost(Child& first_seen) {
    // Others end when they miss one that was killed, and may be seen first.
    const auto killed =
        std::ranges::find_if(children_, [](Child& child) { return child.Wait(milliseconds(0)) && child.WasKilled(); });
    Child& child = killed != children_.end() ? *killed : first_seen;
    const bool has_ended = child.Wait(kEnd);
    const Error why = (has_ended ? child.Failure() : std::nullopt)
                          .value_or(Error(ExitStatus::kIo, child.name() + (has_ended ? " ended" : " does not answer")));
    throw Error(why.status(), std::string(why.what()) +
                                  "; all other processes of the cluster were ended, and its logs are in " +
                                  result_.directory);
  }
  template <class Use>
  auto With(Child& child, Use&& use) {
    try {
      return use(child.channel());
    } catch (const Error&) {
      Lost(child);
    }
  }
  // Its next value, whatever the others do meanwhile. Nothing: the run is to stop.
  template <class T>
  std::optional<T> Await(Child& child, bool stops) {
    const uint64_t begin = host::MonotonicNanos();
    for (;;) {
      const auto value = With(child, [](Channel& channel) { return channel.ReceiveValue<T>(kPoll); });
      if (value) return value;
      for (Child& other : children_) LookAt(other);
      if (stops && StopRequested().load()) return std::nullopt;
      // A run of so many transactions may take any time, until it is told to stop.
      const bool has_limit = !stops || options_.seconds > 0;
      const double limit =
          std::chrono::duration<double>(kStart).count() + (stops ? options_.seconds + options_.warmup_seconds : 0);
      if (has_limit && static_cast<double>(host::MonotonicNanos() - begin) > limit * 1e9) Lost(child);
    }
  }
  void LookAt(Child& child) {
    if (child.Wait(milliseconds(0))) Lost(child);
  }

  void Connect() {
    for (size_t i = 0; i < children_.size(); ++i) addresses_[i].port = *Await<uint16_t>(children_[i], false);
    for (Child& child : children_) {
      With(child, [&](Channel& channel) { channel.Send(std::as_bytes(std::span(addresses_))); });
    }
  }
  void Tell(const std::vector<Child*>& children, const std::string& what) {
    for (Child* child : children) With(*child, [&](Channel& channel) { channel.Send(what); });
  }

  void Measure() {
    const std::vector<Child*> masters = Masters();
    const auto stop = [&] {
      result_.interrupted = true;
      Tell(masters, kStop);
    };
    for (Child* master : masters) {
      if (!result_.interrupted && !Await<uint8_t>(*master, true)) stop();
      if (result_.interrupted) Await<uint8_t>(*master, false);
    }
    if (!result_.interrupted && StopRequested().load()) stop();
    if (!result_.interrupted) Tell(masters, kGo);
    for (Child* master : masters) {
      auto result = Await<MasterResult>(*master, !result_.interrupted);
      if (!result) {
        stop();
        result = Await<MasterResult>(*master, false);
      }
      result_.masters.push_back(*result);
    }
    if (options_.verify) Verify(*masters.front());
  }
  void Verify(Child& master) {
    Tell({&master}, kVerify);
    for (;;) {
      const auto text = With(master, [](Channel& channel) { return channel.ReceiveText(kPoll); });
      for (Child& child : children_) LookAt(child);
      if (!text) continue;
      result_.verified = *text;
      return;
    }
  }
  // Masters first, while their logs can still be written.
  void End() {
    Tell(Masters(), kEndOfRun);
    for (Child* master : Masters()) ExpectEnd(*master);
    for (size_t i = 0; i < children_.size(); ++i) {
      if (addresses_[i].node.role == mm::Role::kMaster) continue;
      Tell({&children_[i]}, kEndOfRun);
      if (addresses_[i].node.role == mm::Role::kLocks) {
        result_.lock_process = *Last<mm::GlobalLockCounters>(children_[i]);
      } else if (addresses_[i].node.role == mm::Role::kPageStore) {
        result_.page_store = *Last<mm::PageStoreCounters>(children_[i]);
      }
      ExpectEnd(children_[i]);
    }
  }
  template <class T>
  std::optional<T> Last(Child& child) {
    const auto value = With(child, [](Channel& channel) { return channel.ReceiveValue<T>(kEnd); });
    if (!value) Lost(child);
    return value;
  }
  void ExpectEnd(Child& child) {
    if (!child.Wait(kEnd)) throw Error(ExitStatus::kInternal, child.name() + " did not end");
    if (const auto failure = child.Failure()) throw *failure;
  }

  const Options& options_;
  mm::ClusterPlan plan_;
  ClusterResult result_;
  std::vector<Child> children_;
  std::vector<Address> addresses_;
};

}  // namespace

ClusterResult RunCluster(const Options& options) {
  Cluster cluster(options);
  if (options.workload == WorkloadKind::kSysbench) {
    Sysbench workload(SysbenchConfigOf(options));
    return cluster.Run(workload);
  }
  return WithWorkload(options, [&](auto& workload) { return cluster.Run(workload); });
}

}  // namespace dbx
