#include "benchmarks/sysbench/sysbench.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "benchmarks/parallel_load.h"

namespace dbx {
namespace {

constexpr uint64_t kRowsPerLoadTask = 4096;
constexpr uint64_t kPadSalt = 0x706164;

SysbenchConfig Checked(const SysbenchConfig& config) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw Error(ExitStatus::kUsage, what);
  };
  require(config.masters >= 1 && config.masters <= Sysbench::kMastersMax, "SYSBENCH has 1 to 16 masters");
  require(config.workers_per_master >= 1, "SYSBENCH needs a worker for each master");
  require(config.tables >= 1 && config.tables <= Sysbench::kTablesMax, "SYSBENCH_TABLES must be 1 to 256");
  require(config.rows >= Sysbench::kRangeRows && config.rows <= Sysbench::kRowsMax,
          "SYSBENCH_ROWS must be 100 to 2G: a range has 100 rows");
  require(config.sharing_perc <= 100, "SHARING must be 0 to 100 percent");
  return config;
}

// Bytes that follow from `state`.
void FillText(uint64_t state, std::span<char> text) {
  for (size_t at = 0; at < text.size(); at += sizeof state) {
    state = Mix64(state);
    std::memcpy(text.data() + at, &state, std::min(sizeof state, text.size() - at));
  }
}

}  // namespace

Sysbench::Sysbench(const SysbenchConfig& config) : config_(Checked(config)) {}

void Sysbench::FillC(uint64_t head, Row& row) {
  std::memcpy(row.c.data(), &head, sizeof head);
  FillText(head, std::span(row.c).subspan(sizeof head));
}

void Sysbench::FillPad(uint32_t table, uint32_t id, Row& row) { FillText(HashPair(kPadSalt + table, id), row.pad); }

uint64_t Sysbench::HeadOfC(const Row& row) {
  uint64_t head;
  std::memcpy(&head, row.c.data(), sizeof head);
  return head;
}

void Sysbench::CreateTables(Database& db) {
  for (uint32_t table = 0; table < table_count(); ++table) {
    Schema rows;
    rows.name = "SBTEST" + std::to_string(table);
    rows.columns = {{"K", offsetof(Row, k), sizeof(Row::k)},
                    {"C", offsetof(Row, c), sizeof(Row::c)},
                    {"PAD", offsetof(Row, pad), sizeof(Row::pad)}};
    rows.tuple_bytes = sizeof(Row);
    rows.expected_rows = config_.rows;
    rows.ordered = true;
    rows_.push_back(&db.CreateTable(std::move(rows)));
    Schema index;
    index.name = "K" + std::to_string(table);
    index.columns = {{"K", 0, sizeof(uint64_t)}};
    index.tuple_bytes = sizeof(uint64_t);
    index.expected_rows = config_.rows;
    index.ordered = true;
    indexes_.push_back(&db.CreateTable(std::move(index)));
  }
}

void Sysbench::Load(Database& db, uint64_t seed, uint32_t threads) {
  const uint64_t tasks_per_table = (config_.rows + kRowsPerLoadTask - 1) / kRowsPerLoadTask;
  RunLoadTasks(std::min(threads, db.workers()), tasks_per_table * table_count(), [&](WorkerId worker, uint64_t task) {
    const auto table = static_cast<uint32_t>(task / tasks_per_table);
    const uint64_t first = task % tasks_per_table * kRowsPerLoadTask;
    for (uint64_t id = first; id < std::min(config_.rows, first + kRowsPerLoadTask); ++id) {
      Row row{};
      const uint64_t hash = HashPair(HashPair(seed, table), id);
      row.k = WrapK(hash);
      FillC(Mix64(hash), row);
      FillPad(table, static_cast<uint32_t>(id), row);
      rows_[table]->LoadRow(worker, id, BytesOf(row));
      indexes_[table]->LoadRow(worker, IndexKey(row.k, static_cast<uint32_t>(id)), BytesOf(row.k));
    }
  });
}

Sysbench::Query Sysbench::Draw(Random& random, QueryKind kind, uint32_t master) const {
  const bool is_shared = random.Below(100) < config_.sharing_perc;
  const auto table = static_cast<uint32_t>(random.Below(config_.tables));
  return {kind, (is_shared ? shared_from() : master * config_.tables) + table,
          static_cast<uint32_t>(random.Below(config_.rows))};
}

