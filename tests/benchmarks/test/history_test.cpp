// Claims about the history checker, by hand-made histories. R, W, I, D, M stand for the kinds of accesses.
#include "benchmarks/test/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "tests/benchmarks/test/exported_histories.h"

namespace dbx {
namespace {

constexpr uint64_t kX = 1, kY = 2, kZ = 3, kLast = 4;

// Transaction n is T0.n; version 0 stands for the load's.
TxnId Version(uint64_t n) { return n == 0 ? kInitialVersion : TxnId{n}; }
HistoryAccess R(uint64_t object, uint64_t version) { return {object, AccessKind::kRead, Version(version)}; }
HistoryAccess W(uint64_t object, uint64_t version) { return {object, AccessKind::kWrite, Version(version)}; }
HistoryAccess D(uint64_t object, uint64_t version) { return {object, AccessKind::kDelete, Version(version)}; }
HistoryAccess I(uint64_t object) { return {object, AccessKind::kInsert, kNoVersion}; }
HistoryAccess M(uint64_t object) { return {object, AccessKind::kMiss, kNoVersion}; }

// Anomalies here that none of Elle's model is, and why.
const char* const kEnd = "versions in the end are no part of the model";
const char* const kOrder = "the order of lives and misses is unknown in the model";
const char* const kPresence = "that a row is there all the time cannot be said in the model";
const char* const kUnwritten = "a version that no transaction wrote is no anomaly of the model";
const std::map<std::string, std::string> kBeyondElle = {
    {"ADeletedRowThatComesBackIsReported", kEnd},
    {"ALostLastWriteIsReported", kEnd},
    {"AMissInsideALifeIsACycle", kOrder},
    {"AMissOfWhatWasAlwaysThereIsReported", kPresence},
    {"ARowThatNobodyInsertedIsReported", kEnd},
    {"ARowThatNobodyTouchedAndIsGoneIsReported", kEnd},
    {"ATransactionThatAppearsTwiceIsReported", "transactions have no names in the model"},
    {"AVersionByWhoDidNotWriteItIsReported", kUnwritten},
    {"AWrongPredecessorInTheRowIsReported", kEnd},
    {"AnInsertOfWhatWasAlwaysThereIsReported", kPresence},
    {"AnInsertThatVanishesIsReported", kEnd},
    {"OverlappingLivesAreACycle", kOrder},
    {"TheLoadsVersionOfWhatItDidNotLoadIsReported", kUnwritten},
};

class HistoryTest : public testing::Test {
 protected:
  void Add(uint64_t id, std::vector<HistoryAccess> accesses) { history_.AddTransaction(TxnId{id}, accesses); }
  void Initially(uint64_t object) { history_.AddInitial(object); }
  void Finally(uint64_t object, uint64_t version) { history_.AddFinal(object, Version(version), kNoVersion); }
  void Finally(uint64_t object, uint64_t version, uint64_t predecessor) {
    history_.AddFinal(object, Version(version), Version(predecessor));
  }
  void AllowWriteSkew() {
    history_.AllowWriteSkew();
    snapshots_ = true;
  }
  void ExpectNothing() { Expect("nothing"); }
  void Expect(const std::string& anomaly) {
    EXPECT_EQ(history_.FindAnomaly().value_or("nothing"), anomaly);
    const auto why = kBeyondElle.find(testing::UnitTest::GetInstance()->current_test_info()->name());
    ExportHistory(history_, snapshots_, anomaly == "nothing", why == kBeyondElle.end() ? "" : why->second);
  }

