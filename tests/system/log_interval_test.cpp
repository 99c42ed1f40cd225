// What the devices took within the measured interval, and that no run may claim more.
#include "system/log_interval.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

// Two logs without writers: the test flushes.
class LogIntervalTest : public testing::Test {
 protected:
  LogIntervalTest() {
    std::vector<LogSet::Target> targets;
    for (const char* name : {"log0", "log1"}) {
      auto device = files_.Create(name, {});
      device->StartWrite(0, header_);
      device->Complete(true);
      targets.push_back({std::move(device), 0});
    }
    logs_ = std::make_unique<LogSet>(std::move(targets), LogSetOptions{});
  }
  void Append(uint32_t log, uint32_t blocks) {
    LogStream& stream = logs_->stream(log);
    stream.Void(0, stream.Reserve(0, blocks * static_cast<uint32_t>(format::kBlockBytes)));
  }
  void Flush(uint32_t log) {
    logs_->stream(log).StartFlush(1 << 20);
    logs_->stream(log).CompleteFlush(true);
  }

  FaultyFileSystem files_;
  std::vector<std::byte> header_ = std::vector<std::byte>(format::kStreamOffset);
  std::unique_ptr<LogSet> logs_;
};

TEST_F(LogIntervalTest, CountsWhatWasReservedWithinItAndIsDurable) {
  LogInterval interval(logs_.get());
  interval.Begin();
  Append(0, 2), Append(1, 3);
  Flush(0), Flush(1);
  Append(0, 5);  // not durable when it ends
  interval.End();
  EXPECT_EQ(interval.bytes(), 5 * format::kBlockBytes);
}

TEST_F(LogIntervalTest, LeavesOutWhatWasPendingAtItsBegin) {
  Append(0, 1), Append(1, 4);
  LogInterval interval(logs_.get());
  interval.Begin();
  Append(0, 2);
  Flush(0);
  interval.End();
  // Log 1 is behind still: that takes nothing away from log 0.
  EXPECT_EQ(interval.bytes(), 2 * format::kBlockBytes);
}

TEST_F(LogIntervalTest, EndsWhereItWasEndedLast) {
  LogInterval interval(logs_.get());
  interval.Begin();
  Append(1, 1);
  interval.End();
  EXPECT_EQ(interval.bytes(), 0u);
  Flush(1);
  interval.End();
  EXPECT_EQ(interval.bytes(), format::kBlockBytes);
}

TEST(AcknowledgedBytes, AreAtMostWhatTheDevicesTook) {
  EXPECT_NO_THROW(CheckAcknowledgedBytes(0, 0));
  EXPECT_NO_THROW(CheckAcknowledgedBytes(4096, 4096));
  try {
    CheckAcknowledgedBytes(4097, 4096);
    FAIL() << "more was acknowledged than the devices took";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kInternal);
  }
}

}  // namespace
}  // namespace dbx
