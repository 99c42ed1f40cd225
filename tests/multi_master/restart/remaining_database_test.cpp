// Claims about the logs that a cluster leaves: what a recovery of all its masters and the reference replay make of
// them, and what both say to damage.
#include "multi_master/restart/remaining_database.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "benchmarks/tpcc/tpcc.h"
#include "benchmarks/ycsb/ycsb.h"
#include "multi_master/log/flush_buffer.h"
#include "multi_master/master/initial_pages.h"
#include "storage/digest.h"
#include "system/reference/reference_cluster.h"
#include "tests/multi_master/cluster_workers.h"
#include "tests/multi_master/process/tcp_cluster.h"

namespace dbx::mm {
namespace {

namespace fs = std::filesystem;

// Copies of the files of a cluster's Log Stores.
class Remains {
 public:
  explicit Remains(const TcpCluster& cluster) : cluster_(cluster.plan().cluster), masters_(cluster.masters()) {
    for (uint32_t i = 0; i < kLogStores; ++i) {
      stores_.push_back(directory_.path() + "/store-" + std::to_string(i));
      fs::copy(cluster.directory() + "/store-" + std::to_string(i), stores_.back());
    }
  }
  Remains(const Remains& other) : cluster_(other.cluster_), masters_(other.masters_) {
    for (uint32_t i = 0; i < kLogStores; ++i) {
      stores_.push_back(directory_.path() + "/store-" + std::to_string(i));
      fs::copy(other.stores_[i], stores_.back());
    }
  }

  const std::string& store(uint32_t i) const { return stores_[i]; }
  std::string log(uint32_t store, uint32_t master) const {
    return stores_[store] + "/log-" + std::to_string(master) + "-0";
  }
  void Flip(uint32_t store, uint32_t master, uint64_t offset) const {
    std::fstream file(log(store, master), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const auto byte = static_cast<char>(file.get() ^ 0x40);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
  }
  void Cut(uint32_t store, uint32_t master, uint64_t bytes) const { fs::resize_file(log(store, master), bytes); }
  uint64_t BytesOf(uint32_t store, uint32_t master) const { return fs::file_size(log(store, master)); }

  RemainingDatabase Replayed(const Database& loaded) const {
    const auto pages = std::make_shared<const InitialPages>(loaded);
    PosixFileSystem files;
    std::vector<std::unique_ptr<RemainingLog>> logs;
    for (uint8_t i = 0; i < masters_; ++i) {
      logs.push_back(std::make_unique<RemainingLog>(files, stores_, cluster_, MasterId(i)));
    }
    RemainingDatabase dead([pages](PageId page) { return pages->Of(page); });
    dead.Replay(logs);
    return dead;
  }
  reference::ClusterImage Image() const {
    PosixFileSystem files;
    reference::ClusterImage image{cluster_.value(), masters_, {}};
    for (uint32_t store = 0; store < kLogStores; ++store) {
      auto& of_store = image.stores.emplace_back();
      if (!fs::exists(stores_[store])) continue;
      of_store.emplace(masters_);
      for (uint32_t i = 0; i < masters_; ++i) {
        for (uint32_t number = 0;; ++number) {
          const std::string path = stores_[store] + "/log-" + std::to_string(i) + "-" + std::to_string(number);
          if (!fs::exists(path)) break;
          FileBytes bytes = files.Map(path);
          of_store->at(i).push_back({path, bytes.bytes, std::move(bytes.owner)});
        }
      }
    }
    return image;
  }

 private:
  TempDir directory_;
  const ClusterId cluster_;
  const uint32_t masters_;
  std::vector<std::string> stores_;
};

template <class WorkloadT, class Config>
struct Recovered {
  Recovered(const Remains& remains, const Database& loaded, const Config& config)
      : dead(remains.Replayed(loaded)), workload(config), fresh(config) {
    workload.CreateTables(rows);
    for (size_t i = 0; i < rows.table_count(); ++i) {
      Table& table = rows.table(Database::IdOf(i));
      dead.ForEachRow(TreeOf(table.id()), RootOf(table.id()),
                      [&](Key key, std::span<const std::byte> image) { table.LoadRow(WorkerId(0), key, image); });
    }
    fresh.CreateTables(by_reference);
    reference = reference::ReplayCluster(remains.Image(), loaded, by_reference);
    workload.Adopt(rows, 7);
    fresh.Adopt(by_reference, 7);
    EXPECT_EQ(DigestOf(rows), DigestOf(by_reference));
    EXPECT_EQ(reference.losers, dead.counters().losers);
    EXPECT_EQ(reference.rows_restored, dead.counters().rows_restored);
    std::vector<uint64_t> ids;
    for (const TxnId id : dead.committed()) ids.push_back(id.value);
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(ids, reference.committed);
  }

