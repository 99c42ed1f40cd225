// The host's counters: those that it refuses are missing with the reason, and no number is made up.
#include "system/perf_counters.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <stdexcept>
#include <thread>

namespace dbx {
namespace {

// A host that answers as the test says, for each event by its configuration.
struct FakeHost {
  std::map<uint64_t, int> refuses;               // the error of its opening
  std::map<uint64_t, int> refuses_in_kernel;     // only where the kernel is not left out
  std::map<uint64_t, PerfCalls::Reading> reads;  // absent: {1000, 5, 5}
  std::map<uint64_t, int> fails_to_read;
  int fails_to_enable = 0;
  int open = 0;
  bool all_inherit = true;
  KernelCounts kernel;
};

class FakeCalls final : public PerfCalls {
 public:
  explicit FakeCalls(FakeHost& host) : host_(host) {}
  int Open(perf_event_attr attributes) override {
    const uint64_t event = attributes.config;
    if (host_.refuses.contains(event)) return -host_.refuses[event];
    if (host_.refuses_in_kernel.contains(event) && !attributes.exclude_kernel) return -host_.refuses_in_kernel[event];
    host_.all_inherit = host_.all_inherit && attributes.inherit && attributes.disabled;
    ++host_.open;
    events_.push_back(event);
    return static_cast<int>(events_.size() - 1);
  }
  int Enable(int) override { return -host_.fails_to_enable; }
  int Disable(int) override { return 0; }
  int Read(int event, Reading& reading) override {
    const uint64_t config = events_.at(static_cast<size_t>(event));
    if (host_.fails_to_read.contains(config)) return -host_.fails_to_read[config];
    reading = host_.reads.contains(config) ? host_.reads[config] : Reading{1000, 5, 5};
    return 0;
  }
  void Close(int) override { --host_.open; }
  KernelCounts OfProcess() override { return host_.kernel; }

