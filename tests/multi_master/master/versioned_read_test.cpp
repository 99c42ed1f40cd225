// Claims about statements that read without locks: they see whole transactions, and nothing that is not committed.
#include "multi_master/master/versioned_read.h"

#include "benchmarks/sysbench/sysbench.h"
#include "benchmarks/test/test.h"
#include "benchmarks/tpcc/tpcc.h"
#include "tests/multi_master/master/read_fixture.h"

namespace dbx::mm {
namespace {

class VersionedReadTest : public ReadTest {};

TEST_F(VersionedReadTest, AStatementTakesNoLock) {
  ScanAll(0);
  EXPECT_EQ(requests(0), 0u);
  EXPECT_EQ(cluster_.master(0).locks().counters().row_locks, 0u);
  EXPECT_EQ(reruns(0), 0u);
}

TEST_F(VersionedReadTest, WhatIsNotCommittedIsNotSeenAndWaitsForNothing) {
  WriteAlone(1, kLeft, 4);
  MmTransaction writer = Begin(1);
  Write(writer, table_, kLeft, 5);
  cluster_.FlushAndApply(1, 0);
  for (const uint32_t on : {0u, 1u}) EXPECT_EQ(ReadOne(on, kLeft), 4u);
  EXPECT_EQ(ReadOne(writer, kLeft), 5u) << "its own write";
  writer.Abort();
  cluster_.FlushAndApply(1, 0);
  for (const uint32_t on : {0u, 1u}) EXPECT_EQ(ReadOne(on, kLeft), 4u);
}

TEST_F(VersionedReadTest, WhatIsCommittedHereIsSeenAtOnce) {
  cluster_.HoldFlushes(0);
  WriteAlone(0, kLeft, 5);
  EXPECT_EQ(ReadOne(0, kLeft), 5u);
  EXPECT_EQ(reruns(0), 0u);
}

TEST_F(VersionedReadTest, InsertsAndDeletesAreSeenWhenTheyAreCommitted) {
  const std::vector<std::byte> tuple(table_.tuple_bytes());
  MmTransaction writer = Begin(1);
  EXPECT_EQ(writer.Insert(table_, 400, tuple), Outcome::kOk);
  EXPECT_EQ(writer.Delete(table_, kLeft), Outcome::kOk);
  cluster_.FlushAndApply(1, 0);
  EXPECT_EQ(ScanAll(0).size(), 300u);
  EXPECT_TRUE(ScanAll(0).contains(kLeft));
  writer.Commit();
  cluster_.FlushAndApply(1, 0);
  EXPECT_FALSE(ScanAll(0).contains(kLeft));
  EXPECT_TRUE(ScanAll(0).contains(400));
}

// Multi-master errata: validity looks at versions alone. Both changes of one page are within TV, and the END between
// them is not.
TEST_F(VersionedReadTest, AnOwnVersionAboveAnEndThatIsNotAppliedIsInvalid) {
  MmTransaction theirs = Begin(1);
  Write(theirs, table_, kLeft, 1);
  cluster_.FlushAndApply(1, 0);
  cluster_.HoldFlushes(0);
  Write(theirs, table_, kRight, 1);
  cluster_.log(1).AwaitDurable(theirs.Commit());
  // It learns from the lock process that theirs has ended, and keeps what that wrote.
  MmTransaction own = Begin(0);
  ASSERT_EQ(own.Update(table_, kLeft, [](auto& row) { row.template SetAt<uint64_t>(8, 77); }), Outcome::kOk);
  own.Commit();
  const auto rows = ScanAll(0);
  EXPECT_EQ(rows.at(kLeft), 1u);
  EXPECT_EQ(rows.at(kRight), 1u) << "half of a transaction";
  EXPECT_EQ(reruns(0), 1u);
}

TEST_F(VersionedReadTest, AnOwnVersionAboveAnotherMastersThatIsNotAppliedIsInvalid) {
  for (const Key key : {kLeft, kRight}) WriteAlone(1, key, 0);  // no page is new to TV
  cluster_.FlushAndApply(1, 0);
  cluster_.HoldFlushes(0);
  MmTransaction theirs = Begin(1);
  Write(theirs, table_, kLeft, 1);
  Write(theirs, table_, kRight, 1);
  theirs.Commit();
  WriteAlone(0, kNear, 1);
  const auto rows = ScanAll(0);
  EXPECT_EQ(rows.at(kLeft), rows.at(kRight)) << "half of a transaction";
  EXPECT_EQ(reruns(0), 1u);
}

TEST_F(VersionedReadTest, AnOwnVersionKeepsItsAfterListWhenItsLockGoes) {
  MmTransaction theirs = Begin(1);
  Write(theirs, table_, kLeft, 1);
  cluster_.FlushAndApply(1, 0);
  cluster_.HoldFlushes(0);
  Write(theirs, table_, kRight, 1);
  cluster_.log(1).AwaitDurable(theirs.Commit());
  MmTransaction own = Begin(0);
  ASSERT_EQ(own.Update(table_, kLeft, [](auto& row) { row.template SetAt<uint64_t>(8, 77); }), Outcome::kOk);
  own.Commit();
  const PageId page = LeafOf(kLeft);  // locks it on the other master
  while (cluster_.master(0).locks().HeldMode(page)) host::Yield();
  const auto rows = ScanAll(0);
  EXPECT_EQ(rows.at(kLeft), rows.at(kRight)) << "half of a transaction";
}

TEST_F(VersionedReadTest, ATransactionThatIsJustEndingIsInDoubt) {
  LocalTxns& txns = cluster_.master(0).locks().txns();
  const TxnName reader = txns.Begin(BeginTime(1)), writer = txns.Begin(BeginTime(1));
  VsVector tv;
  tv.Set(MasterId(0), VsTime(1000));
  EXPECT_EQ(txns.IsSeenBy(tv, reader, writer), false);
  EXPECT_EQ(txns.IsSeenBy(tv, writer, writer), true);
  txns.OnEnding(writer);
  EXPECT_EQ(txns.IsSeenBy(tv, reader, writer), std::nullopt);
  txns.End(writer, VsTime(1001));
  EXPECT_EQ(txns.IsSeenBy(tv, reader, writer), false);
  tv.Set(MasterId(0), VsTime(1001));
  EXPECT_EQ(txns.IsSeenBy(tv, reader, writer), true);
}

// The own version is in the buffer no more: it comes from the Page Store, below one of the other master.
TEST_F(VersionedReadTest, AnOwnVersionFromThePageStoreIsCheckedToo) {
  MmTransaction theirs = Begin(1);
  Write(theirs, table_, kLeft, 1);
  cluster_.FlushAndApply(1, 0);
  cluster_.HoldFlushes(0);
  Write(theirs, table_, kRight, 1);
  cluster_.log(1).AwaitDurable(theirs.Commit());
  WriteAlone(0, kNear, 1);
  WriteAlone(1, kNear, 2);
  MmTransaction fetches = Begin(0);
  ASSERT_EQ(fetches.ReadForUpdate(table_, kNear, [](const auto&) {}), Outcome::kOk);
  fetches.Commit();
  const auto rows = ScanAll(0);
  EXPECT_EQ(rows.at(kLeft), rows.at(kRight)) << "half of a transaction";
}

// A statement that began before a local change: TV covers neither the change nor its END.
TEST_F(VersionedReadTest, ALocalChangeBehindAStatementsBackMakesItInvalid) {
  WriteAlone(0, kLeft, 1);
  const ReadView view = cluster_.log(0).View();
  MasterPages& pages = cluster_.master(0).pages();
  const PageId page = LeafOf(kLeft);
  MasterPages::VersionPin pin = pages.PinVersion(page, view, true);
  EXPECT_NE(pin.frame(), nullptr);
  if (pin.shared != nullptr) pages.UnpinVersion(*pin.shared);
  WriteAlone(0, kNear, 1);
  EXPECT_EQ(pages.PinVersion(page, view, true).frame(), nullptr);
}

TEST_F(VersionedReadTest, APageThatAnotherMasterChangedBehindAStatementsBackIsReadAsItWas) {
  WriteAlone(1, kLeft, 1);
  cluster_.FlushAndApply(1, 0);
  const ReadViews::Use use(cluster_.master(0).views());
  const ReadView& view = use.view();
  WriteAlone(1, kLeft, 2);
  cluster_.FlushAndApply(1, 0);
  const MasterPages::VersionPin pin = cluster_.master(0).pages().PinVersion(LeafOf(kLeft), view, true);
  ASSERT_NE(pin.own, nullptr);
  EXPECT_TRUE(view.tv.Covers(pin.own->page.lsn().master, pin.own->page.lsn().time));
}

// What this master tells as its least TV is a lower bound of the TVs of statements that run.
TEST_F(VersionedReadTest, TheLeastTvIsThatOfTheOldestStatement) {
  ReadViews& views = cluster_.master(0).views();
  WriteAlone(1, kLeft, 1);
  cluster_.FlushAndApply(1, 0);
  {
    const ReadViews::Use use(views);
    WriteAlone(1, kLeft, 2);
    cluster_.FlushAndApply(1, 0);
    EXPECT_TRUE(use.view().tv.Covers(views.Least()));
    EXPECT_EQ(views.Least().of(MasterId(1)), use.view().tv.of(MasterId(1)));
    EXPECT_NE(views.Least(), cluster_.log(0).applied());
  }
  EXPECT_TRUE(views.Least().Covers(MasterId(1), cluster_.log(1).durable_until()));
}

// --- Rows that another master's split has moved ---

class MovedRowTest : public ReadTest {
 protected:
  void InsertAlone(uint32_t on, Key key) {
    const std::vector<std::byte> tuple(table_.tuple_bytes());
    MmTransaction txn = Begin(on);
    EXPECT_EQ(txn.Insert(table_, key, tuple), Outcome::kOk);
    cluster_.log(on).AwaitDurable(txn.Commit());
  }
  // Master 1 moves them to a new page. Master 0 sees the page before; its applier hears of the split by Deliver.
  void Move() {
    // That leaf is full, as it was loaded, and is split here: a later change would split it behind the other master's
    // back, and statements were invalid for the page above it.
    WriteAlone(0, kLeft, 6);
    // A last leaf with room.
    Key key = 1000;
    for (InsertAlone(1, key); LeafOf(key) == LeafOf(kLast); ++key) InsertAlone(1, key + 1);
    moved_ = key + 1000, moved_too_ = key + 999;
    for (const Key moved : {moved_, moved_too_}) InsertAlone(1, moved);
    cluster_.FlushAndApply(1, 0);
    cluster_.HoldFlushes(0);
    const PageId before = LeafOf(moved_);
    for (key = moved_too_ - 1; LeafOf(moved_) == before; --key) InsertAlone(1, key);
    ASSERT_EQ(LeafOf(moved_), LeafOf(moved_too_));
  }
  void WriteBoth(uint64_t value) {
    MmTransaction own = Begin(0);
    for (const Key key : {moved_, kLeft}) Write(own, table_, key, value);
    own.Commit();
  }
  void DeliverAll() {
    cluster_.Deliver(0);
    cluster_.FlushAndApply(1, 0);
  }

