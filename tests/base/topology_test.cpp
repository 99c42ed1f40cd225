// Lists of CPUs, and hosts as /sys describes them, in a copy of it.
#include "base/topology.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>

#include "base/affinity.h"
#include "tests/logging/device/temp_dir.h"

namespace dbx {
namespace {

using Cpus = std::vector<uint32_t>;

TEST(CpuList, HasNumbersAndRangesInItsOrder) {
  EXPECT_EQ(ParseCpuList("0,2,4-7"), (Cpus{0, 2, 4, 5, 6, 7}));
  EXPECT_EQ(ParseCpuList("5,1-2"), (Cpus{5, 1, 2}));
  EXPECT_EQ(ParseCpuList("3-3"), Cpus{3});
  EXPECT_EQ(ParseCpuList(""), Cpus());
  EXPECT_EQ(ParseCpuList("8191"), Cpus{8191});
}

TEST(CpuList, IsRefusedAsAWhole) {
  for (const char* text : {",", "1,", ",1", "1,,2", "4-2", "-1", "1-", "a", "1a", "1 2", "0x1", "8192", "0-8192",
                           "1-2-3", "99999999999999999999", " 1", "1,2 "}) {
    EXPECT_EQ(ParseCpuList(text), std::nullopt) << text;
  }
}

TEST(CpuList, AsTextIsParsedToTheSame) {
  EXPECT_EQ(CpuListText(Cpus{0, 2, 4, 5, 6, 7}), "0,2,4-7");
  EXPECT_EQ(CpuListText(Cpus{7, 6, 5}), "7,6,5");
  EXPECT_EQ(CpuListText({}), "");
  for (const Cpus& cpus : {Cpus{1}, Cpus{0, 1}, Cpus{3, 4, 9, 1, 2}}) EXPECT_EQ(ParseCpuList(CpuListText(cpus)), cpus);
}

// A folder as /sys/devices/system.
class SysTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  Topology Read(const Cpus& allowed) const { return ReadTopology(folder_.path(), allowed); }

  TempDir folder_;
};

TEST_F(SysTest, NodesCoresAndSiblingsAreRead) {
  Write("cpu/online", "0-3,6-7");
  Write("cpu/present", "0-7");
  Write("node/node0/cpulist", "0-1,4-5");
  Write("node/node2/cpulist", "2-3,6-7");
  for (const char* cpu : {"2", "6"}) Write(std::string("cpu/cpu") + cpu + "/topology/core_cpus_list", "2,6");
  for (const char* cpu : {"3", "7"}) Write(std::string("cpu/cpu") + cpu + "/topology/thread_siblings_list", "3,7");
  const Topology host = Read({0, 1, 2, 3, 6});
  ASSERT_EQ(host.cpus.size(), 6u);
  EXPECT_EQ(host.offline, (Cpus{4, 5}));
  const std::map<uint32_t, std::array<uint32_t, 3>> expected = {{0, {0, 0, 1}}, {1, {1, 0, 1}}, {2, {2, 2, 1}},
                                                                {3, {3, 2, 1}}, {6, {2, 2, 1}}, {7, {3, 2, 0}}};
  for (const auto& [id, of_cpu] : expected) {
    const Cpu* const cpu = host.Find(id);
    ASSERT_NE(cpu, nullptr) << id;
    EXPECT_EQ((std::array<uint32_t, 3>{cpu->core, cpu->node, cpu->allowed ? 1u : 0u}), of_cpu) << id;
  }
  EXPECT_EQ(host.Find(4), nullptr);
}

TEST_F(SysTest, WhatIsNotThereIsTheSimplestHost) {
  const Topology host = Read({1, 4});
  ASSERT_EQ(host.cpus.size(), 2u);
  for (const Cpu& cpu : host.cpus) {
    EXPECT_EQ(cpu.core, cpu.id);
    EXPECT_EQ(cpu.node, 0u);
    EXPECT_TRUE(cpu.allowed);
  }
}

// "node" is the folder of all, "has_cpu" and "possible" are files.
TEST_F(SysTest, OtherEntriesBesideNodesAreSkipped) {
  Write("cpu/online", "0");
  Write("node/possible", "0");
  Write("node/nodes/cpulist", "0");
  Write("node/node1x/cpulist", "0");
  EXPECT_EQ(Read({0}).cpus.at(0).node, 0u);
}

TEST(ThisHost, HasTheAllowedCpusOfThisProcess) {
  const Topology host = ReadTopology();
  Cpus allowed;
  for (const Cpu& cpu : host.cpus) {
    if (cpu.allowed) allowed.push_back(cpu.id);
  }
  EXPECT_EQ(allowed, host::AllowedCpus());
  EXPECT_FALSE(allowed.empty());
}

}  // namespace
}  // namespace dbx
