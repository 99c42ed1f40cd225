// A master's transactions as its row locks see them: begin, end, wait; and which transactions of all masters have
// ended.
//
// Waiting and learning of ends share one latch: a transaction that has met a conflicting row lock waits only if, under
// the latch, the lock's owner is still not known as ended. Without that an end that is learnt between the look and the
// wait would wake no thread, and the wait would last until its timeout.
//
// Deadlocks: a wait is published in a graph of this master's waits, and the youngest of a cycle is the victim. A wait
// that lasts 10 ms goes to the lock process, whose graph has the waits of all masters (global_locks.h). A wait of 1 s
// ends in any case.
//
// Threads: any. Its latch is the innermost of those of local_locks.h, and no callback runs under it.
#pragma once

#include <boost/container/small_vector.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/host.h"
#include "base/waits_for_graph.h"
#include "multi_master/lock/ends.h"
#include "multi_master/lock/lock_messages.h"
#include "multi_master/lock/row_locks.h"
#include "multi_master/names.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

enum class WaitResult : uint8_t {
  kLookAgain = 1,  // none of the blockers is active any more; another transaction may be by now
  kVictim,         // of a deadlock: abort
  kTimedOut,       // abort too
  kStopped,
};

class LocalTxns {
 public:
  // Few transactions have row locks of more.
  using PageList = boost::container::small_vector<PageId, 8>;

  class Reporter {
   public:
    virtual ~Reporter() = default;
    virtual void SendWaitReport(const WaitReport& report) = 0;
  };

  static constexpr std::chrono::nanoseconds kReportAfter = std::chrono::milliseconds(10);
  static constexpr std::chrono::nanoseconds kTimeout = std::chrono::seconds(1);

  LocalTxns(MasterId self, ClusterEpoch epoch, Reporter& reporter)
      : self_(self), own_(self, epoch), reporter_(reporter) {}

  TxnName Begin(BeginTime begun);

  // Drops the locks of ended owners from a page's list, with their ENDs added to its after-list; the page is found
  // again when one of the others ends. `leaves`: the list goes to the lock process now.
  void Settle(PageId page, RowLocks& rows, AfterList& after, bool leaves);
  // A transaction of this master was granted a lock of the page.
  void OnRowLock(const TxnName& txn, PageId page);

  // Its END is about to be appended. Until End has been called its END may have a time, which this does not know yet.
  void OnEnding(const TxnName& txn);
  // Whether a statement of this master sees what the transaction wrote: its END is covered by `tv`. Nothing: it is
  // ending right now. `reader`: the statement's own transaction, whose changes it sees.
  std::optional<bool> IsSeenBy(const VsVector& tv, const TxnName& reader, const TxnName& txn);

  // The pages whose lists may have locks of transactions that have ended by this call: they are to be settled.
  PageList End(const TxnName& txn, VsTime end);
  // As End without a record, which is refused if a lock of the transaction has left the master.
  std::optional<PageList> EndWithoutRecord(const TxnName& txn);
  PageList Learn(const EndedTxns& news);

  std::optional<EndedTxns> TakeNews(VsTime durable, bool only_if_left);
  void Forget(const VsVector& least_tv);
  void OnAbortVictim(const AbortVictim& victim);
  // All waits end, and none begins.
  void Stop();

  bool IsEnded(const TxnName& txn);
  size_t active();
  // Of ended transactions: those that had row locks.
  uint64_t ended_with_locks();
  uint64_t victims();

  // One transaction's wait for the ends of others; it holds no page meanwhile. The thread of the transaction makes,
  // polls and destroys it.
  class RowWait {
   public:
    RowWait(LocalTxns& txns, const TxnName& txn, std::vector<TxnName> blockers, uint64_t now_nanos);
    ~RowWait();
    RowWait(const RowWait&) = delete;
    RowWait& operator=(const RowWait&) = delete;

    // Nothing: it lasts. To be called when something may have changed, and when kReportAfter and kTimeout are over.
    std::optional<WaitResult> Poll(uint64_t now_nanos);
    // Sleeps until it is over.
    WaitResult Await();

   private:
    friend class LocalTxns;

    std::optional<WaitResult> Outcome(uint64_t now_nanos) const;
    bool ReportIsDue(uint64_t now_nanos) const;
    void Report(std::unique_lock<Mutex>& latch);

    LocalTxns& txns_;
    const TxnName txn_;
    const uint64_t since_nanos_;
    // The rest is protected by the latch.
    std::vector<TxnName> blockers_;  // not known as ended
    BeginTime begun_;
    WaitNumber number_;
    bool is_victim_ = false;
    bool is_reported_ = false;
    ConditionVariable changed_;
  };

 private:
  struct Txn {
    BeginTime begun;
    bool left = false;  // other processes may have locks of it
    bool has_locks = false;
    bool is_ending = false;
    PageList pages;  // that may have locks of it; some more than once
  };
  using Txns = std::unordered_map<TxnName, Txn>;

  PageList Finish(const TxnName& txn, VsTime end);
  void TakePagesOf(const TxnName& txn, PageList& pages);
  void EndWaitsForEnded();
  void BreakCyclesThrough(const TxnName& waiter);
  RowWait* WaitOf(const TxnName& txn);

  const MasterId self_;
  Mutex latch_;
  Ends ends_;
  OwnTxns own_;
  Reporter& reporter_;
  Txns txns_;                                     // active ones of this master
  std::vector<Txns::node_type> unused_;           // of transactions to come
  std::map<TxnName, std::set<PageId>> pages_of_;  // of others that are not known as ended
  std::vector<RowWait*> waiting_;
  NamedWaitsForGraph<TxnName, std::pair<BeginTime, TxnName>> waits_;
  WaitNumber last_number_;
  uint64_t ended_with_locks_ = 0;
  uint64_t victims_ = 0;
  bool stopped_ = false;
};

}  // namespace dbx::mm
