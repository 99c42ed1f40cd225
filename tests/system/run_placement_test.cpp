// From the options of a run to the places of its threads and tables, on hosts that are made up and on this one.
#include "system/run_placement.h"

#include <gtest/gtest.h>

#include "base/affinity.h"
#include "base/error.h"
#include "system/command_line/parse_options.h"
#include "system/pairs/registry.h"
#include "system/replay/recovery.h"
#include "tests/base/fake_numa.h"
#include "tests/base/topologies.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

class RunPlacementTest : public ::testing::Test {
 protected:
  RunPlacementTest() {
    options_ = DefaultOptions();
    // Pairs that the sanitised builds hold too.
    options_.cc = "SILO", options_.log = "LOG_TAURUS", options_.log_type = "LOG_COMMAND";
    options_.thread_cnt = 2, options_.num_logger = 4;
    options_.log_dirs = {"a", "b", "c"};
    options_.log_limit_bytes = 64 << 20;
    options_.pin = "compact";
  }
  std::optional<PlacementResult> Result(const Topology& host = Host(2, 4, 1)) {
    return RunPlacement(options_, host, numa_).result();
  }

  Options options_;
  FakeNuma numa_;
};

std::vector<std::optional<uint32_t>> CpusOf(const std::vector<PlacementResult::Place>& places) {
  std::vector<std::optional<uint32_t>> cpus;
  for (const PlacementResult::Place& place : places) cpus.push_back(place.cpu);
  return cpus;
}
using Cpus = std::vector<std::optional<uint32_t>>;

TEST_F(RunPlacementTest, ThereIsAWriterForEachDirectoryWithALog) {
  EXPECT_EQ(CpusOf(Result()->writers), (Cpus{2, 3, 4}));
  options_.backup_dirs = 1;
  EXPECT_EQ(CpusOf(Result()->writers), (Cpus{2, 3}));
  options_.num_logger = 1;
  EXPECT_EQ(CpusOf(Result()->writers), Cpus{2});
  options_.log = "LOG_WBL";
  EXPECT_TRUE(Result()->writers.empty()) << "workers and a thread of its own write to a heap";
  options_.log = "LOG_NO";
  EXPECT_TRUE(Result()->writers.empty());
}

TEST_F(RunPlacementTest, ARecoveryHasWorkersAndNoWriters) {
  options_.log_recover = true;
  const auto result = Result();
  EXPECT_EQ(CpusOf(result->workers), (Cpus{0, 1}));
  EXPECT_TRUE(result->writers.empty());
}

TEST_F(RunPlacementTest, TheResultNamesNodesAndWhatIsInForce) {
  options_.pin = "scatter", options_.numa = "interleave", options_.thread_cnt = 7;
  const auto result = Result();
  EXPECT_EQ(result->pin, "scatter");
  EXPECT_EQ(result->workers.at(1).cpu, 4u);
  EXPECT_EQ(result->workers.at(1).node, 1u);
  EXPECT_EQ(CpusOf(result->writers), (Cpus{7, std::nullopt, std::nullopt}));
  EXPECT_EQ(result->memory, "interleave");
  EXPECT_EQ(result->memory_nodes, (std::vector<uint32_t>{0, 1}));
  numa_.nodes = {};
  EXPECT_EQ(Result()->memory, "first_touch");
  EXPECT_EQ(Result()->memory_asked, "interleave");
  EXPECT_NE(Result()->memory_refusal, "");
}

TEST_F(RunPlacementTest, ByDefaultThereIsNoResult) {
  options_.pin = "none";
  EXPECT_FALSE(Result().has_value());
  options_.numa = "local";
  const auto result = Result();
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->workers.empty() && result->writers.empty() && result->buffers.empty());
}

TEST_F(RunPlacementTest, TooManyWorkersAreRefusedAtOnce) {
  options_.thread_cnt = kCpusMax;
  EXPECT_THROW(RunPlacement::CheckedTopology(options_), Error);
  options_.pin = "none";
  RunPlacement::CheckedTopology(options_);
}

TEST(Replay, ItsWorkersTakeThePlacesOfARunsWorkers) {
  const std::vector<uint32_t> all = host::AllowedCpus();
  const PlacedThreads placed({.workers = {all.back(), all.front()}});
  std::vector<std::vector<uint32_t>> allowed(2);
  RunWorkers(
      2, [&](WorkerId worker) { allowed[worker.value()] = host::AllowedCpus(); }, [] {});
  EXPECT_EQ(allowed, (std::vector<std::vector<uint32_t>>{{all.back()}, {all.front()}}));
  EXPECT_EQ(host::AllowedCpus(), all);
}

// Whatever is pinned, a run and its recovery are the same, and their tables are where they were asked to be.
TEST_F(RunPlacementTest, ARunAndItsRecoveryTakeTheirPlaces) {
  const std::vector<uint32_t> all = host::AllowedCpus();
  options_.numa = "interleave", options_.verify = true;
  options_.thread_cnt = static_cast<uint32_t>(std::min<size_t>(2, all.size()));
  options_.synth_table_size = 500, options_.num_logger = 2, options_.log_dirs = {"logs"};
  FaultyFileSystem files;
  LogStorage storage(files);
  {
    const RunPlacement placement(options_, ReadTopology(), numa_);
    EXPECT_EQ(Registry::Global().Create(options_)->Run(options_, storage).verified, "d");
    EXPECT_EQ(host::AllowedCpus(), all);
  }
  EXPECT_GT(numa_.bound.size(), 1u) << "the first is a page for a try";
  numa_.bound.clear();
  options_.log_recover = true;
  const RunPlacement placement(options_, ReadTopology(), numa_);
  EXPECT_EQ(Registry::Global().Create(options_)->Recover(options_, storage).verified, "a,b,d");
  EXPECT_GT(numa_.bound.size(), 1u);
  EXPECT_EQ(host::AllowedCpus(), all);
}

}  // namespace
}  // namespace dbx
