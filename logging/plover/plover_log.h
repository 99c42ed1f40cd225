// Plover (Zhou et al., Frontiers of Computer Science 14(4), 2020; as a baseline in Taurus, section 5): data logging by
// partition, one log per partition.
//
// Symbols of the papers and their names here:
//   per-log sequence number   Partition::counter   the largest GSN that the log holds, or that a mark has ruled out
//   GSN                       TxnState::gsn        the transaction's global sequence number: its stamp
//   heartbeat                 a MARK record        "no transaction with this GSN or a lower one follows in this log"
//   persistent GSN            durable_gsn_         of each log: all up to it is durable, and no lower one can follow
//
// A transaction leaves one record in the log of each partition that it wrote. Its GSN lies above the counters of all
// partitions that it read or wrote, so every transaction that it depends on has a lower one. It latches the partitions
// that it wrote, in the order of their numbers, from the choice of the GSN until all its places are reserved: the GSNs
// of a log ascend, and the order of a log is the order of its partition. Reads need no latch: the writer of the version
// that was read had raised the counter before it installed.
//
// It is acknowledged when every log's persistent GSN has reached its own. Then each log holds all records that it will
// ever hold up to that GSN, so no transaction among them lacks a part. The writer of a log takes care of that: where
// others are ahead at a flush, it raises the counter to the largest of all, under the latch, and appends a mark; once
// the mark is durable, the counter's value is the log's persistent GSN. An idle log is flushed for that alone. A log
// whose workers wait for its device has no space for marks: there the GSN of its last durable record serves the same
// purpose, and the raised counter makes later records catch up with the others.
//
// Where this differs from published code: it counts records as durable when they are synced, marks and records tell
// recovery so, and the counters of partitions that were only read are included.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/host.h"
#include "base/spin.h"
#include "logging/contract.h"
#include "logging/log_set.h"
#include "logging/payload.h"

namespace dbx {

template <class Payload>
class PloverLog : public FlushHooks, public LogDefaults {
 public:
  // Header, transaction id, stamp.
  static constexpr uint32_t kFixedBytes = sizeof(format::RecordHeader) + kTxnIdBytes + sizeof(uint64_t);
  static constexpr LogTraits kTraits = {.name = "LOG_PLOVER",
                                        .scheme = format::Scheme::kPlover,
                                        .payload = Payload::kKind,
                                        .logs = true,
                                        .fixed_bytes = kFixedBytes,
                                        .tracks_reads = false,
                                        .reserve_before_recheck = false,
                                        .single_stream = false,
                                        .replay_order = ReplayOrder::kPerPartition};
  using CommitPoint = ScalarPoint<Stamp>;

  struct TxnState {
    uint32_t worker = 0;
    uint32_t accessed = 0;  // bit j: a row of partition j was read or written
    uint32_t written = 0;
    Stamp gsn;
    size_t bytes[format::kMaxLogs];  // of the record in each log that is written to
    LogStream::Place places[format::kMaxLogs];
  };

  PloverLog(LogSet& logs, const LogOptions& options)
      : logs_(logs),
        n_(logs.count()),
        first_stamp_(options.first_stamp),
        partitions_(std::make_unique<Partition[]>(n_)) {
    for (uint32_t j = 0; j < n_; ++j) {
      partitions_[j].counter.store(first_stamp_.value());
      partitions_[j].logged = partitions_[j].claimed = first_stamp_;
      partitions_[j].durable_gsn.store(first_stamp_.value());
    }
    durable_gsn_.store(first_stamp_.value());
  }

  void InitWorker(TxnState& state, WorkerId worker) { state.worker = worker.value(); }

  void Begin(TxnState& state) { state.accessed = 0; }
  void OnRead(TxnState& state, const RowRef& row) { state.accessed |= 1u << row.table.PartitionOf(row.key, n_); }
  void OnWrite(TxnState& state, const RowRef& row) { OnRead(state, row); }
  void OnScan(TxnState& state, const Table& table, Key low, Key high) {
    state.accessed |= table.PartitionsOf(low, high, n_);
  }

  bool Reserve(TxnState& state, const LoggedTxn auto& txn) {
    state.written = 0;
    txn.ForEachImage([&](const Table& table, Key key, bool deleted, const std::byte*) {
      const uint32_t j = table.PartitionOf(key, n_);
      if ((state.written >> j & 1) == 0) state.bytes[j] = kFixedBytes;
      state.written |= 1u << j;
      state.bytes[j] += Payload::ImageBytes(table, deleted);
    });
    bool fits = true;
    ForEachLog(state.written, [&](uint32_t j) { fits &= state.bytes[j] <= logs_.stream(j).max_record_bytes(); });
    if (fits) TakePlaces(state);
    return fits;
  }

