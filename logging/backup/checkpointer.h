// The thread that writes checkpoints, fuzzy ones of pages (fuzzy_checkpoint.h) or those of rows
// (system/runs/row_checkpoint.h), beside the transactions of a run, in intervals of time or of log bytes.
//
// One for which there is no space is counted, with a notice on stderr the first time; transactions go on over the older
// backup; one, too, if the logs were to be truncated and cannot. Any other failure ends the thread, and is to end the
// run: nothing more would shorten its recovery, and what is wrong with the files is not known.
//
// Threads: a Checkpointer belongs to one, main's, which starts and stops it; ThrowIfFailed is for any.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "base/host.h"
#include "base/live_counter.h"
#include "logging/backup/backup_options.h"
#include "logging/backup/checkpoint_counters.h"
#include "logging/backup/fuzzy_checkpoint.h"

namespace dbx {

class Checkpointer {
 public:
  using Counters = CheckpointCounters;

  // `reserved_bytes()` counts those of all logs; `truncated_log` is one of the logs that are to be truncated, or empty.
  Checkpointer(std::unique_ptr<CheckpointWriter> writer, std::function<uint64_t()> reserved_bytes,
               const CheckpointOptions& options, std::string truncated_log);
  // With a FuzzyCheckpoint, which has the same arguments.
  Checkpointer(CheckpointedLog& log, const BackupOptions& options);
  ~Checkpointer() { Stop(); }
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Starts the thread, if there are to be checkpoints.
  void Start();
  // Ends it, and gives up a checkpoint in progress, as soon as a call of the log returns or throws, or it has rested.
  // There is no other Start.
  void Stop();
  void ThrowIfFailed() const;
  // From any thread, while it runs.
  CheckpointMarks marks() const { return {ReadLive(marks_.begun), ReadLive(marks_.ended)}; }
  // After Stop.
  const Counters& counters() const { return counters_; }

 private:
  void Loop();
  // Waits until the next checkpoint is due. False: the run ends.
  bool AwaitDue();
  CheckpointWriter::Outcome WriteNext();

  const std::function<uint64_t()> reserved_bytes_;
  const CheckpointOptions options_;
  const std::string truncated_log_;  // the first of them, if they are to be truncated

  // Of the thread.
  const std::unique_ptr<CheckpointWriter> writer_;
  uint64_t end_nanos_ = 0;    // of the last one
  uint64_t begin_bytes_ = 0;  // reserved when it began
  bool noticed_ = false;      // that the logs cannot be truncated
  bool had_no_space_ = false;
  Counters counters_;
  CheckpointMarks marks_;  // read by others (live_counter.h)

  std::exception_ptr error_;  // written once before failed_
  Atomic<bool> failed_{false};
  Mutex mutex_;
  ConditionVariable wake_;
  Atomic<bool> stop_{false};  // set while mutex_ is held
  Thread thread_;
};

}  // namespace dbx
