// How parallel the replay of a run's logs can be, whatever cores this host has: a model, computed from the records
// alone. Nothing is replayed. Used by log_dump --parallelism (parallelism_report.h).
//
// The *work* is the sum of the records' costs. An order of replay says which records must have ended before a record
// begins; the *critical path* is the largest sum of costs along such records, the time of a replay by any number of
// threads. Work / critical path is the *inherent parallelism*, a word of Taurus, section 3.5: where it is low,
// dependencies dominate and a serial replay is as good. The time with n threads is that of a list schedule: a free
// thread takes, of the records that may begin, the one that lies first in its log. Without devices it is at least
// work / n and the critical path, and less than their sum (Graham, SIAM J. Appl. Math. 17(2), 1969).
//
// Assumptions: a record takes one thread, without interruption, for a cost that depends neither on other threads nor
// on caches; queues, hand-overs between threads and the checking of records cost nothing; all that a device has read
// may be replayed at once (a recovery bounds its queues). kLanes is the order with the queues of this engine's.
//
// Threads: none of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace dbx {

enum class ModelledOrder : uint8_t {
  kTotal,       // one record after the other: by LSN or stamp, or as one thread replays logs with LSN vectors
  kLsnVectors,  // a record waits until each log is replayed up to its LSN vector (T.LV <= RLV: Taurus, section 3.3)
  kLanes,       // the same, and behind the record before it in its lane (logging/replay_lanes.h)
  kPartitions,  // each log in its own order; the logs do not wait for each other
  kNewestWins,  // no record waits for another: of a row's images the newest one stays
};
inline constexpr size_t kModelledOrders = 5;
// By the order's number; as --orders and the output name it.
inline constexpr std::array<std::string_view, kModelledOrders> kOrderNames = {"total", "lsn_vectors", "lanes",
                                                                              "partitions", "newest_wins"};
constexpr std::string_view NameOf(ModelledOrder order) { return kOrderNames[static_cast<size_t>(order)]; }

inline constexpr uint32_t kUnlimitedThreads = std::numeric_limits<uint32_t>::max();

// A record of a transaction, or the part of one in its log.
struct ReplayedRecord {
  Lsn lsn{};
  Stamp stamp{};            // where records are ordered by stamps
  double cost_ns = 0;       // above 0
  double available_ns = 0;  // no thread has it earlier: a device reads up to it first
  uint32_t batch = 0;       // of the log's reader, from 0 on (kLanes)
};

struct StampRead {
  Stamp stamp;
  double available_ns = 0;
};

struct ReplayedLog {
  Lsn first;                            // where reading begins
  Lsn end;                              // of the valid prefix
  std::vector<ReplayedRecord> records;  // ascending
  // Of logs with LSN vectors: those of the records, one element per log each, anchors included. A log must be replayed
  // up to its element first.
  std::vector<Lsn> lsn_vectors;
  // Of logs by partition: all stamps in it, marks' included, ascending.
  std::vector<StampRead> stamps;
};

// Removes the records that a recovery drops, and returns their number: those that wait for a position behind the end of
// a log, by LSN vector ...
uint64_t DropBehindEnds(std::vector<ReplayedLog>& logs);
// ... or stamps: of logs by partition those above the last stamp of any log, ...
uint64_t DropBehindStamps(std::vector<ReplayedLog>& logs);
// ... or those above `last`.
uint64_t DropAbove(std::vector<ReplayedLog>& logs, Stamp last);
// Logs by partition: a record is available once every log was read up to its stamp. None is above a log's last stamp.
void AwaitStamps(std::vector<ReplayedLog>& logs);

class ReplayModel {
 public:
  // At most 2^32 - 2 records.
  explicit ReplayModel(const std::vector<ReplayedLog>& logs);

  size_t record_count() const { return cost_ns_.size(); }
  double work_ns() const { return work_ns_; }
  // These throw Error(kCorrupt) where LSN vectors wait for each other. Without records both are 0.
  double CriticalPathNs(ModelledOrder order) const;
  double TimeNs(ModelledOrder order, uint32_t threads) const;

 private:
  friend class ListSchedule;
  // Records that must be replayed one after the other: each record is in one queue.
  struct Queues {
    std::vector<uint32_t> heads;
    std::vector<uint32_t> next;  // by record
  };

  bool has_lsn_vectors() const { return !waits_.empty(); }
  double Replay(ModelledOrder order, uint32_t threads, bool with_devices) const;
  Queues QueuesOf(ModelledOrder order, uint32_t threads) const;
  std::vector<uint32_t> TotalOrder() const;

  // Records by number, which is their place in the order in which threads prefer them: by offset in their log.
  std::vector<double> cost_ns_;
  std::vector<double> available_ns_;
  std::vector<Stamp> stamp_;
  std::vector<uint32_t> batch_;
  std::vector<uint32_t> log_;
  std::vector<uint32_t> waits_;  // for each log, of how many of its first records the end; by record
  std::vector<std::vector<uint32_t>> of_log_;
  double work_ns_ = 0;
};

}  // namespace dbx
