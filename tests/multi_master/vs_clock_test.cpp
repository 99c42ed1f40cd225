// Vector-scalar clocks against exact causality: what multi_master/vs_clock.h claims.
#include "multi_master/vs_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/random.h"
#include "multi_master/wire.h"

namespace dbx::mm {
namespace {

MasterId M(uint32_t i) { return MasterId(static_cast<uint8_t>(i)); }

TEST(VsClockTest, AGrantRaisesTheClockAboveThePage) {
  VsClock clock(M(0));
  clock.OnGrant({M(1), VsTime(40)}, {});
  EXPECT_GT(clock.Tick().value(), 40u);
}

TEST(VsClockTest, AnLfbBuildsUponThePagesThatItsMasterWasGranted) {
  VsClock writer(M(0));
  AfterList after;
  after.Set(M(2), VsTime(7));
  writer.OnGrant({M(1), VsTime(40)}, after);
  const LfbStamp lfb = writer.StampLfb();
  EXPECT_TRUE(lfb.stamp.Covers(M(1), VsTime(40)));
  EXPECT_TRUE(lfb.stamp.Covers(M(2), VsTime(7)));

  VsClock reader(M(3));
  EXPECT_FALSE(reader.MayApply(lfb));
}

TEST(VsClockTest, APageAsItWasLoadedIsNoCause) {
  VsClock writer(M(0));
  writer.OnGrant({M(1), VsTime(0)}, {});
  EXPECT_EQ(writer.StampLfb().stamp.of(M(1)), VsTime(0));
}

TEST(VsClockTest, LfbsOfALogAreAppliedOneAfterTheOther) {
  VsClock writer(M(0)), reader(M(1));
  writer.Tick();
  const LfbStamp first = writer.StampLfb();
  writer.Tick();
  const LfbStamp second = writer.StampLfb();
  EXPECT_FALSE(reader.MayApply(second));
  reader.OnApplied(first);
  EXPECT_FALSE(reader.MayApply(first));
  EXPECT_TRUE(reader.MayApply(second));
}

// multi_master.md, section 7: compared with the receiver's clock, a cause by way of its own log is missed.
TEST(VsClockTest, ItsOwnLogCountsAsAnyOther) {
  VsClock writer(M(0)), reader(M(1));
  reader.Tick();
  const LfbStamp own = reader.StampLfb();
  writer.OnApplied(own);
  const LfbStamp lfb = writer.StampLfb();
  EXPECT_FALSE(reader.MayApply(lfb)) << "its own LFB is durable, but not yet applied";
  reader.OnApplied(own);
  EXPECT_TRUE(reader.MayApply(lfb));
}

TEST(VsClockTest, OnlyAppliedLfbsMoveWhatIsApplied) {
  VsClock clock(M(0));
  AfterList after;
  after.Set(M(2), VsTime(9));
  clock.OnGrant({M(1), VsTime(40)}, after);
  clock.Tick();
  EXPECT_TRUE(clock.applied().IsEmpty());
}

TEST(VsClockTest, AMasterThatComesBackIsAboveItsFormerSelf) {
  VsClock clock(M(0));
  VsVector applied;
  applied.Set(M(1), VsTime(5));
  clock.Rejoin(VsTime(70), applied, VsTime(66));
  const LfbStamp lfb = clock.StampLfb();
  EXPECT_GT(lfb.time().value(), 70u);
  EXPECT_EQ(lfb.predecessor, VsTime(66));
  EXPECT_TRUE(clock.applied().Covers(M(1), VsTime(5)));
}

// A cluster in which masters hand pages on and flush, against the exact set of what each LFB builds upon.
class Cluster {
 public:
  static constexpr uint32_t kMasters = 4;
  static constexpr uint32_t kPages = 3;

  explicit Cluster(uint64_t seed) : random_(seed) {
    for (uint32_t i = 0; i < kMasters; ++i) clocks_.emplace_back(M(i));
  }

  void Run(uint32_t steps) {
    for (uint32_t i = 0; i < steps; ++i) {
      const auto master = static_cast<uint32_t>(random_.Below(kMasters));
      if (random_.Below(3) == 0) {
        Change(master, static_cast<uint32_t>(random_.Below(kPages)));
      } else if (random_.Below(2) == 0) {
        Flush(master);
      } else {
        Apply(master, static_cast<uint32_t>(random_.Below(kMasters)));
      }
    }
  }
  void Finish() {
    for (uint32_t i = 0; i < kMasters; ++i) Flush(i);
    for (bool went_on = true; went_on;) {
      went_on = false;
      for (uint32_t i = 0; i < kMasters * kMasters; ++i) went_on |= Apply(i / kMasters, i % kMasters);
    }
    for (uint32_t i = 0; i < kMasters * kMasters; ++i) {
      EXPECT_EQ(next_[i / kMasters][i % kMasters], logs_[i % kMasters].size()) << "an LFB that can never be applied";
    }
  }

