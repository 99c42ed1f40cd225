// Claims about histories whose lives and misses have no recorded order: the checker finds an order exactly where trying
// all orders finds one, and it always ends. R, W, I, D, M as in history_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "benchmarks/test/history.h"
#include "tests/benchmarks/test/exported_histories.h"

namespace dbx {
namespace {

constexpr uint64_t kX = 1, kY = 2, kP = 10, kQ = 11, kA = 20, kB = 21, kC = 22, kD = 23;

TxnId Version(uint64_t n) { return n == 0 ? kInitialVersion : TxnId{n}; }
HistoryAccess R(uint64_t object, uint64_t version) { return {object, AccessKind::kRead, Version(version)}; }
HistoryAccess W(uint64_t object, uint64_t version) { return {object, AccessKind::kWrite, Version(version)}; }
HistoryAccess D(uint64_t object, uint64_t version) { return {object, AccessKind::kDelete, Version(version)}; }
HistoryAccess I(uint64_t object) { return {object, AccessKind::kInsert, kNoVersion}; }
HistoryAccess M(uint64_t object) { return {object, AccessKind::kMiss, kNoVersion}; }

struct Txn {
  TxnId id;
  std::vector<HistoryAccess> accesses;
};
using State = std::map<uint64_t, TxnId>;  // of the objects that are there
using Changes = std::map<uint64_t, int>;  // of each object, so far

// What is recorded of a run.
struct Recorded {
  std::vector<uint64_t> initial;
  std::vector<Txn> txns;
  std::map<uint64_t, std::pair<TxnId, TxnId>> final;  // the version and its predecessor