  void Submit(TxnState& state, const LoggedTxn auto& txn) {
    std::byte* to[format::kMaxLogs];
    ForEachLog(state.written, [&](uint32_t j) {
      to[j] = logs_.stream(j).at(state.places[j]) + sizeof(format::RecordHeader);
      std::memcpy(to[j], txn.args().data(), kTxnIdBytes);
      std::memcpy(to[j] + kTxnIdBytes, &state.gsn, sizeof state.gsn);
      to[j] += kTxnIdBytes + sizeof state.gsn;
    });
    txn.ForEachImage([&](const Table& table, Key key, bool deleted, const std::byte* image) {
      const uint32_t j = table.PartitionOf(key, n_);
      to[j] = Payload::EncodeImage(table, key, deleted, image, to[j]);
    });
    ForEachLog(state.written, [&](uint32_t j) {
      LogStream& stream = logs_.stream(j);
      format::RecordHeader header = stream.HeaderFor(state.places[j], format::RecordKind::kStamped);
      header.lv_mask = static_cast<uint16_t>(state.written);
      SealRecord(stream.at(state.places[j]), header);
      stream.Submit(state.worker, state.places[j], /*is_further_part=*/(state.written & ((1u << j) - 1)) != 0);
    });
    // A sleeping log writer must wake up and append a mark: no lower GSN follows.
    for (uint32_t j = 0; j < n_; ++j) logs_.stream(j).WakeWriterIfAsleep();
  }

  void Void(TxnState&) { CHECK(false); }  // see TakePlaces

  bool WantsFlush(const LogStream& stream) const override {
    const Partition& partition = partitions_[stream.index()];
    return partition.claim_count == 0 && partition.claimed < LargestCounter(kAllPartitions);
  }

  // The heartbeat. It does not wait for the latch for long: its holder may be descheduled.
  bool FlushesEveryRound() const override { return true; }
  void BeforeFlush(LogStream& stream) override {
    Partition& partition = partitions_[stream.index()];
    if (!partition.TryLatchForAWhile()) return;
    if (partition.mark_end == Lsn()) AppendMark(stream, partition);
    // Every later reservation has a larger GSN than the logged ones.
    partition.AddClaim(stream.reserved_until());
    partition.Unlatch();
    AfterFlush(stream);  // all of it may be durable already
  }

  void BeforeRunEnd(LogStream& stream) override {
    BeforeFlush(stream);
    logs_.AppendAnchor(stream);
  }

  void AfterFlush(const LogStream& stream) override {
    Partition& partition = partitions_[stream.index()];
    const Lsn durable = stream.persistent_until();
    if (partition.mark_end <= durable) partition.mark_end = Lsn();
    const std::optional<Stamp> gsn = partition.TakeClaims(durable);
    if (!gsn) return;
    // Sequentially consistent: of two writers that publish at once, one computes the minimum of both.
    partition.durable_gsn.store(gsn->value(), std::memory_order_seq_cst);
    PublishDurableGsn();
  }

  static size_t point_words() { return CommitPoint::kWords; }
  void SetCommitPoint(const TxnState& state, CommitPoint point) const { point.Set(state.gsn); }
  void SetReadOnlyPoint(const TxnState& state, CommitPoint point) const { point.Set(LargestCounter(state.accessed)); }
  void OwnEnds(const TxnState& state, LsnPerLog& ends) const {
    ForEachLog(state.written, [&](uint32_t j) { ends[j] = state.places[j].end(); });
  }
  uint64_t OwnBytes(const TxnState& state) const {
    uint64_t bytes = 0;
    ForEachLog(state.written, [&](uint32_t j) { bytes += state.places[j].bytes; });
    return bytes;
  }
  const DurableVector& durable() const { return logs_.durable(); }
  bool IsDurable(CommitPoint point) const {
    return Stamp(durable_gsn_.load(std::memory_order_acquire)) >= point.value();
  }
  void ThrowIfFailed() const { logs_.ThrowIfFailed(); }

 private:
  static constexpr uint32_t kAllPartitions = ~0u;

  struct alignas(kNoSharingBytes) Partition {
    Atomic<bool> latched{false};
    Atomic<uint64_t> counter{0};  // written under the latch
    Stamp logged;                 // the largest GSN reserved in the log; under the latch
    // The writer's own. A claim: once the log is durable up to `until`, its persistent GSN is `gsn`.
    struct Claim {
      Lsn until;
      Stamp gsn;
    };
    alignas(kNoSharingBytes) std::array<Claim, 8> claims;  // ascending
    uint32_t claim_count = 0;
    Stamp claimed;  // the GSN of the last one
    Lsn mark_end;   // of the last mark, until that is durable
    Atomic<uint64_t> durable_gsn{0};

