#include "base/placement.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/check.h"
#include "base/error.h"

namespace dbx {
namespace {

struct NamedPolicy {
  std::string_view name;
  PinPolicy policy;
};
constexpr std::array<NamedPolicy, 3> kPolicies = {
    {{"none", PinPolicy::kNone}, {"compact", PinPolicy::kCompact}, {"scatter", PinPolicy::kScatter}}};

[[noreturn]] void Refuse(const std::string& what) { throw Error(ExitStatus::kUsage, "--pin: " + what); }

std::string Counted(size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// The allowed CPUs of each node in the order in which they are taken: one of each core, then their siblings.
using NodeCpus = std::map<uint32_t, std::vector<uint32_t>>;

NodeCpus CpusByNode(const Topology& topology) {
  std::map<uint32_t, uint32_t> seen_of_core;
  std::map<uint32_t, std::vector<std::pair<uint32_t, uint32_t>>> ranked;  // by node: rank within its core, id
  for (const Cpu& cpu : topology.cpus) {
    if (cpu.allowed) ranked[cpu.node].emplace_back(seen_of_core[cpu.core]++, cpu.id);
  }
  NodeCpus nodes;
  for (auto& [node, cpus] : ranked) {
    std::ranges::sort(cpus);
    for (const auto& [rank, id] : cpus) nodes[node].push_back(id);
  }
  return nodes;
}

std::vector<uint32_t> Compact(const NodeCpus& nodes) {
  std::vector<const std::vector<uint32_t>*> by_size;
  for (const auto& [node, cpus] : nodes) by_size.push_back(&cpus);
  std::ranges::stable_sort(by_size, [](const auto* a, const auto* b) { return a->size() > b->size(); });
  std::vector<uint32_t> order;
  for (const auto* cpus : by_size) order.insert(order.end(), cpus->begin(), cpus->end());
  return order;
}

std::vector<uint32_t> Scatter(const NodeCpus& nodes) {
  std::vector<uint32_t> order;
  for (size_t turn = 0, before = 1; before != order.size(); ++turn) {
    before = order.size();
    for (const auto& [node, cpus] : nodes) {
      if (turn < cpus.size()) order.push_back(cpus[turn]);
    }
  }
  return order;
}

void CheckList(const Topology& topology, const std::vector<uint32_t>& cpus) {
  std::set<uint32_t> seen;
  for (const uint32_t id : cpus) {
    const std::string name = "CPU " + std::to_string(id);
    if (!seen.insert(id).second) Refuse(name + " is in the list twice");
    const Cpu* const cpu = topology.Find(id);
    if (std::ranges::find(topology.offline, id) != topology.offline.end()) Refuse(name + " is offline");
    if (cpu == nullptr) Refuse("this host has no " + name);
    if (!cpu->allowed) Refuse("this process may not use " + name + " (its affinity mask, or its container's)");
  }
}

// Takes from `left`, the CPUs without a thread of the run, those of the writers.
class WriterPlanner {
 public:
  WriterPlanner(const Topology& topology, const Placement& placement, std::vector<uint32_t> left)
      : topology_(topology), left_(std::move(left)) {
    for (const uint32_t cpu : placement.workers) Occupy(cpu);
  }

  std::optional<uint32_t> Take(uint32_t home) {
    const auto far = [&](uint32_t id) {
      const Cpu& cpu = *topology_.Find(id);
      return std::tuple(cpu.node != home, busy_cores_.contains(cpu.core), cpu.node, id);
    };
    const auto nearest = std::ranges::min_element(left_, {}, far);
    if (nearest == left_.end()) return std::nullopt;
    const uint32_t cpu = *nearest;
    left_.erase(nearest);
    Occupy(cpu);
    return cpu;
  }

 private:
  void Occupy(uint32_t cpu) { busy_cores_.insert(topology_.Find(cpu)->core); }

  const Topology& topology_;
  std::vector<uint32_t> left_;
  std::set<uint32_t> busy_cores_;
};

// The node of most of the workers whose logs writer `writer` flushes; the lowest of several.
uint32_t HomeOf(const Topology& topology, const std::vector<uint32_t>& workers, uint32_t writer, uint32_t writers) {
  std::map<uint32_t, uint32_t> count;
  for (size_t w = writer % workers.size(); w < workers.size(); w += writers) ++count[topology.Find(workers[w])->node];
  return std::ranges::max_element(count, {}, [](const auto& node) { return node.second; })->first;
}

}  // namespace

std::optional<PinChoice> ParsePin(std::string_view text) {
  for (const NamedPolicy& named : kPolicies) {
    if (named.name == text) return PinChoice{named.policy, {}};
  }
  std::optional<std::vector<uint32_t>> cpus = ParseCpuList(text);
  if (!cpus || cpus->empty()) return std::nullopt;
  return PinChoice{PinPolicy::kList, std::move(*cpus)};
}

std::string PinText(const PinChoice& pin) {
  const auto named = std::ranges::find(kPolicies, pin.policy, &NamedPolicy::policy);
  return named == kPolicies.end() ? CpuListText(pin.cpus) : std::string(named->name);
}

Placement PlanPlacement(const Topology& topology, const PinChoice& pin, uint32_t workers, uint32_t writers) {
  CHECK(workers > 0);
  Placement placement;
  placement.writers.resize(writers);
  if (pin.policy == PinPolicy::kNone) return placement;
  std::vector<uint32_t> order = pin.cpus;
  if (pin.policy == PinPolicy::kList) {
    CheckList(topology, order);
  } else {
    const NodeCpus nodes = CpusByNode(topology);
    order = pin.policy == PinPolicy::kCompact ? Compact(nodes) : Scatter(nodes);
  }
  if (order.size() < workers) {
    Refuse(Counted(order.size(), "CPU") + " for " + Counted(workers, "worker") + ": use a smaller -t" +
           (pin.policy == PinPolicy::kList ? ", or name more CPUs" : ", or leave --pin out"));
  }
  placement.workers.assign(order.begin(), order.begin() + workers);
  const std::vector<uint32_t> left(order.begin() + workers, order.end());
  WriterPlanner planner(topology, placement, left);
  for (uint32_t d = 0; d < writers; ++d) {
    if (pin.policy != PinPolicy::kList) {
      placement.writers[d] = planner.Take(HomeOf(topology, placement.workers, d, writers));
    } else if (d < left.size()) {
      placement.writers[d] = left[d];
    }
    placement.buffers.push_back(placement.writers[d].value_or(placement.workers[d % workers]));
  }
  return placement;
}

}  // namespace dbx
