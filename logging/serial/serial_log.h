// Serial logging (Taurus, section 2.1): one stream whose order is the order of replay.
//
// A transaction reserves its place after its write locks are held. With commands the place also orders its reads, so
// it exists before they are re-checked: a writer that locks a row after our re-check gets a later LSN. With
// data only the order of writers of one row matters, and their locks give it.
//
// A reader waits for everything reserved when its last read was done: whoever installed what it read had
// reserved before installing.
#pragma once

#include "logging/contract.h"
#include "logging/log_set.h"
#include "logging/payload.h"

namespace dbx {

template <class Payload>
class SerialLog : public FlushHooks {
 public:
  static constexpr LogTraits kTraits = {.name = "LOG_SERIAL",
                                        .scheme = format::Scheme::kSerial,
                                        .payload = Payload::kKind,
                                        .logs = true,
                                        .tracks_reads = false,
                                        .reserve_before_recheck = Payload::kKind == PayloadKind::kCommand,
                                        .single_stream = true,
                                        .replay_order = ReplayOrder::kTotal};
  struct Options {};

  struct TxnState {
    uint32_t worker = 0;
    LogStream::Place place;
  };

  SerialLog(LogSet& logs, const Options&) : logs_(logs), stream_(logs.stream(0)) {}

  static size_t meta_bytes(uint32_t) { return 0; }
  size_t meta_bytes() const { return 0; }
  void InitWorker(TxnState& state, WorkerId worker) { state.worker = worker.value(); }

  void Begin(TxnState&) {}
  void OnRead(TxnState&, const RowRef&) {}
  void OnWrite(TxnState&, const RowRef&) {}
  void FreshMeta(Meta) const {}
  bool Forgettable(Meta) const { return true; }

  bool Reserve(TxnState& state, const auto& txn) {
    const size_t bytes = sizeof(format::RecordHeader) + kTxnIdBytes + Payload::Bytes(txn);
    if (bytes > stream_.max_record_bytes()) return false;
    state.place = stream_.Reserve(state.worker, AlignRecord(bytes));
    return true;
  }
  void PublishRead(TxnState&, Meta) {}
  void Submit(TxnState& state, const auto& txn) {
    std::byte* at = stream_.at(state.place);
    std::memcpy(at + sizeof(format::RecordHeader), txn.args().data(), kTxnIdBytes);
    Payload::Encode(txn, at + sizeof(format::RecordHeader) + kTxnIdBytes);
    format::RecordHeader header = stream_.HeaderFor(state.place, Payload::kRecordKind);
    header.procedure = txn.procedure().value();
    SealRecord(at, header);
    stream_.Submit(state.worker, state.place);
  }
  void Void(TxnState& state) { stream_.Void(state.worker, state.place); }
  void PublishWrite(TxnState&, Meta) {}
  void Idle(TxnState&) {}

  size_t point_words() const { return 1; }
  void CommitPoint(const TxnState& state, uint64_t* point) const { point[0] = state.place.end(); }
  void ReadOnlyPoint(const TxnState&, uint64_t* point) const { point[0] = stream_.reserved_until(); }
  bool IsDurable(const uint64_t* point) const { return stream_.persistent_until() >= point[0]; }
  void ThrowIfFailed() const { logs_.ThrowIfFailed(); }

 private:
  LogSet& logs_;
  LogStream& stream_;
};

}  // namespace dbx
