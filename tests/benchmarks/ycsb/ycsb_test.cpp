// Claims about the YCSB workload.
#include "benchmarks/ycsb/ycsb.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "tests/benchmarks/map_context.h"

namespace dbx {
namespace {

constexpr YcsbConfig kSmall{.rows = 1000, .theta = 0.9, .read_perc = 0.5, .req_per_query = 4, .field_per_tuple = 10};

struct LoadedYcsb {
  explicit LoadedYcsb(const YcsbConfig& config = kSmall, uint64_t seed = 1, uint32_t threads = 1)
      : db({}, threads), ycsb(config) {
    ycsb.CreateTables(db);
    ycsb.Load(db, seed, threads);
  }
  Table& table() { return db.table(TableId(0)); }
  Database db;
  Ycsb ycsb;
};

// The access words of a call, behind its transaction id.
std::vector<uint64_t> Accesses(const Call& call) {
  std::vector<uint64_t> words(call.args.size() / 8 - 1);
  std::memcpy(words.data(), call.args.data() + 8, call.args.size() - 8);
  return words;
}

TEST(YcsbTest, LoadDependsOnTheSeedAndNotOnTheThreads) {
  const uint64_t digest = MapContext(LoadedYcsb(kSmall, 1, 1).db).Digest();
  EXPECT_EQ(digest, MapContext(LoadedYcsb(kSmall, 1, 2).db).Digest());
  EXPECT_NE(digest, MapContext(LoadedYcsb(kSmall, 2, 1).db).Digest());
}

TEST(YcsbTest, GenerateIsDeterministicInWorkerAndSeed) {
  const Ycsb ycsb(kSmall);
  const CallList list = ycsb.Generate(WorkerId(3), 100, 7);
  EXPECT_EQ(list.storage, ycsb.Generate(WorkerId(3), 100, 7).storage);
  EXPECT_NE(list.storage, ycsb.Generate(WorkerId(4), 100, 7).storage);
  EXPECT_NE(list.storage, ycsb.Generate(WorkerId(3), 100, 8).storage);
}

TEST(YcsbTest, AccessesHaveTheirSharesAndScansChangeNoOther) {
  YcsbConfig config = kSmall;
  config.scan_perc = 0.3;
  std::map<uint64_t, int> accesses;
  const CallList with = Ycsb(config).Generate(WorkerId(0), 5000, 1),
                 without = Ycsb(kSmall).Generate(WorkerId(0), 5000, 1);
  for (size_t i = 0; i < with.calls.size(); ++i) {
    for (const uint64_t word : Accesses(with.calls[i])) ++accesses[word & Ycsb::kFlags];
    for (size_t n = 0; n < config.req_per_query; ++n) {
      ASSERT_EQ(Accesses(with.calls[i])[n] & ~Ycsb::kFlags, Accesses(without.calls[i])[n] & ~Ycsb::kFlags);
    }
  }
  EXPECT_NEAR(accesses[0], 10'000, 500);
  EXPECT_NEAR(accesses[Ycsb::kWriteFlag], 4000, 300);
  EXPECT_NEAR(accesses[Ycsb::kScanFlag], 6000, 300);
}

// What a scan came to, as the context tells it.
struct ScanRecorder : ArchetypeContext {
  Outcome Scan(Table&, Key low, Key high, ScanOrder, auto&&) {
    ranges.emplace_back(low, high);
    return Outcome::kOk;
  }
  std::vector<std::pair<Key, Key>> ranges;
};

TEST(YcsbTest, WritesGoToTheirShareOfTheRowsAndReadsToAll) {
  YcsbConfig config = kSmall;
  config.write_keys = 0.01;
  const uint64_t written = 10;
  const CallList list = Ycsb(config).Generate(WorkerId(0), 3000, 1);
  std::set<Key> writes, reads;
  for (const Call& call : list.calls) {
    std::set<Key> keys;
    for (const uint64_t word : Accesses(call)) {
      keys.insert(word & ~Ycsb::kFlags);
      ((word & Ycsb::kWriteFlag) != 0 ? writes : reads).insert(word & ~Ycsb::kFlags);
    }
    EXPECT_EQ(keys.size(), config.req_per_query);
  }
  EXPECT_EQ(writes.size(), written);
  EXPECT_EQ(*writes.rbegin(), written - 1);
  EXPECT_GT(reads.size(), 40 * written);
}

TEST(YcsbTest, AScanReadsItsRowsAndNoneBeyondTheTable) {
  Database db({}, 1);
  db.OrderEveryTable();
  Ycsb ycsb({.rows = 100, .scan_len = 20, .req_per_query = 2});
  ycsb.CreateTables(db);
  const uint64_t args[] = {1, 5 | Ycsb::kScanFlag, 90 | Ycsb::kScanFlag};
  ScanRecorder context;
  ASSERT_TRUE(ycsb.ValidArgs(Ycsb::kAccess, std::as_bytes(std::span(args))));
  EXPECT_EQ(ycsb.Run(context, Ycsb::kAccess, std::as_bytes(std::span(args))), Outcome::kOk);
  EXPECT_EQ(context.ranges, (std::vector<std::pair<Key, Key>>{{5, 24}, {90, 99}}));
}

TEST(YcsbTest, AScanOfATableWithoutOrderIsRefused) {
  const LoadedYcsb loaded({.rows = 100, .req_per_query = 1});
  const uint64_t args[] = {1, 5 | Ycsb::kScanFlag}, both[] = {1, 5 | Ycsb::kFlags};
  EXPECT_FALSE(loaded.ycsb.ValidArgs(Ycsb::kAccess, std::as_bytes(std::span(args))));
  EXPECT_FALSE(loaded.ycsb.ValidArgs(Ycsb::kAccess, std::as_bytes(std::span(both))));
  EXPECT_THROW(Ycsb({.read_perc = 0.5, .scan_perc = 0.6}), Error);
  EXPECT_THROW(Ycsb({.scan_len = 0}), Error);
}

TEST(YcsbTest, KeysOfATransactionAreDistinctEvenWhereTheyMustAllBeTaken) {
  for (YcsbConfig config : {kSmall, YcsbConfig{.rows = 16, .theta = 1.6, .req_per_query = 16}}) {
    const CallList list = Ycsb(config).Generate(WorkerId(0), 200, 1);
    for (const Call& call : list.calls) {
      std::set<uint64_t> keys;
      for (uint64_t word : Accesses(call)) keys.insert(word & ~Ycsb::kWriteFlag);
      ASSERT_EQ(keys.size(), config.req_per_query);
      ASSERT_LT(*keys.rbegin(), config.rows);
    }
  }
}

TEST(YcsbTest, ReadsAreAsFrequentAsAsked) {
  YcsbConfig config = kSmall;
  config.read_perc = 0.9;
  const CallList list = Ycsb(config).Generate(WorkerId(0), 10'000, 1);
  int writes = 0;
  for (const Call& call : list.calls) {
    for (uint64_t word : Accesses(call)) writes += (word & Ycsb::kWriteFlag) != 0;
  }
  EXPECT_NEAR(writes / 40'000.0, 0.1, 0.01);
}

TEST(YcsbTest, HotKeysAreHotForEveryWorkerAndScattered) {
  const Ycsb ycsb({.rows = 1'000'000, .theta = 0.99, .req_per_query = 1});
  std::set<uint64_t> hottest;
  for (uint32_t worker = 0; worker < 3; ++worker) {
    std::map<uint64_t, int> count;
    const CallList list = ycsb.Generate(WorkerId(worker), 20'000, 5);
    for (const Call& call : list.calls) ++count[Accesses(call)[0] & ~Ycsb::kWriteFlag];
    hottest.insert(
        std::max_element(count.begin(), count.end(), [](auto& a, auto& b) { return a.second < b.second; })->first);
  }
  EXPECT_EQ(hottest.size(), 1u);
  EXPECT_NE(*hottest.begin(), 0u);
}

TEST(YcsbTest, WritesChangeTheHeadOfEachFieldAndNothingElse) {
  LoadedYcsb loaded;
  MapContext context(loaded.db);
  const MapContext::Tuple before = context.map(loaded.table()).at(5);
  uint64_t args[] = {TxnId::Make(WorkerId(1), 9).value, 5 | Ycsb::kWriteFlag, 6, 7, 8};
  ASSERT_EQ(context.Execute(loaded.ycsb, {Ycsb::kAccess, std::as_writable_bytes(std::span(args))}), Outcome::kOk);
  const MapContext::Tuple& after = context.map(loaded.table()).at(5);
  for (size_t at = 0; at < after.size(); at += Ycsb::kFieldBytes) {
    EXPECT_NE(std::memcmp(&before[at], &after[at], 8), 0);
    EXPECT_EQ(std::memcmp(&before[at + 8], &after[at + 8], Ycsb::kFieldBytes - 8), 0);
  }
}

TEST(YcsbTest, WritesOfTwoTransactionsDoNotCommute) {
  LoadedYcsb loaded;
  uint64_t first[] = {1, 5 | Ycsb::kWriteFlag, 6, 7, 8}, second[] = {2, 5 | Ycsb::kWriteFlag, 6, 7, 8};
  const Call calls[] = {{Ycsb::kAccess, std::as_writable_bytes(std::span(first))},
                        {Ycsb::kAccess, std::as_writable_bytes(std::span(second))}};
  MapContext forwards(loaded.db), backwards(loaded.db);
  for (int i : {0, 1}) forwards.Execute(loaded.ycsb, calls[i]);
  for (int i : {1, 0}) backwards.Execute(loaded.ycsb, calls[i]);
  EXPECT_NE(forwards.Digest(), backwards.Digest());
}

TEST(YcsbTest, ArgumentsOutOfRangeAreInvalid) {
  const Ycsb ycsb(kSmall);
  uint64_t args[] = {1, 2, 3, 4 | Ycsb::kWriteFlag, 999, 5};
  const auto bytes = std::as_bytes(std::span(args));
  EXPECT_TRUE(ycsb.ValidArgs(Ycsb::kAccess, bytes.first(40)));
  EXPECT_FALSE(ycsb.ValidArgs(Ycsb::kAccess, bytes.first(32)));
  EXPECT_FALSE(ycsb.ValidArgs(Ycsb::kAccess, bytes.first(48)));
  EXPECT_FALSE(ycsb.ValidArgs(Ycsb::kAccess, bytes.first(39)));
  EXPECT_FALSE(ycsb.ValidArgs(Ycsb::kAccess, {}));
  EXPECT_FALSE(ycsb.ValidArgs(ProcedureId(1), bytes.first(40)));
  args[4] = 1000 | Ycsb::kWriteFlag;
  EXPECT_FALSE(ycsb.ValidArgs(Ycsb::kAccess, bytes.first(40)));
}

TEST(YcsbTest, GeneratedCallsAreValidAndStayConsistent) {
  LoadedYcsb loaded;
  MapContext context(loaded.db);
  CallList list = loaded.ycsb.Generate(WorkerId(0), 1000, 3);
  for (size_t i = 0; i < list.calls.size(); ++i) {
    list.calls[i].set_txn_id(TxnId::Make(WorkerId(0), i));
    ASSERT_TRUE(loaded.ycsb.ValidArgs(list.calls[i].procedure, list.calls[i].args));
    loaded.ycsb.PrefetchBuckets(list.calls[i]);
    loaded.ycsb.PrefetchRows(list.calls[i], i % 2 == 0 ? WrittenRows::kWhole : WrittenRows::kTouched);
    ASSERT_EQ(context.Execute(loaded.ycsb, list.calls[i]), Outcome::kOk);
  }
  context.CopyTo(loaded.db);
  EXPECT_EQ(loaded.ycsb.Inconsistency(loaded.db), std::nullopt);
}

TEST(YcsbTest, DamageToUntouchedBytesIsReported) {
  LoadedYcsb loaded;
  loaded.table().tuple(loaded.table().Find(77))[99] ^= std::byte{1};
  EXPECT_NE(loaded.ycsb.Inconsistency(loaded.db), std::nullopt);
}

TEST(YcsbTest, AMissingRowIsReported) {
  LoadedYcsb loaded;
  loaded.table().Find(77)->control.fetch_or(Row::kAbsent);
  EXPECT_NE(loaded.ycsb.Inconsistency(loaded.db), std::nullopt);
}

TEST(YcsbTest, ContradictoryConfigurationsAreRefused) {
  EXPECT_THROW(Ycsb({.rows = 0}), Error);
  EXPECT_THROW(Ycsb({.rows = 3, .req_per_query = 4}), Error);
  EXPECT_THROW(Ycsb({.read_perc = 1.5}), Error);
  EXPECT_THROW(Ycsb({.theta = -0.1}), Error);
  EXPECT_THROW(Ycsb({.write_keys = 1.5}), Error);
  EXPECT_THROW(Ycsb({.rows = 100, .write_keys = 0.01, .req_per_query = 2}), Error);
  EXPECT_THROW(Ycsb({.field_per_tuple = 0}), Error);
}

}  // namespace
}  // namespace dbx
