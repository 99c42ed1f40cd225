// Every pair that logs, over the TEST workload, on files that forget what was not synced: crash images are taken
// while the run goes on, and each must recover to exactly the transactions that the reference recovers, acknowledged
// ones all among them, in a state that the reference replay confirms and whose history is serializable.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "logging/schemes.h"
#include "system/command_line/parse_options.h"
#include "system/pairs/registry.h"
#include "system/runs/log_directory.h"
#include "system/runs/run_traces.h"
#include "system/transaction/ack_file.h"
#include "tests/base/work_share.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/system/runs/live_copy.h"

namespace dbx::testing {
namespace {

struct Cell {
  PairName pair;
  uint32_t logs;
  bool snapshot = false;
};

std::vector<Cell> LoggingCells() {
  std::vector<Cell> cells;
  for (const PairName& pair : Registry::Global().Supported()) {
    if (pair.log == "LOG_NO") continue;
    for (const uint32_t logs : {1u, 2u, 5u}) {
      if (logs != 1 && HasOneLog(pair.log)) continue;
      cells.push_back({pair, logs});
      if (pair.cc == "HEKATON") cells.push_back({pair, logs, /*snapshot=*/true});
    }
  }
  return cells;
}

std::string CellName(const ::testing::TestParamInfo<Cell>& info) {
  const PairName& pair = info.param.pair;
  return pair.cc + (pair.use_locktable ? "_table_" : "_rows_") + pair.log + "_" + pair.log_type + "_" +
         std::to_string(info.param.logs) + "logs" + (info.param.snapshot ? "_snapshot" : "");
}

Options OptionsOf(const Cell& cell, uint64_t seed) {
  Options options = DefaultOptions();
  options.cc = cell.pair.cc;
  options.use_locktable = cell.pair.use_locktable;
  options.log = cell.pair.log;
  options.log_type = cell.pair.log_type;
  if (cell.snapshot) options.isolation_level = "SNAPSHOT";
  options.workload = WorkloadKind::kTest;
  options.thread_cnt = 3;
  options.max_txns_per_thread = WorkShare(10'000);
  options.seed = seed;
  options.num_logger = cell.logs;
  options.log_buffer_size = 64 << 10;
  options.hopping_distance_bytes = 16 << 10;
  options.page_bytes = 1024;
  const bool has_rows = options.log_type == "LOG_DATA" && (options.log == "LOG_SERIAL" || options.log == "LOG_TAURUS");
  if (has_rows || options.log == "LOG_DIFFERENTIAL") options.checkpoint_interval_ms = 1;
  options.log_flush_interval_us = 100;
  options.log_flush_block_bytes = 16 << 10;
  options.locktable_modifier = 16;
  options.locktable_evict_buffer = 4096;
  options.simd = "scalar";
  // Two directories, so that two writers run when there are two logs; a limit, so that preallocated files are small.
  options.log_dirs = {"a", "b"};
  options.log_limit_bytes = 24 << 20;
  if (HasVersionHeap(options.log)) options.log_dirs = {"a"};
  return options;
}

void WriteFile(const std::string& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// What a crash at one moment left: the logs, and the acknowledgements by then.
struct Crash {
  FaultyFileSystem::Image image;
  std::vector<char> acks;
};

class CrashTest : public ::testing::TestWithParam<Cell> {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("dbx-crash-" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
    ack_path_ = (directory_ / "acks").string();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Runs the cell to its end, taking crashes on the way, and again if it was over before the first.
  std::vector<Crash> RunUntilCrashed(const Options& options, FaultyFileSystem::Crash how, size_t count) {
    std::vector<Crash> crashes;
    for (int attempt = 0; attempt < 100 && crashes.empty(); ++attempt) {
      std::filesystem::remove(ack_path_);
      FaultyFileSystem files;
      // Groups of a persistent heap are committed by workers, or by a thread.
      files.drains_are_slow = how == FaultyFileSystem::Crash::kTorn;
      crashes = RunAndCrash(files, options, how, count);
    }
    EXPECT_FALSE(crashes.empty());
    return crashes;
  }

  std::vector<Crash> RunAndCrash(FaultyFileSystem& files, const Options& options, FaultyFileSystem::Crash how,
                                 size_t count) {
    std::vector<Crash> crashes;
    std::atomic<bool> done{false};
    std::exception_ptr error;
    std::thread run([&] {
      try {
        LogStorage storage(files);
        result_ = Registry::Global().Create(options)->Run(options, storage);
      } catch (...) {
        error = std::current_exception();
      }
      done = true;
    });
    while (!done && crashes.size() < count) {
      std::this_thread::sleep_for(std::chrono::microseconds(300 + 400 * crashes.size()));
      // The acknowledgements first: what they name must be in the image, which is no older.
      // Of a reader whose note is not whole there is no bit. The note's id may still be 0, which no reader has here.
      std::vector<char> acks = CopyOfLiveFile(ack_path_);
      if (!IsWholeAckFile(acks)) continue;
      Crash crash{files.CrashImage(how, crashes.size() + options.seed), std::move(acks)};
      if (WasServed(crash, options)) crashes.push_back(std::move(crash));
    }
    run.join();
    if (error) std::rethrow_exception(error);
    return crashes;
  }

  // The ack file is there before the logs have their names. Until then nothing may have been acknowledged.
  bool WasServed(const Crash& crash, const Options& options) const {
    FaultyFileSystem files(crash.image);
    if (!WasNeverServed(files, DirectoriesOfRun(files, options.log_dirs, 1))) return true;
    WriteFile(ack_path_ + ".copy", crash.acks);
    AckFile::Open(ack_path_ + ".copy")->ForEachAcknowledged([](TxnId id) { ADD_FAILURE() << id.value; });
    return false;
  }

  // False while the run is still creating it.
  bool IsWholeAckFile(const std::vector<char>& bytes) const {
    const std::string copy = ack_path_ + ".copy";
    WriteFile(copy, bytes);
    try {
      return AckFile::Open(copy) != nullptr;
    } catch (const Error&) {
      return false;
    }
  }

  RecoveryResult Recover(Options options, const Crash& crash, uint32_t threads) {
    FaultyFileSystem files(crash.image);
    LogStorage storage(files);
    const std::string acks = ack_path_ + ".crash";
    WriteFile(acks, crash.acks);
    options.ack_file = acks;
    options.verify = true;
    options.thread_cnt = threads;
    return Registry::Global().Create(options)->Recover(options, storage);
  }

  void ExpectNothingLostAtACleanEnd(const Options& base) {
    Options options = base;
    options.ack_file = ack_path_;
    options.verify = true;
    options.log_truncation = GetParam().logs == 2;
    FaultyFileSystem files;
    RunAndCrash(files, options, FaultyFileSystem::Crash::kDurableOnly, 0);
    const Crash end{files.CrashImage(FaultyFileSystem::Crash::kDurableOnly, 0), CopyOfLiveFile(ack_path_)};
    const RecoveryResult result = Recover(base, end, 3);
    EXPECT_EQ(result.verified, "a,b,c,d");
    EXPECT_TRUE(result.clean_end);
    // Of a log that was truncated only what is left is counted; check c covers the rest.
    if (result.ended_below.empty()) {
      EXPECT_EQ(result.recovered, result_.logged_txns);
    } else {
      EXPECT_LE(result.recovered, result_.logged_txns);
    }
    EXPECT_EQ(result.dropped_dependency, 0u);
  }

  std::filesystem::path directory_;
  std::string ack_path_;
  RunResult result_;
};
INSTANTIATE_TEST_SUITE_P(Pairs, CrashTest, ::testing::ValuesIn(LoggingCells()), CellName);

TEST_P(CrashTest, WhatWasNotSyncedIsLostAndNothingElse) {
  const Options base = OptionsOf(GetParam(), 1);
  Options options = base;
  options.ack_file = ack_path_;
  const auto crashes = RunUntilCrashed(options, FaultyFileSystem::Crash::kDurableOnly, 6);
  uint32_t threads = 0;
  for (const Crash& crash : crashes) {
    const RecoveryResult result = Recover(base, crash, 1 + threads++ % 4);
    EXPECT_NE(result.verified.find("a"), std::string::npos);
    EXPECT_NE(result.verified.find("c"), std::string::npos);
  }
}

TEST_P(CrashTest, TornAndReorderedSectorsAreCut) {
  const Options base = OptionsOf(GetParam(), 2);
  Options options = base;
  options.ack_file = ack_path_;
  const auto crashes = RunUntilCrashed(options, FaultyFileSystem::Crash::kTorn, 6);
  for (const Crash& crash : crashes) {
    EXPECT_NE(Recover(base, crash, 2).verified.find("c"), std::string::npos);
  }
}

TEST_P(CrashTest, ACleanEndLosesNothing) { ExpectNothingLostAtACleanEnd(OptionsOf(GetParam(), 3)); }

// Few enough rows that all five transactions meet, two warehouses, so that some payments and lines are remote, and room
// for the largest record of a Delivery.
Options FullMixOf(const Cell& cell, uint64_t seed) {
  Options options = OptionsOf(cell, seed);
  options.workload = WorkloadKind::kTpcc;
  options.tpcc_full_mix = options.tpcc_small = true;
  options.num_wh = 2;
  options.max_txns_per_thread = WorkShare(1500);
  options.log_buffer_size = 256 << 10;
  return options;
}

TEST_P(CrashTest, TheFullMixOfTpccLosesNothingAtACleanEnd) { ExpectNothingLostAtACleanEnd(FullMixOf(GetParam(), 5)); }

TEST_P(CrashTest, TheFullMixOfTpccRecoversFromACrash) {
  const Options base = FullMixOf(GetParam(), 6);
  Options options = base;
  options.ack_file = ack_path_;
  const auto crashes = RunUntilCrashed(options, FaultyFileSystem::Crash::kTorn, 4);
  uint32_t threads = 0;
  for (const Crash& crash : crashes) EXPECT_EQ(Recover(base, crash, 1 + threads++ % 4).verified, "a,c,d");
}

TEST_P(CrashTest, AFailedSyncEndsTheRunAndLosesNoAcknowledged) {
  const Options base = OptionsOf(GetParam(), 4);
  Options options = base;
  options.ack_file = ack_path_;
  options.max_txns_per_thread = 100'000;
  FaultyFileSystem files;
  LogStorage storage(files);
  // Some flushes in; creating the file and its header takes the first two.
  const char* const file = HasVersionHeap(options.log) ? "gaps.log" : "log-00.log";
  files.Fail(FaultyFileSystem::Operation::kSync, 12, EIO, /*for_good=*/false, file);
  EXPECT_THROW(Registry::Global().Create(options)->Run(options, storage), Error);
  const Crash end{files.CrashImage(FaultyFileSystem::Crash::kDurableOnly, 0), CopyOfLiveFile(ack_path_)};
  EXPECT_NE(Recover(base, end, 2).verified.find("c"), std::string::npos);
}

}  // namespace
}  // namespace dbx::testing
