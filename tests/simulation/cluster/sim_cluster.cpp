#include "tests/simulation/cluster/sim_cluster.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/error.h"
#include "base/host.h"

namespace dbx::sim {

using mm::MasterId;
using mm::NodeId;
using mm::Role;
using mm::VsTime;

namespace {

mm::ClusterPlan PlanOfCluster(const ClusterSetup& setup) {
  mm::ClusterPlan plan;
  plan.cluster = mm::ClusterId(77);
  plan.masters = setup.masters;
  plan.page_stores = setup.page_stores;
  plan.frames_max = setup.frames_max;
  plan.page_bytes_max = setup.page_bytes_max;
  plan.writer = setup.writer;
  plan.ring_bytes = 256 << 10;
  plan.lease = setup.lease;
  return plan;
}

}  // namespace

SimCluster::SimCluster(const ClusterSetup& setup, ClusterDatabase& database, uint64_t seed)
    : setup_(setup),
      database_(database),
      seed_(seed),
      net_(setup.links),
      plan_(PlanOfCluster(setup)),
      page_stores_(setup.page_stores),
      masters_(setup.masters),
      workers_left_(setup.masters, setup.workers) {
  for (FaultyFileSystem*& disk : disks_) {
    all_disks_.push_back(std::make_unique<FaultyFileSystem>());
    disk = all_disks_.back().get();
    disk->MakeDirectory(kLogDirectory);
    disk->SyncDirectory("/");
  }
  if (setup.has_slow_link) {
    const NodeId slow{Role::kMaster, static_cast<uint8_t>(Random() % setup.masters)};
    const NodeId peers[] = {{Role::kLocks, 0}, {Role::kPageStore, 0}, {Role::kLogStore, 0}, {Role::kLogStore, 1}};
    net_.SetSpeed(slow, peers[Random() % std::size(peers)], {1'000'000, 10'000'000, 10'000});
  }
}

template <class Process, class Make, class Run>
void SimCluster::StartProcess(Node<Process>& node, NodeId id, Make make, Run run) {
  node = {};
  node.is_alive = true;
  node.fibre = StartGroup(GroupOf(id), [this, &node, id, make, run] {
    try {
      const auto process = make();
      process->Start();
      node.process = process.get();
      run(*process);
      while (!node.is_stopping) BlockOn(&node);
      process->Stop();
      if constexpr (requires { process->ThrowIfFailed(); }) process->ThrowIfFailed();
    } catch (const std::exception& error) {
      if (!node.is_doomed) progress_.errors.push_back(mm::NameOf(id) + ": " + error.what());
    }
  });
}

template <class Process>
void SimCluster::StopProcess(Node<Process>& node) {
  if (!node.is_alive) return;
  node.is_stopping = true;
  WakeAll(&node);
  JoinFibre(node.fibre);
}

void SimCluster::Start() {
  for (uint8_t i = 0; i < mm::kLogStores; ++i) StartLogStore(i);
  const auto nothing = [](auto&) {};
  const NodeId locks{Role::kLocks, 0};
  const auto make = [this, locks] {
    return std::make_unique<mm::LockProcess>(net_.Join(locks), mm::OptionsOfLocks(plan_));
  };
  StartProcess(locks_, locks, make, nothing);
  for (uint8_t i = 0; i < setup_.page_stores; ++i) StartPageStore(i);
  // A message to a process that is not there yet would be lost.
  AwaitStarts();
  for (uint8_t i = 0; i < setup_.masters; ++i) StartMaster(i);
}

void SimCluster::StartLogStore(uint8_t store) {
  const NodeId id{Role::kLogStore, store};
  const auto make = [this, id] {
    mm::LogStoreOptions options;
    options.cluster = plan_.cluster;
    options.directory = kLogDirectory;
    auto* const slow = new SlowFiles(*disks_[id.index], setup_.disk_nanos_max, setup_.disk_stall_one_in);
    return std::make_unique<mm::LogStore>(net_.Join(id), *slow, options);
  };
  StartProcess(log_stores_[store], id, make, [](auto&) {});
}

void SimCluster::StartPageStore(uint8_t store) {
  const NodeId id{Role::kPageStore, store};
  const auto make = [this, id] {
    return std::make_unique<mm::PageStoreProcess>(plan_, database_.pages(), net_.Join(id));
  };
  StartProcess(page_stores_[store], id, make, [](auto&) {});
}

void SimCluster::StartMaster(uint8_t master) {
  const NodeId id{Role::kMaster, master};
  const auto make = [this, id] {
    return std::make_unique<mm::MasterProcess>(plan_, MasterId(id.index), database_.loaded(), net_.Join(id));
  };
  StartProcess(masters_[master], id, make,
               [this, master](mm::MasterProcess& process) { RunWorkers(process.master(), master); });
}

void SimCluster::RunWorkers(mm::Master& master, uint8_t number) {
  std::vector<Thread> workers;
  for (uint32_t i = 0; i < setup_.workers; ++i) {
    workers.emplace_back([this, &master, number, i] {
      try {
        RunWorker(master, WorkerId(number * kClusterWorkersMax + i));
      } catch (const std::exception& error) {
        if (!masters_[number].is_doomed)
          progress_.errors.push_back("a worker of master " + std::to_string(number) + ": " + error.what());
      }
      --workers_left_[number];
    });
  }
}

void SimCluster::RunWorker(mm::Master& master, WorkerId worker) {
  struct Unacknowledged {
    mm::TxnName name;
    VsTime time;
  };
  std::deque<Unacknowledged> unacknowledged;
  const auto acknowledge = [&](size_t left_max) {
    while (unacknowledged.size() > left_max) {
      const Unacknowledged first = unacknowledged.front();
      unacknowledged.pop_front();
      progress_.doing[worker.value()] = "waits for its acknowledgement";
      master.log().AwaitDurable(first.time);
      ClusterProgress::Attempt& attempt = progress_.committed.at(first.name);
      attempt.is_acknowledged = true;
      oracle.Acknowledge(attempt.id);
    }
  };
  const CallList list = database_.Generate(worker, setup_.calls, seed_);
  ClusterTransaction txn(master.NewTransaction(), setup_.think_nanos_max);
  for (uint64_t i = 0; i < list.calls.size(); ++i) {
    Call call = list.calls[i];
    const TxnId id = TxnId::Make(worker, i);
    call.set_txn_id(id);
    const mm::BeginTime begun(host::MonotonicNanos());
    for (Outcome outcome = Outcome::kConflict; outcome == Outcome::kConflict;) {
      progress_.doing[worker.value()] = "begins transaction " + std::to_string(i);
      txn.Begin(begun, id);
      progress_.doing[worker.value()] = "runs transaction " + std::to_string(i);
      ClusterContext context(txn, id);
      outcome = database_.Run(context, call);
      if (outcome == Outcome::kConflict) ++progress_.conflicts[txn.last_wait()];
      if (outcome == Outcome::kOk) {
        oracle.PreCommit(id);
        progress_.committed[txn.name()] = {id, false};
        unacknowledged.push_back({txn.name(), txn.Commit()});
      } else {
        progress_.doing[worker.value()] = "aborts transaction " + std::to_string(i);
        txn.Abort();
        progress_.rolled_back += outcome != Outcome::kConflict;
      }
    }
    acknowledge(setup_.unacknowledged_max);
    progress_.applied.push_back(master.log().applied());
    if (setup_.workers_pause && Random() % 2 == 0) SleepFor(Random() % 2'000'000);
  }
  acknowledge(0);
  progress_.doing.erase(worker.value());
}

std::string SimCluster::Description() const {
  std::string text;
  for (const auto& [worker, doing] : progress_.doing) text += "; worker " + std::to_string(worker) + " " + doing;
  for (size_t i = 0; i < masters_.size(); ++i) {
    if (masters_[i].process == nullptr) continue;
    mm::Master& master = masters_[i].process->master();
    text += "; master " + std::to_string(i) + ": last record " + std::to_string(master.log().last_record().value()) +
            ", durable " + std::to_string(master.log().durable_until().value()) + ", " +
            std::to_string(master.locks().txns().active()) + " active, fetched " +
            std::to_string(master.pages().counters().fetched) + ", evicted " +
            std::to_string(master.pages().counters().evicted) + ", requests " +
            std::to_string(master.locks().counters().requests) + ", grants " +
            std::to_string(master.locks().counters().grants) + ", conflicts " +
            std::to_string(master.locks().counters().row_conflicts);
  }
  return text;
}

void SimCluster::NoteApplied() {
  for (const auto& master : masters_) {
    if (master.process != nullptr) progress_.applied.push_back(master.process->log().applied());
  }
}

bool SimCluster::AreWorkersDone() const {
  for (uint32_t i = 0; i < masters_.size(); ++i) {
    if (masters_[i].is_alive && !masters_[i].is_doomed && workers_left_[i] > 0) return false;
  }
  return true;
}

void SimCluster::Stop() {
  for (auto& master : masters_) StopProcess(master);
  for (auto& store : page_stores_) StopProcess(store);
  StopProcess(locks_);
  for (auto& store : log_stores_) StopProcess(store);
}

bool SimCluster::IsAlive(NodeId node) const {
  switch (node.role) {
    case Role::kMaster:
      return masters_[node.index].is_alive;
    case Role::kPageStore:
      return page_stores_[node.index].is_alive;
    case Role::kLogStore:
      return log_stores_[node.index].is_alive;
    case Role::kLocks:
      return locks_.is_alive;
  }
  return false;
}

void SimCluster::ThrowIfFailed() const {
  if (!progress_.errors.empty()) throw Violation(progress_.errors.front());
  const auto ask = [](const auto& node, const std::string& name) {
    if (node.process == nullptr || node.is_doomed) return;
    try {
      node.process->ThrowIfFailed();
    } catch (const std::exception& error) {
      throw Violation(name + " failed: " + error.what());
    }
  };
  for (size_t i = 0; i < masters_.size(); ++i) ask(masters_[i], "master " + std::to_string(i));
  ask(locks_, "the lock process");
  for (const auto& store : page_stores_) ask(store, "a Page Store");
  for (const auto& store : log_stores_) ask(store, "a Log Store");
}

void SimCluster::AwaitStarts() const {
  const auto is_starting = [](const auto& node) { return node.is_alive && node.process == nullptr; };
  while (std::any_of(masters_.begin(), masters_.end(), is_starting) ||
         std::any_of(log_stores_.begin(), log_stores_.end(), is_starting) ||
         std::any_of(page_stores_.begin(), page_stores_.end(), is_starting) || is_starting(locks_)) {
    if (!progress_.errors.empty()) return;
    SleepFor(100'000);
  }
}

template <class Process>
void SimCluster::Kill(Node<Process>& node, NodeId id) {
  KillGroup(GroupOf(id));
  net_.Forget(id);
  node.is_alive = false;
  node.process = nullptr;
}

void SimCluster::KillMaster(uint8_t master) { Kill(masters_[master], {Role::kMaster, master}); }
void SimCluster::CutOffMaster(uint8_t master) {
  masters_[master].is_doomed = true;
  net_.Cut({Role::kMaster, master}, {Role::kLocks, 0});
}
void SimCluster::KillLogStore(uint8_t store) { Kill(log_stores_[store], {Role::kLogStore, store}); }
void SimCluster::KillPageStore(uint8_t store) { Kill(page_stores_[store], {Role::kPageStore, store}); }

void SimCluster::KillAll() {
  Kill(locks_, {Role::kLocks, 0});
  for (uint8_t i = 0; i < mm::kLogStores; ++i) KillLogStore(i);
  for (uint8_t i = 0; i < page_stores_.size(); ++i) KillPageStore(i);
  for (uint8_t i = 0; i < masters_.size(); ++i) KillMaster(i);
}

void SimCluster::RestartLogStore(uint8_t store, FaultyFileSystem::Crash crash, uint64_t seed) {
  all_disks_.push_back(std::make_unique<FaultyFileSystem>(disks_[store]->CrashImage(crash, seed)));
  disks_[store] = all_disks_.back().get();
  StartLogStore(store);
}

}  // namespace dbx::sim
