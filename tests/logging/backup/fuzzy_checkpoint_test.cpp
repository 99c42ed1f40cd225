// Checkpoints step by step: what each has done when the log is asked, what a crash leaves at any moment, and what a
// failure or the end of the run does.
#include "logging/backup/fuzzy_checkpoint.h"

#include <atomic>
#include <cerrno>
#include <map>
#include <optional>
#include <thread>

#include "tests/base/busy.h"
#include "tests/logging/backup/checkpointed_database.h"
#include "tests/logging/caught.h"

namespace dbx {
namespace {

using Crash = FaultyFileSystem::Crash;
using Operation = FaultyFileSystem::Operation;
using Outcome = FuzzyCheckpoint::Outcome;

const std::function<bool()> kNeverStopped = [] { return false; };

// The one number of all pages.
uint32_t NumberOfPages(const CheckpointedDatabase& db) {
  std::optional<uint32_t> number;
  db.ForEachPage([&](PageSpace::Latched& page) {
    EXPECT_EQ(number.value_or(page.number()), page.number());
    number = page.number();
  });
  return *number;
}

uint64_t DirtyPages(const CheckpointedDatabase& db, int copy) {
  uint64_t dirty = 0;
  db.ForEachPage([&](PageSpace::Latched& page) { dirty += page.IsDirty(copy); });
  return dirty;
}

class FuzzyCheckpointTest : public ::testing::Test {
 protected:
  FuzzyCheckpointTest() { db_.Begin(); }
  Outcome Write(FuzzyCheckpoint& checkpoint) { return checkpoint.Write(kNeverStopped); }
  bool IsActive() { return db_.database.checkpoints().is_active(); }
  // The whole of a copy, as it would be read after a crash now.
  AllImages DurableCopy(uint32_t copy, uint32_t number) {
    FaultyFileSystem crashed(db_.files.CrashImage(Crash::kDurableOnly));
    BackupAnchor anchor = db_.anchor;
    anchor.copy = copy, anchor.number = number;
    crashed.Remove(db_.anchor_path());
    WriteFileAtomically(crashed, db_.anchor_path(), EncodeAnchor(anchor));
    return ReadBackup(crashed, db_.directories).images;
  }

