// Locks that can be waited for: a word that leads to a queue of requests, the holders first, then the waiters. Common
// to the policies that wait (WAIT_DIE, DL_DETECT); `Places` says where the words are, in the rows or in the lock table,
// so that rows and entries are as small as without waiting.
//
//   bit 0        the latch of the queue
//   bits 1-3     the row's flags, where the word is the row's control word
//   bits 4-61    the first request; 0 if the lock is free
//   bit 62       the holder is exclusive
//   bit 63       a request waits, for the lock or for its upgrade
//
// A request is a node that belongs to the worker that made it, and does not move while it is in a queue. A lock that is
// free, or shared without waiters, is taken by one compare-and-swap that puts a request in front, and an exclusive lock
// without waiters is released by one; all else happens under the latch, under which nothing waits. No worker touches
// another's requests without it.
//
// Order. Requests are granted first come, first served: none overtakes a waiting one, so a writer does not starve
// behind readers. A request waits for every holder and every request ahead of it that it conflicts with, and asks the
// policy about each of them. Later ones queue behind it. But a holder of a shared lock may upgrade it: it goes before
// all waiters, as most of them wait for its share anyhow, and a shared request behind it, which may have waited for an
// exclusive one between them alone, now waits for it too. So every waiter is told to ask again when a holder upgrades.
// Two holders that both upgrade wait for each other: a cycle like any other. The policy therefore hears of every worker
// that a request waits for, and what it guarantees of these pairs (no cycle in them lasts) holds of all waits.
//
// Waiting ends by being granted, by the policy's verdict, when the row has been unlinked, and when the run stops (a
// holder that met a failed device never releases its locks).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/host.h"
#include "base/spin.h"
#include "base/types.h"
#include "concurrency_control/row_locks.h"

namespace dbx {

// Policy, one object per worker:
//   BeginSweep(), Begin(TxnId)   from now on locks are taken between transactions, or by an attempt of this one
//   StartAsking()                before the policy judges a request, under the latch of its queue
//   MayWaitFor(WorkerId)         once per conflicting request ahead; false: the transaction aborts instead
//   StartWait() .. EndWait()     around the wait; no latch is held. StartWait again after asking again
//   MustGiveUp()                 polled during the wait; true: the transaction aborts
template <class Places, class Policy>
class QueuedLocks {
 public:
  static constexpr bool kLockTable = Places::kLockTable;
  class Request;
  using Handle = Request*;
  using Place = typename Places::Handle;

  QueuedLocks(typename Places::Shared& places, typename Policy::Shared& policy, const Atomic<bool>& stop,
              WorkerId worker)
      : places_(places), policy_(policy, worker), stop_(stop), worker_(worker) {}

  void BeginSweep() { policy_.BeginSweep(); }
  void Begin(TxnId txn) { policy_.Begin(txn); }

  // Without waiting.
  LockResult TryShared(Row* row, Handle& handle) {
    return places_.At(row, [&](Place place) { return Try(place, row, false, handle); });
  }
  LockResult TryExclusive(Row* row, Handle& handle) {
    return places_.At(row, [&](Place place) { return Try(place, row, true, handle); });
  }

  // The same for a row that the caller has not locked; waits where the policy lets it.
  LockResult AwaitShared(Row* row, Handle& handle) { return AwaitLock(row, false, handle); }
  LockResult AwaitExclusive(Row* row, Handle& handle) { return AwaitLock(row, true, handle); }

  // The caller's shared lock, its only one of this row, becomes exclusive, or stays as it was.
  LockResult Upgrade(Row*, Handle& mine) {
    {
      Queue queue(Places::word(mine->place_));
      policy_.StartAsking();
      bool alone = true;
      for (Request* other = queue.head(); other != nullptr && other->granted_; other = other->next_) {
        if (other == mine) continue;
        alone = false;
        if (!policy_.MayWaitFor(other->worker_)) return LockResult::kConflict;
      }
      mine->upgrading_ = true;
      mine->news_.store(News::kWait, std::memory_order_relaxed);
      queue.TellWaiters(News::kAskAgain);
      queue.Grant();
      if (alone) return LockResult::kOk;
    }
    return AwaitNews(*mine);
  }

