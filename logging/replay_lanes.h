// The lanes in which redo records are replayed in parallel, for every log scheme.
//
// Each log is divided into lanes: batch b of a log belongs to its lane b mod K, and a lane is replayed strictly in
// order by the worker that holds it. Workers hold one lane at a time and release it when its next record must wait; the
// scheme decides that (Taurus compares LSN vectors, Plover stamps; the others never wait).
//
// A worker that finds nothing to replay checks and cuts the next batches of a log (Decode), lanes with fewer than
// kLowBatches queued batches first, so that decoding and replaying overlap as soon as there are two workers. It does
// not wait for a device while another log can be cut: each log's next block is read in the background (LogReader), so
// that all devices read at once, however few the workers are.
//
// A lane publishes its *progress*, an LSN below which it has replayed or dropped all its records. That is the start of
// its next transaction; with nothing queued, it is the LSN up to which the log's batches have been handed out.
// ReplayedUntil(log), Taurus's RLV, is the least progress over the log's lanes. VOIDs, PADs and anchors are skipped,
// and a log that has ended stays at its end (ELV): records behind it were not replayed and never will be.
//
// Under multi-version replay a lane publishes a *watermark* too: a timestamp below which no transaction that it is
// replaying, or has yet to replay, reads; the last one in its log before the current batch. The least of all lanes
// bounds the garbage collection of versions.
//
// Memory order. The reader pushes a batch first and publishes its position behind it afterwards; a lane reads the
// position, and the watermark behind it, first and its queue afterwards. So a lane that finds its queue empty has seen
// every own batch below the position that it then publishes. Progress, and the watermark, is stored with release after
// the rows were written, or read, and loaded with acquire before dependent rows are read, or versions freed.
//
// Static assignment of lanes to workers was rejected: with three logs on two workers one of them gets two thirds of the
// work, and a descheduled worker would stall the lanes statically assigned to it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "base/spin.h"
#include "base/types.h"
#include "logging/log_reader.h"
#include "logging/records/txn_record.h"

namespace dbx {

class ReplayLanes {
 public:
  static constexpr uint32_t kQueueBatches = 16;  // per lane
  static constexpr uint32_t kLowBatches = 3;     // with fewer queued, the lane is running low
  static constexpr uint32_t kSpareBuffers = 4;   // per log, beside one per lane

  struct Lane {
    // Held by one worker at a time; all but the atomics and `queue` below belongs to the holder.
    alignas(kNoSharingBytes) Atomic<bool> held{false};
    alignas(kNoSharingBytes) Atomic<uint64_t> progress{0};
    Atomic<uint64_t> watermark{0};
    // A ring: batches [taken, pushed) are queued. The log's reader pushes, the lane's holder takes.
    alignas(kNoSharingBytes) Atomic<uint32_t> pushed{0};
    std::array<RecordBatch, kQueueBatches> queue;
    alignas(kNoSharingBytes) Atomic<uint32_t> taken{0};

    uint32_t log = 0;
    bool done = false;
    bool asked_for_more = false;  // since the current batch was taken
    RecordBatch batch;            // being replayed; no buffer: none is
    std::vector<TxnRecord> records;
    size_t head = 0;
    uint64_t next_sequence = 0;      // above that of every transaction unpacked here
    std::vector<LsnPerLog> anchors;  // in force in this batch
    // The scheme's: the anchor that is known to be covered by RLV.
    const LsnPerLog* covered_anchor = nullptr;
  };

  enum class Decoded {
    kBatches,  // some lane got a batch
    kReading,  // a lane is running low, and the device of its log has not answered yet
    kNothing,  // every log has ended, is being decoded by others, or is far enough ahead
    kDone,     // every lane has replayed everything, or Stop was called
  };

  ReplayLanes(const std::vector<LogSource>& sources, uint32_t workers, uint32_t lanes_per_log, size_t block_bytes);

  // Cuts batches of one log; waits for a device only if the log is one short block.
  Decoded Decode(WorkerId worker);

  // The lane that `worker` holds, or tries to hold; nullptr when another worker has it.
  Lane* Hold(WorkerId worker);
  // Releases the lane and turns to the next one.
  void MoveOn(WorkerId worker);
  void LetGo(WorkerId worker);
  Lane* held_lane(WorkerId worker) { return workers_[worker.value()].held; }