  RemainingDatabase dead;
  WorkloadT workload, fresh;
  Database rows{{}, 1}, by_reference{{}, 1};
  reference::ClusterReplay reference;
};

// What the masters see, and a recovery of their logs.
TEST(RemainingDatabaseTest, ItIsWhatTheMastersHadCommitted) {
  TpccConfig config;
  config.warehouses = 2;
  config.full_mix = config.small = true;
  Loaded<Tpcc> loaded(config);
  TcpCluster cluster(3, loaded.db);
  const Tally tally = RunWorkers(cluster, loaded.workload, 6, 60, 3);
  Recovered<Tpcc, TpccConfig> recovered(Remains(cluster), loaded.db, config);
  EXPECT_EQ(recovered.dead.counters().losers, 0u);
  EXPECT_LE(recovered.dead.committed().size(), tally.committed);  // readers have no END
  EXPECT_GT(recovered.dead.committed().size(), tally.committed / 2);
  EXPECT_EQ(recovered.workload.Inconsistency(recovered.rows), std::nullopt);
}

struct RemainsTest : testing::Test {
  static constexpr YcsbConfig kConfig{.rows = 300, .theta = 0.6, .req_per_query = 3};

  RemainsTest() : loaded(kConfig), cluster(2, loaded.db) { RunWorkers(cluster, loaded.workload, 4, 60, 3); }

  // Leaves transactions without END, whose changes are durable.
  void LeaveLosers() {
    for (uint32_t by = 0; by < 2; ++by) {
      MmTransaction& txn = losers.emplace_back(cluster.master(by).NewTransaction());
      txn.Begin(BeginTime(1));
      for (const Key key : {Key{10 + by}, Key{20 + by}}) {
        const auto change = [](auto& row) { row.template SetAt<uint64_t>(0, 0xDEAD); };
        EXPECT_EQ(txn.Update(loaded.db.table(TableId(0)), key, change), Outcome::kOk);
        EXPECT_EQ(txn.Update(loaded.db.table(TableId(0)), key, change), Outcome::kOk);
      }
      cluster.master(by).log().AwaitDurable(cluster.master(by).log().last_record());
    }
  }
  Digest128 RowsOf(const Remains& remains) {
    return DigestOf(Recovered<Ycsb, YcsbConfig>(remains, loaded.db, kConfig).rows);
  }
  void ExpectRefused(const Remains& remains, const std::string& word) {
    try {
      (void)remains.Replayed(loaded.db);
      ADD_FAILURE() << "not refused: " << word;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::kCorrupt);
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
    Ycsb fresh(kConfig);
    Database to({}, 1);
    fresh.CreateTables(to);
    EXPECT_THROW(reference::ReplayCluster(remains.Image(), loaded.db, to), Error);
  }

