// YCSB: one table of equal fields, transactions that read or write whole rows under a Zipf distribution, or scan them.
//
// A call's arguments are its TxnId and one word per access: the key, and kWriteFlag for a write or kScanFlag for a
// scan. A read loads the first 8 bytes of each field. A write replaces them by a hash of the old bytes and the
// transaction id, so that writes do not commute and a wrong order of replay shows. A scan reads scan_len rows from the
// key on, up to the last one; the table must be ordered then.
// Threads: Generate, Run, ValidArgs and the prefetches may run in any number of threads after Load.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "base/random.h"
#include "base/zipf.h"
#include "benchmarks/workload.h"

namespace dbx {

struct YcsbConfig {
  uint64_t rows = 10'000;
  double theta = 0.6;
  double read_perc = 0.5;  // chance that an access is a read
  double scan_perc = 0;    // or a scan; else it is a write
  double write_keys = 1;   // share of the rows that are written
  uint32_t scan_len = 20;  // rows
  uint32_t req_per_query = 2;
  uint32_t field_per_tuple = 10;
};

class Ycsb {
 public:
  static constexpr uint32_t kFieldBytes = 100;
  static constexpr uint64_t kWriteFlag = uint64_t{1} << 63;
  static constexpr uint64_t kScanFlag = uint64_t{1} << 62;
  static constexpr uint64_t kFlags = kWriteFlag | kScanFlag;
  static constexpr ProcedureId kAccess{0};
  static constexpr std::array kProcedureNames = {"access"};
  static constexpr uint32_t kRequestsMax = 4096;
  static constexpr uint32_t kFieldsMax = 1024;
  static constexpr uint32_t kScanLenMax = 65536;

  // Throws Error(kUsage) where the values contradict each other.
  explicit Ycsb(const YcsbConfig& config);

  void CreateTables(Database& db);
  void Load(Database& db, uint64_t seed, uint32_t threads);
  void Adopt(Database&, uint64_t seed) { load_seed_ = seed; }
  CallList Generate(WorkerId worker, uint64_t count, uint64_t seed) const;
  // There are no inserts after the load.
  void Prefault(WorkerId, uint64_t) {}

  template <TxnContext Ctx>
  Outcome Run(Ctx& ctx, ProcedureId procedure, std::span<const std::byte> args);

  // Keys need not be distinct here: the procedure would still be right.
  bool ValidArgs(ProcedureId procedure, std::span<const std::byte> args) const;
  void PrefetchBuckets(const Call& call) const;
  void PrefetchRows(const Call& call, WrittenRows written) const;

  // The number of rows, and the bytes that no transaction writes (of every row in a table of up to a
  // million rows, of a fixed sample in a larger one).
  std::optional<std::string> Inconsistency(const Database& db) const;

 private:
  // The usual number of fields, known to the compiler so that it unrolls.
  static constexpr uint32_t kUsualFields = 10;

  // Calls visit(offset of the field) for each field.
  template <class Visit>
  void ForEachField(Visit&& visit) const {
    if (config_.field_per_tuple == kUsualFields) {
      for (size_t field = 0; field < kUsualFields; ++field) visit(field * kFieldBytes);
    } else {
      for (size_t field = 0; field < config_.field_per_tuple; ++field) visit(field * kFieldBytes);
    }
  }
  template <TxnContext Ctx>
  Outcome ReadRow(Ctx& ctx, Key key);
  template <TxnContext Ctx>
  Outcome WriteRow(Ctx& ctx, Key key, TxnId writer);
  template <TxnContext Ctx>
  Outcome ScanRows(Ctx& ctx, Key first);
  uint64_t ChooseRank(Random& random, std::span<const uint64_t> chosen_keys) const;
  // The row that is written in place of the drawn one, among those that are.
  Key WrittenKey(Key drawn, std::span<const uint64_t> chosen_keys) const;
  void FillInitialTuple(Key key, std::span<std::byte> tuple) const;
  bool UntouchedBytesEqual(const std::byte* tuple, std::span<const std::byte> initial) const;

  YcsbConfig config_;
  Zipf zipf_;
  Permutation key_of_rank_;
  const uint64_t written_rows_;  // the lowest keys
  uint64_t load_seed_ = 0;
  size_t prefetch_bytes_;        // of a tuple, up to the last byte that a transaction touches
  size_t whole_prefetch_bytes_;  // of all of it
  Table* table_ = nullptr;
};

template <TxnContext Ctx>
[[gnu::always_inline]] inline Outcome Ycsb::ReadRow(Ctx& ctx, Key key) {
  uint64_t sum = 0;
  const Outcome outcome = ctx.Read(*table_, key, [&](const auto& tuple) {
    uint64_t heads = 0;
    ForEachField([&](size_t at) { heads += tuple.template GetAt<uint64_t>(at); });
    sum = heads;
  });
  // The sum is unused; this keeps the compiler from dropping the loads.
  asm volatile("" : : "r"(sum));
  return outcome;
}

template <TxnContext Ctx>
Outcome Ycsb::WriteRow(Ctx& ctx, Key key, TxnId writer) {
  return ctx.Update(*table_, key, [&](auto& tuple) {
    ForEachField([&](size_t at) {
      tuple.template SetAt<uint64_t>(at, HashPair(tuple.template GetAt<uint64_t>(at), writer.value));
    });
  });
}

// Not inlined, so that transactions without scans are compiled as if there were none.
template <TxnContext Ctx>
[[gnu::noinline]] Outcome Ycsb::ScanRows(Ctx& ctx, Key first) {
  const Key last = std::min(first + config_.scan_len, config_.rows) - 1;
  uint64_t sum = 0;
  const Outcome outcome = ctx.Scan(*table_, first, last, ScanOrder::kAscending, [&](Key, const auto& tuple) {
    ForEachField([&](size_t at) { sum += tuple.template GetAt<uint64_t>(at); });
    return true;
  });
  asm volatile("" : : "r"(sum));
  return outcome;
}

template <TxnContext Ctx>
Outcome Ycsb::Run(Ctx& ctx, ProcedureId, std::span<const std::byte> args) {
  TxnId id;
  std::memcpy(&id, args.data(), sizeof id);
  for (size_t at = sizeof id; at < args.size(); at += sizeof(uint64_t)) {
    uint64_t access;
    std::memcpy(&access, args.data() + at, sizeof access);
    const Key key = access & ~kFlags;
    const Outcome outcome = (access & kWriteFlag) != 0  ? WriteRow(ctx, key, id)
                            : (access & kScanFlag) != 0 ? ScanRows(ctx, key)
                                                        : ReadRow(ctx, key);
    if (outcome != Outcome::kOk) return outcome;
  }
  return Outcome::kOk;
}

static_assert(Workload<Ycsb>);

}  // namespace dbx