  bool snapshots_ = false;
  History history_{[](uint64_t object) {
    constexpr const char* kNames[] = {"", "x", "y", "z", "last"};
    return object < std::size(kNames) ? kNames[object] : std::to_string(object);
  }};
};

TEST_F(HistoryTest, AnEmptyHistoryIsSerializable) { ExpectNothing(); }

TEST_F(HistoryTest, AChainOfWritesIsSerializable) {
  Initially(kX);
  Add(1, {W(kX, 0)});
  Add(2, {W(kX, 1)});
  Add(3, {R(kX, 1)});
  Finally(kX, 2, 1);
  ExpectNothing();
}

TEST_F(HistoryTest, TwoWritersOfOneVersionLoseAnUpdate) {
  Initially(kX);
  Add(1, {W(kX, 0)});
  Add(2, {W(kX, 0)});
  Finally(kX, 2, 0);
  Expect("lost update: T0.1 and T0.2 overwrote one version of x");
}

TEST_F(HistoryTest, AWriteAfterAStaleReadLosesAnUpdate) {
  Initially(kX);
  Add(1, {R(kX, 0), W(kX, 2)});
  Add(2, {W(kX, 0)});
  Finally(kX, 1, 2);
  Expect("lost update: T0.1 -rw x-> T0.2 -ww x-> T0.1");
}

TEST_F(HistoryTest, ANonRepeatableReadIsNoLostUpdate) {
  Initially(kX);
  Add(1, {W(kX, 0)});
  Add(2, {R(kX, 0), R(kX, 1)});
  Finally(kX, 1, 0);
  Expect("G-single: T0.1 -wr x-> T0.2 -rw x-> T0.1");
}

// Elle's checkers are asked for stronger levels only, so these are not exported.
TEST_F(HistoryTest, ReadCommittedAllowsNonRepeatableReadsAndSkew) {
  history_.AskForReadCommitted();
  Initially(kX), Initially(kY);
  Add(1, {W(kX, 0), R(kY, 0)});
  Add(2, {R(kX, 0), R(kX, 1), W(kY, 0), M(kZ)});
  Add(3, {I(kZ), R(kX, 0)});
  Finally(kX, 1, 0), Finally(kY, 2, 0), history_.AddFinal(kZ, Version(3), kNoVersion);
  EXPECT_EQ(history_.FindAnomaly(), std::nullopt);
}

TEST_F(HistoryTest, ReadCommittedAllowsNoCircleOfInformation) {
  history_.AskForReadCommitted();
  Initially(kX), Initially(kY);
  Add(1, {W(kX, 0), R(kY, 2)});
  Add(2, {W(kY, 0), R(kX, 1)});
  Finally(kX, 1, 0), Finally(kY, 2, 0);
  EXPECT_THAT(history_.FindAnomaly().value_or(""), testing::StartsWith("G1c: "));
}

TEST_F(HistoryTest, ReadCommittedAllowsNoAbortedAndNoLostWrite) {
  history_.AskForReadCommitted();
  Initially(kX);
  Add(2, {R(kX, 1)});  // T1 rolled back
  Finally(kX, 0);
  EXPECT_THAT(history_.FindAnomaly().value_or(""), testing::StartsWith("G1a: "));
  Add(3, {W(kX, 0)});
  Add(4, {W(kX, 0)});
  EXPECT_THAT(history_.FindAnomaly().value_or(""), testing::StartsWith("lost update: "));
}

TEST_F(HistoryTest, AnAbortedReadIsReported) {
  Initially(kX), Initially(kY);
  Add(2, {R(kX, 1), W(kY, 0)});  // T1 rolled back
  Finally(kX, 0), Finally(kY, 2, 0);
  Expect("G1a: T0.2 saw the version of x by T0.1, which did not commit");
}

TEST_F(HistoryTest, AWriteOverAnAbortedOneIsReportedWhereWriteSkewIsAllowed) {
  AllowWriteSkew();
  Initially(kX);
  Add(2, {W(kX, 1)});  // T1 rolled back
  Finally(kX, 2, 1);
  Expect("G1a: T0.2 saw the version of x by T0.1, which did not commit");
}

TEST_F(HistoryTest, AnIntermediateReadIsReported) {
  Add(1, {I(kX), D(kX, 1)});
  Add(2, {R(kX, 1)});
  Expect("G1b: T0.2 saw the version of x by T0.1, which deleted it again");
}

TEST_F(HistoryTest, WhatATransactionInsertsAndDeletesNobodyNeedsToSee) {
  Add(1, {I(kX), D(kX, 1)});
  Add(2, {M(kX)});
  ExpectNothing();
}

TEST_F(HistoryTest, WriteSkewIsNoAnomalyWhereItIsAllowed) {
  AllowWriteSkew();
  Initially(kX), Initially(kY);
  Add(1, {R(kX, 0), W(kY, 0)});
  Add(2, {R(kY, 0), W(kX, 0)});
  Finally(kX, 2, 0), Finally(kY, 1, 0);
  ExpectNothing();
}

TEST_F(HistoryTest, ALostUpdateIsOneWhereWriteSkewIsAllowed) {
  AllowWriteSkew();
  Initially(kX);
  Add(1, {W(kX, 0)});
  Add(2, {W(kX, 0)});
  Finally(kX, 2, 0);
  Expect("lost update: T0.1 and T0.2 overwrote one version of x");
}

TEST_F(HistoryTest, ReadSkewIsOneWhereWriteSkewIsAllowed) {
  AllowWriteSkew();
  Initially(kX), Initially(kY);
  Add(1, {W(kX, 0), W(kY, 0)});
  Add(2, {R(kX, 0), R(kY, 1)});
  Finally(kX, 1, 0), Finally(kY, 1, 0);
  Expect("G-single: T0.2 -rw x-> T0.1 -wr y-> T0.2");
}

TEST_F(HistoryTest, TwoReadersThatSeeTwoWritersInAnOrderEachAreOneWhereWriteSkewIsAllowed) {
  AllowWriteSkew();
  Initially(kX), Initially(kY);
  Add(1, {W(kX, 0)});
  Add(2, {W(kY, 0)});
  Add(3, {R(kX, 1), R(kY, 0)});
  Add(4, {R(kX, 0), R(kY, 2)});
  Finally(kX, 1, 0), Finally(kY, 2, 0);
  Expect("G2: T0.3 -rw y-> T0.2 -wr y-> T0.4 -rw x-> T0.1 -wr x-> T0.3");
}

// A withdrawal that looks at both x and y, a deposit into y, and a report that sees the deposit alone. Without the
// report all is well; with it the withdrawal, which did not see the deposit, comes too late.
TEST_F(HistoryTest, AReadOnlyTransactionMayCloseACycle) {
  Initially(kX), Initially(kY);
  Add(1, {W(kY, 0)});
  Add(2, {R(kY, 0), W(kX, 0)});
  Finally(kX, 2, 0), Finally(kY, 1, 0);
  ExpectNothing();
  Add(3, {R(kX, 0), R(kY, 1)});
  Expect("G2: T0.1 -wr y-> T0.3 -rw x-> T0.2 -rw y-> T0.1");
  AllowWriteSkew();
  ExpectNothing();
}

TEST_F(HistoryTest, TwoAntiDependenciesInARowMakeACycleOfThree) {
  Initially(kX), Initially(kY), Initially(kZ);
  Add(1, {R(kX, 0), W(kZ, 3)});
  Add(2, {W(kX, 0), R(kY, 0)});
  Add(3, {W(kY, 0), W(kZ, 0)});
  Finally(kX, 2, 0), Finally(kY, 3, 0), Finally(kZ, 1, 3);
  Expect("G2: T0.1 -rw x-> T0.2 -rw y-> T0.3 -ww z-> T0.1");
  AllowWriteSkew();
  ExpectNothing();
}

TEST_F(HistoryTest, WriteSkewIsACycleOfTwoAntiDependencies) {
  Initially(kX), Initially(kY);
  Add(1, {R(kX, 0), W(kY, 0)});
  Add(2, {R(kY, 0), W(kX, 0)});
  Finally(kX, 2, 0), Finally(kY, 1, 0);
  Expect("G2: T0.1 -rw x-> T0.2 -rw y-> T0.1");
}

TEST_F(HistoryTest, AFracturedReadIsACycleWithOneAntiDependency) {
  Initially(kX), Initially(kY);
  Add(1, {W(kX, 0), W(kY, 0)});
  Add(2, {R(kX, 1), R(kY, 0)});
  Finally(kX, 1, 0), Finally(kY, 1, 0);
  Expect("G-single: T0.1 -wr x-> T0.2 -rw y-> T0.1");
}

TEST_F(HistoryTest, InterleavedWritesAreACycle) {
  Initially(kX), Initially(kY);
  Add(1, {W(kX, 0), W(kY, 2)});
  Add(2, {W(kX, 1), W(kY, 0)});
  Finally(kX, 2, 1), Finally(kY, 1, 2);
  Expect("G0: T0.1 -ww x-> T0.2 -ww y-> T0.1");
}

TEST_F(HistoryTest, CircularInformationFlowIsACycle) {
  Initially(kX), Initially(kY);
  Add(1, {W(kX, 0), R(kY, 2)});
  Add(2, {W(kY, 0), R(kX, 1)});
  Finally(kX, 1, 0), Finally(kY, 2, 0);
  Expect("G1c: T0.1 -wr x-> T0.2 -wr y-> T0.1");
}

// T1 comes before T2 by x, y and z, and after it by kLast.
TEST_F(HistoryTest, OfSeveralEdgesTheStrongestNamesTheCycle) {
  Initially(kX), Initially(kY), Initially(kZ), Initially(kLast);
  Add(1, {R(kX, 0), W(kY, 0), W(kZ, 0), W(kLast, 2)});
  Add(2, {W(kX, 0), R(kY, 1), W(kZ, 1), W(kLast, 0)});
  Finally(kX, 2, 0), Finally(kY, 1, 0), Finally(kZ, 2, 1), Finally(kLast, 1, 2);
  Expect("G0: T0.1 -ww z-> T0.2 -ww last-> T0.1");
}

// T3 saw nothing of what T1 and T2 did, T2 and T1 nothing of each other, except that T1 read T2's x: T3, T2, T1.
TEST_F(HistoryTest, AnOrderAgainstTheNumbersIsSerializable) {
  Initially(kX), Initially(kY), Initially(kZ);
  Add(1, {R(kX, 2), W(kY, 0)});
  Add(2, {W(kX, 0), R(kY, 0), W(kZ, 0)});
  Add(3, {R(kX, 0), R(kY, 0), R(kZ, 0)});
  Finally(kX, 2, 0), Finally(kY, 1, 0), Finally(kZ, 2, 0);
  ExpectNothing();
}

TEST_F(HistoryTest, TheShortestCycleIsNamed) {
  for (uint64_t object = 10; object < 13; ++object) Initially(object);
  Initially(kX), Initially(kY);
  // A cycle of three over 10, 11, 12 and one of two over x, y.
  Add(1, {R(10, 0), W(11, 0)});
  Add(2, {R(11, 0), W(12, 0)});
  Add(3, {R(12, 0), W(10, 0)});
  Add(4, {R(kX, 0), W(kY, 0)});
  Add(5, {R(kY, 0), W(kX, 0)});
  Finally(kX, 5, 0), Finally(kY, 4, 0), Finally(10, 3, 0), Finally(11, 1, 0), Finally(12, 2, 0);
  Expect("G2: T0.4 -rw x-> T0.5 -rw y-> T0.4");
}

// T1 and T2 lie on a cycle of three by way of T3, and on one of two.
TEST_F(HistoryTest, OfTwoCyclesThroughATransactionTheShorterIsNamed) {
  Initially(kX), Initially(kY), Initially(kZ), Initially(kLast);
  Add(1, {R(kX, 0), W(kZ, 0), W(kLast, 0)});
  Add(2, {W(kX, 0), W(kY, 0), R(kLast, 0)});
  Add(3, {R(kY, 2), R(kZ, 0)});
  Finally(kX, 2, 0), Finally(kY, 2, 0), Finally(kZ, 1, 0), Finally(kLast, 1, 0);
  Expect("G2: T0.1 -rw x-> T0.2 -rw last-> T0.1");
}

TEST_F(HistoryTest, AVersionByWhoDidNotWriteItIsReported) {
  Initially(kX);
  Add(1, {R(kX, 0)});
  Add(2, {R(kX, 1)});
  Finally(kX, 0);
  Expect("T0.2 saw the version of x by T0.1, which did not write it");
}

TEST_F(HistoryTest, TheLoadsVersionOfWhatItDidNotLoadIsReported) {
  Add(1, {R(kX, 0)});
  Expect("T0.1 saw the version of x by the load, which did not write it");
}

TEST_F(HistoryTest, ALostLastWriteIsReported) {
  Initially(kX);
  Add(1, {W(kX, 0)});
  Finally(kX, 0);
  Expect("x is the version by the load in the end, but should be the version by T0.1");
}

TEST_F(HistoryTest, AWrongPredecessorInTheRowIsReported) {
  Initially(kX);
  Add(1, {W(kX, 0)});
  Add(2, {W(kX, 1)});
  Finally(kX, 2, 0);
  Expect("x names as its predecessor the version by the load, but should name the version by T0.1");
}

TEST_F(HistoryTest, ATransactionThatAppearsTwiceIsReported) {
  Add(1, {});
  Add(1, {});
  Expect("transaction T0.1 appears twice");
}

TEST_F(HistoryTest, LivesOfAnObjectMayFollowEachOther) {
  Add(1, {I(kX)});
  Add(2, {D(kX, 1)});
  Add(3, {I(kX)});
  Add(4, {M(kX)});
  Finally(kX, 3);
  ExpectNothing();
}

TEST_F(HistoryTest, ADeletedRowThatComesBackIsReported) {
  Initially(kX);
  Add(1, {D(kX, 0)});
  Finally(kX, 0);
  Expect("x is the version by the load in the end, but should be absent");
}

TEST_F(HistoryTest, AnInsertThatVanishesIsReported) {
  Add(1, {I(kX)});
  Expect("x is absent in the end, but should be the version by T0.1");
}

TEST_F(HistoryTest, TwoInsertsWithoutADeleteAreReported) {
  Add(1, {I(kX)});
  Add(2, {I(kX)});
  Finally(kX, 2);
  Expect("x has two last versions, by T0.1 and T0.2");
}

TEST_F(HistoryTest, AMissOfWhatWasAlwaysThereIsReported) {
  Initially(kX);
  Add(1, {M(kX)});
  Finally(kX, 0);
  Expect("T0.1 missed x, which was there from start to end");
}

TEST_F(HistoryTest, AnInsertOfWhatWasAlwaysThereIsReported) {
  Initially(kX);
  Add(1, {I(kX)});
  Add(2, {D(kX, 1)});
  Finally(kX, 0);
  Expect("T0.1 inserted x, which had been there from the start and never was deleted");
}

TEST_F(HistoryTest, ARowThatNobodyTouchedAndIsGoneIsReported) {
  Initially(kX), Initially(kY);
  Add(1, {W(kY, 0)});
  Finally(kY, 1, 0);
  Expect("x is absent in the end, but should be the version by the load");
}

TEST_F(HistoryTest, ARowThatNobodyInsertedIsReported) {
  Finally(kX, 1);
  Expect("x is the version by T0.1 in the end, but should be absent");
}

// T1 moves a row from y to x. A scan sees it in neither place, or in both.
TEST_F(HistoryTest, AScanThatMissesAMovedRowIsACycle) {
  Initially(kY);
  Add(1, {D(kY, 0), I(kX)});
  Add(2, {M(kX), M(kY)});
  Finally(kX, 1);
  Expect("G-single: T0.1 -wr y-> T0.2 -rw x-> T0.1");
}

TEST_F(HistoryTest, AScanThatSeesAMovedRowTwiceIsACycle) {
  Initially(kY);
  Add(1, {D(kY, 0), I(kX)});
  Add(2, {R(kX, 1), R(kY, 0)});
  Finally(kX, 1);
  Expect("G-single: T0.1 -wr x-> T0.2 -rw y-> T0.1");
}

// By y, T3 stands between the delete of x's first life and the insert of its second.
TEST_F(HistoryTest, AMissBetweenTwoLivesIsNotACycle) {
  Initially(kX), Initially(kY);
  Add(1, {D(kX, 0), W(kY, 0)});
  Add(3, {M(kX), W(kY, 1)});
  Add(2, {I(kX), W(kY, 3)});
  Finally(kX, 2), Finally(kY, 2, 3);
  ExpectNothing();
}

TEST_F(HistoryTest, AMissBeforeAnInsertThatItSawIsACycle) {
  Initially(kY);
  Add(1, {I(kX), W(kY, 0)});
  Add(2, {M(kX), R(kY, 1)});
  Finally(kX, 1), Finally(kY, 1, 0);
  Expect("G-single: T0.1 -wr y-> T0.2 -rw x-> T0.1");
}

TEST_F(HistoryTest, WriteSkewOverMissesIsACycle) {
  Add(1, {M(kX), I(kY)});
  Add(2, {M(kY), I(kX)});
  Finally(kX, 2), Finally(kY, 1);
  Expect("G2: T0.1 -rw x-> T0.2 -rw y-> T0.1");
}

// T2 deletes what T1 inserted. T3 missed x but saw T1's write of y, and T2 saw T3's: no gap is left for the miss. Of
// the two that are ruled out, the gap behind the life is named.
TEST_F(HistoryTest, AMissInsideALifeIsACycle) {
  Initially(kY);
  Add(1, {I(kX), W(kY, 0)});
  Add(3, {M(kX), W(kY, 1)});
  Add(2, {D(kX, 1), R(kY, 3)});
  Finally(kY, 3, 1);
  Expect("G1c: T0.2 -wr x-> T0.3 -wr y-> T0.2");
}

TEST_F(HistoryTest, AMissBehindALifeIsNotACycle) {
  Initially(kY);
  Add(1, {I(kX), W(kY, 0)});
  Add(2, {D(kX, 1), R(kY, 1)});
  Add(3, {M(kX), W(kY, 1)});
  Finally(kY, 3, 1);
  ExpectNothing();
}

// Two lives of x; y orders the delete of either behind the insert of the other.
TEST_F(HistoryTest, OverlappingLivesAreACycle) {
  Initially(kY);
  Add(1, {I(kX), W(kY, 0)});
  Add(2, {I(kX), W(kY, 1)});
  Add(3, {D(kX, 1), W(kY, 2)});
  Add(4, {D(kX, 2), W(kY, 3)});
  Finally(kY, 4, 3);
  Expect("G0: T0.1 -ww x-> T0.3 -ww y-> T0.4 -ww x-> T0.1");
}

// T2 inserted x while it was still there, since T1, which deleted it, saw T2's write of y.
TEST_F(HistoryTest, AnInsertBeforeTheEndOfTheFirstLifeIsACycle) {
  Initially(kX), Initially(kY);
  Add(1, {D(kX, 0), R(kY, 2)});
  Add(2, {I(kX), W(kY, 0)});
  Finally(kX, 2), Finally(kY, 2, 0);
  Expect("G1c: T0.1 -ww x-> T0.2 -wr y-> T0.1");
}

// Of x's two lives T1's is the last; T3, which ends the other, saw T1's write of y.
TEST_F(HistoryTest, AnEndBehindTheBeginOfTheLastLifeIsACycle) {
  Initially(kY);
  Add(1, {I(kX), W(kY, 0)});
  Add(2, {I(kX)});
  Add(3, {D(kX, 2), R(kY, 1)});
  Finally(kX, 1), Finally(kY, 1, 0);
  Expect("G1c: T0.1 -wr y-> T0.3 -ww x-> T0.1");
}

// A serial run of random accesses. With `lose_update` one write takes the version before the newest for its
// predecessor.
History SerialHistory(uint64_t seed, bool lose_update) {
  History history([](uint64_t object) { return "object " + std::to_string(object); });
  Random random(seed);
  constexpr uint64_t kObjects = 20;
  TxnId version[kObjects], predecessor[kObjects];
  for (uint64_t object = 0; object < kObjects; ++object) {
    version[object] = object % 2 == 0 ? kInitialVersion : kNoVersion;
    predecessor[object] = kNoVersion;
    if (object % 2 == 0) history.AddInitial(object);
  }
  for (uint64_t id = 1; id <= 2000; ++id) {
    const uint64_t a = random.Below(kObjects), b = (a + 1 + random.Below(kObjects - 1)) % kObjects;
    std::vector<HistoryAccess> accesses;
    if (version[a] == kNoVersion) {
      accesses.push_back(random.Below(2) ? M(a) : I(a));
    } else {
      accesses.push_back({a, AccessKind(std::array{1, 3, 3, 5}[random.Below(4)]), version[a]});
    }
    const AccessKind kind = accesses[0].kind;
    if (lose_update && id > 1000 && kind == AccessKind::kWrite && predecessor[a] != kNoVersion) {
      accesses[0].version = predecessor[a];
      lose_update = false;
    }
    if (kind == AccessKind::kWrite || kind == AccessKind::kInsert) {
      predecessor[a] = accesses[0].version;
      version[a] = TxnId{id};
    }
    if (kind == AccessKind::kDelete) version[a] = kNoVersion;
    if (version[b] != kNoVersion) accesses.push_back({b, AccessKind::kRead, version[b]});
    history.AddTransaction(TxnId{id}, accesses);
  }
  for (uint64_t object = 0; object < kObjects; ++object) {
    if (version[object] != kNoVersion) history.AddFinal(object, version[object], predecessor[object]);
  }
  return history;
}

TEST(HistoryPropertyTest, SerialHistoriesAreSerializable) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(SerialHistory(seed, false).FindAnomaly(), std::nullopt) << "seed " << seed;
  }
}

TEST(HistoryPropertyTest, OneLostUpdateIsFound) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string anomaly = SerialHistory(seed, true).FindAnomaly().value_or("nothing");
    EXPECT_EQ(anomaly.substr(0, 11), "lost update") << "seed " << seed << ": " << anomaly;
  }
}

}  // namespace
}  // namespace dbx
