// Masters' locks and the lock process with real threads: transactions that block, releasers, and a thread that delivers
// messages in another order between links each time.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/random.h"
#include "multi_master/lock/global_locks.h"
#include "multi_master/lock/local_locks.h"

namespace dbx::mm {
namespace {

constexpr uint32_t kMasters = 3, kThreads = 2, kPages = 2, kTransactions = 150;
constexpr Key kKeysOfPage = 3;

class Cluster;

struct Master : LocalLocks::Owner {
  Master(Cluster& of, MasterId self) : cluster(of), clock(self), locks(self, ClusterEpoch(1), *this) {}

  void SendRequest(const PageRequest& request) override { Post(request); }
  void SendRelease(const PageRelease& release) override { Post(release); }
  void SendWaitReport(const WaitReport& report) override { Post(report); }
  void OnGrant(const PageLsn& lsn, const AfterList& after) override {
    const std::lock_guard guard(log_latch);
    clock.OnGrant(lsn, after);
  }
  void OnEndsTold(const AfterList& ends) override { OnGrant({}, ends); }
  void FlushUntilDurable(VsTime) override {
    std::this_thread::yield();
    const std::lock_guard guard(log_latch);
    durable = clock.now();
  }
  void FetchPage(PageId, const PageLsn&) override { std::this_thread::yield(); }
  template <class Message>
  void Post(const Message& message);
  VsTime Tick() {
    const std::lock_guard guard(log_latch);
    return clock.Tick();
  }
  void TellEnds() {
    FlushUntilDurable({});
    std::unique_lock guard(log_latch);
    const VsTime until = durable;
    guard.unlock();
    // One at a time, as messages of one master keep their order.
    const std::lock_guard order(tell_latch);
    if (const auto news = locks.txns().TakeNews(until, false)) Post(*news);
  }

  Cluster& cluster;
  std::mutex log_latch, tell_latch;
  VsClock clock;
  VsTime durable;
  std::array<std::mutex, kPages + 1> frames;
  LocalLocks locks;
};

class Cluster : public GlobalLocks::Link {
 public:
  Cluster() {
    for (uint8_t i = 0; i < kMasters; ++i) {
      masters_.push_back(std::make_unique<Master>(*this, MasterId(i)));
      global_.AddMaster(MasterId(i));
    }
  }

  void Run() {
    std::vector<std::jthread> workers;
    std::jthread network([this] { Deliver(); });
    std::vector<std::jthread> releasers;
    for (const auto& master : masters_) releasers.emplace_back([&] { master->locks.RunReleases(); });
    for (uint32_t i = 0; i < kMasters * kThreads; ++i) {
      workers.emplace_back([this, i] { Work(*masters_[i / kThreads], i + 1); });
    }
    workers.clear();
    for (const auto& master : masters_) master->locks.Stop();
    ends_.store(true);
  }

  void Post(uint32_t link, MessageType type, std::vector<std::byte> body) {
    const std::lock_guard guard(links_latch_);
    links_[link].push_back({type, std::move(body)});
  }
  void Send(MasterId to, MessageType type, std::vector<std::byte> body) override {
    Post(kMasters + to.value(), type, std::move(body));
  }

  uint32_t commits() const { return commits_.load(); }
  uint32_t aborts() const { return aborts_.load(); }
  uint32_t timeouts() const { return timeouts_.load(); }

 private:
  struct Message {
    MessageType type;
    std::vector<std::byte> body;
  };

  void Deliver() {
    Random random(1);
    while (!ends_.load()) {
      const auto link = static_cast<uint32_t>(random.Below(2 * kMasters));
      std::unique_lock guard(links_latch_);
      if (links_[link].empty()) {
        guard.unlock();
        std::this_thread::yield();
        continue;
      }
      const Message message = std::move(links_[link].front());
      links_[link].pop_front();
      guard.unlock();
      const bool is_to_locks = link < kMasters;
      const MasterId master(static_cast<uint8_t>(link % kMasters));
      EXPECT_TRUE(is_to_locks ? global_.On(master, message.type, message.body)
                              : masters_[master.value()]->locks.On(message.type, message.body));
    }
  }

  void Work(Master& master, uint64_t seed) {
    Random random(seed);
    for (uint32_t i = 0; i < kTransactions; ++i) {
      const TxnName txn = master.locks.txns().Begin(BeginTime(i));
      bool wrote = false, goes_on = true;
      for (uint64_t ops = 1 + random.Below(3); ops > 0 && goes_on; --ops) {
        const Key key = random.Below(kPages * kKeysOfPage);
        const bool writes = random.Below(2) == 0;
        goes_on = LockRow(master, writes ? RowLock::Exclusive(txn, key) : RowLock::Shared(txn, key));
        wrote |= goes_on && writes;
      }
      ++(goes_on ? commits_ : aborts_);
      Forget(txn);
      if (wrote || !master.locks.EndWithoutRecord(txn)) master.locks.End(txn, master.Tick());
      master.TellEnds();
    }
  }

  bool LockRow(Master& master, const RowLock& lock) {
    const PageId page(1 + lock.low / kKeysOfPage);
    for (;;) {
      EXPECT_EQ(master.locks.Acquire(page, PageModeFor(lock.kind), true), PinResult::kPinned);
      std::unique_lock frame(master.frames[page.value()]);
      const std::vector<TxnName> blockers = master.locks.TryLockRow(page, lock);
      if (blockers.empty()) {
        Remember(lock);
        if (lock.kind == RowLockKind::kExclusive) master.locks.SetLsn(page, {master.locks.self(), master.Tick()});
        frame.unlock();
        master.locks.Unpin(page);
        return true;
      }
      frame.unlock();
      const WaitResult result = master.locks.WaitForEnds(lock.owner, blockers, std::vector<PageId>{page});
      if (result == WaitResult::kTimedOut) ++timeouts_;
      if (result != WaitResult::kLookAgain) return false;
    }
  }

  void Remember(const RowLock& lock) {
    const std::lock_guard guard(held_latch_);
    for (const RowLock& held : held_) EXPECT_FALSE(Conflict(held, lock)) << "key " << lock.low;
    held_.push_back(lock);
  }
  void Forget(const TxnName& txn) {
    const std::lock_guard guard(held_latch_);
    std::erase_if(held_, [&](const RowLock& held) { return held.owner == txn; });
  }

  std::vector<std::unique_ptr<Master>> masters_;
  GlobalLocks global_{*this};
  std::mutex links_latch_;
  std::array<std::deque<Message>, 2 * kMasters> links_;
  std::mutex held_latch_;
  std::vector<RowLock> held_;
  std::atomic<bool> ends_{false};
  std::atomic<uint32_t> commits_{0}, aborts_{0}, timeouts_{0};
};

template <class Message>
void Master::Post(const Message& message) {
  cluster.Post(locks.self().value(), Message::kType, EncodeBody(message));
}

TEST(LockThreadsTest, NoConflictingRowLocksAndAllTransactionsEnd) {
  Cluster cluster;
  cluster.Run();
  EXPECT_EQ(cluster.commits() + cluster.aborts(), kMasters * kThreads * kTransactions);
  EXPECT_GT(cluster.commits(), cluster.aborts());
  EXPECT_EQ(cluster.timeouts(), 0u) << "a deadlock that nobody found, or a lost wake-up";
}

}  // namespace
}  // namespace dbx::mm
