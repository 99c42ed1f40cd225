#include "base/thread_place.h"

#include <cstring>
#include <string>
#include <utility>

#include "base/affinity.h"
#include "base/check.h"
#include "base/error.h"

namespace dbx {
namespace {

// Set by main while no other thread of a run exists; their creation publishes it to them.
const PlacedThreads* placed = nullptr;

}  // namespace

PlacedThreads::PlacedThreads(Placement placement) : placement_(std::move(placement)) {
  if (placement_.workers.empty()) return;
  CHECK(placed == nullptr);
  process_cpus_ = host::AllowedCpus();
  placed = this;
}

PlacedThreads::~PlacedThreads() {
  if (placed == this) placed = nullptr;
}

ThreadPlace::ThreadPlace(uint32_t cpu) {
  if (const int error = Move({&cpu, 1}); error != 0) {
    throw Error(ExitStatus::kUsage,
                "--pin: a thread cannot run on CPU " + std::to_string(cpu) + ": " + std::strerror(error));
  }
}

ThreadPlace::ThreadPlace(std::span<const uint32_t> cpus) {
  if (!cpus.empty()) (void)Move(cpus);
}

int ThreadPlace::Move(std::span<const uint32_t> cpus) {
  before_ = host::AllowedCpus();
  return host::AllowCpus(cpus);
}

ThreadPlace::~ThreadPlace() {
  // A CPU that was taken away meanwhile is no error of the run, which has ended here.
  if (!before_.empty()) (void)host::AllowCpus(before_);
}

ThreadPlace ThreadPlace::OfWorker(uint32_t worker) {
  if (placed == nullptr || worker >= placed->placement().workers.size()) return OfProcess();
  return ThreadPlace(placed->placement().workers[worker]);
}

ThreadPlace ThreadPlace::OfWriter(uint32_t writer) {
  if (placed == nullptr || writer >= placed->placement().writers.size()) return OfProcess();
  const std::optional<uint32_t>& cpu = placed->placement().writers[writer];
  return cpu ? ThreadPlace(*cpu) : OfProcess();
}

ThreadPlace ThreadPlace::NearBuffersOf(uint32_t writer) {
  if (placed == nullptr || writer >= placed->placement().buffers.size()) return OfProcess();
  return ThreadPlace(placed->placement().buffers[writer]);
}

ThreadPlace ThreadPlace::OfProcess() {
  return ThreadPlace(placed == nullptr ? std::span<const uint32_t>() : placed->process_cpus_);
}

}  // namespace dbx
