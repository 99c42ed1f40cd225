#include "system/cluster/heartbeat.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "base/error.h"

namespace dbx {
namespace {

Atomic<uint64_t>* count_of_this_process = nullptr;

}  // namespace

Heartbeat::Heartbeat() {
  static_assert(Atomic<uint64_t>::is_always_lock_free);
  void* shared = mmap(nullptr, sizeof *count_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw Error(ExitStatus::kNoSpace, std::string("no memory: ") + std::strerror(errno));
  count_ = new (shared) Atomic<uint64_t>(0);
}

Heartbeat::~Heartbeat() { munmap(count_, sizeof *count_); }

void Heartbeat::BelongsToThisProcess() { count_of_this_process = count_; }

uint64_t Heartbeat::count() const { return count_->load(std::memory_order_relaxed); }

void BeatOfThisProcess() {
  if (count_of_this_process != nullptr) count_of_this_process->fetch_add(1, std::memory_order_relaxed);
}

std::chrono::nanoseconds Silence::Observe(uint64_t count, uint64_t now_nanos) {
  const std::chrono::nanoseconds since(now_nanos - looked_nanos_);
  looked_nanos_ = now_nanos;
  if (count == 0 || count != count_) {
    count_ = count;
    silent_ = std::chrono::nanoseconds(0);
  } else {
    silent_ += std::min<std::chrono::nanoseconds>(since, kLookMax);
  }
  return silent_;
}

}  // namespace dbx
