// Damage to small logs of every format: every length that a file may be cut to, and every bit flipped. A recovery
// with --verify either refuses, with status 3 or 6, or recovers exactly what the reference recovers; what is known to
// have been durable is never recovered from without all of it.
//
// A sample with a fixed stride, unless DBX_EXHAUSTIVE=1.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "logging/format.h"
#include "system/command_line/parse_options.h"
#include "system/pairs/registry.h"
#include "system/runs/log_directory.h"
#include "system/runs/log_files.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/system/held_pairs.h"

namespace dbx::testing {
namespace {

struct Format {
  const char* log;
  const char* log_type;
  uint32_t logs;
  const char* cc = "NO_WAIT";
};
constexpr Format kFormats[] = {
    {"LOG_SERIAL", "LOG_DATA", 1},
    {"LOG_SERIAL", "LOG_COMMAND", 1},
    {"LOG_TAURUS", "LOG_DATA", 1},
    {"LOG_TAURUS", "LOG_DATA", 2},
    {"LOG_TAURUS", "LOG_DATA", 3},
    {"LOG_TAURUS", "LOG_COMMAND", 1},
    {"LOG_TAURUS", "LOG_COMMAND", 2},
    {"LOG_TAURUS", "LOG_COMMAND", 3},
    {"LOG_PLOVER", "LOG_DATA", 1},
    {"LOG_PLOVER", "LOG_DATA", 2},
    {"LOG_PLOVER", "LOG_DATA", 3},
    {"LOG_BATCH", "LOG_DATA", 1, "SILO"},
    {"LOG_BATCH", "LOG_DATA", 2, "SILO"},
    {"LOG_ELEDA", "LOG_DATA", 1},
    {"LOG_ELEDA", "LOG_COMMAND", 1},
    {"LOG_SERIAL", "LOG_COMMAND", 1, "HEKATON"},
    {"LOG_TAURUS", "LOG_COMMAND", 2, "HEKATON"},
};

std::string FormatName(const ::testing::TestParamInfo<Format>& info) {
  const std::string of = std::string(info.param.cc) == "HEKATON" ? "_in_many_versions" : "";
  return std::string(info.param.log) + "_" + info.param.log_type + "_" + std::to_string(info.param.logs) + "logs" + of;
}

Options OptionsOf(const Format& format) {
  Options options = DefaultOptions();
  options.cc = format.cc;
  options.log = format.log;
  options.log_type = format.log_type;
  options.workload = WorkloadKind::kYcsb;
  options.synth_table_size = 16;
  options.field_per_tuple = 1;
  options.thread_cnt = format.logs;  // each writes to a log of its own
  options.max_txns_per_thread = 12;
  options.query_list_len = 16;
  options.num_logger = format.logs;
  options.log_buffer_size = 64 << 10;
  options.hopping_distance_bytes = 16 << 10;
  options.simd = "scalar";
  options.verify = true;
  options.log_dirs = {"logs"};
  options.log_limit_bytes = 1 << 20;
  return options;
}

// The bytes of each log, and of the frontier where there is one.
using Image = std::vector<std::vector<std::byte>>;
using Ids = std::vector<uint64_t>;  // of transactions, ascending

struct Outcomes {
  uint64_t whole = 0;     // as if nothing had happened
  uint64_t cut = 0;       // a torn tail
  uint64_t corrupt = 0;   // 3
  uint64_t mismatch = 0;  // 6
};

class DamageTest : public ::testing::TestWithParam<Format> {
 protected:
  void SetUp() override {
    if (!IsHeld(options_)) GTEST_SKIP() << "this build does not hold the pair";
    engine_ = Registry::Global().Create(options_);
    FaultyFileSystem files;
    LogStorage storage(files);
    logged_ = engine_->Run(options_, storage).logged_txns;
    options_.thread_cnt = 1;
    disk_ = files.CrashImage(FaultyFileSystem::Crash::kDurableOnly);
    for (const auto& [path, bytes] : disk_.files) {
      if (IsWitness(path)) continue;
      if (path.ends_with(kFrontierFileName)) frontier_ = ended_.size();
      ended_.push_back(WithoutPreallocation(bytes.All()));
    }
    const auto recovered = Recover(ended_, "clean end");
    ASSERT_TRUE(recovered);
    ASSERT_EQ(recovered->size(), logged_);
  }

  // It holds no part of a log; lost_runs_test.cpp damages it.
  static bool IsWitness(const std::string& path) { return path.ends_with(kCommittedFileName); }

  // Which transactions were recovered, or nothing if recovery refused.
  std::optional<Ids> Recover(const Image& image, const std::string& damage) {
    FaultyFileSystem::Image disk = disk_;
    auto log = image.begin();
    for (auto& [path, bytes] : disk.files) {
      if (IsWitness(path)) continue;
      bytes = SparseBytes();
      bytes.Write(0, *log++);
    }
    FaultyFileSystem files(disk);
    LogStorage storage(files);
    try {
      RecoveryResult result = engine_->Recover(options_, storage);
      EXPECT_EQ(result.verified.substr(0, 1), "a") << damage;
      ++(result.recovered == logged_ ? outcomes_.whole : outcomes_.cut);
      std::sort(result.recovered_ids.begin(), result.recovered_ids.end());
      return std::move(result.recovered_ids);
    } catch (const Error& error) {
      const bool mismatch = error.status() == ExitStatus::kMismatch;
      EXPECT_TRUE(mismatch || error.status() == ExitStatus::kCorrupt) << damage << ": " << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << damage;
      ++(mismatch ? outcomes_.mismatch : outcomes_.corrupt);
      return std::nullopt;
    }
  }

