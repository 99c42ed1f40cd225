// The common part of the recoveries of all schemes (redo): lanes, counters, waiting, and the verdict on the ends of the
// logs. A scheme adds NextReady, its order of replay.
//
// Threads: Open and Finish belong to one thread; in between each worker uses its own id.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/host.h"
#include "base/spin.h"
#include "logging/log_ends.h"
#include "logging/log_reader.h"
#include "logging/replay_lanes.h"

namespace dbx {

struct ReplaySettings {
  enum class Serially { kAuto, kAlways, kNever };

  uint32_t workers = 1;
  size_t block_bytes = 1 << 20;
  Serially serially = Serially::kAuto;  // replay by one worker while the others read
  // Which stages of a restart from a backup overlap (logging/differential/differential_recovery.h).
  uint32_t restart_level = 0;
};

class LaneRecovery {
 public:
  // Are the versions of a row replayed in any order (last writer wins)?
  static constexpr bool kNewestWins = false;
  // May the records be commands with timestamps?
  static constexpr bool kManyVersions = true;

  explicit LaneRecovery(const ReplaySettings& settings) : settings_(settings), workers_(settings.workers) {}

  // Reads, checks and queues some more records, or waits a little if there is nothing else to do. False when everything
  // is replayed. Throws Error.
  bool Decode(WorkerId worker);

  // `worker` has replayed the record that NextReady gave it.
  void MarkReplayed(WorkerId worker);

  // Ends every worker's Decode, after an error.
  void Stop() { lanes_->Stop(); }

  // After the last worker: sums up, and refuses (Error kCorrupt) logs that end before a position that was once durable.
  ReplaySummary Finish();

  // No record that is still to be replayed, or is being, reads below this.
  Timestamp Watermark() const { return lanes_->Watermark(); }

  const LogSource& source(uint32_t log) const { return lanes_->reader(log).source(); }

 protected:
  struct alignas(kNoSharingBytes) Worker {
    // Written by the worker, read by worker 0 to estimate the parallelism; no order is needed.
    Atomic<uint64_t> recovered{0};
    Atomic<uint64_t> replay_ticks{0};  // in streaks that have ended
    Atomic<uint64_t> streak_start{0};  // time stamp; 0: not replaying
    Atomic<uint64_t> decode_ticks{0};  // checking, and waiting for a device
    uint64_t dropped = 0;
    uint64_t idle_rounds = 0;  // consecutive calls of Decode that found nothing to do
    uint64_t seen_progress = 0;
    uint64_t looked_nanos = 0;  // when it was seen
    SpinWait wait;
    LongWait device_wait;
    LsnPerLog replayed_until{};  // as last seen

    // There is something to do.
    void StopWaiting() {
      idle_rounds = 0;
      wait = SpinWait();
      device_wait = LongWait();
    }
  };

  void OpenLanes(const std::vector<LogSource>& sources, uint32_t lanes_per_log);
  // A worker that went from waiting to replaying, or back.
  void BeginStreak(Worker& worker);
  void EndStreak(Worker& worker);
  // A worker has been idle for so long that it should check whether all are. Only a suspicion.
  bool SuspectsDeadlock(Worker& worker) const;
  uint64_t SumOfProgress() const;
  // The work of all workers up to the time stamp `now`, approximately.
  struct Work {
    uint64_t recovered = 0;
    uint64_t replay_ticks = 0;
    uint64_t decode_ticks = 0;
  };
  Work SumUp(uint64_t now) const;

  ReplaySettings settings_;
  std::unique_ptr<ReplayLanes> lanes_;
  std::vector<Worker> workers_;
  uint64_t start_ticks_ = 0;
  bool went_serial_ = false;
};

// For counters that one worker writes and others may read.
inline void AddOwn(Atomic<uint64_t>& counter, uint64_t more) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

inline void LaneRecovery::BeginStreak(Worker& worker) {
  if (worker.streak_start.load(std::memory_order_relaxed) != 0) return;
  worker.streak_start.store(host::TimeStamp(), std::memory_order_relaxed);
  worker.StopWaiting();
}

inline void LaneRecovery::EndStreak(Worker& worker) {
  const uint64_t start = worker.streak_start.load(std::memory_order_relaxed);
  if (start == 0) return;
  worker.streak_start.store(0, std::memory_order_relaxed);
  AddOwn(worker.replay_ticks, host::TimeStamp() - start);
}

inline void LaneRecovery::MarkReplayed(WorkerId worker) {
  Worker& me = workers_[worker.value()];
  AddOwn(me.recovered, 1);
  lanes_->Pop(*lanes_->held_lane(worker));
}

}  // namespace dbx
