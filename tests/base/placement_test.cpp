// Plans on hosts that are made up: some in full, and for all small cases what every plan promises.
#include "base/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "tests/base/topologies.h"

namespace dbx {
namespace {

using Cpus = std::vector<uint32_t>;
constexpr uint32_t kNone = UINT32_MAX;  // of a writer that is not pinned

struct Case {
  const char* name;
  Topology host;
  const char* pin;
  uint32_t workers;
  Cpus expected;  // of the workers, then of the writers
};

Cpus CpusOf(const Placement& placement) {
  Cpus cpus = placement.workers;
  for (const auto& writer : placement.writers) cpus.push_back(writer.value_or(kNone));
  return cpus;
}

Placement Plan(const Topology& host, const char* pin, uint32_t workers, uint32_t writers) {
  return PlanPlacement(host, ParsePin(pin).value(), workers, writers);
}

const Topology kServer = Host(2, 8, 2);  // node 0: 0-7 and 16-23, node 1: 8-15 and 24-31
const Topology kPlain = Host(1, 2, 1);

TEST(Plan, IsAsThisTableHasIt) {
  const Topology holes = WithOffline(Host(2, 4, 1), {0, 1, 6});            // node 0: 2 3, node 1: 4 5 7
  const Topology odd_node = Restricted(Host(2, 4, 2), {1, 4, 5, 12, 13});  // node 0: 1, node 1: 4 5 and siblings 12 13
  const Case cases[] = {
      {"the cores of the first node", kServer, "compact", 4, {0, 1, 2, 3}},
      {"cores, then siblings", kServer, "compact", 10, {0, 1, 2, 3, 4, 5, 6, 7, 16, 17}},
      {"the second node when the first is full",
       kServer,
       "compact",
       18,
       {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8, 9}},
      {"a writer on a core of its own", kServer, "compact", 4, {0, 1, 2, 3, 4}},
      {"a writer on a sibling of the workers' node", kServer, "compact", 8, {0, 1, 2, 3, 4, 5, 6, 7, 16}},
      {"nodes in turn", kServer, "scatter", 4, {0, 8, 1, 9}},
      {"writers of workers on two nodes", kServer, "scatter", 4, {0, 8, 1, 9, 2, 10}},
      {"every core before any sibling",
       kServer,
       "scatter",
       18,
       {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15, 16, 24}},
      {"writers of workers on three nodes", Host(3, 4, 1), "scatter", 6, {0, 4, 8, 1, 5, 9, 2, 3}},
      {"siblings beside each other", HostOfPairs(4), "compact", 5, {0, 2, 4, 6, 1, 3}},
      {"a writer on a free core beside siblings", HostOfPairs(4), "scatter", 3, {0, 2, 4, 6, 1}},
      {"two writers on two cores", HostOfPairs(3), "compact", 1, {0, 2, 4, 1}},
      {"one node", kPlain, "compact", 1, {0, 1}},
      {"no CPU for the writer", kPlain, "scatter", 2, {0, 1, kNone}},
      {"one CPU for two writers", kPlain, "compact", 1, {0, 1, kNone}},
      {"the larger node first", holes, "compact", 4, {4, 5, 7, 2}},
      {"a writer on another node if its own is full", holes, "compact", 3, {4, 5, 7, 2}},
      {"a node that is full is skipped", holes, "scatter", 5, {2, 4, 3, 5, 7}},
      {"what the process may use", odd_node, "compact", 3, {4, 5, 12, 13, 1}},
      {"a core of which one CPU is allowed", Restricted(kServer, {16, 17, 1}), "compact", 3, {1, 16, 17}},
      {"a list, and the writers behind it", kServer, "31,0,5-6", 2, {31, 0, 5, 6, kNone}},
      {"a list that is just long enough", kServer, "1,0", 2, {1, 0, kNone}},
  };
  for (const Case& c : cases) {
    const auto writers = static_cast<uint32_t>(c.expected.size()) - c.workers;
    EXPECT_EQ(CpusOf(Plan(c.host, c.pin, c.workers, writers)), c.expected) << c.name;
  }
}

TEST(Plan, WithNonePinsNothing) {
  const Placement placement = Plan(kServer, "none", 1000, 2);
  EXPECT_EQ(CpusOf(placement), (Cpus{kNone, kNone}));
  EXPECT_TRUE(placement.buffers.empty());
}

TEST(Plan, BuffersAreNearTheirWriterOrItsFirstWorker) {
  EXPECT_EQ(Plan(kServer, "compact", 4, 2).buffers, (Cpus{4, 5}));
  EXPECT_EQ(Plan(kPlain, "compact", 2, 2).buffers, (Cpus{0, 1}));
  EXPECT_EQ(Plan(kPlain, "scatter", 1, 3).buffers, (Cpus{1, 0, 0}));
}

TEST(Plan, AWriterGoesToTheNodeOfMostOfItsWorkers) {
  // Writer 0 has workers 0 and 2, on node 1; writer 1 has 1, on node 0.
  const Placement placement = Plan(kServer, "8,0,9,10,2", 3, 2);
  EXPECT_EQ(CpusOf(placement), (Cpus{8, 0, 9, 10, 2})) << "of a list in its order";
  const Topology host = Restricted(kServer, {0, 1, 2, 8, 9, 10, 11});  // node 1 is the larger one
  EXPECT_EQ(CpusOf(Plan(host, "compact", 5, 2)), (Cpus{8, 9, 10, 11, 0, 1, 2}));
  EXPECT_EQ(CpusOf(Plan(host, "scatter", 3, 2)), (Cpus{0, 8, 1, 2, 9}));
}

// What every plan promises, checked for one.
class Promises {
 public:
  Promises(const Topology& host, const Placement& plan) : host_(host), plan_(plan) {}

