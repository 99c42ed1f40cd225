// One write-ahead log of redo records: a ring buffer that workers fill in place and a writer flushes in order.
//
// Positions in the stream, each with its invariant:
//
//   started_until   <= every byte below has been handed to the device (the writer's own)
//   persistent      <= every byte below is on stable storage; published only after the sync, and always the end of a
//                      record: recovery's frontier is one, so all commits acknowledged by this position survive
//   ReadyUntil()    <= every place below is filled
//   reserved_until  <= every place below belongs to a record
//
// A place (a reservation) is taken by one fetch-and-add. One word per worker shows which places are still being filled:
// a lower bound of the place that it is filling, or kIdle. (Taurus, Alg. 1 and 2, keep two words, allocatedLSN and
// filledLSN, and compare them; with both at 0 a worker that never writes would block the log for ever.) The bound is
// the end of the worker's last place at first, and the place itself as soon as that is known:
//
//   kIdle -> the last place's end -> [fetch-and-add] the place -> [filled] kIdle
//
// Why the writer never flushes an unfilled place: a worker stores a bound before its fetch-and-add, and the writer
// loads reserved_until before the bounds. If the writer's load sees the fetch-and-add, it therefore sees the bound, or
// a later value of the same word; the place is a bound as well, and kIdle and every later bound are stored only after
// the fill, with release.
//
// Why the first bound is not reserved_until: to load it would transfer the line of the tail, which the fetch-and-add
// must transfer once more if another worker reserves in between: two misses for each transaction. The end of the last
// place, which only the worker needs to know, is a bound too, as the tail never decreases. It may be far below what is
// durable, which delays the flush during one fetch-and-add. Two consequences: ReadyUntil may decrease, also below
// started_until, so that its callers compare the two and never subtract; and a worker that waits for ring space must
// have stored its place, as the old bound would keep the writer from freeing that space.
//
// A stream with a FillTracker (the central log and its rivals, logging/eleda) asks the tracker instead, and its places
// are reserved by ReserveTracked, without a bound.
//
// Threads: Reserve, its two steps, Submit, Void: any worker, with its own slot. The rest: the stream's writer alone,
// except where a comment says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/host.h"
#include "base/live_counter.h"
#include "base/types.h"
#include "logging/device/block_device.h"
#include "logging/fill_tracker.h"
#include "logging/format.h"
#include "logging/mirrored_buffer.h"
#include "logging/record_builder.h"
#include "logging/writer_signal.h"

namespace dbx {

// The first two are final when the writer has ended, the others may be read meanwhile (live_counter.h).
struct StreamCounters {
  uint64_t pad_bytes = 0;
  uint64_t anchor_bytes = 0;
  uint64_t flushes = 0;
  uint64_t flush_nanos = 0;
};

class LogStream {
 public:
  static constexpr uint64_t kIdle = UINT64_MAX;

  // The filler's word and its private copy of how far the ring is free, a cache line per worker.
  struct alignas(kCacheLineBytes) Slot {
    Atomic<uint64_t> filling_from{kIdle};
    Lsn free_until;
    Lsn last_end;               // of its last place in this stream
    uint64_t record_bytes = 0;  // counters of this worker on this stream
    uint64_t void_bytes = 0;
    uint64_t txn_count = 0;   // transactions' records
    uint64_t part_count = 0;  // of these, further parts of transactions that are counted in another log
  };

  // The size of the ring that a stream makes for `bytes`.
  static uint64_t RingBytes(uint64_t bytes) {
    return MirroredBuffer::RoundedBytes(std::max<uint64_t>(bytes, 16 * format::kBlockBytes));
  }

  using Place = LogPlace;

  // `persistent` is this log's element of the durable vector, written here alone. `slots` is the number of workers.
  // A record of more than `max_record_bytes`, or a quarter of the ring, is refused by its scheme. The stream starts at
  // `start_lsn`, the start of a block.
  LogStream(uint32_t index, uint32_t salt, uint64_t ring_bytes, uint64_t max_record_bytes, uint32_t slots,
            std::unique_ptr<BlockDevice> device, uint64_t& persistent, Lsn start_lsn = {});

  // Reserves a place of `bytes` (a multiple of 8, at most max_record_bytes). Waits for ring space (back-pressure),
  // which the writer frees independently of this worker. Throws the error that failed the log, if there was one.
  Place Reserve(uint32_t worker, uint32_t bytes) {
    const Place place = TakePlace(worker, bytes);
    AwaitPlace(worker, place);
    return place;
  }

