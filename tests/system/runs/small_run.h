// A pair as the parameter of a test, and the small run of the TEST workload that tests of continued, lost and damaged
// runs have in common.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "system/command_line/parse_options.h"
#include "system/pairs/registry.h"
#include "system/runs/log_files.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx::testing {

struct Cell {
  const char* cc;
  const char* log;
  const char* log_type;
  uint32_t logs;
};

inline std::string CellName(const ::testing::TestParamInfo<Cell>& info) {
  return std::string(info.param.cc) + "_" + info.param.log + "_" + info.param.log_type;
}

// Two workers with `txns` transactions each, flushes and epochs as short as they go, logs in "a" and "b".
inline Options SmallRunOf(const Cell& cell, uint64_t txns) {
  Options options = DefaultOptions();
  options.cc = cell.cc;
  options.log = cell.log;
  options.log_type = cell.log_type;
  options.num_logger = cell.logs;
  options.epoch_period_ms = 1;
  options.workload = WorkloadKind::kTest;
  options.thread_cnt = 2;
  options.max_txns_per_thread = txns;
  options.log_buffer_size = 64 << 10;
  options.hopping_distance_bytes = 16 << 10;
  options.page_bytes = 1024;
  if (options.log == "LOG_DIFFERENTIAL") options.checkpoint_interval_ms = 1;
  options.log_flush_interval_us = 100;
  options.log_flush_block_bytes = 4 << 10;
  options.log_dirs = {"a", "b"};
  options.log_limit_bytes = 1 << 20;
  options.simd = "scalar";
  return options;
}

// Runs with a fresh file of acknowledgements.
inline RunResult RunWithAcks(FaultyFileSystem& files, Options options, const std::string& acks) {
  std::filesystem::remove(acks);
  options.ack_file = acks;
  LogStorage storage(files);
  return Registry::Global().Create(options)->Run(options, storage);
}

}  // namespace dbx::testing
