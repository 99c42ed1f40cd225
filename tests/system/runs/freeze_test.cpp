// Freeze: what a recovery relied on is durable afterwards, though the page cache alone held it before.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "base/error.h"
#include "logging/frontier_file.h"
#include "system/runs/log_files.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

constexpr uint64_t kRunId = 77;

TEST(FreezeTest, TheDurableFrontierIsRewritten) {
  FaultyFileSystem files;
  files.MakeDirectory("r");
  FrontierFile written(files.Create("r/frontier", {}), kRunId);
  files.SyncDirectory("r");
  written.Append(Stamp(10), std::array{Lsn(100)});
  files.Fail(FaultyFileSystem::Operation::kSync, 1, EIO, /*for_good=*/false, "r/frontier");
  EXPECT_THROW(written.Append(Stamp(20), std::array{Lsn(200)}), Error);

  OldRun run;
  run.headers.resize(1);
  run.directories = {"r"};
  run.frontier_path = "r/frontier";
  run.frozen_path = "r/frozen";
  run.frontier = ReadFrontier(files.Map(run.frontier_path).bytes, kRunId, run.frontier_path);
  ASSERT_EQ(run.frontier->stamp, Stamp(20));
  FrozenRun frozen;
  frozen.run_id = kRunId;
  frozen.frontier = {Lsn(200)};
  LogStorage(files).Freeze(run, {}, {}, frozen);

  // Of what no sync was asked for since all arrives; what a failed sync has lost does not.
  FaultyFileSystem after(files.CrashImage(FaultyFileSystem::Crash::kAllPending));
  EXPECT_EQ(ReadFrontier(after.Map(run.frontier_path).bytes, kRunId, run.frontier_path).stamp, Stamp(20));
}

}  // namespace
}  // namespace dbx
