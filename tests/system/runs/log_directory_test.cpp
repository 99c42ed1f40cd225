#include "system/runs/log_directory.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "logging/device/file_device.h"
#include "logging/device/posix_file_system.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/device/temp_dir.h"

namespace dbx {
namespace {

namespace fs = std::filesystem;

void Touch(const std::string& path) { std::ofstream(path) << "x"; }

class LogDirectoryTest : public ::testing::Test {
 protected:
  LogDirectoryTest() {
    for (const std::string& directory : both_) fs::create_directory(directory);
  }
  // A run with its files, as after a crash.
  RunFiles MakeRun(uint32_t log_count) {
    RunFiles run = CreateRun(files_, both_, {.log_count = log_count});
    for (const std::string& path : run.log_paths) CreateFileDevice(path, {});
    run.locks.clear();
    return run;
  }

  PosixFileSystem files_;
  TempDir dir_;
  const std::vector<std::string> both_{dir_ / "a", dir_ / "b"};
  std::string what_;
};

TEST_F(LogDirectoryTest, LogsAreSpreadOverTheDirectoriesInTurn) {
  const RunFiles run = CreateRun(files_, both_, {.log_count = 3});
  EXPECT_EQ(run.number, 1u);
  EXPECT_EQ(run.directories, (std::vector{dir_ / "a/run-0001", dir_ / "b/run-0001"}));
  EXPECT_EQ(run.log_paths, (std::vector{dir_ / "a/run-0001/log-00.log", dir_ / "b/run-0001/log-01.log",
                                        dir_ / "a/run-0001/log-02.log"}));
  EXPECT_EQ(run.anchor_path, dir_ / "a/run-0001/anchor");
  EXPECT_EQ(run.row_anchor_path, dir_ / "a/run-0001/row-anchor");
  EXPECT_TRUE(fs::is_directory(dir_ / "b/run-0001"));
}

TEST_F(LogDirectoryTest, ANewRunGetsTheHighestNumberOfAllDirectoriesPlusOne) {
  fs::create_directory(dir_ / "b/run-0041");
  fs::create_directory(dir_ / "a/run-0007");
  fs::create_directory(dir_ / "a/run-99");  // not a name that a run gives
  fs::create_directory(dir_ / "a/run-0050-old");
  EXPECT_EQ(CreateRun(files_, both_, {}).number, 42u);
  EXPECT_EQ(ListRuns(files_, dir_ / "a"), (std::vector<uint32_t>{7, 42}));
  fs::create_directory(dir_ / "a/run-12345");
  EXPECT_EQ(CreateRun(files_, both_, {}).number, 12346u);
}

TEST_F(LogDirectoryTest, TheNewestOrTheChosenRunIsFoundWhateverTheOrderOfDirectories) {
  const RunFiles first = MakeRun(3);
  const RunFiles second = MakeRun(2);
  EXPECT_EQ(FindRun(files_, both_, {}).log_paths, second.log_paths);
  EXPECT_EQ(FindRun(files_, both_, 1).log_paths, first.log_paths);
  EXPECT_EQ(FindRun(files_, {both_[1], both_[0]}, 1).log_paths, first.log_paths);
}

TEST_F(LogDirectoryTest, AMissingDirectoryIsNamedUnlessItMayBeMade) {
  EXPECT_EQ(Caught([&] { CreateRun(files_, {dir_ / "new/deep"}, {}); }, what_), ExitStatus::kIo);
  const std::string deep = dir_ / "new/deep";
  EXPECT_EQ(what_, "cannot use log directory " + deep + ": it does not exist; mkdir -p " + deep + " makes it");
  EXPECT_EQ(Caught([&] { FindRun(files_, {dir_ / "new/deep"}, {}); }, what_), ExitStatus::kIo);
  EXPECT_FALSE(fs::exists(dir_ / "new"));
  EXPECT_EQ(CreateRun(files_, {dir_ / "new/deep"}, {.create_missing = true}).number, 1u);
}

TEST_F(LogDirectoryTest, AFileIsNotADirectory) {
  Touch(dir_ / "file");
  EXPECT_EQ(Caught([&] { CreateRun(files_, {dir_ / "file"}, {}); }, what_), ExitStatus::kIo);
  EXPECT_EQ(what_, "cannot use log directory " + dir_ / "file" + ": Not a directory");
  EXPECT_EQ(Caught([&] { FindRun(files_, {dir_ / "file"}, {}); }, what_), ExitStatus::kIo);
}

TEST_F(LogDirectoryTest, ADirectoryNamedTwiceIsAUsageErrorByAnyName) {
  EXPECT_EQ(Caught([&] { CreateRun(files_, {both_[0], both_[0] + "/../a"}, {}); }, what_), ExitStatus::kUsage);
  EXPECT_TRUE(what_.ends_with("/a/../a is named twice")) << what_;
  EXPECT_TRUE(fs::is_empty(both_[0]));
}

TEST_F(LogDirectoryTest, WhereNothingCanBeWrittenNoDirectoryIsLeft) {
  fs::permissions(both_[1], fs::perms::owner_read | fs::perms::owner_exec);
  if (::access(both_[1].c_str(), W_OK) == 0) GTEST_SKIP() << "this user may write everywhere";
  EXPECT_EQ(Caught([&] { CreateRun(files_, both_, {}); }, what_), ExitStatus::kIo);
  EXPECT_EQ(what_, "cannot create directory " + both_[1] + "/run-0001: Permission denied");
  EXPECT_TRUE(fs::is_empty(both_[0]));
}

TEST_F(LogDirectoryTest, AReadOnlyFileSystemIsNamedAndNoDirectoryIsLeft) {
  if (::mount("none", both_[1].c_str(), "tmpfs", MS_RDONLY, nullptr) != 0) GTEST_SKIP() << "may not mount";
  EXPECT_EQ(Caught([&] { CreateRun(files_, both_, {}); }, what_), ExitStatus::kIo);
  ::umount(both_[1].c_str());
  EXPECT_EQ(what_, "cannot create directory " + both_[1] + "/run-0001: Read-only file system");
  EXPECT_TRUE(fs::is_empty(both_[0]));
}

TEST_F(LogDirectoryTest, NoRunAtAllIsAnErrorAndNotAnEmptyDatabase) {
  EXPECT_EQ(Caught([&] { FindRun(files_, both_, {}); }, what_), ExitStatus::kIo);
  EXPECT_EQ(what_, "cannot recover: no run in " + both_[0] + ", " + both_[1] + " (of a cluster-NNNN: add --masters=N)");
}

TEST_F(LogDirectoryTest, AChosenRunThatIsNotThereIsAMismatchThatNamesTheNewest) {
  MakeRun(1);
  EXPECT_EQ(Caught([&] { FindRun(files_, both_, 7); }, what_), ExitStatus::kMismatch);
  EXPECT_TRUE(what_.ends_with("the newest is run-0001")) << what_;
}

TEST_F(LogDirectoryTest, ARunWithoutLogsIsAMismatch) {
  CreateRun(files_, both_, {});
  EXPECT_EQ(Caught([&] { FindRun(files_, both_, {}); }, what_), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "cannot recover run-0001: no log in " + both_[0] + "/run-0001, " + both_[1] + "/run-0001");
}

TEST_F(LogDirectoryTest, AGapInTheLogsIsAMismatch) {
  fs::remove(MakeRun(4).log_paths[1]);
  EXPECT_EQ(Caught([&] { FindRun(files_, both_, {}); }, what_), ExitStatus::kMismatch);
  EXPECT_TRUE(what_.starts_with("cannot recover run-0001: log-01.log is missing from ")) << what_;
}

TEST_F(LogDirectoryTest, AForgottenLogDirectoryIsAGap) {
  MakeRun(4);
  EXPECT_EQ(Caught([&] { FindRun(files_, {both_[1]}, {}); }, what_), ExitStatus::kMismatch);
  EXPECT_TRUE(what_.starts_with("cannot recover run-0001: log-00.log is missing from ")) << what_;
}

TEST_F(LogDirectoryTest, ALogInTwoDirectoriesIsAMismatchThatNamesBoth) {
  const RunFiles run = MakeRun(2);
  fs::copy(run.log_paths[0], both_[1] + "/run-0001/log-00.log");
  EXPECT_EQ(Caught([&] { FindRun(files_, both_, {}); }, what_), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "log 0 is there twice: " + run.log_paths[0] + " and " + both_[1] + "/run-0001/log-00.log");
}

TEST_F(LogDirectoryTest, MoreLogsThanARunCanHaveAreRefused) {
  Touch(MakeRun(1).directories[0] + "/log-99.log");
  EXPECT_EQ(Caught([&] { FindRun(files_, both_, {}); }, what_), ExitStatus::kMismatch);
  EXPECT_NE(what_.find("log-99.log"), std::string::npos);
}

TEST_F(LogDirectoryTest, OverwriteDeletesRunsAloneAndNumbersGoOn) {
  MakeRun(4);
  MakeRun(4);
  Touch(both_[0] + "/notes.txt");
  fs::create_directory(both_[0] + "/run-backup");
  EXPECT_EQ(CreateRun(files_, both_, {.overwrite = true}).number, 3u);
  EXPECT_EQ(ListRuns(files_, both_[0]), (std::vector<uint32_t>{3}));
  EXPECT_TRUE(fs::exists(both_[0] + "/notes.txt"));
  EXPECT_TRUE(fs::exists(both_[0] + "/run-backup"));
}

TEST_F(LogDirectoryTest, OverwriteRefusesWholeWhenARunHoldsAnythingElse) {
  const RunFiles first = MakeRun(4);
  const RunFiles second = MakeRun(4);
  Touch(second.directories[1] + "/thesis.tex");
  EXPECT_EQ(Caught([&] { CreateRun(files_, both_, {.overwrite = true}); }, what_), ExitStatus::kIo);
  EXPECT_EQ(what_, "cannot delete " + second.directories[1] + ": thesis.tex is not a log file");
  for (const RunFiles& run : {first, second}) {
    for (const std::string& path : run.log_paths) EXPECT_TRUE(fs::exists(path)) << path;
  }
  EXPECT_EQ(ListRuns(files_, both_[0]), (std::vector<uint32_t>{1, 2}));
}

TEST_F(LogDirectoryTest, ALinkOrAFileWithTheNameOfARunIsRefused) {
  const RunFiles run = MakeRun(1);
  const std::string link = both_[1] + "/run-0009";
  fs::create_directory_symlink(run.directories[0], link);
  for (const bool is_link : {true, false}) {
    if (!is_link) fs::remove(link), Touch(link);
    EXPECT_EQ(Caught([&] { ListRuns(files_, both_[1]); }, what_), ExitStatus::kMismatch);
    EXPECT_EQ(what_, "cannot use " + link + ": it has the name of a run, and is no directory");
    EXPECT_EQ(Caught([&] { DirectoriesOfRun(files_, both_, 9); }, what_), ExitStatus::kMismatch);
    EXPECT_EQ(Caught([&] { FindRun(files_, both_, {}); }, what_), ExitStatus::kMismatch);
    EXPECT_EQ(Caught([&] { CreateRun(files_, both_, {}); }, what_), ExitStatus::kMismatch);
  }
}

TEST_F(LogDirectoryTest, ALinkWithTheNameOfARunsFileIsRefused) {
  const RunFiles run = MakeRun(1);
  for (const char* name : {"log-01.log", "committed", "manifest", "frozen", "successor", "frontier",
                           "checkpoint-00.ckp", "anchor", "backup-b-00-01.bak", "row-anchor", "rows-a-01.ckp"}) {
    const std::string link = run.directories[1] + "/" + name;
    fs::create_symlink(run.log_paths[0], link);
    EXPECT_EQ(Caught([&] { FindRun(files_, both_, {}); }, what_), ExitStatus::kMismatch) << name;
    EXPECT_EQ(what_, "cannot use " + link + ": not a regular file");
    EXPECT_EQ(Caught([&] { DeleteRun(files_, both_, 1); }, what_), ExitStatus::kIo);
    fs::remove(link);
  }
  EXPECT_TRUE(fs::exists(run.log_paths[0]));
}

TEST_F(LogDirectoryTest, TemporaryFilesOfARunAreItsOwn) {
  const RunFiles run = MakeRun(1);
  for (const char* name :
       {"log-00.log.tmp", "committed", "committed.tmp", "manifest.tmp", "frozen.tmp", "successor.tmp", "successor",
        "anchor", "anchor.tmp", "backup-a-00-00.bak", "backup-b-12-01.bak", "row-anchor", "row-anchor.tmp",
        "rows-a-00.ckp", "rows-b-12.ckp", "rows-b-12.ckp.tmp"}) {
    Touch(run.directories[1] + "/" + name);
  }
  EXPECT_EQ(FindRun(files_, both_, {}).log_paths, run.log_paths);
  DeleteRun(files_, both_, 1);
  EXPECT_EQ(AllRuns(files_, both_), std::vector<uint32_t>{});
}

TEST_F(LogDirectoryTest, RowFilesHaveANameForEachCopyAndPart) {
  EXPECT_EQ(RowFileName(0, 3), "rows-a-03.ckp");
  EXPECT_EQ(RowFileName(1, 63), "rows-b-63.ckp");
}

TEST_F(LogDirectoryTest, WhatOnlyLooksLikeAPartOfABackupIsLeftAlone) {
  const RunFiles run = MakeRun(1);
  for (const char* name : {"backup-c-00-00.bak", "backup-a-00-00.bak.tmp", "backup-a-0-00.bak", "backup", "anchor.old",
                           "rows-c-00.ckp", "rows-a-0.ckp", "rows-a-00.bak", "rows-00.ckp", "row-anchor-a"}) {
    Touch(run.directories[1] + "/" + name);
    EXPECT_EQ(Caught([&] { DeleteRun(files_, both_, 1); }, what_), ExitStatus::kIo) << name;
    fs::remove(run.directories[1] + "/" + name);
  }
}

// What a power loss in the middle of a deletion leaves: no log without the anchor that says where it begins.
void CheckWhatIsLeft(FaultyFileSystem& files) {
  for (const FaultyFileSystem::Crash crash : FaultyFileSystem::kCrashes) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const FaultyFileSystem::Image image = files.CrashImage(crash, seed);
      const bool has_log = std::any_of(image.files.begin(), image.files.end(),
                                       [](const auto& file) { return LogIndexOf(BaseNameOf(file.first)).has_value(); });
      EXPECT_TRUE(!has_log || image.files.contains("a/run-0001/row-anchor"));
    }
  }
}

