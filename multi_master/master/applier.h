// Applies the logs of all masters, flush by flush, at one of them (Taurus MM, section 5.1.2).
//
// A flush is applied when the one before it in its log is, and all that its stamp builds upon (VsClock::MayApply):
//
//   pages in the buffer -> clock hears of ENDs -> ENDs end row locks, waits end -> applied
//
// Only then may a statement's TV cover the flush: it finds the pages with all of its changes, and knows its ENDs. Of
// the master's own log only the stamps matter: its records took effect when they were made.
//
// Threads: Offer by any; one runs Run.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/host.h"
#include "multi_master/lock/ends.h"
#include "multi_master/lock/local_locks.h"
#include "multi_master/master/master_log.h"
#include "multi_master/master/master_pages.h"
#include "multi_master/page/page_change.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

// What a master needs of another one's flush.
struct RemoteFlush {
  struct End {
    TxnName txn;
    VsTime time;
  };
  LfbStamp lfb;
  std::vector<PageChange> changes;  // refer to `bytes`
  std::vector<End> ends;
  std::shared_ptr<const void> bytes;
};

class Applier {
 public:
  // Called after each flush, by the thread that runs.
  using Told = std::function<void()>;

  Applier(MasterId self, MasterLog& log, LocalLocks& locks, MasterPages& pages, Told applied)
      : self_(self), log_(log), locks_(locks), pages_(pages), told_(std::move(applied)) {}

  // The next flush of its log.
  void Offer(RemoteFlush flush);
  // Until Stop.
  void Run();
  void Stop();

  uint64_t applied() const { return applied_.load(std::memory_order_relaxed); }

 private:
  // Applies what it can; false: nothing.
  bool ApplyReady(std::unique_lock<Mutex>& latch);
  void Apply(const RemoteFlush& flush);

  const MasterId self_;
  MasterLog& log_;
  LocalLocks& locks_;
  MasterPages& pages_;
  const Told told_;
  Atomic<uint64_t> applied_{0};  // flushes; relaxed
  Mutex latch_;
  ConditionVariable changed_;
  std::array<std::deque<RemoteFlush>, kMastersMax> logs_;
  bool offered_ = false;  // since the last look
  bool stopped_ = false;
};

}  // namespace dbx::mm