    // For all logged records. Where there is no room, the last claim waits for more.
    void AddClaim(Lsn until) {
      if (logged == claimed) return;
      if (claim_count < claims.size()) ++claim_count;
      claims[claim_count - 1] = {until, logged};
      claimed = logged;
    }
    // The GSN of the last claim that the log is durable for; it and those before it are removed.
    std::optional<Stamp> TakeClaims(Lsn durable) {
      uint32_t met = 0;
      while (met < claim_count && claims[met].until <= durable) ++met;
      if (met == 0) return std::nullopt;
      const Stamp gsn = claims[met - 1].gsn;
      std::copy(claims.begin() + met, claims.begin() + claim_count, claims.begin());
      claim_count -= met;
      return gsn;
    }

    bool TryLatch() { return !latched.load(std::memory_order_relaxed) && !latched.exchange(true); }
    void Latch() {
      for (SpinWait wait; !TryLatch(); wait.Wait()) continue;
    }
    bool TryLatchForAWhile() {
      for (SpinWait wait; !TryLatch(); wait.Wait()) {
        if (wait.yielding()) return false;
      }
      return true;
    }
    void Unlatch() { latched.store(false, std::memory_order_release); }
  };

  // Latches the partitions that are written to, until it is destroyed.
  class Latches {
   public:
    Latches(Partition* partitions, uint32_t written) : partitions_(partitions), written_(written) {
      ForEachLog(written_, [this](uint32_t j) { partitions_[j].Latch(); });
    }
    ~Latches() {
      ForEachLog(written_, [this](uint32_t j) { partitions_[j].Unlatch(); });
    }
    Latches(const Latches&) = delete;
    Latches& operator=(const Latches&) = delete;

   private:
    Partition* partitions_;
    uint32_t written_;
  };

  static void ForEachLog(uint32_t mask, auto&& visit) {
    for (; mask != 0; mask &= mask - 1) visit(static_cast<uint32_t>(std::countr_zero(mask)));
  }

  // Every reserved place is submitted: a VOID record would be no evidence of the GSN that its log has claimed. The only
  // failure in between is that of a log that is never written again.
  void TakePlaces(TxnState& state) {
    static_assert(!kTraits.reserve_before_recheck);
    ChooseGsn(state);
    // No longer under the latches: a log's writer needs them to free the space that is waited for (back-pressure).
    ForEachLog(state.written, [&](uint32_t j) { logs_.stream(j).AwaitPlace(state.worker, state.places[j]); });
  }

  void ChooseGsn(TxnState& state) {
    const Latches latches(partitions_.get(), state.written);
    state.gsn = Stamp(LargestCounter(state.accessed | state.written).value() + 1);
    ForEachLog(state.written, [&](uint32_t j) {
      partitions_[j].counter.store(state.gsn.value());
      partitions_[j].logged = state.gsn;
      state.places[j] = logs_.stream(j).TakePlace(state.worker, AlignRecord(state.bytes[j]));
    });
  }

  // Promises that no GSN up to the largest of all logs follows, where others are ahead. Under the latch.
  void AppendMark(LogStream& stream, Partition& partition) {
    const Stamp gsn = LargestCounter(kAllPartitions);
    if (gsn <= partition.logged) return;
    partition.counter.store(gsn.value());
    // GSNs in an older run's logs are no evidence about these.
    const Stamp durable(durable_gsn_.load(std::memory_order_relaxed));
    const uint64_t words[] = {gsn.value(), durable > first_stamp_ ? durable.value() : 0};
    if (const auto end = stream.AppendOwn(format::RecordKind::kMark, words)) {
      partition.logged = gsn;
      partition.mark_end = *end;
    }
  }

  Stamp LargestCounter(uint32_t partitions) const {
    uint64_t largest = 0;
    for (uint32_t j = 0; j < n_; ++j) {
      if (partitions >> j & 1) largest = std::max(largest, partitions_[j].counter.load());
    }
    return Stamp(largest);
  }

  // Any writer; the largest that any of them finds.
  void PublishDurableGsn() {
    uint64_t least = UINT64_MAX;
    for (uint32_t j = 0; j < n_; ++j) least = std::min(least, partitions_[j].durable_gsn.load());
    uint64_t seen = durable_gsn_.load();
    while (seen < least && !durable_gsn_.compare_exchange_weak(seen, least)) continue;
  }

  LogSet& logs_;
  const uint32_t n_;
  const Stamp first_stamp_;
  std::unique_ptr<Partition[]> partitions_;
  alignas(kNoSharingBytes) Atomic<uint64_t> durable_gsn_{0};  // the least of all logs
};

}  // namespace dbx
