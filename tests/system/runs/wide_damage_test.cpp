// Damage that is wider than a log's ring: a hole of 4 KiB to 8 MiB in a log, at its start or before the last records,
// is no torn tail as long as anything behind it shows that it had been durable, however little that is. Engine and
// reference refuse, and nothing is deleted.
#include <gtest/gtest.h>

#include <random>

#include "logging/format.h"
#include "system/command_line/parse_options.h"
#include "system/pairs/registry.h"
#include "system/reference/reference_run.h"
#include "system/replay/verify.h"
#include "system/runs/log_directory.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/system/held_pairs.h"

namespace dbx::testing {
namespace {

using Image = FaultyFileSystem::Image;
constexpr uint64_t kMiB = 1 << 20;
constexpr char kLog[] = "a/run-0001/log-00.log";

Options WideOptions() {
  Options options = DefaultOptions();
  options.cc = "NO_WAIT";
  options.log = "LOG_SERIAL";
  options.log_type = "LOG_DATA";
  options.workload = WorkloadKind::kYcsb;
  options.synth_table_size = 256;
  options.req_per_query = 16;
  options.read_perc = 0;
  options.write_perc = 1;
  options.thread_cnt = 1;
  options.max_txns_per_thread = 900;
  options.log_buffer_size = 64 << 10;
  options.log_dirs = {"a"};
  options.log_limit_bytes = 64 * kMiB;
  return options;
}

// A run that ended cleanly; made once.
const Image& CleanRun() {
  static const Image image = [] {
    FaultyFileSystem files;
    LogStorage storage(files);
    const Options options = WideOptions();
    Registry::Global().Create(options)->Run(options, storage);
    return files.CrashImage(FaultyFileSystem::Crash::kDurableOnly);
  }();
  return image;
}

uint64_t UsedBytes(const std::vector<std::byte>& file) {
  size_t end = file.size();
  while (end > 0 && file[end - 1] == std::byte{0}) --end;
  return end;
}

// (bytes, at the start of the stream, garbage)
class WideDamageTest : public ::testing::TestWithParam<std::tuple<uint64_t, bool, bool>> {
 protected:
  void SetUp() override {
    if (!IsHeld(WideOptions())) GTEST_SKIP() << "this build does not hold the pair";
    const auto [bytes, at_start, is_garbage] = GetParam();
    const uint64_t used = UsedBytes(CleanRun().files.at(kLog).All());
    constexpr uint64_t kBehind = 300 << 10;
    ASSERT_GT(used, format::kStreamOffset + bytes + kBehind);
    const uint64_t at = at_start ? format::kStreamOffset : (used - kBehind - bytes) / 4096 * 4096;
    std::vector<std::byte> hole(bytes);
    std::mt19937_64 random(bytes);
    for (std::byte& byte : hole) byte = is_garbage ? static_cast<std::byte>(random()) : std::byte{0};
    image_.files.at(kLog).Write(at, hole);
  }

  Image image_ = CleanRunOrNothing();
  std::string what_;

 private:
  static Image CleanRunOrNothing() { return IsHeld(WideOptions()) ? CleanRun() : Image(); }
};

INSTANTIATE_TEST_SUITE_P(Holes, WideDamageTest,
                         ::testing::Combine(::testing::Values(4 << 10, 64 << 10, kMiB + kMiB / 8, 8 * kMiB),
                                            ::testing::Bool(), ::testing::Bool()));

TEST_P(WideDamageTest, IsRefusedByTheEngine) {
  FaultyFileSystem files(image_);
  LogStorage storage(files);
  const Options options = WideOptions();
  EXPECT_EQ(Caught([&] { Registry::Global().Create(options)->Recover(options, storage); }, what_),
            ExitStatus::kCorrupt);
  EXPECT_TRUE(what_.starts_with(std::string("damaged log ") + kLog)) << what_;
}

TEST_P(WideDamageTest, IsRefusedByTheReference) {
  FaultyFileSystem files(image_);
  const OldRuns runs = OpenOldRuns(files, WideOptions());
  const std::string damage = reference::Recover(reference::ReadRun(ImageOf(runs.newest(), files))).damage;
  EXPECT_TRUE(damage.starts_with(std::string("damaged log ") + kLog)) << damage;
}

TEST_P(WideDamageTest, IsNotContinuedAndNothingIsDeleted) {
  FaultyFileSystem files(image_);
  LogStorage storage(files);
  Options options = WideOptions();
  options.continue_run = options.checkpoint = options.drop_old_runs = true;
  EXPECT_EQ(Caught([&] { Registry::Global().Create(options)->Run(options, storage); }, what_), ExitStatus::kCorrupt);
  const Image left = files.VisibleImage();
  EXPECT_EQ(left.directories, image_.directories);
  ASSERT_EQ(left.files.size(), image_.files.size());
  for (const auto& [path, bytes] : left.files) EXPECT_EQ(bytes.All(), image_.files.at(path).All()) << path;
}

}  // namespace
}  // namespace dbx::testing