  std::string Anomaly(bool snapshots, uint64_t work_max = UINT64_MAX) const {
    History history([](uint64_t object) { return std::string(1, static_cast<char>('a' + object)); });
    if (snapshots) history.AllowWriteSkew();
    if (work_max != UINT64_MAX) history.LimitWork(work_max);
    for (const uint64_t object : initial) history.AddInitial(object);
    for (const auto& [object, last] : final) history.AddFinal(object, last.first, last.second);
    for (const Txn& txn : txns) history.AddTransaction(txn.id, txn.accesses);
    const std::string anomaly = history.FindAnomaly().value_or("nothing");
    const bool has_lives = std::ranges::any_of(txns, [](const Txn& txn) {
      return std::ranges::any_of(txn.accesses, [](const HistoryAccess& a) {
        return (a.kind != AccessKind::kRead && a.kind != AccessKind::kWrite) || a.version == kNoVersion;
      });
    });
    const bool is_of_model = anomaly[0] == 'G' || anomaly.starts_with("lost update");
    const char* const why = has_lives      ? "the order of lives and misses is unknown in the model"
                            : !is_of_model ? "no cycle, but what no run records or leaves: the model does not know it"
                                           : "";
    if (work_max == UINT64_MAX) ExportHistory(history, snapshots, anomaly == "nothing", why);
    return anomaly;
  }
};

Recorded Of(std::vector<uint64_t> initial, std::vector<std::vector<HistoryAccess>> accesses,
            std::map<uint64_t, std::pair<TxnId, TxnId>> final) {
  Recorded recorded{std::move(initial), {}, std::move(final)};
  for (auto& of_one : accesses) recorded.txns.push_back({TxnId{recorded.txns.size() + 1}, std::move(of_one)});
  return recorded;
}

// ---- Histories on which the checker did not end, or which it passed ----

TEST(HistoryOrderTest, ATransactionThatOverwritesItsOwnVersionIsMalformed) {
  const Recorded recorded = Of({kX}, {{W(kX, 0), W(kX, 1)}}, {{kX, {TxnId{1}, TxnId{1}}}});
  const std::string expected = "malformed: T0.1 made two versions of b, which have one name";
  EXPECT_EQ(recorded.Anomaly(false), expected);
  EXPECT_EQ(recorded.Anomaly(true), expected);
}

TEST(HistoryOrderTest, AReadOfAVersionThatItsWriterOverwroteIsReported) {
  const Recorded recorded = Of({kX}, {{W(kX, 0), W(kX, 1)}, {R(kX, 1)}}, {{kX, {TxnId{1}, TxnId{1}}}});
  const std::string expected = "G1b: T0.2 saw the version of b by T0.1, which overwrote it again";
  EXPECT_EQ(recorded.Anomaly(false), expected);
  EXPECT_EQ(recorded.Anomaly(true), expected);
}

TEST(HistoryOrderTest, TwoThatOverwriteEachOtherAreACycleAtEitherLevel) {
  const Recorded recorded = Of({}, {{I(kX), W(kX, 2)}, {W(kX, 1)}}, {{kX, {TxnId{1}, TxnId{2}}}});
  const std::string expected = "G0: T0.1 -ww b-> T0.2 -ww b-> T0.1";
  EXPECT_EQ(recorded.Anomaly(false), expected);
  EXPECT_EQ(recorded.Anomaly(true), expected);
}

// Of p's two lives and of q's each order is possible alone, and no two together.
TEST(HistoryOrderTest, LivesOfTwoObjectsMayHaveNoOrderTogether) {
  const Recorded recorded = Of({},
                               {{I(kP), I(kA)},
                                {D(kP, 1), R(kC, 5), R(kD, 7)},
                                {I(kP), I(kB)},
                                {D(kP, 3), R(kC, 5), R(kD, 7)},
                                {I(kQ), I(kC)},
                                {D(kQ, 5), R(kA, 1), R(kB, 3)},
                                {I(kQ), I(kD)},
                                {D(kQ, 7), R(kA, 1), R(kB, 3)}},
                               {{kA, {TxnId{1}, kNoVersion}},
                                {kB, {TxnId{3}, kNoVersion}},
                                {kC, {TxnId{5}, kNoVersion}},
                                {kD, {TxnId{7}, kNoVersion}}});
  for (const bool snapshots : {false, true}) {
    const std::string anomaly = recorded.Anomaly(snapshots);
    EXPECT_EQ(anomaly.substr(0, 3), "G1c") << anomaly;
    EXPECT_NE(anomaly.find("; in every other order of lives and misses there is another"), std::string::npos);
    EXPECT_EQ(recorded.Anomaly(snapshots, 4).substr(0, 10), "undecided:");
  }
}

// T1 inserts x and changes y, T2 deletes x. T3 sees y changed and missed x, T4 saw T3's mark and deletes.
TEST(HistoryOrderTest, ReadSkewOverAnInsertThatIsDeletedLaterIsOneWhereWriteSkewIsAllowed) {
  const Recorded recorded = Of({kY, kA}, {{I(kX), W(kY, 0)}, {D(kX, 1), R(kA, 3)}, {M(kX), R(kY, 1), W(kA, 0)}},
                               {{kY, {TxnId{1}, kInitialVersion}}, {kA, {TxnId{3}, kInitialVersion}}});
  EXPECT_EQ(recorded.Anomaly(false), "G1c: T0.2 -wr b-> T0.3 -wr u-> T0.2");
  EXPECT_EQ(recorded.Anomaly(true), "G1c: T0.2 -wr b-> T0.3 -wr u-> T0.2");
}

TEST(HistoryOrderTest, WhatATransactionDoesNotSeeOfItsOwnIsReported) {
  const std::string expected = "internal: T0.1 did not see b as it had left it itself";
  EXPECT_EQ(Of({kX}, {{W(kX, 0), R(kX, 0)}}, {{kX, {TxnId{1}, kInitialVersion}}}).Anomaly(false), expected);
  EXPECT_EQ(Of({}, {{I(kX), M(kX)}}, {{kX, {TxnId{1}, kNoVersion}}}).Anomaly(false), expected);
  EXPECT_EQ(Of({kX}, {{D(kX, 0), R(kX, 0)}}, {}).Anomaly(true), expected);
  EXPECT_EQ(Of({kX}, {{M(kX), D(kX, 0)}}, {}).Anomaly(true), expected);
}

TEST(HistoryOrderTest, NamesAndKindsThatNoRunRecordsAreMalformed) {
  Recorded reserved{{kX}, {{kInitialVersion, {}}}, {{kX, {kInitialVersion, kNoVersion}}}};
  EXPECT_EQ(reserved.Anomaly(false), "malformed: a transaction bears a reserved name");
  const Recorded unknown = Of({}, {{{kX, static_cast<AccessKind>(9), kNoVersion}}}, {});
  EXPECT_EQ(unknown.Anomaly(true), "malformed: T0.1 made an access of no known kind");
  const Recorded versioned = Of({}, {{{kX, AccessKind::kMiss, TxnId{7}}}}, {});
  EXPECT_EQ(versioned.Anomaly(true), "malformed: T0.1 names a version where there was none");
}

// ---- Against all orders ----

// Executes transactions of a history as it goes, and takes back what does not fit.
class AllOrders {
 public:
  AllOrders(const Recorded& recorded, bool snapshots)
      : recorded_(recorded), snapshots_(snapshots), started_(recorded.txns.size()) {
    for (const uint64_t object : recorded.initial) state_[object] = kInitialVersion;
  }

  bool HasOne() {
    if (done_ == recorded_.txns.size()) return IsFinal();
    for (size_t i = 0; i < recorded_.txns.size(); ++i) {
      if (started_[i] == kCommitted) continue;
      if (started_[i] == kWaiting ? TryStart(i) : TryCommit(i)) return true;
    }
    return false;
  }