 private:
  struct Lfb {
    LfbStamp stamp;
    std::set<std::pair<uint32_t, size_t>> causes;  // LFBs: master, place in its log
  };
  struct Page {
    PageLsn lsn;
    uint32_t lfb_master = kMasters;
    std::set<std::pair<uint32_t, size_t>> causes;
  };

  // A release flushes, so that a page's version is durable before another master gets it.
  void Change(uint32_t master, uint32_t number) {
    Page& page = pages_[number];
    if (page.lfb_master != kMasters && page.lfb_master != master) Flush(page.lfb_master);
    clocks_[master].OnGrant(page.lsn, {});
    for (const auto& cause : page.causes) past_[master].insert(cause);
    const VsTime time = clocks_[master].Tick();
    EXPECT_TRUE(page.lsn.IsOlderThan({M(master), time})) << "times of a page ascend";
    page.lsn = {M(master), time};
    page.lfb_master = master;
    page.causes = past_[master];
    page.causes.insert({master, logs_[master].size()});
  }
  void Flush(uint32_t master) {
    Lfb lfb{clocks_[master].StampLfb(), past_[master]};
    past_[master].insert({master, logs_[master].size()});
    logs_[master].push_back(std::move(lfb));
  }
  bool Apply(uint32_t at, uint32_t log) {
    size_t& next = next_[at][log];
    if (next == logs_[log].size() || !clocks_[at].MayApply(logs_[log][next].stamp)) return false;
    for (const auto& [master, place] : logs_[log][next].causes) {
      EXPECT_LT(place, next_[at][master] + (master == log ? 1 : 0)) << "applied before its cause";
    }
    clocks_[at].OnApplied(logs_[log][next].stamp);
    past_[at].insert(logs_[log][next].causes.begin(), logs_[log][next].causes.end());
    past_[at].insert({log, next});
    ++next;
    EXPECT_EQ(clocks_[at].applied().of(M(log)), logs_[log][next - 1].stamp.time());
    return true;
  }

  Random random_;
  std::vector<VsClock> clocks_;
  std::array<Page, kPages> pages_;
  std::array<std::vector<Lfb>, kMasters> logs_;
  std::array<std::array<size_t, kMasters>, kMasters> next_{};
  std::array<std::set<std::pair<uint32_t, size_t>>, kMasters> past_;
};

TEST(VsClockTest, NoLfbIsAppliedBeforeItsCauseAndAllAreInTheEnd) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Cluster cluster(seed);
    cluster.Run(60);
    cluster.Finish();
    if (HasFailure()) return;
  }
}

TEST(VsVectorTest, WhatAllKnowIsDropped) {
  AfterList after;
  after.Set(M(1), VsTime(5));
  after.Set(M(2), VsTime(9));
  VsVector known;
  known.Set(M(1), VsTime(5));
  known.Set(M(2), VsTime(8));
  after.DropCoveredBy(known);
  EXPECT_EQ(after.of(M(1)), VsTime());
  EXPECT_EQ(after.of(M(2)), VsTime(9));
}

TEST(WireTest, WhatIsWrittenIsRead) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  VsVector vector;
  vector.Set(M(15), VsTime(1));
  vector.Set(M(3), VsTime(UINT64_MAX));
  const TxnName txn{M(2), ClusterEpoch(9), 77};
  writer.Put(vector);
  writer.Put(txn);
  writer.Put(PageLsn{M(4), VsTime(6)});
  writer.PutList(std::vector<std::byte>(5, std::byte{8}));
  WireReader reader(bytes);
  EXPECT_EQ(reader.GetVector(), vector);
  EXPECT_EQ(reader.GetTxn(), txn);
  EXPECT_EQ(reader.GetPageLsn(), (PageLsn{M(4), VsTime(6)}));
  EXPECT_EQ(reader.GetList().size(), 5u);
  EXPECT_TRUE(reader.AtEnd());
}

TEST(WireTest, BytesThatEndEarlyAreRefused) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.Put(TxnName{M(2), ClusterEpoch(9), 77});
  for (size_t length = 0; length < bytes.size(); ++length) {
    WireReader reader(std::span<const std::byte>(bytes).first(length));
    reader.GetTxn();
    EXPECT_FALSE(reader.ok()) << length;
  }
}

TEST(WireTest, AMasterThatCannotBeIsRefused) {
  std::vector<std::byte> bytes;
  WireWriter(bytes).Put(uint8_t{kMastersMax});
  WireReader reader(bytes);
  reader.GetMaster();
  EXPECT_FALSE(reader.ok());
}

TEST(WireTest, AListLongerThanItsBytesIsRefusedBeforeItIsMade) {
  std::vector<std::byte> bytes;
  WireWriter(bytes).Put(UINT32_MAX);
  WireReader reader(bytes);
  EXPECT_EQ(reader.GetCount(8), 0u);
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace dbx::mm
