// The decisions of the backward pass, all of them, and the table that keeps its transactions.
#include "logging/differential/transaction_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace dbx {
namespace {

constexpr TxnEvent kEvents[] = {TxnEvent::kCommit, TxnEvent::kAbort, TxnEvent::kListed, TxnEvent::kChange,
                                TxnEvent::kFirstChange};
constexpr TxnStanding kStandings[] = {{false, false}, {true, false}, {false, true}, {true, true}};

std::string NameOf(TxnStanding standing) {
  return std::string(standing.committed ? "C" : "-") + (standing.active ? "A" : "-");
}

// By event; of the standings "--", "C-", "-A" and "CA", in CTT or in ATT.
constexpr const char* kAboveBegin[] = {"C- C- CA CA", "-A CA -A CA", "-A CA -A CA", "-- C- -A CA", "-- -- -- --"};
constexpr const char* kBelowBegin[] = {"C- C- CA CA", "-- C- -- C-", "-A CA -A CA", "-- C- -A CA", "-- -- -- --"};

TEST(TransactionTable, EveryEventLeadsWhereTheTableSays) {
  for (size_t event = 0; event < std::size(kEvents); ++event) {
    for (const bool above_begin : {true, false}) {
      std::string after;
      for (const TxnStanding now : kStandings) after += NameOf(After(kEvents[event], now, above_begin)) + " ";
      after.pop_back();
      EXPECT_EQ(after, (above_begin ? kAboveBegin : kBelowBegin)[event]) << "event " << event << " " << above_begin;
    }
  }
}

// Of the standings in their order; above BEGIN and in the backup, not in it, below BEGIN and in it, not in it.
std::string AppliedBy(DiffMethod method) {
  std::string bits;
  for (const bool above_begin : {true, false}) {
    for (const bool in_backup : {true, false}) {
      for (const TxnStanding now : kStandings) bits += IsApplied(method, now, above_begin, in_backup) ? "1" : "0";
      bits += " ";
    }
  }
  bits.pop_back();
  return bits;
}

TEST(TransactionTable, EveryChangeIsAppliedWhereTheTableSays) {
  EXPECT_EQ(AppliedBy(DiffMethod::kDl1p), "1010 0101 0010 0101");
  EXPECT_EQ(AppliedBy(DiffMethod::kDl2p), "1010 1010 0010 0010");
  EXPECT_EQ(AppliedBy(DiffMethod::kPl2p), "1010 0000 0010 0000");
}

TEST(TransactionTable, WhereAbortsAreCompensatedTheyEndTheirTransactions) {
  for (const DiffMethod method : {DiffMethod::kDl1p, DiffMethod::kDl2p, DiffMethod::kPl2p}) {
    TransactionTable table(method);
    table.Abort(TxnId{1}, true);
    EXPECT_EQ(NameOf(table.Find(TxnId{1})), method == DiffMethod::kDl1p ? "-A" : "C-");
    table.List(TxnId{2});
    table.PassBegin();
    table.Abort(TxnId{2}, true);
    EXPECT_FALSE(table.Change(TxnId{2}, true, true));
  }
}

TEST(TransactionTable, ACommitThatDoesNotCountEndsNothing) {
  TransactionTable table(DiffMethod::kPl2p);
  table.List(TxnId{1});
  table.Commit(TxnId{1}, false);
  EXPECT_EQ(NameOf(table.Find(TxnId{1})), "-A");
  EXPECT_TRUE(table.Change(TxnId{1}, true, /*in_backup=*/true));
}

// END lists a transaction whose later attempt begins above BEGIN; its first change there takes it out of the tables.
TEST(TransactionTable, AnAbortThatDoesNotCountLeavesItsAttemptToBeUndone) {
  TransactionTable table(DiffMethod::kPl2p);
  table.List(TxnId{1});
  EXPECT_FALSE(table.Change(TxnId{1}, /*first=*/true, /*in_backup=*/false));
  table.Abort(TxnId{1}, false);
  table.PassBegin();
  EXPECT_TRUE(table.Change(TxnId{1}, /*first=*/true, /*in_backup=*/true));
  EXPECT_EQ(table.size(), 0u);
}

TEST(TransactionTable, AFirstChangeIsJudgedBeforeItsTransactionIsForgotten) {
  TransactionTable table(DiffMethod::kDl1p);
  table.Commit(TxnId{7}, true);
  EXPECT_TRUE(table.Change(TxnId{7}, false, false));
  EXPECT_TRUE(table.Change(TxnId{7}, true, false));
  EXPECT_FALSE(table.Change(TxnId{7}, true, false));
  EXPECT_EQ(table.size(), 0u);
}

// One event, with the standing that an ordinary map has afterwards.
void Step(TransactionTable& table, std::map<uint64_t, TxnStanding>& oracle, uint64_t id, TxnEvent event, bool above) {
  const TxnStanding before = oracle.contains(id) ? oracle[id] : TxnStanding();
  ASSERT_EQ(table.Find(TxnId{id}), before);
  if (event == TxnEvent::kCommit) table.Commit(TxnId{id}, true);
  if (event == TxnEvent::kAbort) table.Abort(TxnId{id}, true);
  if (event == TxnEvent::kListed) table.List(TxnId{id});
  if (event == TxnEvent::kChange || event == TxnEvent::kFirstChange) {
    ASSERT_EQ(table.Change(TxnId{id}, event == TxnEvent::kFirstChange, true),
              IsApplied(DiffMethod::kDl1p, before, above, true));
  }
  oracle[id] = After(event, before, above);
  if (oracle[id].IsEmpty()) oracle.erase(id);
  ASSERT_EQ(table.size(), oracle.size());
}

TEST(TransactionTable, KeepsWhatAnOrdinaryMapKeeps) {
  for (const uint64_t seed : {1, 2, 3}) {
    std::mt19937_64 random(seed);
    TransactionTable table(DiffMethod::kDl1p);
    std::map<uint64_t, TxnStanding> oracle;
    for (int i = 0; i < 60'000; ++i) {
      // Workers' sequences, and neighbours; there are more and more of them.
      const uint64_t id = TxnId::Make(WorkerId(random() % 4), random() % (1 + i / 20)).value;
      // Fewer and fewer are forgotten.
      const TxnEvent event =
          i < 30'000 || random() % 4 != 0 ? kEvents[random() % std::size(kEvents)] : TxnEvent::kCommit;
      if (i == 40'000) table.PassBegin();
      Step(table, oracle, id, event, i < 40'000);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(oracle.size(), 1000u);
  }
}

}  // namespace
}  // namespace dbx
