// Claims about the SYSBENCH workload.
#include "benchmarks/sysbench/sysbench.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "tests/benchmarks/map_context.h"

namespace dbx {
namespace {

using Kind = Sysbench::QueryKind;
constexpr SysbenchConfig kSmall{.masters = 2, .workers_per_master = 3, .tables = 2, .rows = 200, .sharing_perc = 30};

struct LoadedSysbench {
  explicit LoadedSysbench(const SysbenchConfig& config = kSmall, uint64_t seed = 1, uint32_t threads = 1)
      : db({}, threads), sysbench(config) {
    sysbench.CreateTables(db);
    sysbench.Load(db, seed, threads);
  }
  Table& rows(uint32_t table) { return db.table(TableId(static_cast<uint16_t>(2 * table))); }
  Table& index(uint32_t table) { return db.table(TableId(static_cast<uint16_t>(2 * table + 1))); }
  Sysbench::Row RowOf(MapContext& context, uint32_t table, Key id) {
    Sysbench::Row row;
    std::memcpy(&row, context.map(rows(table)).at(id).data(), sizeof row);
    return row;
  }
  Outcome Run(MapContext& context, std::vector<uint64_t> words) {
    words.insert(words.begin(), TxnId::Make(WorkerId(1), 77).value);
    return context.Execute(sysbench, {Sysbench::kWriteOnly, std::as_writable_bytes(std::span(words))});
  }
  Database db;
  Sysbench sysbench;
};

std::vector<Sysbench::Query> QueriesOf(const Call& call) {
  std::vector<Sysbench::Query> queries;
  for (size_t at = sizeof(TxnId); at < call.args.size(); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, call.args.data() + at, sizeof word);
    queries.push_back(Sysbench::Query::From(word));
  }
  return queries;
}

TEST(SysbenchTest, LoadDependsOnTheSeedAndNotOnTheThreads) {
  SysbenchConfig config = kSmall;
  config.rows = 10'000;
  const uint64_t digest = MapContext(LoadedSysbench(config, 1, 1).db).Digest();
  EXPECT_EQ(digest, MapContext(LoadedSysbench(config, 1, 4).db).Digest());
  EXPECT_NE(digest, MapContext(LoadedSysbench(config, 2, 1).db).Digest());
}

TEST(SysbenchTest, AGroupForEachMasterAndOneThatIsShared) {
  LoadedSysbench loaded;
  EXPECT_EQ(loaded.sysbench.table_count(), 6u);
  EXPECT_EQ(loaded.sysbench.shared_from(), 4u);
  EXPECT_EQ(loaded.db.table_count(), 12u);
}

TEST(SysbenchTest, AsManyQueriesAreSharedAsAsked) {
  for (const uint32_t percent : {0u, 10u, 30u, 100u}) {
    SysbenchConfig config = kSmall;
    config.sharing_perc = percent;
    const Sysbench sysbench(config);
    uint32_t shared = 0, all = 0;
    for (const Call& call : sysbench.Generate(WorkerId(4), 1000, 5).calls) {
      for (const Sysbench::Query& query : QueriesOf(call)) {
        ++all;
        shared += query.table >= sysbench.shared_from();
        if (query.table < sysbench.shared_from()) {
          EXPECT_TRUE(query.table == 2 || query.table == 3) << "a table of another master's group";
        }
      }
    }
    EXPECT_NEAR(100.0 * shared / all, percent, 2);
  }
}

TEST(SysbenchTest, TheMixesHaveTheOriginalsQueries) {
  SysbenchConfig config = kSmall;
  std::map<Kind, uint32_t> kinds;
  const Sysbench reading(config);
  const CallList mixed = reading.Generate(WorkerId(0), 1, 1);
  for (const Sysbench::Query& query : QueriesOf(mixed.calls[0])) ++kinds[query.kind];
  EXPECT_EQ(
      kinds,
      (std::map<Kind, uint32_t>{
          {Kind::kPoint, 10}, {Kind::kRange, 4}, {Kind::kIndexUpdate, 1}, {Kind::kUpdate, 1}, {Kind::kReplace, 1}}));
  config.mix = SysbenchMix::kWriteOnly;
  const Sysbench writing(config);
  const CallList writes = writing.Generate(WorkerId(0), 1, 1);
  EXPECT_EQ(QueriesOf(writes.calls[0]).size(), 3u);
  EXPECT_EQ(writes.calls[0].procedure, Sysbench::kWriteOnly);
}

TEST(SysbenchTest, AnUpdateOfKMovesItsEntryInTheIndex) {
  LoadedSysbench loaded;
  MapContext context(loaded.db);
  const uint64_t before = loaded.RowOf(context, 1, 7).k;
  EXPECT_EQ(loaded.Run(context, {Sysbench::Query{Kind::kIndexUpdate, 1, 7}.word()}), Outcome::kOk);
  const uint64_t after = (before + 1) % kSmall.rows;
  EXPECT_EQ(loaded.RowOf(context, 1, 7).k, after);
  EXPECT_FALSE(context.map(loaded.index(1)).contains(Sysbench::IndexKey(before, 7)));
  EXPECT_TRUE(context.map(loaded.index(1)).contains(Sysbench::IndexKey(after, 7)));
}

TEST(SysbenchTest, UpdatesDoNotCommute) {
  LoadedSysbench loaded;
  MapContext one(loaded.db), other(loaded.db);
  const uint64_t update = Sysbench::Query{Kind::kUpdate, 0, 3}.word();
  const uint64_t replace = Sysbench::Query{Kind::kReplace, 0, 3}.word();
  EXPECT_EQ(loaded.Run(one, {update, replace}), Outcome::kOk);
  EXPECT_EQ(loaded.Run(other, {replace, update}), Outcome::kOk);
  EXPECT_NE(one.Digest(), other.Digest());
}

TEST(SysbenchTest, GeneratedCallsAreValidAndLeaveAConsistentDatabase) {
  LoadedSysbench loaded;
  MapContext context(loaded.db);
  const uint64_t before = context.Digest();
  CallList list = loaded.sysbench.Generate(WorkerId(2), 500, 3);
  uint64_t sequence = 0;
  for (Call& call : list.calls) {
    call.set_txn_id(TxnId::Make(WorkerId(2), sequence++));
    ASSERT_TRUE(loaded.sysbench.ValidArgs(call.procedure, call.args));
    EXPECT_EQ(context.Execute(loaded.sysbench, call), Outcome::kOk);
  }
  EXPECT_NE(context.Digest(), before);
  context.CopyTo(loaded.db);
  EXPECT_EQ(loaded.sysbench.Inconsistency(loaded.db), std::nullopt);
}

TEST(SysbenchTest, ArgumentsBeyondTheTablesAreInvalid) {
  const Sysbench sysbench(kSmall);
  const auto valid = [&](Sysbench::Query query, size_t words = 4) {
    const Sysbench::Query fine{Kind::kUpdate, 0, 0};
    const uint64_t args[] = {0, query.word(), fine.word(), fine.word(), fine.word()};
    return sysbench.ValidArgs(Sysbench::kWriteOnly, std::as_bytes(std::span(args)).first(words * 8));
  };
  EXPECT_TRUE(valid({Kind::kReplace, 5, 199}));
  EXPECT_FALSE(valid({Kind::kReplace, 6, 199}));
  EXPECT_FALSE(valid({Kind::kReplace, 5, 200}));
  EXPECT_FALSE(valid({Kind(5), 5, 199}));
  EXPECT_FALSE(valid({Kind::kReplace, 5, 199}, 5));
  EXPECT_FALSE(valid({Kind::kReplace, 5, 199}, 3));
}

TEST(SysbenchTest, AWrongByteOfAnyColumnIsReported) {
  for (const size_t at : {0, 8, 20, 127, 128, 187}) {
    LoadedSysbench loaded;
    loaded.rows(3).tuple(loaded.rows(3).Find(9))[at] ^= std::byte{1};
    EXPECT_NE(loaded.sysbench.Inconsistency(loaded.db), std::nullopt) << at;
  }
}

TEST(SysbenchTest, AnEntryThatNoRowHasIsReported) {
  LoadedSysbench loaded;
  MapContext context(loaded.db);
  const uint64_t k = 3;
  context.Insert(loaded.index(0), Sysbench::IndexKey(k, 201), std::as_bytes(std::span(&k, 1)));
  context.CopyTo(loaded.db);
  EXPECT_NE(loaded.sysbench.Inconsistency(loaded.db), std::nullopt);
}

TEST(SysbenchTest, ConfigurationsOutOfRangeAreRefused) {
  EXPECT_THROW(Sysbench({.masters = 0}), Error);
  EXPECT_THROW(Sysbench({.masters = 17}), Error);
  EXPECT_THROW(Sysbench({.tables = 257}), Error);
  EXPECT_THROW(Sysbench({.rows = 99}), Error);
  EXPECT_THROW(Sysbench({.sharing_perc = 101}), Error);
  EXPECT_NO_THROW(Sysbench({.masters = 16, .tables = 256, .rows = 100, .sharing_perc = 100}));
}

}  // namespace
}  // namespace dbx
