// The lock process's table of page locks, which carries the row locks of pages from master to master (Taurus MM,
// section 5.2.1; the rules' numbers are those of local_locks.h).
//
// A page has holders, each with a mode and a generation; a queue, first in, first out; its LSN; and its row locks and
// after-list as they were when it was last released. The head of the queue is granted the page as soon as no holder
// conflicts with it; until then the holders that do are told once to release. An older generation of the asker's own
// counts as such a holder: its release is on the way. Any message about a generation that is not the holder's does
// nothing.
//
// When X is granted, the row locks stay here too: if the holder dies, they are what the next one gets, with the dead
// master's splits replayed over them (OnMasterDead).
//
// Pages that no master holds or waits for, and of which neither row locks nor an after-list are left, cost one entry of
// a map from page to LSN, or none if they were never changed.
//
// Threads: none of its own; one latch of its owner's protects all of it. Messages go out through `Link`, in the order
// of the calls. No call waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/waits_for_graph.h"
#include "multi_master/lock/ends.h"
#include "multi_master/lock/lock_messages.h"
#include "multi_master/lock/row_locks.h"
#include "multi_master/names.h"
#include "multi_master/network.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

// Messages received and sent, by kind.
struct GlobalLockCounters {
  uint64_t requests = 0;
  uint64_t grants = 0;
  uint64_t reclaims = 0;
  uint64_t releases = 0;
  uint64_t ends_heard = 0;
  uint64_t ends_told = 0;
  uint64_t wait_reports = 0;
  uint64_t victims = 0;
  uint64_t old_generations = 0;  // messages that did nothing
};

// What the log of a dead master says, for the lock process's table.
struct DeadMaster {
  // A change of the log, in its order: a split of `page`, or a row lock of a loser.
  struct Step {
    PageId page;
    Key key = 0;   // the separator, which is the first key of `right`; or the row
    PageId right;  // 0: no split
    TxnName loser;
  };
  struct Version {
    PageId page;
    PageLsn lsn;
  };

  MasterId master;
  ClusterEpoch epoch;
  VsTime log_end;                 // the seal
  std::vector<Step> steps;        // at least those behind its oldest unreleased X lock, or of losers
  std::vector<Version> versions;  // the newest of the pages that it changed
  std::vector<uint64_t> losers;   // their sequence numbers
};

class GlobalLocks {
 public:
  class Link {
   public:
    virtual ~Link() = default;
    virtual void Send(MasterId to, MessageType type, std::vector<std::byte> body) = 0;
  };

  explicit GlobalLocks(Link& link) : link_(link) {}

  // Messages of a master are heeded from now on. It holds nothing.
  void AddMaster(MasterId master);

  // A message of a master. False: it is not one; nothing has changed.
  bool On(MasterId from, MessageType type, std::span<const std::byte> body);

  // ---- a master's death, in this order ----

  // Its lease is over. It waits for nothing any more, its messages do nothing, and the pages that it holds stay held.
  void OnLeaseOver(MasterId master);
  // Its log has been sealed and read. Its splits move row locks, its losers' row locks are added, and all its other
  // transactions have ended, of which the other masters are told.
  void OnMasterDead(const DeadMaster& dead);
  // Its pages can be granted.
  void FreePages(MasterId master);

  // ---- for checks and results ----

  const GlobalLockCounters& counters() const { return counters_; }
  const VsVector& least_tv() const { return least_tv_; }
  PageLsn LsnOf(PageId page) const;
  RowLocks RowLocksOf(PageId page) const;
  AfterList AfterListOf(PageId page) const;
  // Pages of which more than the LSN is kept.
  size_t pages_in_use() const { return pages_.size(); }
  size_t reported_waits() const { return waits_.size(); }
  bool IsEnded(const TxnName& txn) const { return ends_.IsEnded(txn); }
  // Of all pages, as they were when they were released last.
  size_t CountRowLocks() const;

 private:
  struct Holder {
    MasterId master;
    LockMode mode;
    Generation generation;
    bool reclaimed = false;
  };
  struct Waiter {
    MasterId master;
    LockMode mode;
    Generation generation;
  };
  struct Page {
    std::vector<Holder> holders;
    std::deque<Waiter> queue;
    RowLocks rows;
    AfterList after;

    bool IsIdle() const { return holders.empty() && queue.empty() && rows.empty() && after.IsEmpty(); }
  };
  struct Member {
    bool is_dead = false;
    std::optional<VsVector> least_tv;  // nothing: it has not told one
  };
  using Age = std::pair<BeginTime, TxnName>;

  void OnRequest(MasterId from, const PageRequest& request);
  bool OnRelease(MasterId from, const PageRelease& release);
  bool OnEnded(MasterId from, const EndedTxns& news);
  bool OnWaitReport(MasterId from, const WaitReport& report);
  void OnLeastTv(MasterId from, const LeastTv& told);

  Page& PageOf(PageId id);
  void GrantAll(PageId id, Page& page);
  // False: the reclaims of conflicting holders are on the way.
  bool MayGrant(PageId id, Page& page, const Waiter& waiter);
  void Grant(PageId id, Page& page, const Waiter& waiter);
  void RaiseLsn(PageId id, const PageLsn& lsn);
  // Owners of row locks that were added are found again when they end.
  void IndexOwners(PageId id, const RowLocks& rows);
  void DropEnded(Page& page);
  void DropOwnersUpTo(const EndedTxns& news);
  void ReplaySplit(PageId left, Key separator, PageId right);
  void DropIfIdle(PageId id);
  void TellAllBut(MasterId but, MessageType type, const std::vector<std::byte>& body);

  template <class Message>
  void Send(MasterId to, const Message& message) {
    link_.Send(to, Message::kType, EncodeBody(message));
  }

  Link& link_;
  std::map<MasterId, Member> members_;
  std::unordered_map<PageId, PageLsn> lsns_;
  std::unordered_map<PageId, std::unique_ptr<Page>> pages_;
  Ends ends_;
  std::map<TxnName, std::set<PageId>>
      pages_of_;  // pages whose lists have had locks of a transaction that has not ended
  NamedWaitsForGraph<TxnName, Age> waits_;
  std::unordered_map<TxnName, WaitNumber> wait_numbers_;
  VsVector least_tv_;
  GlobalLockCounters counters_;
};

}  // namespace dbx::mm