  CheckpointedDatabase db_;
  std::string what_;
};

TEST_F(FuzzyCheckpointTest, ARunBeginsWithABackupOfAllPages) {
  const NamedBackup named = db_.Durable();
  EXPECT_TRUE(named.images == db_.Images());
  EXPECT_EQ(named.anchor, db_.anchor);
  EXPECT_EQ(named.anchor.number, 0u);
  EXPECT_EQ(named.anchor.copy, 0u);
  EXPECT_EQ(named.anchor.parts, 2u);
  EXPECT_EQ(named.anchor.needed, named.anchor.end);
  EXPECT_EQ(DirtyPages(db_, 0), 0u);
  EXPECT_EQ(DirtyPages(db_, 1), db_.page_count());
}

TEST_F(FuzzyCheckpointTest, TheLogIsAskedInOrderAndTheAnchorIsLast) {
  std::map<std::string, std::function<void()>> expectations;
  expectations["needed"] = expectations["ended"] = [&] {
    EXPECT_FALSE(IsActive());
    EXPECT_EQ(db_.database.checkpoints().number(), 0u);
  };
  expectations["begin 1"] = [&] {
    EXPECT_TRUE(IsActive());
    EXPECT_EQ(db_.database.checkpoints().number(), 0u);
  };
  expectations["filled"] = [&] {
    EXPECT_TRUE(IsActive());
    EXPECT_EQ(db_.database.checkpoints().number(), 1u);
    EXPECT_EQ(NumberOfPages(db_), 0u);
    EXPECT_EQ(DirtyPages(db_, 1), db_.page_count()) << "nothing is copied yet";
  };
  expectations["end 1"] = expectations["durable"] = [&] {
    EXPECT_FALSE(IsActive());
    EXPECT_EQ(NumberOfPages(db_), 1u);
    EXPECT_TRUE(DurableCopy(1, 1) == db_.Images()) << "all parts are synced";
    EXPECT_EQ(db_.Durable().anchor.number, 0u);
  };
  db_.log.on_call = [&](const std::string& call) { expectations.at(call)(); };
  FuzzyCheckpoint checkpoint = db_.Checkpoints();
  EXPECT_EQ(Write(checkpoint), Outcome::kComplete);
  EXPECT_EQ(db_.log.calls, (std::vector<std::string>{"needed", "ended", "begin 1", "filled", "end 1", "durable"}));
}

TEST_F(FuzzyCheckpointTest, TheAnchorSaysWhatTheLogSaid) {
  FuzzyCheckpoint checkpoint = db_.Checkpoints();
  EXPECT_EQ(Write(checkpoint), Outcome::kComplete);
  const BackupAnchor anchor = db_.Durable().anchor;
  EXPECT_EQ(anchor, checkpoint.anchor());
  EXPECT_EQ(anchor.number, 1u);
  EXPECT_EQ(anchor.copy, 1u);
  EXPECT_EQ(anchor.needed, (std::vector{Lsn(64), Lsn(4160)}));
  EXPECT_EQ(anchor.begin, (std::vector{Lsn(128), Lsn(4224)}));
  EXPECT_EQ(anchor.end, (std::vector{Lsn(192), Lsn(4288)}));
  EXPECT_EQ(anchor.sequences, (std::vector<uint64_t>{7, 9}));
  EXPECT_EQ(anchor.database_id, CheckpointedDatabase::kDatabaseId);
  EXPECT_EQ(anchor.run_id, CheckpointedDatabase::kRunId);
}

TEST_F(FuzzyCheckpointTest, WhatIsChangedBeforeAPageIsReachedIsInTheCopyAndWhatIsChangedAfterIsNot) {
  AllImages at_begin, at_end;
  db_.log.on_call = [&](const std::string& call) {
    if (call == "filled") {
      EXPECT_EQ(db_.Change(0, 5, 1000), 0u);
      at_begin = db_.Images();
    } else if (call == "end 1") {
      EXPECT_EQ(db_.Change(1, 50, 2000), 1u);
      at_end = db_.Images();
    }
  };
  FuzzyCheckpoint checkpoint = db_.Checkpoints();
  EXPECT_EQ(Write(checkpoint), Outcome::kComplete);
  EXPECT_TRUE(db_.Durable().images == at_begin);
  db_.log.on_call = {};
  EXPECT_EQ(Write(checkpoint), Outcome::kComplete);
  EXPECT_TRUE(db_.Durable().images == at_end);
}

TEST_F(FuzzyCheckpointTest, EachCopyGetsEachChangeAndPagesThatItHasAreNotWrittenAgain) {
  FuzzyCheckpoint checkpoint = db_.Checkpoints();
  const auto pages_of_next = [&] {
    const uint64_t before = checkpoint.pages();
    EXPECT_EQ(Write(checkpoint), Outcome::kComplete);
    EXPECT_TRUE(db_.Durable().images == db_.Images());
    return checkpoint.pages() - before;
  };
  EXPECT_EQ(pages_of_next(), db_.page_count()) << "the other copy is empty";
  EXPECT_EQ(pages_of_next(), 0u);
  db_.Change(0, 1, 77);
  EXPECT_EQ(pages_of_next(), 1u);
  db_.Change(1, 30, 78);
  EXPECT_EQ(pages_of_next(), 2u);
  EXPECT_EQ(pages_of_next(), 1u);
  EXPECT_EQ(pages_of_next(), 0u);
  EXPECT_EQ(checkpoint.bytes(), checkpoint.pages() * db_.backup->shape().FrameBytes(0)) << "both tables have one shape";
}

TEST_F(FuzzyCheckpointTest, APageThatIsTakenDuringACheckpointIsInTheNextOnes) {
  FuzzyCheckpoint checkpoint = db_.Checkpoints();
  const uint32_t counted = db_.pages_of(0).page_count();
  db_.log.on_call = [&](const std::string& call) {
    if (call != "filled") return;
    for (Key key = 1000; db_.pages_of(0).page_count() == counted; ++key) db_.Load(0, key);
    EXPECT_EQ(PageSpace::Latched(db_.pages_of(0), counted).number(), 1u);
  };
  EXPECT_EQ(Write(checkpoint), Outcome::kComplete);
  EXPECT_EQ(db_.Durable().anchor.tables[0].pages, counted);
  db_.log.on_call = {};
  for (int copies = 0; copies < 2; ++copies) {
    EXPECT_EQ(Write(checkpoint), Outcome::kComplete);
    EXPECT_TRUE(db_.Durable().images == db_.Images());
  }
}

TEST_F(FuzzyCheckpointTest, AdjacentPagesOfAPartAreWrittenAtOnce) {
  FuzzyCheckpoint checkpoint = db_.Checkpoints();
  // Two parts of two tables, and the anchor.
  db_.files.Fail(Operation::kWrite, 2 * 2 + 2, EIO);
  EXPECT_EQ(Write(checkpoint), Outcome::kComplete);
  EXPECT_GT(db_.page_count(), 2u * 2);
  EXPECT_THROW(Write(checkpoint), Error);
}

TEST_F(FuzzyCheckpointTest, TheTimeUnderEachLatchIsMeasured) {
  FuzzyCheckpoint checkpoint = db_.Checkpoints();
  EXPECT_EQ(checkpoint.latches().count(), 0u);
  Write(checkpoint);
  EXPECT_EQ(checkpoint.latches().count(), checkpoint.pages());
  EXPECT_GT(checkpoint.latches().max_nanos(), 0u);
  // Those of clean pages would hide them.
  Write(checkpoint), Write(checkpoint);
  EXPECT_EQ(checkpoint.latches().count(), checkpoint.pages());
  EXPECT_LT(checkpoint.pages(), 3 * db_.page_count());
}

// The whole history of a run with two checkpoints, with the power cut before each of its operations.
class CrashedCheckpointTest : public ::testing::Test {
 protected:
  // By number, what the backup holds.
  std::map<uint32_t, AllImages> states_;

