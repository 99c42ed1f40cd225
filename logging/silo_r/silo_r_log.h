// LOG_BATCH: Silo-R (Tu et al., SOSP 2013, section 4.10; Zheng et al., OSDI 2014), data logging by epochs, for a
// concurrency control that commits in epochs and gives every transaction a TID: its stamp.
//
// A worker collects the records of its transactions in a chunk of its log's ring that it alone fills, and submits the
// chunk when it is full, when a new epoch begins, or when it is about to wait. So there is no shared write per
// transaction, only one per chunk. With fewer workers than logs each chunk is in the worker's next log. A transaction
// is acknowledged when its epoch is persistent (durable_epoch.h), a read-only transaction when the epoch is in which it
// committed: all its reads are of that epoch or an earlier one.
//
// Within an epoch the records of different workers have no order but their TIDs, and replay needs none: of two versions
// of a row the one with the larger TID stays (last writer wins, silo_r_recovery.h). Reads are not tracked, so commands
// cannot be replayed.
//
// Where this differs from the papers: the chunk lies in the ring instead of being handed over as a buffer, and the
// persistent epoch follows from the logs' durable LSNs. LOG_BATCH is its name in DBx1000's Taurus fork.
#pragma once

#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/epoch.h"
#include "logging/contract.h"
#include "logging/frontier_file.h"
#include "logging/log_set.h"
#include "logging/payload.h"
#include "logging/silo_r/durable_epoch.h"

namespace dbx {

template <class Payload>
class SiloRLog : public FlushHooks, public LogDefaults {
 public:
  // Header, transaction id, stamp.
  static constexpr uint32_t kFixedBytes = sizeof(format::RecordHeader) + kTxnIdBytes + sizeof(uint64_t);
  static constexpr LogTraits kTraits = {.name = "LOG_BATCH",
                                        .scheme = format::Scheme::kSiloR,
                                        .payload = Payload::kKind,
                                        .logs = true,
                                        .fixed_bytes = kFixedBytes,
                                        .tracks_reads = false,
                                        .reserve_before_recheck = false,
                                        .single_stream = false,
                                        .needs_epochs = true,
                                        .replay_order = ReplayOrder::kNewestWins};
  using CommitPoint = ScalarPoint<Epoch>;

  struct TxnState {
    uint32_t worker = 0;
    uint32_t log = 0;
    LogStream::Place chunk;  // 0 bytes: none is open
    Epoch chunk_epoch;
    uint32_t filled_bytes = 0;  // of the chunk
    uint32_t chunk_txns = 0;
    uint32_t record_bytes = 0;  // of the transaction whose place is reserved
    Lsn record_end;             // of the last one that was submitted
    Tid tid;
  };

  SiloRLog(LogSet& logs, const LogOptions& options)
      : logs_(logs), epochs_(*options.epochs), frontier_(options.frontier), durable_epoch_(logs, epochs_, *frontier_) {}

  void InitWorker(TxnState& state, WorkerId worker) {
    state.worker = worker.value();
    state.log = worker.value() % logs_.count();
  }

  void Begin(TxnState& state) {
    if (state.chunk.bytes != 0 && epochs_.Current() != state.chunk_epoch) HandOver(state);
  }

  bool Reserve(TxnState& state, const LoggedTxn auto& txn) {
    const size_t bytes = AlignRecord(kFixedBytes + Payload::Bytes(txn));
    if (bytes > logs_.stream(state.log).max_record_bytes()) return false;
    state.record_bytes = static_cast<uint32_t>(bytes);
    state.tid = txn.commit_version();
    if (state.chunk.bytes != 0 && !MayTake(state)) HandOver(state);
    if (state.chunk.bytes == 0) OpenChunk(state);
    return true;
  }

