#include "logging/silo_r/durable_epoch.h"

#include <chrono>

namespace dbx {
namespace {

// Between two checks of the logs: while records are to become durable, and while only epochs advance.
constexpr std::chrono::microseconds kLook{200};
constexpr std::chrono::microseconds kIdleLook{1000};

}  // namespace

DurableEpoch::DurableEpoch(const LogSet& logs, const EpochClock& epochs, FrontierFile& frontier)
    : logs_(logs),
      epochs_(epochs),
      frontier_(frontier),
      needed_(ReservedUntil()),
      epoch_(epochs.Current().value() - 1),
      thread_([this] { Loop(); }) {}

void DurableEpoch::ThrowIfFailed() const {
  if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
}

void DurableEpoch::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void DurableEpoch::Loop() {
  try {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      lock.unlock();
      while (Advance()) continue;
      lock.lock();
      wake_.wait_for(lock, next_ != Epoch() ? kLook : kIdleLook, [this] { return stop_; });
    }
  } catch (...) {
    error_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
  }
}

bool DurableEpoch::Advance() {
  if (next_ == Epoch()) {
    // The epoch before the places: see the head of the header.
    const Epoch complete(epochs_.SafeEpoch().value() - 1);
    if (complete <= Epoch(epoch_.load(std::memory_order_relaxed))) return false;
    next_ = complete;
    const std::vector<Lsn> reserved = ReservedUntil();
    // The epoch after the places: a worker that reserved one had loaded the epoch of its commit before.
    if (reserved != needed_) newest_ = epochs_.Current();
    needed_ = reserved;
  }
  if (!AreDurable(needed_)) return false;
  if (written_ < newest_) {
    const Stamp stamp = StampOf(EpochTid::Last(next_));
    frontier_.Append(stamp, needed_);
    written_ = next_;
    // Release: the file is durable.
    written_stamp_.store(stamp.value(), std::memory_order_release);
  }
  // Release: a worker that sees it may acknowledge; the frontier file is durable.
  epoch_.store(next_.value(), std::memory_order_release);
  next_ = Epoch();
  return true;
}

std::vector<Lsn> DurableEpoch::ReservedUntil() const {
  std::vector<Lsn> lsns;
  for (uint32_t i = 0; i < logs_.count(); ++i) lsns.push_back(logs_.stream(i).reserved_until());
  return lsns;
}

bool DurableEpoch::AreDurable(const std::vector<Lsn>& lsns) const {
  for (uint32_t i = 0; i < logs_.count(); ++i) {
    if (logs_.stream(i).persistent_until() < lsns[i]) return false;
  }
  return true;
}

}  // namespace dbx