  // The next record of a lane that is held, or nullptr: nothing is queued now, or nothing ever will be.
  TxnRecord* Head(Lane& lane);
  // The head has been replayed, or dropped.
  void Pop(Lane& lane);

  // Should the holder of this lane read on before it replays on? True at most once per batch, when the lane is running
  // low and no worker reads its log: reading then overlaps with the replay of other workers.
  bool IsTimeToDecode(Lane& lane) const;

  // The least progress over the log's lanes.
  Lsn ReplayedUntil(uint32_t log) const;
  // The least watermark of all lanes; UINT64_MAX once every lane has replayed everything.
  Timestamp Watermark() const;
  // Is the end of the log's valid prefix (ELV) known?
  bool EndIsKnown(uint32_t log) const { return logs_[log].ended.load(std::memory_order_acquire); }
  Lsn EndOf(uint32_t log) const { return Lsn(logs_[log].position.load(std::memory_order_acquire)); }
  // The largest stamp read from the log so far.
  Stamp StampReadUntil(uint32_t log) const { return Stamp(logs_[log].stamp.load(std::memory_order_acquire)); }

  // Runs `check` while no other worker holds a lane or cuts a log. False, without running it, once stopped.
  template <class Check>
  bool Alone(WorkerId worker, Check&& check);
  // Reads on for every log that can, and waits for their devices; true if a lane got a batch. Inside Alone only.
  bool DecodeEveryLog();

  // Makes every worker's Decode return kDone, for good.
  void Stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  uint32_t log_count() const { return static_cast<uint32_t>(logs_.size()); }
  uint32_t lanes_per_log() const { return lanes_per_log_; }
  std::span<std::unique_ptr<Lane>> lanes() { return lanes_; }
  const LogReader& reader(uint32_t log) const { return *logs_[log].reader; }

 private:
  struct alignas(kNoSharingBytes) Log {
    Atomic<bool> reading{false};
    std::unique_ptr<LogReader> reader;  // used by the worker that reads
    uint64_t batches = 0;               // cut so far; used by the worker that reads
    alignas(kNoSharingBytes) Atomic<uint64_t> position{0};
    Atomic<uint64_t> stamp{0};
    Atomic<uint64_t> watermark{0};
    Atomic<bool> ended{false};
  };
  struct alignas(kNoSharingBytes) Worker {
    uint32_t turn = 0;  // the lane to hold next
    Lane* held = nullptr;
  };

  static bool TryLock(Atomic<bool>& lock) {
    return !lock.load(std::memory_order_relaxed) && !lock.exchange(true, std::memory_order_acquire);
  }
  bool LockUnlessStopped(Atomic<bool>& lock) const;
  static bool IsRunningLow(const Lane& lane);
  bool HasLaneRunningLow(uint32_t log) const;
  Decoded CutBatches(Log& log, uint32_t log_index, bool wait);
  bool TakeBatch(Lane& lane);
  void Unpack(Lane& lane);
  void UnpackTxn(Lane& lane, const RecordType& type, const format::RecordHeader& header, std::span<std::byte> body,
                 Lsn at);
  [[noreturn]] void Malformed(uint32_t log, Lsn at, const char* why) const;

  uint32_t lanes_per_log_;
  std::vector<Log> logs_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // lane k of log j is at k * log_count + j
  std::vector<Worker> workers_;
  Atomic<uint32_t> lanes_done_{0};
  Atomic<bool> stopped_{false};
};

template <class Check>
bool ReplayLanes::Alone(WorkerId worker, Check&& check) {
  LetGo(worker);
  size_t lanes = 0;
  size_t logs = 0;
  while (lanes < lanes_.size() && LockUnlessStopped(lanes_[lanes]->held)) ++lanes;
  if (lanes == lanes_.size()) {
    while (logs < logs_.size() && LockUnlessStopped(logs_[logs].reading)) ++logs;
  }
  const bool alone = lanes == lanes_.size() && logs == logs_.size();
  if (alone) check();
  while (logs > 0) logs_[--logs].reading.store(false, std::memory_order_release);
  while (lanes > 0) lanes_[--lanes]->held.store(false, std::memory_order_release);
  return alone;
}

}  // namespace dbx
