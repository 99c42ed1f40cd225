#include "logging/log_writer.h"

#include <algorithm>
#include <utility>

#include "base/thread_place.h"

namespace dbx {
namespace {

// With this much waiting a flush takes whole blocks only and leaves the partial last one to the next round, which is
// soon; with less it fills the block up with a PAD, so that the last record does not wait.
constexpr uint64_t kPadBelowBytes = 32 * format::kBlockBytes;

// Rounds without work before the writer sleeps without a timeout.
constexpr uint64_t kIdleRoundsBeforeLongSleep = 64;

}  // namespace

LogWriter::LogWriter(std::vector<LogStream*> streams, LogWriterOptions options, FlushHooks& hooks)
    : streams_(std::move(streams)), options_(options), hooks_(hooks) {
  for (LogStream* stream : streams_) stream->StartWriter(signal_);
  thread_ = Thread([this] { Loop(); });
}

LogWriter::~LogWriter() {
  abandoned_.store(true);
  if (thread_.joinable()) {
    stop_.store(true);
    signal_.Wake();
    thread_.join();
  }
  for (LogStream* stream : streams_) stream->StopTracker();
}

void LogWriter::Stop() {
  stop_.store(true);
  signal_.Wake();
  if (thread_.joinable()) thread_.join();
  ThrowIfFailed();
}

void LogWriter::WriteRunEnd(const std::optional<std::pair<uint64_t, uint64_t>>& digest) {
  for (LogStream* stream : streams_) {
    hooks_.BeforeRunEnd(*stream);
    stream->AppendRunEnd(digest);
    stream->CatchUp();
    stream->StartFlush(options_.flush_block_bytes);
    stream->CompleteFlush(true);
    hooks_.AfterFlush(*stream);
    stream->StopTracker();
  }
}

uint64_t LogWriter::UnflushedBytes() const {
  uint64_t bytes = 0;
  for (const LogStream* stream : streams_) bytes += stream->reserved_until() - stream->started_until();
  return bytes;
}

void LogWriter::Loop() {
  host::EndSleepsOnTime();
  try {
    const ThreadPlace place = ThreadPlace::OfWriter(options_.number);
    for (;;) {
      const bool stopping = stop_.load();
      const bool flushed = Round();
      if (stopping && (UnflushedBytes() == 0 || (!flushed && abandoned_.load()))) return;
      if (!stopping && !(flushed && UnflushedBytes() >= options_.flush_block_bytes)) SleepUntilDue();
    }
  } catch (...) {
    Fail(std::current_exception());
  }
}

bool LogWriter::Round() {
  const bool counted = options_.flushes_per_anchor != 0 && ++rounds_since_anchor_ >= options_.flushes_per_anchor;
  const bool anchor_due = counted || hooks_.FlushesEveryRound();
  if (anchor_due) rounds_since_anchor_ = 0;
  bool busy = false;
  for (LogStream* stream : streams_) {
    stream->CatchUp();
    // While an unfilled place blocks the log an anchor or a PAD would only fill up the ring.
    if (!stream->HasFlushable() && !(anchor_due && hooks_.WantsFlush(*stream))) continue;
    if (anchor_due) hooks_.BeforeFlush(*stream);
    if (stream->reserved_until() - stream->started_until() < kPadBelowBytes) stream->AppendPad();
    stream->CatchUp();
    busy |= stream->StartFlush(options_.flush_block_bytes);
  }
  if (!busy) return false;
  for (LogStream* stream : streams_) stream->CompleteFlush(true);
  for (const LogStream* stream : streams_) hooks_.AfterFlush(*stream);
  return true;
}

bool LogWriter::HasWork() const {
  return UnflushedBytes() > 0 || std::any_of(streams_.begin(), streams_.end(),
                                             [this](const LogStream* stream) { return hooks_.WantsFlush(*stream); });
}

void LogWriter::SleepUntilDue() {
  idle_rounds_ = HasWork() ? 0 : idle_rounds_ + 1;
  if (idle_rounds_ < kIdleRoundsBeforeLongSleep) {
    signal_.SleepFor(options_.flush_interval_us * 1000);
    return;
  }
  // Announce the sleep, then check once more: either the filler sees the flag or this check sees its place.
  for (LogStream* stream : streams_) stream->writer_asleep().store(true);
  if (!HasWork()) signal_.Sleep();
  for (LogStream* stream : streams_) stream->writer_asleep().store(false);
  idle_rounds_ = 0;
}

}  // namespace dbx
