// The reference recovery: which transactions survive, in which order, and what their replay leaves.
#include "system/reference/reference_replay.h"

#include <gtest/gtest.h>

#include "system/reference/reference_apply.h"
#include "tests/logging/log_builder.h"
#include "tests/reference/reference_check.h"

namespace dbx::reference {
namespace {

constexpr uint64_t kRun = 0xB0B;
constexpr auto kTaurus = format::Scheme::kTaurus;

LogBuilder TaurusLog(uint32_t index, uint32_t count = 2) { return LogBuilder(kRun, index, count, kTaurus); }

RecoveredSet RecoverFiles(const std::vector<LogBytes>& files) { return Recover(ReadLogs(files)); }

std::vector<uint64_t> OrderOf(const std::vector<LogBytes>& files) {
  const ReferenceLogs logs = ReadLogs(files);
  std::vector<uint64_t> ids;
  for (const TxnRef& at : Recover(logs).order) ids.push_back(DecodeRecord(logs, at.log, at.lsn).txn_id);
  return ids;
}

TEST(ReferenceRecovery, ASerialLogsValidPrefixIsRecovered) {
  LogBuilder built(kRun);
  built.Command(5, 0).Void().Command(3, 0).Void().Command(4, 0);
  const RecoveredSet set = RecoverFiles({FlipBit(built.Bytes(), FileOffset(built.Start(4)))});
  EXPECT_EQ(set.damage, "");
  EXPECT_EQ(set.txn_ids, (std::vector<uint64_t>{3, 5}));
  EXPECT_EQ(set.voids, 2u);
  EXPECT_EQ(set.frontier, std::vector<uint64_t>{built.Start(4)});
}

// Taurus, Fig. 4: LV [4, 45, 1, 2] after the anchor [7, 16, 2, 4].
TEST(ReferenceRecovery, AnLsnVectorIsDecompressedAsInFigure4) {
  std::vector<LogBytes> files;
  for (uint32_t i = 1; i < 4; ++i) files.push_back(TaurusLog(i, 4).Command(i, 0).Bytes());
  LogBuilder built = TaurusLog(0, 4);
  built.Anchor({7, 16, 2, 4}).Command(9, 0, {}, {4, 45, 1, 2});
  EXPECT_EQ(built.End() - built.Start(1), 32u + 8 + 8);  // header, transaction id, one stored element
  files.push_back(built.Bytes());
  const ReferenceLogs logs = ReadLogs(files);
  Cursor cursor(logs, 0);
  cursor.Next();
  EXPECT_EQ(cursor.record().lv, (LsnVector{7, 45, 2, 4}));
}

TEST(ReferenceRecovery, ElementsBeforeTheFirstAnchorAreZero) {
  LogBuilder a = TaurusLog(0), b = TaurusLog(1);
  b.Command(1, 0);
  a.Command(2, 0, {}, {0, b.End()}).Anchor({8, 24}).Command(3, 0, {}, {0, 0}).Anchor({16, 32}).Command(4, 0);
  const ReferenceLogs logs = ReadLogs(std::vector<LogBytes>{a.Bytes(), b.Bytes()});
  std::vector<LsnVector> lvs;
  for (Cursor c(logs, 0); !c.AtEnd(); c.Next()) {
    if (c.record().IsTxn()) lvs.push_back(c.record().lv);
  }
  EXPECT_EQ(lvs, (std::vector<LsnVector>{{0, b.End()}, {8, 24}, {16, 32}}));
}

// Taurus, Alg. 3 as printed drops everything behind the first transaction that depends on what is lost.
TEST(ReferenceRecovery, OnlyTheTransactionsThatDependOnWhatIsLostAreDropped) {
  LogBuilder a = TaurusLog(0), b = TaurusLog(1);
  b.Command(1, 0).Command(2, 0);
  a.Command(3, 0, {}, {0, b.End()}).Command(4, 0, {}, {0, b.Start(1)});
  const LogBytes lost = Truncate(b.Bytes(), FileOffset(b.End()) - 1);
  const RecoveredSet set = RecoverFiles({a.Bytes(), lost});
  EXPECT_EQ(set.txn_ids, (std::vector<uint64_t>{1, 4}));
  ASSERT_EQ(set.dropped.size(), 1u);
  EXPECT_EQ(set.dropped[0].id.value, 3u);
  EXPECT_EQ(set.dropped[0].lost_log, 1u);
  EXPECT_EQ(set.dropped[0].needed_lsn, b.End());
}

TEST(ReferenceRecovery, TheFrontierOfALogIsNotItsFileSize) {
  LogBuilder a = TaurusLog(0), b = TaurusLog(1);
  a.Command(1, 0, {}, {0, 40});
  const RecoveredSet set = RecoverFiles({a.Bytes(), AppendZeros(b.Bytes(), 8192)});
  EXPECT_EQ(set.dropped.size(), 1u);
}

TEST(ReferenceRecovery, ReplayFollowsDependenciesAcrossLogs) {
  LogBuilder a = TaurusLog(0), b = TaurusLog(1);
  // 1 -> 2 -> 3 -> 4, written alternately; 5 depends on nothing.
  a.Command(1, 0);
  b.Command(2, 0, {}, {a.End(), 0});
  a.Command(3, 0, {}, {0, b.End()});
  b.Command(4, 0, {}, {a.End(), 0}).Command(5, 0);
  EXPECT_EQ(OrderOf({a.Bytes(), b.Bytes()}), (std::vector<uint64_t>{1, 2, 3, 4, 5}));
}

TEST(ReferenceRecovery, ALogWaitsWhereAnotherIsAhead) {
  LogBuilder a = TaurusLog(0), b = TaurusLog(1);
  b.Command(1, 0).Command(2, 0);
  a.Command(3, 0, {}, {0, b.End()}).Command(4, 0);
  EXPECT_EQ(OrderOf({a.Bytes(), b.Bytes()}), (std::vector<uint64_t>{1, 2, 3, 4}));
}

TEST(ReferenceRecovery, VoidsPadsAnchorsAndDroppedTransactionsCountAsReplayed) {
  LogBuilder a = TaurusLog(0), b = TaurusLog(1);
  b.Command(1, 0).Void().Anchor({0, 0}).Command(2, 0, {}, {99'999, 0}).Pad(0);
  a.Command(3, 0, {}, {0, b.End()});
  EXPECT_EQ(OrderOf({a.Bytes(), b.Bytes()}), (std::vector<uint64_t>{1, 3}));
}

TEST(ReferenceRecovery, TransactionsThatWaitForEachOtherAreDamage) {
  LogBuilder a = TaurusLog(0), b = TaurusLog(1);
  a.Command(1, 0, {}, {0, 48});
  b.Command(2, 0, {}, {48, 0});
  ASSERT_EQ(a.End(), 48u);
  const RecoveredSet set = RecoverFiles({a.Bytes(), b.Bytes()});
  EXPECT_NE(set.damage.find("file 0@8192: the transaction waits"), std::string::npos) << set.damage;
}

TEST(ReferenceRecovery, ATransactionThatWaitsForItsOwnFutureIsDamage) {
  LogBuilder a = TaurusLog(0, 1);
  a.Command(1, 0, {}, {56}).Command(2, 0);
  EXPECT_NE(RecoverFiles({a.Bytes()}).damage, "");
}

TEST(ReferenceRecovery, ATransactionThatIsThereTwiceIsDamage) {
  EXPECT_NE(RecoverFiles({LogBuilder(kRun).Command(1, 0).Command(1, 0).Bytes()}).damage, "");
}

TEST(ReferenceRecovery, DamageBelowTheDurableFrontierIsRefused) {
  const LogBytes file = LogBuilder(kRun).Command(1, 0).Pad().Command(2, 0).Bytes();
  const RecoveredSet set = RecoverFiles({FlipBit(file, FileOffset(13))});
  EXPECT_NE(set.damage.find("damaged log file 0@8192: bad header checksum"), std::string::npos) << set.damage;
  EXPECT_TRUE(set.order.empty());
}

// Anything with ForEachAcknowledged.
struct Acks {
  std::vector<uint64_t> ids;
  void ForEachAcknowledged(auto&& visit) const {
    for (const uint64_t id : ids) visit(TxnId{id});
  }
};

TEST(ReferenceCheck, FindsAcknowledgedTransactionsThatAreLost) {
  RecoveredSet set;
  set.txn_ids = {1, 3, 5, 8};
  EXPECT_EQ(CheckAcknowledged(Acks{{1, 5, 8}}, set).lost, 0u);
  const AckCheck check = CheckAcknowledged(Acks{{1, 4, 5, 9}}, set);
  EXPECT_EQ(check.acknowledged, 4u);
  EXPECT_EQ(check.lost, 2u);
  EXPECT_EQ(check.first_lost.value, 4u);
}

// Rows of 8 bytes. Arguments: transaction id, key, value.
class MiniWorkload {
 public:
  enum Procedure : uint16_t { kMix, kInsert, kDelete, kInsertTwoAndGiveUp };

  static std::unique_ptr<Database> Load() {
    auto database = std::make_unique<Database>(RowLayout(), 1);
    Schema schema;
    schema.name = "MINI";
    schema.tuple_bytes = 8;
    schema.expected_rows = 16;
    Table& table = database->CreateTable(std::move(schema));
    for (uint64_t key = 0; key < 4; ++key) table.LoadRow(WorkerId(0), key, AsTuple(key));
    return database;
  }
  static Bytes AsTuple(const uint64_t& value) { return std::as_bytes(std::span(&value, 1)); }
  static std::string Args(uint64_t key, uint64_t value) {
    return std::string(reinterpret_cast<const char*>(&key), 8) + std::string(reinterpret_cast<const char*>(&value), 8);
  }
  explicit MiniWorkload(Database& database) : table_(database.table(TableId(0))) {}

  bool ValidArgs(ProcedureId procedure, Bytes args) const { return procedure.value() < 4 && args.size() == 24; }
  Outcome Run(TxnContext auto& ctx, ProcedureId procedure, Bytes args) {
    uint64_t a[3];
    std::memcpy(a, args.data(), sizeof a);
    switch (procedure.value()) {
      case kMix:
        return Mix(ctx, a[0], a[1], a[2]);
      case kInsert:
        return ctx.Insert(table_, a[1], AsTuple(a[2]));
      case kDelete:
        return ctx.Delete(table_, a[1]);
      default:
        break;
    }
    ctx.Insert(table_, a[1], AsTuple(a[2]));
    ctx.Insert(table_, a[1] + 1, AsTuple(a[2]));
    ctx.Update(table_, a[1], [&](auto& tuple) { tuple.SetAt(0, uint64_t{77}); });
    ctx.Delete(table_, 0);
    Mix(ctx, a[0], 1, a[2]);
    return Outcome::kRollback;
  }
  // What `key` holds, or 0 for no row.
  uint64_t ValueOf(uint64_t key) const {
    uint64_t value = 0;
    ReferenceContext().Read(table_, key, [&](const auto& tuple) { value = tuple.template GetAt<uint64_t>(0); });
    return value;
  }

 private:
  Outcome Mix(auto& ctx, uint64_t id, uint64_t key, uint64_t value) {
    return ctx.Update(table_, key, [&](auto& tuple) {
      tuple.SetAt(0, tuple.template GetAt<uint64_t>(0) * 1'000'003 + value * 31 + id);
    });
  }
  Table& table_;
};

struct Replayed {
  std::unique_ptr<Database> database = MiniWorkload::Load();
  MiniWorkload workload{*database};
  ReplayResult result;

  explicit Replayed(const std::vector<LogBytes>& files) {
    const ReferenceLogs logs = ReadLogs(files);
    result = Replay(logs, Recover(logs), workload, *database);
  }
};

TEST(ReferenceReplay, CommandsRunInTheOrderOfTheirDependencies) {
  LogBuilder a = TaurusLog(0), b = TaurusLog(1);
  b.Command(10, MiniWorkload::kMix, MiniWorkload::Args(2, 5));
  a.Command(11, MiniWorkload::kMix, MiniWorkload::Args(2, 6), {0, b.End()});
  const Replayed replayed({a.Bytes(), b.Bytes()});
  const uint64_t first = 2 * 1'000'003 + 5 * 31 + 10;
  EXPECT_EQ(replayed.workload.ValueOf(2), first * 1'000'003 + 6 * 31 + 11);
  EXPECT_EQ(replayed.result.applied, 2u);
  EXPECT_TRUE(replayed.result.without_effect.empty());
}

// Ends give the order, whatever the order in the log, and each reads what was there at its timestamp.
TEST(ReferenceReplay, CommandsWithTimestampsReadWhatWasThereThen) {
  LogBuilder log(kRun);
  log.VersionedCommand(10, {6, 7}, MiniWorkload::kMix, MiniWorkload::Args(2, 5));
  log.VersionedCommand(11, {4, 5}, MiniWorkload::kMix, MiniWorkload::Args(2, 6));
  log.VersionedCommand(12, {4, 9}, MiniWorkload::kInsert, MiniWorkload::Args(9, 90));
  log.VersionedCommand(13, {8, 10}, MiniWorkload::kInsert, MiniWorkload::Args(9, 91));  // does not see the other
  const Replayed replayed({log.Bytes()});
  const uint64_t first = 2 * 1'000'003 + 6 * 31 + 11;
  EXPECT_EQ(replayed.workload.ValueOf(2), first * 1'000'003 + 5 * 31 + 10);
  EXPECT_EQ(replayed.workload.ValueOf(9), 90u);
  EXPECT_EQ(replayed.result.without_effect, std::vector<TxnId>{TxnId{13}});
}

TEST(ReferenceReplay, ACommandWithTimestampsThatEndsWithoutEffectLeavesNone) {
  LogBuilder log(kRun);
  log.VersionedCommand(1, {4, 5}, MiniWorkload::kInsertTwoAndGiveUp, MiniWorkload::Args(9, 90));
  const Replayed replayed({log.Bytes()});
  EXPECT_EQ(FirstDifference(*replayed.database, *MiniWorkload::Load()), std::nullopt);
  EXPECT_EQ(replayed.result.without_effect, std::vector<TxnId>{TxnId{1}});
}

TEST(ReferenceReplay, TimestampsThatNoEngineWritesAreDamage) {
  LogBuilder equal(kRun), below(kRun), mixed(kRun);
  equal.VersionedCommand(1, {5, 5}, MiniWorkload::kMix, MiniWorkload::Args(2, 5));
  below.Watermark(5).VersionedCommand(1, {4, 9}, MiniWorkload::kMix, MiniWorkload::Args(2, 5));
  mixed.VersionedCommand(1, {4, 5}, MiniWorkload::kMix, MiniWorkload::Args(2, 5));
  mixed.Command(2, MiniWorkload::kMix, MiniWorkload::Args(2, 5));
  EXPECT_NE(RecoverFiles({equal.Bytes()}).damage, "");
  EXPECT_NE(RecoverFiles({below.Bytes()}).damage, "");
  EXPECT_THROW(Replayed({mixed.Bytes()}), Error);
  mixed.PayloadIs(format::Payload::kCommand);
  EXPECT_THROW(Replayed({mixed.Bytes()}), Error);
}

TEST(ReferenceReplay, RowsAreInsertedDeletedAndInsertedAgain) {
  LogBuilder log(kRun);
  log.Command(1, MiniWorkload::kInsert, MiniWorkload::Args(9, 90));
  log.Command(2, MiniWorkload::kDelete, MiniWorkload::Args(3, 0));
  log.Command(3, MiniWorkload::kDelete, MiniWorkload::Args(9, 0));
  log.Command(4, MiniWorkload::kInsert, MiniWorkload::Args(9, 91));
  const Replayed replayed({log.Bytes()});
  EXPECT_EQ(replayed.workload.ValueOf(9), 91u);
  EXPECT_EQ(replayed.workload.ValueOf(3), 0u);
  EXPECT_EQ(replayed.database->table(TableId(0)).row_count(), 4u);
}

TEST(ReferenceReplay, AProcedureThatEndsWithoutEffectLeavesNoneAndIsNamed) {
  LogBuilder log(kRun);
  log.Command(1, MiniWorkload::kInsertTwoAndGiveUp, MiniWorkload::Args(9, 90));
  log.Command(2, MiniWorkload::kDelete, MiniWorkload::Args(55, 0));
  const Replayed replayed({log.Bytes()});
  EXPECT_EQ(FirstDifference(*replayed.database, *MiniWorkload::Load()), std::nullopt);
  EXPECT_EQ(replayed.result.without_effect, (std::vector<TxnId>{TxnId{1}, TxnId{2}}));
}

TEST(ReferenceReplay, ImagesReplaceInsertAndDeleteRows) {
  LogBuilder log(kRun);
  log.PayloadIs(format::Payload::kData);
  log.Data(1, {Put(0, 1, "row one."), Put(0, 50, "new row."), Delete(0, 2), Delete(0, 60)})
      .Data(2, {Put(0, 1, "newest..")});
  const Replayed replayed({log.Bytes()});
  const uint64_t value = replayed.workload.ValueOf(1);
  EXPECT_EQ(std::memcmp(&value, "newest..", 8), 0);
  EXPECT_NE(replayed.workload.ValueOf(50), 0u);
  EXPECT_EQ(replayed.workload.ValueOf(2), 0u);
  EXPECT_EQ(replayed.database->table(TableId(0)).row_count(), 4u);
}

TEST(ReferenceReplay, RecordsThatDoNotFitTheDatabaseAreRefused) {
  for (const auto& writes : {BuiltWrite(Put(1, 0, "row one.")), BuiltWrite(Put(0, 0, "short"))}) {
    EXPECT_THROW(Replayed({LogBuilder(kRun).Data(1, {writes}).Bytes()}), Error);
  }
  EXPECT_THROW(Replayed({LogBuilder(kRun).Command(1, 4, MiniWorkload::Args(1, 1)).Bytes()}), Error);
  EXPECT_THROW(Replayed({LogBuilder(kRun).Command(1, 0, "short").Bytes()}), Error);
}

TEST(ReferenceReplay, ImagesThatAreCutOffAreRefused) {
  format::RecordHeader header{};
  header.salt = format::Salt(kRun, 0);
  header.kind = static_cast<uint8_t>(format::RecordKind::kData);
  format::WriteEntry entry{1, 0, static_cast<uint8_t>(format::WriteOp::kPut), 0, 8};
  const std::string body = std::string(8, '\0') + std::string(reinterpret_cast<const char*>(&entry), sizeof entry);
  for (const std::string& cut : {body, body.substr(0, 16), body + "12345678" + std::string(8, '\7')}) {
    EXPECT_THROW(Replayed({LogBuilder(kRun).Raw(header, cut).Bytes()}), Error) << cut.size();
  }
  EXPECT_NO_THROW(Replayed({LogBuilder(kRun).Raw(header, body + "12345678").Bytes()}));
}

TEST(ReferenceCheck, NamesTheFirstDifferenceOfTwoDatabases) {
  const auto left = MiniWorkload::Load(), right = MiniWorkload::Load();
  EXPECT_EQ(FirstDifference(*left, *right), std::nullopt);
  Table& table = right->table(TableId(0));
  ReferenceContext().Update(table, 1, [](auto& tuple) { tuple.SetAt(0, uint64_t{5}); });
  EXPECT_EQ(FirstDifference(*left, *right), "table MINI, key 1: the tuples differ");
  ReferenceContext().Delete(table, 1);
  EXPECT_EQ(FirstDifference(*left, *right), "table MINI, key 1: the row is in one database only");
  EXPECT_EQ(FirstDifference(*right, *left), "table MINI, key 1: the row is in one database only");
}

}  // namespace
}  // namespace dbx::reference