  // Reserve in two steps, for schemes that reserve in several logs at once. The first step never blocks; the place may
  // be written to after the second.
  Place TakePlace(uint32_t worker, uint32_t bytes) {
    Slot& slot = slots_[worker];
    // Release, both times: a writer that reads a bound, instead of the kIdle before it, sees this worker's last fill
    // too.
    slot.filling_from.store(slot.last_end.value(), std::memory_order_release);
    // Sequentially consistent against `writer_asleep_`: either this worker sees that the writer sleeps or the writer
    // sees the place.
    const Place place{Lsn(reserved_until_.fetch_add(bytes)), bytes};
    slot.filling_from.store(place.lsn.value(), std::memory_order_release);
    slot.last_end = place.end();
    return place;
  }
  void AwaitPlace(uint32_t worker, const Place& place) {
    Slot& slot = slots_[worker];
    if (place.end() > slot.free_until) AwaitSpace(slot, place);
  }

  // The same for a stream with a tracker, to which alone the fill is reported.
  Place ReserveTracked(uint32_t worker, uint32_t bytes) {
    Slot& slot = slots_[worker];
    // Sequentially consistent, as in TakePlace.
    const Place place{Lsn(reserved_until_.fetch_add(bytes)), bytes};
    if (place.end() > slot.free_until) AwaitSpace(slot, place);
    return place;
  }

  std::byte* at(const Place& place) const { return at(place.lsn); }
  format::RecordHeader HeaderFor(const Place& place, format::RecordKind kind) const {
    return HeaderOf(place.lsn, place.bytes, salt_, index_, kind);
  }

  // The place is filled.
  void Submit(uint32_t worker, const Place& place, bool is_further_part = false) {
    CountRecord(worker, place);
    slots_[worker].part_count += is_further_part;
    Finish(worker);
  }

  // The same of a record that is no transaction's last: it counts as none.
  void SubmitPart(uint32_t slot, const Place& place) {
    slots_[slot].record_bytes += place.bytes;
    Finish(slot);
  }

  // The worker has filled `used` bytes of the place with the records of `txns` transactions; the rest becomes VOID.
  void SubmitChunk(uint32_t worker, const Place& place, uint32_t used, uint32_t txns) {
    if (used < place.bytes) FillVoid(worker, {place.lsn + used, place.bytes - used});
    slots_[worker].record_bytes += used;
    slots_[worker].txn_count += txns;
    Finish(worker);
  }

  // The transaction aborted: the place becomes a VOID record.
  void Void(uint32_t worker, const Place& place) {
    FillVoid(worker, place);
    Finish(worker);
  }

  // The steps of Submit and Void, for a scheme in which another thread reports that the place is filled.
  void CountRecord(uint32_t worker, const Place& place) {
    slots_[worker].record_bytes += place.bytes;
    ++slots_[worker].txn_count;
  }
  void FillVoid(uint32_t worker, const Place& place) {
    BuildVoid(at(place), place.lsn, place.bytes, salt_, index_);
    slots_[worker].void_bytes += place.bytes;
  }
  // The place of this slot is filled.
  void Finish(uint32_t slot) {
    // Release: the writer that reads kIdle, or a later bound, sees the filled bytes.
    slots_[slot].filling_from.store(kIdle, std::memory_order_release);
    WakeSleepingWriter();
  }
  // After a fill: the writer polls nothing during a long sleep.
  void WakeSleepingWriter() { WakeWriterIfAsleep(); }
  // Any thread. Throws the error that failed the log: a device's, or a worker's.
  void ThrowIfFailed() const;

