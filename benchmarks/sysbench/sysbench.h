// SYSBENCH: sysbench's OLTP transactions on tables with a secondary index, with a degree of sharing among masters
// (Taurus MM, PVLDB 16(12), 2023, section 7.1; sysbench's oltp_write_only.lua and oltp_read_write.lua).
//
// The tables are divided into a group for each master, and one more that all share: sharing_perc percent of the queries
// go to a table of the shared group, the others to one of the master's own. A table has ids from 0 on; a row is
// k, c (120 bytes), pad (60 bytes). Its index on k is a table of its own, whose key is (k, id).
//
//   write-only   k of one row += 1 (and its entry in the index moves); c of one row changes; one row is deleted and
//                inserted again, with another k and c
//   read-write   10 rows by id, 4 ranges of 100 ids, and then the same writes
//
// The original draws c and the new k at random; here both are hashes of the old value and the transaction id, so that
// writes do not commute, and a wrong order of replay shows. All ids are uniform. The arguments are the TxnId and a word
// for each query: its kind, table and id.
//
// Threads: Generate, Run and ValidArgs may run in any number of threads after Load.
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "benchmarks/workload.h"
#include "storage/tuple.h"

namespace dbx {

enum class SysbenchMix : uint8_t { kWriteOnly, kReadWrite };

struct SysbenchConfig {
  uint32_t masters = 1;
  uint32_t workers_per_master = 1;  // worker w is of master w / workers_per_master
  uint32_t tables = 1;              // of a group
  uint64_t rows = 10'000;           // of a table
  uint32_t sharing_perc = 0;        // percent of the queries
  SysbenchMix mix = SysbenchMix::kReadWrite;
};

class Sysbench {
 public:
  static constexpr uint32_t kMastersMax = 16;
  static constexpr uint32_t kTablesMax = 256;
  static constexpr uint64_t kRowsMax = uint64_t{1} << 31;
  static constexpr uint32_t kRangeRows = 100;
  static constexpr uint32_t kPoints = 10;
  static constexpr uint32_t kRanges = 4;
  static constexpr ProcedureId kWriteOnly{0};
  static constexpr ProcedureId kReadWrite{1};
  static constexpr std::array kProcedureNames = {"write_only", "read_write"};

  struct Row {
    uint64_t k;
    std::array<char, 120> c;
    std::array<char, 60> pad;
    uint32_t unused;
  };
  static_assert(sizeof(Row) == 192);

  enum class QueryKind : uint8_t { kPoint, kRange, kIndexUpdate, kUpdate, kReplace, kLast = kReplace };
  // One word of the arguments: the kind in bits 60 to 63, the table in bits 32 to 59, the id below.
  struct Query {
    QueryKind kind;
    uint32_t table;
    uint32_t id;

    static Query From(uint64_t word) {
      return {QueryKind(word >> 60), static_cast<uint32_t>(word >> 32) & 0x0fff'ffff, static_cast<uint32_t>(word)};
    }
    uint64_t word() const { return uint64_t{static_cast<uint8_t>(kind)} << 60 | uint64_t{table} << 32 | id; }
  };
  static Key IndexKey(uint64_t k, uint32_t id) { return k << 32 | id; }

  // Throws Error(kUsage) where a value is out of range.
  explicit Sysbench(const SysbenchConfig& config);

  // The groups' tables one after the other, the shared group last; each table is followed by its index.
  void CreateTables(Database& db);
  void Load(Database& db, uint64_t seed, uint32_t threads);
  void Adopt(Database&, uint64_t) {}
  CallList Generate(WorkerId worker, uint64_t count, uint64_t seed) const;
  // What is deleted is inserted again.
  void Prefault(WorkerId, uint64_t) {}

  template <TxnContext Ctx>
  Outcome Run(Ctx& ctx, ProcedureId procedure, std::span<const std::byte> args);

  bool ValidArgs(ProcedureId procedure, std::span<const std::byte> args) const;
  void PrefetchBuckets(const Call& call) const;
  void PrefetchRows(const Call& call, WrittenRows written) const;

  // Every id has its row, with a pad and a c as transactions write them, and exactly one entry in the index.
  std::optional<std::string> Inconsistency(const Database& db) const;

  uint32_t table_count() const { return (config_.masters + 1) * config_.tables; }
  // From here on tables are shared.
  uint32_t shared_from() const { return config_.masters * config_.tables; }

 private:
  template <TxnContext Ctx>
  Outcome RunQuery(Ctx& ctx, const Query& query, TxnId txn);
  template <TxnContext Ctx>
  Outcome ReadRange(Ctx& ctx, const Query& query);
  template <TxnContext Ctx>
  Outcome UpdateIndexed(Ctx& ctx, const Query& query);
  template <TxnContext Ctx>
  Outcome Replace(Ctx& ctx, const Query& query, TxnId txn);
  template <TxnContext Ctx>
  Outcome MoveEntry(Ctx& ctx, uint32_t table, uint32_t id, uint64_t from, uint64_t to);

