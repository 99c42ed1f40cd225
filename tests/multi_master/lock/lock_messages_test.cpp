// The messages between masters and the lock process: what is encoded is decoded, and nothing else is.
#include "multi_master/lock/lock_messages.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace dbx::mm {
namespace {

TxnName Txn(uint64_t sequence) { return {MasterId(1), ClusterEpoch(3), sequence}; }

RowLocks Rows(Key key) {
  RowLocks rows;
  rows.Add(RowLock::Exclusive(Txn(1), key));
  rows.Add(RowLock::Gap(Txn(2), key, key + 3));
  return rows;
}
AfterList After() {
  AfterList after;
  after.Set(MasterId(2), VsTime(70));
  return after;
}

const PageRequest kRequest{PageId(7), LockMode::kExclusive, Generation(4)};
const PageReclaim kReclaim{PageId(7), Generation(4)};
const AbortVictim kVictim{Txn(4), WaitNumber(8)};
PageGrant Grant() { return {PageId(7), LockMode::kShared, Generation(4), {MasterId(3), VsTime(9)}, Rows(5), After()}; }
PageRelease Release() {
  return {PageId(7),
          LockMode::kExclusive,
          Generation(4),
          {MasterId(3), VsTime(9)},
          Rows(5),
          After(),
          {{PageId(8), Generation(6), Rows(9), After()}, {PageId(9), Generation(7), {}, {}}}};
}
WaitReport Report() { return {Txn(4), BeginTime(77), WaitNumber(8), {Txn(5), Txn(6)}}; }

// It is decoded as it was, and no part of its bytes is, nor more than them.
template <class Message>
void ExpectExact(const Message& message) {
  std::vector<std::byte> body = EncodeBody(message);
  const auto decoded = DecodeBody<Message>(body);
  ASSERT_TRUE(decoded);
  EXPECT_TRUE(*decoded == message);
  for (size_t length = 0; length < body.size(); ++length) {
    EXPECT_FALSE(DecodeBody<Message>(std::span(body).first(length))) << length;
  }
  body.push_back({});
  EXPECT_FALSE(DecodeBody<Message>(body));
}

TEST(LockMessagesTest, WhatIsEncodedIsDecodedAndNoPartOfIt) {
  ExpectExact(kRequest);
  ExpectExact(Grant());
  ExpectExact(kReclaim);
  ExpectExact(Release());
  ExpectExact(Report());
  ExpectExact(kVictim);
  ExpectExact(LeastTv{After()});
  ExpectExact(LeaseRequest{LeaseNumber(4), true});
  ExpectExact(LeaseGrant{LeaseNumber(4)});
  ExpectExact(UndoLoser{{MasterId(2), ClusterEpoch(3), 8}, false, {{PageId(7), 5}, {PageId(8), 0}}, After()});
}

TEST(LockMessagesTest, EndsAreDecodedAsTheyWere) {
  const EndedTxns news{MasterId(1), ClusterEpoch(3), 9, After(), {4, 6}, {{12, {MasterId(2), VsTime(5)}}}};
  const std::vector<std::byte> body = EncodeBody(news);
  const auto decoded = DecodeBody<EndedTxns>(body);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(EncodeBody(*decoded), body);
  EXPECT_EQ(decoded->open, news.open);
  EXPECT_EQ(decoded->above[0].place, news.above[0].place);
}

TEST(LockMessagesTest, NamesOfNothingAreRefused) {
  EXPECT_FALSE(DecodeBody<PageRequest>(EncodeBody(PageRequest{PageId(0), LockMode::kShared, Generation(1)})));
  EXPECT_FALSE(DecodeBody<PageRequest>(EncodeBody(PageRequest{PageId(1), LockMode::kShared, Generation(0)})));
  EXPECT_FALSE(DecodeBody<PageRequest>(EncodeBody(PageRequest{PageId(1), static_cast<LockMode>(3), Generation(1)})));
  EXPECT_FALSE(DecodeBody<EndedTxns>(EncodeBody(EndedTxns{MasterId(1), ClusterEpoch(3), 3, {}, {4}, {}})));
}

TEST(LockMessagesTest, AFlagIsOneOfTwo) {
  std::vector<std::byte> body = EncodeBody(LeaseRequest{LeaseNumber(4), true});
  body.back() = std::byte{2};
  EXPECT_FALSE(DecodeBody<LeaseRequest>(body));
  EXPECT_FALSE(DecodeBody<UndoLoser>(EncodeBody(UndoLoser{{}, true, {{PageId(0), 5}}, {}})));
}

TEST(LockMessagesTest, OnlyAnExclusiveReleaseHasPagesSplitOffAndNotItself) {
  PageRelease release = Release();
  release.mode = LockMode::kShared;
  EXPECT_FALSE(DecodeBody<PageRelease>(EncodeBody(release)));
  release = Release();
  release.splits[0].page = release.page;
  EXPECT_FALSE(DecodeBody<PageRelease>(EncodeBody(release)));
}

TEST(LockMessagesTest, ChangedBytesAreRefusedOrAnotherMessage) {
  Random random(3);
  const std::vector<std::byte> body = EncodeBody(Release());
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> changed = body;
    for (int i = 0; i < 3; ++i) changed[random.Below(body.size())] = static_cast<std::byte>(random.Below(256));
    const auto decoded = DecodeBody<PageRelease>(changed);
    if (!decoded) continue;
    EXPECT_EQ(DecodeBody<PageRelease>(EncodeBody(*decoded)), decoded);
  }
}

}  // namespace
}  // namespace dbx::mm
