// Recovery of Silo-R's logs: every record whose TID is of a persistent epoch, in any order, by any number of workers.
//
// Last writer wins: of a row's versions the one with the largest TID stays (replay_transaction.h), in whatever order
// they are replayed; deletes are versions too, and the tombstone keeps its TID to the end, so that no older insert
// revives the row. Records of a later epoch than the persistent one are dropped, though they may be whole: others of
// their epoch may be lost.
#pragma once

#include "logging/lane_recovery.h"

namespace dbx {

class SiloRRecovery : public LaneRecovery {
 public:
  static constexpr bool kNewestWins = true;
  static constexpr bool kManyVersions = false;  // records are rows
  using LaneRecovery::LaneRecovery;

  // Each source has the stamp up to which the run was durable.
  void Open(const std::vector<LogSource>& logs);

  // Any record that is to be replayed, or nullptr: decode first. Throws Error.
  TxnRecord* NextReady(WorkerId worker);
  ReplaySummary Finish();

 private:
  Stamp stamp_end_;
};

}  // namespace dbx
