// A log scheme whose workers keep a ledger of their time (TIME_PARTS): what a transaction asks of its log is told
// apart. Transaction and Worker keep the ledger wherever the log's state has one.
#pragma once

#include "logging/contract.h"
#include "system/time_ledger.h"

namespace dbx {

template <class Log>
class TimedLog : public Log {
 public:
  struct TxnState : Log::TxnState {
    TimeLedger ledger;
  };

  using Log::Log;

  void Begin(TxnState& state) {
    Metadata(state, [&] { Log::Begin(state); });
  }
  void OnRead(TxnState& state, const RowRef& row) {
    Metadata(state, [&] { Log::OnRead(state, row); });
  }
  void OnWrite(TxnState& state, const RowRef& row) {
    Metadata(state, [&] { Log::OnWrite(state, row); });
  }
  void OnScan(TxnState& state, const Table& table, Key low, Key high) {
    Metadata(state, [&] { Log::OnScan(state, table, low, high); });
  }
  void PublishRead(TxnState& state, Meta meta) {
    Metadata(state, [&] { Log::PublishRead(state, meta); });
  }
  void PublishWrite(TxnState& state, Meta meta) {
    Metadata(state, [&] { Log::PublishWrite(state, meta); });
  }
  void CommitPoint(TxnState& state, uint64_t* point) {
    Metadata(state, [&] { Log::CommitPoint(state, point); });
  }
  void ReadOnlyPoint(TxnState& state, uint64_t* point) {
    Metadata(state, [&] { Log::ReadOnlyPoint(state, point); });
  }

  bool Reserve(TxnState& state, const auto& txn) {
    const TimeSpan span(state.ledger, TimePart::kRecord);
    return Log::Reserve(state, txn);
  }
  void Submit(TxnState& state, const auto& txn) {
    const TimeSpan span(state.ledger, TimePart::kRecord);
    Log::Submit(state, txn);
  }
  void Void(TxnState& state) {
    const TimeSpan span(state.ledger, TimePart::kRecord);
    Log::Void(state);
  }

 private:
  static void Metadata(TxnState& state, auto&& call) {
    const TimeSpan span(state.ledger, TimePart::kMetadata);
    call();
  }
};

}  // namespace dbx
