// A log writer: one thread that flushes a group of streams, the logs of one directory (group commit: one flush makes
// many records durable). It sleeps between flushes and is woken by workers only when it sleeps for long or the ring is
// full; it never spins.
//
// A round: let the scheme append its own records, where they are due; fill up the last block if little is waiting; hand
// every stream's complete blocks to its device; wait for the devices; publish the durable LSNs; sleep until the next
// round is due, unless a whole write's worth is waiting already.
//
// After a device error the writer has failed for good: nothing more becomes durable, and ThrowIfFailed throws it. The
// same holds when a worker has ended by an error, which may have left an unfilled place: nothing behind it becomes
// durable.
#pragma once

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "base/host.h"
#include "logging/log_stream.h"
#include "logging/writer_signal.h"

namespace dbx {

struct LogWriterOptions {
  uint64_t flush_interval_us = 200;
  uint64_t flush_block_bytes = 512 << 10;  // largest single write; this much waiting starts the next round at once
  uint32_t flushes_per_anchor = 1;         // 0: none before the one at the clean end
  uint32_t number = 0;                     // of its directory; determines its CPU
};

// A scheme's callbacks around the flushes of a stream, on the thread of its writer.
class FlushHooks {
 public:
  virtual ~FlushHooks() = default;
  // A record of the scheme's own should become durable, though no transaction waits in this stream.
  virtual bool WantsFlush(const LogStream&) const { return false; }
  // May append records of the scheme's own; every flushes_per_anchor rounds, or every round.
  virtual void BeforeFlush(LogStream&) {}
  // Acknowledgements depend on what BeforeFlush appends or notes.
  virtual bool FlushesEveryRound() const { return false; }
  // The same before RUN_END: records by which recovery detects that other logs or files were truncated later.
  virtual void BeforeRunEnd(LogStream& stream) { BeforeFlush(stream); }
  // Called after the durable LSN may have advanced.
  virtual void AfterFlush(const LogStream&) {}
  // The last call, on the thread that stops the writers: threads of the scheme's own must stop using the streams.
  virtual void BeforeStop() {}
};

class LogWriter {
 public:
  // `hooks` are called until Stop, and by WriteRunEnd.
  LogWriter(std::vector<LogStream*> streams, LogWriterOptions options, FlushHooks& hooks);
  // Without Stop: a worker that threw may have left an unfilled place, so the records behind it are given up.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Any thread.
  void Fail(std::exception_ptr error) { signal_.Fail(std::move(error)); }
  void ThrowIfFailed() const { signal_.ThrowIfFailed(); }

  // Flushes all reserved places and ends the thread. No worker may be filling; throws the error if it failed.
  void Stop();
  // After Stop: appends RUN_END to each stream and makes it durable.
  void WriteRunEnd(const std::optional<std::pair<uint64_t, uint64_t>>& digest);

 private:
  void Loop();
  // One round of group commit. True if something was flushed.
  bool Round();
  void SleepUntilDue();
  bool HasWork() const;
  uint64_t UnflushedBytes() const;

  std::vector<LogStream*> streams_;
  LogWriterOptions options_;
  FlushHooks& hooks_;
  uint64_t rounds_since_anchor_ = 0;
  uint64_t idle_rounds_ = 0;

  WriterSignal signal_;
  Atomic<bool> stop_{false};
  Atomic<bool> abandoned_{false};
  Thread thread_;
};

}  // namespace dbx