  void RunHistory(CheckpointedDatabase& db) {
    states_[0] = db.Images();
    db.Begin();
    FuzzyCheckpoint checkpoint = db.Checkpoints();
    for (uint32_t number = 1; number <= 2; ++number) {
      for (Key key = number; key < CheckpointedDatabase::kRows; key += 7) db.Change(key % 2, key, 100 * number + key);
      states_[number] = db.Images();
      EXPECT_EQ(checkpoint.Write(kNeverStopped), Outcome::kComplete);
    }
  }
  // The number of the backup in the image; none if there is no anchor.
  std::optional<uint32_t> Examine(const FaultyFileSystem::Image& image, const CheckpointedDatabase& db) {
    FaultyFileSystem crashed(image);
    if (crashed.KindOf(db.anchor_path()) == FileSystem::Entry::kNone) return std::nullopt;
    const NamedBackup named = ReadBackup(crashed, db.directories);
    EXPECT_EQ(named.anchor.copy, named.anchor.number % 2);
    EXPECT_TRUE(named.images == states_.at(named.anchor.number));
    return named.anchor.number;
  }
};

TEST_F(CrashedCheckpointTest, TheAnchorNamesACompleteBackupWheneverTheCrashComes) {
  std::map<uint32_t, int> seen;
  bool done = false;
  for (uint64_t k = 0; !done; ++k) {
    SCOPED_TRACE("operation " + std::to_string(k));
    CheckpointedDatabase db;
    db.files.CutPowerBefore(k);
    std::string what;
    const ExitStatus status = Caught([&] { RunHistory(db); }, what);
    done = status == ExitStatus::kOk;
    EXPECT_TRUE(done || status == ExitStatus::kIo) << what;
    std::optional<uint32_t> durable = Examine(db.files.CrashImage(Crash::kDurableOnly), db);
    for (const Crash crash : FaultyFileSystem::kCrashes) {
      for (uint64_t seed = 0; seed < 4; ++seed) {
        const std::optional<uint32_t> number = Examine(db.files.CrashImage(crash, seed), db);
        EXPECT_TRUE(number >= durable) << "what was durable is not taken back";
        if (number) ++seen[*number];
      }
    }
    EXPECT_TRUE(!done || durable == 2u);
    if (HasFailure()) return;
  }
  EXPECT_EQ(seen.size(), 3u);
}

// Copy 1 is written over by checkpoint 3: until it is synced, no part of it can be relied on.
TEST_F(CrashedCheckpointTest, ATornPageInTheCopyThatIsBeingWrittenIsHarmless) {
  bool torn = false;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    CheckpointedDatabase db;
    RunHistory(db);
    const BackupAnchor anchor = db.Durable().anchor;
    BackupOptions options = db.OptionsOf();
    options.anchor = anchor;
    FuzzyCheckpoint checkpoint(db.log, options);
    for (Key key = 0; key < CheckpointedDatabase::kRows; ++key) db.Change(0, key, ~key);
    FaultyFileSystem::Image image;
    // Before the last page of the second table the first table is written, and nothing is synced.
    const auto crash = [&, pages = uint64_t{0}]() mutable {
      if (++pages == db.page_count()) image = db.files.CrashImage(Crash::kTorn, seed);
      return false;
    };
    EXPECT_EQ(checkpoint.Write(crash), Outcome::kComplete);
    EXPECT_EQ(Examine(image, db), 2u);
    FaultyFileSystem crashed(image);
    const BackupReader reader(crashed, ShapeOf(anchor, db.directories), /*copy=*/1, /*number=*/3, PagesOf(anchor));
    std::string what;
    const auto read = [&] { reader.ReadPart(TableId(0), 0, [](uint32_t, const std::byte*) {}); };
    torn |= Caught(read, what) == ExitStatus::kCorrupt;
  }
  EXPECT_TRUE(torn);
}

TEST_F(CrashedCheckpointTest, ADamagedPageOfTheNamedCopyIsRefusedWithItsPlace) {
  CheckpointedDatabase db;
  RunHistory(db);
  const std::string path = "b/" + BackupFileName(0, 1, 1);
  const uint64_t at = db.backup->shape().FrameBytes(1) + 100;
  db.files.Change(path, [&](SparseBytes& file) { file.Write(at, std::vector<std::byte>(8, std::byte{0xff})); });
  std::string what;
  EXPECT_EQ(Caught([&] { ReadBackup(db.files, db.directories); }, what), ExitStatus::kCorrupt);
  EXPECT_EQ(what, "cannot read " + path + "@" + std::to_string(db.backup->shape().FrameBytes(1)) +
                      ": the checksum of the page does not match");
}

class TruncationTest : public ::testing::Test {
 protected:
  TruncationTest() {
    db_.Begin();
    db_.MakeLogs();
  }
  // Writes a checkpoint when so much is reserved, of which all from `needed` on is needed.
  static Outcome Write(CheckpointedDatabase& db, FuzzyCheckpoint& checkpoint, std::vector<uint64_t> needed) {
    db.log.needed = {Lsn(needed[0]), Lsn(needed[1])};
    for (size_t log = 0; log < 2; ++log) db.log.given[log] = std::max(db.log.given[log], db.log.needed[log]);
    return checkpoint.Write(kNeverStopped);
  }
  std::vector<bool> Blocks(size_t log) {
    return CheckpointedDatabase::BlocksOf(db_.files.VisibleImage(), db_.truncated_logs[log]);
  }
  // The headers' two blocks and those from the n-th of the stream on.
  static std::vector<bool> From(size_t block) {
    std::vector<bool> blocks(2 + CheckpointedDatabase::kLogBlocks, true);
    std::fill(blocks.begin() + 2, blocks.begin() + 2 + static_cast<ptrdiff_t>(block), false);
    return blocks;
  }