 private:
  FakeHost& host_;
  std::vector<uint64_t> events_;
};

PerfResult Count(FakeHost& host) {
  PerfCounters counters(std::make_unique<FakeCalls>(host));
  counters.Begin();
  host.kernel = {.task_clock_nanos = 70, .context_switches = 8, .page_faults = 9};
  return counters.End();
}

const PerfCount& Named(const PerfResult& result, const std::string& name) {
  for (const PerfCount& count : result.processor) {
    if (count.name == name) return count;
  }
  throw std::out_of_range(name);
}

constexpr uint64_t kCycles = PERF_COUNT_HW_CPU_CYCLES, kInstructions = PERF_COUNT_HW_INSTRUCTIONS,
                   kMisses = PERF_COUNT_HW_CACHE_MISSES;

TEST(PerfCounters, CountThoseThatThereAre) {
  FakeHost host;
  host.kernel = {.task_clock_nanos = 20, .context_switches = 3, .page_faults = 1};
  const PerfResult result = Count(host);
  ASSERT_EQ(result.processor.size(), 4u);
  for (const PerfCount& count : result.processor) {
    EXPECT_EQ(count.count, 1000u);
    EXPECT_EQ(count.missing, "");
    EXPECT_EQ(count.running_share, 1);
    EXPECT_FALSE(count.user_space_only);
  }
  EXPECT_EQ(result.kernel.task_clock_nanos, 50u);
  EXPECT_EQ(result.kernel.context_switches, 5u);
  EXPECT_EQ(result.kernel.page_faults, 8u);
  EXPECT_TRUE(host.all_inherit);
  EXPECT_EQ(host.open, 0);
}

TEST(PerfCounters, ARefusedOneIsMissingWithTheReasonAndTheOthersAreThere) {
  FakeHost host;
  host.refuses = {{kCycles, ENOENT}, {kInstructions, EACCES}, {kMisses, ENOSYS}};
  const PerfResult result = Count(host);
  for (const char* name : {"cycles", "instructions", "llc_misses"}) EXPECT_FALSE(Named(result, name).count) << name;
  EXPECT_EQ(Named(result, "cycles").missing, "the host has no such counter: No such file or directory");
  EXPECT_NE(Named(result, "instructions").missing.find("not permitted"), std::string::npos);
  EXPECT_EQ(Named(result, "llc_misses").missing, "Function not implemented");
  EXPECT_EQ(Named(result, "dtlb_load_misses").count, 1000u);
  EXPECT_EQ(result.kernel.page_faults, 9u);
  EXPECT_EQ(host.open, 0);
}

TEST(PerfCounters, WhereTheKernelIsNotToBeCountedTheRestIs) {
  FakeHost host;
  host.refuses_in_kernel = {{kCycles, EACCES}};
  const PerfResult result = Count(host);
  EXPECT_EQ(Named(result, "cycles").count, 1000u);
  EXPECT_TRUE(Named(result, "cycles").user_space_only);
  EXPECT_FALSE(Named(result, "instructions").user_space_only);
}

TEST(PerfCounters, ACounterThatRanForAPartOfTheTimeIsScaled) {
  FakeHost host;
  host.reads[kCycles] = {300, 1000, 250};
  const PerfResult result = Count(host);
  EXPECT_EQ(Named(result, "cycles").count, 1200u);
  EXPECT_EQ(Named(result, "cycles").running_share, 0.25);
}

TEST(PerfCounters, WhatWasNeverCountedOrCannotBeReadIsNoZero) {
  FakeHost host;
  host.reads[kCycles] = {0, 1000, 0};
  host.reads[kMisses] = {0, 1000, 1000};
  host.fails_to_read[kInstructions] = EIO;
  const PerfResult result = Count(host);
  EXPECT_FALSE(Named(result, "cycles").count);
  EXPECT_NE(Named(result, "cycles").missing, "");
  EXPECT_FALSE(Named(result, "instructions").count);
  EXPECT_EQ(Named(result, "instructions").missing, "Input/output error");
  EXPECT_EQ(Named(result, "llc_misses").count, 0u);
}

TEST(PerfCounters, WhatCannotBeStartedIsMissing) {
  FakeHost host;
  host.fails_to_enable = EPERM;
  for (const PerfCount& count : Count(host).processor) EXPECT_FALSE(count.count) << count.name;
  EXPECT_EQ(host.open, 0);
}

// The system's own calls, with its clock of a thread for each event: that is there without counters of the processor.
class ClockedCalls final : public PerfCalls {
 public:
  explicit ClockedCalls(int& error) : error_(error) {}
  int Open(perf_event_attr attributes) override {
    attributes.type = PERF_TYPE_SOFTWARE, attributes.config = PERF_COUNT_SW_TASK_CLOCK;
    const int event = calls_->Open(attributes);
    if (event < 0) error_ = -event;
    return event;
  }
  int Enable(int event) override { return calls_->Enable(event); }
  int Disable(int event) override { return calls_->Disable(event); }
  int Read(int event, Reading& reading) override { return calls_->Read(event, reading); }
  void Close(int event) override { calls_->Close(event); }
  KernelCounts OfProcess() override { return calls_->OfProcess(); }

 private:
  int& error_;
  const std::unique_ptr<PerfCalls> calls_ = SystemPerfCalls();
};

// Main's thread sleeps meanwhile: what is counted is the other one's.
TEST(PerfCounters, ThreadsThatStartLaterAreCounted) {
  constexpr uint64_t kBurntNanos = 20'000'000;
  int error = 0;
  PerfCounters counters(std::make_unique<ClockedCalls>(error));
  if (error != 0) GTEST_SKIP() << "this host permits no events: " << std::strerror(error);
  std::atomic<bool> go{false}, done{false};
  const std::jthread other([&] {
    const auto calls = SystemPerfCalls();
    go.wait(false);
    const uint64_t end = calls->OfProcess().task_clock_nanos + kBurntNanos;
    while (calls->OfProcess().task_clock_nanos < end) continue;
    done = true;
    done.notify_one();
  });
  counters.Begin();
  go = true;
  go.notify_one();
  done.wait(false);
  const PerfResult result = counters.End();
  for (const PerfCount& count : result.processor) {
    ASSERT_TRUE(count.count) << count.missing;
    EXPECT_GE(*count.count, kBurntNanos / 2);
  }
  EXPECT_GE(result.kernel.task_clock_nanos, kBurntNanos);
}

}  // namespace
}  // namespace dbx
