// Plover's run side: what orders transactions across partitions, and when every log has come far enough.
#include "logging/plover/plover_log.h"

#include <gtest/gtest.h>

#include "tests/concurrency_control/harness.h"

namespace dbx::testing {
namespace {

using Plover = PloverLog<DataPayload>;

// Two partitions: even keys belong to log 0, odd ones to log 1.
template <class Cc>
class PloverTest : public ::testing::Test {
 protected:
  static constexpr Key kEven = 2, kOdd = 3;

  PloverTest() {
    for (const Key key : {kEven, kOdd}) h_.LoadRow(key, 0);
  }
  CallResult WriteBoth(uint32_t worker) {
    return h_.Run(worker, [&](TestContext& ctx) {
      for (const Key key : {kEven, kOdd}) {
        const Outcome outcome = ctx.Update(h_.table(), key, [](TestTuple& t) { t.SetAt<uint64_t>(0, 7); });
        if (outcome != Outcome::kOk) return outcome;
      }
      return Outcome::kOk;
    });
  }
  uint64_t GsnOf(uint32_t worker) { return h_.point(worker)[0]; }
  // One round of the log's writer.
  void Round(uint32_t log) {
    LogStream& stream = h_.logs().stream(log);
    h_.log().BeforeFlush(stream);
    h_.Flush(log);
    h_.log().AfterFlush(stream);
  }
  // Up to the last byte: not even a record without words fits.
  void FillRing(uint32_t log) {
    const std::vector<uint64_t> words(512);
    LogStream& stream = h_.logs().stream(log);
    for (size_t count : {words.size(), size_t{16}, size_t{0}}) {
      while (stream.AppendOwn(format::RecordKind::kAnchor, std::span(words).first(count))) continue;
    }
  }
  uint64_t Records(uint32_t log) { return h_.logs().stream(log).txn_count(); }

  Harness<Cc, Plover> h_{2};
};
using Pairs = ::testing::Types<NoWaitRows<Plover>, NoWaitTable<Plover>, Silo<Plover>>;
TYPED_TEST_SUITE(PloverTest, Pairs);

TYPED_TEST(PloverTest, EachWrittenPartitionGetsOneRecordThatNamesAllOfThem) {
  ASSERT_TRUE(this->WriteBoth(0).wrote);
  EXPECT_EQ(this->Records(0), 1u);
  EXPECT_EQ(this->Records(1), 1u);
  for (uint32_t log = 0; log < 2; ++log) {
    format::RecordHeader header;
    std::memcpy(&header, this->h_.logs().stream(log).at(this->h_.state(0).places[log]), sizeof header);
    EXPECT_EQ(header.lv_mask, 0b11u);
  }
  ASSERT_TRUE(this->h_.Write(0, this->kOdd, 8).wrote);
  EXPECT_EQ(this->Records(0), 1u);
  EXPECT_EQ(this->Records(1), 2u);
}

TYPED_TEST(PloverTest, GsnsOfALogAscend) {
  for (uint64_t i = 0, last = 0; i < 5; ++i) {
    ASSERT_TRUE(this->h_.Write(i % 3, this->kEven, i).wrote);
    EXPECT_GT(this->GsnOf(i % 3), last);
    last = this->GsnOf(i % 3);
  }
}

// Trap 25: what was only read counts too.
TYPED_TEST(PloverTest, AGsnLiesAboveTheCountersOfWhatWasRead) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(this->h_.Write(0, this->kEven, 1).wrote);
  const CallResult reader = this->h_.Run(1, [&](TestContext& ctx) {
    const Outcome read = ctx.Read(this->h_.table(), this->kEven, [](const TestTuple&) {});
    if (read != Outcome::kOk) return read;
    return ctx.Update(this->h_.table(), this->kOdd, [](TestTuple& t) { t.SetAt<uint64_t>(0, 9); });
  });
  ASSERT_TRUE(reader.wrote);
  EXPECT_GT(this->GsnOf(1), this->GsnOf(0));
}

TYPED_TEST(PloverTest, AReaderWaitsForWhatItRead) {
  ASSERT_TRUE(this->h_.Write(0, this->kEven, 1).wrote);
  ASSERT_EQ(this->h_.Read(1, this->kEven).outcome, Outcome::kOk);
  EXPECT_EQ(this->GsnOf(1), this->GsnOf(0));
  ASSERT_EQ(this->h_.Read(1, this->kOdd).outcome, Outcome::kOk);
  EXPECT_TRUE(this->h_.IsDurable(1));
  // A miss is a read of its partition.
  ASSERT_EQ(this->h_.Read(1, this->kEven + 2).outcome, Outcome::kOk);
  EXPECT_FALSE(this->h_.IsDurable(1));
}

TYPED_TEST(PloverTest, DurableIsWhatEveryLogHasPromised) {
  ASSERT_TRUE(this->h_.Write(0, this->kEven, 1).wrote);
  this->Round(0);
  EXPECT_FALSE(this->h_.IsDurable(0)) << "log 1 may still give the same GSN away";
  EXPECT_TRUE(this->h_.log().WantsFlush(this->h_.logs().stream(1)));
  this->Round(1);
  EXPECT_TRUE(this->h_.IsDurable(0));
  EXPECT_FALSE(this->h_.log().WantsFlush(this->h_.logs().stream(1))) << "an idle log would promise for ever";
}

// The heartbeat raises the counter, so that nothing can slip below what was promised.
TYPED_TEST(PloverTest, NothingFollowsAPromiseThatItCovers) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(this->h_.Write(0, this->kEven, 1).wrote);
  this->Round(1);
  ASSERT_TRUE(this->h_.Write(1, this->kOdd, 1).wrote);
  EXPECT_GT(this->GsnOf(1), this->GsnOf(0));
}

