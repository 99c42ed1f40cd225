// Claims about the SMS workload.
#include "benchmarks/sms/sms.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "tests/benchmarks/map_context.h"

namespace dbx {
namespace {

constexpr uint64_t kPerQueue = 20;
constexpr SmsConfig kSmall{.rows = kPerQueue * Sms::kQueues, .slot_bytes = 64, .abort_perc = 0};

struct LoadedSms {
  explicit LoadedSms(const SmsConfig& config = kSmall, uint64_t seed = 1, uint32_t threads = 1, bool ordered = false)
      : db({}, threads), sms(config) {
    if (ordered) db.OrderEveryTable();
    sms.CreateTables(db);
    sms.Load(db, seed, threads);
  }
  Table& table() { return db.table(TableId(0)); }
  // Runs the transaction of worker 3 with this sequence number.
  Outcome Run(MapContext& context, uint64_t sequence) {
    uint64_t args[] = {TxnId::Make(WorkerId(3), sequence).value};
    return context.Execute(sms, {Sms::kExchange, std::as_writable_bytes(std::span(args))});
  }
  // The ids in the queue of worker 3.
  std::set<uint32_t> Ids(MapContext& context) {
    std::set<uint32_t> ids;
    for (const auto& [key, tuple] : context.map(table())) {
      if (Sms::QueueOf(key) == 3) ids.insert(Sms::IdOf(key));
    }
    return ids;
  }
  Database db;
  Sms sms;
};

std::set<uint32_t> Range(uint32_t first, uint32_t end) {
  std::set<uint32_t> ids;
  for (uint32_t id = first; id < end; ++id) ids.insert(id);
  return ids;
}

TEST(SmsTest, LoadDependsNeitherOnTheThreadsNorOnTheSeed) {
  // More rows than one task of the load.
  SmsConfig config = kSmall;
  config.rows = 20'000;
  const uint64_t digest = MapContext(LoadedSms(config, 1, 1).db).Digest();
  EXPECT_EQ(digest, MapContext(LoadedSms(config, 1, 4).db).Digest());
  EXPECT_EQ(digest, MapContext(LoadedSms(config, 2, 1).db).Digest());
  EXPECT_EQ(digest, MapContext(LoadedSms(config, 1, 1, /*ordered=*/true).db).Digest());
}

TEST(SmsTest, RowsAreRoundedDownToQueuesOfTheSameLength) {
  SmsConfig config = kSmall;
  config.rows = kSmall.rows + Sms::kQueues - 1;
  LoadedSms loaded(config);
  EXPECT_EQ(loaded.table().row_count(), kSmall.rows);
  for (uint32_t queue = 0; queue < Sms::kQueues; ++queue) {
    EXPECT_NE(loaded.table().Find(Sms::KeyOf(queue, kPerQueue - 1)), nullptr);
    EXPECT_EQ(loaded.table().Find(Sms::KeyOf(queue, kPerQueue)), nullptr);
  }
}

TEST(SmsTest, AMessageBeginsWithItsIdAndIsLikeNoOther) {
  LoadedSms loaded;
  MapContext context(loaded.db);
  std::set<MapContext::Tuple> texts;
  for (const auto& [key, tuple] : context.map(loaded.table())) {
    uint32_t id;
    std::memcpy(&id, tuple.data(), sizeof id);
    EXPECT_EQ(id, Sms::IdOf(key));
    ASSERT_EQ(tuple.size(), kSmall.slot_bytes);
    texts.emplace(tuple.begin() + sizeof id, tuple.end());
  }
  EXPECT_EQ(texts.size(), kSmall.rows);
}

TEST(SmsTest, EvenSequencesInsertTwoMessagesAndOddOnesDeleteTwo) {
  LoadedSms loaded;
  MapContext context(loaded.db);
  EXPECT_EQ(loaded.Run(context, 0), Outcome::kOk);
  EXPECT_EQ(loaded.Ids(context), Range(0, 22));
  EXPECT_EQ(loaded.Run(context, 1), Outcome::kOk);
  EXPECT_EQ(loaded.Ids(context), Range(2, 22));
  for (uint64_t sequence = 2; sequence < 100; ++sequence) EXPECT_EQ(loaded.Run(context, sequence), Outcome::kOk);
  EXPECT_EQ(loaded.Ids(context), Range(100, 120));
  EXPECT_EQ(context.map(loaded.table()).size(), kSmall.rows);
}

TEST(SmsTest, ARunMayBeginAnywhere) {
  LoadedSms loaded;
  MapContext context(loaded.db);
  for (uint64_t sequence = 7; sequence < 10; ++sequence) EXPECT_EQ(loaded.Run(context, sequence), Outcome::kOk);
  std::set<uint32_t> expected = Range(0, 20);
  for (const uint32_t id : {6, 7, 8, 9}) expected.erase(id);
  for (const uint32_t id : {28, 29}) expected.insert(id);
  EXPECT_EQ(loaded.Ids(context), expected);
}

TEST(SmsTest, MissingMessagesAndExistingOnesArePassedOver) {
  LoadedSms loaded;
  MapContext context(loaded.db);
  context.Delete(loaded.table(), Sms::KeyOf(3, 0));
  EXPECT_EQ(loaded.Run(context, 1), Outcome::kOk);
  EXPECT_EQ(loaded.Ids(context), Range(2, 20));
  for (int times = 0; times < 2; ++times) EXPECT_EQ(loaded.Run(context, 2), Outcome::kOk);
  std::set<uint32_t> expected = Range(2, 20);
  for (const uint32_t id : {22, 23}) expected.insert(id);
  EXPECT_EQ(loaded.Ids(context), expected);
}

TEST(SmsTest, IdsWrapAroundWithinTheirQueue) {
  const Sms sms(kSmall);
  const auto keys = [&](uint64_t sequence) { return sms.ExchangeOf(TxnId::Make(WorkerId(63), sequence)).keys; };
  constexpr uint64_t kIds = uint64_t{1} << 32;
  EXPECT_EQ(keys(kIds - 20), (std::array<Key, 2>{Sms::KeyOf(63, 0), Sms::KeyOf(63, 1)}));
  EXPECT_EQ(keys(kIds - 1), (std::array<Key, 2>{Sms::KeyOf(63, kIds - 2), Sms::KeyOf(63, kIds - 1)}));
  EXPECT_EQ(keys(kIds + 1), (std::array<Key, 2>{Sms::KeyOf(63, 0), Sms::KeyOf(63, 1)}));
}

TEST(SmsTest, WithAnOddNumberOfMessagesTheLastIdWrapsAlone) {
  const Sms sms({.rows = 21 * Sms::kQueues});
  const Sms::Exchange exchange = sms.ExchangeOf(TxnId::Make(WorkerId(1), (uint64_t{1} << 32) - 22));
  EXPECT_TRUE(exchange.inserts);
  EXPECT_EQ(exchange.keys, (std::array<Key, 2>{Sms::KeyOf(1, 0xffffffff), Sms::KeyOf(1, 0)}));
}

TEST(SmsTest, AsManyTransactionsRollBackAsAsked) {
  for (const uint32_t percent : {0u, 2u, 20u, 100u}) {
    SmsConfig config = kSmall;
    config.abort_perc = percent;
    const Sms sms(config);
    uint32_t inserts = 0, deletes = 0;
    for (uint64_t sequence = 0; sequence < 20'000; ++sequence) {
      (sequence % 2 == 0 ? inserts : deletes) += sms.RollsBack(TxnId::Make(WorkerId(5), sequence));
    }
    EXPECT_NEAR(inserts, 100.0 * percent, 100) << percent;
    EXPECT_NEAR(deletes, 100.0 * percent, 100) << percent;
  }
}

// Counts changes and keeps none.
struct CountingContext : ArchetypeContext {
  Outcome Insert(Table&, Key, std::span<const std::byte>) { return ++inserts, Outcome::kOk; }
  Outcome Delete(Table&, Key) { return ++deletes, Outcome::kOk; }
  int inserts = 0, deletes = 0;
};

TEST(SmsTest, ATransactionRollsBackAfterBothChanges) {
  LoadedSms loaded({.rows = kSmall.rows, .slot_bytes = 64, .abort_perc = 100});
  CountingContext context;
  for (const uint64_t sequence : {0, 1}) {
    const uint64_t args[] = {sequence};
    EXPECT_EQ(loaded.sms.Run(context, Sms::kExchange, std::as_bytes(std::span(args))), Outcome::kRollback);
  }
  EXPECT_EQ(context.inserts, 2);
  EXPECT_EQ(context.deletes, 2);
}

struct ConflictingContext : CountingContext {
  Outcome Insert(Table& table, Key key, std::span<const std::byte> tuple) {
    CountingContext::Insert(table, key, tuple);
    return Outcome::kConflict;
  }
};

TEST(SmsTest, AConflictIsHandedOnAtOnce) {
  LoadedSms loaded;
  ConflictingContext context;
  const uint64_t args[] = {0};
  EXPECT_EQ(loaded.sms.Run(context, Sms::kExchange, std::as_bytes(std::span(args))), Outcome::kConflict);
  EXPECT_EQ(context.inserts, 1);
}

TEST(SmsTest, GeneratedCallsAreValidAndStayConsistent) {
  LoadedSms loaded({.rows = kSmall.rows, .slot_bytes = 2048, .abort_perc = 20});
  MapContext context(loaded.db);
  const CallList list = loaded.sms.Generate(WorkerId(63), 1000, 3);
  EXPECT_EQ(list.storage, loaded.sms.Generate(WorkerId(63), 1000, 4).storage);
  uint64_t rollbacks = 0;
  for (const Call& call : list.calls) {
    ASSERT_TRUE(loaded.sms.ValidArgs(call.procedure, call.args));
    loaded.sms.PrefetchBuckets(call);
    loaded.sms.PrefetchRows(call, rollbacks % 2 == 0 ? WrittenRows::kWhole : WrittenRows::kTouched);
    rollbacks += context.Execute(loaded.sms, call) == Outcome::kRollback;
  }
  EXPECT_NEAR(static_cast<double>(rollbacks), 200, 60);
  context.CopyTo(loaded.db);
  EXPECT_EQ(loaded.sms.Inconsistency(loaded.db), std::nullopt);
}

TEST(SmsTest, OtherArgumentsThanTheIdOfAWorkerWithAQueueAreInvalid) {
  const Sms sms(kSmall);
  const auto valid = [&](ProcedureId procedure, uint32_t worker, size_t bytes) {
    const uint64_t args[] = {TxnId::Make(WorkerId(worker), 5).value, 0};
    return sms.ValidArgs(procedure, std::as_bytes(std::span(args)).first(bytes));
  };
  EXPECT_TRUE(valid(Sms::kExchange, 63, 8));
  EXPECT_FALSE(valid(Sms::kExchange, 64, 8));
  EXPECT_FALSE(valid(Sms::kExchange, 63, 7));
  EXPECT_FALSE(valid(Sms::kExchange, 63, 16));
  EXPECT_FALSE(valid(Sms::kExchange, 63, 0));
  EXPECT_FALSE(valid(ProcedureId(1), 63, 8));
}

TEST(SmsTest, AWrongByteOfAnyColumnIsReported) {
  for (const size_t at : {0, 4, 15, 16, 63}) {
    LoadedSms loaded;
    EXPECT_EQ(loaded.sms.Inconsistency(loaded.db), std::nullopt);
    loaded.table().tuple(loaded.table().Find(Sms::KeyOf(5, 7)))[at] ^= std::byte{1};
    EXPECT_EQ(loaded.sms.Inconsistency(loaded.db), "MESSAGES queue 5, id 7: bytes that no transaction writes") << at;
  }
}

TEST(SmsTest, AMessageOfNoQueueIsReported) {
  LoadedSms loaded;
  MapContext context(loaded.db);
  context.Insert(loaded.table(), Sms::KeyOf(64, 7), MapContext::Tuple(64));
  context.CopyTo(loaded.db);
  EXPECT_NE(loaded.sms.Inconsistency(loaded.db), std::nullopt);
}

TEST(SmsTest, ConfigurationsOutOfRangeAreRefused) {
  EXPECT_THROW(Sms({.rows = 63}), Error);
  EXPECT_THROW(Sms({.rows = Sms::kRowsMax + 1}), Error);
  for (const uint32_t bytes : {56u, 100u, 2056u}) EXPECT_THROW(Sms({.slot_bytes = bytes}), Error) << bytes;
  EXPECT_THROW(Sms({.abort_perc = 101}), Error);
  EXPECT_NO_THROW(Sms({.rows = 64, .slot_bytes = 2048, .abort_perc = 100, .workers = 64}));
  EXPECT_THROW(Sms({.workers = 65}), Error);
}

}  // namespace
}  // namespace dbx
