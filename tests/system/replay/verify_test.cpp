// The checks of --verify: each must fail when what it is about is wrong.
#include "system/replay/verify.h"

#include <gtest/gtest.h>

#include "logging/taurus/taurus_log.h"
#include "system/command_line/parse_options.h"
#include "system/pairs/registry.h"
#include "system/replay/recovery_run.h"
#include "system/transaction/ack_file.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/device/temp_dir.h"

namespace dbx::testing {
namespace {

TxnId Id(uint32_t worker, uint64_t sequence) { return TxnId::Make(WorkerId(worker), sequence); }
std::vector<uint64_t> Ids(std::vector<TxnId> ids) { return SortedIds({std::move(ids)}); }

// What the check says to it; "" if nothing.
template <class Check>
std::string Verdict(Check&& check) {
  try {
    check();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kInternal);
    return error.what();
  }
  return "";
}

TEST(VerifyTest, ATransactionThatWasRecoveredTwiceIsNamed) {
  EXPECT_EQ(SortedIds({{Id(0, 2)}, {Id(0, 1)}}), (std::vector<uint64_t>{Id(0, 1).value, Id(0, 2).value}));
  EXPECT_EQ(Verdict([] {
              SortedIds({{Id(1, 7)}, {Id(0, 1), Id(1, 7)}});
            }),
            "verification a failed: transaction 7 of worker 1 was recovered twice");
}

TEST(VerifyTest, TransactionsThatOnlyOneOfBothRecoversAreNamed) {
  const auto few = Ids({Id(0, 1)}), more = Ids({Id(0, 1), Id(2, 5)});
  EXPECT_EQ(Verdict([&] { CheckSameSet(more, more); }), "");
  EXPECT_EQ(Verdict([&] { CheckSameSet(few, more); }),
            "verification a failed: transaction 5 of worker 2 was not recovered");
  EXPECT_EQ(Verdict([&] { CheckSameSet(more, few); }),
            "verification a failed: transaction 5 of worker 2 should have been dropped");
}

TEST(VerifyTest, TheDigestOfACleanEndIsCheckedInEveryLogThatHasOne) {
  ReplaySummary summary;
  format::RunEndBody end{};
  end.has_digest = 1, end.digest[0] = 3, end.digest[1] = 4;
  summary.run_ends = {end, end};
  EXPECT_FALSE(CheckRunEndDigest(summary, {3, 4}));
  summary.clean_end = true;
  EXPECT_TRUE(CheckRunEndDigest(summary, {3, 4}));
  summary.run_ends[1]->digest[1] = 5;
  EXPECT_TRUE(Verdict([&] { CheckRunEndDigest(summary, {3, 4}); }).starts_with("verification b failed"));
  summary.run_ends[0]->has_digest = 0;
  EXPECT_FALSE(CheckRunEndDigest(summary, {3, 4}));
}

TEST(VerifyTest, AcknowledgedTransactionsThatAreMissingOrUnknownAreFaults) {
  const TempDir dir;
  const std::string acks = dir / "acks";
  const auto file = AckFile::Create(acks, 9, 1, 100);
  file->Acknowledge(Id(0, 4));
  EXPECT_EQ(Verdict([&] { CheckAcknowledged(acks, 9, Ids({Id(0, 3), Id(0, 4)})); }), "");
  // One that had ended before the checkpoint from which the database was restored need have no name.
  EXPECT_EQ(Verdict([&] { CheckAcknowledged(acks, 9, Ids({Id(0, 3)}), {5}); }), "");
  EXPECT_NE(Verdict([&] { CheckAcknowledged(acks, 9, Ids({Id(0, 3)}), {4}); }), "");
  EXPECT_EQ(Verdict([&] { CheckAcknowledged(acks, 9, Ids({Id(0, 3)})); }),
            "verification c failed: acknowledged transaction 4 of worker 0 is lost");
  file->Acknowledge(Id(1, 0));
  EXPECT_EQ(Verdict([&] { CheckAcknowledged(acks, 9, Ids({Id(0, 4)})); }),
            "verification c failed: 1 acknowledged transactions have no bit in " + acks);
}

// A run of the TEST workload, loaded to be recovered.
class VerifiedRecoveryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // A pair that the sanitised builds hold too.
    options_.cc = "SILO", options_.log = "LOG_TAURUS", options_.log_type = "LOG_COMMAND";
    options_.workload = WorkloadKind::kTest;
    options_.thread_cnt = 2, options_.max_txns_per_thread = 50;
    options_.log_buffer_size = 64 << 10, options_.hopping_distance_bytes = 16 << 10;
    options_.log_limit_bytes = 1 << 20;
    options_.log_dirs = {"a"};
    options_.verify = true;
    Registry::Global().Create(options_)->Run(options_, storage_);
    runs_ = storage_.Open(options_);
    Load(database_);
  }
  void Load(Database& database) {
    workload_.CreateTables(database);
    LoadStart(StartStateOf(runs_), files_, options_.seed, options_.thread_cnt, &workload_, database);
  }
  std::vector<RecoveredRun> Replay() {
    return ReplayRuns(format::Scheme::kTaurus, options_, files_, runs_, &workload_, database_);
  }
  std::string VerdictOn(const std::vector<RecoveredRun>& recovered, const Database& database) {
    return Verdict([&] { VerifyRecovery(options_, files_, runs_, recovered, &workload_, database); });
  }

  Options options_ = DefaultOptions();
  FaultyFileSystem files_;
  LogStorage storage_{files_};
  OldRuns runs_;
  TestWorkload workload_ = MakeWorkload<TestWorkload>(options_);
  Database database_{{}, 2};
};

