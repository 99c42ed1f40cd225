// The part of a log scheme that a concurrency control sees: whom it tells what was read and written. The schemes in
// logging/ model it; neither folder includes the other.
#pragma once

#include <concepts>
#include <cstddef>

#include "storage/row.h"

namespace dbx {

template <class L>
concept LogObserver = requires(L& log, typename L::TxnState& state, const RowRef& row, Meta meta) {
  // The version that the row's metadata belongs to was read, or is about to be overwritten by the caller who holds its
  // lock.
  log.OnRead(state, row);
  log.OnWrite(state, row);
  // The keys from `low` to `high` of an ordered table are about to be read, whether or not there are rows. What OnRead
  // is told of is what is found there: rows, and leaves, which have a row's metadata for what has no row.
  log.OnScan(state, row.table, row.key, row.key);
  // Metadata for a row that had none, no smaller than any that was ever forgotten for it.
  log.FreshMeta(meta);
  // Raises `meta` to cover another: whoever depends on it then depends on what the other stands for. PublishRead may
  // run beside it.
  log.Absorb(meta, meta);
  // May the metadata be dropped and later be replaced by FreshMeta?
  { log.Forgettable(meta) } -> std::convertible_to<bool>;
  // Whole words; all zero, it depends on nothing. A copy of it, word by word, says the same.
  { log.meta_bytes() } -> std::same_as<size_t>;
  // Told by a concurrency control of many versions: no transaction has, or will have, a snapshot below the timestamp. A
  // log that is replayed in many versions passes it on to recovery.
  log.RaiseWatermark(Timestamp());
};

}  // namespace dbx
