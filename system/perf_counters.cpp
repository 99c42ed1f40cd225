#include "system/perf_counters.h"

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace dbx {
namespace {

constexpr uint64_t CacheReadMisses(uint64_t cache) {
  return cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
}

struct KnownEvent {
  const char* name;
  uint32_t type;
  uint64_t config;
};

// The third is that of the last level on most processors (perf_event_open(2)), and there where the event of a cache is
// not.
constexpr std::array kEvents = {
    KnownEvent{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    KnownEvent{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    KnownEvent{"llc_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    KnownEvent{"dtlb_load_misses", PERF_TYPE_HW_CACHE, CacheReadMisses(PERF_COUNT_HW_CACHE_DTLB)},
};

bool IsForbidden(int error) { return error == EACCES || error == EPERM; }

std::string ReasonOf(int error) {
  const std::string text = std::strerror(error);
  if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV) return "the host has no such counter: " + text;
  if (IsForbidden(error)) return "not permitted (kernel.perf_event_paranoid, or a container's filter): " + text;
  return text;
}

class Calls final : public PerfCalls {
 public:
  int Open(perf_event_attr attributes) override {
    constexpr int kThisThread = 0, kAnyProcessor = -1, kNoGroup = -1;
    return Result(
        ::syscall(SYS_perf_event_open, &attributes, kThisThread, kAnyProcessor, kNoGroup, PERF_FLAG_FD_CLOEXEC));
  }
  int Enable(int event) override { return Result(::ioctl(event, PERF_EVENT_IOC_ENABLE, 0)); }
  int Disable(int event) override { return Result(::ioctl(event, PERF_EVENT_IOC_DISABLE, 0)); }
  int Read(int event, Reading& reading) override {
    static_assert(sizeof reading == 3 * sizeof(uint64_t));
    const ssize_t bytes = ::read(event, &reading, sizeof reading);
    if (bytes < 0) return -errno;
    if (bytes == 0) return -ENODATA;  // an event in error
    return bytes == sizeof reading ? 0 : -EIO;
  }
  void Close(int event) override { ::close(event); }
  KernelCounts OfProcess() override {
    rusage used{};
    CHECK(::getrusage(RUSAGE_SELF, &used) == 0);
    timespec time{};
    CHECK(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0);
    return {static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec),
            static_cast<uint64_t>(used.ru_nvcsw + used.ru_nivcsw),
            static_cast<uint64_t>(used.ru_minflt + used.ru_majflt)};
  }

 private:
  static int Result(long returned) { return returned < 0 ? -errno : static_cast<int>(returned); }
};

}  // namespace

std::unique_ptr<PerfCalls> SystemPerfCalls() { return std::make_unique<Calls>(); }

PerfCounters::PerfCounters(std::unique_ptr<PerfCalls> calls) : calls_(std::move(calls)) {
  for (const KnownEvent& known : kEvents) events_.push_back(Open(known.name, known.type, known.config));
}

PerfCounters::~PerfCounters() {
  for (Event& event : events_) {
    if (event.descriptor >= 0) calls_->Close(event.descriptor);
  }
}

PerfCounters::Event PerfCounters::Open(const char* name, uint32_t type, uint64_t config) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = type;
  attributes.config = config;
  attributes.disabled = 1;
  attributes.inherit = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  Event event;
  event.count.name = name;
  event.descriptor = calls_->Open(attributes);
  if (IsForbidden(-event.descriptor)) {
    attributes.exclude_kernel = attributes.exclude_hv = 1;
    event.descriptor = calls_->Open(attributes);
    event.count.user_space_only = event.descriptor >= 0;
  }
  if (event.descriptor < 0) event.count.missing = ReasonOf(-event.descriptor);
  return event;
}

void PerfCounters::GiveUp(Event& event, const std::string& why) {
  calls_->Close(event.descriptor);
  event.descriptor = -1;
  event.count.missing = why;
}

void PerfCounters::Begin() {
  for (Event& event : events_) {
    if (event.descriptor < 0) continue;
    if (const int error = calls_->Enable(event.descriptor); error < 0) GiveUp(event, ReasonOf(-error));
  }
  begin_ = calls_->OfProcess();
}

PerfResult PerfCounters::End() {
  const KernelCounts end = calls_->OfProcess();
  for (Event& event : events_) {
    if (event.descriptor < 0) continue;
    if (const int error = calls_->Disable(event.descriptor); error < 0) GiveUp(event, ReasonOf(-error));
  }
  PerfResult result;
  for (Event& event : events_) {
    if (event.descriptor >= 0) Read(event);
    result.processor.push_back(event.count);
  }
  result.kernel = {end.task_clock_nanos - begin_.task_clock_nanos, end.context_switches - begin_.context_switches,
                   end.page_faults - begin_.page_faults};
  return result;
}

void PerfCounters::Read(Event& event) {
  PerfCalls::Reading reading;
  if (const int error = calls_->Read(event.descriptor, reading); error < 0) return GiveUp(event, ReasonOf(-error));
  // A 0 would be no count.
  if (reading.running_nanos == 0) return GiveUp(event, "it never had a counter of the processor");
  PerfCount& count = event.count;
  count.count = reading.count;
  if (reading.running_nanos >= reading.enabled_nanos) return;
  count.running_share = static_cast<double>(reading.running_nanos) / static_cast<double>(reading.enabled_nanos);
  count.count = static_cast<uint64_t>(static_cast<double>(reading.count) / count.running_share);
}

}  // namespace dbx
