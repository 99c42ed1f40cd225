#include "tests/simulation/model/model_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/host.h"
#include "multi_master/lock/lock_process.h"
#include "multi_master/log/log_store.h"
#include "multi_master/master/initial_pages.h"
#include "multi_master/process/processes.h"
#include "system/cluster/cluster_worker.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/simulation/slow_files.h"

namespace dbx::sim {
namespace {

using mm::NodeId;
using mm::Role;

constexpr uint64_t kLoadSeed = 7;
constexpr const char* kDirectory = "/d";

// The database as each process has it at first. One for all runs of a program.
struct Loaded {
  explicit Loaded(const SysbenchConfig& config) : workload(config), tables({}, 1) {
    tables.OrderEveryTable();
    workload.CreateTables(tables);
    workload.Load(tables, kLoadSeed, 1);
    pages = std::make_unique<mm::InitialPages>(tables);
  }
  Sysbench workload;
  Database tables;
  std::unique_ptr<mm::InitialPages> pages;
};

mm::ClusterPlan PlanOfCluster(const ModelPlan& plan) {
  mm::ClusterPlan cluster;
  cluster.cluster = mm::ClusterId(77);
  cluster.masters = plan.workload.masters;
  cluster.page_stores = plan.page_stores;
  cluster.frames_max = plan.frames;
  if (plan.read_committed) cluster.isolation = mm::Isolation::kReadCommitted;
  cluster.writer.flush_interval_us = plan.flush_interval_us;
  return cluster;
}

class ModelCluster {
 public:
  ModelCluster(const ModelPlan& plan, Loaded& loaded)
      : plan_(plan), loaded_(loaded), net_(plan.network), cluster_(PlanOfCluster(plan)), left_{plan.workload.masters} {}

  // By the body's fibre.
  ModelResult Run() {
    StartStores();
    AwaitStarts();
    for (uint8_t i = 0; i < plan_.workload.masters; ++i) StartMaster(i);
    AwaitStarts();
    SleepFor(NanosOf(plan_.warmup_seconds));
    control_.warmup_over = true;
    while (control_.warm.load() < Workers()) Pause();
    const Snapshot before = Take();
    control_.go = true;
    SleepFor(NanosOf(plan_.seconds));
    const Snapshot after = Take();
    control_.stop = true;
    while (left_ > 0) Pause();
    ModelResult result = ResultOf(before, after);
    StopAll();
    ThrowIfFailed();
    return result;
  }

 private:
  struct Process {
    NodeId id;
    FibreId fibre = 0;
    bool has_started = false;
    bool is_stopping = false;
    mm::MasterProcess* master = nullptr;
  };
  struct Snapshot {
    uint64_t nanos = 0;
    MasterResult masters;
    std::array<NodeUse, ModelNetwork::kRoles> roles{};
    std::array<uint64_t, ModelNetwork::kRoles> messages{}, bytes_of{};
    uint64_t bytes = 0;
  };

  static uint64_t NanosOf(double seconds) { return static_cast<uint64_t>(seconds * 1e9); }
  static Group GroupOf(NodeId node) { return 1 + static_cast<Group>(node.role) * 32 + node.index; }
  uint32_t Workers() const { return plan_.workload.masters * plan_.workload.workers_per_master; }
  const NodeShape& ShapeOf(Role role) const {
    switch (role) {
      case Role::kMaster:
        return plan_.master;
      case Role::kLocks:
        return plan_.locks;
      case Role::kLogStore:
        return plan_.log_store;
      case Role::kPageStore:
        return plan_.page_store;
    }
    return plan_.master;
  }

