// Claims about the TEST workload.
#include "benchmarks/test/test.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "base/error.h"
#include "tests/benchmarks/map_context.h"

namespace dbx {
namespace {

using namespace test;

struct LoadedTest {
  explicit LoadedTest(const TestConfig& config = {}, uint64_t seed = 1, uint32_t threads = 1)
      : db({}, threads), workload(config) {
    workload.CreateTables(db);
    workload.Load(db, seed, threads);
  }
  // Runs the calls of two workers in turn and returns how often each outcome came up.
  std::map<Outcome, int> RunSerially(MapContext& context, uint64_t calls_per_worker) {
    std::map<Outcome, int> outcomes;
    CallList lists[] = {workload.Generate(WorkerId(0), calls_per_worker, 5),
                        workload.Generate(WorkerId(1), calls_per_worker, 5)};
    for (uint64_t i = 0; i < calls_per_worker; ++i) {
      for (uint32_t worker : {0, 1}) {
        Call& call = lists[worker].calls[i];
        call.set_txn_id(TxnId::Make(WorkerId(worker), i + 1));
        EXPECT_TRUE(workload.ValidArgs(call.procedure, call.args));
        ++outcomes[context.Execute(workload, call)];
      }
    }
    return outcomes;
  }
  std::optional<std::string> InconsistencyOf(const MapContext& context) {
    context.CopyTo(db);
    return workload.Inconsistency(db);
  }
  Database db;
  TestWorkload workload;
};

template <class S>
S RowOf(MapContext& context, const Table& table, Key key) {
  S tuple;
  std::memcpy(&tuple, context.map(table).at(key).data(), sizeof tuple);
  return tuple;
}
template <class S, class Change>
void ChangeRow(MapContext& context, const Table& table, Key key, Change change) {
  S tuple = RowOf<S>(context, table, key);
  change(tuple);
  std::memcpy(context.map(table).at(key).data(), &tuple, sizeof tuple);
}

Outcome RunProgram(LoadedTest& loaded, MapContext& context, uint64_t id, std::vector<uint64_t> words) {
  words.insert(words.begin(), id);
  const auto bytes = std::as_writable_bytes(std::span(words));
  EXPECT_TRUE(loaded.workload.ValidArgs(kProgram, bytes));
  return context.Execute(loaded.workload, {kProgram, bytes});
}
constexpr uint64_t Slot(Key key) { return MakeObject(Place::kSlot, key); }
constexpr uint64_t Shelf(Key key) { return MakeObject(Place::kShelf, key); }
constexpr uint64_t Counter(Key key) { return MakeObject(Place::kCounter, key); }

TEST(TestWorkloadTest, LoadDependsOnTheSeedAndNotOnTheThreads) {
  const uint64_t digest = MapContext(LoadedTest({}, 1, 1).db).Digest();
  EXPECT_EQ(digest, MapContext(LoadedTest({}, 1, 2).db).Digest());
  EXPECT_NE(digest, MapContext(LoadedTest({}, 2, 1).db).Digest());
}

TEST(TestWorkloadTest, GenerateIsDeterministicInWorkerAndSeed) {
  const TestWorkload workload({});
  const CallList list = workload.Generate(WorkerId(2), 500, 7);
  EXPECT_EQ(list.storage, workload.Generate(WorkerId(2), 500, 7).storage);
  EXPECT_NE(list.storage, workload.Generate(WorkerId(3), 500, 7).storage);
  EXPECT_NE(list.storage, workload.Generate(WorkerId(2), 500, 8).storage);
}

TEST(TestWorkloadTest, SerialRunsAreConsistent) {
  for (TestConfig config : {TestConfig{}, TestConfig{.conflict = false}, TestConfig{.read_write = false}}) {
    LoadedTest loaded(config);
    EXPECT_EQ(loaded.workload.Inconsistency(loaded.db), std::nullopt);
    MapContext context(loaded.db);
    const std::map<Outcome, int> outcomes = loaded.RunSerially(context, 1000);
    EXPECT_EQ(loaded.InconsistencyOf(context), std::nullopt);
    EXPECT_GT(outcomes.at(Outcome::kOk), 1600);
    EXPECT_GT(outcomes.at(Outcome::kRollback), 10);
    EXPECT_EQ(outcomes.size(), 2u);
  }
}

TEST(TestWorkloadTest, EveryKindOfAccessComesUp) {
  LoadedTest loaded;
  MapContext context(loaded.db);
  loaded.RunSerially(context, 1000);
  std::map<int, int> kinds;
  for (const auto& [key, tuple] : context.map(loaded.workload.history_table())) {
    const auto row = RowOf<HistoryRow>(context, loaded.workload.history_table(), key);
    for (uint32_t i = 0; i < row.access_count; ++i) ++kinds[int(row.accesses[i].kind_and_object >> kOperationShift)];
  }
  EXPECT_EQ(kinds.size(), 5u);
  for (const auto& [kind, count] : kinds) EXPECT_GT(count, 100) << "kind " << kind;
}

TEST(TestWorkloadTest, TransactionsDoNotCommute) {
  LoadedTest loaded;
  MapContext forwards(loaded.db), backwards(loaded.db);
  const std::vector<uint64_t> write = {MakeOperation(Operation::kWrite, Counter(0))};
  for (uint64_t id : {1, 2}) RunProgram(loaded, forwards, id, write);
  for (uint64_t id : {2, 1}) RunProgram(loaded, backwards, id, write);
  EXPECT_NE(RowOf<TestRow>(forwards, loaded.workload.table(Place::kCounter), 0).chain,
            RowOf<TestRow>(backwards, loaded.workload.table(Place::kCounter), 0).chain);
}

TEST(TestWorkloadTest, WhatWasReadFlowsIntoWhatIsWritten) {
  LoadedTest loaded;
  MapContext context(loaded.db), other(loaded.db);
  RunProgram(loaded, other, 1, {MakeOperation(Operation::kToggle, Slot(0))});
  const std::vector<uint64_t> words = {MakeOperation(Operation::kRead, Slot(0)),
                                       MakeOperation(Operation::kWrite, Counter(0))};
  RunProgram(loaded, context, 2, words);
  RunProgram(loaded, other, 2, words);
  EXPECT_NE(RowOf<TestRow>(context, loaded.workload.table(Place::kCounter), 0).chain,
            RowOf<TestRow>(other, loaded.workload.table(Place::kCounter), 0).chain);
}

TEST(TestWorkloadTest, RowsComeAndGo) {
  LoadedTest loaded;
  MapContext context(loaded.db);
  auto& slots = context.map(loaded.workload.table(Place::kSlot));
  uint64_t id = 0;
  const auto run = [&](Operation operation, Key slot) {
    EXPECT_EQ(RunProgram(loaded, context, ++id, {MakeOperation(operation, Slot(slot))}), Outcome::kOk);
    return slots.contains(slot);
  };
  EXPECT_TRUE(run(Operation::kInsert, 1));
  EXPECT_TRUE(run(Operation::kInsert, 1));
  EXPECT_FALSE(run(Operation::kToggle, 1));
  EXPECT_FALSE(run(Operation::kDelete, 1));
  EXPECT_FALSE(run(Operation::kWrite, 1));
  EXPECT_FALSE(run(Operation::kReadWrite, 1));
  EXPECT_TRUE(run(Operation::kToggle, 1));
  EXPECT_TRUE(run(Operation::kReadWrite, 1));
  EXPECT_FALSE(run(Operation::kDelete, 1));
  EXPECT_EQ(loaded.InconsistencyOf(context), std::nullopt);
}

TEST(TestWorkloadTest, AProgramThatGivesUpLeavesNoTrace) {
  LoadedTest loaded;
  MapContext context(loaded.db);
  const uint64_t before = context.Digest();
  const std::vector<uint64_t> words = {
      MakeOperation(Operation::kInsert, Slot(1)), MakeOperation(Operation::kDelete, Slot(2)),
      MakeOperation(Operation::kWrite, Counter(0)), MakeOperation(Operation::kGiveUp, 0)};
  EXPECT_EQ(RunProgram(loaded, context, 1, words), Outcome::kRollback);
  EXPECT_EQ(context.Digest(), before);
}

TEST(TestWorkloadTest, AQuietAuditWritesOnlyWhatIsWrong) {
  LoadedTest loaded;
  MapContext context(loaded.db);
  AuditArgs args{TxnId{1}, 0, 1};
  const Call call{kAudit, std::as_writable_bytes(std::span(&args, 1))};
  auto& history = context.map(loaded.workload.history_table());
  ASSERT_EQ(context.Execute(loaded.workload, call), Outcome::kOk);
  EXPECT_TRUE(history.empty());
  ChangeRow<TestRow>(context, loaded.workload.table(Place::kAccount), 3, [](TestRow& row) { ++row.value; });
  ASSERT_EQ(context.Execute(loaded.workload, call), Outcome::kOk);
  EXPECT_EQ(history.size(), 1u);
}

TEST(TestWorkloadTest, AQuietReaderLeavesANoteOfItsLastAttempt) {
  LoadedTest loaded;
  MapContext context(loaded.db);
  std::vector<std::byte> notes(2 * TestWorkload::kNoteBytes);
  loaded.workload.NoteReadersIn(WorkerId(0), notes);
  const std::vector<uint64_t> reads = {MakeOperation(Operation::kRead, Slot(1)),
                                       MakeOperation(Operation::kRead, Slot(2))};
  for (const uint64_t id : {2, 3, 3}) RunProgram(loaded, context, id, reads);
  EXPECT_EQ(context.map(loaded.workload.history_table()).size(), 1u);
  const std::vector<QuietReader> readers = TestWorkload::ReadersIn(notes);
  ASSERT_EQ(readers.size(), 1u);
  EXPECT_EQ(readers[0].id, TxnId{3});
  EXPECT_EQ(readers[0].row.access_count, 2u);
  context.CopyTo(loaded.db);
  EXPECT_EQ(loaded.workload.Inconsistency(loaded.db, readers), std::nullopt);
  // The last place too, and beyond it there is none.
  RunProgram(loaded, context, 7, reads);
  const HistoryRow before = TestWorkload::ReadersIn(notes).at(1).row;
  ChangeRow<TestRow>(context, loaded.workload.table(Place::kSlot), 2, [](TestRow& row) { row.writer = TxnId{2}; });
  RunProgram(loaded, context, 7, reads);
  EXPECT_NE(TestWorkload::ReadersIn(notes).at(1).row.accesses[1].version, before.accesses[1].version);
  RunProgram(loaded, context, 8, reads);
  EXPECT_EQ(TestWorkload::ReadersIn(notes).size(), 2u);
}

struct Damage {
  const char* name;
  const char* expected;
  std::function<void(MapContext&, const TestWorkload&)> apply;
};
std::ostream& operator<<(std::ostream& out, const Damage& damage) { return out << damage.name; }

class TestWorkloadDamageTest : public testing::TestWithParam<Damage> {};

TEST_P(TestWorkloadDamageTest, IsReported) {
  LoadedTest loaded;
  MapContext context(loaded.db);
  loaded.RunSerially(context, 500);
  GetParam().apply(context, loaded.workload);
  const std::string report = loaded.InconsistencyOf(context).value_or("nothing");
  EXPECT_NE(report.find(GetParam().expected), std::string::npos) << report;
}

const Damage kDamages[] = {
    {"Account", "READ_WRITE: the accounts of group 0 hold",
     [](MapContext& c, const TestWorkload& w) {
       ChangeRow<TestRow>(c, w.table(Place::kAccount), 3, [](TestRow& row) { ++row.value; });
     }},
    {"Counter", "CONFLICT: COUNTER 2 is",
     [](MapContext& c, const TestWorkload& w) {
       ChangeRow<TestRow>(c, w.table(Place::kCounter), 2, [](TestRow& row) { --row.value; });
     }},
    {"WriterOfARow", "COUNTER 1 is the version by the load in the end",
     [](MapContext& c, const TestWorkload& w) {
       ChangeRow<TestRow>(c, w.table(Place::kCounter), 1, [](TestRow& row) { row.writer = kInitialVersion; });
     }},
    {"SlotVanished", "SLOT 1022 is absent in the end",
     [](MapContext& c, const TestWorkload& w) { c.Delete(w.table(Place::kSlot), 1022); }},
    {"SlotRevived", "SLOT 1023 is the version by",
     [](MapContext& c, const TestWorkload& w) {
       c.Insert(w.table(Place::kSlot), 1023, MapContext::Tuple(c.map(w.table(Place::kSlot)).at(1022)));
     }},
    {"TransactionLost", "",
     [](MapContext& c, const TestWorkload& w) {
       c.Delete(w.history_table(), c.map(w.history_table()).begin()->first);
     }},
    {"HistoryRowDamaged", "is damaged",
     [](MapContext& c, const TestWorkload& w) {
       const Key key = c.map(w.history_table()).begin()->first;
       ChangeRow<HistoryRow>(c, w.history_table(), key, [](HistoryRow& row) { row.access_count = 9; });
     }},
};

INSTANTIATE_TEST_SUITE_P(Rows, TestWorkloadDamageTest, testing::ValuesIn(kDamages),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(TestWorkloadTest, AScanNotesEveryKeyThatItCameTo) {
  LoadedTest loaded;
  MapContext context(loaded.db);
  using enum AccessKind;
  const auto accesses = [&](uint64_t id, Operation operation, Key key) {
    EXPECT_EQ(RunProgram(loaded, context, id, {MakeOperation(operation, Shelf(key))}), Outcome::kOk);
    const auto row = RowOf<HistoryRow>(context, loaded.workload.history_table(), id);
    std::vector<std::pair<AccessKind, Key>> seen;
    for (uint32_t i = 0; i < row.access_count; ++i) {
      const uint64_t logged = row.accesses[i].kind_and_object;
      seen.emplace_back(static_cast<AccessKind>(logged >> kOperationShift), KeyOf(logged));
    }
    return seen;
  };
  using Seen = std::vector<std::pair<AccessKind, Key>>;
  EXPECT_EQ(accesses(1, Operation::kScan, 3), (Seen{{kMiss, 3}, {kRead, 4}, {kMiss, 5}, {kRead, 6}}));
  EXPECT_EQ(accesses(2, Operation::kScanBack, 2), (Seen{{kMiss, 5}, {kRead, 4}}));
  for (const Key key : {0, 2}) RunProgram(loaded, context, 3 + key, {MakeOperation(Operation::kDelete, Shelf(key))});
  EXPECT_EQ(accesses(6, Operation::kScanBack, 0), (Seen{{kMiss, 3}, {kMiss, 2}, {kMiss, 1}, {kMiss, 0}}));
  EXPECT_EQ(loaded.InconsistencyOf(context), std::nullopt);
}

// Two workers whose transactions run in pairs on one snapshot. Both commit, unless `first_committer_wins` and
// they change the same row.
std::string InconsistencyUnderSnapshots(const TestConfig& config, bool first_committer_wins) {
  constexpr uint64_t kPairs = 2000;
  LoadedTest loaded(config);
  MapContext first(loaded.db), second(loaded.db);
  CallList lists[] = {loaded.workload.Generate(WorkerId(0), kPairs, 5),
                      loaded.workload.Generate(WorkerId(1), kPairs, 5)};
  for (uint64_t i = 0; i < kPairs; ++i) {
    for (uint32_t worker : {0, 1}) lists[worker].calls[i].set_txn_id(TxnId::Make(WorkerId(worker), i + 1));
    first.Execute(loaded.workload, lists[0].calls[i]);
    second.Execute(loaded.workload, lists[1].calls[i]);
    const auto changes = first.LastChanges(), second_changes = second.LastChanges();
    const std::set<MapContext::RowName> changed(changes.begin(), changes.end());
    const bool clash =
        std::any_of(second_changes.begin(), second_changes.end(), [&](auto& c) { return changed.contains(c); });
    const bool second_commits = !clash || !first_committer_wins;
    for (auto row : second_changes) second_commits ? first.CopyRow(second, row) : second.CopyRow(first, row);
    for (auto row : changes) second.CopyRow(first, row);
  }
  return loaded.InconsistencyOf(first).value_or("nothing");
}

TEST(TestWorkloadAnomalyTest, LostUpdatesOfCountersAreSeen) {
  const std::string report = InconsistencyUnderSnapshots({.read_write = false}, false);
  EXPECT_EQ(report.substr(0, 9), "CONFLICT:") << report;
}

TEST(TestWorkloadAnomalyTest, LostUpdatesOfAccountsAreSeen) {
  const std::string report = InconsistencyUnderSnapshots({.conflict = false, .account_groups = 1}, false);
  EXPECT_EQ(report.substr(0, 11), "READ_WRITE:") << report;
}

TEST(TestWorkloadAnomalyTest, WriteSkewOverCountersIsSeen) {
  const std::string report = InconsistencyUnderSnapshots({.read_write = false}, true);
  EXPECT_EQ(report.substr(0, 3), "G2:") << report;
}

TEST(TestWorkloadAnomalyTest, WriteSkewOverSlotsIsSeen) {
  const std::string report = InconsistencyUnderSnapshots({.conflict = false, .slots = 64}, true);
  EXPECT_EQ(report.substr(0, 3), "G2:") << report;
}

TEST(TestWorkloadTest, ProgramsOutOfRangeAreInvalid) {
  const TestWorkload workload({});
  const auto valid = [&](std::vector<uint64_t> words) {
    words.insert(words.begin(), 1);
    return workload.ValidArgs(kProgram, std::as_bytes(std::span(words)));
  };
  const uint64_t read = MakeOperation(Operation::kRead, Counter(3)), give_up = MakeOperation(Operation::kGiveUp, 0);
  EXPECT_TRUE(valid({read}));
  EXPECT_TRUE(valid({read, give_up}));
  EXPECT_FALSE(valid({}));
  EXPECT_FALSE(valid({give_up}));
  EXPECT_FALSE(valid({give_up, read}));
  EXPECT_FALSE(valid({read, read}));
  EXPECT_FALSE(valid({0}));
  EXPECT_FALSE(valid({MakeOperation(Operation::kRead, Counter(4))}));
  EXPECT_FALSE(valid({MakeOperation(Operation::kRead, Slot(1024))}));
  EXPECT_FALSE(valid({MakeOperation(Operation::kRead, uint64_t{4} << kObjectKeyBits)}));
  EXPECT_FALSE(valid({MakeOperation(Operation::kInsert, Counter(0))}));
  EXPECT_FALSE(valid({MakeOperation(Operation::kWrite, MakeObject(Place::kAccount, 0))}));
  EXPECT_FALSE(valid({MakeOperation(static_cast<Operation>(10), Slot(0))}));
  EXPECT_FALSE(valid({MakeOperation(Operation::kScan, Slot(0))}));
  EXPECT_FALSE(valid({MakeOperation(Operation::kScan, Shelf(1021))}));
  const uint64_t scan = MakeOperation(Operation::kScan, Shelf(4));
  EXPECT_TRUE(valid({scan, MakeOperation(Operation::kRead, Shelf(8)), MakeOperation(Operation::kRead, Shelf(3))}));
  EXPECT_TRUE(valid({scan, MakeOperation(Operation::kRead, Shelf(7))}));
  EXPECT_FALSE(valid({MakeOperation(Operation::kRead, Shelf(7)), scan}));
  EXPECT_FALSE(valid({MakeOperation(Operation::kScanBack, Shelf(1)), scan}));
  EXPECT_FALSE(valid({read, scan, MakeOperation(Operation::kScanBack, Shelf(0))}));
  EXPECT_FALSE(valid(std::vector<uint64_t>{Slot(0), Slot(1), Slot(2), Slot(3), Slot(4), give_up}));
}

TEST(TestWorkloadTest, TransfersAndAuditsOutOfRangeAreInvalid) {
  const TestWorkload workload({});
  const auto transfer = [&](TransferArgs args) {
    return workload.ValidArgs(kTransfer, std::as_bytes(std::span(&args, 1)));
  };
  const auto audit = [&](AuditArgs args) { return workload.ValidArgs(kAudit, std::as_bytes(std::span(&args, 1))); };
  EXPECT_TRUE(transfer({TxnId{1}, 3, 0, 7, 5}));
  EXPECT_FALSE(transfer({TxnId{1}, 4, 0, 7, 5}));
  EXPECT_FALSE(transfer({TxnId{1}, 3, 8, 7, 5}));
  EXPECT_FALSE(transfer({TxnId{1}, 3, 0, 8, 5}));
  EXPECT_FALSE(transfer({TxnId{1}, 3, 7, 7, 5}));
  EXPECT_FALSE(transfer({TxnId{1}, 3, 0, 7, 0}));
  EXPECT_FALSE(transfer({kInitialVersion, 3, 0, 7, 5}));
  EXPECT_TRUE(audit({TxnId{1}, 3, 1}));
  EXPECT_FALSE(audit({TxnId{1}, 4, 1}));
  EXPECT_FALSE(audit({TxnId{1}, 3, 2}));
  EXPECT_FALSE(workload.ValidArgs(ProcedureId(3), std::vector<std::byte>(16)));
  for (size_t bytes : {0, 8, 24}) EXPECT_FALSE(workload.ValidArgs(kAudit, std::vector<std::byte>(bytes)));
}

TEST(TestWorkloadTest, NothingToDoIsRefused) {
  EXPECT_THROW(TestWorkload({.read_write = false, .conflict = false}), Error);
}

}  // namespace
}  // namespace dbx
