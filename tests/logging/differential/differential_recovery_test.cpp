// Restart from a backup and differential logs: what is redone, what is undone, and what is refused.
#include "logging/differential/differential_recovery.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "tests/logging/caught.h"
#include "tests/logging/differential/expect_recovered.h"

namespace dbx {
namespace {

using Ends = std::vector<uint64_t>;

// By the method of the run.
class DifferentialRecovery : public testing::TestWithParam<DiffMethod> {
 protected:
  static PagedRun RunOf(uint32_t logs = 1, PagedRun::Shape shape = {}) {
    shape.logs = logs;
    shape.method = GetParam();
    return dbx::RunOf(shape);
  }
  static PagedRun RunWithCheckpoint(uint32_t logs = 1) {
    PagedRun run = RunOf(logs);
    Change(run, 1, 0, kA, 10, 101);
    run.Checkpoint();
    run.Commit(1);
    return run;
  }
};

INSTANTIATE_TEST_SUITE_P(Methods, DifferentialRecovery,
                         testing::Values(DiffMethod::kDl1p, DiffMethod::kDl2p, DiffMethod::kPl2p),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

std::string Refusal(const PagedRun::Crashed& crashed, ExitStatus status = ExitStatus::kCorrupt) {
  std::string first;
  for (const uint32_t level : LevelsOf(crashed.anchor.method)) {
    std::string what;
    EXPECT_EQ(Caught([&] { Restart(crashed, {.level = level, .workers = 1}); }, what), status) << what;
    if (level == 1) first = what;
    EXPECT_EQ(what, first);
  }
  return first;
}

TEST_P(DifferentialRecovery, AnEmptyLogLeavesTheBackup) {
  const PagedRun::Crashed crashed = RunOf(2).Crash();
  EXPECT_EQ(crashed.state.size(), 4u);
  ExpectRecovered(crashed);
}

TEST_P(DifferentialRecovery, AWinnerIsRedoneAndALoserLeavesNothing) {
  PagedRun run = RunOf();
  Change(run, 1, 0, kA, 10, 101);
  Change(run, 2, 0, kB, 11, 111);
  run.Commit(1);
  ExpectRecoveredFromEveryCut(run, run.log(0));
}

TEST_P(DifferentialRecovery, RowsComeAndGo) {
  PagedRun run = RunOf();
  Change(run, 1, 0, kFree, 13, 130);
  run.Delete(1, kA);
  run.Commit(1);
  Change(run, 2, 0, kNew, 14, 140);
  Change(run, 2, 0, kA, 15, 150);
  run.Commit(2);
  run.Announce(3, 0);
  run.Delete(3, kFree);
  run.Delete(3, kNew);
  run.Commit(3);
  ExpectRecoveredFromEveryCut(run, run.log(0));
}

TEST_P(DifferentialRecovery, WhatABackupHasOfALoserIsUndone) {
  PagedRun run = RunOf();
  Change(run, 1, 0, kA, 10, 101);
  Change(run, 1, 0, kFree, 13, 130);
  run.Delete(1, kB);
  run.Checkpoint();
  Change(run, 1, 0, kC, 12, 121);
  ExpectRecovered(run.Crash());
  run.Commit(1);
  ExpectRecoveredFromEveryCut(run, run.log(0));
}

TEST_P(DifferentialRecovery, EachPageDividesTheChangesOfACheckpointByItself) {
  PagedRun run = RunOf();
  Change(run, 1, 0, kA, 10, 101);
  run.BeginCheckpoint();
  Change(run, 1, 0, kA, 10, 102);
  Change(run, 1, 0, kC, 12, 121);
  run.CopyPage(0, 0);
  Change(run, 1, 0, kA, 10, 103);
  Change(run, 1, 0, kC, 12, 122);
  run.CopyPages();
  Change(run, 1, 0, kC, 12, 123);
  run.EndCheckpoint();
  Change(run, 1, 0, kA, 10, 104);
  run.AppendEnds();
  run.WriteAnchor();
  Change(run, 1, 0, kA, 10, 105);
  run.Commit(1);
  ExpectRecoveredFromEveryCut(run, run.log(0));
}

TEST_P(DifferentialRecovery, APageThatIsAddedDuringACheckpointIsNotInItsBackup) {
  PagedRun run = RunOf();
  run.BeginCheckpoint();
  Change(run, 1, 0, kNew, 14, 140);
  run.CopyPages();
  Change(run, 2, 0, {0, 8, 0}, 15, 150);
  run.EndCheckpoint();
  run.AppendEnds();
  run.WriteAnchor();
  run.Commit(1);
  ExpectRecoveredFromEveryCut(run, run.log(0));
}

TEST_P(DifferentialRecovery, AnAbortBelowBeginIsInTheBackupAsAWhole) {
  PagedRun run = RunOf();
  Change(run, 1, 0, kA, 10, 101);
  Change(run, 2, 0, kB, 11, 111);
  run.Abort(1);
  // A transaction that is active keeps the scan going below BEGIN.
  run.Checkpoint();
  ExpectRecovered(run.Crash());
  run.Commit(2);
  ExpectRecovered(run.Crash());
}

TEST_P(DifferentialRecovery, AnAbortAboveBeginIsUndoneFromTheBackup) {
  PagedRun run = RunOf();
  Change(run, 1, 0, kA, 10, 101);
  run.BeginCheckpoint();
  run.CopyPages();
  run.EndCheckpoint();
  run.Abort(1);
  run.AppendEnds();
  run.WriteAnchor();
  ExpectRecoveredFromEveryCut(run, run.log(0));
}

TEST_P(DifferentialRecovery, CompensationsAreDividedAsChangesAre) {
  for (int copied = 0; copied < 4; ++copied) {
    PagedRun run = RunOf();
    Change(run, 1, 0, kA, 10, 101);
    Change(run, 1, 0, kC, 12, 121);
    run.BeginCheckpoint();
    if (copied & 1) run.CopyPage(0, 0);
    Change(run, 1, 0, kA, 10, 102);
    if (copied & 2) run.CopyPage(0, 1);
    run.Abort(1);
    run.CopyPages();
    run.EndCheckpoint();
    run.AppendEnds();
    run.WriteAnchor();
    ExpectRecoveredFromEveryCut(run, run.log(0));
  }
}

TEST_P(DifferentialRecovery, ARetryInTheSameLogHasChangesOfItsOwn) {
  for (const bool checkpoint_between : {false, true}) {
    PagedRun run = RunOf();
    Change(run, 1, 0, kA, 10, 101);
    run.Abort(1);
    if (checkpoint_between) run.Checkpoint();
    Change(run, 1, 0, kB, 11, 111);
    run.Abort(1);
    Change(run, 1, 0, kA, 10, 102);
    if (!checkpoint_between) run.Checkpoint();
    Change(run, 1, 0, kC, 12, 121);
    run.Commit(1);
    ExpectRecoveredFromEveryCut(run, run.log(0));
  }
}

TEST_P(DifferentialRecovery, ARetryInAnotherLogHasChangesOfItsOwn) {
  PagedRun run = RunOf(2);
  Change(run, 1, 0, kA, 10, 101);
  Change(run, 2, 0, kB, 11, 111);
  run.Abort(1);
  Change(run, 1, 1, kA, 10, 102);
  run.Checkpoint();
  run.Commit(1);
  ExpectRecovered(run.Crash());
  ExpectRecovered(run.Crash({run.end(0), run.durable(1)}));
}

TEST_P(DifferentialRecovery, ActiveTransactionsAreUndoneBelowBeginToo) {
  PagedRun run = RunOf();
  Change(run, 1, 0, kA, 10, 101);
  for (uint64_t id = 10; id < 60; ++id) {
    Change(run, id, 0, kC, 12, id);
    id % 3 == 0 ? run.Abort(id) : run.Commit(id);
  }
  run.Checkpoint();
  for (uint64_t id = 60; id < 70; ++id) {
    Change(run, id, 0, kC, 12, id);
    run.Commit(id);
  }
  ExpectRecovered(run.Crash());
}

TEST_P(DifferentialRecovery, AListThatIsTooLongDoesNoHarm) {
  for (const bool commits : {false, true}) {
    for (const bool below_begin : {false, true}) {
      PagedRun run = RunOf();
      Change(run, 1, 0, kA, 10, 101);
      run.Linger(7, 0, run.end(0));  // it will never change anything
      if (!below_begin) run.BeginCheckpoint();
      commits ? run.Commit(1) : run.Abort(1);
      run.Linger(1, 0, 0);
      if (below_begin) run.BeginCheckpoint();
      run.CopyPages();
      run.EndCheckpoint();
      run.AppendEnds();
      run.WriteAnchor();
      ExpectRecovered(run.Crash());
    }
  }
}

TEST_P(DifferentialRecovery, ACommitWhoseVectorIsNotCoveredIsDroppedAndUndone) {
  PagedRun run = RunOf(2);
  // 2 reads what 1 wrote, in another log; its changes are in the backup.
  Change(run, 1, 0, kA, 10, 101);
  Change(run, 2, 1, kB, 11, 111);
  Change(run, 2, 1, kNew, 14, 140);
  run.Checkpoint();
  run.Commit(1);
  run.Read(2, kA);
  run.Commit(2);
  const uint64_t before_commit = run.log(0).Starts().back();
  const PagedRun::Crashed crashed = run.Crash({before_commit, run.end(1)});
  EXPECT_TRUE(crashed.winners.empty());
  ExpectRecovered(crashed);
  EXPECT_EQ(Restart(crashed).summary.dropped, 1u);
  ExpectRecovered(run.Crash());
}

TEST_P(DifferentialRecovery, ElementsThatAnAnchorCoversAreDurable) {
  PagedRun run = RunOf(2);
  Change(run, 1, 0, kA, 10, 101);
  run.Commit(1);
  run.Flush(0);
  run.AppendLvAnchor(1);
  Change(run, 2, 1, kA, 10, 102);
  run.Commit(2);
  Change(run, 3, 0, kA, 10, 103);
  run.Commit(3);
  Change(run, 4, 1, kA, 10, 104);
  run.Commit(4);
  ExpectRecovered(run.Crash({run.durable(0), run.end(1)}));
  ExpectRecovered(run.Crash());
}

TEST_P(DifferentialRecovery, TheOrderOfTheLogsDoesNotMatter) {
  for (const bool swapped : {false, true}) {
    PagedRun run = RunOf(2);
    const uint32_t one = swapped, other = !swapped;
    Change(run, 1, one, kA, 10, 101);
    run.Commit(1);
    Change(run, 2, other, kA, 10, 102);
    Change(run, 2, other, kD, 20, 202);
    run.Checkpoint();
    run.Commit(2);
    Change(run, 3, one, kA, 10, 103);
    run.Commit(3);
    Change(run, 4, other, kD, 20, 203);
    ExpectRecovered(run.Crash());
    Ends ends = {run.end(0), run.end(1)};
    ends[other] = run.durable(other);
    ExpectRecovered(run.Crash(ends));
  }
}

TEST_P(DifferentialRecovery, RunsOfWordsAreRedoneAndUndone) {
  PagedRun run = RunOf(1, {.runs = true});
  Change(run, 1, 0, kA, 10, 101);
  Change(run, 2, 0, kD, 20, 201);
  Change(run, 3, 0, kFree, 13, 130);
  run.Checkpoint();
  Change(run, 2, 0, kD, 20, 0x0102030405060708);
  run.Commit(2);
  ExpectRecoveredFromEveryCut(run, run.log(0));
}

TEST_P(DifferentialRecovery, BackupsInSeveralPartsAreRestored) {
  PagedRun run = RunOf(1, {.parts = 3});
  for (uint32_t page = 2; page < 9; ++page) Change(run, 1, 0, {0, page, 0}, 100 + page, page);
  run.Checkpoint();
  run.Commit(1);
  ExpectRecovered(run.Crash());
  ExpectRecovered(run.Crash({run.durable(0)}));
}

TEST_P(DifferentialRecovery, BothCopiesRecoverTheSame) {
  PagedRun run = RunOf();
  Change(run, 1, 0, kA, 10, 101);
  run.Checkpoint();
  Change(run, 1, 0, kB, 11, 111);
  const BackupAnchor before = run.anchor();
  Change(run, 2, 0, kC, 12, 121);
  run.Commit(2);
  run.Checkpoint();
  run.Commit(1);
  EXPECT_NE(run.anchor().copy, before.copy);
  ExpectRecovered(run.Crash());
  ExpectRecovered(run.Crash({run.end(0)}, &before));
}

TEST_P(DifferentialRecovery, ACheckpointThatFailedIsPassedOver) {
  PagedRun run = RunOf();
  Change(run, 1, 0, kA, 10, 101);
  run.BeginCheckpoint();
  run.CopyPage(0, 0);
  Change(run, 2, 0, kC, 12, 121);
  run.FailCheckpoint();
  Change(run, 1, 0, kB, 11, 111);
  ExpectRecoveredFromEveryCut(run, run.log(0));
  run.Checkpoint();
  run.Commit(1);
  ExpectRecoveredFromEveryCut(run, run.log(0));
}

TEST_P(DifferentialRecovery, RecordsThatCrossBlocksAreAppliedOnce) {
  PagedRun run = RunOf(2);
  for (uint64_t id = 1; id < 600; ++id) {
    for (uint64_t i = 0; i < 3; ++i) Change(run, id, id % 2, id % 3 == 0 ? kA : kC, id % 3 == 0 ? 10 : 12, 3 * id + i);
    if (id % 100 == 7) run.log(0).Void(9000);
    run.Commit(id);
    if (id == 300) run.Checkpoint();
  }
  ASSERT_GT(run.end(0), 8 * format::kBlockBytes);
  ExpectRecovered(run.Crash());
}

TEST_P(DifferentialRecovery, RepeatingARecoveryGivesTheSame) {
  PagedRun run = RunOf(2);
  Change(run, 1, 0, kA, 10, 101);
  Change(run, 2, 1, kB, 11, 111);
  run.Checkpoint();
  run.Commit(1);
  const PagedRun::Crashed crashed = run.Crash();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Restart(crashed).state, crashed.state);
}

TEST_P(DifferentialRecovery, TheTimesOfItsStagesAreMeasured) {
  PagedRun run = RunOf();
  for (uint64_t id = 1; id < 300; ++id) {
    Change(run, id, 0, kA, 10, id);
    run.Commit(id);
  }
  // With a ring so short the log is not read from its start when its end is searched.
  const RestartTimes times = Restart(run.Crash(), {.level = 1, .workers = 1, .ring_bytes = 4096}).summary.restart;
  for (const double seconds : {times.ends_seconds, times.backup_seconds, times.adopt_seconds, times.log_read_seconds}) {
    EXPECT_GT(seconds, 0);
  }
  EXPECT_GT(times.redo_seconds + times.backward_seconds, times.log_read_seconds);
}

TEST_P(DifferentialRecovery, IdsOfLosersAreNotUsedAgain) {
  const uint64_t id = TxnId::Make(WorkerId(1), 77).value;
  PagedRun run = RunOf();
  Change(run, id, 0, kA, 10, 101);
  EXPECT_EQ(Restart(run.Crash()).summary.next_sequence, 78u);
  // Behind the valid prefix, too.
  PagedRun::Crashed crashed = run.Crash();
  crashed.logs[0] = Truncate(crashed.logs[0], format::kStreamOffset);
  LogBuilder behind(PagedRun::kRunId, 0, 1, format::Scheme::kDifferential);
  behind.Hole(4096).Abort(id);  // of an attempt that the tear has cut off
  crashed.logs[0].insert(crashed.logs[0].end(), behind.Stream().begin(), behind.Stream().end());
  EXPECT_EQ(Restart(crashed).summary.next_sequence, 78u);
}

TEST_P(DifferentialRecovery, FreeSlotsAndPagesTakeNewRows) {
  PagedRun run = RunOf();
  Change(run, 1, 0, kNew, 14, 140);
  run.Commit(1);
  size_t rows = 0;
  (void)Restart(run.Crash(), {.workers = 1}, [&rows](Database& database) {
    Table& table = database.table(TableId(0));
    ASSERT_EQ(table.pages()->page_count(), 10u);
    for (Key key = 1000; table.pages()->page_count() == 10; ++key, ++rows) {
      Row* const row = table.FindOrCreate(WorkerId(0), key, [](Row& made) { made.control.store(Row::kAbsent); });
      ASSERT_EQ(*table.tuple(row), std::byte{0});
    }
  });
  // Of 40 slots four hold rows: the others are handed out before a page is added.
  EXPECT_EQ(rows, 36u + 1);
}

// --- what is refused ---

TEST_P(DifferentialRecovery, AnAnchorThatTheLogsDoNotBearOutIsRefused) {
  const PagedRun run = RunWithCheckpoint();
  const auto refusal = [&run](const std::function<void(BackupAnchor&)>& change) {
    PagedRun::Crashed crashed = run.Crash();
    change(crashed.anchor);
    return Refusal(crashed);
  };
  const auto offset = [](Lsn at) { return std::to_string(FileOffset(at.value())); };
  const std::string log = "damaged log disk0/log-00.log@";
  const Lsn begin = run.anchor().begin[0], end = run.anchor().end[0];
  EXPECT_EQ(refusal([](BackupAnchor& a) { a.end[0] += 8; }),
            log + offset(end + 8) + ": header checksum, but the run's anchor shows that it was durable up to offset " +
                offset(end + 8));
  EXPECT_EQ(refusal([](BackupAnchor& a) { a.begin[0] += 8; }),
            log + offset(begin) + ": checkpoint that began elsewhere, according to the anchor");
  EXPECT_EQ(refusal([](BackupAnchor& a) { a.number = 2; }),
            log + offset(end) + ": no checkpoint begins or ends here, as the run's anchor says");
  const std::string nonsense = "cannot restart from disk0/anchor@0: its positions in log 0 make no sense";
  EXPECT_EQ(refusal([](BackupAnchor& a) { a.needed[0] = a.begin[0] + 8; }), nonsense);
  EXPECT_EQ(refusal([](BackupAnchor& a) { a.end[0] = Lsn(0); }), nonsense);
  EXPECT_EQ(refusal([](BackupAnchor& a) { a.number = 0; }), nonsense);
}

TEST_P(DifferentialRecovery, ALogThatLostItsEndIsRefused) {
  PagedRun run = RunWithCheckpoint(2);
  PagedRun::Crashed crashed = run.Crash();
  crashed.logs[1] = Truncate(crashed.logs[1], FileOffset(run.anchor().end[1].value()));
  const std::string offset = std::to_string(FileOffset(run.anchor().end[1].value()));
  EXPECT_EQ(Refusal(crashed), "damaged log disk0/log-01.log@" + offset +
                                  ": end of file, but the run's anchor shows that it was durable up to offset " +
                                  offset);
}

TEST_P(DifferentialRecovery, AnAnchorOfSomethingElseIsAMismatch) {
  const PagedRun run = RunWithCheckpoint();
  const auto mismatch = [&run](const std::function<void(BackupAnchor&)>& change) {
    PagedRun::Crashed crashed = run.Crash();
    change(crashed.anchor);
    return Refusal(crashed, ExitStatus::kMismatch);
  };
  const std::string from = "cannot restart from disk0/anchor@0: ";
  EXPECT_EQ(mismatch([](BackupAnchor& a) { a.run_id ^= 1; }), from + "it is of another run than its logs");
  EXPECT_EQ(mismatch([](BackupAnchor& a) { a.begin.push_back(Lsn(0)); }),
            from + "it names another number of logs than the run has");
  EXPECT_EQ(mismatch([](BackupAnchor& a) { a.parts = 2; }),
            from + "it names another number of parts than the run has directories");
  EXPECT_EQ(mismatch([](BackupAnchor& a) { a.tables[1].tuple_bytes = 16; }),
            from + "the pages of table 1 have another shape");
  EXPECT_EQ(mismatch([](BackupAnchor& a) { a.tables[0].rows_per_page = 5; }),
            from + "the pages of table 0 have another shape");
}

// A change that no engine writes, in an otherwise empty log.
std::string RefusalOf(BuiltChange change, ExitStatus status = ExitStatus::kCorrupt) {
  PagedRun run = RunOf({});
  change.txn_id = 1;
  change.flags |= format::kChangeFirst;
  run.log(0).Change(change).Commit(1);
  return Refusal(run.Crash(), status);
}

TEST(DamagedChanges, ChangesThatFitNoTableAreRefused) {
  const std::string place = "damaged log disk0/log-00.log@8192: ";
  const std::string image(24, 'x');
  EXPECT_EQ(RefusalOf({.table = 2, .image = image}), place + "change of an unknown table");
  EXPECT_EQ(RefusalOf({.slot = 4, .image = image}), place + "slot beyond the end of its page");
  EXPECT_EQ(RefusalOf({.image = image + image}), place + "image of another length than its table's tuples");
  EXPECT_EQ(RefusalOf({.number = 1, .image = image}), place + "change of a checkpoint that has not begun");
  EXPECT_EQ(RefusalOf({.page = UINT32_MAX, .image = image}, ExitStatus::kNoSpace),
            "no memory for page 4294967295 of table of24, which disk0/log-00.log@8192 names");
}

TEST(DamagedChanges, ASlotThatIsFreeAndNotZeroIsRefused) {
  const std::string refused = RefusalOf({.page = 1, .slot = 0, .image = std::string(24, 'x')});
  EXPECT_EQ(refused,
            "damaged backup or log of disk0: slot 0 of page 1 of table of24 is free, but not zeros: a change is "
            "missing, or was applied twice");
}

TEST(DamagedChanges, AKeyInTwoSlotsIsRefused) {
  const std::string refused =
      RefusalOf({.page = 1, .slot = 0, .image = std::string(24, 'x'), .flags = format::kChangePresence, .key = 10});
  EXPECT_EQ(refused, "table of24: key 10 in two slots");
}

TEST_P(DifferentialRecovery, ADamagedBackupIsRefused) {
  PagedRun::Crashed crashed = RunOf().Crash();
  FaultyFileSystem files(crashed.backup);
  files.Change("disk0/" + BackupFileName(0, 0, 0), [](SparseBytes& bytes) {
    std::byte byte{};
    bytes.Read(5000, {&byte, 1});
    byte ^= std::byte{1};
    bytes.Write(5000, {&byte, 1});
  });
  crashed.backup = files.VisibleImage();
  EXPECT_EQ(Refusal(crashed), "cannot read disk0/backup-a-00-00.bak@4096: the checksum of the page does not match");
}

// A frame that was whole once, as a part has them that was put back from before: here with other bytes behind its
// images.
TEST_P(DifferentialRecovery, AFrameThatIsNotTheOneOfTheCheckpointIsRefused) {
  PagedRun::Crashed crashed = RunOf().Crash();
  FaultyFileSystem files(crashed.backup);
  files.Change("disk0/" + BackupFileName(0, 0, 0), [](SparseBytes& bytes) {
    std::vector<std::byte> frame(format::kBlockBytes);
    bytes.Read(0, frame);
    frame.back() ^= std::byte{1};
    const uint32_t crc = Crc32c(std::span(frame).subspan(sizeof crc));
    std::memcpy(frame.data(), &crc, sizeof crc);
    bytes.Write(0, frame);
  });
  crashed.backup = files.VisibleImage();
  const std::string refused = Refusal(crashed, ExitStatus::kMismatch);
  EXPECT_TRUE(refused.starts_with("the backup disk0/backup-a-00-00.bak")) << refused;
  EXPECT_TRUE(refused.ends_with("not all pages are of the checkpoint that the run's anchor names")) << refused;
}

TEST_P(DifferentialRecovery, ALevelThatDoesNotExistIsRefused) {
  for (const uint32_t level : {5u, 100u}) {
    std::string what;
    EXPECT_EQ(Caught([&] { dbx::DifferentialRecovery({.restart_level = level}); }, what), ExitStatus::kUsage);
    EXPECT_EQ(what, "RESTART_LEVEL is " + std::to_string(level) + ": valid values are 1 to 4, and 0 for the highest");
  }
}

}  // namespace
}  // namespace dbx
