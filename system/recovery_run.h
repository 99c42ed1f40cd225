// A recovery of one pair's logs over one workload: open, load, replay, verify, measure.
#pragma once

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "storage/digest.h"
#include "system/log_files.h"
#include "system/options.h"
#include "system/recovery.h"
#include "system/result.h"
#include "system/verify.h"

namespace dbx {

inline ReplaySettings ReplaySettingsOf(const Options& options) {
  ReplaySettings settings;
  settings.workers = options.thread_cnt;
  settings.block_bytes = options.log_read_block_bytes;
  settings.serially = options.recover_serial == "always"  ? ReplaySettings::Serially::kAlways
                      : options.recover_serial == "never" ? ReplaySettings::Serially::kNever
                                                          : ReplaySettings::Serially::kAuto;
  return settings;
}

inline std::vector<LogSource> SourcesOf(const OldLogFiles& logs) {
  std::vector<LogSource> sources;
  for (size_t i = 0; i < logs.devices.size(); ++i) {
    const format::FileHeader& header = logs.headers[i];
    sources.push_back({logs.devices[i].get(), header.run_id, header.ring_bytes, header.log_index, header.log_count});
  }
  return sources;
}

inline void TakeSummary(const ReplaySummary& summary, RecoveryResult& result) {
  result.recovered = summary.recovered;
  result.dropped_dependency = summary.dropped;
  result.voids = summary.voids;
  result.torn_logs = summary.torn_logs;
  result.cut_bytes = summary.cut_bytes;
  result.log_bytes = summary.log_bytes;
  result.frontier = summary.frontier;
  result.clean_end = summary.clean_end;
  result.serial_fallback = summary.went_serial;
  result.parallelism = summary.parallelism;
}

// R: the scheme's recovery (logging/NAME/NAME_recovery.h).
template <class R, class WorkloadT>
RecoveryResult RunRecovery(const Options& options, LogStorage& storage, const LogTraits& traits, WorkloadT& workload) {
  RecoveryResult result;
  uint64_t lap = Clock::NowTicks();
  const auto lap_seconds = [&lap] {
    const uint64_t begin = std::exchange(lap, Clock::NowTicks());
    return Clock::ToSeconds(lap - begin);
  };

  const OldLogFiles logs = storage.Open(options);
  result.run_number = logs.run_number;
  result.directories = logs.directories;
  result.threads = options.thread_cnt;
  result.open_seconds = lap_seconds();

  Database database(0, options.thread_cnt);
  workload.CreateTables(database);
  CheckLogsMatch(logs, traits, SchemaHash(database));
  workload.Load(database, options.seed, options.thread_cnt);
  result.load_seconds = lap_seconds();

  R recovery(ReplaySettingsOf(options));
  std::vector<std::vector<TxnId>> recovered;
  const bool names_wanted = options.verify || !options.ack_file.empty();
  const std::function<void()> replayed = [&] { result.replay_seconds = lap_seconds(); };
  const ReplaySummary summary = Recover(recovery, SourcesOf(logs), database, workload, options.thread_cnt,
                                        names_wanted ? &recovered : nullptr, &replayed);
  TakeSummary(summary, result);
  result.finish_seconds = lap_seconds();

  if (options.verify) {
    result.recovered_ids = SortedIds(recovered);
    result.verified = VerifyRecovery(options, storage.files(), logs, summary, result.recovered_ids, workload, database);
    result.verify_seconds = lap_seconds();
  }
  return result;
}

}  // namespace dbx
