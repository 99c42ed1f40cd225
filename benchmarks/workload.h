// The contract of a workload. Models: Ycsb, Tpcc, TestWorkload, Sms.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "benchmarks/txn_context.h"
#include "storage/database.h"

namespace dbx {

// One call of a stored procedure. `args` is a plain struct, perhaps with an array behind it; its first 8 bytes are the
// TxnId, its size is a multiple of 8. A command record holds these bytes.
struct Call {
  ProcedureId procedure;
  std::span<std::byte> args;

  TxnId txn_id() const {
    TxnId id;
    std::memcpy(&id, args.data(), sizeof id);
    return id;
  }
  void set_txn_id(TxnId id) { std::memcpy(args.data(), &id, sizeof id); }
};

// The calls of one worker, generated before the measured interval and reused in turn when the run is
// longer than the list; the worker writes a fresh TxnId into a call each time it runs it.
struct CallList {
  std::vector<Call> calls;
  // Holds the arguments; 8-byte aligned, as every args span is.
  std::vector<uint64_t> storage;
};

// The part of a written row that is accessed: the bytes that the procedure touches, or the whole row, because it is
// copied or logged. kNoTuple: nothing of any row's tuple, but what leads to it where it lies in a heap of versions.
enum class WrittenRows : uint8_t { kTouched, kWhole, kNoTuple };

// A context that stands for all contexts in the concept below.
struct ArchetypeContext {
  Outcome Read(Table&, Key, auto&&) { return Outcome::kOk; }
  Outcome Update(Table&, Key, auto&&) { return Outcome::kOk; }
  Outcome Insert(Table&, Key, std::span<const std::byte>) { return Outcome::kOk; }
  Outcome Delete(Table&, Key) { return Outcome::kOk; }
  Outcome Scan(Table&, Key, Key, ScanOrder, auto&&) { return Outcome::kOk; }
};

template <class W>
concept Workload = requires(W& w, const W& cw, Database& db, const Database& cdb, ArchetypeContext& ctx,
                            ProcedureId procedure, std::span<const std::byte> args, const Call& call, WorkerId worker,
                            uint64_t n) {
  // The procedures' names, by id.
  { W::kProcedureNames.size() } -> std::convertible_to<size_t>;
  { W::kProcedureNames[0] } -> std::convertible_to<const char*>;
  // Adds the workload's tables to an empty database, in a fixed order.
  { w.CreateTables(db) } -> std::same_as<void>;
  // Fills them, deterministically in `seed` for any number of threads. (db, seed, threads)
  { w.Load(db, n, 1u) } -> std::same_as<void>;
  // The tables hold a recovered database that was loaded with this seed, or will, as its rows are needed: builds the
  // rest, but for secondary indexes that are frozen already. (db, seed)
  { w.Adopt(db, n) } -> std::same_as<void>;
  // `count` calls for one worker, deterministically in (seed, worker). (worker, count, seed)
  { cw.Generate(worker, n, n) } -> std::same_as<CallList>;
  // Runs a procedure. `args` has passed ValidArgs.
  { w.Run(ctx, procedure, args) } -> std::same_as<Outcome>;
  // Are these the well-formed arguments of a procedure? Called before a command record is replayed.
  { cw.ValidArgs(procedure, args) } -> std::same_as<bool>;
  // Backs the rows that `n` transactions of a worker will insert with pages, ahead of a measured interval.
  { w.Prefault(worker, n) } -> std::same_as<void>;
  // Hints for a call that runs soon: first the index buckets, a few calls later the rows. The call has the TxnId that
  // it will run under only if W has a member kKeysFollowFromId.
  { cw.PrefetchBuckets(call) } -> std::same_as<void>;
  { cw.PrefetchRows(call, WrittenRows::kWhole) } -> std::same_as<void>;
  // The workload's own consistency conditions, with no transaction running: the violated one, or nothing.
  { cw.Inconsistency(cdb) } -> std::same_as<std::optional<std::string>>;
};

}  // namespace dbx