  static constexpr uint64_t kBlock = format::kBlockBytes;
  CheckpointedDatabase db_;  // log 0 starts at 0, log 1 at a block
  std::string what_;
};

TEST_F(TruncationTest, WholeBlocksBelowWhatIsNeededAreGivenUp) {
  FuzzyCheckpoint checkpoint = db_.Checkpoints();
  EXPECT_EQ(Write(db_, checkpoint, {3 * kBlock + 8, kBlock + 8}), Outcome::kComplete);
  EXPECT_EQ(Blocks(0), From(3));
  EXPECT_EQ(Blocks(1), From(0));
  EXPECT_EQ(db_.log.discarded_bytes, 3 * kBlock);
  EXPECT_TRUE(db_.Durable().anchor.truncates);
  EXPECT_EQ(Write(db_, checkpoint, {4 * kBlock, 3 * kBlock}), Outcome::kComplete);
  EXPECT_EQ(Blocks(0), From(4));
  EXPECT_EQ(Blocks(1), From(2));
  EXPECT_EQ(db_.log.discarded_bytes, 6 * kBlock);
}

TEST_F(TruncationTest, TheAnchorComesFirst) {
  FuzzyCheckpoint checkpoint = db_.Checkpoints();
  db_.log.on_call = [&](const std::string&) { EXPECT_EQ(Blocks(0), From(0)); };
  db_.files.Fail(Operation::kDiscard, 1, EIO);
  EXPECT_EQ(Caught([&] { Write(db_, checkpoint, {3 * kBlock, 3 * kBlock}); }, what_), ExitStatus::kIo);
  EXPECT_EQ(db_.Durable().anchor.number, 1u);
  EXPECT_EQ(db_.Durable().anchor.needed, (std::vector{Lsn(3 * kBlock), Lsn(3 * kBlock)}));
}

TEST_F(TruncationTest, AFailedAnchorLeavesTheLogsWhole) {
  FuzzyCheckpoint checkpoint = db_.Checkpoints();
  db_.files.Fail(Operation::kCreate, 1, ENOSPC, false, "/anchor");
  EXPECT_EQ(Write(db_, checkpoint, {3 * kBlock, 3 * kBlock}), Outcome::kNoSpace);
  EXPECT_EQ(Blocks(0), From(0));
  EXPECT_EQ(Write(db_, checkpoint, {4 * kBlock, 3 * kBlock}), Outcome::kComplete);
  EXPECT_EQ(Blocks(0), From(4));
}

// A position that was read before the last checkpoint, and announced after it.
TEST_F(TruncationTest, WhatIsNeededNeverDecreases) {
  FuzzyCheckpoint checkpoint = db_.Checkpoints();
  EXPECT_EQ(Write(db_, checkpoint, {3 * kBlock + 8, 2 * kBlock}), Outcome::kComplete);
  EXPECT_EQ(Write(db_, checkpoint, {2 * kBlock, 3 * kBlock}), Outcome::kComplete);
  EXPECT_EQ(db_.Durable().anchor.number, 2u);
  EXPECT_EQ(db_.Durable().anchor.needed, (std::vector{Lsn(3 * kBlock + 8), Lsn(3 * kBlock)}));
  EXPECT_EQ(Blocks(0), From(3));
}

TEST_F(TruncationTest, WithoutSpaceForItTheNextCheckpointTriesAgain) {
  FuzzyCheckpoint checkpoint = db_.Checkpoints();
  db_.files.Fail(Operation::kDiscard, 1, ENOSPC);
  EXPECT_EQ(Write(db_, checkpoint, {3 * kBlock, 3 * kBlock}), Outcome::kComplete);
  EXPECT_EQ(Blocks(1), From(2));
  EXPECT_EQ(db_.log.discarded_bytes, 2 * kBlock);
  EXPECT_FALSE(checkpoint.cannot_discard());
  EXPECT_EQ(Write(db_, checkpoint, {3 * kBlock, 3 * kBlock}), Outcome::kComplete);
  EXPECT_EQ(Blocks(0), From(3));
  EXPECT_EQ(db_.log.discarded_bytes, 5 * kBlock);
}

TEST_F(TruncationTest, WhereItCannotBeDoneTheLogsStayAndTheAnchorHolds) {
  FuzzyCheckpoint checkpoint = db_.Checkpoints();
  db_.files.RefuseDiscards();
  EXPECT_EQ(Write(db_, checkpoint, {3 * kBlock, 3 * kBlock}), Outcome::kComplete);
  EXPECT_TRUE(checkpoint.cannot_discard());
  EXPECT_EQ(Blocks(0), From(0));
  EXPECT_EQ(db_.log.discarded_bytes, 0u);
  EXPECT_EQ(db_.Durable().anchor.needed, (std::vector{Lsn(3 * kBlock), Lsn(3 * kBlock)}));
}

TEST_F(TruncationTest, ACrashAtAnyStepLeavesWhatItsAnchorNeeds) {
  for (uint64_t k = 0;; ++k) {
    CheckpointedDatabase db;
    db.Begin();
    db.MakeLogs();
    FuzzyCheckpoint checkpoint = db.Checkpoints();
    EXPECT_EQ(Write(db, checkpoint, {kBlock, 2 * kBlock}), Outcome::kComplete);
    bool over = false;
    uint64_t changes = 0;  // so far
    for (db.files.CutPowerBefore(1); db.files.power_is_off(); db.files.CutPowerBefore(changes + 1)) ++changes;
    db.files.CutPowerBefore(changes + k);
    try {
      EXPECT_EQ(Write(db, checkpoint, {4 * kBlock + 8, 5 * kBlock + 16}), Outcome::kComplete);
      over = true;
    } catch (const Error&) {
    }
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const FaultyFileSystem::Image image = db.files.CrashImage(FaultyFileSystem::kCrashes[seed], seed + k);
      FaultyFileSystem crashed(image);
      const BackupAnchor anchor = ReadBackup(crashed, db.directories).anchor;
      for (size_t log = 0; log < 2; ++log) {
        const auto blocks = CheckpointedDatabase::BlocksOf(image, db.truncated_logs[log]);
        const uint64_t first = (anchor.needed[log] - db.anchor.begin[log]) / kBlock;
        for (size_t i = 0; i < blocks.size(); ++i) {
          if (i >= 2 && i - 2 < first) continue;
          EXPECT_TRUE(blocks[i]) << "block " << i << " of log " << log << ", step " << k;
        }
      }
    }
    if (over) break;
    ASSERT_LT(k, 1000u);
  }
}

