// Recovery of Silo-R's logs: every record whose TID is of a persistent epoch, in any order, by any number of workers.
//
// Of a row's versions the one with the largest TID wins (replay_transaction.h), whenever it comes; deletes win or lose
// like other versions, and the deleted row keeps its TID to the end, so that no older insert brings it back. What is of
// a later epoch than the persistent one is dropped, though it may be whole: others of its epoch may be lost.
#pragma once

#include "logging/lane_recovery.h"

namespace dbx {

class SiloRRecovery : public LaneRecovery {
 public:
  static constexpr bool kNewestWins = true;
  static constexpr bool kManyVersions = false;  // records are rows
  using LaneRecovery::LaneRecovery;

  // Each source says up to which stamp the run was durable.
  void Open(const std::vector<LogSource>& logs);

  // Any record that is to be replayed, or nullptr: decode first. Throws Error.
  TxnRecord* NextReady(WorkerId worker);
  ReplaySummary Finish();

 private:
  Stamp stamp_end_;
};

}  // namespace dbx
