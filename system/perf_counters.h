// The host's counters over the measured interval (--perf): what the processor did, by perf_event_open(2), and what the
// kernel did for the process, by getrusage(2).
//
// An event is opened by main's thread before it starts others, and is inherited by them: workers, log writers and
// checkpoints count together, each from its first to its last instruction within the interval. Where the host has no
// such counter or does not permit it, the result says why instead of a number; the run goes on. The kernel's counters
// are of the whole process, and are always there. Main's thread.
#pragma once

#include <linux/perf_event.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dbx {

struct PerfCount {
  std::string name;
  // None: not counted, because of `missing`. Scaled up if the counter ran for a part of the time only, as there are
  // fewer of them in the processor than events.
  std::optional<uint64_t> count;
  std::string missing;
  double running_share = 1;      // of the time; below 1: `count` is an estimate
  bool user_space_only = false;  // the host does not permit to count in the kernel
};

struct KernelCounts {
  uint64_t task_clock_nanos = 0;  // processor time of all threads
  uint64_t context_switches = 0;
  uint64_t page_faults = 0;
};

struct PerfResult {
  std::vector<PerfCount> processor;
  KernelCounts kernel;
};

// The system calls, for tests to replace. Results below 0 are negative error numbers.
class PerfCalls {
 public:
  // As read(2) returns it, with the times of PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING.
  struct Reading {
    uint64_t count = 0;
    uint64_t enabled_nanos = 0;
    uint64_t running_nanos = 0;
  };

  virtual ~PerfCalls() = default;
  // Of the calling thread and those that it starts; a descriptor.
  virtual int Open(perf_event_attr attributes) = 0;
  virtual int Enable(int event) = 0;
  virtual int Disable(int event) = 0;
  virtual int Read(int event, Reading& reading) = 0;
  virtual void Close(int event) = 0;
  virtual KernelCounts OfProcess() = 0;
};

std::unique_ptr<PerfCalls> SystemPerfCalls();

class PerfCounters {
 public:
  // Opens the events; the threads to be counted start afterwards.
  explicit PerfCounters(std::unique_ptr<PerfCalls> calls = SystemPerfCalls());
  ~PerfCounters();
  PerfCounters(const PerfCounters&) = delete;
  PerfCounters& operator=(const PerfCounters&) = delete;

  // Once each.
  void Begin();
  PerfResult End();

 private:
  struct Event {
    int descriptor = -1;  // -1: `count.missing` says why
    PerfCount count;
  };
  Event Open(const char* name, uint32_t type, uint64_t config);
  void GiveUp(Event& event, const std::string& why);
  void Read(Event& event);

  const std::unique_ptr<PerfCalls> calls_;
  std::vector<Event> events_;
  KernelCounts begin_;
};

}  // namespace dbx