  uint32_t index() const { return index_; }
  uint32_t salt() const { return salt_; }
  uint64_t max_record_bytes() const { return max_record_bytes_; }
  uint64_t ring_bytes() const { return ring_.size_bytes(); }
  // Any thread. Every version that a transaction could have read was reserved below this (serial logs). Sequentially
  // consistent: a writer that announces its sleep finds the places whose fillers missed the flag.
  Lsn reserved_until() const { return Lsn(reserved_until_.load(std::memory_order_seq_cst)); }
  // Any thread.
  uint64_t reserved_bytes() const { return reserved_until() - start_lsn_; }
  uint64_t persistent_bytes() const { return persistent_until() - start_lsn_; }
  Lsn persistent_until() const { return Lsn(AtomicRef<uint64_t>(persistent_).load(std::memory_order_acquire)); }
  const BlockDevice& device() const { return *device_; }
  const StreamCounters& counters() const { return counters_; }
  const Slot& slot(uint32_t worker) const { return slots_[worker]; }
  uint64_t txn_count() const;
  // Before the workers start: their waits for ring space are timed.
  void TimeSpaceWaits() { times_space_waits_ = true; }
  // Any thread: of the worker, up to now; nothing unless they are timed.
  LiveWaits::Reading SpaceWaits(uint32_t worker, uint64_t now_ticks) const {
    return space_waits_[worker].value.Read(now_ticks);
  }

  // Before the writer starts: there are `count` slots, those of the workers first.
  void SetSlots(uint32_t count);
  // Before the writer starts. `tracker`, which outlives the writer, decides which places are filled.
  void SetTracker(FillTracker& tracker) { tracker_ = &tracker; }

  // --- the writer's side ---

  // Appends a record of the scheme's own that holds `words`, if there is space for one; returns its end. Only
  // afterwards may a scheme rely on it, as LV compression does on an anchor.
  std::optional<Lsn> AppendOwn(format::RecordKind kind, std::span<const uint64_t> words);
  // Fills up the last block, if it is partial and there is space.
  void AppendPad();
  void AppendRunEnd(const std::optional<std::pair<uint64_t, uint64_t>>& digest);

  // No place below the result is still being filled. It may be less than an earlier result was.
  Lsn ReadyUntil() const;
  // Makes the tracker, if there is one, cover all places filled by now.
  void CatchUp() {
    if (tracker_ != nullptr && tracker_->FilledUntil() < reserved_until()) tracker_->CatchUp();
  }
  // There is a complete block to flush, or an incomplete one and no worker is filling: a PAD would complete it.
  bool HasFlushable() const {
    const Lsn ready = ReadyUntil();
    return format::BlockBelow(ready) > started_until_ || (ready > started_until_ && ready == reserved_until());
  }
  Lsn started_until() const { return started_until_; }

  // Hands all complete blocks to the device, in writes of at most `write_bytes_max`. True if there were any.
  bool StartFlush(uint64_t write_bytes_max);
  // Publishes how far the device has made the log durable (group commit); with `wait` up to all started writes.
  void CompleteFlush(bool wait);

  // Any thread.
  void WakeWriterIfAsleep() {
    if (writer_asleep_.load()) WakeWriter();
  }
  // Before the writer starts, which outlives the use of the stream; a tracker starts with it.
  void StartWriter(WriterSignal& writer);
  void StopTracker() {
    if (tracker_ != nullptr) tracker_->Stop();
  }
  Atomic<bool>& writer_asleep() { return writer_asleep_; }

 private:
  Lsn LastRecordEnd(Lsn durable) const;
  void AwaitSpace(Slot& slot, const Place& place);
  void AwaitFreeSpace(Slot& slot, const Place& place);
  void SealOwnRecord(const Place& place, format::RecordKind kind);
  void WakeWriter();
  std::byte* at(Lsn lsn) const { return ring_.at(lsn.value()); }
  // The ring is free below this: the bytes of the previous lap may be overwritten once they are durable.
  Lsn FreeUntil() const { return persistent_until() + ring_.size_bytes(); }

  const uint32_t index_;
  const uint32_t salt_;
  MirroredBuffer ring_;
  const uint64_t max_record_bytes_;
  static_assert(sizeof(Slot) == kCacheLineBytes);
  std::vector<Slot> slots_;  // one per worker
  std::vector<CachePadded<LiveWaits>> space_waits_;
  bool times_space_waits_ = false;
  std::unique_ptr<BlockDevice> device_;
  uint64_t& persistent_;
  WriterSignal* writer_ = nullptr;
  FillTracker* tracker_ = nullptr;
  const Lsn start_lsn_;
  Lsn started_until_;
  Lsn pad_end_;  // of the last PAD
  uint64_t flush_started_nanos_ = 0;
  StreamCounters counters_;

  alignas(kCacheLineBytes) Atomic<uint64_t> reserved_until_;
  alignas(kCacheLineBytes) Atomic<bool> writer_asleep_{false};
};

}  // namespace dbx
