#include "system/replay/row_chains.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "base/parallel.h"
#include "base/random.h"
#include "logging/records/basic_records.h"
#include "logging/records/record_type.h"
#include "system/replay/row_change_fault.h"

namespace dbx {

RowChains::RowChains(Database& database) : database_(database), workers_(database.workers()) {
  for (size_t i = 0; i < database.table_count(); ++i) tables_.push_back(std::make_unique<TableChains>());
}

// The database may live on.
RowChains::~RowChains() {
  for (size_t i = 0; i < tables_.size(); ++i) database_.table(Database::IdOf(i)).TakeRowsFrom(nullptr);
}

RowChains::Shard& RowChains::ShardOf(const Table& table, Key key) {
  return tables_[table.id().value()]->shards[Mix64(key) % kShards];
}

void RowChains::ForEachShard(uint32_t threads, size_t table, auto&& visit) {
  const uint32_t used = std::min(threads, database_.workers());
  RunInParallel(used, [&](uint32_t thread) {
    for (size_t shard = thread; shard < kShards; shard += used) visit(WorkerId(thread), tables_[table]->shards[shard]);
  });
}

// ---- The pass over the logs --------------------------------------------------------------------------------

void RowChains::Note(const TxnRecord& record, const LogSource& source) {
  if (record.kind != format::RecordKind::kRowChanges) {
    ThrowDamaged(source, record.lsn, "a transaction without chains of rows");
  }
  if (const char* const why = FaultOfChanges(record, database_)) ThrowDamaged(source, record.lsn, why);
  RowChanges changes(record.payload);
  for (RowChange change; changes.Next(change);) NoteChange(record, source, change);
}

void RowChains::NoteChange(const TxnRecord& record, const LogSource& source, const RowChange& change) {
  Shard& shard = ShardOf(database_.table(change.table), change.key);
  Last& newest = shard.chains[change.key].newest;
  const uint32_t run = runs_ - 1;
  const RowLink before = newest.run == run ? newest.link : RowLink();
  // A transaction's last change of a row is its only one (ForEachChange).
  if (before == RowLink(record.lsn)) ThrowDamaged(source, record.lsn, "it changes a row twice");
  // An absent row may have left the index, and its metadata with it.
  const bool may_be_none = !change.needs_previous() && change.previous.is_none();
  if (change.previous != before && !may_be_none) {
    ThrowDamaged(source, record.lsn, "a change does not name its row's previous record");
  }
  if (newest.run != run) {
    if (newest.run != kNoRun) {
      shard.older.push_back(newest);
      newest.older = static_cast<uint32_t>(shard.older.size() - 1);
    }
    newest.run = run;
  }
  newest.link = RowLink(record.lsn);
}

void RowChains::TakeOut(uint32_t threads) {
  for (size_t i = 0; i < tables_.size(); ++i) {
    Table& table = database_.table(Database::IdOf(i));
    Atomic<uint64_t>& left = tables_[i]->left;
    ForEachShard(threads, i, [&](WorkerId, Shard& shard) {
      for (auto& [key, chain] : shard.chains) chain.base = table.TakeOut(key);
      left.fetch_add(shard.chains.size(), std::memory_order_relaxed);
    });
    rows_at_start_ += left.load(std::memory_order_relaxed);
    table.TakeRowsFrom(this);
  }
}

// ---- On demand ---------------------------------------------------------------------------------------------

bool RowChains::HasRowsOf(const Table& table) const {
  // Acquire: the rows that have entered the index are found there.
  return tables_[table.id().value()]->left.load(std::memory_order_acquire) != 0;
}

bool RowChains::is_complete() const {
  return std::all_of(tables_.begin(), tables_.end(),
                     [](const auto& chains) { return chains->left.load(std::memory_order_acquire) == 0; });
}

void RowChains::EnsureRow(WorkerId worker, Table& table, Key key) {
  Shard& shard = ShardOf(table, key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.chains.find(key);
  if (found == shard.chains.end()) return;
  EndChain(worker, table, shard, found);
}

void RowChains::EnsureRange(WorkerId worker, Table& table, Key, Key) {
  for (Shard& shard : tables_[table.id().value()]->shards) RebuildAllOf(worker, table, shard);
}

void RowChains::RebuildAllOf(WorkerId worker, Table& table, Shard& shard) {
  const std::lock_guard lock(shard.mutex);
  while (!shard.chains.empty()) EndChain(worker, table, shard, shard.chains.begin());
}

void RowChains::EndChain(WorkerId worker, Table& table, Shard& shard, Chains::iterator chain) {
  Rebuild(worker, table, chain->first, shard, chain->second);
  shard.chains.erase(chain);
  // Release: a worker that finds no chain left finds the row in the index.
  tables_[table.id().value()]->left.fetch_sub(1, std::memory_order_release);
}

void RowChains::EnsureAll(uint32_t threads) {
  is_final_.store(true, std::memory_order_relaxed);
  for (size_t i = 0; i < tables_.size(); ++i) {
    Table& table = database_.table(Database::IdOf(i));
    ForEachShard(threads, i, [&](WorkerId id, Shard& shard) { RebuildAllOf(id, table, shard); });
  }
}

void RowChains::Rebuild(WorkerId id, Table& table, Key key, const Shard& shard, const Chain& chain) {
  Worker& worker = workers_[id.value()];
  Walk(worker, table, key, shard, chain);
  bool present = chain.base != nullptr;
  worker.tuple.resize(table.tuple_bytes());
  std::byte* const tuple = chain.base != nullptr ? table.tuple_in(chain.base) : worker.tuple.data();
  for (auto step = worker.steps.rbegin(); step != worker.steps.rend(); ++step) {
    if (step->change.op == format::RowChangeOp::kDelete) {
      present = false;
      continue;
    }
    if (step->change.op == format::RowChangeOp::kUpdate && !present) {
      Refuse(step->run, step->record, "it changes a row that is not there");
    }
    present = true;
    step->change.bytes = std::span(worker.bytes).subspan(step->bytes_at, step->change.bytes.size());
    ApplyTo(tuple, table.tuple_bytes(), step->change);
  }
  if (present && chain.base != nullptr) {
    table.PutBack(chain.base);
  } else if (present) {
    table.LoadRow(id, key, worker.tuple);
  } else if (chain.base != nullptr) {
    table.Recycle(id, chain.base);
  }
  if (!is_final_.load(std::memory_order_relaxed)) rebuilt_on_demand_.fetch_add(1, std::memory_order_relaxed);
}

void RowChains::Walk(Worker& worker, const Table& table, Key key, const Shard& shard, const Chain& chain) {
  worker.steps.clear();
  worker.bytes.clear();
  for (const Last* last = &chain.newest;;) {
    for (RowLink link = last->link; !link.is_none();) {
      const Lsn record = link.record();
      const RowChange change = ReadChange(worker, table, key, last->run, record);
      worker.steps.push_back({change, worker.bytes.size(), last->run, record});
      worker.bytes.insert(worker.bytes.end(), change.bytes.begin(), change.bytes.end());
      if (!change.needs_previous()) return;
      link = change.previous;
    }
    if (last->older == kNoRun) return;
    last = &shard.older[last->older];
  }
}

// Its bytes are valid until the next one is read.
RowChange RowChains::ReadChange(Worker& worker, const Table& table, Key key, uint32_t run, Lsn record) {
  const std::span<const std::byte> bytes = logs_[run].Read(record, worker.buffer);
  // Relaxed: a counter with one writer.
  worker.records_read.store(worker.records_read.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  format::RecordHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::span<const std::byte> body = bytes.subspan(sizeof header);
  const size_t begin = records::VectorEnd(header);
  if (header.kind != static_cast<uint8_t>(format::RecordKind::kRowChanges) || body.size() < begin) {
    Refuse(run, record, "a transaction without chains of rows");
  }
  RowChanges changes(body.subspan(begin));
  for (RowChange change; changes.Next(change);) {
    if (change.table != table.id() || change.key != key) continue;
    if (const char* const why = FaultOfChange(change, record, database_)) Refuse(run, record, why);
    return change;
  }
  Refuse(run, record, "it does not change the row whose chain leads here");
}

void RowChains::Refuse(uint32_t run, Lsn record, const char* why) const {
  ThrowDamaged(logs_[run].source(), record, why);
}

uint64_t RowChains::records_read() const {
  uint64_t records = 0;
  for (const Worker& worker : workers_) records += worker.records_read.load(std::memory_order_relaxed);
  return records;
}

}  // namespace dbx
