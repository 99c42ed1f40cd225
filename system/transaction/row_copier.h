// Copies the rows of a database beside the transactions of a run, as they have committed them: a further worker that
// reads some rows in each of its read-only transactions, under the concurrency control of the run. So no row is copied
// that a transaction is changing, and a row that one holds locked is waited for, or tried again.
//
// Of different batches the moments differ. All that a transaction wrote which had released its locks, or installed its
// versions, before the copying of a table began is copied, or what was written later.
//
// Threads: one, whose id is above those of the workers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/epoch.h"
#include "base/spin.h"
#include "system/transaction/row_source.h"
#include "system/transaction/transaction.h"

namespace dbx {

template <ConcurrencyControl Cc, LogScheme Log>
class RowCopier final : public RowSource {
 public:
  RowCopier(WorkerId id, typename Cc::Shared& shared, Log& log, Database& database)
      : id_(id), shared_(shared), log_(log), database_(database), transaction_(shared, log, log_state_, id) {
    if constexpr (Log::kTraits.logs) log_.InitWorker(log_state_, id);
  }

  void CopyTable(TableId id, const Take& take, const std::function<void()>& before_batch) override {
    Table& table = database_.table(id);
    Table::KeyPosition position;
    while (!position.at_end) {
      keys_.clear();
      {
        const EpochSection section(shared_.clock, id_);
        table.NextKeys(position, keys_);
      }
      for (size_t first = 0; first < keys_.size(); first += kRowsPerTransaction) {
        const size_t count = std::min(kRowsPerTransaction, keys_.size() - first);
        Copy(table, std::span(keys_).subspan(first, count), take, before_batch);
      }
    }
  }

 private:
  static constexpr size_t kRowsPerTransaction = 16;

  void Copy(Table& table, std::span<const Key> keys, const Take& take, const std::function<void()>& before_batch) {
    const TxnId txn = TxnId::Make(id_, sequence_++);
    before_batch();
    if (TryToRead(txn, table, keys)) return HandOver(table, keys, take);
    // Some row is contended: each by itself.
    for (size_t i = 0; i < keys.size(); ++i) {
      const TxnId single = TxnId::Make(id_, sequence_++);
      SpinWait wait;
      while (!TryToRead(single, table, keys.subspan(i, 1))) {
        wait.Wait();
        before_batch();
      }
      HandOver(table, keys.subspan(i, 1), take);
    }
  }

  bool TryToRead(TxnId txn, Table& table, std::span<const Key> keys) {
    const size_t bytes = table.tuple_bytes();
    images_.resize(keys.size() * bytes);
    const auto read = [&](auto& transaction) {
      present_.clear();
      for (size_t i = 0; i < keys.size(); ++i) {
        const std::span<std::byte> to = std::span(images_).subspan(i * bytes, bytes);
        const Outcome outcome = transaction.Read(table, keys[i], [&](const auto& tuple) { tuple.CopyAt(0, to); });
        if (outcome == Outcome::kConflict) return outcome;
        present_.push_back(outcome == Outcome::kOk);
      }
      return Outcome::kOk;
    };
    const EpochSection section(shared_.clock, id_);
    return transaction_.RunReadOnly(txn, read);
  }

  void HandOver(const Table& table, std::span<const Key> keys, const Take& take) const {
    const size_t bytes = table.tuple_bytes();
    for (size_t i = 0; i < keys.size(); ++i) {
      if (present_[i]) take(table.id(), keys[i], std::span(images_).subspan(i * bytes, bytes));
    }
  }

  const WorkerId id_;
  typename Cc::Shared& shared_;
  Log& log_;
  Database& database_;
  typename Log::TxnState log_state_;
  Transaction<Cc, Log> transaction_;
  uint64_t sequence_ = 0;
  std::vector<Key> keys_;
  std::vector<std::byte> images_;  // of the keys of a transaction, one behind the other
  std::vector<bool> present_;
};

}  // namespace dbx