 private:
  enum Progress { kWaiting, kRunning, kCommitted };

  // At its start a transaction sees `state_`, and then what it does itself.
  static bool Execute(const Txn& txn, State& state) {
    for (const HistoryAccess& access : txn.accesses) {
      const auto there = state.find(access.object);
      const bool wants_absence = access.kind == AccessKind::kMiss || access.kind == AccessKind::kInsert;
      if (wants_absence != (there == state.end())) return false;
      if (!wants_absence && there->second != access.version) return false;
      if (access.kind == AccessKind::kDelete) state.erase(there);
      if (access.kind == AccessKind::kWrite || access.kind == AccessKind::kInsert) state[access.object] = txn.id;
    }
    return true;
  }

  bool TryStart(size_t i) {
    State after = state_;
    if (!Execute(recorded_.txns[i], after)) return false;
    started_[i] = kRunning;
    snapshots_of_[i] = {state_, changes_};
    const bool found = snapshots_ ? HasOne() : TryCommit(i);
    started_[i] = kWaiting;
    return found;
  }

  // Each object that it changes must have been left alone since its snapshot, not only be absent again.
  bool TryCommit(size_t i) {
    const State before = state_;
    const Changes changes_before = changes_;
    const Txn& txn = recorded_.txns[i];
    auto [own, changes_then] = snapshots_of_[i];
    Execute(txn, own);
    bool is_first = true;
    for (const HistoryAccess& access : txn.accesses) {
      if (access.kind == AccessKind::kRead || access.kind == AccessKind::kMiss) continue;
      is_first &= changes_then[access.object] ==
                  (changes_before.contains(access.object) ? changes_before.at(access.object) : 0);
      ++changes_[access.object];
      state_.erase(access.object);
      if (own.contains(access.object)) state_[access.object] = own[access.object];
    }
    started_[i] = kCommitted;
    ++done_;
    const bool found = is_first && HasOne();
    --done_;
    started_[i] = kRunning;
    state_ = before;
    changes_ = changes_before;
    return found;
  }

  static TxnId ValueOf(const State& state, uint64_t object) {
    const auto found = state.find(object);
    return found == state.end() ? kNoVersion : found->second;
  }
  bool IsFinal() const {
    if (state_.size() != recorded_.final.size()) return false;
    return std::all_of(recorded_.final.begin(), recorded_.final.end(), [this](const auto& last) {
      return ValueOf(state_, last.first) == last.second.first && PredecessorOf(last.first) == last.second.second;
    });
  }
  TxnId PredecessorOf(uint64_t object) const {
    for (const Txn& txn : recorded_.txns) {
      if (txn.id != state_.at(object)) continue;
      for (const HistoryAccess& a : txn.accesses) {
        if (a.object == object && a.kind == AccessKind::kWrite) return a.version;
      }
    }
    return kNoVersion;
  }

  const Recorded& recorded_;
  const bool snapshots_;
  State state_;
  Changes changes_;
  std::map<size_t, std::pair<State, Changes>> snapshots_of_;
  std::vector<Progress> started_;
  size_t done_ = 0;
};

// Transactions that access a few objects in turn, as they are there: nothing isolates them. Now and then one reads a
// version that has passed.
class RandomRun {
 public:
  explicit RandomRun(uint64_t seed) : random_(seed) {}

  Recorded Make(size_t txns_max) {
    const uint64_t objects = 1 + random_() % 3;
    const bool come_and_go = random_() % 4 != 0;
    for (uint64_t object = 0; object < objects; ++object) {
      if (!come_and_go || random_() % 2 == 0) recorded_.initial.push_back(object), state_[object] = kInitialVersion;
    }
    const size_t txns = 2 + random_() % (txns_max - 1);
    for (size_t i = 0; i < txns; ++i) recorded_.txns.push_back({TxnId::Make(WorkerId(i % 3), i / 3 + 1), {}});
    // Serial ones are well isolated, others seldom are: all mixtures.
    const uint64_t jumps = random_() % 8;
    size_t current = 0;
    for (uint64_t step = 0; step < txns * (2 + random_() % 3); ++step) {
      current = random_() % 8 < jumps ? random_() % txns : std::min<size_t>(step / 2, txns - 1);
      Access(recorded_.txns[current], random_() % objects, come_and_go);
    }
    for (const auto& [object, version] : state_) {
      recorded_.final[object] = {version, predecessors_.contains(object) ? predecessors_[object] : kNoVersion};
    }
    return recorded_;
  }

