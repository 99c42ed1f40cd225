// What goes wrong in a simulated cluster while its workers run: masters die, or are cut off from the lock process; Log
// Stores and Page Stores crash and come back; links break, are cut and mended.
//
// Threads: the body's fibre of the simulation.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/simulation/cluster/sim_cluster.h"

namespace dbx::sim {

class ClusterFaults {
 public:
  ClusterFaults(SimCluster& cluster, uint64_t seed)
      : cluster_(cluster), random_(seed), deaths_left_(cluster.setup().deaths) {}

  // One more, at random.
  void Strike();
  // What is dead comes back, but for masters, and all links are mended. Masters that were cut off are killed.
  void MendAll();

  // How often each has happened.
  const std::map<std::string, uint64_t>& counts() const { return counts_; }

 private:
  void StrikeMaster();
  std::vector<uint8_t> LivingMasters() const;
  void StrikeLogStore();
  void StrikePageStore();
  void StrikeLink();
  // A link without which no process has to end.
  std::pair<mm::NodeId, mm::NodeId> SomeLink();
  void RestartLogStore(uint8_t store);

  SimCluster& cluster_;
  std::mt19937_64 random_;
  uint32_t deaths_left_;           // of masters
  std::vector<uint8_t> not_told_;  // masters whose deaths the lock process was not told of yet
  std::map<std::string, uint64_t> counts_;
};

}  // namespace dbx::sim