TEST_F(LogDirectoryTest, ARowAnchorIsDeletedOnlyOnceTheLogsAreGone) {
  for (const bool committed : {true, false}) {
    for (uint64_t k = 0, is_cut = 1; is_cut; ++k) {
      SCOPED_TRACE(k);
      FaultyFileSystem files;
      RunFiles run = CreateRun(files, {"a", "b"}, {.log_count = 2, .create_missing = true});
      run.locks.clear();
      std::vector<std::string> paths = run.log_paths;
      paths.insert(paths.end(), {run.row_anchor_path, run.directories[0] + "/" + RowFileName(1, 0)});
      if (committed) paths.push_back(run.directories[0] + "/" + kCommittedFileName);
      for (const std::string& path : paths) files.Create(path, {});
      files.CutPowerBefore(k);
      is_cut = Caught([&] { DeleteRun(files, {"a", "b"}, 1); }, what_) != ExitStatus::kOk;
      CheckWhatIsLeft(files);
    }
  }
}

TEST_F(LogDirectoryTest, DeleteRunDeletesThatRun) {
  MakeRun(3);
  MakeRun(3);
  DeleteRun(files_, both_, 2);
  EXPECT_EQ(FindRun(files_, both_, {}).number, 1u);
  EXPECT_FALSE(fs::exists(both_[1] + "/run-0002"));
}

}  // namespace
}  // namespace dbx
