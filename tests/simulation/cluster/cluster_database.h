// A workload's database, loaded once for all clusters of its shape, and the calls of its workers.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/workload.h"
#include "multi_master/master/initial_pages.h"
#include "multi_master/master/mm_transaction.h"
#include "storage/database.h"
#include "tests/multi_master/reference/page_model.h"
#include "tests/simulation/cluster/cluster_setup.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/rows.h"
#include "tests/simulation/seam/system/transaction/observer.h"

namespace dbx::sim {

// The transaction of a client that thinks between its calls.
struct ClusterTransaction : mm::MmTransaction {
  // Reads are under locks: each is of the moment when it happens, not of one moment for all.
  static constexpr bool kReadsAreOfOneMoment = false;

  ClusterTransaction(mm::MmTransaction txn, uint64_t think_nanos_max)
      : MmTransaction(std::move(txn)), think_nanos_max_(think_nanos_max) {}

  Outcome Read(Table& table, Key key, auto&& visit) { return Think(), MmTransaction::Read(table, key, visit); }
  Outcome Update(Table& table, Key key, auto&& change) { return Think(), MmTransaction::Update(table, key, change); }
  Outcome Insert(Table& table, Key key, std::span<const std::byte> tuple) {
    return Think(), MmTransaction::Insert(table, key, tuple);
  }
  Outcome Delete(Table& table, Key key) { return Think(), MmTransaction::Delete(table, key); }
  Outcome Scan(Table& table, Key low, Key high, ScanOrder order, auto&& visit) {
    return Think(), MmTransaction::Scan(table, low, high, order, visit);
  }

 private:
  void Think() const {
    if (think_nanos_max_ > 0) SleepFor(Random() % think_nanos_max_);
  }
  const uint64_t think_nanos_max_;
};
using ClusterContext = observer::ObservedContext<ClusterTransaction>;

class ClusterDatabase {
 public:
  ClusterDatabase(std::unique_ptr<Database> loaded, size_t page_bytes_max)
      : loaded_(std::move(loaded)), pages_(*loaded_, page_bytes_max), rows_(RowsOf(*loaded_)) {
    for (uint64_t id = 1; id <= pages_.count(); ++id) {
      model_[id] = mm::reference::ParsePage(pages_.Of(mm::PageId(id)).bytes());
    }
  }
  virtual ~ClusterDatabase() = default;

  const Database& loaded() const { return *loaded_; }
  const mm::InitialPages& pages() const { return pages_; }
  const std::vector<RowVersion>& rows() const { return rows_; }
  // The pages as the reference has them.
  const mm::reference::ModelPages& model() const { return model_; }

  // A new cluster begins, with so many workers of so many calls.
  virtual void Reset(uint32_t workers, uint64_t calls) = 0;
  virtual CallList Generate(WorkerId worker, uint64_t calls, uint64_t seed) const = 0;
  virtual Outcome Run(ClusterContext& context, const Call& call) = 0;
  // Its tables, without rows.
  virtual std::unique_ptr<Database> EmptyTables() const = 0;
  // Of rows that a cluster has left, and of readers that it has acknowledged: what the workload finds wrong.
  virtual std::optional<std::string> Inconsistency(const Database& left, std::span<const TxnId> acknowledged) const = 0;

 private:
  const std::unique_ptr<Database> loaded_;
  const mm::InitialPages pages_;
  const std::vector<RowVersion> rows_;
  mm::reference::ModelPages model_;
};

// Made when it is first asked for, and kept.
ClusterDatabase& DatabaseOf(const ClusterSetup& setup);

}  // namespace dbx::sim
