// A simulated cluster as a seed chooses it: how many processes, how large, how fast, and what will go wrong.
#pragma once

#include <cstdint>
#include <vector>

#include "logging/log_writer.h"
#include "multi_master/lock/lease.h"
#include "multi_master/names.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/trial.h"

namespace dbx::sim {

// Of a master. Worker w is of master w / kClusterWorkersMax.
inline constexpr uint32_t kClusterWorkersMax = 3;
inline constexpr uint32_t kClusterShapes = 8;

struct ClusterSetup {
  WorkloadKind workload = WorkloadKind::kTest;
  uint32_t shape = 0;  // of the workload's tables (cluster_database.h)
  size_t page_bytes_max = mm::kPageBytes;
  uint32_t masters = 1;
  uint32_t workers = 1;  // of each master
  uint64_t calls = 10;   // of each worker
  uint32_t page_stores = 1;
  size_t frames_max = 32;           // of a master's buffer
  uint64_t unacknowledged_max = 0;  // of a worker; 0: it waits for the log after each transaction
  bool workers_pause = false;       // between transactions
  uint64_t think_nanos_max = 0;     // between the calls of a transaction, which holds its row locks

  LinkSpeed links;
  bool has_slow_link = false;
  uint64_t disk_nanos_max = 0;
  uint32_t disk_stall_one_in = 16;
  LogWriterOptions writer;

  uint32_t faults = 0;           // of Log Stores, Page Stores and links
  uint64_t fault_nanos_max = 0;  // between two of them
  bool is_calm = false;          // nothing goes wrong or is slow: no transaction takes long
  uint32_t deaths = 0;           // of masters; one lives at least
  mm::LeaseTerms lease;
  Plan plan;
};

// Clusters of one to four masters, under each workload that they run here.
std::vector<Cell> ClusterCells();

// A fault more, or a worker less, does not change the other choices. `crashes`: the number of faults at most.
ClusterSetup SetupOf(const Trial& trial);

}  // namespace dbx::sim
