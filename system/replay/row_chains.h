// Instant recovery: single rows are rebuilt from the log when a transaction needs them (Graefe, Sauer, Haerder; the
// on-demand redo of single tuples in Arulraj, Perron, Pavlo, PVLDB 10(4), 2016, section 7.8).
//
// A restart loads the base, the state that the oldest run of the chain starts from. One pass over the logs (Note) then
// finds, of each row that they change, the last record in each run: a chain goes back from there, record by record, as
// each names the row's previous one (logging/row_changes.h), and where it ends in the newest run it goes on at the last
// record in an older one, then in the base. Rows with a chain leave the index (TakeOut), so a look-up that hits needs
// no test. One that misses asks here (storage/rows_on_demand.h):
//
//   walk      backwards, up to an insert or a delete, which need nothing before them, or to the base
//   apply     forwards, upon the row of the base, or upon the insert's tuple
//   publish   the row enters the index as one that was loaded; then its chain is forgotten
//
// all under the lock of the row's shard: a second look-up of the key waits, and finds the row in the index.
//
// Note checks that each record names the right one before: a chain with a gap would rebuild a wrong row.
//
// Threads: StartRun, Note and TakeOut by one at a time, before transactions; then workers, each under its own id.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "logging/record_at.h"
#include "logging/records/txn_record.h"
#include "logging/row_changes.h"
#include "storage/database.h"
#include "storage/rows_on_demand.h"

namespace dbx {

class RowChains final : public RowsOnDemand {
 public:
  // `database` is in the base's state, and outlives this.
  explicit RowChains(Database& database);
  ~RowChains() override;
  RowChains(const RowChains&) = delete;
  RowChains& operator=(const RowChains&) = delete;

  // The records that follow are of a further run, the next newer one.
  void StartRun() { ++runs_; }
  // Throws Error (kCorrupt) for a record that no transaction of the run can have left.
  void Note(const TxnRecord& record, const LogSource& source);
  // Where the records of the next run, oldest first, are to be read; its device outlives this.
  void ReadFrom(const LogSource& source, Lsn end) { logs_.emplace_back(source, end); }
  // All runs were read: from now on the tables take the rows from here.
  void TakeOut(uint32_t threads);

  bool HasRowsOf(const Table& table) const override;
  void EnsureRow(WorkerId worker, Table& table, Key key) override;
  // Of all of the table.
  void EnsureRange(WorkerId worker, Table& table, Key low, Key high) override;
  // By as many threads as the database has workers at most.
  void EnsureAll(uint32_t threads);
  bool is_complete() const;

  uint64_t rows_at_start() const { return rows_at_start_; }
  // So far, before EnsureAll was called; and records read for all.
  uint64_t rebuilt_on_demand() const { return rebuilt_on_demand_.load(std::memory_order_relaxed); }
  uint64_t records_read() const;

 private:
  static constexpr uint32_t kNoRun = std::numeric_limits<uint32_t>::max();
  static constexpr size_t kShards = 256;  // of a table

  // The last record of a row in a run.
  struct Last {
    RowLink link;
    uint32_t run = kNoRun;
    uint32_t older = kNoRun;  // place in Shard::older of the one in an older run
  };
  struct Chain {
    Row* base = nullptr;  // once it has left the index
    Last newest;
  };
  using Chains = std::unordered_map<Key, Chain>;
  struct alignas(kCacheLineBytes) Shard {
    Mutex mutex;
    Chains chains;
    std::vector<Last> older;
  };
  struct TableChains {
    std::vector<Shard> shards = std::vector<Shard>(kShards);
    Atomic<uint64_t> left{0};  // chains; release: of the rows that have entered the index
  };
  // A change of the row that is rebuilt; its bytes lie in Worker::bytes.
  struct Step {
    RowChange change;
    size_t bytes_at;
    uint32_t run;
    Lsn record;
  };
  struct alignas(kNoSharingBytes) Worker {
    RecordBuffer buffer;
    std::vector<Step> steps;  // newest first
    std::vector<std::byte> bytes;
    std::vector<std::byte> tuple;
    Atomic<uint64_t> records_read{0};
  };

  Shard& ShardOf(const Table& table, Key key);
  // visit(worker, shard) for each of the table, by as many threads as the database has workers at most.
  void ForEachShard(uint32_t threads, size_t table, auto&& visit);
  void NoteChange(const TxnRecord& record, const LogSource& source, const RowChange& change);
  // With the shard locked.
  void Rebuild(WorkerId id, Table& table, Key key, const Shard& shard, const Chain& chain);
  void EndChain(WorkerId worker, Table& table, Shard& shard, Chains::iterator chain);
  void RebuildAllOf(WorkerId worker, Table& table, Shard& shard);
  void Walk(Worker& worker, const Table& table, Key key, const Shard& shard, const Chain& chain);
  RowChange ReadChange(Worker& worker, const Table& table, Key key, uint32_t run, Lsn record);
  [[noreturn]] void Refuse(uint32_t run, Lsn record, const char* why) const;

  Database& database_;
  uint32_t runs_ = 0;
  std::deque<RecordsAt> logs_;  // by run
  std::vector<std::unique_ptr<TableChains>> tables_;
  std::vector<Worker> workers_;
  uint64_t rows_at_start_ = 0;
  Atomic<bool> is_final_{false};  // EnsureAll was called
  Atomic<uint64_t> rebuilt_on_demand_{0};
};

}  // namespace dbx
