// A survivor undoes losers of a dead master.
#include "multi_master/recovery/loser_undo.h"

#include <gtest/gtest.h>

#include "tests/multi_master/page/tree_fixture.h"

namespace dbx::mm {
namespace {

constexpr MasterId kSelf{1}, kDead{0};
const TxnName kLoser{kDead, ClusterEpoch(1), 9};
constexpr VsTime kEndOfDead{40};  // of the dead master's log

// Notes what happens in which order.
class NotingLog final : public MasterLog {
 public:
  Lsn AppendPages(std::span<PageChange>) override { return Lsn(); }
  VsTime AppendEnd(const TxnName& txn, EndKind kind, TxnId) override {
    ended = txn;
    if (applied_of_dead.load() < kEndOfDead.value()) events += "too early an ";
    events += kind == EndKind::kAborted ? "end " : "wrong end ";
    return VsTime(70);
  }
  void OnGrant(const PageLsn&, const AfterList&) override {}
  bool MayApply(const LfbStamp&) const override { return false; }
  void OnApplied(const LfbStamp&) override {}
  VsVector applied() const override {
    VsVector applied;
    applied.Set(kDead, VsTime(applied_of_dead.load()));
    return applied;
  }
  ReadView View() const override { return {}; }
  VsTime last_record() const override { return {}; }
  VsTime durable_until() const override { return {}; }
  void AwaitDurable(VsTime time) override { events += "durable " + std::to_string(time.value()) + " "; }

  TxnName ended;
  std::string events;
  Atomic<uint64_t> applied_of_dead{kEndOfDead.value()};
};

class LoserUndoTest : public testing::Test {
 protected:
  LoserUndoTest() {
    trees_.resize(kTestTree.value());
    trees_.back() = std::make_unique<PagedTree>(under_test_.source(), kTestTree, kTestRoot, nullptr,
                                                PagedTree::Options{.page_bytes_max = 512});
    for (Key key = 1; key <= 8; ++key) under_test_.Put(key, 1, "committed");
  }
  void PutAsLoser(Key key, const std::string& image) {
    for (;;) {
      PinnedLeaf leaf = under_test_.tree().PinLeaf(key, LockMode::kExclusive);
      if (under_test_.tree().Put(leaf, key, kLoser, AsBytes(image)) == PagedTree::PutStatus::kDone) return;
      leaf.LetGo();
      under_test_.tree().MakeRoom(key, kLoser, AsBytes(image));
    }
  }
  void Offer(std::vector<UndoLoser::Row> rows, bool is_last = true) {
    UndoLoser undo{kLoser, is_last, std::move(rows), {}};
    undo.after.Set(kDead, kEndOfDead);
    undo_.Offer(std::move(undo));
  }
  void AwaitUndone() {
    while (undo_.rows_undone() == 0) host::Yield();
    host::SleepFor(std::chrono::milliseconds(20));
  }
  void Undo(std::vector<UndoLoser::Row> rows, bool is_last = true) {
    Offer(std::move(rows), is_last);
    Thread thread([&] { undo_.Run(); });
    while (is_last ? !is_told_.load() : undo_.rows_undone() == 0) host::Yield();
    undo_.Stop();
  }

  TreeUnderTest under_test_;
  std::vector<std::unique_ptr<PagedTree>> trees_;
  NotingLog log_;
  EndedTxns told_;
  Atomic<bool> is_told_{false};
  LoserUndo undo_{kSelf, trees_, under_test_.source(), log_, [this](const EndedTxns& news) {
                    told_ = news;
                    log_.events += "told";
                    is_told_ = true;
                  }};
};

TEST_F(LoserUndoTest, ItsRowsAreAsTheyWereCommitted) {
  PutAsLoser(3, "changed");
  PutAsLoser(3, "and again");
  PutAsLoser(100, "inserted");
  Undo({{kTestRoot, 100}, {kTestRoot, 3}});
  EXPECT_EQ(under_test_.Get(3), "committed");
  EXPECT_EQ(under_test_.Get(100), std::nullopt);
  EXPECT_EQ(undo_.rows_undone(), 2u);
  under_test_.CheckAll();
}

TEST_F(LoserUndoTest, ItsEndNamesItAndIsToldWhenItIsDurable) {
  PutAsLoser(3, "changed");
  Undo({{kTestRoot, 3}});
  EXPECT_EQ(log_.ended, kLoser);
  EXPECT_EQ(log_.events, "end durable 70 told");
  EXPECT_EQ(told_.master, kDead);
  EXPECT_EQ(told_.low, 0u);
  ASSERT_EQ(told_.above.size(), 1u);
  EXPECT_EQ(told_.above[0].sequence, kLoser.sequence);
  EXPECT_EQ(told_.above[0].place, (EndPlace{kSelf, VsTime(70)}));
}

TEST_F(LoserUndoTest, ARowThatHasAnotherWriterByNowIsLeftAlone) {
  PutAsLoser(3, "changed");
  PutAsLoser(4, "changed");
  {
    PinnedLeaf leaf = under_test_.tree().PinLeaf(3, LockMode::kExclusive);
    under_test_.tree().Restore(leaf, 3, kLoser);
  }
  under_test_.Put(3, 2, "later");
  Undo({{kTestRoot, 4}, {kTestRoot, 3}, {kTestRoot, 55}});
  EXPECT_EQ(under_test_.Get(3), "later");
  EXPECT_EQ(under_test_.Get(4), "committed");
  EXPECT_EQ(undo_.rows_undone(), 1u);
}

TEST_F(LoserUndoTest, ARowThatASplitHasMovedIsFound) {
  PutAsLoser(8, "changed");
  for (Key key = 9; key < 60; ++key) under_test_.Put(key, 2, "committed");
  EXPECT_GT(under_test_.tree().splits(), 2u);
  Undo({{kTestRoot, 8}});
  EXPECT_EQ(under_test_.Get(8), "committed");
}

// The dead master's log may have rows that the loser had restored itself.
TEST_F(LoserUndoTest, ItsEndWaitsUntilTheDeadMastersLogIsApplied) {
  PutAsLoser(3, "changed");
  log_.applied_of_dead = kEndOfDead.value() - 1;
  Offer({{kTestRoot, 3}});
  Thread thread([&] { undo_.Run(); });
  AwaitUndone();
  log_.applied_of_dead = kEndOfDead.value();
  undo_.OnApplied();
  while (!is_told_.load()) host::Yield();
  undo_.Stop();
  thread.join();
  EXPECT_EQ(log_.events, "end durable 70 told");
}

TEST_F(LoserUndoTest, AMasterThatStopsWaitsForNoLog) {
  PutAsLoser(3, "changed");
  log_.applied_of_dead = 0;
  Offer({{kTestRoot, 3}});
  Thread thread([&] { undo_.Run(); });
  AwaitUndone();
  undo_.Stop();
  thread.join();
  EXPECT_EQ(log_.events, "");
}

TEST_F(LoserUndoTest, ItHasNotEndedBeforeItsLastRowsHaveCome) {
  PutAsLoser(3, "changed");
  Undo({{kTestRoot, 3}}, /*is_last=*/false);
  EXPECT_EQ(under_test_.Get(3), "committed");
  EXPECT_EQ(log_.events, "");
}

}  // namespace
}  // namespace dbx::mm
