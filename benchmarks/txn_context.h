// The calls that a stored procedure may make. Transaction (execution), ReplayTransaction (recovery) and the reference
// replay in tests/ model it, so that a procedure is written once.
//
// A procedure is deterministic in its arguments: no clock, no random number, no thread id, no row
// address, no iteration order that depends on any of them. Its transaction id is part of the arguments.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/outcome.h"
#include "base/types.h"
#include "storage/scan_order.h"

namespace dbx {

class Table;

// A context gives, for a table and a key:
//   Read(table, key, visit)      visit(const auto& tuple). It may run more than once and on a torn tuple
//                                (the last run is on a stable one), so it only assigns its outputs.
//   Update(table, key, change)   change(auto& tuple): Get and Set columns. It runs once, on a stable tuple, and sees
//                                this transaction's own writes.
//   Insert(table, key, tuple)    the whole tuple, schema.tuple_bytes long
//   Delete(table, key)
//   Scan(table, low, high, order, visit)   of an ordered table (Schema::ordered): visit(Key, const auto& tuple) -> bool
//                                runs once for each row with low <= key <= high, in the order of keys, on a stable
//                                tuple; false ends the scan. No phantoms: the visited rows, and that there are no
//                                others up to where the scan ended, are valid when the transaction commits. It sees
//                                this transaction's own writes. `visit` must not call the context.
// A context whose Read may see an older version of a row, or does not keep others from changing it before the
// transaction commits, has ReadForUpdate too, for rows that the procedure is about to write: it calls it by the
// function ReadForUpdate below. Each returns kOk, kNotFound (Read, Update, Delete), kExists (Insert) or kConflict. A
// procedure hands on kConflict at once. It may hand on kNotFound and kExists too, which ends the transaction without
// effect.
namespace internal {
struct AnyVisitor {
  void operator()(const auto&) const {}
};
struct AnyChange {
  void operator()(auto&) const {}
};
struct AnyScanVisitor {
  bool operator()(Key, const auto&) const { return true; }
};
}  // namespace internal

template <class C>
concept TxnContext = requires(C& ctx, Table& table, Key key, std::span<const std::byte> tuple) {
  { ctx.Read(table, key, internal::AnyVisitor{}) } -> std::same_as<Outcome>;
  { ctx.Update(table, key, internal::AnyChange{}) } -> std::same_as<Outcome>;
  { ctx.Insert(table, key, tuple) } -> std::same_as<Outcome>;
  { ctx.Delete(table, key) } -> std::same_as<Outcome>;
  { ctx.Scan(table, key, key, ScanOrder::kAscending, internal::AnyScanVisitor{}) } -> std::same_as<Outcome>;
};

// Read of a row that the transaction is about to write: no other one writes it in between.
Outcome ReadForUpdate(TxnContext auto& ctx, Table& table, Key key, auto&& visit) {
  if constexpr (requires { ctx.ReadForUpdate(table, key, visit); }) {
    return ctx.ReadForUpdate(table, key, visit);
  } else {
    return ctx.Read(table, key, visit);
  }
}

}  // namespace dbx
