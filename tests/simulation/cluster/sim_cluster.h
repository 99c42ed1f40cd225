// The processes of a simulated cluster: masters with their workers, the lock process, three Log Stores, each on a disk
// of its own, and Page Stores. Each is a group of fibres, which can be killed at any moment.
//
// What a killed process owned is left behind, so a trial runs in a process of its own (cluster_trial.cpp).
//
// Threads: the body's fibre of the simulation.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "multi_master/lock/lock_process.h"
#include "multi_master/log/log_store.h"
#include "multi_master/process/processes.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/simulation/cluster/cluster_database.h"
#include "tests/simulation/cluster/cluster_setup.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/slow_files.h"

namespace dbx::sim {

// What the workers of all masters have done. It is no process's, and outlives them.
struct ClusterProgress {
  struct Attempt {
    TxnId id;
    bool is_acknowledged = false;
  };
  std::map<mm::TxnName, Attempt> committed;  // from right before its END on
  std::vector<std::string> errors;           // of processes that did not expect any
  std::vector<mm::VsVector> applied;         // at some moments: how far a master had applied the logs
  std::map<uint32_t, std::string> doing;     // by worker
  uint64_t rolled_back = 0;
  std::map<mm::WaitResult, uint64_t> conflicts;
};

class SimCluster {
 public:
  static constexpr const char* kLogDirectory = "/d";

  SimCluster(const ClusterSetup& setup, ClusterDatabase& database, uint64_t seed);

  void Start();
  // All workers of living masters have run all of their calls, and what they committed is acknowledged.
  bool AreWorkersDone() const;
  // How far each master has applied the logs now is remembered.
  void NoteApplied();
  // What the workers do, and how far the logs are: for messages.
  std::string Description() const;
  // In order, with what is written made durable. Processes that were killed stay dead.
  void Stop();

  // It says nothing any more. The lock process notices, or is told.
  void KillMaster(uint8_t master);
  // The lock process takes it for dead, and it lives: it does not reach that process any more, and has to end.
  void CutOffMaster(uint8_t master);
  bool IsDoomed(uint8_t master) const { return masters_[master].is_doomed; }
  void TellThatMasterIsGone(uint8_t master) { locks().OnProcessGone(mm::MasterId(master)); }
  void KillLogStore(uint8_t store);
  // On what a power failure leaves of its disk.
  void RestartLogStore(uint8_t store, FaultyFileSystem::Crash crash, uint64_t seed);
  void KillPageStore(uint8_t store);
  void StartPageStore(uint8_t store);
  bool IsAlive(mm::NodeId node) const;
  // Throws Violation if a process has met an error.
  void ThrowIfFailed() const;
  // What was started has started.
  void AwaitStarts() const;
  // The end of a trial that has failed.
  void KillAll();

  uint32_t masters() const { return setup_.masters; }
  // Of one that has started.
  mm::MasterProcess& master(uint32_t i) const { return *masters_[i].process; }
  mm::PageStoreProcess& page_store(uint32_t i) const { return *page_stores_[i].process; }
  mm::LogStore& log_store(uint32_t i) const { return *log_stores_[i].process; }
  mm::LockProcess& locks() const { return *locks_.process; }
  FaultyFileSystem& files(uint32_t store) const { return *disks_[store]; }

  const mm::ClusterPlan& plan() const { return plan_; }
  const ClusterSetup& setup() const { return setup_; }
  SimNetwork& net() { return net_; }
  ClusterProgress& progress() { return progress_; }

 private:
  template <class Process>
  struct Node {
    bool is_alive = false;       // from its start on, until it is killed
    Process* process = nullptr;  // once it has started
    FibreId fibre = 0;           // its first
    bool is_stopping = false;
    bool is_doomed = false;  // whatever error it meets is expected
  };

  static Group GroupOf(mm::NodeId node) { return 1 + static_cast<Group>(node.role) * 32 + node.index; }
  // Starts what make() returns in a fibre of its own group, calls run(process) there, and stops it when told to.
  template <class Process, class Make, class Run>
  void StartProcess(Node<Process>& node, mm::NodeId id, Make make, Run run);
  template <class Process>
  void StopProcess(Node<Process>& node);
  template <class Process>
  void Kill(Node<Process>& node, mm::NodeId id);
  void StartLogStore(uint8_t store);
  void StartMaster(uint8_t master);
  void RunWorkers(mm::Master& master, uint8_t number);
  void RunWorker(mm::Master& master, WorkerId worker);

  const ClusterSetup setup_;
  ClusterDatabase& database_;
  const uint64_t seed_;
  SimNetwork net_;
  mm::ClusterPlan plan_;
  ClusterProgress progress_;
  // A process that was killed may be within an operation of its disk: those of the past are kept.
  std::vector<std::unique_ptr<FaultyFileSystem>> all_disks_;
  std::array<FaultyFileSystem*, mm::kLogStores> disks_{};
  std::array<Node<mm::LogStore>, mm::kLogStores> log_stores_;
  Node<mm::LockProcess> locks_;
  std::vector<Node<mm::PageStoreProcess>> page_stores_;
  std::vector<Node<mm::MasterProcess>> masters_;
  std::vector<uint32_t> workers_left_;  // by master
};

}  // namespace dbx::sim
