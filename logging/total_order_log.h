// The run side of the schemes with one stream whose order is the order of replay. `Places` is how a transaction
// reserves its place there, in which such schemes differ (serial/, eleda/).
//
// A transaction reserves its place with its write set locked. Under command logging the LSN also orders its reads, so
// it is reserved before they are validated: a writer that locks a row after this validation gets a later LSN. Under
// data logging only the order of writers of one row matters, and their locks give it; under commands with multi-version
// replay the log must also place a reader after the writer it read from; that writer reserved before its version became
// visible.
//
// A read-only transaction waits for everything reserved when its last read was done: the writers of the versions that
// it read had reserved before installing them.
//
// Places P:
//   P::kName, P::kScheme, P::kHasAnchors, P::kRowCheckpoints
//   P(LogSet&, const LogOptions&)
//   std::byte* StageFor(worker, bytes)  where to build a record before its place is reserved; nullptr: in its place
//   Reserve(worker, bytes) -> Submit(worker, place) | Void(worker, place)   as LogStream
//   Counters()                          the counters of a central log (central_counters.h), if it is one
#pragma once

#include "logging/contract.h"
#include "logging/log_set.h"
#include "logging/payload.h"
#include "logging/watermark_records.h"

namespace dbx {

template <class Payload, class Places>
class TotalOrderLog : public FlushHooks, public LogDefaults {
 public:
  static constexpr LogTraits kTraits = {
      .name = Places::kName,
      .scheme = Places::kScheme,
      .payload = Payload::kKind,
      .logs = true,
      .fixed_bytes = kFixedRecordBytes<Payload>,
      .tracks_reads = false,
      .reserve_before_recheck = kOrdersReads<Payload>,
      .single_stream = true,
      .needs_multi_version = Payload::kTimestamps,
      .row_checkpoints = Places::kRowCheckpoints && Payload::kKind == PayloadKind::kData,
      .replay_order = ReplayOrder::kTotal};
  using CommitPoint = ScalarPoint<Lsn>;

  struct TxnState {
    uint32_t worker = 0;
    uint32_t body_crc = 0;        // of a record that was built before its place was reserved
    std::byte* staged = nullptr;  // that record
    LogStream::Place place;
  };

  TotalOrderLog(LogSet& logs, const LogOptions& options)
      : logs_(logs), stream_(logs.stream(0)), places_(logs, options), watermark_(1) {}

  void InitWorker(TxnState& state, WorkerId worker) { state.worker = worker.value(); }

  bool Reserve(TxnState& state, const LoggedTxn auto& txn) {
    const size_t bytes = sizeof(format::RecordHeader) + kTxnIdBytes + Payload::Bytes(txn);
    if (bytes > stream_.max_record_bytes()) return false;
    const uint32_t aligned = AlignRecord(bytes);
    state.staged = places_.StageFor(state.worker, aligned);
    if (state.staged != nullptr) {
      BuildBody(txn, state.staged);
      state.body_crc = Crc32c(std::span(state.staged, aligned - sizeof(format::RecordHeader)));
    }
    state.place = places_.Reserve(state.worker, aligned);
    return true;
  }
  void Submit(TxnState& state, const LoggedTxn auto& txn) {
    std::byte* at = stream_.at(state.place);
    format::RecordHeader header = stream_.HeaderFor(state.place, Payload::kRecordKind);
    header.procedure = txn.procedure().value();
    if (state.staged == nullptr) {
      BuildBody(txn, at + sizeof header);
      SealRecord(at, header);
    } else {
      std::memcpy(at + sizeof header, state.staged, state.place.bytes - sizeof header);
      header.body_crc = state.body_crc;
      SealHeader(at, header);
    }
    places_.Submit(state.worker, state.place);
  }
  void Void(TxnState& state) { places_.Void(state.worker, state.place); }

  void RaiseWatermark([[maybe_unused]] Timestamp timestamp) {
    if constexpr (Payload::kTimestamps) watermark_.Raise(timestamp);
  }

  // An anchor: records in the log itself how far it is durable.
  void BeforeFlush(LogStream& stream) override {
    if constexpr (Payload::kTimestamps) watermark_.Append(stream);
    if constexpr (Places::kHasAnchors) {
      const uint64_t durable = stream.persistent_until().value();
      stream.AppendOwn(format::RecordKind::kAnchor, {&durable, 1});
    }
  }

  static size_t point_words() { return CommitPoint::kWords; }
  void SetCommitPoint(const TxnState& state, CommitPoint point) const { point.Set(state.place.end()); }
  void SetReadOnlyPoint(const TxnState&, CommitPoint point) const { point.Set(stream_.reserved_until()); }
  void OwnEnds(const TxnState& state, LsnPerLog& ends) const { ends[0] = state.place.end(); }
  uint64_t OwnBytes(const TxnState& state) const { return state.place.bytes; }
  const DurableVector& durable() const { return logs_.durable(); }
  bool IsDurable(CommitPoint point) const { return stream_.persistent_until() >= point.value(); }
  void ThrowIfFailed() const { logs_.ThrowIfFailed(); }

  // After the writers have stopped.
  std::optional<CentralCounters> central_counters() { return places_.Counters(); }

 private:
  void BuildBody(const auto& txn, std::byte* to) const {
    std::memcpy(to, txn.args().data(), kTxnIdBytes);
    Payload::Encode(txn, to + kTxnIdBytes);
  }

  LogSet& logs_;
  LogStream& stream_;
  Places places_;
  [[no_unique_address]] WatermarkRecordsOf<Payload> watermark_;
};

}  // namespace dbx