  void Submit(TxnState& state, const LoggedTxn auto& txn) {
    LogStream& stream = logs_.stream(state.log);
    const LogStream::Place place{state.chunk.lsn + state.filled_bytes, state.record_bytes};
    std::byte* const at = stream.at(place);
    std::memcpy(at + sizeof(format::RecordHeader), txn.args().data(), kTxnIdBytes);
    const Stamp stamp = StampOf(state.tid);
    std::memcpy(at + sizeof(format::RecordHeader) + kTxnIdBytes, &stamp, sizeof stamp);
    Payload::Encode(txn, at + kFixedBytes);
    SealRecord(at, stream.HeaderFor(place, format::RecordKind::kStamped));
    state.filled_bytes += state.record_bytes;
    state.record_end = place.end();
    ++state.chunk_txns;
    if (state.filled_bytes == state.chunk.bytes) HandOver(state);
  }
  void Void(TxnState&) {}  // its place is the next transaction's

  // The worker will not commit for a while: others must not wait for its chunk.
  void Idle(TxnState& state) {
    if (state.chunk.bytes != 0) HandOver(state);
  }

  // A mark: lets recovery detect a truncated frontier file.
  void BeforeFlush(LogStream& stream) override {
    const Stamp durable = durable_epoch_.written_stamp();
    if (marked_[stream.index()] == durable) return;
    const uint64_t words[] = {0, durable.value()};
    if (stream.AppendOwn(format::RecordKind::kMark, words)) marked_[stream.index()] = durable;
  }
  // Every record is durable and the ring is empty: there is room.
  void BeforeRunEnd(LogStream& stream) override {
    BeforeFlush(stream);
    CHECK(marked_[stream.index()] == durable_epoch_.written_stamp());
    logs_.AppendAnchor(stream);
  }
  void BeforeStop() override { durable_epoch_.Stop(); }

  static size_t point_words() { return CommitPoint::kWords; }
  void SetCommitPoint(const TxnState& state, CommitPoint point) const { point.Set(EpochTid::EpochOf(state.tid)); }
  void SetReadOnlyPoint(const TxnState&, CommitPoint point) const { point.Set(epochs_.Current()); }
  void OwnEnds(const TxnState& state, LsnPerLog& ends) const { ends[state.log] = state.record_end; }
  uint64_t OwnBytes(const TxnState& state) const { return state.record_bytes; }
  const DurableVector& durable() const { return logs_.durable(); }
  bool IsDurable(CommitPoint point) const { return durable_epoch_.Get() >= point.value(); }
  void ThrowIfFailed() const {
    logs_.ThrowIfFailed();
    durable_epoch_.ThrowIfFailed();
  }

 private:
  static constexpr uint64_t kChunkBytes = 32 << 10;

  // A chunk holds records of one epoch: a place reserved in an epoch has none of a later one (durable_epoch.h).
  static bool MayTake(const TxnState& state) {
    return EpochTid::EpochOf(state.tid) == state.chunk_epoch &&
           Fits(state.record_bytes, state.chunk.bytes - state.filled_bytes);
  }

  // The rest of a chunk must hold a VOID record, or nothing.
  static bool Fits(uint64_t record_bytes, uint64_t left) {
    return record_bytes == left || record_bytes + sizeof(format::RecordHeader) <= left;
  }

  void OpenChunk(TxnState& state) {
    state.log = logs_.NextLog(state.worker, state.log);
    LogStream& stream = logs_.stream(state.log);
    const uint64_t usual = std::min<uint64_t>(kChunkBytes, stream.ring_bytes() / 16);
    const uint64_t bytes = Fits(state.record_bytes, usual) ? usual : state.record_bytes;
    state.chunk = stream.Reserve(state.worker, static_cast<uint32_t>(bytes));
    state.chunk_epoch = EpochTid::EpochOf(state.tid);
    state.filled_bytes = state.chunk_txns = 0;
  }

  void HandOver(TxnState& state) {
    logs_.stream(state.log).SubmitChunk(state.worker, state.chunk, state.filled_bytes, state.chunk_txns);
    state.chunk = {};
  }

  LogSet& logs_;
  const EpochClock& epochs_;
  std::shared_ptr<FrontierFile> frontier_;
  DurableEpoch durable_epoch_;
  Stamp marked_[format::kMaxLogs];  // by the logs' writers: the last mark
};

}  // namespace dbx
