#include "logging/backup/checkpointer.h"

#include <chrono>
#include <cstdio>

#include "base/check.h"

namespace dbx {
namespace {

constexpr uint64_t kNanosPerMillisecond = 1'000'000;
// Between two looks at how much was logged.
constexpr std::chrono::milliseconds kLook{1};

}  // namespace

Checkpointer::Checkpointer(CheckpointedLog& log, const BackupOptions& options)
    : log_(log),
      options_(options.checkpoints),
      truncated_log_(options.truncated_logs.empty() ? "" : options.truncated_logs.front()),
      checkpoint_(log, options) {}

void Checkpointer::Start() {
  CHECK(!thread_.joinable() && !stop_.load());
  if (options_.interval_ms == 0 && options_.interval_bytes == 0) return;
  end_nanos_ = host::MonotonicNanos();
  begin_bytes_ = log_.ReservedBytes();
  thread_ = Thread([this] { Loop(); });
}

void Checkpointer::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_.store(true);
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Checkpointer::ThrowIfFailed() const {
  // Pairs with the release in Loop.
  if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
}

void Checkpointer::Loop() {
  try {
    while (AwaitDue() && WriteNext() != FuzzyCheckpoint::Outcome::kGivenUp) continue;
  } catch (...) {
    error_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
  }
  counters_.pages = checkpoint_.pages();
  counters_.bytes = checkpoint_.bytes();
  counters_.latches = checkpoint_.latches();
}

bool Checkpointer::AwaitDue() {
  std::unique_lock lock(mutex_);
  const auto stopped = [this] { return stop_.load(); };
  // Without space the next one may fail at once, and its BEGIN alone may make another one due.
  if (had_no_space_) wake_.wait_for(lock, kLook, stopped);
  while (!stopped()) {
    const uint64_t passed = host::MonotonicNanos() - end_nanos_;
    const uint64_t interval = options_.interval_ms * kNanosPerMillisecond;
    if (options_.interval_ms != 0 && passed >= interval) return true;
    std::chrono::nanoseconds wait = kLook;
    if (options_.interval_bytes == 0) {
      wait = std::chrono::nanoseconds(interval - passed);
    } else if (log_.ReservedBytes() - begin_bytes_ >= options_.interval_bytes) {
      return true;
    }
    wake_.wait_for(lock, wait, stopped);
  }
  return false;
}

FuzzyCheckpoint::Outcome Checkpointer::WriteNext() {
  const uint64_t begin_nanos = host::MonotonicNanos();
  begin_bytes_ = log_.ReservedBytes();
  const FuzzyCheckpoint::Outcome outcome = checkpoint_.Write([this] { return stop_.load(); });
  end_nanos_ = host::MonotonicNanos();
  counters_.seconds += static_cast<double>(end_nanos_ - begin_nanos) * 1e-9;
  had_no_space_ = outcome == FuzzyCheckpoint::Outcome::kNoSpace;
  counters_.checkpoints += outcome == FuzzyCheckpoint::Outcome::kComplete;
  counters_.abandoned += outcome == FuzzyCheckpoint::Outcome::kGivenUp;
  if (checkpoint_.cannot_discard() && !noticed_) {
    noticed_ = true;
    std::fprintf(stderr, "notice: the file system of %s frees no blocks of a file: the logs stay as long as they are\n",
                 truncated_log_.c_str());
  }
  if (outcome != FuzzyCheckpoint::Outcome::kNoSpace || ++counters_.failed > 1) return outcome;
  std::fprintf(stderr, "notice: no space for a checkpoint, recovery would begin with the one before: %s\n",
               checkpoint_.no_space_because().c_str());
  return outcome;
}

}  // namespace dbx
