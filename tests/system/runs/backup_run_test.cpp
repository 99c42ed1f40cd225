// Runs that begin with a backup: how it is made before the run is committed, and how it is found, or refused, when the
// run is opened.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "system/pairs/registry.h"
#include "system/runs/log_directory.h"
#include "system/runs/log_files.h"
#include "system/transaction/ack_file.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/device/temp_dir.h"
#include "tests/system/held_pairs.h"
#include "tests/system/runs/small_run.h"

namespace dbx::testing {
namespace {

using Crash = FaultyFileSystem::Crash;
using Operation = FaultyFileSystem::Operation;
using AllImages = std::vector<std::vector<std::byte>>;  // of the pages of both tables

class BackupRunTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kTupleBytes[] = {16, 100};

  BackupRunTest() : database_({}, 2) {
    traits_.scheme = format::Scheme::kDifferential;
    traits_.payload = PayloadKind::kData;
    traits_.logs = traits_.needs_pages = true;
    database_.PageEveryTable(512);
    for (const uint32_t tuple_bytes : kTupleBytes) {
      Schema schema;
      schema.name = "of " + std::to_string(tuple_bytes);
      schema.tuple_bytes = tuple_bytes;
      schema.expected_rows = 100;
      Table& table = database_.CreateTable(schema);
      for (Key key = 0; key < 100; ++key) {
        const std::vector<std::byte> tuple(tuple_bytes, static_cast<std::byte>(key));
        table.LoadRow(WorkerId(0), key, tuple);
      }
    }
  }
  static Options Base() { return SmallRunOf({"NO_WAIT", "LOG_DIFFERENTIAL", "LOG_DATA", 2}, 10); }
  NewLogFiles Create(FaultyFileSystem& files, const Continuation* continuation = nullptr,
                     const Options& options = Base()) {
    // The pages of a database that was just loaded or restored are dirty for both copies.
    for (uint16_t i = 0; i < database_.table_count(); ++i) {
      PageSpace& pages = *database_.table(TableId(i)).pages();
      for (uint32_t page = 0; page < pages.page_count(); ++page) PageSpace::Latched(pages, page).SetDirty();
    }
    return LogStorage(files).Create(
        options, traits_, 1, [](const RunNames&) {}, database_, continuation);
  }
  OldRuns Open(FaultyFileSystem& files, const Options& options = Base()) { return LogStorage(files).Open(options); }
  // What opening the newest run says after a change of its files.
  ExitStatus After(const std::function<void(FaultyFileSystem&)>& change) {
    FaultyFileSystem files;
    Create(files);
    change(files);
    return Caught([&] { Open(files); }, what_);
  }
  static void ChangeAnchor(FaultyFileSystem& files, const std::function<void(BackupAnchor&)>& change) {
    const std::string path = "a/run-0001/anchor";
    BackupAnchor anchor = DecodeAnchor(files.Map(path).bytes, path);
    change(anchor);
    files.Change(path, [&](SparseBytes& file) { file.Write(0, EncodeAnchor(anchor)); });
  }

  AllImages Images() const {
    AllImages all;
    for (uint16_t i = 0; i < database_.table_count(); ++i) {
      const PageSpace& pages = *database_.table(TableId(i)).pages();
      for (uint32_t page = 0; page < pages.page_count(); ++page) {
        pages.CopyImages(page, all.emplace_back(pages.PageImageBytes()).data());
      }
    }
    return all;
  }
  static AllImages ReadBackup(FileSystem& files, const OldRun& run) {
    const BackupReader reader = OpenBackup(files, run);
    AllImages all;
    for (uint16_t table = 0; table < run.anchor->tables.size(); ++table) {
      const size_t first = all.size();
      all.resize(first + run.anchor->tables[table].pages);
      for (uint32_t part = 0; part < reader.parts(); ++part) {
        reader.ReadPart(TableId(table), part, [&](uint32_t page, const std::byte* images) {
          all[first + page].assign(images, images + reader.shape().ImageBytes(table));
        });
      }
    }
    return all;
  }

