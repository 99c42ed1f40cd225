// Work, critical paths and modelled times of logs made by hand. Each record is 100 positions long and costs 1 unless
// a test says otherwise.
#include "system/runs/replay_parallelism.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"

namespace dbx {
namespace {

using enum ModelledOrder;
using testing::HasSubstr;

class Logs {
 public:
  explicit Logs(size_t count) : logs_(count) {}

  // The position behind the n-th record of a log, from 0 on.
  static uint64_t Behind(uint64_t n) { return (n + 1) * 100; }

  // A record that waits until each log is replayed up to its element.
  Logs& Add(size_t log, std::initializer_list<uint64_t> lsn_vector, double cost_ns = 1) {
    return Add(log, std::vector<uint64_t>(lsn_vector), cost_ns);
  }
  Logs& Add(size_t log, const std::vector<uint64_t>& lsn_vector, double cost_ns) {
    for (const uint64_t element : lsn_vector) logs_[log].lsn_vectors.emplace_back(element);
    return Record(log, {.cost_ns = cost_ns});
  }
  Logs& AddStamped(size_t log, uint64_t stamp, double cost_ns = 1) {
    Record(log, {.stamp = Stamp(stamp), .cost_ns = cost_ns});
    return Mark(log, stamp);
  }
  Logs& Mark(size_t log, uint64_t stamp) {
    logs_[log].stamps.push_back({Stamp(stamp), logs_[log].records.empty() ? 0 : AvailableAt(log)});
    return *this;
  }
  // What is added from here on is read at this speed; a record takes 100 / `bytes_per_ns`.
  Logs& ReadAt(double bytes_per_ns) {
    bytes_per_ns_ = bytes_per_ns;
    return *this;
  }
  Logs& BatchesOf(uint32_t records) {
    batch_records_ = records;
    return *this;
  }

  std::vector<ReplayedLog>& logs() { return logs_; }
  ReplayModel model() const { return ReplayModel(logs_); }

 private:
  Logs& Record(size_t log, ReplayedRecord record) {
    ReplayedLog& to = logs_[log];
    record.lsn = to.end;
    to.end += 100;
    record.batch = static_cast<uint32_t>(to.records.size()) / batch_records_;
    to.records.push_back(record);
    to.records.back().available_ns = AvailableAt(log);
    return *this;
  }
  double AvailableAt(size_t log) const {
    return bytes_per_ns_ == 0 ? 0 : static_cast<double>(logs_[log].end.value()) / bytes_per_ns_;
  }