  void Check(const char* pin, uint32_t writers) const {
    EveryCpuIsAllowedAndTakenOnce();
    WritersAreOnTheirWorkersNodeWhileItHasCpus(writers);
    for (const auto& [node, taken] : TakenByNode()) CoresComeBeforeSiblings(node);
    pin == std::string("compact") ? NodesAreFilled() : NodesAreEven();
  }

 private:
  uint32_t NodeOf(uint32_t cpu) const { return host_.Find(cpu)->node; }

  std::map<uint32_t, size_t> TakenByNode() const {
    std::map<uint32_t, size_t> taken;
    for (const uint32_t cpu : plan_.workers) ++taken[NodeOf(cpu)];
    return taken;
  }
  std::map<uint32_t, size_t> AllowedByNode() const {
    std::map<uint32_t, size_t> allowed;
    for (const Cpu& cpu : host_.cpus) allowed[cpu.node] += cpu.allowed ? 1 : 0;
    std::erase_if(allowed, [](const auto& node) { return node.second == 0; });
    return allowed;
  }

  void EveryCpuIsAllowedAndTakenOnce() const {
    std::set<uint32_t> seen;
    for (const uint32_t cpu : CpusOf(plan_)) {
      if (cpu == kNone) continue;
      EXPECT_TRUE(seen.insert(cpu).second) << cpu;
      ASSERT_NE(host_.Find(cpu), nullptr) << cpu;
      EXPECT_TRUE(host_.Find(cpu)->allowed) << cpu;
    }
  }

  void WritersAreOnTheirWorkersNodeWhileItHasCpus(uint32_t writers) const {
    size_t left = 0;
    for (const auto& [node, allowed] : AllowedByNode()) left += allowed;
    left -= plan_.workers.size();
    const auto pinned = std::ranges::count_if(plan_.writers, [](const auto& cpu) { return cpu.has_value(); });
    EXPECT_EQ(static_cast<size_t>(pinned), std::min<size_t>(writers, left));
    ASSERT_EQ(plan_.buffers.size(), writers);
    if (TakenByNode().size() > 1 || writers == 0 || !plan_.writers[0]) return;
    const uint32_t home = NodeOf(plan_.workers[0]);
    if (AllowedByNode()[home] > plan_.workers.size()) {
      EXPECT_EQ(NodeOf(*plan_.writers[0]), home);
    }
  }

  // No core of the node has two workers while another one that is allowed has none.
  void CoresComeBeforeSiblings(uint32_t node) const {
    std::map<uint32_t, size_t> workers_of_core;
    for (const Cpu& cpu : host_.cpus) {
      if (cpu.node == node && cpu.allowed) workers_of_core[cpu.core] += std::ranges::count(plan_.workers, cpu.id);
    }
    const auto [fewest, most] =
        std::ranges::minmax_element(workers_of_core, {}, [](const auto& c) { return c.second; });
    if (fewest->second == 0) {
      EXPECT_LE(most->second, 1u) << "node " << node;
    }
  }

