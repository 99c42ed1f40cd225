#include "tests/simulation/cluster/cluster_faults.h"

#include <utility>

namespace dbx::sim {

using mm::NodeId;
using mm::Role;

void ClusterFaults::Strike() {
  if (!not_told_.empty() && random_() % 2 == 0) {
    cluster_.TellThatMasterIsGone(not_told_.back());
    not_told_.pop_back();
  }
  if (deaths_left_ > 0 && random_() % 2 == 0) return StrikeMaster();
  switch (random_() % 4) {
    case 0:
      return StrikePageStore();
    case 1:
      return StrikeLink();
    default:
      return StrikeLogStore();
  }
}

std::vector<uint8_t> ClusterFaults::LivingMasters() const {
  std::vector<uint8_t> living;
  for (uint8_t i = 0; i < cluster_.masters(); ++i) {
    if (cluster_.IsAlive({Role::kMaster, i}) && !cluster_.IsDoomed(i)) living.push_back(i);
  }
  return living;
}

// The first of those that live is the one that undoes losers.
void ClusterFaults::StrikeMaster() {
  const std::vector<uint8_t> living = LivingMasters();
  if (living.size() < 2) return;
  --deaths_left_;
  const uint8_t master = random_() % 2 == 0 ? living.front() : living[random_() % living.size()];
  if (random_() % 4 == 0) {
    ++counts_["master cut off"];
    return cluster_.CutOffMaster(master);
  }
  ++counts_["master killed"];
  cluster_.KillMaster(master);
  if (random_() % 2 == 0) {
    cluster_.TellThatMasterIsGone(master);
  } else if (random_() % 2 == 0) {
    not_told_.push_back(master);
  }
}

void ClusterFaults::StrikeLogStore() {
  const auto store = static_cast<uint8_t>(random_() % mm::kLogStores);
  if (!cluster_.IsAlive({Role::kLogStore, store})) return RestartLogStore(store);
  ++counts_["log store crashed"];
  cluster_.KillLogStore(store);
  if (random_() % 2 == 0) RestartLogStore(store);
}

void ClusterFaults::RestartLogStore(uint8_t store) {
  const auto crash = FaultyFileSystem::kCrashes[random_() % std::size(FaultyFileSystem::kCrashes)];
  cluster_.RestartLogStore(store, crash, random_());
}

void ClusterFaults::StrikePageStore() {
  const auto store = static_cast<uint8_t>(random_() % cluster_.setup().page_stores);
  if (!cluster_.IsAlive({Role::kPageStore, store})) return cluster_.StartPageStore(store);
  ++counts_["page store crashed"];
  cluster_.KillPageStore(store);
  if (random_() % 2 == 0) cluster_.StartPageStore(store);
}

std::pair<NodeId, NodeId> ClusterFaults::SomeLink() {
  const NodeId master{Role::kMaster, static_cast<uint8_t>(random_() % cluster_.masters())};
  const NodeId log_store{Role::kLogStore, static_cast<uint8_t>(random_() % mm::kLogStores)};
  const NodeId page_store{Role::kPageStore, static_cast<uint8_t>(random_() % cluster_.setup().page_stores)};
  const NodeId other{Role::kLogStore, static_cast<uint8_t>((log_store.index + 1) % mm::kLogStores)};
  const std::pair<NodeId, NodeId> links[] = {
      {master, log_store}, {master, log_store}, {master, page_store}, {page_store, log_store}, {log_store, other}};
  return links[random_() % std::size(links)];
}

void ClusterFaults::StrikeLink() {
  const auto [a, b] = SomeLink();
  switch (random_() % 3) {
    case 0:
      ++counts_["link broken"];
      return cluster_.net().Break(a, b);
    case 1:
      ++counts_["link cut"];
      return cluster_.net().Cut(a, b);
    default:
      ++counts_["links mended"];
      return cluster_.net().MendAll();
  }
}

void ClusterFaults::MendAll() {
  for (uint8_t i = 0; i < cluster_.masters(); ++i) {
    if (cluster_.IsDoomed(i)) cluster_.KillMaster(i);
  }
  for (const uint8_t master : not_told_) cluster_.TellThatMasterIsGone(master);
  not_told_.clear();
  cluster_.net().MendAll();
  for (uint8_t i = 0; i < mm::kLogStores; ++i) {
    if (!cluster_.IsAlive({Role::kLogStore, i})) RestartLogStore(i);
  }
  for (uint8_t i = 0; i < cluster_.setup().page_stores; ++i) {
    if (!cluster_.IsAlive({Role::kPageStore, i})) cluster_.StartPageStore(i);
  }
  cluster_.AwaitStarts();
}

}  // namespace dbx::sim
