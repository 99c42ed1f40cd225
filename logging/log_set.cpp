#include "logging/log_set.h"

#include "base/thread_place.h"

namespace dbx {

LogSet::LogSet(std::vector<Target> targets, const LogSetOptions& options) : options_(options) {
  CHECK(!targets.empty());
  CHECK(targets.size() <= format::kMaxLogs);
  for (uint32_t i = 0; i < targets.size(); ++i) {
    const ThreadPlace near = ThreadPlace::NearBuffersOf(targets[i].directory);
    streams_.push_back(std::make_unique<LogStream>(i, format::Salt(options.run_id, i), options.ring_bytes,
                                                   options.max_record_bytes, options.workers,
                                                   std::move(targets[i].device), durable_.lsn[i], options.start_lsn));
    if (targets[i].directory >= groups_.size()) groups_.resize(targets[i].directory + 1);
    groups_[targets[i].directory].push_back(streams_.back().get());
  }
}

LogSet::~LogSet() {
  if (hooks_ != nullptr) hooks_->BeforeStop();
}

void LogSet::Start(FlushHooks& hooks) {
  hooks_ = &hooks;
  LogWriterOptions options = options_.writer;
  for (const auto& group : groups_) {
    if (!group.empty()) writers_.push_back(std::make_unique<LogWriter>(group, options, hooks));
    ++options.number;
  }
}

bool LogSet::AppendAnchor(LogStream& stream) const {
  DurableVector durable;
  for (uint32_t i = 0; i < count(); ++i) durable.lsn[i] = streams_[i]->persistent_until().value();
  return stream.AppendOwn(format::RecordKind::kAnchor, {durable.lsn, count()}).has_value();
}

uint64_t LogSet::reserved_bytes() const {
  uint64_t bytes = 0;
  for (const auto& stream : streams_) bytes += stream->reserved_bytes();
  return bytes;
}

size_t LogSet::memory_bytes() const {
  size_t bytes = 0;
  for (const auto& stream : streams_) bytes += stream->ring_bytes();
  return bytes;
}

void LogSet::Fail(const std::exception_ptr& error) {
  for (const auto& writer : writers_) writer->Fail(error);
}

void LogSet::ThrowIfFailed() const {
  for (const auto& writer : writers_) writer->ThrowIfFailed();
}

void LogSet::Stop() {
  if (hooks_ != nullptr) hooks_->BeforeStop();
  for (const auto& writer : writers_) writer->Stop();
}

void LogSet::WriteRunEnd(const std::optional<std::pair<uint64_t, uint64_t>>& digest) {
  for (const auto& writer : writers_) writer->WriteRunEnd(digest);
}

}  // namespace dbx
