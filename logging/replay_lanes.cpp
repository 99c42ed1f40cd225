#include "logging/replay_lanes.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/host.h"

namespace dbx {

using format::RecordHeader;
using format::RecordKind;

ReplayLanes::ReplayLanes(const std::vector<LogSource>& sources, uint32_t workers, uint32_t lanes_per_log,
                         size_t block_bytes)
    : lanes_per_log_(lanes_per_log), logs_(sources.size()), workers_(workers) {
  CHECK(!sources.empty() && workers > 0 && lanes_per_log > 0);
  for (uint32_t j = 0; j < sources.size(); ++j) {
    CHECK(sources[j].log_index == j && sources[j].log_count == sources.size());
    logs_[j].reader = std::make_unique<LogReader>(sources[j], block_bytes, lanes_per_log + kSpareBuffers);
    logs_[j].position.store(sources[j].First().value(), std::memory_order_relaxed);
    logs_[j].watermark.store(sources[j].first_timestamp.value(), std::memory_order_relaxed);
  }
  for (uint32_t i = 0; i < lanes_per_log * sources.size(); ++i) {
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->log = i % static_cast<uint32_t>(sources.size());
    lanes_.back()->progress.store(sources[lanes_.back()->log].First().value(), std::memory_order_relaxed);
    lanes_.back()->watermark.store(sources[lanes_.back()->log].first_timestamp.value(), std::memory_order_relaxed);
    lanes_.back()->records.reserve(LogReader::kBatchRecords);
  }
  // Workers start at distant lanes; which lanes they take next follows the load.
  for (uint32_t w = 0; w < workers; ++w) {
    workers_[w].turn = static_cast<uint32_t>(uint64_t{w} * lanes_.size() / workers);
  }
}

bool ReplayLanes::LockUnlessStopped(Atomic<bool>& lock) const {
  for (SpinWait wait; !TryLock(lock); wait.Wait()) {
    if (stopped()) return false;
  }
  return true;
}

bool ReplayLanes::IsTimeToDecode(Lane& lane) const {
  if (lane.asked_for_more) return false;
  lane.asked_for_more = true;
  const Log& log = logs_[lane.log];
  return IsRunningLow(lane) && !log.ended.load(std::memory_order_relaxed) &&
         !log.reading.load(std::memory_order_relaxed);
}

bool ReplayLanes::IsRunningLow(const Lane& lane) {
  return lane.pushed.load(std::memory_order_relaxed) - lane.taken.load(std::memory_order_relaxed) < kLowBatches;
}

bool ReplayLanes::HasLaneRunningLow(uint32_t log) const {
  for (uint32_t i = log; i < lanes_.size(); i += log_count()) {
    if (IsRunningLow(*lanes_[i])) return true;
  }
  return false;
}

ReplayLanes::Decoded ReplayLanes::Decode(WorkerId worker) {
  if (stopped() || lanes_done_.load(std::memory_order_acquire) == lanes_.size()) return Decoded::kDone;
  const uint32_t first = worker.value() % log_count();
  Decoded rest = Decoded::kNothing;
  for (const bool low_only : {true, false}) {
    for (uint32_t i = 0; i < log_count(); ++i) {
      const uint32_t j = (first + i) % log_count();
      Log& log = logs_[j];
      if (log.ended.load(std::memory_order_relaxed) || (low_only && !HasLaneRunningLow(j)) || !TryLock(log.reading))
        continue;
      const Decoded decoded = CutBatches(log, j, /*wait=*/false);
      log.reading.store(false, std::memory_order_release);
      if (decoded == Decoded::kBatches) return decoded;
      // A log that is far enough ahead makes no worker wait.
      if (low_only && decoded == Decoded::kReading) rest = decoded;
    }
  }
  return rest;
}

bool ReplayLanes::DecodeEveryLog() {
  bool got_some = false;
  for (uint32_t j = 0; j < log_count(); ++j) got_some |= CutBatches(logs_[j], j, /*wait=*/true) == Decoded::kBatches;
  return got_some;
}

// A few batches at most, so that they are still in the reader's cache when it replays them itself.
ReplayLanes::Decoded ReplayLanes::CutBatches(Log& log, uint32_t log_index, bool wait) {
  constexpr uint32_t kBatchesPerVisit = 8;
  LogReader& reader = *log.reader;
  uint32_t cut = 0;
  bool is_late = false;
  while (cut < std::max(kBatchesPerVisit, lanes_per_log_) && !reader.ended()) {
    Lane& lane = *lanes_[log.batches % lanes_per_log_ * log_count() + log_index];
    const uint32_t pushed = lane.pushed.load(std::memory_order_relaxed);
    // Acquire: the lane had copied the batch out of the slot before its release.
    if (pushed - lane.taken.load(std::memory_order_acquire) == kQueueBatches) break;
    const LogReader::Result result = reader.Cut(lane.queue[pushed % kQueueBatches], wait);
    is_late = result == LogReader::Result::kNotYet;
    if (is_late || result == LogReader::Result::kNoBuffer) break;
    if (result == LogReader::Result::kBatch) {
      lane.pushed.store(pushed + 1, std::memory_order_release);
      ++log.batches;
      ++cut;
    }
    log.watermark.store(reader.watermark().value(), std::memory_order_release);
    log.position.store(reader.position().value(), std::memory_order_release);
    log.stamp.store(reader.totals().stamp.value(), std::memory_order_release);
  }
  const bool is_news = reader.ended() && !log.ended.load(std::memory_order_relaxed);
  if (is_news) log.ended.store(true, std::memory_order_release);
  if (cut > 0 || is_news) return Decoded::kBatches;
  return is_late ? Decoded::kReading : Decoded::kNothing;
}

ReplayLanes::Lane* ReplayLanes::Hold(WorkerId worker) {
  Worker& me = workers_[worker.value()];
  if (me.held == nullptr) {
    Lane* lane = lanes_[me.turn].get();
    if (TryLock(lane->held)) me.held = lane;
  }
  return me.held;
}

void ReplayLanes::LetGo(WorkerId worker) {
  Worker& me = workers_[worker.value()];
  if (me.held == nullptr) return;
  me.held->held.store(false, std::memory_order_release);
  me.held = nullptr;
}

void ReplayLanes::MoveOn(WorkerId worker) {
  LetGo(worker);
  Worker& me = workers_[worker.value()];
  me.turn = me.turn + 1 == lanes_.size() ? 0 : me.turn + 1;
}

TxnRecord* ReplayLanes::Head(Lane& lane) {
  while (lane.head == lane.records.size()) {
    if (!TakeBatch(lane)) return nullptr;
  }
  return &lane.records[lane.head];
}

void ReplayLanes::Pop(Lane& lane) {
  ++lane.head;
  if (lane.head < lane.records.size()) {
    lane.progress.store(lane.records[lane.head].lsn.value(), std::memory_order_release);
  } else {
    // The next batch, or the reader's position, will determine the lane's progress.
    lane.batch.buffer->Release();
    lane.batch.buffer = nullptr;
  }
}

bool ReplayLanes::TakeBatch(Lane& lane) {
  const Log& log = logs_[lane.log];
  // In this order; see the head of this file's header.
  const bool ended = log.ended.load(std::memory_order_acquire);
  const uint64_t position = log.position.load(std::memory_order_acquire);
  const uint64_t watermark = log.watermark.load(std::memory_order_acquire);
  const uint32_t taken = lane.taken.load(std::memory_order_relaxed);
  if (lane.pushed.load(std::memory_order_acquire) == taken) {
    if (lane.progress.load(std::memory_order_relaxed) != position) {
      lane.progress.store(position, std::memory_order_release);
      lane.watermark.store(watermark, std::memory_order_release);
    }
    if (ended && !lane.done) {
      lane.done = true;
      lane.watermark.store(UINT64_MAX, std::memory_order_release);
      lanes_done_.fetch_add(1, std::memory_order_release);
    }
    return false;
  }
  lane.batch = lane.queue[taken % kQueueBatches];
  lane.taken.store(taken + 1, std::memory_order_release);
  lane.watermark.store(lane.batch.watermark.value(), std::memory_order_release);
  lane.asked_for_more = false;
  Unpack(lane);
  if (lane.records.empty()) {
    lane.batch.buffer->Release();
    lane.batch.buffer = nullptr;
  } else {
    lane.progress.store(lane.records.front().lsn.value(), std::memory_order_release);
  }
  return true;
}

void ReplayLanes::Unpack(Lane& lane) {
  lane.records.clear();
  lane.head = 0;
  lane.covered_anchor = nullptr;
  lane.anchors.assign(1, lane.batch.anchor);
  std::byte* bytes = lane.batch.bytes;
  for (Lsn at = lane.batch.first; at < lane.batch.end;) {
    RecordHeader header;
    std::memcpy(&header, bytes, sizeof header);
    const std::span body(bytes + sizeof header, header.length - sizeof header);
    const RecordType& type = *TypeOf(header.kind);
    if (type.role == RecordRole::kTransaction) {
      UnpackTxn(lane, type, header, body, at);
    } else if (type.role == RecordRole::kAnchor) {
      std::memcpy(lane.anchors.emplace_back().data(), body.data(), log_count() * sizeof(Lsn));
    }
    at += header.length;
    bytes += header.length;
  }
  const size_t count = lane.records.size();
  for (size_t i = 0; i < count; ++i) lane.records[i].behind = static_cast<uint16_t>(count - 1 - i);
}

void ReplayLanes::UnpackTxn(Lane& lane, const RecordType& type, const RecordHeader& header, std::span<std::byte> body,
                            Lsn at) {
  if (body.size() < type.leading_bytes(header)) Malformed(lane.log, at, "transaction record too short");
  if (uint32_t{header.lv_mask} >> log_count() != 0) Malformed(lane.log, at, "a mask of more logs than there are");
  TxnRecord& record = lane.records.emplace_back();
  record.txn_id = *FieldOf<TxnId>(body);
  lane.next_sequence = std::max(lane.next_sequence, record.txn_id.sequence() + 1);
  record.lsn = at;
  record.lv_mask = header.lv_mask;
  record.procedure = ProcedureId(header.procedure);
  record.kind = static_cast<RecordKind>(header.kind);
  record.log = lane.log;
  record.anchor = static_cast<uint16_t>(lane.anchors.size() - 1);
  type.unpack(record, header, body);
}

Lsn ReplayLanes::ReplayedUntil(uint32_t log) const {
  uint64_t least = lanes_[log]->progress.load(std::memory_order_acquire);
  for (uint32_t i = log + log_count(); i < lanes_.size(); i += log_count()) {
    least = std::min(least, lanes_[i]->progress.load(std::memory_order_acquire));
  }
  return Lsn(least);
}

Timestamp ReplayLanes::Watermark() const {
  uint64_t least = UINT64_MAX;
  for (const auto& lane : lanes_) least = std::min(least, lane->watermark.load(std::memory_order_acquire));
  return Timestamp(least);
}

void ReplayLanes::Malformed(uint32_t log, Lsn at, const char* why) const {
  ThrowDamaged(reader(log).source(), at, why);
}

}  // namespace dbx
