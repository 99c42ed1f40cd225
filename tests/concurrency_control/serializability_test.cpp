// Threads over a handful of rows, under every concurrency control: what they read and wrote must have a serial order,
// whatever order that is, or at snapshot isolation no anomaly but write skew. Readers that leave no trace in the rows
// are among them, and misses, inserts and deletes; in an ordered table scans too, and rows that come and go faster,
// and their leaves with them. Workers wait for locks where the concurrency control lets them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "benchmarks/test/history.h"
#include "storage/tuple.h"
#include "tests/concurrency_control/pairs.h"

namespace dbx::testing {
namespace {

constexpr Key kKeysPerScan = 4;
constexpr uint32_t kAccessesMax = 3;
constexpr int kTxnsPerWorker = 1500, kTxnsPerWorkerWithScans = 600;
constexpr int kTriesMax = 4;

// As a tuple holds it: the transaction that wrote it, and the writer of the version before.
struct Version {
  TxnId writer, predecessor;
};
Tuple TupleOf(TxnId writer, TxnId predecessor) { return {writer.value, {predecessor.value, 0, 0}}; }

class Serializability : public PairTest {
 protected:
  explicit Serializability(bool scans)
      : PairTest({.ordered = scans}),
        has_scans_(scans),
        keys_(scans ? 12 : 6),
        stride_(scans ? BTreeLeaf::kSlots : 1) {}

  Key At(Key key) const { return key * stride_; }

  struct Committed {
    TxnId id;
    std::vector<HistoryAccess> accesses;
  };
  using Accesses = std::vector<HistoryAccess>;

  void SetUp() override {
    h_.LetWorkersWait();
    for (Key at = 0; at < At(keys_); ++at) h_.LoadRow(at, kInitialVersion.value);
    // The others have made the leaves.
    for (Key at = 0; at < At(keys_); ++at) {
      if (at % stride_ != 0) h_.table().Unlink(h_.table().Find(at));
    }
  }

  Outcome Access(TestContext& ctx, uint32_t worker, std::mt19937_64& random, bool only_reads, Key key, Accesses& seen) {
    const TxnId me = h_.id(worker);
    TxnId before = kNoVersion;
    AccessKind kind = AccessKind::kRead;
    Outcome outcome = Outcome::kOk;
    if (only_reads || random() % 2 == 0) {
      outcome = ctx.Read(h_.table(), At(key), [&](const TestTuple& t) { before.value = t.GetAt<uint64_t>(0); });
    } else if (random() % (has_scans_ ? 2 : 8) != 0) {
      kind = AccessKind::kWrite;
      outcome = ctx.Update(h_.table(), At(key), [&](TestTuple& t) {
        before.value = t.GetAt<uint64_t>(0);
        t.SetAt<uint64_t>(0, me.value);
        t.SetAt<uint64_t>(8, before.value);
      });
    } else if (random() % (has_scans_ ? 2 : 4) != 0) {
      return Insert(ctx, me, key, seen);
    } else {
      kind = AccessKind::kDelete;
      outcome = ctx.Read(h_.table(), At(key), [&](const TestTuple& t) { before.value = t.GetAt<uint64_t>(0); });
      if (outcome == Outcome::kOk) outcome = ctx.Delete(h_.table(), At(key));
    }
    if (outcome == Outcome::kConflict) return outcome;
    // An optimistic read may have shown a version before it looked again and found none.
    if (outcome == Outcome::kNotFound) before = kNoVersion;
    seen.push_back({key, outcome == Outcome::kNotFound ? AccessKind::kMiss : kind, before});
    return Outcome::kOk;
  }
  Outcome Insert(TestContext& ctx, TxnId me, Key key, Accesses& seen) {
    const Tuple tuple = TupleOf(me, kNoVersion);
    const Outcome outcome = ctx.Insert(h_.table(), At(key), std::as_bytes(std::span(&tuple, 1)));
    if (outcome == Outcome::kConflict) return outcome;
    if (outcome == Outcome::kOk) {
      seen.push_back({key, AccessKind::kInsert, kNoVersion});
      return outcome;
    }
    TxnId there = kNoVersion;
    const Outcome read = ctx.Read(h_.table(), At(key), [&](const TestTuple& t) { there.value = t.GetAt<uint64_t>(0); });
    if (read == Outcome::kOk) seen.push_back({key, AccessKind::kRead, there});
    return read;
  }

  // Whether another worker waits for the lock in the row, which has been accessed.
  bool IsWaitedFor(Key key) {
    const Row* row = WaitsForRows() ? h_.table().Find(At(key)) : nullptr;
    return row != nullptr && (row->control.load() >> 63) != 0;
  }

  // In either order, all or up to the first row.
  Outcome Scan(TestContext& ctx, std::mt19937_64& random, Key low, Accesses& seen) {
    const Key high = std::min(low + kKeysPerScan, keys_) - 1;
    const bool up = random() % 2 == 0, all = random() % 2 == 0;
    std::map<Key, TxnId> found;
    const auto order = up ? ScanOrder::kAscending : ScanOrder::kDescending;
    const Outcome outcome = ctx.Scan(h_.table(), At(low), At(high), order, [&](Key at, const TestTuple& tuple) {
      if (random() % 4 == 0) host::Yield();
      found[at / stride_] = TxnId{tuple.GetAt<uint64_t>(0)};
      return all;
    });
    if (outcome != Outcome::kOk) return outcome;
    const bool ended = !all && !found.empty();
    for (Key key = low; key <= high; ++key) {
      const auto row = found.find(key);
      if (row != found.end()) seen.push_back({key, AccessKind::kRead, row->second});
      const bool passed = !ended || (up ? key < found.begin()->first : key > found.begin()->first);
      if (row == found.end() && passed) seen.push_back({key, AccessKind::kMiss, kNoVersion});
    }
    return Outcome::kOk;
  }