CallList Sysbench::Generate(WorkerId worker, uint64_t count, uint64_t seed) const {
  const bool reads = config_.mix == SysbenchMix::kReadWrite;
  const uint32_t master = worker.value() / config_.workers_per_master % config_.masters;
  std::vector<QueryKind> kinds;
  if (reads) kinds.assign(kPoints, QueryKind::kPoint);
  if (reads) kinds.insert(kinds.end(), kRanges, QueryKind::kRange);
  // The last stands for two queries, a delete and an insert of the same id.
  kinds.insert(kinds.end(), {QueryKind::kIndexUpdate, QueryKind::kUpdate, QueryKind::kReplace});
  CallList list;
  list.storage.assign(count * (1 + kinds.size()), 0);
  list.calls.reserve(count);
  Random random(seed, worker.value());
  for (uint64_t i = 0; i < count; ++i) {
    const std::span<uint64_t> args(list.storage.data() + i * (1 + kinds.size()), 1 + kinds.size());
    for (size_t n = 0; n < kinds.size(); ++n) args[1 + n] = Draw(random, kinds[n], master).word();
    list.calls.push_back({reads ? kReadWrite : kWriteOnly, std::as_writable_bytes(args)});
  }
  return list;
}

bool Sysbench::ValidArgs(ProcedureId procedure, std::span<const std::byte> args) const {
  if (procedure != kWriteOnly && procedure != kReadWrite) return false;
  const size_t queries = 3 + (procedure == kReadWrite ? kPoints + kRanges : 0);
  if (args.size() != (1 + queries) * sizeof(uint64_t)) return false;
  for (size_t at = sizeof(TxnId); at < args.size(); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, args.data() + at, sizeof word);
    const Query query = Query::From(word);
    if (query.kind > QueryKind::kLast || query.table >= table_count() || query.id >= config_.rows) return false;
  }
  return true;
}

void Sysbench::PrefetchBuckets(const Call& call) const {
  for (size_t at = sizeof(TxnId); at < call.args.size(); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, call.args.data() + at, sizeof word);
    const Query query = Query::From(word);
    rows_[query.table]->PrefetchBucket(query.id);
  }
}

void Sysbench::PrefetchRows(const Call& call, WrittenRows written) const {
  for (size_t at = sizeof(TxnId); at < call.args.size(); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, call.args.data() + at, sizeof word);
    const Query query = Query::From(word);
    rows_[query.table]->PrefetchRow(query.id, written == WrittenRows::kNoTuple ? 0 : sizeof(Row));
  }
}

std::optional<std::string> Sysbench::InconsistencyOf(uint32_t table, const Database& db) const {
  const Table& rows = db.table(rows_[table]->id());
  const Table& index = db.table(indexes_[table]->id());
  const auto is_present = [](const dbx::Row& row) {
    return (row.control.load(std::memory_order_relaxed) & dbx::Row::kAbsent) == 0;
  };
  std::vector<Key> expected, entries;
  std::optional<std::string> failure;
  rows.ForEachRow([&](const dbx::Row& row) {
    if (!is_present(row)) return;
    Row tuple, whole{};
    std::memcpy(&tuple, rows.tuple(&row), sizeof tuple);
    FillC(HeadOfC(tuple), whole);
    FillPad(table, static_cast<uint32_t>(row.key), whole);
    expected.push_back(IndexKey(tuple.k, static_cast<uint32_t>(row.key)));
    if (row.key >= config_.rows || tuple.k >= config_.rows || tuple.c != whole.c || tuple.pad != whole.pad) {
      failure = rows.schema().name + " id " + std::to_string(row.key) + ": bytes that no transaction writes";
    }
  });
  if (failure) return failure;
  if (expected.size() != config_.rows) {
    return rows.schema().name + " has " + std::to_string(expected.size()) + " rows instead of " +
           std::to_string(config_.rows);
  }
  index.ForEachRow([&](const dbx::Row& row) {
    if (is_present(row)) entries.push_back(row.key);
  });
  std::sort(expected.begin(), expected.end());
  std::sort(entries.begin(), entries.end());
  if (entries != expected) return "the index of " + rows.schema().name + " on k does not have its rows' values";
  return std::nullopt;
}

std::optional<std::string> Sysbench::Inconsistency(const Database& db) const {
  for (uint32_t table = 0; table < table_count(); ++table) {
    if (auto failure = InconsistencyOf(table, db)) return failure;
  }
  return std::nullopt;
}

}  // namespace dbx