 private:
  void Access(Txn& txn, uint64_t object, bool come_and_go) {
    for (const HistoryAccess& access : txn.accesses) {
      if (access.object == object) return;
    }
    const auto there = state_.find(object);
    const bool is_there = there != state_.end();
    if (random_() % 4 == 0 && !passed_.empty()) {
      const auto& [object_then, version] = passed_[random_() % passed_.size()];
      if (object_then == object && version != kNoVersion) {
        return txn.accesses.push_back({object, AccessKind::kRead, version});
      }
    }
    if (!is_there) {
      if (random_() % 2 == 0) return txn.accesses.push_back(M(object));
      txn.accesses.push_back(I(object));
      predecessors_[object] = kNoVersion;
      return Change(object, txn.id);
    }
    const TxnId version = there->second;
    const uint64_t kind = random_() % (come_and_go ? 4 : 3);
    if (kind < 2) return txn.accesses.push_back({object, AccessKind::kRead, version});
    txn.accesses.push_back({object, kind == 2 ? AccessKind::kWrite : AccessKind::kDelete, version});
    predecessors_[object] = version;
    Change(object, kind == 2 ? txn.id : kNoVersion);
  }
  void Change(uint64_t object, TxnId version) {
    passed_.emplace_back(object, state_.contains(object) ? state_[object] : kNoVersion);
    if (version == kNoVersion) state_.erase(object);
    if (version != kNoVersion) state_[object] = version;
  }

  std::mt19937_64 random_;
  Recorded recorded_;
  State state_;
  std::map<uint64_t, TxnId> predecessors_;
  std::vector<std::pair<uint64_t, TxnId>> passed_;
};

// An access that saw, or did, something else.
void Damage(Recorded& recorded, std::mt19937_64& random) {
  Txn& txn = recorded.txns[random() % recorded.txns.size()];
  if (txn.accesses.empty()) return;
  const size_t place = random() % txn.accesses.size();
  HistoryAccess access = txn.accesses[place];
  const uint64_t what = random() % 3;
  if (what != 1) access.kind = static_cast<AccessKind>(1 + random() % 5);
  if (what == 1) access.version = recorded.txns[random() % recorded.txns.size()].id;
  if (access.kind == AccessKind::kMiss || access.kind == AccessKind::kInsert) access.version = kNoVersion;
  if (what < 2) txn.accesses[place] = access;
  if (what == 2) txn.accesses.push_back(access);
}

std::string TextOf(const Recorded& recorded) {
  std::string text;
  for (const Txn& txn : recorded.txns) {
    text += " T" + std::to_string(txn.id.worker().value()) + "." + std::to_string(txn.id.sequence()) + "{";
    for (const HistoryAccess& a : txn.accesses) {
      text += "?RMWID"[static_cast<size_t>(a.kind)] + std::to_string(a.object) + " " + std::to_string(a.version.value) +
              ",";
    }
    text += "}";
  }
  return text;
}

// Two versions of one object bear one name if one transaction made both: that is refused, in whatever order.
bool HasAmbiguousNames(const Recorded& recorded) {
  for (const Txn& txn : recorded.txns) {
    std::map<uint64_t, int> made;
    for (const HistoryAccess& a : txn.accesses) {
      if (a.kind == AccessKind::kWrite || a.kind == AccessKind::kInsert) ++made[a.object];
    }
    if (std::any_of(made.begin(), made.end(), [](const auto& count) { return count.second > 1; })) return true;
  }
  return false;
}

// Seen so far.
struct Seen {
  int with_order = 0, without = 0;
};

void Compare(const Recorded& recorded, bool snapshots, uint64_t seed, Seen& seen) {
  const std::string anomaly = recorded.Anomaly(snapshots);
  const bool has_order = !HasAmbiguousNames(recorded) && AllOrders(recorded, snapshots).HasOne();
  ++(has_order ? seen.with_order : seen.without);
  ASSERT_EQ(anomaly == "nothing", has_order) << "seed " << seed << ": " << anomaly << TextOf(recorded);
}

TEST(HistoryOrderTest, TheCheckerFindsAnOrderWhereTryingAllOfThemDoes) {
  const uint64_t base = std::random_device()();
  Seen serial, snapshots, damaged;
  for (uint64_t seed = base; seed < base + 8000 && !HasFatalFailure(); ++seed) {
    Recorded recorded = RandomRun(seed).Make(7);
    Compare(recorded, false, seed, serial);
    if (recorded.txns.size() <= 5) Compare(recorded, true, seed, snapshots);
    std::mt19937_64 random(seed);
    for (uint64_t times = 1 + random() % 3; times > 0; --times) Damage(recorded, random);
    Compare(recorded, random() % 2 == 0 && recorded.txns.size() <= 5, seed, damaged);
  }
  for (const Seen& seen : {serial, snapshots, damaged}) {
    EXPECT_GT(seen.with_order, 300);
    EXPECT_GT(seen.without, 300);
  }
}

}  // namespace
}  // namespace dbx
