// A master's page locks, and through them its row locks (Taurus MM, section 5.2). The rules:
//
//   1 request    the lock process reclaims conflicting holders and grants with the page's LSN, row locks, after-list;
//                messages about an older generation do nothing (global_locks.h)
//   2 granted    the master's clock hears of it before any thread uses the page; the list is merged with the row locks
//   of
//                the master's own transactions; the page is fetched at exactly the granted LSN
//   3 row lock   S and gap locks under page S, X and inserts under page X. A conflict with a transaction that is not
//                known as ended: unpin all pages, wait for its end, take the page again, look again
//   4 pinned     within a mini-transaction, and a fresh grant until one thread that waited for it had its turn
//   5 release    (reclaimed, evicted, upgraded) when no thread has it pinned: the list is settled, the log is flushed
//   until
//                everything that the list and the page build upon is durable, then LSN, row locks and after-list are
//                sent, with the lists of pages split off. An upgrade is a release and a request
//   6 ends       locks of ended transactions are dropped into the page's after-list (ends.h, local_txns.h)
//   7 end        a transaction's END has its time; then its row locks go here, five flushes before others look
//
// States of a page, of this master:
//
//   kNone -> kWanted       a thread needs it; the request is sent
//   kWanted -> kGranted    the grant has come; the page's content has not
//   kGranted -> kFetching -> kHeld   one of the threads that wait fetches it
//   kGranted, kHeld -> kReleasing    it must go, no thread has it pinned, and it is not fresh
//   kReleasing -> kNone    the release is sent; kNone -> kWanted at once if threads wait
//
// Threads: any. Latches, outer first: a page's shard; the list of releases that are due; LocalTxns. No callback of the
// owner runs under one. One thread per master runs RunReleases. Row locks of a page are looked at under its pin, by
// threads that exclude each other as the page's content needs (the buffer frame's latch).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "multi_master/lock/ends.h"
#include "multi_master/lock/local_txns.h"
#include "multi_master/lock/lock_messages.h"
#include "multi_master/lock/row_locks.h"
#include "multi_master/names.h"
#include "multi_master/network.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

// For figure 9. The two baselines lock rows globally: GLM_RELEASE sends 2 messages a row lock and 1 a transaction
// (row_locks, transactions); what GLM_KEEP sends is counted by kept_row_locks.h, over all masters.
struct LocalLockCounters {
  uint64_t requests = 0;
  uint64_t releases = 0;
  uint64_t grants = 0;
  uint64_t reclaims = 0;
  uint64_t old_generations = 0;  // messages that did nothing
  uint64_t upgrades = 0;         // releases for a thread that needs X
  uint64_t row_locks = 0;        // granted, but for gaps and for what the transaction had
  uint64_t row_conflicts = 0;
  uint64_t transactions = 0;  // ended, that had row locks
  uint64_t victims = 0;       // of deadlocks

  LocalLockCounters& operator+=(const LocalLockCounters& other);
};

enum class PinResult : uint8_t { kPinned = 1, kWouldWait, kStopped };

class LocalLocks {
 public:
  // The master around the locks. Calls come from any thread and without latches of the locks.
  class Owner : public LocalTxns::Reporter {
   public:
    // To the lock process, in the order of the calls for one page.
    virtual void SendRequest(const PageRequest& request) = 0;
    virtual void SendRelease(const PageRelease& release) = 0;
    // The clock is raised above the page's version (VS4), and the next LFB builds upon it and upon `after`.
    virtual void OnGrant(const PageLsn& lsn, const AfterList& after) = 0;
    // The lock process has told of ENDs that this master may not have applied. The next LFB builds upon them: from now
    // on transactions read what their row locks protected.
    virtual void OnEndsTold(const AfterList& ends) = 0;
    // Waits until all records of this master up to `time` are durable.
    virtual void FlushUntilDurable(VsTime time) = 0;
    // Waits until the page is in the buffer pool at exactly this version.
    virtual void FetchPage(PageId page, const PageLsn& lsn) = 0;
    // Throws Error if the master may be taken for dead by now. An owner without a lease never is.
    virtual void RequireLease() {}
  };

  LocalLocks(MasterId self, ClusterEpoch epoch, Owner& owner) : self_(self), owner_(owner), txns_(self, epoch, owner) {}

  MasterId self() const { return self_; }
  LocalTxns& txns() { return txns_; }

  // A message of the lock process. False: it is not one; nothing has changed.
  bool On(MessageType type, std::span<const std::byte> body);

  // ---- pages ----

  // Pins the page under a page lock of at least `mode`: it stays locked until Unpin. Waits for it if it must and
  // `may_wait`; the caller then has nothing pinned that is above or to the right, and never the same page.
  PinResult Acquire(PageId page, LockMode mode, bool may_wait);
  void Unpin(PageId page);
  // A change of a pinned page has this time; the page's records up to it are in the log.
  void SetLsn(PageId page, const PageLsn& lsn);
  // The tree splits `left`: keys from `separator` on are on `right`, a new page. Both are pinned under X, and the
  // caller has both pages' frames to itself.
  void SplitLocks(PageId left, Key separator, PageId right);
  // The buffer pool needs the frame. False: the page is pinned, waited for, or not held.
  bool Evict(PageId page);

  // Sends the releases that are due; false: none was. RunReleases does so until Stop.
  bool ReleaseDue();
  void RunReleases();
  // Threads that wait return, and so do later calls.
  void Stop();