class FailingCheckpointTest : public ::testing::Test {
 protected:
  // Once a checkpoint has found no space.
  static void ExpectThatTheNextOneIsComplete(CheckpointedDatabase& db, FuzzyCheckpoint& checkpoint) {
    const uint32_t number = db.database.checkpoints().number();
    EXPECT_FALSE(db.database.checkpoints().is_active());
    EXPECT_EQ(NumberOfPages(db), number);
    EXPECT_EQ(DirtyPages(db, 1), db.page_count());
    EXPECT_EQ(db.Durable().anchor, db.anchor);
    db.Change(0, 3, 333);
    EXPECT_EQ(checkpoint.Write(kNeverStopped), Outcome::kComplete) << checkpoint.no_space_because();
    const NamedBackup named = db.Durable();
    EXPECT_EQ(named.anchor.number, number + 1);
    EXPECT_EQ(named.anchor.copy, 1u);
    EXPECT_TRUE(named.images == db.Images());
  }
  // A checkpoint of a new database, of which the n-th operation of this kind fails. None: there is no such operation.
  std::optional<Outcome> WriteWithFailure(
      Operation operation, uint64_t nth, int error,
      const std::function<void(CheckpointedDatabase&, FuzzyCheckpoint&)>& after = {}) {
    CheckpointedDatabase db;
    db.Begin();
    FuzzyCheckpoint checkpoint = db.Checkpoints();
    db.files.Fail(operation, nth, error);
    Outcome outcome{};
    status_ = Caught([&] { outcome = checkpoint.Write(kNeverStopped); }, what_);
    EXPECT_FALSE(db.database.checkpoints().is_active());
    if (db.files.failed_count() == 0) return std::nullopt;
    if (after) after(db, checkpoint);
    return outcome;
  }

