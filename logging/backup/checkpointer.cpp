#include "logging/backup/checkpointer.h"

#include <chrono>
#include <cstdio>
#include <utility>

#include "base/check.h"

namespace dbx {
namespace {

constexpr uint64_t kNanosPerMillisecond = 1'000'000;
// Between two looks at how much was logged.
constexpr std::chrono::milliseconds kLook{1};

}  // namespace

Checkpointer::Checkpointer(std::unique_ptr<CheckpointWriter> writer, std::function<uint64_t()> reserved_bytes,
                           const CheckpointOptions& options, std::string truncated_log)
    : reserved_bytes_(std::move(reserved_bytes)),
      options_(options),
      truncated_log_(std::move(truncated_log)),
      writer_(std::move(writer)) {}

Checkpointer::Checkpointer(CheckpointedLog& log, const BackupOptions& options)
    : Checkpointer(
          std::make_unique<FuzzyCheckpoint>(log, options), [&log] { return log.ReservedBytes(); }, options.checkpoints,
          options.truncated_logs.empty() ? "" : options.truncated_logs.front()) {}

void Checkpointer::Start() {
  CHECK(!thread_.joinable() && !stop_.load());
  if (options_.interval_ms == 0 && options_.interval_bytes == 0) return;
  end_nanos_ = host::MonotonicNanos();
  begin_bytes_ = reserved_bytes_();
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
    while (AwaitDue() && WriteNext() != CheckpointWriter::Outcome::kGivenUp) continue;
  } catch (...) {
    error_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
  }
  writer_->CountInto(counters_);
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
    } else if (reserved_bytes_() - begin_bytes_ >= options_.interval_bytes) {
      return true;
    }
    wake_.wait_for(lock, wait, stopped);
  }
  return false;
}

CheckpointWriter::Outcome Checkpointer::WriteNext() {
  const uint64_t begin_nanos = host::MonotonicNanos();
  begin_bytes_ = reserved_bytes_();
  AddLive(marks_.begun, 1);
  const CheckpointWriter::Outcome outcome = writer_->Write([this] { return stop_.load(); });
  AddLive(marks_.ended, 1);
  end_nanos_ = host::MonotonicNanos();
  counters_.seconds += static_cast<double>(end_nanos_ - begin_nanos) * 1e-9;
  had_no_space_ = outcome == CheckpointWriter::Outcome::kNoSpace;
  counters_.checkpoints += outcome == CheckpointWriter::Outcome::kComplete;
  counters_.abandoned += outcome == CheckpointWriter::Outcome::kGivenUp;
  if (writer_->cannot_discard() && !noticed_) {
    noticed_ = true;
    std::fprintf(stderr, "notice: the file system of %s frees no blocks of a file: the logs stay as long as they are\n",
                 truncated_log_.c_str());
  }
  if (outcome != CheckpointWriter::Outcome::kNoSpace || ++counters_.failed > 1) return outcome;
  std::fprintf(stderr, "notice: no space for a checkpoint, recovery would begin with the one before: %s\n",
               writer_->no_space_because().c_str());
  return outcome;
}

}  // namespace dbx
