// The log of a master as its transactions see it: records with times of its clock, and how far it is durable.
//
// Models: FlushBuffer (log/flush_buffer.h), and a log in memory (tests).
//
// Threads: any.
#pragma once

#include <span>

#include "base/types.h"
#include "multi_master/names.h"
#include "multi_master/page/page_change.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

enum class EndKind : uint8_t { kCommitted = 1, kAborted = 2, kReadOnly = 3, kLast = kReadOnly };

class MasterLog {
 public:
  virtual ~MasterLog() = default;

  // Under one latch: gives the changes their times and versions (StampChanges), and appends them as one PAGES record.
  // Returns the log's position behind it. Waits for ring space. Throws the error that failed the log.
  virtual Lsn AppendPages(std::span<PageChange> changes) = 0;
  // END. `id` is the transaction's number in the workload, 0 if it has none.
  virtual VsTime AppendEnd(const TxnName& txn, EndKind kind, TxnId id) = 0;
  // A page lock was granted (VS4).
  virtual void OnGrant(const PageLsn& page, const AfterList& after) = 0;

  // VsClock::MayApply and OnApplied, for the master's applier.
  virtual bool MayApply(const LfbStamp& lfb) const = 0;
  virtual void OnApplied(const LfbStamp& lfb) = 0;
  // How far each log has been applied here.
  virtual VsVector applied() const = 0;
  // TV of a statement that begins now.
  virtual ReadView View() const = 0;

  // Of the last record that was appended. Not the clock's time, which grants and applied LFBs raise: nothing of it
  // would ever become durable.
  virtual VsTime last_record() const = 0;
  // All records up to this time survive a crash.
  virtual VsTime durable_until() const = 0;
  // Makes the records up to `time` durable, and waits. Throws the error that failed the log.
  virtual void AwaitDurable(VsTime time) = 0;
};

}  // namespace dbx::mm
