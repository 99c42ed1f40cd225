// Taurus (Xia et al., PVLDB 14(2), 2021): parallel logging with LSN vectors.
//
// Symbols of the paper and their names here:
//   T.LV       TxnState::lv            the transaction's dependencies, per log; own place included once reserved
//   readLV     second half of a row's metadata: the elementwise maximum of its readers' vectors (commands only, and
//              only with single-version replay)
//   writeLV    first half: the vector of the last writer
//   PLV        LogSet::durable()       how far each log is durable
//   LPLV       LvAnchors               the last anchor in a log: LV compression omits elements it covers (Alg. 5)
//   delta      LogOptions::forget_delta_bytes
//
// Where this differs from the paper: a transaction reserves its place after its write set is locked and before its read
// set is validated, and only then raises readLV, so that a later writer also learns of its own LSN (Alg. 6 raises
// readLV without it), and a writer merges readLV too. Data records need write-read and write-write dependencies only,
// and so do commands with multi-version replay (section 4.4): rows keep no readLV then, and a place is reserved after
// validation. The anchor is used for LV compression only after its place in the log is reserved, and it holds PLV as it
// was before.
//
// Record LV: the vector before the own place was merged; the record's position implies that element.
//
// A worker writes to its logs in turns (LogSet::NextLog).
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/cache_line.h"
#include "logging/contract.h"
#include "logging/log_set.h"
#include "logging/lv_metadata.h"
#include "logging/payload.h"
#include "logging/watermark_records.h"

namespace dbx {

template <class Payload>
class TaurusLog : public FlushHooks, public LogDefaults {
 public:
  static constexpr bool kTracksReads = kOrdersReads<Payload>;
  static constexpr LogTraits kTraits = {.name = "LOG_TAURUS",
                                        .scheme = format::Scheme::kTaurus,
                                        .payload = Payload::kKind,
                                        .logs = true,
                                        .fixed_bytes = kFixedRecordBytes<Payload>,
                                        .tracks_reads = kTracksReads,
                                        .reserve_before_recheck = kTracksReads,
                                        .single_stream = false,
                                        .needs_multi_version = Payload::kTimestamps,
                                        .row_checkpoints = Payload::kKind == PayloadKind::kData,
                                        .replay_order = ReplayOrder::kPartial};
  using CommitPoint = VectorPoint;

  struct TxnState {
    alignas(kCacheLineBytes) uint64_t lv[format::kMaxLogs] = {};
    uint64_t own_dependency = 0;  // lv[log] before the own place was merged
    uint32_t lv_mask = 0;         // elements that the record stores
    uint32_t log = 0;
    uint32_t worker = 0;
    uint32_t turn = 0;
    LogStream::Place place;
  };

  TaurusLog(LogSet& logs, const LogOptions& options)
      : logs_(logs),
        n_(logs.count()),
        metadata_(logs, options.forget_delta_bytes),
        anchors_(logs, options.compress),
        watermark_(n_) {}

  static constexpr size_t meta_bytes(uint32_t logs) { return logs * sizeof(uint64_t) * (kTracksReads ? 2 : 1); }
  size_t meta_bytes() const { return meta_bytes(n_); }

  void InitWorker(TxnState& state, WorkerId worker) {
    state.worker = worker.value();
    state.log = worker.value() % n_;
  }

  void Begin(TxnState& state) { std::memset(state.lv, 0, n_ * sizeof(uint64_t)); }

  void OnRead(TxnState& state, const RowRef& row) { lv::Raise(state.lv, WriteLv(row.meta), n_); }
  void OnWrite(TxnState& state, const RowRef& row) {
    lv::Raise(state.lv, WriteLv(row.meta), n_);
    if constexpr (kTracksReads) lv::Raise(state.lv, ReadLv(row.meta), n_);
  }

  void FreshMeta(Meta meta) const {
    metadata_.Fresh(meta);
    if constexpr (kTracksReads) metadata_.Fresh(ReadsOf(meta));
  }
  void Absorb(Meta into, Meta from) const {
    metadata_.Absorb(into, from);
    if constexpr (kTracksReads) metadata_.Absorb(ReadsOf(into), ReadsOf(from));
  }
  bool Forgettable(Meta meta) const {
    if constexpr (kTracksReads) {
      if (!metadata_.Forgettable(ReadsOf(meta))) return false;
    }
    return metadata_.Forgettable(meta);
  }