  void ReleaseShared(Handle mine) { Release(*mine); }
  void ReleaseExclusive(Handle mine, Row*) {
    Atomic<uint64_t>& word = Places::word(mine->place_);
    uint64_t seen = word.load(std::memory_order_relaxed);
    // Acquire: workers that looked at the request meanwhile are done with it. Release: as of any lock.
    if ((seen & ~kFlags) == (mine->AsWord() | kExclusive) &&
        word.compare_exchange_strong(seen, seen & kFlags, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      return GiveBack(mine);
    }
    Release(*mine);
  }
  // Of a row that was marked kGone and unlinked: its waiters look the key up again.
  void ReleaseGone(Handle mine, Row*) {
    {
      Queue queue(Places::word(mine->place_));
      queue.Dissolve();
    }
    GiveBack(mine);
  }

  Meta meta(Handle handle) const { return places_.meta(handle->place_); }
  void InitFreshMeta(auto& log, Row& row) { places_.InitFreshMeta(log, row); }
  void InitFreshMeta(auto& log, Row& row, Meta gap) { places_.InitFreshMeta(log, row, gap); }
  bool MayForget(auto& log, Handle handle) { return places_.MayForget(log, handle->place_); }

  // The flags of a row change beside its queue, by a holder of its lock and only while the latch is free.
  struct Flags {
    static void Change(Row* row, uint64_t on, uint64_t off) {
      uint64_t seen = row->control.load(std::memory_order_relaxed);
      if ((seen & (on | off)) == on) return;
      for (SpinWait latch;;) {
        if (seen & kLatch) {
          latch.Wait();
          seen = row->control.load(std::memory_order_relaxed);
        } else if (row->control.compare_exchange_weak(seen, (seen & ~off) | on, std::memory_order_release,
                                                      std::memory_order_relaxed)) {
          return;
        }
      }
    }
    // False if it was set before, by another holder of the shared lock.
    static bool MarkQueued(Row* row) {
      uint64_t seen = row->control.load(std::memory_order_relaxed);
      for (SpinWait latch;;) {
        if (seen & Row::kQueued) return false;
        if (seen & kLatch) {
          latch.Wait();
          seen = row->control.load(std::memory_order_relaxed);
        } else if (row->control.compare_exchange_weak(seen, seen | Row::kQueued, std::memory_order_relaxed)) {
          return true;
        }
      }
    }
  };

 private:
  static constexpr uint64_t kLatch = Row::kLocked;
  static constexpr uint64_t kFlags = Row::kAbsent | Row::kGone | Row::kQueued;
  static constexpr uint64_t kExclusive = uint64_t{1} << 62;
  static constexpr uint64_t kWaiters = uint64_t{1} << 63;
  static constexpr uint64_t kPointer = ~(kExclusive | kWaiters | kFlags | kLatch);
  static constexpr size_t kRequestsPerChunk = 64;

  // The state of a waiting request, set under the latch.
  //   kWait -> kAskAgain            by a holder that upgrades its lock
  //   kAskAgain -> kWait            by its own worker, which asks again
  //   kWait, kAskAgain -> kGranted  by a worker that unlocks or withdraws
  //   kWait, kAskAgain -> kGone     by the worker that has unlinked the row
  //   kGranted, kGone -> kWait      by its own worker, for the next wait
  enum class News : uint32_t { kWait, kAskAgain, kGranted, kGone };

 public:
  // All but news_ changes under the latch of the queue in which it stands, or by its worker while it is in none.
  class alignas(1 << Row::kSharedBits) Request {
   private:
    friend class QueuedLocks;
    uint64_t AsWord() const { return reinterpret_cast<uintptr_t>(this); }
    // Whether a request behind this one has to wait for it.
    bool Blocks(bool exclusive) const { return exclusive || exclusive_ || upgrading_; }
    // Release: publishes all that the last holders did. The request may be reused at once.
    void Tell(News news) { news_.store(news, std::memory_order_release); }

    Request* next_ = nullptr;
    Place place_ = {};
    WorkerId worker_;
    bool exclusive_ = false;  // of the lock that it holds or asks for
    bool granted_ = false;    // a holder
    bool upgrading_ = false;  // a holder of a share that waits for the exclusive lock
    Atomic<News> news_{News::kGranted};
  };

 private:
  // A queue with its latch held. Its word is stored when the latch is released.
  class Queue {
   public:
    explicit Queue(Atomic<uint64_t>& word) : word_(word) {
      uint64_t seen = word.load(std::memory_order_relaxed);
      for (SpinWait wait;;) {
        if (seen & kLatch) {
          wait.Wait();
          seen = word.load(std::memory_order_relaxed);
        } else if (word.compare_exchange_weak(seen, seen | kLatch, std::memory_order_acquire,
                                              std::memory_order_relaxed)) {
          break;
        }
      }
      state_ = seen & ~kPointer;
      head_ = reinterpret_cast<Request*>(seen & kPointer);
    }
    ~Queue() { word_.store(state_ | reinterpret_cast<uintptr_t>(head_), std::memory_order_release); }
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    Request* head() const { return head_; }
    uint64_t state() const { return state_; }

    void Append(Request* request) {
      Request** link = &head_;
      while (*link != nullptr) link = &(*link)->next_;
      request->next_ = nullptr;
      *link = request;
    }
    void Remove(Request* request) {
      Request** link = &head_;
      while (*link != request) link = &(*link)->next_;
      *link = request->next_;
    }

    // Grants the lock to every request that can have it. After every change of the queue, unless none waits.
    void Grant() {
      if (head_ != nullptr && head_->upgrading_ && !(head_->next_ != nullptr && head_->next_->granted_)) {
        head_->upgrading_ = false;
        head_->exclusive_ = true;
        head_->Tell(News::kGranted);
      }
      bool exclusive = false, upgrading = false;
      Request* at = head_;
      for (; at != nullptr && at->granted_; at = at->next_) {
        exclusive |= at->exclusive_;
        upgrading |= at->upgrading_;
      }
      for (; at != nullptr && !exclusive && !upgrading && (!at->exclusive_ || at == head_); at = at->next_) {
        exclusive = at->exclusive_;
        at->granted_ = true;
        at->Tell(News::kGranted);
      }
      state_ = (state_ & kFlags) | (exclusive ? kExclusive : 0) | (upgrading || at != nullptr ? kWaiters : 0);
    }

    void TellWaiters(News news) {
      for (Request* at = head_; at != nullptr;) {
        Request* const next = at->next_;
        if (!at->granted_) at->Tell(news);
        at = next;
      }
    }

    // The queue is empty.
    void Dissolve() {
      TellWaiters(News::kGone);
      head_ = nullptr;
      state_ &= kFlags;
    }

   private:
    Atomic<uint64_t>& word_;
    uint64_t state_;  // all but the pointer and the latch
    Request* head_;
  };

  LockResult Try(Place place, Row* row, bool exclusive, Handle& handle) {
    Atomic<uint64_t>& word = Places::word(place);
    Request* const mine = Prepare(place, exclusive, true);
    const uint64_t refused = exclusive ? ~(kFlags | kLatch) : kExclusive | kWaiters;
    // Acquire: pairs with the release of the last conflicting lock.
    uint64_t seen = word.load(std::memory_order_acquire);
    for (SpinWait latch;;) {
      if (Places::IsGone(row, seen)) return LockResult::kGone;
      if (seen & refused) return LockResult::kConflict;
      if (seen & kLatch) {
        latch.Wait();
        seen = word.load(std::memory_order_acquire);
        continue;
      }
      mine->next_ = reinterpret_cast<Request*>(seen & kPointer);
      const uint64_t taken = (seen & kFlags) | mine->AsWord() | (exclusive ? kExclusive : 0);
      // Release: a worker that finds the request in the queue sees its fields.
      if (word.compare_exchange_weak(seen, taken, std::memory_order_acq_rel, std::memory_order_acquire)) break;
    }
    handle = Take();
    return LockResult::kOk;
  }

  LockResult AwaitLock(Row* row, bool exclusive, Handle& handle) {
    const LockResult asked = places_.At(row, [&](Place place) { return Ask(place, row, exclusive, handle); });
    if (asked != LockResult::kOk) return asked;
    const LockResult result = AwaitNews(*handle);
    if (result != LockResult::kOk) GiveBack(handle);
    return result;
  }

  // Puts a request into the queue, whether it is granted at once or has to wait.
  LockResult Ask(Place place, Row* row, bool exclusive, Handle& handle) {
    Queue queue(Places::word(place));
    if (Places::IsGone(row, queue.state())) return LockResult::kGone;
    policy_.StartAsking();
    if (!MayWaitBehind(queue.head(), nullptr, exclusive)) return LockResult::kConflict;
    Prepare(place, exclusive, false);
    handle = Take();
    handle->news_.store(News::kWait, std::memory_order_relaxed);
    queue.Append(handle);
    queue.Grant();
    return LockResult::kOk;
  }

  // The policy's verdict on the requests from `first` to the one before `end` that a request must wait for.
  bool MayWaitBehind(const Request* first, const Request* end, bool exclusive) {
    for (const Request* other = first; other != end; other = other->next_) {
      if (other->Blocks(exclusive) && !policy_.MayWaitFor(other->worker_)) return false;
    }
    return true;
  }

  LockResult AwaitNews(Request& mine) {
    LockResult result;
    if (HasEnded(mine, result)) return result;
    policy_.StartWait();
    for (LongWait wait; !HasEnded(mine, result); wait.Wait()) {
      // Relaxed: it publishes nothing else.
      const bool give_up = stop_.load(std::memory_order_relaxed) || policy_.MustGiveUp() || !AskAgainIfTold(mine);
      if (!give_up || !Withdraw(mine)) continue;
      result = LockResult::kConflict;
      break;
    }
    policy_.EndWait();
    return result;
  }

  static bool HasEnded(const Request& mine, LockResult& result) {
    // Acquire: pairs with Tell.
    const News news = mine.news_.load(std::memory_order_acquire);
    result = news == News::kGone ? LockResult::kGone : LockResult::kOk;
    return news == News::kGranted || news == News::kGone;
  }

  // False: the policy lets it wait no longer.
  bool AskAgainIfTold(Request& mine) {
    // Relaxed: looked at again under the latch.
    if (mine.news_.load(std::memory_order_relaxed) != News::kAskAgain) return true;
    {
      Queue queue(Places::word(mine.place_));
      if (mine.news_.load(std::memory_order_relaxed) != News::kAskAgain) return true;
      mine.news_.store(News::kWait, std::memory_order_relaxed);
      if (!MayWaitBehind(queue.head(), &mine, mine.exclusive_)) return false;
    }
    policy_.StartWait();
    return !policy_.MustGiveUp();
  }

  // False if it is too late: the wait has ended.
  static bool Withdraw(Request& mine) {
    Queue queue(Places::word(mine.place_));
    if (LockResult unused; HasEnded(mine, unused)) return false;
    mine.upgrading_ = false;
    if (!mine.granted_) queue.Remove(&mine);
    queue.Grant();
    return true;
  }

  void Release(Request& mine) {
    {
      Queue queue(Places::word(mine.place_));
      queue.Remove(&mine);
      // Otherwise only a share was released, which the word does not count.
      if (queue.state() & (kExclusive | kWaiters)) queue.Grant();
    }
    GiveBack(&mine);
  }

  // ---- requests that are in no queue ----

  // The next one, which Take hands out.
  Request* Prepare(Place place, bool exclusive, bool granted) {
    if (free_.empty()) AddChunk();
    Request* const next = free_.back();
    next->place_ = place;
    next->exclusive_ = exclusive;
    next->granted_ = granted;
    return next;
  }
  Request* Take() {
    Request* const next = free_.back();
    free_.pop_back();
    return next;
  }
  void GiveBack(Request* request) { free_.push_back(request); }

  void AddChunk() {
    chunks_.push_back(std::make_unique<Request[]>(kRequestsPerChunk));
    for (size_t i = 0; i < kRequestsPerChunk; ++i) {
      chunks_.back()[i].worker_ = worker_;
      GiveBack(&chunks_.back()[i]);
    }
  }

  Places places_;
  Policy policy_;
  const Atomic<bool>& stop_;
  const WorkerId worker_;
  std::vector<Request*> free_;
  std::vector<std::unique_ptr<Request[]>> chunks_;
};

}  // namespace dbx