  ExitStatus status_ = ExitStatus::kOk;
  std::string what_;
};

TEST_F(FailingCheckpointTest, WithoutSpaceTheOlderBackupStaysAndTheNextCheckpointHasTheNextNumber) {
  for (const Operation operation : {Operation::kWrite, Operation::kSync, Operation::kCreate}) {
    for (uint64_t nth = 1;; ++nth) {
      SCOPED_TRACE(std::to_string(static_cast<int>(operation)) + ", " + std::to_string(nth));
      const auto outcome = WriteWithFailure(operation, nth, ENOSPC, ExpectThatTheNextOneIsComplete);
      EXPECT_EQ(status_, ExitStatus::kOk) << what_;
      EXPECT_TRUE(outcome || nth > 1);
      if (!outcome) break;
      EXPECT_EQ(*outcome, Outcome::kNoSpace);
    }
  }
}

TEST_F(FailingCheckpointTest, WhereThereIsNeverSpaceEachAttemptHasItsNumber) {
  CheckpointedDatabase db;
  db.Begin();
  FuzzyCheckpoint checkpoint = db.Checkpoints();
  db.files.Fail(Operation::kWrite, 1, ENOSPC, /*for_good=*/true, BackupFileName(1, 1, 0));
  for (uint32_t number = 1; number <= 4; ++number) {
    db.Change(0, number, number * 1000);
    EXPECT_EQ(checkpoint.Write(kNeverStopped), Outcome::kNoSpace);
    EXPECT_TRUE(checkpoint.no_space_because().ends_with("No space left on device"));
    EXPECT_EQ(NumberOfPages(db), number);
    EXPECT_EQ(db.Durable().anchor, db.anchor);
  }
}

