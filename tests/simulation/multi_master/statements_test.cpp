// Claims about the judge of statements without locks: it finds what they must not see, and nothing else.
#include <gtest/gtest.h>

#include "tests/simulation/oracle.h"

namespace dbx::sim {
namespace {

constexpr TableId kTable{0};
constexpr TxnId kFirst = TxnId::Make(WorkerId(0), 0), kSecond = TxnId::Make(WorkerId(1), 0);
constexpr TxnId kReader = TxnId::Make(WorkerId(2), 0);

// Rows 1 to 3, loaded as versions 101 to 103; a transaction writes row r as 100 * n + r.
class StatementsTest : public testing::Test {
 protected:
  StatementsTest() { oracle_.Loaded({{kTable, 1, 101}, {kTable, 2, 102}, {kTable, 3, 103}}); }

  void Commit(TxnId id, std::initializer_list<std::pair<Key, Version>> writes) {
    for (const auto& [key, version] : writes) oracle_.Write(id, kTable, key, version);
    oracle_.PreCommit(id);
    committed_.push_back(id.value);
  }
  void CommitAtOnce(TxnId id, std::initializer_list<std::pair<Key, Version>> writes) {
    oracle_.Begin(id);
    Commit(id, writes);
  }
  void Look(std::initializer_list<std::pair<Key, Version>> rows) {
    std::vector<RowVersion> seen;
    for (const auto& [key, version] : rows) seen.push_back({kTable, key, version});
    oracle_.Statement(kReader, seen);
  }
  // With a master for each worker, or one for all.
  std::string Wrong(bool is_remote = true, bool is_strict = false) {
    const auto master_of = [is_remote](TxnId id) { return is_remote ? id.worker().value() : 0; };
    std::vector<uint64_t> ids = committed_;
    ids.push_back(kReader.value);
    return oracle_.WrongStatementOf(ids, committed_, {master_of, is_strict}).value_or("");
  }

  Oracle oracle_;
  std::vector<uint64_t> committed_;
};

TEST_F(StatementsTest, ATransactionIsSeenWholeOrNotAtAll) {
  CommitAtOnce(kFirst, {{1, 201}, {2, 202}});
  oracle_.Begin(kReader);
  Look({{1, 201}, {2, 202}});
  Look({{1, 101}, {2, 102}});
  EXPECT_EQ(Wrong(), "");
  Look({{1, 201}, {2, 102}});
  EXPECT_NE(Wrong().find("but not its row 2"), std::string::npos) << Wrong();
}

TEST_F(StatementsTest, ADirtyReadIsFoundThoughItsWriterCommitsLater) {
  oracle_.Begin(kReader);
  oracle_.Begin(kFirst);
  Look({{1, 201}});
  Commit(kFirst, {{1, 201}});
  EXPECT_NE(Wrong().find("not committed then"), std::string::npos) << Wrong();
}

TEST_F(StatementsTest, WhatATransactionOfAnotherMasterReadIsSeenWithIt) {
  CommitAtOnce(kFirst, {{1, 201}});
  oracle_.Begin(kSecond);
  oracle_.Read(kSecond, kTable, 1, 201);
  Commit(kSecond, {{2, 302}});
  oracle_.Begin(kReader);
  Look({{1, 101}, {2, 302}});
  EXPECT_NE(Wrong(), "");
  EXPECT_EQ(Wrong(/*is_remote=*/false), "");
}

TEST_F(StatementsTest, WritersBelowAVersionAreSeenWholeWhereverItsWriterIs) {
  CommitAtOnce(kFirst, {{1, 201}, {2, 202}});
  CommitAtOnce(kSecond, {{1, 301}});
  oracle_.Begin(kReader);
  Look({{1, 301}, {2, 102}});
  EXPECT_NE(Wrong(/*is_remote=*/false), "");
}

TEST_F(StatementsTest, AnAbsenceMayBeAnyThatWasCommitted) {
  oracle_.Begin(kFirst);
  oracle_.Delete(kFirst, kTable, 1);
  Commit(kFirst, {{2, 202}});
  oracle_.Begin(kReader);
  Look({{1, kAbsent}, {2, 202}});
  EXPECT_EQ(Wrong(), "");
  Look({{1, 101}, {2, 202}});
  EXPECT_NE(Wrong(), "");
}

TEST_F(StatementsTest, StrictOnesSeeWhatWasAcknowledgedBeforeTheirTransactionBegan) {
  CommitAtOnce(kFirst, {{1, 201}});
  oracle_.Acknowledge(kFirst);
  oracle_.Begin(kReader);
  CommitAtOnce(kSecond, {{2, 302}});
  oracle_.Acknowledge(kSecond);
  Look({{1, 201}, {2, 102}});
  EXPECT_EQ(Wrong(true, /*is_strict=*/true), "");
  Look({{1, 101}});
  EXPECT_EQ(Wrong(), "");
  EXPECT_NE(Wrong(true, /*is_strict=*/true), "");
}

TEST_F(StatementsTest, ItsOwnWritesAreItsOwn) {
  CommitAtOnce(kFirst, {{1, 201}, {2, 202}});
  oracle_.Begin(kReader);
  oracle_.Write(kReader, kTable, 1, 401);
  Look({{1, 401}, {2, 102}});
  EXPECT_EQ(Wrong(), "");
}

}  // namespace
}  // namespace dbx::sim
