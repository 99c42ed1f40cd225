// Recovery of Taurus logs ("Taurus: Lightweight Parallel Logging for In-Memory Database Management Systems",
// sections 3.3, 3.5 and 4.1): replay in any order that respects the LSN vectors.
//
//   T.LV   the record's LSN vector; LV decompression takes missing elements from the anchor in force (LPLV)
//   RLV    RLV[j]: everything in log j below has been replayed or dropped (ReplayLanes::ReplayedUntil)
//   ELV    ELV[j]: where log j's valid prefix ends
//
// T is ready when T.LV <= RLV. T is dropped when T.LV[j] > ELV[j] for an ended log j: a transaction that it depends on
// is not durable. The drop is transitive: the LSN vector of every transaction that depends on T covers T's, so it is
// dropped by the same test. RLV stays at ELV when a log ends; were it raised to infinity, dropped transactions would
// look ready.
//
// No deadlock: an LSN vector is final before its record's place is reserved, and an anchor holds PLV as it was before
// it was written. So every wait is for a record that was reserved earlier, and of the unreplayed records the one
// reserved first waits for nothing: all records before it in its log are replayed, hence it is the head of its lane, or
// buffers are free to read up to it. Vectors that do form a cycle were not written by this engine. The last idle worker
// detects them and recovery is refused.
//
// Anchors are compared with RLV once per anchor and batch, stored elements per record, and both with the
// worker's own copy of RLV first; the lanes' shared lines are read only when that does not suffice.
//
// Where the workload leaves little parallelism, handing dependencies from worker to worker costs more than it gains
// (section 3.5). Then worker 0 replays all lanes and the others read ahead. `kAuto` measures how many workers are
// replaying on average and how many wait, and decides when a few samples in a row are bad.
#pragma once

#include "base/host.h"
#include "logging/lane_recovery.h"

namespace dbx {

class TaurusRecovery : public LaneRecovery {
 public:
  using LaneRecovery::LaneRecovery;

  void Open(const std::vector<LogSource>& logs);

  // As LaneRecovery's. Throws Error too when the remaining records wait for each other.
  bool Decode(WorkerId worker);

  // A transaction all of whose predecessors are replayed, or nullptr: decode first, or wait. Throws Error.
  TxnRecord* NextReady(WorkerId worker);

 private:
  enum class Order { kReady, kBlocked, kDropped };

  TxnRecord* ReadyHead(Worker& me, ReplayLanes::Lane& lane);
  Order OrderOf(Worker& me, ReplayLanes::Lane& lane, const TxnRecord& record);
  bool IsReplayed(Worker& me, uint32_t log, Lsn until);
  Order OrderOfMissing(uint32_t log, Lsn until) const;
  void RefuseIfStuck(WorkerId worker);
  void ConsiderGoingSerial();

  Atomic<bool> serially_{false};  // worker 0 replays everything
  Atomic<bool> checking_for_deadlock_{false};

  struct Sample {  // worker 0's
    Work work;
    uint64_t ticks = 0;  // when it was taken
    uint32_t low_in_a_row = 0;
  };
  Sample last_;
};

}  // namespace dbx