  bool Reserve(TxnState& state, const LoggedTxn auto& txn) {
    TakeTurn(state);
    LogStream& stream = logs_.stream(state.log);
    state.lv_mask = anchors_.StoredMask(state.lv, state.log);
    const size_t bytes = sizeof(format::RecordHeader) + kTxnIdBytes + std::popcount(state.lv_mask) * sizeof(uint64_t) +
                         Payload::Bytes(txn);
    if (bytes > stream.max_record_bytes()) return false;
    state.place = stream.Reserve(state.worker, AlignRecord(bytes));
    if constexpr (kTracksReads) PrefetchBytesToWrite(stream.at(state.place), std::min(bytes, kPrefetchedBytes));
    state.own_dependency = state.lv[state.log];
    state.lv[state.log] = state.place.end().value();
    return true;
  }

  void PublishRead(TxnState& state, Meta meta) {
    if constexpr (kTracksReads) lv::RaiseShared(ReadLv(meta), state.lv, n_);
  }

  void Submit(TxnState& state, const LoggedTxn auto& txn) {
    LogStream& stream = logs_.stream(state.log);
    std::byte* const at = stream.at(state.place);
    std::byte* to = at + sizeof(format::RecordHeader);
    std::memcpy(to, txn.args().data(), kTxnIdBytes);
    to = LvAnchors::Encode(state.lv, state.lv_mask, state.log, state.own_dependency, to + kTxnIdBytes);
    Payload::Encode(txn, to);
    format::RecordHeader header = stream.HeaderFor(state.place, Payload::kRecordKind);
    header.lv_mask = static_cast<uint16_t>(state.lv_mask);
    header.procedure = txn.procedure().value();
    SealRecord(at, header);
    stream.Submit(state.worker, state.place);
  }
  void Void(TxnState& state) { logs_.stream(state.log).Void(state.worker, state.place); }

  // T.LV covers the row's writeLV, which it merged when it locked the row.
  void PublishWrite(TxnState& state, Meta meta) { lv::StoreShared(WriteLv(meta), state.lv, n_); }

  void RaiseWatermark([[maybe_unused]] Timestamp timestamp) {
    if constexpr (Payload::kTimestamps) watermark_.Raise(timestamp);
  }
  bool WantsFlush([[maybe_unused]] const LogStream& stream) const override {
    if constexpr (Payload::kTimestamps) return watermark_.IsDue(stream);
    return false;
  }

  // The anchor.
  void BeforeFlush(LogStream& stream) override {
    if constexpr (Payload::kTimestamps) watermark_.Append(stream);
    anchors_.Append(stream);
  }

  size_t point_words() const { return n_; }
  void SetCommitPoint(const TxnState& state, CommitPoint point) const {
    for (uint32_t j = 0; j < n_; ++j) point.lsns()[j] = state.lv[j];
  }
  void SetReadOnlyPoint(const TxnState& state, CommitPoint point) const { SetCommitPoint(state, point); }
  void OwnEnds(const TxnState& state, LsnPerLog& ends) const { ends[state.log] = state.place.end(); }
  uint64_t OwnBytes(const TxnState& state) const { return state.place.bytes; }
  const DurableVector& durable() const { return logs_.durable(); }
  bool IsDurable(CommitPoint point) const { return lv::CoveredBy(point.lsns(), logs_.durable().lsn, n_); }
  void ThrowIfFailed() const { logs_.ThrowIfFailed(); }

 private:
  // Bytes of a place in the log, prefetched while the reads are published.
  static constexpr size_t kPrefetchedBytes = 256;
  // Transactions that a worker writes to one log before it turns to its next.
  static constexpr uint32_t kTxnsPerTurn = 256;

  void TakeTurn(TxnState& state) {
    if (logs_.workers() >= n_ || ++state.turn < kTxnsPerTurn) return;
    state.turn = 0;
    state.log = logs_.NextLog(state.worker, state.log);
  }
  uint64_t* WriteLv(Meta meta) const { return reinterpret_cast<uint64_t*>(meta); }
  uint64_t* ReadLv(Meta meta) const { return reinterpret_cast<uint64_t*>(ReadsOf(meta)); }
  Meta ReadsOf(Meta meta) const { return meta + LvMetadata::bytes(n_); }

  LogSet& logs_;
  const uint32_t n_;
  const LvMetadata metadata_;  // of readLV and of writeLV
  LvAnchors anchors_;
  [[no_unique_address]] WatermarkRecordsOf<Payload> watermark_;
};

}  // namespace dbx
