// A cluster of the product's processes on virtual cores under SYSBENCH, for a measured interval of virtual time:
// masters with their workers, the lock process, Log Stores and Page Stores, as system/cluster/ runs them as real
// processes.
//
//   load -> [all processes serve] -> workers warm up -> measured interval -> workers stop -> [processes stop in order]
//
// Nothing fails. (Clusters that do are those of tests/simulation/cluster.)
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "benchmarks/sysbench/sysbench.h"
#include "multi_master/names.h"
#include "system/cluster/cluster_result.h"
#include "tests/simulation/model/model_network.h"
#include "tests/simulation/model/virtual_cores.h"

namespace dbx::sim {

struct ModelPlan {
  SysbenchConfig workload;  // with the numbers of masters and of workers
  bool read_committed = false;
  uint64_t seed = 1;
  double warmup_seconds = 0.1;
  double seconds = 0.1;
  uint32_t calls = 2000;  // of a worker, which begins anew behind them

  uint32_t page_stores = 2;
  uint32_t frames = 8192;  // of a master's buffer
  uint64_t flush_interval_us = 200;
  uint64_t storage_nanos = 50'000;  // of a sync of a Log Store, on average
  NetworkShape network;
  NodeShape master{8, 0}, locks{8, 0}, log_store{8, 0}, page_store{8, 0};
};

// Of the processes of a role.
struct RoleUse {
  double busy_share = 0;       // of their cores, in the measured interval
  double nanos_per_txn = 0;    // of processor time
  double charged_per_txn = 0;  // of it, for messages
  double steps_per_txn = 0;
  double line_share = 0;  // of their lines outward
};

struct ModelResult {
  double seconds = 0;
  MasterResult masters;  // of all of them
  std::array<RoleUse, ModelNetwork::kRoles> roles;
  std::array<double, ModelNetwork::kRoles> messages_per_txn{};
  double bytes_per_txn = 0;  // of messages
  Totals totals;
};

// Throws Error, of a process that has failed too, and Stuck.
ModelResult RunModel(const ModelPlan& plan);

// One line of JSON, with `plan`.
std::string JsonOf(const ModelPlan& plan, const ModelResult& result);

}  // namespace dbx::sim