  static constexpr Key kLast = 299;  // of the loaded ones
  Key moved_ = 0, moved_too_ = 0;
};

// Of the old page the version at TV still has the row, as it was.
TEST_F(MovedRowTest, AnOwnChangeOfItIsSeenThoughTvLacksTheSplit) {
  Move();
  WriteBoth(7);
  EXPECT_EQ(ReadOne(0, moved_), 7u);
  EXPECT_EQ(reruns(0), 1u);
  const auto rows = ScanAll(0);
  EXPECT_EQ(rows.at(moved_), 7u);
  EXPECT_EQ(rows.at(kLeft), 7u);
  DeliverAll();
  const uint64_t before = reruns(0);
  EXPECT_EQ(ReadOne(0, moved_), 7u);
  EXPECT_EQ(reruns(0), before);
}

TEST_F(MovedRowTest, OtherRowsAreReadOnTheOldPage) {
  Move();
  WriteAlone(0, kLeft, 7);
  EXPECT_EQ(ReadOne(0, moved_too_), 0u);
  EXPECT_EQ(reruns(0), 0u);
}

// Later changes of the new page by its maker hold no statement up: the split is behind all TVs.
TEST_F(MovedRowTest, ASplitIsWaitedForOnce) {
  Move();
  WriteBoth(7);
  DeliverAll();
  cluster_.HoldFlushes(0);
  WriteAlone(1, moved_, 8);
  WriteAlone(0, moved_, 9);
  EXPECT_EQ(ReadOne(0, kLeft), 7u);
  EXPECT_EQ(reruns(0), 0u);
}

// --- Splits that are not posted ---

// The separator of a split is posted by a second mini-transaction, which TV may lack.
class SplitFlusher final : public SplitListener {
 public:
  explicit SplitFlusher(MemoryCluster& cluster) : cluster_(cluster) {}
  void OnSplit(PageId left, PageId right, Key separator) override {
    cluster_.master(1).locks().SplitLocks(left, separator, right);
    cluster_.FlushAndApply(1, 0);
    cluster_.HoldFlushes(0);
    ++splits;
  }
  int splits = 0;