  void NodesAreFilled() const {
    size_t partly = 0;
    for (const auto& [node, taken] : TakenByNode()) partly += taken < AllowedByNode()[node] ? 1 : 0;
    EXPECT_LE(partly, 1u);
  }

  void NodesAreEven() const {
    auto taken = TakenByNode();
    size_t most = 0;
    for (const auto& [node, count] : taken) most = std::max(most, count);
    for (const auto& [node, allowed] : AllowedByNode()) {
      if (taken[node] < allowed) {
        EXPECT_GE(taken[node] + 1, most) << "node " << node;
      }
    }
  }

  const Topology& host_;
  const Placement& plan_;
};

TEST(Plan, KeepsItsPromisesOnEverySmallHost) {
  std::vector<Topology> hosts = {kServer, kPlain, WithOffline(Host(2, 4, 2), {0, 9, 11})};
  for (uint32_t nodes = 1; nodes <= 3; ++nodes) {
    for (uint32_t cores = 1; cores <= 3; ++cores) {
      for (uint32_t siblings = 1; siblings <= 2; ++siblings) hosts.push_back(Host(nodes, cores, siblings));
    }
  }
  hosts.push_back(HostOfPairs(3));
  hosts.push_back(Restricted(Host(2, 4, 2), {1, 2, 3, 7, 9, 10, 15}));
  size_t plans = 0;
  for (const Topology& host : hosts) {
    const auto allowed = static_cast<uint32_t>(std::ranges::count_if(host.cpus, &Cpu::allowed));
    for (const char* pin : {"compact", "scatter"}) {
      for (uint32_t workers = 1; workers <= allowed; ++workers, plans += 5) {
        for (uint32_t writers = 0; writers < 5; ++writers) {
          const Placement plan = Plan(host, pin, workers, writers);
          ASSERT_EQ(plan.workers.size(), workers);
          Promises(host, plan).Check(pin, writers);
        }
      }
    }
  }
  EXPECT_GT(plans, 1000u);
}

std::string Refusal(const Topology& host, const char* pin, uint32_t workers) {
  try {
    Plan(host, pin, workers, 0);
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ExitStatus::kUsage);
    return e.what();
  }
}

TEST(Plan, IsRefusedInOneLine) {
  const Topology host = WithOffline(Restricted(Host(1, 6, 1), {0, 1, 2}), {5});
  EXPECT_EQ(Refusal(host, "compact", 4), "--pin: 3 CPUs for 4 workers: use a smaller -t, or leave --pin out");
  EXPECT_EQ(Refusal(host, "0", 2), "--pin: 1 CPU for 2 workers: use a smaller -t, or name more CPUs");
  EXPECT_EQ(Refusal(host, "0,99", 1), "--pin: this host has no CPU 99");
  EXPECT_EQ(Refusal(host, "0,5", 1), "--pin: CPU 5 is offline");
  EXPECT_EQ(Refusal(host, "0,3", 1), "--pin: this process may not use CPU 3 (its affinity mask, or its container's)");
  EXPECT_EQ(Refusal(host, "0,1,0", 1), "--pin: CPU 0 is in the list twice");
  EXPECT_EQ(Refusal(Topology(), "scatter", 1), "--pin: 0 CPUs for 1 worker: use a smaller -t, or leave --pin out");
  EXPECT_EQ(Refusal(host, "scatter", 3), "");
  EXPECT_EQ(Refusal(host, "2,1", 2), "");
}

TEST(Pin, IsANameOrAList) {
  for (const char* text : {"none", "compact", "scatter", "0", "0,2,4-7"}) {
    ASSERT_TRUE(ParsePin(text).has_value()) << text;
    EXPECT_EQ(PinText(*ParsePin(text)), text);
  }
  EXPECT_EQ(PinText(ParsePin("4,5,6").value()), "4-6");
  for (const char* text : {"", "Compact", "compact,1", "1,none", "all", "0-"}) EXPECT_FALSE(ParsePin(text)) << text;
}

}  // namespace
}  // namespace dbx