  void Work(uint32_t worker, uint64_t seed) {
    std::mt19937_64 random(seed * 1000 + worker);
    const int txns = has_scans_ ? kTxnsPerWorkerWithScans : kTxnsPerWorker;
    // Goes on if it has met nothing but locks of threads that are not running, or if no worker was seen to wait.
    for (int i = 0; i < txns || (i < 1000 * txns && committed_[worker].empty()) || (i < 50 * txns && LacksWaiters());
         ++i) {
      if (random() % 64 == 0) h_.epochs().Advance();
      h_.epochs().Refresh(WorkerId(worker));
      Accesses seen;
      const bool only_reads = random() % 4 == 0;
      const auto body = [&](TestContext& ctx) {
        seen.clear();
        const Key first = random() % keys_;
        const uint32_t scan_before = has_scans_ ? random() % (2 * kAccessesMax) : kAccessesMax;
        for (uint32_t n = 0; n < kAccessesMax; ++n) {
          if (n == scan_before) {
            // The keys that follow those which it accesses otherwise, or, before it does so, these.
            const bool own = n == 0 && random() % 2 == 0;
            const Outcome outcome = Scan(ctx, random, (first + (own ? 0 : kAccessesMax)) % keys_, seen);
            if (outcome != Outcome::kOk) return outcome;
          }
          const Key key = (first + n) % keys_;
          const Outcome outcome = Access(ctx, worker, random, only_reads, key, seen);
          if (outcome != Outcome::kOk) return outcome;
          if (random() % 4 == 0) host::Yield();
          if (LacksWaiters() && IsWaitedFor(key)) has_seen_waiters_.store(true);
        }
        return Outcome::kOk;
      };
      // As the same transaction again, which WAIT_DIE goes by.
      CallResult result = h_.Run(worker, body);
      for (int tries = 1; tries < kTriesMax && result.outcome == Outcome::kConflict; ++tries) {
        result = h_.RunAgain(worker, body);
      }
      if (result.outcome == Outcome::kOk) committed_[worker].push_back({h_.id(worker), std::move(seen)});
    }
  }

  std::optional<std::string> FindAnomaly() {
    History history([](uint64_t object) { return "row " + std::to_string(object); });
    if (h_.isolation() == Isolation::kSnapshot) history.AllowWriteSkew();
    for (Key key = 0; key < keys_; ++key) {
      history.AddInitial(key);
      const Row* row = h_.table().Find(At(key));
      if (row == nullptr || (row->control.load() & Row::kAbsent) != 0) continue;
      const TupleReader tuple(h_.table().tuple(row));
      const TxnId writer{tuple.GetAt<uint64_t>(0)};
      if (writer != kInitialVersion) history.AddFinal(key, writer, TxnId{tuple.GetAt<uint64_t>(8)});
      if (writer == kInitialVersion) history.AddFinal(key, writer, kNoVersion);
    }
    for (const auto& of_worker : committed_) {
      for (const Committed& txn : of_worker) history.AddTransaction(txn.id, txn.accesses);
    }
    return history.FindAnomaly();
  }

  void ExpectIsolation() {
    const uint64_t seed = std::random_device()();
    std::vector<std::thread> threads;
    for (uint32_t w = 0; w < TestEngine::kWorkers; ++w) threads.emplace_back([this, w, seed] { Work(w, seed); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(FindAnomaly().value_or(""), "") << "seed " << seed;
    for (const auto& of_worker : committed_) EXPECT_GT(of_worker.size(), 0u);
    EXPECT_FALSE(LacksWaiters());
  }

 private:
  static bool WaitsForRows() { return WaitsForLocks(*GetParam()) && LocksInRows(*GetParam()); }
  // The controls that wait would not have been tried.
  bool LacksWaiters() const { return WaitsForRows() && !has_seen_waiters_.load(); }

  const bool has_scans_;
  const Key keys_;
  const Key stride_;  // of an ordered table each row has a leaf of its own at first, which goes when the row has
  std::array<std::vector<Committed>, TestEngine::kWorkers> committed_;
  std::atomic<bool> has_seen_waiters_{false};
};

class SerializabilityOfRows : public Serializability {
 protected:
  SerializabilityOfRows() : Serializability(/*scans=*/false) {}
};
class SerializabilityOfScans : public Serializability {
 protected:
  SerializabilityOfScans() : Serializability(/*scans=*/true) {}
};
INSTANTIATE_TEST_SUITE_P(With, SerializabilityOfRows, In(ControlsWhere([](const TestPair&) { return true; })),
                         NameOfPair);
INSTANTIATE_TEST_SUITE_P(With, SerializabilityOfScans, In(ControlsWhere([](const TestPair&) { return true; })),
                         NameOfPair);

TEST_P(SerializabilityOfRows, WhatThreadsCommitIsAsIsolatedAsItClaims) { ExpectIsolation(); }
TEST_P(SerializabilityOfScans, WhatThreadsCommitIsAsIsolatedAsItClaims) { ExpectIsolation(); }

}  // namespace
}  // namespace dbx::testing
