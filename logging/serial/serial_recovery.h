// Recovery of the serial log: one log, replayed in LSN order.
//
// One lane, so one worker replays at a time, without any waiting between two records, and hands the lane over only when
// it is empty. The other workers read and check ahead of it.
#pragma once

#include "logging/lane_recovery.h"

namespace dbx {

class SerialRecovery : public LaneRecovery {
 public:
  // A transaction that NextReady gives is behind all that were given before it.
  static constexpr bool kTotalOrder = true;

  using LaneRecovery::LaneRecovery;

  // `logs` has one element.
  void Open(const std::vector<LogSource>& logs);

  // The next transaction, if this worker is the one that replays; nullptr when there is only decoding to do. Throws
  // Error.
  TxnRecord* NextReady(WorkerId worker);
};

}  // namespace dbx