 private:
  MemoryCluster& cluster_;
};

TEST_F(VersionedReadTest, AStatementMovesRightWhereASplitIsNotPosted) {
  const std::vector<std::byte> tuple(table_.tuple_bytes(), std::byte{7});
  SplitFlusher flusher(cluster_);
  PagedTree tree(cluster_.master(1).pages(), TreeOf(TableId(0)), RootOf(TableId(0)), &flusher);
  const TxnName writer{MasterId(1), ClusterEpoch(1), 1'000'000};
  Key key = 300;
  for (; flusher.splits == 0; ++key) {
    for (PinnedLeaf leaf = tree.PinLeaf(key, LockMode::kExclusive);
         tree.Put(leaf, key, writer, tuple) == PagedTree::PutStatus::kNoRoom;
         leaf = tree.PinLeaf(key, LockMode::kExclusive)) {
      leaf.LetGo();
      tree.MakeRoom(key, writer, tuple);
    }
  }
  const auto view = std::make_unique<ReadViews::Use>(cluster_.master(0).views());
  VersionedPages source(cluster_.master(0).pages());
  source.SetView(&view->view());
  PagedTree versions(source, TreeOf(TableId(0)), RootOf(TableId(0)), nullptr);
  const PinnedLeaf leaf = versions.PinLeaf(key, LockMode::kShared);
  ASSERT_TRUE(leaf);
  EXPECT_EQ(versions.moves_right(), 1u);
  EXPECT_FALSE(leaf.page().has_right());
}

TEST_F(VersionedReadTest, AScanReadsLeafAfterLeaf) {
  EXPECT_EQ(ScanAll(0).size(), 300u);
  MmTransaction txn = Begin(0);
  std::vector<Key> down;
  const auto see = [&](Key key, const TupleReader&) { return down.push_back(key), down.size() < 100; };
  EXPECT_EQ(txn.Scan(table_, 20, 280, ScanOrder::kDescending, see), Outcome::kOk);
  txn.Commit();
  ASSERT_EQ(down.size(), 100u);
  EXPECT_EQ(down.front(), 280u);
  EXPECT_EQ(down.back(), 181u);
}

// --- Whole runs ---

class ReadCommittedTest : public testing::TestWithParam<uint32_t> {
 protected:
  static MemoryCluster::Options Options(size_t frames_max = 512) {
    return {.masters = GetParam(), .frames_max = frames_max, .isolation = Isolation::kReadCommitted};
  }
  static uint64_t Versioned(MemoryCluster& cluster) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < cluster.masters(); ++i) sum += cluster.master(i).views().counters().versioned;
    return sum;
  }
};
INSTANTIATE_TEST_SUITE_P(Masters, ReadCommittedTest, testing::Values(1, 2, 3));