  // While others work.
  void Pause() {
    ThrowIfFailed();
    SleepFor(20'000);
  }
  void ThrowIfFailed() const {
    if (!error_.empty()) throw Error(ExitStatus::kInternal, error_);
  }

  template <class Make, class Run>
  void StartProcess(NodeId id, Make make, Run run) {
    processes_.push_back(std::make_unique<Process>());
    Process& process = *processes_.back();
    process.id = id;
    SetNode(GroupOf(id), ShapeOf(id.role));
    process.fibre = StartGroup(GroupOf(id), [this, &process, make, run] {
      try {
        const auto made = make();
        made->Start();
        process.has_started = true;
        run(process, *made);
        while (!process.is_stopping) BlockOn(&process);
        made->Stop();
        if constexpr (requires { made->ThrowIfFailed(); }) made->ThrowIfFailed();
      } catch (const std::exception& error) {
        error_ = mm::NameOf(process.id) + ": " + error.what();
      }
    });
  }
  void AwaitStarts() {
    while (std::any_of(processes_.begin(), processes_.end(), [](const auto& of) { return !of->has_started; })) Pause();
  }
  // Masters first, and Log Stores last.
  void StopAll() {
    for (size_t i = processes_.size(); i-- > 0;) {
      processes_[i]->is_stopping = true;
      WakeAll(processes_[i].get());
      JoinFibre(processes_[i]->fibre);
    }
  }

  void StartStores() {
    const auto nothing = [](Process&, auto&) {};
    for (uint8_t i = 0; i < mm::kLogStores; ++i) {
      const NodeId id{Role::kLogStore, i};
      disks_.push_back(std::make_unique<FaultyFileSystem>());
      disks_.back()->MakeDirectory(kDirectory);
      files_.push_back(std::make_unique<SlowFiles>(*disks_.back(), 2 * plan_.storage_nanos, UINT32_MAX));
      StartProcess(
          id,
          [this, id] {
            mm::LogStoreOptions options;
            options.cluster = cluster_.cluster;
            options.directory = kDirectory;
            return std::make_unique<mm::LogStore>(net_.Join(id), *files_[id.index], options);
          },
          nothing);
    }
    const NodeId locks{Role::kLocks, 0};
    StartProcess(
        locks,
        [this, locks] { return std::make_unique<mm::LockProcess>(net_.Join(locks), mm::OptionsOfLocks(cluster_)); },
        nothing);
    for (uint8_t i = 0; i < plan_.page_stores; ++i) {
      const NodeId id{Role::kPageStore, i};
      StartProcess(
          id, [this, id] { return std::make_unique<mm::PageStoreProcess>(cluster_, *loaded_.pages, net_.Join(id)); },
          nothing);
    }
  }

  void StartMaster(uint8_t index) {
    const NodeId id{Role::kMaster, index};
    StartProcess(
        id,
        [this, id] {
          return std::make_unique<mm::MasterProcess>(cluster_, mm::MasterId(id.index), loaded_.tables, net_.Join(id));
        },
        [this](Process& process, mm::MasterProcess& master) {
          process.master = &master;
          RunWorkers(process.id.index, master.master());
        });
  }

  void RunWorkers(uint8_t index, mm::Master& master) {
    const uint32_t count = plan_.workload.workers_per_master;
    std::vector<std::unique_ptr<ClusterWorker<Sysbench>>> workers;
    for (uint32_t i = 0; i < count; ++i) {
      const WorkerId id(index * count + i);
      ClusterWorkerOptions options;
      options.timed_warmup = true;
      workers.push_back(std::make_unique<ClusterWorker<Sysbench>>(
          id, master, loaded_.workload, loaded_.workload.Generate(id, plan_.calls, plan_.seed), options, nullptr));
    }
    {
      std::vector<Thread> threads;
      for (auto& worker : workers) {
        threads.emplace_back([this, &worker] {
          try {
            worker->Run(control_);
          } catch (const std::exception& error) {
            error_ = std::string("a worker: ") + error.what();
          }
        });
      }
    }
    for (const auto& worker : workers) {
      const MasterResult& one = worker->result();
      done_.executed += one.executed, done_.acknowledged += one.acknowledged, done_.rollbacks += one.rollbacks;
      done_.victims += one.victims, done_.timeouts += one.timeouts;
      done_.seconds = std::max(done_.seconds, one.seconds);
      done_.latency.Merge(one.latency);
    }
    --left_;
  }

  Snapshot Take() {
    Snapshot now;
    now.nanos = NowNanos();
    for (const auto& process : processes_) {
      const auto role = static_cast<size_t>(process->id.role);
      const NodeUse use = UseOf(GroupOf(process->id));
      now.roles[role].busy_nanos += use.busy_nanos, now.roles[role].charged_nanos += use.charged_nanos;
      now.roles[role].steps += use.steps;
      if (process->master == nullptr) continue;
      now.masters.locks += process->master->master().locks().counters();
      now.masters.log += process->master->log().volume();
      const mm::PageCounters pages = process->master->master().pages().counters();
      now.masters.pages.fetched += pages.fetched, now.masters.pages.from_buffer += pages.from_buffer;
      now.masters.pages.changes_followed += pages.changes_followed, now.masters.pages.evicted += pages.evicted;
    }
    for (size_t role = 0; role < ModelNetwork::kRoles; ++role) {
      now.messages[role] = net_.messages_with(static_cast<Role>(role));
      now.bytes_of[role] = net_.bytes_of(static_cast<Role>(role));
    }
    now.bytes = net_.bytes();
    return now;
  }

  ModelResult ResultOf(const Snapshot& before, const Snapshot& after) const {
    ModelResult result;
    result.seconds = static_cast<double>(after.nanos - before.nanos) / 1e9;
    result.masters = after.masters;
    result.masters.Subtract(before.masters);
    result.masters.executed = done_.executed, result.masters.acknowledged = done_.acknowledged;
    result.masters.rollbacks = done_.rollbacks, result.masters.victims = done_.victims;
    result.masters.timeouts = done_.timeouts, result.masters.seconds = done_.seconds;
    result.masters.latency.Merge(done_.latency);
    const double txns = std::max<double>(1, static_cast<double>(done_.executed));
    std::array<uint32_t, ModelNetwork::kRoles> cores{}, processes{};
    for (const auto& process : processes_) {
      ++processes[static_cast<size_t>(process->id.role)];
      cores[static_cast<size_t>(process->id.role)] += ShapeOf(process->id.role).cores;
    }
    for (size_t i = 0; i < ModelNetwork::kRoles; ++i) {
      const double busy = static_cast<double>(after.roles[i].busy_nanos - before.roles[i].busy_nanos);
      if (processes[i] > 0) {
        const double line_seconds =
            static_cast<double>(after.bytes_of[i] - before.bytes_of[i]) * 8e-9 / plan_.network.gigabits;
        result.roles[i].line_share = line_seconds / (result.seconds * processes[i]);
      }
      if (cores[i] > 0) result.roles[i].busy_share = busy / (result.seconds * 1e9 * cores[i]);
      result.roles[i].nanos_per_txn = busy / txns;
      result.roles[i].charged_per_txn =
          static_cast<double>(after.roles[i].charged_nanos - before.roles[i].charged_nanos) / txns;
      result.roles[i].steps_per_txn = static_cast<double>(after.roles[i].steps - before.roles[i].steps) / txns;
      result.messages_per_txn[i] = static_cast<double>(after.messages[i] - before.messages[i]) / txns;
    }
    result.bytes_per_txn = static_cast<double>(after.bytes - before.bytes) / txns;
    return result;
  }

  const ModelPlan& plan_;
  Loaded& loaded_;
  ModelNetwork net_;
  const mm::ClusterPlan cluster_;
  std::vector<std::unique_ptr<FaultyFileSystem>> disks_;
  std::vector<std::unique_ptr<SlowFiles>> files_;
  std::vector<std::unique_ptr<Process>> processes_;
  ClusterRunControl control_;
  uint32_t left_;      // masters with workers that run
  MasterResult done_;  // of workers that have ended
  std::string error_;
};

}  // namespace

ModelResult RunModel(const ModelPlan& plan) {
  Loaded loaded(plan.workload);
  ModelResult result;
  Plan simulation;
  simulation.seed = plan.seed;
  result.totals = Simulate(simulation, [&] { result = ModelCluster(plan, loaded).Run(); });
  return result;
}

}  // namespace dbx::sim