  // One thread's wait for a page in steps, for engines without a thread for each transaction. Acquire is made of it.
  class PageTurn {
   public:
    PageTurn(LocalLocks& locks, PageId page, LockMode mode);
    // Gives up its place, if the page was not pinned.
    ~PageTurn();
    PageTurn(const PageTurn&) = delete;
    PageTurn& operator=(const PageTurn&) = delete;

    // True: the page is pinned.
    bool Poll();
    PinResult Await();

   private:
    LocalLocks& locks_;
    const PageId id_;
    const LockMode mode_;
    bool waits_ = true;
  };

  // ---- row locks ----

  // The page is pinned under PageModeFor(lock.kind). Empty: granted. Otherwise the active owners of locks that
  // conflict: the transaction waits for their ends (WaitForEnds), takes the page again and looks again.
  std::vector<TxnName> TryLockRow(PageId page, const RowLock& lock);
  // Unpins `pinned`, which are all pages that the caller has pinned: a page must not stay on this master until another
  // master's transaction, which may need it, has ended.
  WaitResult WaitForEnds(const TxnName& txn, std::vector<TxnName> blockers, std::span<const PageId> pinned);

  // The transaction's END, or its last undo and END, are in the log at `end`: its row locks go.
  void End(const TxnName& txn, VsTime end);
  // Of a transaction without writes. False: row locks of it have left the master, so it needs an END record. Otherwise
  // all that it has read was locked until now: throws Error if the lease is over, and it must not be acknowledged.
  bool EndWithoutRecord(const TxnName& txn);
  // Ends of other masters' transactions, from their logs: the LFBs that these lie in are applied. Those that the lock
  // process tells of come by way of On.
  void Learn(const EndedTxns& news);
  // After-lists lose what it covers.
  void OnLeastTv(const VsVector& least_tv);

  // ---- for versioned reads, checks and results ----

  // The after-list of the page's own version. It outlives a release until the least TV covers it.
  AfterList AfterListOf(PageId page);
  RowLocks RowLocksOf(PageId page);
  std::optional<LockMode> HeldMode(PageId page);
  LocalLockCounters counters();
  size_t pages_in_use();

 private:
  enum class State : uint8_t { kNone, kWanted, kGranted, kFetching, kHeld, kReleasing };

  struct Page {
    State state = State::kNone;
    LockMode mode = LockMode::kShared;  // from kWanted on
    Generation generation;              // from kWanted on
    bool reclaimed = false;
    bool fresh = false;  // no thread that waited for the grant has had its turn
    uint32_t pins = 0;
    uint32_t waiting_shared = 0;
    uint32_t waiting_exclusive = 0;
    PageLsn lsn;
    RowLocks rows;  // in kNone and kWanted: those of own transactions
    AfterList after;
    std::vector<std::pair<PageId, Generation>> splits;  // pages split off under this grant
    ConditionVariable changed;

    uint32_t& waiting(LockMode of) { return of == LockMode::kShared ? waiting_shared : waiting_exclusive; }
    bool IsGranted() const { return state == State::kGranted || state == State::kFetching || state == State::kHeld; }
    // No thread pins it any more, but for the turn that a fresh grant owes.
    bool MustGo() const { return reclaimed || (mode == LockMode::kShared && waiting_exclusive > 0); }
    bool IsFresh() const {
      return fresh && (waiting_shared > 0 || (mode == LockMode::kExclusive && waiting_exclusive > 0));
    }
    bool IsIdle() const {
      return state == State::kNone && waiting_shared + waiting_exclusive == 0 && rows.empty() && after.IsEmpty();
    }
  };
  struct alignas(kNoSharingBytes) Shard {
    Mutex latch;
    std::unordered_map<PageId, std::unique_ptr<Page>> pages;
    LocalLockCounters counters;

    Page& PageOf(PageId id);
    Page* Find(PageId id);
    void DropIfIdle(PageId id);
  };
  static constexpr size_t kShards = 64;

  Shard& ShardOf(PageId id) { return shards_[id.value() * 0x9E3779B97F4A7C15 >> 58]; }

  void OnGrant(const PageGrant& grant);
  void OnEndsTold(const EndedTxns& news);
  void OnReclaim(const PageReclaim& reclaim);
  // A step of a thread that waits: true if it has pinned the page. It may let go of the latch in between, and looks
  // again under it before it returns false.
  bool Step(PageId id, Page& page, LockMode mode, std::unique_lock<Mutex>& latch);
  static bool TryPin(Page& page, LockMode mode);
  void Ask(PageId id, Page& page, std::unique_lock<Mutex>& latch);
  void Fetch(PageId id, Page& page, std::unique_lock<Mutex>& latch);
  void StartReleaseIfDue(PageId id, Page& page);
  void StartRelease(PageId id, Page& page);
  // What is to be sent; raises `durable` to the time that must be durable before.
  PageRelease BuildRelease(PageId id, VsTime& durable);
  void AddSplits(PageRelease& release, std::vector<std::pair<PageId, Generation>> splits, VsTime& durable);
  void FinishRelease(PageId id);
  VsTime OwnTimeIn(const Page& page) const;
  void SettleAll(const LocalTxns::PageList& pages);
  void Settle(PageId id, Page& page, bool leaves);

  const MasterId self_;
  Owner& owner_;
  LocalTxns txns_;
  std::array<Shard, kShards> shards_;
  // Relaxed: only its uniqueness and growth count; a page's shard orders its generations.
  Atomic<uint64_t> last_generation_{0};
  // Stop takes each latch afterwards; a thread that waits reads it under that of its page.
  Atomic<bool> stopped_{false};

  Mutex due_latch_;
  ConditionVariable due_changed_;
  std::vector<PageId> due_;
};

}  // namespace dbx::mm