TYPED_TEST(PloverTest, APromiseCountsOnlyOnceItIsDurable) {
  ASSERT_TRUE(this->h_.Write(0, this->kEven, 1).wrote);
  this->Round(0);
  LogStream& stream = this->h_.logs().stream(1);
  this->h_.log().BeforeFlush(stream);
  this->h_.log().AfterFlush(stream);
  EXPECT_FALSE(this->h_.IsDurable(0));
  this->h_.Flush(1);
  this->h_.log().AfterFlush(stream);
  EXPECT_TRUE(this->h_.IsDurable(0));
}

// A log that its device is too slow for never has space for a mark: its workers take all that is freed.
TYPED_TEST(PloverTest, WithoutSpaceForMarksRecordsPromise) {
  ASSERT_TRUE(this->h_.Write(0, this->kEven, 1).wrote);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(this->h_.Write(1, this->kOdd, 1).wrote);
  this->FillRing(0);
  this->Round(0);
  this->Round(1);
  EXPECT_TRUE(this->h_.IsDurable(0));
  EXPECT_FALSE(this->h_.IsDurable(1)) << "log 0 may still give a lower GSN away";
  // The next one there is above all, so that log 0 does not hold the others back for ever.
  ASSERT_TRUE(this->h_.Write(0, this->kEven, 2).wrote);
  EXPECT_GT(this->GsnOf(0), this->GsnOf(1));
  this->Round(0);
  EXPECT_TRUE(this->h_.IsDurable(1));
}

TYPED_TEST(PloverTest, AGsnStartsAboveTheOldOnes) {
  Plover log(this->h_.logs(), {.first_stamp = Stamp(1000)});
  Plover::TxnState state;
  log.InitWorker(state, WorkerId(0));
  uint64_t point = 0;
  state.accessed = 0b11;
  log.SetReadOnlyPoint(state, ScalarPoint<Stamp>(&point));
  EXPECT_EQ(point, 1000u);
  EXPECT_TRUE(log.IsDurable(ScalarPoint<Stamp>(&point)));
}

}  // namespace
}  // namespace dbx::testing
