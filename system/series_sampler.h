// Reads the counters of a run's workers, logs and checkpoints for its series (series.h), while it goes on.
//
// It stops no thread: the counters are words that their threads write anyway, and are read as they are
// (base/live_counter.h). What is read of two threads is not of one moment, so a transaction may be executed in one step
// and, in the histogram, acknowledged in the next. Main's thread; each reading takes some microseconds per worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "logging/backup/checkpointer.h"
#include "system/command_line/options.h"
#include "system/log_interval.h"
#include "system/node.h"
#include "system/series.h"

namespace dbx {

class SeriesSampler {
 public:
  // Does nothing unless the options ask for a series. The others outlive it; `checkpointer` may be null.
  SeriesSampler(const Options& options, Node& node, const std::vector<std::unique_ptr<WorkerThread>>& workers,
                const Checkpointer* checkpointer, const LogInterval& interval);

  // Before `go`.
  void Begin();
  // How long the caller may sleep, `most` seconds at most.
  double SecondsLeft(double seconds, double most) const;
  // `seconds` after the interval has begun; ends a step if it is time.
  void Look(double seconds);
  // At the end of a timed interval: what the logs, checkpoints and waits do from here on is no part of the series.
  void Stop();
  // The interval has ended, the workers have too, and so has LogInterval. The steps in order.
  std::vector<SeriesStep> End(double seconds);

 private:
  SeriesTotals Read() const;
  // Parts of `totals`, all of which they replace.
  void ReadTransactions(SeriesTotals& totals) const;
  void ReadLogs(SeriesTotals& totals, uint64_t now_ticks) const;

  const uint32_t thread_cnt_;
  Node& node_;
  const std::vector<std::unique_ptr<WorkerThread>>& workers_;
  const Checkpointer* const checkpointer_;
  const LogInterval& interval_;
  std::optional<Series> series_;
  std::optional<SeriesTotals> at_stop_;
};

}  // namespace dbx