// The new name may be on the disk or not: neither copy may be written over.
TEST_F(FailingCheckpointTest, AFailureOfTheAnchorsNewNameIsFinal) {
  EXPECT_EQ(WriteWithFailure(Operation::kSyncDirectory, 1, ENOSPC), Outcome::kNoSpace) << "of its temporary name";
  for (const auto& [operation, nth] : {std::pair(Operation::kRename, 1), std::pair(Operation::kSyncDirectory, 2)}) {
    EXPECT_TRUE(WriteWithFailure(operation, static_cast<uint64_t>(nth), ENOSPC).has_value());
    EXPECT_EQ(status_, ExitStatus::kNoSpace);
  }
}

TEST_F(FailingCheckpointTest, ADeviceThatFailsIsFinal) {
  for (const Operation operation : {Operation::kWrite, Operation::kSync, Operation::kCreate, Operation::kRename,
                                    Operation::kSyncDirectory, Operation::kKindOf}) {
    uint64_t nth = 1;
    for (; WriteWithFailure(operation, nth, EIO); ++nth) EXPECT_EQ(status_, ExitStatus::kIo) << nth;
    EXPECT_GT(nth, 1u);
  }
}

TEST_F(FailingCheckpointTest, OneThatIsGivenUpLeavesItsFlagAndTheAnchorAsTheyWere) {
  for (uint64_t nth = 1;; ++nth) {
    CheckpointedDatabase db;
    db.Begin();
    FuzzyCheckpoint checkpoint = db.Checkpoints();
    const AllImages before = db.Images();
    db.Change(0, 1, 1);
    uint64_t asked = 0;
    const Outcome outcome = checkpoint.Write([&] { return ++asked == nth; });
    EXPECT_FALSE(db.database.checkpoints().is_active());
    if (asked < nth) {
      EXPECT_EQ(outcome, Outcome::kComplete);
      EXPECT_GT(nth, db.page_count()) << "before each page, and before the anchor";
      break;
    }
    EXPECT_EQ(outcome, Outcome::kGivenUp);
    EXPECT_EQ(db.Durable().anchor, db.anchor);
    EXPECT_TRUE(db.Durable().images == before);
  }
}

