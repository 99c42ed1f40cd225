#include "tests/simulation/cluster/cluster_setup.h"

#include <algorithm>
#include <random>

namespace dbx::sim {
namespace {

template <class T>
T OneOf(std::mt19937_64& random, std::initializer_list<T> choices) {
  return *(choices.begin() + random() % choices.size());
}

void ChooseProcesses(ClusterSetup& setup, const Trial& trial, std::mt19937_64& random) {
  setup.shape = static_cast<uint32_t>(random() % kClusterShapes);
  setup.workers = std::min(OneOf<uint32_t>(random, {1, 1, 2, 2, 3}), trial.limits.workers);
  setup.calls = std::min(OneOf<uint64_t>(random, {3, 6, 10, 16, 24}), trial.limits.txns);
  setup.page_stores = 1 + static_cast<uint32_t>(random() % 4 == 0);
  setup.frames_max = OneOf<size_t>(random, {24, 32, 64, 256, 256});
  setup.unacknowledged_max = OneOf<uint64_t>(random, {0, 0, 2, 100});
  setup.workers_pause = random() % 4 == 0;
}

void ChooseSpeeds(ClusterSetup& setup, std::mt19937_64& random) {
  setup.links.nanos_min = OneOf<uint64_t>(random, {1'000, 20'000, 20'000});
  setup.links.nanos_max = OneOf<uint64_t>(random, {20'000, 100'000, 200'000, 2'000'000});
  setup.has_slow_link = random() % 4 == 0;
  setup.disk_nanos_max = OneOf<uint64_t>(random, {0, 20'000, 100'000, 500'000});
  setup.disk_stall_one_in = OneOf<uint32_t>(random, {1 << 20, 64, 16});
  setup.writer.flush_interval_us = OneOf<uint64_t>(random, {100, 200, 400, 1000});
  setup.writer.flush_block_bytes = OneOf<uint64_t>(random, {4 << 10, 64 << 10});
}

void ChooseFaults(ClusterSetup& setup, const Trial& trial, std::mt19937_64& random) {
  setup.faults = std::min(OneOf<uint32_t>(random, {0, 0, 1, 2, 4}), trial.crashes);
  setup.fault_nanos_max = OneOf<uint64_t>(random, {1'000'000, 5'000'000, 20'000'000});
}

// Draws of its own: without deaths the rest is as it was.
void ChooseDeaths(ClusterSetup& setup, const Trial& trial) {
  std::mt19937_64 random(trial.seed ^ 0xdead);
  setup.deaths = std::min({OneOf<uint32_t>(random, {0, 1, 1, 2, 3}), setup.masters - 1, trial.crashes});
  if (random() % 4 != 0) setup.lease = {50'000'000, 300'000'000, 600'000'000};
  setup.lease.start_nanos = 2'000'000'000;
  setup.think_nanos_max = OneOf<uint64_t>(random, {0, 0, 50'000, 500'000});
}

// Of this many bytes, a tree of a few rows has many pages.
size_t PageBytesOf(const ClusterSetup& setup) {
  if (setup.shape % 2 == 0) return mm::kPageBytes;
  return setup.workload == WorkloadKind::kYcsb ? 1024 : 2048;
}

// A run in which a transaction that takes long shows that it has waited for nothing.
void MakeCalm(ClusterSetup& setup) {
  setup.faults = setup.deaths = 0;
  setup.has_slow_link = false;
  setup.links = {};
  setup.disk_nanos_max = 20'000;
  setup.disk_stall_one_in = 1 << 20;
  setup.think_nanos_max = 0;
  setup.frames_max = 256;
  setup.is_calm = setup.workload != WorkloadKind::kSysbench;
}

}  // namespace

std::vector<Cell> ClusterCells() {
  std::vector<Cell> cells;
  for (const WorkloadKind workload : {WorkloadKind::kTest, WorkloadKind::kYcsb, WorkloadKind::kSysbench}) {
    for (uint32_t masters = 1; masters <= 4; ++masters) cells.push_back({{}, workload, 1, masters});
  }
  return cells;
}

ClusterSetup SetupOf(const Trial& trial) {
  std::mt19937_64 random(trial.seed * 0x9E3779B97F4A7C15 + trial.cell.masters);
  ClusterSetup setup;
  setup.workload = trial.cell.workload;
  setup.masters = trial.cell.masters;
  ChooseProcesses(setup, trial, random);
  setup.page_bytes_max = PageBytesOf(setup);
  ChooseSpeeds(setup, random);
  ChooseFaults(setup, trial, random);
  ChooseDeaths(setup, trial);
  if (random() % 8 == 0) MakeCalm(setup);
  if (setup.workload == WorkloadKind::kSysbench) setup.calls = std::min<uint64_t>(setup.calls, 6);
  setup.plan.seed = random();
  setup.plan.policy = random() % 4 == 0 ? Policy::kPriority : Policy::kRandom;
  setup.plan.steps_per_turn = OneOf<uint32_t>(random, {16, 64, 256, 1024});
  setup.plan.spurious_wakes = random() % 4 == 0;
  setup.plan.priority_changes = 1 + random() % 8;
  setup.plan.steps_expected = 20'000 * setup.masters;
  setup.plan.steps_max = trial.limits.steps;
  return setup;
}

}  // namespace dbx::sim