  LogTraits traits_{};
  Database database_;
  std::string what_;
};

TEST_F(BackupRunTest, ARunBeginsWithABackupAndItsAnchor) {
  FaultyFileSystem files;
  BackupAnchor created;
  {
    const NewLogFiles run = Create(files);
    ASSERT_TRUE(run.anchor.has_value());
    created = *run.anchor;
    EXPECT_EQ(run.anchor_path, "a/run-0001/anchor");
    EXPECT_EQ(run.checkpoint_bytes, run.backup->written_bytes());
    EXPECT_GT(run.checkpoint_bytes, 0u);
  }
  EXPECT_EQ(created.begin, (std::vector{Lsn(0), Lsn(0)}));
  EXPECT_EQ(created.sequences, (std::vector<uint64_t>{0, 0}));
  const OldRuns runs = Open(files);
  ASSERT_EQ(runs.chain.size(), 1u);
  const OldRun& run = runs.newest();
  EXPECT_EQ(run.anchor, created);
  EXPECT_EQ(run.anchor->run_id, run.header().run_id);
  EXPECT_EQ(run.backup_directories, (std::vector<std::string>{"a/run-0001", "b/run-0001"}));
  EXPECT_EQ(run.backup_paths,
            (std::vector<std::string>{"a/run-0001/backup-a-00-00.bak", "b/run-0001/backup-a-00-01.bak",
                                      "a/run-0001/backup-a-01-00.bak", "b/run-0001/backup-a-01-01.bak"}));
  EXPECT_TRUE(ReadBackup(files, run) == Images());
  CheckAnchorMatches(run, database_);
}

TEST_F(BackupRunTest, ItsPartsAreFoundWhateverTheOrderOfTheDirectories) {
  FaultyFileSystem files;
  Create(files);
  Options swapped = Base();
  swapped.log_dirs = {"b", "a"};
  const OldRuns runs = Open(files, swapped);
  EXPECT_EQ(runs.newest().backup_directories, (std::vector<std::string>{"a/run-0001", "b/run-0001"}));
  EXPECT_TRUE(ReadBackup(files, runs.newest()) == Images());
}

TEST_F(BackupRunTest, ItMayHaveTheLastDirectoriesForItselfAndTheLogsTheOthers) {
  FaultyFileSystem files;
  Options options = Base();
  options.log_dirs = {"a", "b", "c"};
  options.backup_dirs = 2;
  const uint32_t writer = Create(files, nullptr, options).targets.back().directory;
  EXPECT_EQ(writer, 0u) << "two logs of one directory have one writer";
  options.backup_dirs = 0;  // a recovery finds it by itself, in any order
  for (const std::vector<std::string>& order : {std::vector<std::string>{"a", "b", "c"}, {"c", "b", "a"}}) {
    options.log_dirs = order;
    const OldRuns runs = Open(files, options);
    const OldRun& run = runs.newest();
    EXPECT_EQ(run.paths, (std::vector<std::string>{"a/run-0001/log-00.log", "a/run-0001/log-01.log"}));
    EXPECT_EQ(run.anchor_path, "a/run-0001/anchor");
    EXPECT_EQ(run.backup_directories, (std::vector<std::string>{"b/run-0001", "c/run-0001"}));
    EXPECT_TRUE(ReadBackup(files, run) == Images());
  }
  DeleteRun(files, options.log_dirs, 1);
  EXPECT_TRUE(AllRuns(files, options.log_dirs).empty());
}

TEST_F(BackupRunTest, ASchemeWithoutABackupHasNoDirectoriesForIt) {
  traits_.needs_pages = false;
  FaultyFileSystem files;
  Options options = Base();
  options.backup_dirs = 1;
  EXPECT_EQ(Caught([&] { Create(files, nullptr, options); }, what_), ExitStatus::kUsage);
  EXPECT_TRUE(what_.starts_with("BACKUP_DIRS is for log schemes with a backup, and ")) << what_;
  EXPECT_EQ(files.KindOf("a"), FileSystem::Entry::kNone);
}

TEST_F(BackupRunTest, OtherSchemesHaveNone) {
  traits_.scheme = format::Scheme::kTaurus;
  traits_.needs_pages = false;
  FaultyFileSystem files;
  EXPECT_EQ(Create(files).backup, nullptr);
  const OldRuns runs = Open(files);
  EXPECT_FALSE(runs.newest().anchor.has_value());
  EXPECT_EQ(files.KindOf("a/run-0001/anchor"), FileSystem::Entry::kNone);
}

TEST_F(BackupRunTest, ACrashAnywhereLeavesNoRunOrOneWithItsBackup) {
  const AllImages expected = Images();
  bool created = false;
  for (uint64_t k = 0; !created; ++k) {
    SCOPED_TRACE("operation " + std::to_string(k));
    FaultyFileSystem files;
    files.CutPowerBefore(k);
    created = Caught([&] { Create(files); }, what_) == ExitStatus::kOk;
    for (const Crash crash : FaultyFileSystem::kCrashes) {
      FaultyFileSystem crashed(files.CrashImage(crash, k));
      if (crashed.KindOf("a") != FileSystem::Entry::kDirectory) continue;
      if (crashed.KindOf("b") != FileSystem::Entry::kDirectory) continue;
      const ExitStatus status =
          Caught([&] { EXPECT_TRUE(ReadBackup(crashed, Open(crashed).newest()) == expected); }, what_);
      const bool is_none =
          what_.find("no run in") != std::string::npos || what_.find("nothing was served from it") != std::string::npos;
      EXPECT_TRUE(status == ExitStatus::kOk || (!created && is_none)) << what_;
    }
    if (HasFailure()) return;
  }
}

TEST_F(BackupRunTest, WithoutSpaceForItThereIsNoRun) {
  for (const Operation operation : {Operation::kCreate, Operation::kWrite, Operation::kSync}) {
    for (const char* path : {"backup-a", "backup-b", "anchor"}) {
      if (operation == Operation::kWrite && path == std::string("backup-b")) continue;  // nothing is written to it
      FaultyFileSystem files;
      files.Fail(operation, 1, ENOSPC, false, path);
      EXPECT_EQ(Caught([&] { Create(files); }, what_), ExitStatus::kNoSpace) << path;
      EXPECT_TRUE(AllRuns(files, {"a", "b"}).empty());
    }
  }
}

TEST_F(BackupRunTest, ARunThatContinuesAnotherHasItsOwnAndNeedsNoAncestor) {
  FaultyFileSystem files;
  Create(files);
  {
    OldRuns runs = Open(files);
    FrozenRun frozen;
    frozen.highest_lsn = Lsn(10'000);
    frozen.next_sequence = 50;
    runs.chain.back().frozen = frozen;
    for (const bool checkpoint : {true, false}) {
      const Continuation continuation{runs.newest(), database_, checkpoint};
      const NewLogFiles run = Create(files, &continuation);
      EXPECT_EQ(run.anchor->begin, (std::vector{Lsn(12'288), Lsn(12'288)}));
      EXPECT_EQ(run.anchor->needed, run.anchor->end);
      EXPECT_EQ(run.anchor->sequences, (std::vector<uint64_t>{50, 50}));
    }
  }
  for (const std::string& name : files.List("a/run-0002")) EXPECT_EQ(name.find("checkpoint"), std::string::npos);
  EXPECT_TRUE(ReadBackup(files, Open(files).newest()) == Images());
  for (const uint32_t older : {1, 2}) DeleteRun(files, {"a", "b"}, older);
  const OldRuns runs = Open(files);
  ASSERT_EQ(runs.chain.size(), 1u);
  EXPECT_EQ(runs.newest().number, 3u);
  EXPECT_TRUE(runs.newest().manifest->parts.empty());
}

TEST_F(BackupRunTest, WithoutAnAnchorItIsRefused) {
  EXPECT_EQ(After([](auto& files) { files.Remove("a/run-0001/anchor"); }), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "cannot recover run-0001: a/run-0001/anchor is missing");
  const auto damage = [](FaultyFileSystem& files) {
    files.Change("a/run-0001/anchor",
                 [](SparseBytes& file) { file.Write(100, std::vector<std::byte>(1, std::byte{1})); });
  };
  EXPECT_EQ(After(damage), ExitStatus::kCorrupt);
  EXPECT_EQ(what_, "cannot read a/run-0001/anchor@12: the checksum does not match");
}

TEST_F(BackupRunTest, AnAnchorOfAnotherRunIsRefused) {
  const std::pair<const char*, std::function<void(BackupAnchor&)>> changes[] = {
      {"the anchor of another run than a/run-0001/log-00.log", [](auto& anchor) { ++anchor.run_id; }},
      {"the anchor of another run than a/run-0001/log-00.log", [](auto& anchor) { ++anchor.database_id; }},
      {"the anchor of another number of logs than a/run-0001/log-00.log",
       [](auto& anchor) {
         for (auto* lsns : {&anchor.begin, &anchor.end, &anchor.needed}) lsns->pop_back();
       }},
      {"names a backup of 3 parts of 2 tables, and the run lies in 2 directories",
       [](auto& anchor) { anchor.parts = 3; }},
      {"names a backup of 2 parts of 0 tables, and the run lies in 2 directories",
       [](auto& anchor) { anchor.tables.clear(); }},
      {"names a/run-0001/backup-a-02-00.bak, which is missing", [](auto& anchor) {
         anchor.tables.push_back({0, 16, 8});
       }}};
  for (const auto& [why, change] : changes) {
    const auto& changed = change;  // a binding cannot be captured
    EXPECT_EQ(After([&](FaultyFileSystem& files) { ChangeAnchor(files, changed); }), ExitStatus::kMismatch) << why;
    EXPECT_EQ(what_, std::string("a/run-0001/anchor@0: ") + why);
  }
}

TEST_F(BackupRunTest, APositionBeforeTheStartOfItsLogIsDamage) {
  FaultyFileSystem files;
  Create(files);
  {
    OldRuns runs = Open(files);
    runs.chain.back().frozen = FrozenRun{};
    runs.chain.back().frozen->highest_lsn = Lsn(4096);
    const Continuation continuation{runs.newest(), database_, false};
    Create(files, &continuation);
  }
  const std::string path = "a/run-0002/anchor";
  BackupAnchor anchor = DecodeAnchor(files.Map(path).bytes, path);
  anchor.needed[1] = Lsn(4088);
  files.Change(path, [&](SparseBytes& file) { file.Write(0, EncodeAnchor(anchor)); });
  EXPECT_EQ(Caught([&] { Open(files); }, what_), ExitStatus::kCorrupt);
  EXPECT_EQ(what_, path + "@0: a position before the start of its log");
}

TEST_F(BackupRunTest, AMissingPartOfTheNamedCopyIsNamedAndTheOtherCopyIsNotNeeded) {
  for (const char* name : {"a/run-0001/backup-a-00-00.bak", "b/run-0001/backup-a-01-01.bak"}) {
    EXPECT_EQ(After([&](auto& files) { files.Remove(name); }), ExitStatus::kMismatch);
    EXPECT_TRUE(what_.starts_with("a/run-0001/anchor@0: names ") && what_.ends_with(", which is missing")) << what_;
    EXPECT_NE(what_.find(BaseNameOf(name)), std::string::npos) << what_;
  }
  EXPECT_EQ(After([&](auto& files) { files.Remove("b/run-0001/backup-b-01-01.bak"); }), ExitStatus::kOk) << what_;
}

TEST_F(BackupRunTest, TablesOfAnotherShapeAreAMismatch) {
  FaultyFileSystem files;
  Create(files);
  const OldRuns runs = Open(files);
  Database other({}, 1);
  other.PageEveryTable(512, {1, 1});
  const auto status = [&] { return Caught([&] { CheckAnchorMatches(runs.newest(), other); }, what_); };
  for (const uint32_t tuple_bytes : kTupleBytes) {
    EXPECT_EQ(status(), ExitStatus::kMismatch);
    EXPECT_EQ(what_, "cannot recover a/run-0001/anchor@0: it names a backup of tables of another shape");
    Schema schema;
    schema.tuple_bytes = tuple_bytes;
    other.CreateTable(schema);
  }
  EXPECT_EQ(status(), ExitStatus::kMismatch) << "other rows in a page";
}

// Its workers need not wait for anything that would tell them.
TEST(BackupRunFailureTest, ARunWhoseBackupCannotBeWrittenEnds) {
  constexpr uint64_t kTxns = 1'000'000;
  Options options = SmallRunOf({"NO_WAIT", "LOG_DIFFERENTIAL", "LOG_DATA", 2}, kTxns);
  if (!IsHeld(options)) GTEST_SKIP() << "this build does not hold the pair";
  const TempDir dir;
  options.ack_file = dir / "acks";
  options.log_limit_bytes = uint64_t{1} << 30;
  FaultyFileSystem files;
  files.Fail(Operation::kWrite, 1, EIO, /*for_good=*/true, "backup-b");
  LogStorage storage(files);
  std::string what;
  const auto run = [&] { Registry::Global().Create(options)->Run(options, storage); };
  EXPECT_EQ(Caught(run, what), ExitStatus::kIo) << what;
  EXPECT_NE(what.find("backup-b"), std::string::npos) << what;
  uint64_t acknowledged = 0;
  AckFile::Open(options.ack_file)->ForEachAcknowledged([&](TxnId) { ++acknowledged; });
  EXPECT_LT(acknowledged, 2 * kTxns);
}

}  // namespace
}  // namespace dbx::testing