TEST_P(ReadCommittedTest, TheHistoryOfTestHasNoDirtyAndNoIntermediateRead) {
  TestConfig config;
  config.read_committed = true;
  Loaded<TestWorkload> loaded(config);
  MemoryCluster cluster(Options(), loaded.db);
  EXPECT_GT(RunWorkers(cluster, loaded.workload, 2 * GetParam(), 300, 3).committed, 0u);
  EXPECT_GT(Versioned(cluster), 0u);
  for (uint32_t by = 0; by < GetParam(); ++by)
    EXPECT_EQ(loaded.Inconsistency(cluster.master(by), config), std::nullopt);
}

TEST_P(ReadCommittedTest, YcsbLosesNoRowAndNoByteThoughFramesAreFew) {
  const YcsbConfig config{.rows = 3000, .theta = 0, .req_per_query = 3};
  Loaded<Ycsb> loaded(config);
  MemoryCluster cluster(Options(40), loaded.db);
  EXPECT_EQ(RunWorkers(cluster, loaded.workload, 2 * GetParam(), 100, 3).committed, 200u * GetParam());
  EXPECT_EQ(loaded.Inconsistency(cluster.master(0), config), std::nullopt);
}

TEST_P(ReadCommittedTest, SysbenchLeavesAnIndexThatFitsItsRows) {
  const SysbenchConfig config{
      .masters = GetParam(), .workers_per_master = 2, .tables = 1, .rows = 300, .sharing_perc = 50};
  Loaded<Sysbench> loaded(config);
  MemoryCluster cluster(Options(), loaded.db);
  EXPECT_EQ(RunWorkers(cluster, loaded.workload, 2 * GetParam(), 20, 3).committed, 40u * GetParam());
  EXPECT_EQ(loaded.Inconsistency(cluster.master(0), config), std::nullopt);
}

