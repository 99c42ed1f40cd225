// EpochClock: SafeEpoch never passes an active worker, and memory that it declares safe is unreachable.
#include "base/epoch.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

namespace dbx {
namespace {

using std::chrono::milliseconds;

constexpr WorkerId kA{0};
constexpr WorkerId kB{1};

TEST(EpochTest, IdleWorkersHoldNothingBack) {
  EpochClock clock(2);
  clock.Advance();
  EXPECT_EQ(clock.SafeEpoch(), clock.Current());
}

TEST(EpochTest, PinnedReaderHoldsBackSafeEpoch) {
  EpochClock clock(2);
  clock.Enter(kA);
  const Epoch entered = clock.Current();
  for (int i = 0; i < 5; ++i) clock.Advance();
  EXPECT_EQ(clock.SafeEpoch(), entered);
  clock.Leave(kA);
  EXPECT_EQ(clock.SafeEpoch(), clock.Current());
}

TEST(EpochTest, SafeEpochIsTheOldestOfTheActive) {
  EpochClock clock(2);
  clock.Enter(kA);
  clock.Advance();
  clock.Enter(kB);
  const Epoch second = clock.Current();
  clock.Advance();
  EXPECT_LT(clock.SafeEpoch(), second);
  clock.Leave(kA);
  EXPECT_EQ(clock.SafeEpoch(), second);
}

TEST(EpochTest, RefreshMovesAWorkerOn) {
  EpochClock clock(1);
  clock.Enter(kA);
  const Epoch next = clock.Advance();
  EXPECT_LT(clock.Announced(kA), next);
  clock.Refresh(kA);
  EXPECT_EQ(clock.Announced(kA), next);
  EXPECT_EQ(clock.SafeEpoch(), next);
}

TEST(EpochTest, WhatIsRetiredWaitsForTheNextEpoch) {
  EpochClock clock(2);
  const EpochSection retirer(clock, kA);
  const Epoch stamp = clock.RetireEpoch(kA);
  EXPECT_FALSE(clock.SafeEpoch() > stamp);
  clock.Advance();
  EXPECT_FALSE(clock.SafeEpoch() > stamp) << "the retirer itself is still in its section";
  clock.Refresh(kA);
  EXPECT_TRUE(clock.SafeEpoch() > stamp);
}

TEST(EpochTest, TickerAdvancesUntilItIsDestroyed) {
  EpochClock clock(1);
  {
    const EpochTicker ticker(clock, milliseconds(1));
    while (clock.Current() < Epoch(4)) std::this_thread::sleep_for(milliseconds(1));
  }
  const Epoch stopped = clock.Current();
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(clock.Current(), stopped);
}

// One writer swaps a shared pointer and poisons what it replaced as soon as that is safe; a reader that
// sees poison reached freed memory.
class Reclamation {
 public:
  explicit Reclamation(uint32_t readers) : clock_(readers + 1), shared_(&cells_[0]) { cells_[0] = kInUse; }

  void Write(int rounds) {
    EpochSection section(clock_, kA);
    std::deque<std::pair<Epoch, Cell*>> retired;
    for (int i = 1; i < rounds; ++i) {
      Cell* const next = &cells_[static_cast<size_t>(i) % cells_.size()];
      while (next->load(std::memory_order_relaxed) == kInUse) Reclaim(retired);
      next->store(kInUse, std::memory_order_relaxed);
      Cell* const old = shared_.exchange(next, std::memory_order_release);
      retired.emplace_back(clock_.RetireEpoch(kA), old);
      clock_.Refresh(kA);
    }
    stop_.store(true);
  }
  void Read(WorkerId worker) {
    clock_.Enter(worker);
    while (!stop_.load(std::memory_order_relaxed)) {
      const Cell* const cell = shared_.load(std::memory_order_acquire);
      poisoned_ += cell->load(std::memory_order_relaxed) != kInUse;
      std::this_thread::yield();
      poisoned_ += cell->load(std::memory_order_relaxed) != kInUse;
      clock_.Refresh(worker);
    }
    clock_.Leave(worker);
  }
  int poisoned() const { return poisoned_; }

 private:
  using Cell = std::atomic<int>;
  static constexpr int kPoison = 0;
  static constexpr int kInUse = 1;

  // Poisons what is safe by now.
  void Reclaim(std::deque<std::pair<Epoch, Cell*>>& retired) {
    clock_.Advance();
    clock_.Refresh(kA);
    while (!retired.empty() && clock_.SafeEpoch() > retired.front().first) {
      retired.front().second->store(kPoison, std::memory_order_relaxed);
      retired.pop_front();
    }
    std::this_thread::yield();
  }

  EpochClock clock_;
  std::array<Cell, 8> cells_{};
  std::atomic<Cell*> shared_;
  std::atomic<bool> stop_{false};
  std::atomic<int> poisoned_{0};
};

TEST(EpochTest, NoReaderReachesWhatWasReclaimed) {
  Reclamation reclamation(2);
  std::vector<std::thread> readers;
  for (uint32_t i = 1; i <= 2; ++i) readers.emplace_back([&, i] { reclamation.Read(WorkerId(i)); });
  reclamation.Write(400);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(reclamation.poisoned(), 0);
}

}  // namespace
}  // namespace dbx