TEST_F(FailingCheckpointTest, ALogThatFailsEndsTheCheckpointAndSaysSoItself) {
  for (const char* call : {"needed", "ended", "begin 1", "filled", "end 1", "durable"}) {
    CheckpointedDatabase db;
    db.Begin();
    FuzzyCheckpoint checkpoint = db.Checkpoints();
    db.log.on_call = [&](const std::string& made) {
      if (made == call) throw Error(ExitStatus::kNoSpace, "the log's device is full");
    };
    EXPECT_EQ(checkpoint.Write(kNeverStopped), Outcome::kGivenUp) << call;
    EXPECT_FALSE(db.database.checkpoints().is_active());
    EXPECT_EQ(db.Durable().anchor, db.anchor);
  }
}

// Each page takes a millisecond of the processor, and a rest of as much.
TEST_F(FuzzyCheckpointTest, OneThatRestsIsCompleteOrGivenUp) {
  BackupOptions options = db_.OptionsOf();
  options.cpu_percent = 50;
  FuzzyCheckpoint checkpoint(db_.log, options);
  const auto go_on = [] {
    UseProcessorFor(1'000'000);
    return false;
  };
  EXPECT_EQ(checkpoint.Write(go_on), Outcome::kComplete);
  EXPECT_EQ(db_.Durable().anchor.number, 1u);
  const auto stop_soon = [calls = 0]() mutable {
    UseProcessorFor(1'000'000);
    return ++calls >= 4;
  };
  EXPECT_EQ(checkpoint.Write(stop_soon), Outcome::kGivenUp);
  EXPECT_FALSE(db_.database.checkpoints().is_active());
  EXPECT_EQ(db_.Durable().anchor.number, 1u);
}

// All words of a tuple change together, under the latch.
TEST_F(FuzzyCheckpointTest, PagesThatChangeMeanwhileAreCopiedWhole) {
  FuzzyCheckpoint checkpoint = db_.Checkpoints();
  std::atomic<bool> done{false};
  std::thread changer([&] {
    for (uint64_t i = 0; !done.load(); ++i) db_.Change(i % 2, i % CheckpointedDatabase::kRows, i);
  });
  for (int round = 0; round < 30; ++round) {
    EXPECT_EQ(Write(checkpoint), Outcome::kComplete);
    for (const auto& table : db_.Durable().images) {
      for (const auto& images : table) {
        for (size_t at = db_.pages_of(0).BitsImageBytes(); at < images.size(); at += db_.pages_of(0).ImageBytes()) {
          EXPECT_EQ(std::memcmp(&images[at + 8], &images[at + 16], sizeof(CheckpointedDatabase::Tuple) - 8), 0);
        }
      }
    }
  }
  done.store(true);
  changer.join();
}

}  // namespace
}  // namespace dbx
