// The logs of one run: streams, the writers that flush them (one per directory), and the durable vector.
//
// Created and stopped by one thread; the streams are shared as log_stream.h says.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "base/types.h"
#include "logging/format.h"
#include "logging/log_stream.h"
#include "logging/log_writer.h"

namespace dbx {

// The persistent LSN of every log ("PLV", Taurus section 3.2). Adjacent words: vector instructions compare with them.
struct alignas(kCacheLineBytes) DurableVector {
  uint64_t lsn[format::kMaxLogs] = {};

  // Any thread: of a vector that writers raise.
  Lsn Load(size_t log) const {
    return Lsn(AtomicRef<uint64_t>(const_cast<uint64_t&>(lsn[log])).load(std::memory_order_acquire));
  }
};

struct LogSetOptions {
  uint64_t run_id = 0;
  Lsn start_lsn{};
  uint64_t ring_bytes = 64 << 20;
  uint64_t max_record_bytes = 1 << 20;
  uint32_t workers = 1;
  LogWriterOptions writer;
};

class LogSet {
 public:
  // One device per log, each with the number of its directory: the streams of a directory share a writer.
  struct Target {
    std::unique_ptr<BlockDevice> device;
    uint32_t directory = 0;
  };

  LogSet(std::vector<Target> targets, const LogSetOptions& options);
  ~LogSet();
  LogSet(const LogSet&) = delete;
  LogSet& operator=(const LogSet&) = delete;

  // Starts the writers. `hooks` outlive them.
  void Start(FlushHooks& hooks);

  uint32_t count() const { return static_cast<uint32_t>(streams_.size()); }
  LogStream& stream(uint32_t index) const { return *streams_[index]; }
  const DurableVector& durable() const { return durable_; }
  // Before the workers start.
  void TimeSpaceWaits() {
    for (const auto& stream : streams_) stream->TimeSpaceWaits();
  }
  // On the stream's writer: an anchor, which records in this log how far all logs are durable (LPLV).
  bool AppendAnchor(LogStream& stream) const;
  uint32_t workers() const { return options_.workers; }
  // The log after `log` for a worker that writes to its logs in turns: to the logs w, w + W, w + 2W ... where there are
  // more logs than workers (W), so that all devices are used; to log w mod n otherwise.
  uint32_t NextLog(uint32_t worker, uint32_t log) const {
    const uint32_t next = log + workers();
    return next < count() ? next : worker % count();
  }
  uint64_t reserved_bytes() const;
  // Less what was truncated again, as its owner has told.
  uint64_t kept_bytes() const {
    // In this order: what was truncated had been reserved.
    const uint64_t discarded = discarded_bytes_.load(std::memory_order_acquire);
    return reserved_bytes() - discarded;
  }
  void CountDiscarded(uint64_t bytes) { discarded_bytes_.fetch_add(bytes, std::memory_order_release); }
  size_t memory_bytes() const;

  // Any thread, once started: a worker has ended by an error. No thread may block on its unfinished records.
  void Fail(const std::exception_ptr& error);
  void ThrowIfFailed() const;

  // Makes every reserved record durable; no worker may be filling. Throws the error that failed the log.
  void Stop();
  // After Stop.
  void WriteRunEnd(const std::optional<std::pair<uint64_t, uint64_t>>& digest);

 private:
  LogSetOptions options_;
  DurableVector durable_;
  std::vector<std::unique_ptr<LogStream>> streams_;
  std::vector<std::vector<LogStream*>> groups_;
  FlushHooks* hooks_ = nullptr;  // once started
  Atomic<uint64_t> discarded_bytes_{0};
  std::vector<std::unique_ptr<LogWriter>> writers_;
};

}  // namespace dbx