  Loaded<Ycsb> loaded;
  TcpCluster cluster;
  std::deque<MmTransaction> losers;
};

TEST_F(RemainsTest, LosersHaveChangedNothing) {
  const Digest128 before = RowsOf(Remains(cluster));
  LeaveLosers();
  const Remains remains(cluster);
  EXPECT_EQ(RowsOf(remains), before);
  const RemainingDatabase dead = Recovered<Ycsb, YcsbConfig>(remains, loaded.db, kConfig).dead;
  EXPECT_EQ(dead.counters().losers, 2u);
  EXPECT_EQ(dead.counters().rows_restored, 4u);
  for (MmTransaction& txn : losers) txn.Abort();
}

TEST_F(RemainsTest, ReadingChangesNoFile) {
  const Remains remains(cluster);
  std::map<std::string, uint64_t> before, after;
  const auto look = [&](std::map<std::string, uint64_t>& sizes) {
    for (uint32_t i = 0; i < kLogStores; ++i) {
      for (const auto& entry : fs::directory_iterator(remains.store(i))) sizes[entry.path()] = entry.file_size();
    }
  };
  look(before);
  (void)remains.Replayed(loaded.db);
  look(after);
  EXPECT_EQ(before, after);
}

TEST_F(RemainsTest, OneStoreMayBeLostOrDamaged) {
  const Remains whole(cluster);
  const Digest128 rows = RowsOf(whole);
  for (uint32_t store = 0; store < kLogStores; ++store) {
    const Remains flipped(whole), cut(whole), lost(whole);
    flipped.Flip(store, 0, flipped.BytesOf(store, 0) / 2);
    EXPECT_EQ(RowsOf(flipped), rows) << "store " << store;
    cut.Cut(store, 1, cut.BytesOf(store, 1) / 2 / 4096 * 4096);
    EXPECT_EQ(RowsOf(cut), rows) << "store " << store;
    fs::remove_all(lost.store(store));
    EXPECT_EQ(RowsOf(lost), rows) << "store " << store;
  }
}

TEST_F(RemainsTest, TwoDamagedStoresAreRefused) {
  const Remains whole(cluster);
  const Remains flipped(whole), cut(whole), lost(whole), both(whole);
  for (const uint32_t store : {0, 2}) {
    flipped.Flip(store, 0, flipped.BytesOf(store, 0) / 2);
    cut.Cut(store, 1, cut.BytesOf(store, 1) / 2 / 4096 * 4096);
    fs::remove_all(lost.store(store));
  }
  both.Flip(0, 0, both.BytesOf(0, 0) / 2);
  both.Cut(1, 0, both.BytesOf(1, 0) / 2 / 4096 * 4096);
  ExpectRefused(flipped, "a frame is damaged that had been synced");
  ExpectRefused(cut, "shows that it was durable up to");
  ExpectRefused(lost, "is not there");
  ExpectRefused(both, "shows that it was durable up to");
}

// A batch that was not synced when the power failed.
TEST_F(RemainsTest, ATornTailIsNoDamage) {
  const Remains whole(cluster);
  const Digest128 rows = RowsOf(whole);
  const Remains torn(whole);
  for (uint32_t store = 0; store < 2; ++store) {
    std::ofstream file(torn.log(store, 0), std::ios::app | std::ios::binary);
    file << std::string(5000, 'x');
  }
  EXPECT_EQ(RowsOf(torn), rows);
}

// A fence has ended the log: what its writer had behind the seal does not count, wherever it still is.
TEST_F(RemainsTest, ASealEndsALog) {
  const Remains whole(cluster);
  PosixFileSystem files;
  std::vector<std::string> stores;
  for (uint32_t i = 0; i < kLogStores; ++i) stores.push_back(whole.store(i));
  Lsn third, end;
  {
    RemainingLog log(files, stores, cluster.plan().cluster, MasterId(0));
    for (uint32_t flushes = 0; const auto group = log.Next(); ++flushes) third = flushes < 3 ? group->end : third;
    end = log.end();
  }
  const Lsn seal(RoundUp(third.value(), format::kBlockBytes));
  ASSERT_LT(seal, end);
  for (const uint32_t sealed : {1, 2}) {
    const Remains remains(whole);
    for (uint32_t i = 0; i < sealed; ++i) {
      StoreLog log(files, remains.store(i), MasterId(0), SaltOf(cluster.plan().cluster.value(), MasterId(0)));
      const std::vector<FrameToWrite> frames{{StoreFrame::kFence, ClusterEpoch(2), {}, 0, {}},
                                             {StoreFrame::kSeal, ClusterEpoch(2), seal, 0, {}}};
      log.Sync(frames);
      log.Publish(frames);
    }
    std::vector<std::string> copies;
    for (uint32_t i = 0; i < kLogStores; ++i) copies.push_back(remains.store(i));
    RemainingLog log(files, copies, cluster.plan().cluster, MasterId(0));
    EXPECT_EQ(log.sealed(), seal);
    EXPECT_EQ(log.end(), seal);
    while (log.Next()) continue;
    EXPECT_EQ(log.position(), third);
    const reference::ClusterLog by_reference = reference::ReadClusterLog(remains.Image(), 0);
    EXPECT_EQ(by_reference.bytes.size(), seal.value());
    EXPECT_EQ(by_reference.stamps.size(), 3u);
  }
}

TEST_F(RemainsTest, FilesOfAnotherClusterAreNoneOfThisOne) {
  PosixFileSystem files;
  const Remains remains(cluster);
  std::vector<std::string> stores;
  for (uint32_t i = 0; i < kLogStores; ++i) stores.push_back(remains.store(i));
  EXPECT_THROW(RemainingLog(files, stores, ClusterId(78), MasterId(0)), Error);
}

}  // namespace
}  // namespace dbx::mm