  std::vector<ReplayedLog> logs_;
  double bytes_per_ns_ = 0;
  uint32_t batch_records_ = 32;
};

double ParallelismOf(const ReplayModel& model, ModelledOrder order) {
  return model.work_ns() / model.CriticalPathNs(order);
}

TEST(ReplayParallelism, AChainHasNone) {
  Logs logs(1);
  for (uint64_t i = 0; i < 5; ++i) logs.Add(0, {i * 100});
  const ReplayModel model = logs.model();
  EXPECT_DOUBLE_EQ(model.work_ns(), 5);
  for (const ModelledOrder order : {kLsnVectors, kLanes, kTotal}) {
    EXPECT_DOUBLE_EQ(ParallelismOf(model, order), 1) << NameOf(order);
    EXPECT_DOUBLE_EQ(model.TimeNs(order, 64), 5) << NameOf(order);
  }
}

TEST(ReplayParallelism, IndependentRecordsHaveAsMuchAsThereAre) {
  Logs logs(2);
  for (int i = 0; i < 4; ++i) logs.Add(0, {0, 0}).Add(1, {0, 0});
  const ReplayModel model = logs.model();
  EXPECT_DOUBLE_EQ(ParallelismOf(model, kLsnVectors), 8);
  EXPECT_DOUBLE_EQ(model.TimeNs(kLsnVectors, 1), 8);
  EXPECT_DOUBLE_EQ(model.TimeNs(kLsnVectors, 3), 3);
  EXPECT_DOUBLE_EQ(model.TimeNs(kLsnVectors, 8), 1);
  EXPECT_DOUBLE_EQ(model.TimeNs(kLsnVectors, kUnlimitedThreads), 1);
  EXPECT_DOUBLE_EQ(ParallelismOf(model, kTotal), 1) << "one order of all records leaves none";
}

TEST(ReplayParallelism, AForkAndAJoinAreOnTheCriticalPath) {
  Logs logs(1);
  logs.Add(0, {0}, 2);
  for (int i = 0; i < 4; ++i) logs.Add(0, {Logs::Behind(0)}, 3);
  logs.Add(0, {Logs::Behind(4)}, 5);
  const ReplayModel model = logs.model();
  EXPECT_DOUBLE_EQ(model.work_ns(), 19);
  EXPECT_DOUBLE_EQ(model.CriticalPathNs(kLsnVectors), 10);
  EXPECT_DOUBLE_EQ(model.TimeNs(kLsnVectors, 1), 19);
  EXPECT_DOUBLE_EQ(model.TimeNs(kLsnVectors, 2), 2 + 6 + 5);
  EXPECT_DOUBLE_EQ(model.TimeNs(kLsnVectors, 3), 2 + 6 + 5);
  EXPECT_DOUBLE_EQ(model.TimeNs(kLsnVectors, 4), 10);
}

TEST(ReplayParallelism, AWaitForAPositionIsOneForAllRecordsBelow) {
  // The third depends on the second alone; the first, which is longer, is below it in the log.
  const ReplayModel model = Logs(1).Add(0, {0}, 10).Add(0, {0}, 1).Add(0, {Logs::Behind(1)}, 1).model();
  EXPECT_DOUBLE_EQ(model.CriticalPathNs(kLsnVectors), 11);
}

TEST(ReplayParallelism, TwoLogsWaitForEachOtherCrosswise) {
  Logs logs(2);  // a0, b0 waits for a0, a1 for b0, b1 for a1
  logs.Add(0, {0, 0}).Add(1, {Logs::Behind(0), 0});
  logs.Add(0, {0, Logs::Behind(0)}).Add(1, {Logs::Behind(1), 0});
  logs.Add(0, {0, 0}).Add(1, {0, 0});  // two that are free
  const ReplayModel model = logs.model();
  EXPECT_DOUBLE_EQ(model.work_ns(), 6);
  EXPECT_DOUBLE_EQ(model.CriticalPathNs(kLsnVectors), 4);
  EXPECT_DOUBLE_EQ(model.TimeNs(kLsnVectors, 2), 4);
  EXPECT_DOUBLE_EQ(model.CriticalPathNs(kNewestWins), 1);
  EXPECT_DOUBLE_EQ(model.TimeNs(kTotal, 2), 6);
}

TEST(ReplayParallelism, RecordsThatWaitForEachOtherAreRefused) {
  const ReplayModel model = Logs(2).Add(0, {0, Logs::Behind(0)}).Add(1, {Logs::Behind(0), 0}).model();
  EXPECT_DOUBLE_EQ(model.CriticalPathNs(kNewestWins), 1);
  try {
    model.CriticalPathNs(kLsnVectors);
    FAIL() << "a cycle has no critical path";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("2 records wait for each other"));
  }
}

TEST(ReplayParallelism, WhatWaitsForTheLostTailOfALogIsDropped) {
  Logs logs(2);
  logs.Add(0, {0, 0}).Add(0, {0, Logs::Behind(1)}).Add(0, {Logs::Behind(1), Logs::Behind(1)}).Add(0, {0, 0}, 7);
  logs.Add(1, {0, 0});  // and no second record
  EXPECT_EQ(DropBehindEnds(logs.logs()), 2);
  const ReplayModel model = logs.model();
  EXPECT_EQ(model.record_count(), 3);
  EXPECT_DOUBLE_EQ(model.work_ns(), 1 + 7 + 1);
  EXPECT_DOUBLE_EQ(model.CriticalPathNs(kLsnVectors), 7) << "the records that stay keep their own LSN vectors";
}

TEST(ReplayParallelism, ALaneHoldsUpTheRecordsBehindItsHead) {
  Logs logs(2);
  logs.BatchesOf(2);
  logs.Add(1, {0, 0}, 10).Add(0, {0, Logs::Behind(0)}).Add(0, {0, 0}).Add(0, {0, 0}).Add(0, {0, 0});
  const ReplayModel model = logs.model();
  EXPECT_DOUBLE_EQ(model.CriticalPathNs(kLsnVectors), 11);
  EXPECT_DOUBLE_EQ(model.CriticalPathNs(kLanes), 12) << "the second record shares the batch of the one that waits";
  EXPECT_DOUBLE_EQ(model.TimeNs(kLanes, 2), 14) << "one lane a log: all of them are behind it";
  EXPECT_DOUBLE_EQ(model.TimeNs(kLanes, 4), 12) << "two lanes a log: the second batch is not";
}

TEST(ReplayParallelism, PartitionsAreAsParallelAsTheirLargest) {
  Logs logs(2);
  logs.AddStamped(0, 1).AddStamped(0, 2).AddStamped(0, 4).AddStamped(1, 2).Mark(1, 4);
  EXPECT_EQ(DropBehindStamps(logs.logs()), 0);
  const ReplayModel model = logs.model();
  EXPECT_DOUBLE_EQ(model.CriticalPathNs(kPartitions), 3);
  EXPECT_DOUBLE_EQ(model.TimeNs(kPartitions, 1), 4);
  EXPECT_DOUBLE_EQ(model.TimeNs(kPartitions, 64), 3);
  EXPECT_DOUBLE_EQ(model.CriticalPathNs(kTotal), 4);
  EXPECT_DOUBLE_EQ(model.CriticalPathNs(kNewestWins), 1);
}

TEST(ReplayParallelism, StampsThatSomeLogHasNotReachedAreDropped) {
  Logs logs(2);
  logs.AddStamped(0, 1).AddStamped(0, 2).AddStamped(0, 4).AddStamped(1, 2).Mark(1, 3);
  EXPECT_EQ(DropBehindStamps(logs.logs()), 1);
  EXPECT_EQ(logs.model().record_count(), 3);
  EXPECT_EQ(DropAbove(logs.logs(), Stamp(1)), 2);
}

TEST(ReplayParallelism, ADeviceLimitsWhatThreadsCannot) {
  Logs logs(2);
  logs.ReadAt(50);  // a record of each log every 2 ns
  for (int i = 0; i < 4; ++i) logs.Add(0, {0, 0}).Add(1, {0, 0});
  const ReplayModel model = logs.model();
  EXPECT_DOUBLE_EQ(model.CriticalPathNs(kLsnVectors), 1) << "of the order alone";
  EXPECT_DOUBLE_EQ(model.TimeNs(kLsnVectors, kUnlimitedThreads), 8 + 1);
  EXPECT_DOUBLE_EQ(model.TimeNs(kLsnVectors, 2), 8 + 1);
  EXPECT_DOUBLE_EQ(model.TimeNs(kLsnVectors, 1), 8 + 2);
  EXPECT_DOUBLE_EQ(model.TimeNs(kTotal, 64), 8 + 2);
}

TEST(ReplayParallelism, ARecordIsThereOnceEveryLogIsReadUpToItsStamp) {
  Logs logs(2);
  logs.ReadAt(100).AddStamped(0, 1).AddStamped(0, 2);
  logs.ReadAt(10).AddStamped(1, 2);
  AwaitStamps(logs.logs());
  const ReplayModel model = logs.model();
  EXPECT_DOUBLE_EQ(model.TimeNs(kPartitions, 2), 10 + 2) << "log 1, with a later stamp, is read at 10 ns";
}

// Graham's bounds, over logs of any shape: no schedule is shorter than its share of the work or the critical path, and
// a list schedule is no longer than both. With one thread it is the work.
TEST(ReplayParallelism, TimesStayWithinGrahamsBounds) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    Logs logs(3);
    for (int i = 0; i < 200; ++i) {
      std::vector<uint64_t> lsn_vector;
      for (const ReplayedLog& log : logs.logs())
        lsn_vector.push_back(log.end.value() - std::min<uint64_t>(log.end.value(), random() % 30 * 100));
      logs.Add(random() % 3, lsn_vector, static_cast<double>(1 + random() % 9));
    }
    const ReplayModel model = logs.model();
    const double path = model.CriticalPathNs(kLsnVectors);
    EXPECT_DOUBLE_EQ(model.TimeNs(kLsnVectors, 1), model.work_ns());
    EXPECT_DOUBLE_EQ(model.TimeNs(kLsnVectors, kUnlimitedThreads), path);
    for (const uint32_t threads : {2, 3, 8}) {
      const double time = model.TimeNs(kLsnVectors, threads);
      EXPECT_GE(time, std::max(path, model.work_ns() / threads));
      EXPECT_LE(time, path + model.work_ns() / threads);
    }
  }
}

TEST(ReplayParallelism, AnEmptyLogTakesNoTime) {
  const ReplayModel model = Logs(1).model();
  for (const ModelledOrder order : {kTotal, kLsnVectors, kLanes, kPartitions, kNewestWins}) {
    EXPECT_EQ(model.CriticalPathNs(order), 0);
    EXPECT_EQ(model.TimeNs(order, 1), 0);
  }
}

}  // namespace
}  // namespace dbx
