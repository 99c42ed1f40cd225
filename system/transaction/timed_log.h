// A log scheme whose workers keep a ledger of their time (TIME_PARTS): the calls that a transaction makes of its log
// are timed separately. Transaction and Worker keep the ledger wherever the log's state has one.
#pragma once

#include "logging/contract.h"
#include "system/transaction/time_ledger.h"

namespace dbx {

template <LogScheme Log>
class TimedLog : public Log {
 public:
  struct TxnState : Log::TxnState {
    TimeLedger ledger;
  };

  using Log::Log;

  void Begin(TxnState& state) {
    In(state, TimePart::kMetadata, [&] { Log::Begin(state); });
  }
  void OnRead(TxnState& state, const RowRef& row) {
    In(state, TimePart::kMetadata, [&] { Log::OnRead(state, row); });
  }
  void OnWrite(TxnState& state, const RowRef& row) {
    In(state, TimePart::kMetadata, [&] { Log::OnWrite(state, row); });
  }
  void OnScan(TxnState& state, const Table& table, Key low, Key high) {
    In(state, TimePart::kMetadata, [&] { Log::OnScan(state, table, low, high); });
  }
  void PublishRead(TxnState& state, Meta meta) {
    In(state, TimePart::kMetadata, [&] { Log::PublishRead(state, meta); });
  }
  void PublishWrite(TxnState& state, Meta meta) {
    In(state, TimePart::kMetadata, [&] { Log::PublishWrite(state, meta); });
  }
  void SetCommitPoint(TxnState& state, typename Log::CommitPoint point) {
    In(state, TimePart::kMetadata, [&] { Log::SetCommitPoint(state, point); });
  }
  void SetReadOnlyPoint(TxnState& state, typename Log::CommitPoint point) {
    In(state, TimePart::kMetadata, [&] { Log::SetReadOnlyPoint(state, point); });
  }

  bool Reserve(TxnState& state, const LoggedTxn auto& txn) {
    return In(state, TimePart::kRecord, [&] { return Log::Reserve(state, txn); });
  }
  void Submit(TxnState& state, const LoggedTxn auto& txn) {
    In(state, TimePart::kRecord, [&] { Log::Submit(state, txn); });
  }
  void Void(TxnState& state) {
    In(state, TimePart::kRecord, [&] { Log::Void(state); });
  }

  void Change(TxnState& state, const Table& table, Row* row, const std::byte* tuple,
              const TouchedWords* touched) requires(Log::kTraits.appends_changes) {
    In(state, TimePart::kRecord, [&] { Log::Change(state, table, row, tuple, touched); });
  }
  void TakeBack(TxnState& state) requires(Log::kTraits.appends_changes) {
    In(state, TimePart::kRecord, [&] { Log::TakeBack(state); });
  }

 private:
  static auto In(TxnState& state, TimePart part, auto&& call) {
    const TimeSpan span(state.ledger, part);
    return call();
  }
};

}  // namespace dbx