  // c is a function of its first 8 bytes, pad one of table and id.
  static void FillC(uint64_t head, Row& row);
  static void FillPad(uint32_t table, uint32_t id, Row& row);
  static uint64_t HeadOfC(const Row& row);
  static std::span<const std::byte> BytesOf(const Row& row) { return std::as_bytes(std::span(&row, 1)); }
  static std::span<const std::byte> BytesOf(const uint64_t& k) { return std::as_bytes(std::span(&k, 1)); }
  uint64_t WrapK(uint64_t k) const { return k % config_.rows; }

  Query Draw(Random& random, QueryKind kind, uint32_t master) const;
  std::optional<std::string> InconsistencyOf(uint32_t table, const Database& db) const;

  SysbenchConfig config_;
  std::vector<Table*> rows_;
  std::vector<Table*> indexes_;
};

template <TxnContext Ctx>
Outcome Sysbench::Run(Ctx& ctx, ProcedureId, std::span<const std::byte> args) {
  TxnId txn;
  std::memcpy(&txn, args.data(), sizeof txn);
  for (size_t at = sizeof txn; at < args.size(); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, args.data() + at, sizeof word);
    const Outcome outcome = RunQuery(ctx, Query::From(word), txn);
    if (outcome != Outcome::kOk) return outcome;
  }
  return Outcome::kOk;
}

template <TxnContext Ctx>
Outcome Sysbench::RunQuery(Ctx& ctx, const Query& query, TxnId txn) {
  switch (query.kind) {
    case QueryKind::kPoint: {
      uint64_t head = 0;
      const Outcome outcome = ctx.Read(*rows_[query.table], query.id,
                                       [&](const auto& row) { head = row.template GetAt<uint64_t>(offsetof(Row, c)); });
      asm volatile("" : : "r"(head));
      return outcome;
    }
    case QueryKind::kRange:
      return ReadRange(ctx, query);
    case QueryKind::kIndexUpdate:
      return UpdateIndexed(ctx, query);
    case QueryKind::kUpdate:
      return ctx.Update(*rows_[query.table], query.id, [&](auto& row) {
        Row changed{};
        FillC(HashPair(row.template GetAt<uint64_t>(offsetof(Row, c)), txn.value), changed);
        row.Set(&Row::c, changed.c);
      });
    case QueryKind::kReplace:
      return Replace(ctx, query, txn);
  }
  return Outcome::kNotFound;
}

template <TxnContext Ctx>
Outcome Sysbench::ReadRange(Ctx& ctx, const Query& query) {
  const Key last = std::min<uint64_t>(uint64_t{query.id} + kRangeRows, config_.rows) - 1;
  uint64_t sum = 0;
  const Outcome outcome =
      ctx.Scan(*rows_[query.table], query.id, last, ScanOrder::kAscending, [&](Key, const auto& row) {
        sum += row.template GetAt<uint64_t>(offsetof(Row, k));
        return true;
      });
  asm volatile("" : : "r"(sum));
  return outcome;
}

template <TxnContext Ctx>
Outcome Sysbench::MoveEntry(Ctx& ctx, uint32_t table, uint32_t id, uint64_t from, uint64_t to) {
  if (from == to) return Outcome::kOk;
  const Outcome outcome = ctx.Delete(*indexes_[table], IndexKey(from, id));
  if (outcome != Outcome::kOk) return outcome;
  return ctx.Insert(*indexes_[table], IndexKey(to, id), BytesOf(to));
}

template <TxnContext Ctx>
Outcome Sysbench::UpdateIndexed(Ctx& ctx, const Query& query) {
  uint64_t before = 0;
  const Outcome outcome = ctx.Update(*rows_[query.table], query.id, [&](auto& row) {
    before = row.template GetAt<uint64_t>(offsetof(Row, k));
    row.template SetAt<uint64_t>(offsetof(Row, k), WrapK(before + 1));
  });
  if (outcome != Outcome::kOk) return outcome;
  return MoveEntry(ctx, query.table, query.id, before, WrapK(before + 1));
}

template <TxnContext Ctx>
Outcome Sysbench::Replace(Ctx& ctx, const Query& query, TxnId txn) {
  Row row{};
  uint64_t before = 0, head = 0;
  Outcome outcome = ReadForUpdate(ctx, *rows_[query.table], query.id, [&](const auto& read) {
    before = read.template GetAt<uint64_t>(offsetof(Row, k));
    head = read.template GetAt<uint64_t>(offsetof(Row, c));
  });
  if (outcome != Outcome::kOk) return outcome;
  outcome = ctx.Delete(*rows_[query.table], query.id);
  if (outcome != Outcome::kOk) return outcome;
  const uint64_t hash = HashPair(head, txn.value);
  row.k = WrapK(hash);
  FillC(Mix64(hash), row);
  FillPad(query.table, query.id, row);
  outcome = ctx.Insert(*rows_[query.table], query.id, BytesOf(row));
  if (outcome != Outcome::kOk) return outcome;
  return MoveEntry(ctx, query.table, query.id, before, row.k);
}

static_assert(Workload<Sysbench>);

}  // namespace dbx
