// A log writer: one thread that flushes a group of streams, the logs of one directory. It sleeps between flushes and
// is woken by workers only when it sleeps for long or the ring is full; it never spins.
//
// A round: let the scheme append what is its own, where that is due; fill up the last block if little is waiting; hand
// every stream's complete blocks to its device; wait for the devices; publish what is durable; sleep until the next
// round is due, unless a whole write's worth is waiting already.
//
// After a device error the writer is failed for good: nothing more becomes durable, and ThrowIfFailed tells. So it does
// when a worker has ended by an error, which may have left a place that nobody will fill: nothing behind it becomes
// durable.
#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "base/host.h"
#include "logging/log_stream.h"

namespace dbx {

struct LogWriterOptions {
  uint64_t flush_interval_us = 200;
  uint64_t flush_block_bytes = 512 << 10;  // largest single write; this much waiting starts the next round at once
  uint32_t flushes_per_anchor = 1;         // 0: none before that of the clean end
};

// What a scheme does around the flushes of a stream, on the thread of its writer.
class FlushHooks {
 public:
  virtual ~FlushHooks() = default;
  // Something of the scheme's own should become durable, though no transaction waits in this stream.
  virtual bool WantsFlush(const LogStream&) const { return false; }
  // May append records of the scheme's own; every flushes_per_anchor rounds, or every round.
  virtual void BeforeFlush(LogStream&) {}
  // Acknowledgements wait for what BeforeFlush appends or notes.
  virtual bool FlushesEveryRound() const { return false; }
  // The same before RUN_END: what shows, where other logs or files are cut short later, that they had been longer.
  virtual void BeforeRunEnd(LogStream& stream) { BeforeFlush(stream); }
  // What is durable may have moved.
  virtual void AfterFlush(const LogStream&) {}
  // The last of all, on the thread that stops the writers: threads of the scheme's own leave the streams alone.
  virtual void BeforeStop() {}
};

class LogWriter {
 public:
  // `hooks` are called until Stop, and by WriteRunEnd.
  LogWriter(std::vector<LogStream*> streams, LogWriterOptions options, FlushHooks& hooks);
  // Without Stop: a worker that threw may have left a place that nobody will fill, so what lies behind it is given up.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Any thread.
  void Wake();
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Whoever waits for the writer is told of `error`, unless there has been one before.
  void Fail(std::exception_ptr error);
  // Throws the error if the writer has failed.
  void ThrowIfFailed() const;

  // Flushes what is reserved, ends the thread. With no filler left; throws the error if it failed.
  void Stop();
  // After Stop: appends RUN_END to each stream and makes it durable.
  void WriteRunEnd(const std::optional<std::pair<uint64_t, uint64_t>>& digest);

 private:
  void Loop();
  // True if something was flushed.
  bool Round();
  void SleepUntilDue();
  bool HasWork() const;
  uint64_t UnflushedBytes() const;

  std::vector<LogStream*> streams_;
  LogWriterOptions options_;
  FlushHooks& hooks_;
  uint64_t rounds_since_anchor_ = 0;
  uint64_t idle_rounds_ = 0;

  Mutex mutex_;
  ConditionVariable wake_;
  bool woken_ = false;  // guarded by mutex_
  Atomic<bool> stop_{false};
  Atomic<bool> abandoned_{false};
  Atomic<bool> failed_{false};
  std::exception_ptr error_;  // written once, under mutex_, before failed_
  Thread thread_;
};

}  // namespace dbx