TEST_F(VerifiedRecoveryTest, WhatWasReplayedIsRight) { EXPECT_EQ(VerdictOn(Replay(), database_), ""); }

TEST_F(VerifiedRecoveryTest, AStateThatTheLogsDoNotGiveIsAFault) {
  const std::vector<RecoveredRun> recovered = Replay();
  Database unchanged({}, 2);
  Load(unchanged);
  EXPECT_EQ(VerdictOn(recovered, unchanged), "verification a failed: the database differs from the reference replay's");
}

TEST_F(VerifiedRecoveryTest, ATransactionThatRecoveryOverlookedIsAFault) {
  std::vector<RecoveredRun> recovered = Replay();
  auto& by_replayer = recovered[0].names;
  std::find_if(by_replayer.begin(), by_replayer.end(), [](const auto& names) { return !names.empty(); })->pop_back();
  EXPECT_TRUE(VerdictOn(recovered, database_).ends_with("was not recovered"));
}

TEST_F(VerifiedRecoveryTest, ADigestOfACleanEndProvesTheStateWithoutTheReference) {
  options_.reference = false;
  const std::vector<RecoveredRun> recovered = Replay();
  EXPECT_EQ(VerifyRecovery(options_, files_, runs_, recovered, &workload_, database_).checks, "b,d");
  Database unchanged({}, 2);
  Load(unchanged);
  EXPECT_TRUE(VerdictOn(recovered, unchanged).starts_with("verification b failed"));
}

TEST_F(VerifiedRecoveryTest, WhatAnAcknowledgedReaderSawMustHaveBeenRecovered) {
  const TempDir dir;
  options_.ack_file = dir / "acks";
  const auto acks = AckFile::Create(options_.ack_file, runs_.newest().header().run_id, 2, 1000, 0, 1000);
  test::QuietReader reader{Id(1, 900), {}};
  reader.row.Add(AccessKind::kRead, test::MakeObject(test::Place::kSlot, 1000), kInitialVersion);
  reader.row.Add(AccessKind::kRead, test::MakeObject(test::Place::kSlot, 1002), Id(0, 800));  // which is not there
  std::memcpy(acks->NotesOf(WorkerId(1)).data(), &reader, sizeof reader);
  const std::vector<RecoveredRun> recovered = Replay();
  EXPECT_EQ(VerdictOn(recovered, database_), "");
  acks->Acknowledge(reader.id, /*wrote=*/false);
  EXPECT_EQ(VerdictOn(recovered, database_),
            "verification d failed: G1a: T1.900 saw the version of SLOT 1002 by T0.800, which did not commit");
}

TEST_F(VerifiedRecoveryTest, WithoutADigestTheReferenceReplaysInAnyCase) {
  options_.reference = false;
  std::vector<RecoveredRun> recovered = Replay();
  recovered.back().summary.run_ends.back()->has_digest = 0;
  EXPECT_EQ(VerifyRecovery(options_, files_, runs_, recovered, &workload_, database_).checks, "a,d");
}

TEST_F(VerifiedRecoveryTest, LogsOfAnotherSchemeOrShapeAreRefused) {
  const OldRun& run = runs_.newest();
  const uint64_t schema_hash = SchemaHash(database_);
  CheckLogsMatch(run, TaurusLog<CommandPayload>::kTraits, schema_hash);
  EXPECT_THROW(CheckLogsMatch(run, TaurusLog<DataPayload>::kTraits, schema_hash), Error);
  EXPECT_THROW(CheckLogsMatch(run, TaurusLog<CommandPayload>::kTraits, schema_hash + 1), Error);
}

}  // namespace
}  // namespace dbx::testing