// Each transaction writes the same to both rows of a pair, on two pages, or begins to and gives up. Pairs are inserted
// and deleted, too, so that leaves split.
class Pairs {
 public:
  static constexpr Key kPairs = 12, kApart = 150;

  Pairs(Table& table, MemoryCluster& cluster) : table_(table), cluster_(cluster) {}

  void WriteSome(uint32_t on, uint64_t seed, int count) {
    MmTransaction txn = cluster_.master(on).NewTransaction();
    Random random(seed);
    for (int i = 0; i < count; ++i) {
      txn.Begin(BeginTime(host::MonotonicNanos()));
      const bool is_done = WriteOne(txn, random) == Outcome::kOk && random.Below(4) > 0;
      is_done ? (void)txn.Commit() : txn.Abort();
    }
  }
  // Each statement sees both rows of each pair alike.
  void ReadSome(uint32_t on, const Atomic<uint32_t>& writing) {
    MmTransaction txn = cluster_.master(on).NewTransaction();
    while (writing.load() > 0) {
      txn.Begin(BeginTime(host::MonotonicNanos()));
      std::map<Key, uint64_t> rows;
      const auto see = [&](Key key, const TupleReader& row) { return rows[key] = row.GetAt<uint64_t>(0), true; };
      const Outcome outcome = txn.Scan(table_, 0, 5000, ScanOrder::kAscending, see);
      outcome == Outcome::kOk ? (void)txn.Commit() : txn.Abort();
      if (outcome == Outcome::kOk) Compare(rows);
    }
  }
  uint64_t halves() const { return halves_.load(); }
  uint64_t statements() const { return statements_.load(); }

 private:
  static void Set(auto& row, uint64_t value) { row.template SetAt<uint64_t>(0, value); }

  Outcome WriteOne(MmTransaction& txn, Random& random) {
    const uint64_t value = random.Below(1'000'000'000);
    const bool is_loaded = random.Below(3) > 0;
    const Key pair = is_loaded ? random.Below(kPairs) : 1000 + 2 * random.Below(300);
    const Key other = is_loaded ? pair + kApart : pair + 2000;
    std::vector<std::byte> tuple(table_.tuple_bytes());
    std::memcpy(tuple.data(), &value, sizeof value);
    for (const Key key : {pair, other}) {
      Outcome outcome = txn.Update(table_, key, [&](auto& row) { Set(row, value); });
      if (outcome == Outcome::kNotFound) outcome = txn.Insert(table_, key, tuple);
      if (outcome == Outcome::kOk && !is_loaded && value % 3 == 0) outcome = txn.Delete(table_, key);
      if (outcome != Outcome::kOk) return outcome;
    }
    return Outcome::kOk;
  }
  void Compare(const std::map<Key, uint64_t>& rows) {
    const auto at = [&](Key key) { return rows.contains(key) ? rows.at(key) : UINT64_MAX; };
    statements_.fetch_add(1);
    for (Key pair = 0; pair < kPairs; ++pair) {
      const uint64_t one = at(pair), other = at(pair + kApart);
      halves_.fetch_add(one != other && (IsWritten(one) || IsWritten(other)));
    }
    for (Key pair = 1000; pair < 1600; pair += 2) halves_.fetch_add(at(pair) != at(pair + 2000));
  }
  // YCSB loads rows that differ.
  bool IsWritten(uint64_t value) const { return value < 1'000'000'000; }

  Table& table_;
  MemoryCluster& cluster_;
  Atomic<uint64_t> halves_{0}, statements_{0};
};

TEST_P(ReadCommittedTest, EachStatementSeesWholeTransactions) {
  Loaded<Ycsb> loaded(YcsbConfig{.rows = 300});
  MemoryCluster cluster(Options(), loaded.db);
  Pairs pairs(loaded.db.table(TableId(0)), cluster);
  Atomic<uint32_t> writing = GetParam();
  std::vector<Thread> threads;
  for (uint32_t on = 0; on < GetParam(); ++on) {
    threads.emplace_back([&, on] {
      pairs.WriteSome(on, on + 5, 400);
      writing.fetch_sub(1);
    });
    threads.emplace_back([&, on] { pairs.ReadSome(on, writing); });
  }
  threads.clear();
  EXPECT_GT(pairs.statements(), 0u);
  EXPECT_EQ(pairs.halves(), 0u);
}

}  // namespace
}  // namespace dbx::mm
