// The persistent epoch of Silo-R (Zheng et al., OSDI 2014, section 4.1; "pepoch"): every transaction of it and of all
// epochs before is durable, and so is the record of that fact. A dedicated thread advances it.
//
//   1. e = SafeEpoch() - 1: every worker is idle or has announced a later epoch than e, so no more records of e or
//      before will be reserved. The places reserved by now include them all.
//   2. Wait until each log is durable up to there.
//   3. Write e to the frontier file and sync it: recovery replays up to e and nothing beyond.
//   4. Publish e; transactions that wait for it are acknowledged.
//
// Where no record is of a later epoch than the file's, step 3 is left out: an idle system writes nothing. That nothing
// was reserved since is not enough: a place may have been reserved, for records of this epoch, before the last step
// loaded the positions.
//
// The paper's loggers publish their own epochs and one of them writes the least; here the streams' persistent LSNs
// imply the same, and workers only announce their epochs.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "base/epoch.h"
#include "base/host.h"
#include "logging/frontier_file.h"
#include "logging/log_set.h"

namespace dbx {

class DurableEpoch {
 public:
  // All of it outlives this. `frontier` holds the step before the first.
  DurableEpoch(const LogSet& logs, const EpochClock& epochs, FrontierFile& frontier);
  ~DurableEpoch() { Stop(); }
  DurableEpoch(const DurableEpoch&) = delete;
  DurableEpoch& operator=(const DurableEpoch&) = delete;

  // Any thread.
  Epoch Get() const { return Epoch(epoch_.load(std::memory_order_acquire)); }
  // The frontier file's stamp; 0 before the first step.
  Stamp written_stamp() const { return Stamp(written_stamp_.load(std::memory_order_acquire)); }
  void ThrowIfFailed() const;

  // Ends the thread; the published epoch stays.
  void Stop();

 private:
  void Loop();
  // Checks the logs once. True if the epoch has advanced.
  bool Advance();
  std::vector<Lsn> ReservedUntil() const;
  bool AreDurable(const std::vector<Lsn>& lsns) const;

  const LogSet& logs_;
  const EpochClock& epochs_;
  FrontierFile& frontier_;
  // Of the thread.
  Epoch next_;               // the epoch that is to become durable, or 0
  std::vector<Lsn> needed_;  // how far the logs must be durable for that
  Epoch newest_;             // no record below that is of a later epoch; 0: there is none
  Epoch written_;            // the epoch of the frontier file's last block

  Atomic<uint64_t> epoch_;
  Atomic<uint64_t> written_stamp_{0};
  Atomic<bool> failed_{false};
  std::exception_ptr error_;  // written once before failed_
  Mutex mutex_;
  ConditionVariable wake_;
  bool stop_ = false;  // guarded by mutex_
  Thread thread_;
};

}  // namespace dbx