  // The run without its end: the last block of each log, with its RUN_END and the last anchor, is gone.
  Image Unfinished() const {
    Image image = ended_;
    for (auto& file : image) file.resize(std::max<uint64_t>(file.size() - format::kBlockBytes, kStream));
    return image;
  }

  static std::vector<std::byte> WithoutPreallocation(std::vector<std::byte> bytes) {
    size_t used = bytes.size();
    while (used > 0 && bytes[used - 1] == std::byte{0}) --used;
    bytes.resize((used + format::kBlockBytes - 1) / format::kBlockBytes * format::kBlockBytes);
    return bytes;
  }
  static uint64_t Stride(uint64_t tries, uint64_t wanted) {
    const char* all = std::getenv("DBX_EXHAUSTIVE");
    return all != nullptr && std::string(all) == "1" ? 1 : std::max<uint64_t>(tries / wanted, 1) | 1;
  }
  static uint64_t BytesOf(const Image& image) {
    uint64_t bytes = 0;
    for (const auto& file : image) bytes += file.size();
    return bytes;
  }
  void Print(const char* what) {
    std::printf("%s of %s %s, %u logs: %lu whole, %lu cut, %lu corrupt, %lu mismatch\n", what, GetParam().log,
                GetParam().log_type, GetParam().logs, outcomes_.whole, outcomes_.cut, outcomes_.corrupt,
                outcomes_.mismatch);
  }

  static constexpr uint64_t kStream = format::kStreamOffset;
  Options options_ = OptionsOf(GetParam());
  std::unique_ptr<Engine> engine_;
  FaultyFileSystem::Image disk_;  // ended_, with its directories
  Image ended_;
  std::optional<size_t> frontier_;  // its place in ended_
  uint64_t logged_ = 0;
  Outcomes outcomes_;
};
INSTANTIATE_TEST_SUITE_P(Formats, DamageTest, ::testing::ValuesIn(kFormats), FormatName);

TEST_P(DamageTest, ATruncationOfAFinishedRunLosesNothingUnnoticed) {
  outcomes_ = {};
  const uint64_t stride = Stride(BytesOf(ended_), 700);
  for (size_t log = 0; log < ended_.size(); ++log) {
    for (uint64_t bytes = 0; bytes < ended_[log].size(); bytes += stride) {
      Image image = ended_;
      image[log].resize(bytes);
      const std::string damage = "log " + std::to_string(log) + " cut to " + std::to_string(bytes);
      // Without its RUN_END a lone log may have ended anywhere that nothing shows to have been durable.
      const auto recovered = Recover(image, damage);
      EXPECT_TRUE(!recovered || ended_.size() == 1 || recovered->size() == logged_)
          << damage << ": " << recovered->size();
    }
  }
  Print("truncations");
}

TEST_P(DamageTest, AFlippedBitOfAFinishedRunLosesNothing) {
  outcomes_ = {};
  const uint64_t stride = Stride(8 * BytesOf(ended_), 700);
  for (size_t log = 0; log < ended_.size(); ++log) {
    for (uint64_t bit = 0; bit < 8 * ended_[log].size(); bit += stride) {
      Image image = ended_;
      image[log][bit / 8] ^= std::byte{1} << bit % 8;
      const std::string damage = "log " + std::to_string(log) + " with another bit " + std::to_string(bit);
      const auto recovered = Recover(image, damage);
      EXPECT_TRUE(!recovered || recovered->size() == logged_) << damage << ": " << recovered->size();
    }
  }
  Print("flipped bits");
}

// From the longest to the shortest: what a longer log does not hold, a shorter one does not bring back. Where a
// frontier says how far the logs were durable, only the frontier itself may end earlier.
TEST_P(DamageTest, ATruncationOfAnUnfinishedRunIsRefusedOrLeavesLess) {
  outcomes_ = {};
  const Image unfinished = Unfinished();
  const uint64_t stride = Stride(BytesOf(unfinished), 700);
  for (size_t log = 0; log < unfinished.size(); ++log) {
    std::optional<Ids> longer = Recover(unfinished, "unfinished");
    ASSERT_TRUE(longer);
    const bool may_lose = !frontier_ || log == *frontier_;
    for (uint64_t bytes = unfinished[log].size(); bytes > 0; bytes -= std::min(bytes, stride)) {
      Image image = unfinished;
      image[log].resize(bytes - 1);
      const std::string damage = "unfinished log " + std::to_string(log) + " cut to " + std::to_string(bytes - 1);
      std::optional<Ids> recovered = Recover(image, damage);
      if (!recovered) continue;
      EXPECT_TRUE(std::ranges::includes(*longer, *recovered)) << damage << ": " << recovered->size();
      EXPECT_TRUE(may_lose || recovered->size() == longer->size()) << damage << ": " << recovered->size();
      longer = std::move(recovered);
    }
  }
  EXPECT_GT(outcomes_.cut, 0u);
  Print("truncations before the end");
}

TEST_P(DamageTest, AFlippedBitOfAnUnfinishedRunIsRefusedOrCut) {
  outcomes_ = {};
  const Image unfinished = Unfinished();
  const uint64_t stride = Stride(8 * (BytesOf(unfinished) - kStream * unfinished.size()), 700);
  for (size_t log = 0; log < unfinished.size(); ++log) {
    for (uint64_t bit = 8 * kStream; bit < 8 * unfinished[log].size(); bit += stride) {
      Image image = unfinished;
      image[log][bit / 8] ^= std::byte{1} << bit % 8;
      Recover(image, "unfinished log " + std::to_string(log) + " with another bit " + std::to_string(bit));
    }
  }
  Print("flipped bits before the end");
}

}  // namespace
}  // namespace dbx::testing
