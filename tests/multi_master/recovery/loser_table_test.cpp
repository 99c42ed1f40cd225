// Which master undoes which loser.
#include "multi_master/recovery/loser_table.h"

#include <gtest/gtest.h>

namespace dbx::mm {
namespace {

constexpr MasterId kDead{0}, kFirst{1}, kSecond{2};
constexpr VsTime kEnd{30}, kEndOfFirst{50};  // of the logs

VsVector Ends(VsTime of_dead, VsTime of_first) {
  VsVector ends;
  ends.Set(kDead, of_dead);
  ends.Set(kFirst, of_first);
  return ends;
}

TxnName T(uint64_t sequence) { return {kDead, ClusterEpoch(1), sequence}; }
EndedTxns EndOf(uint64_t sequence) { return {kDead, ClusterEpoch(1), 0, {}, {}, {{sequence, {kFirst, VsTime(5)}}}}; }

class LoserTableTest : public testing::Test {
 protected:
  LoserTableTest() { table_.Add({{T(4), {{PageId(1), 5}}}, {T(7), {{PageId(1), 6}}}}, kEnd); }
  LoserTable table_;
};

TEST_F(LoserTableTest, EachIsGivenOnceTheYoungestFirst) {
  const std::vector<UndoLoser> given = table_.GiveTo(kFirst);
  ASSERT_EQ(given.size(), 2u);
  EXPECT_EQ(given[0], (UndoLoser{T(7), true, {{PageId(1), 6}}, Ends(kEnd, {})}));
  EXPECT_EQ(given[1].loser, T(4));
  EXPECT_TRUE(table_.GiveTo(kSecond).empty());
}

TEST_F(LoserTableTest, WhenItsMasterDiesThoseThatAreLeftAreGivenAgain) {
  table_.GiveTo(kFirst);
  table_.OnDead(kSecond, VsTime(99));
  EXPECT_TRUE(table_.GiveTo(kSecond).empty());
  EXPECT_FALSE(table_.OnEnded(EndOf(7)));
  table_.OnDead(kFirst, kEndOfFirst);
  const std::vector<UndoLoser> given = table_.GiveTo(kSecond);
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].loser, T(4));
  EXPECT_EQ(given[0].after, Ends(kEnd, kEndOfFirst)) << "what the first one has undone is in its log";
}

TEST_F(LoserTableTest, TheLastEndIsTold) {
  EXPECT_FALSE(table_.OnEnded(EndOf(4)));
  EXPECT_FALSE(table_.OnEnded(EndOf(5)));
  EXPECT_TRUE(table_.OnEnded(EndOf(7)));
  EXPECT_FALSE(table_.OnEnded(EndOf(7)));
  EXPECT_EQ(table_.size(), 0u);
}

TEST_F(LoserTableTest, ALargeOneIsGivenInPieces) {
  LoserTable table;
  table.Add({{T(1), std::vector<UndoLoser::Row>(UndoLoser::kRowsMax + 3, {PageId(1), 5})}}, kEnd);
  const std::vector<UndoLoser> given = table.GiveTo(kFirst);
  ASSERT_EQ(given.size(), 2u);
  EXPECT_FALSE(given[0].is_last);
  EXPECT_TRUE(given[1].is_last);
  EXPECT_EQ(given[0].rows.size(), UndoLoser::kRowsMax);
  EXPECT_EQ(given[1].rows.size(), 3u);
  EXPECT_EQ(given[1].after, Ends(kEnd, {}));
}

}  // namespace
}  // namespace dbx::mm
