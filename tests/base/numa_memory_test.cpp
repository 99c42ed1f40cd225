// Which policy is in force, what is asked of the system, and what this host's kernel makes of it.
#include "base/numa_memory.h"

#include <gtest/gtest.h>
#include <numaif.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/error.h"
#include "storage/heap/arena.h"
#include "storage/heap/page_space.h"
#include "tests/base/fake_numa.h"

namespace dbx {
namespace {

TEST(TableMemoryTest, FirstTouchAsksForNothing) {
  FakeNuma numa;
  const TableMemory memory(MemoryPolicy::kFirstTouch, numa);
  const MappedMemory table(1 << 20);
  EXPECT_TRUE(numa.bound.empty());
  EXPECT_EQ(memory.applied(), MemoryPolicy::kFirstTouch);
  EXPECT_EQ(memory.refusal(), "");
}

TEST(TableMemoryTest, EveryMappingOfATableIsPlacedAsAWhole) {
  FakeNuma numa;
  const TableMemory memory(MemoryPolicy::kInterleave, numa);
  EXPECT_EQ(memory.applied(), MemoryPolicy::kInterleave);
  EXPECT_EQ(memory.nodes(), (std::vector<uint32_t>{0, 1}));
  const MappedMemory small(1 << 16), huge(size_t{4} << 20);
  CheckpointClock clock;
  PageSpace pages({.row_bytes = 64, .tuple_offset = 32, .tuple_bytes = 32, .alignment_bytes = 16}, clock);
  const auto* const row = reinterpret_cast<const std::byte*>(pages.RowAt({pages.TakePages(1), 0}));
  EXPECT_TRUE(numa.Holds({small.data(), small.bytes()}));
  EXPECT_TRUE(numa.Holds({huge.data(), huge.bytes()}));
  EXPECT_TRUE(numa.Holds({row, 64}));
  for (const FakeNuma::Bound& b : numa.bound) EXPECT_EQ(b.policy, MemoryPolicy::kInterleave);
}

TEST(TableMemoryTest, EndsWithItsObject) {
  FakeNuma numa;
  { const TableMemory memory(MemoryPolicy::kLocal, numa); }
  numa.bound.clear();
  const MappedMemory table(1 << 20);
  EXPECT_TRUE(numa.bound.empty());
}

TEST(TableMemoryTest, AHostWithoutNumaAppliesNothingAndSaysSo) {
  FakeNuma numa;
  numa.nodes = {};
  const TableMemory memory(MemoryPolicy::kInterleave, numa);
  const MappedMemory table(1 << 20);
  EXPECT_TRUE(numa.bound.empty());
  EXPECT_EQ(memory.applied(), MemoryPolicy::kFirstTouch);
  EXPECT_EQ(memory.refusal(), "the kernel offers no NUMA to this process");
  EXPECT_TRUE(memory.nodes().empty());
}

TEST(TableMemoryTest, ARefusedCallAppliesNothingAndSaysSo) {
  FakeNuma numa;
  numa.error = EPERM;
  const TableMemory memory(MemoryPolicy::kInterleave, numa);
  numa.bound.clear();
  const MappedMemory table(1 << 20);
  EXPECT_TRUE(numa.bound.empty());
  EXPECT_EQ(memory.applied(), MemoryPolicy::kFirstTouch);
  EXPECT_EQ(memory.refusal(), "mbind: Operation not permitted");
}

TEST(TableMemoryTest, ATableThatCannotBePlacedIsNoTable) {
  FakeNuma numa;
  const TableMemory memory(MemoryPolicy::kInterleave, numa);
  numa.error = ENOMEM;
  try {
    const MappedMemory table(1 << 20);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ExitStatus::kNoSpace);
    EXPECT_NE(std::string(e.what()).find("by --numa=interleave failed: Cannot allocate memory"), std::string::npos);
  }
}

TEST(TableMemoryTest, NamesAreThoseOfTheSwitch) {
  for (const std::string_view name : kMemoryPolicyNames) EXPECT_EQ(NameOf(MemoryPolicyNamed(name).value()), name);
  EXPECT_FALSE(MemoryPolicyNamed("bind").has_value());
}

// As the kernel has it.
int PolicyAt(void* at) {
  int mode = -1;
  return get_mempolicy(&mode, nullptr, 0, at, MPOL_F_ADDR) == 0 ? mode : -1;
}

TEST(ThisKernel, TakesThePolicyOfATable) {
  if (LinuxNuma().Nodes().empty()) GTEST_SKIP() << "no NUMA here";
  for (const auto& [policy, mode] :
       {std::pair(MemoryPolicy::kInterleave, MPOL_INTERLEAVE), std::pair(MemoryPolicy::kLocal, MPOL_LOCAL)}) {
    const TableMemory memory(policy);
    if (!memory.refusal().empty()) GTEST_SKIP() << memory.refusal();
    const MappedMemory table(size_t{4} << 20);
    EXPECT_EQ(PolicyAt(table.data()), mode);
    EXPECT_EQ(PolicyAt(table.data() + table.bytes() - 1), mode);
    table.FaultIn(0, table.bytes());
    EXPECT_EQ(table.data()[table.bytes() - 1], std::byte{0});
  }
  const MappedMemory table(1 << 20);
  EXPECT_EQ(PolicyAt(table.data()), MPOL_DEFAULT);
}

}  // namespace
}  // namespace dbx
