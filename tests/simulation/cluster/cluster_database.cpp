#include "tests/simulation/cluster/cluster_database.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "base/check.h"
#include "benchmarks/sysbench/sysbench.h"
#include "benchmarks/test/test.h"
#include "benchmarks/ycsb/ycsb.h"

namespace dbx::sim {
namespace {

constexpr uint64_t kLoadSeed = 7;

template <class W>
std::unique_ptr<Database> TablesOf(W& workload) {
  auto database = std::make_unique<Database>(RowLayout{}, 1);
  database->OrderEveryTable();
  workload.CreateTables(*database);
  return database;
}
template <class W>
std::unique_ptr<Database> LoadedBy(W& workload) {
  auto database = TablesOf(workload);
  workload.Load(*database, kLoadSeed, 1);
  return database;
}

template <class W>
class DatabaseWith : public ClusterDatabase {
 public:
  template <class Config>
  DatabaseWith(const Config& config, std::unique_ptr<W> workload, size_t page_bytes_max)
      : ClusterDatabase(LoadedBy(*workload), page_bytes_max),
        workload_(std::move(workload)),
        make_([config] { return std::make_unique<W>(config); }) {}

  void Reset(uint32_t, uint64_t) override {}
  CallList Generate(WorkerId worker, uint64_t calls, uint64_t seed) const override {
    return workload_->Generate(worker, calls, seed);
  }
  Outcome Run(ClusterContext& context, const Call& call) override {
    return workload_->Run(context, call.procedure, call.args);
  }
  std::unique_ptr<Database> EmptyTables() const override { return TablesOf(*make_()); }
  std::optional<std::string> Inconsistency(const Database& left, std::span<const TxnId>) const override {
    return workload_->Inconsistency(left);
  }

 protected:
  W& workload() const { return *workload_; }

 private:
  const std::unique_ptr<W> workload_;
  const std::function<std::unique_ptr<W>()> make_;
};

// Quiet readers of TEST leave a note of what they have read.
class TestDatabase final : public DatabaseWith<TestWorkload> {
 public:
  using DatabaseWith::DatabaseWith;

  void Reset(uint32_t workers, uint64_t calls) override {
    notes_.assign(workers, {});
    for (uint32_t i = 0; i < workers; ++i) {
      notes_[i].resize(TestWorkload::NoteBytesFor(calls));
      workload().NoteReadersIn(WorkerId(i), notes_[i]);
    }
  }
  std::optional<std::string> Inconsistency(const Database& left, std::span<const TxnId> acknowledged) const override {
    std::vector<test::QuietReader> readers;
    for (const std::vector<std::byte>& notes : notes_) {
      for (const test::QuietReader& reader : TestWorkload::ReadersIn(notes)) {
        if (std::find(acknowledged.begin(), acknowledged.end(), reader.id) != acknowledged.end())
          readers.push_back(reader);
      }
    }
    return workload().Inconsistency(left, readers);
  }

 private:
  std::vector<std::vector<std::byte>> notes_;  // by worker
};

template <class D, class W, class Config>
std::unique_ptr<ClusterDatabase> Make(const Config& config, size_t page_bytes_max) {
  return std::make_unique<D>(config, std::make_unique<W>(config), page_bytes_max);
}

// The lowest bit of a shape is about its pages (cluster_setup.cpp).
std::unique_ptr<ClusterDatabase> MakeTest(uint32_t shape, size_t page_bytes) {
  TestConfig config;
  config.account_groups = shape / 2 % 2 == 0 ? 1 : 4;
  config.slots = shape < 4 ? 16 : 256;
  config.conflict = shape < 6;
  config.expected_transactions = 256;
  return Make<TestDatabase, TestWorkload>(config, page_bytes);
}

std::unique_ptr<ClusterDatabase> MakeYcsb(uint32_t shape, size_t page_bytes) {
  YcsbConfig config;
  config.rows = shape / 2 % 2 == 0 ? 24 : 150;
  config.theta = shape / 2 % 2 == 0 ? 0.9 : 0;
  config.req_per_query = shape < 4 ? 2 : 5;
  config.field_per_tuple = page_bytes < mm::kPageBytes ? 1 : 10;
  config.scan_perc = shape >= 6 ? 0.2 : 0;
  config.read_perc = 0.3;
  config.scan_len = 5;
  return Make<DatabaseWith<Ycsb>, Ycsb>(config, page_bytes);
}

std::unique_ptr<ClusterDatabase> MakeSysbench(uint32_t shape, size_t page_bytes, uint32_t masters) {
  SysbenchConfig config;
  config.masters = masters;
  config.workers_per_master = kClusterWorkersMax;
  config.rows = 100;
  config.sharing_perc = shape / 2 % 2 == 0 ? 100 : 50;
  config.mix = shape < 6 ? SysbenchMix::kWriteOnly : SysbenchMix::kReadWrite;
  return Make<DatabaseWith<Sysbench>, Sysbench>(config, page_bytes);
}

std::unique_ptr<ClusterDatabase> MakeDatabase(const ClusterSetup& setup) {
  switch (setup.workload) {
    case WorkloadKind::kTest:
      return MakeTest(setup.shape, setup.page_bytes_max);
    case WorkloadKind::kYcsb:
      return MakeYcsb(setup.shape, setup.page_bytes_max);
    case WorkloadKind::kSysbench:
      return MakeSysbench(setup.shape, setup.page_bytes_max, setup.masters);
    default:
      CHECK(false);
  }
  return nullptr;
}

}  // namespace

ClusterDatabase& DatabaseOf(const ClusterSetup& setup) {
  static std::map<std::tuple<WorkloadKind, uint32_t, uint32_t>, std::unique_ptr<ClusterDatabase>> made;
  const uint32_t masters = setup.workload == WorkloadKind::kSysbench ? setup.masters : 0;
  std::unique_ptr<ClusterDatabase>& database = made[{setup.workload, setup.shape, masters}];
  if (!database) database = MakeDatabase(setup);
  return *database;
}

}  // namespace dbx::sim
