// How a transaction under two-phase locking changes the rows that it has locked: in place, with before-images by which
// an abort undoes the changes (undo_log.h); or through its log, which appends a record of each change when it makes it
// and takes the changes back itself (LogTraits::appends_changes). Owned by one worker.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "concurrency_control/log_observer.h"
#include "concurrency_control/undo_log.h"
#include "storage/table.h"
#include "storage/touched_words.h"
#include "storage/tuple.h"

namespace dbx {

template <class Log>
class Changes {
 public:
  Changes(Log&, typename Log::TxnState&) {}

  // Before the first change of a transaction.
  void Clear() { undo_.Clear(); }

  template <class Change>
  void Update(Table& table, Row* row, Change&& change) {
    TupleWriter<UndoLog> tuple(table.tuple_in(row), undo_);
    change(tuple);
  }
  // `had_bytes`: the row holds bytes that an abort must restore.
  void Insert(Table& table, Row* row, std::span<const std::byte> tuple, bool had_bytes) {
    std::byte* const at = table.tuple_in(row);
    if (had_bytes) undo_.BeforeChange(at, tuple.size());
    std::memcpy(at, tuple.data(), tuple.size());
  }
  // The presence of a row changes when the transaction commits.
  void Delete(Table&, Row*) {}
  void Undo() { undo_.Undo(); }

 private:
  UndoLog undo_;
};

template <class Log>
requires kAppendsChanges<Log>
class Changes<Log> {
 public:
  Changes(Log& log, typename Log::TxnState& log_state) : log_(log), log_state_(log_state) {}

  void Clear() {}

  // The procedure changes a copy: the record is that of the whole change, and no procedure runs under a latch.
  template <class Change>
  void Update(Table& table, Row* row, Change&& change) {
    const size_t bytes = table.tuple_bytes();
    if (copy_.size() < bytes) copy_.resize(std::max(bytes, kCopyBytesMin));
    std::memcpy(copy_.data(), table.tuple_in(row), bytes);
    touched_.Start(copy_.data(), bytes);
    TupleWriter<TouchedWords> tuple(copy_.data(), touched_);
    change(tuple);
    log_.Change(log_state_, table, row, copy_.data(), &touched_);
  }
  void Insert(Table& table, Row* row, std::span<const std::byte> tuple, bool) {
    log_.Change(log_state_, table, row, tuple.data(), nullptr);
  }
  void Delete(Table& table, Row* row) { log_.Change(log_state_, table, row, nullptr, nullptr); }
  void Undo() { log_.TakeBack(log_state_); }

 private:
  static constexpr size_t kCopyBytesMin = 4096;

  Log& log_;
  typename Log::TxnState& log_state_;
  std::vector<std::byte> copy_;
  TouchedWords touched_;  // of copy_
};

}  // namespace dbx
