#include "system/replay/recovery_run.h"

#include <array>
#include <utility>

#include "base/clock.h"
#include "system/pairs/scheme_types.h"
#include "system/replay/heap_restart.h"
#include "system/replay/laps.h"
#include "system/replay/read_progress.h"
#include "system/replay/recovery.h"
#include "system/transaction/observer.h"

namespace dbx {
namespace {

ReplaySettings ReplaySettingsOf(const Options& options) {
  ReplaySettings settings;
  settings.workers = options.thread_cnt;
  settings.block_bytes = options.log_read_block_bytes;
  settings.restart_level = options.restart_level;
  settings.serially = options.recover_serial == "always"  ? ReplaySettings::Serially::kAlways
                      : options.recover_serial == "never" ? ReplaySettings::Serially::kNever
                                                          : ReplaySettings::Serially::kAuto;
  return settings;
}

bool IsReplayedInManyVersions(const format::FileHeader& header) {
  return header.payload == static_cast<uint8_t>(format::Payload::kVersionedCommand);
}

void TakeSummary(const ReplaySummary& summary, RecoveryResult& result) {
  result.recovered = summary.recovered;
  result.dropped_dependency = summary.dropped;
  result.voids = summary.voids;
  result.torn_logs = summary.torn_logs;
  result.cut_bytes = summary.cut_bytes;
  result.log_bytes = summary.log_bytes;
  result.frontier = summary.frontier;
  result.ended_below = summary.ended_below;
  result.clean_end = summary.clean_end;
  result.serial_fallback = summary.went_serial;
  result.parallelism = summary.parallelism;
}

AncestryResult AncestryOf(const std::vector<RecoveredRun>& recovered, const OldRuns& runs) {
  AncestryResult before;
  if (runs.newest().manifest) before.parent_run = runs.newest().manifest->parent_run;
  before.runs = recovered.size() - 1;
  for (size_t i = 0; i + 1 < recovered.size(); ++i) before.recovered += recovered[i].summary.recovered;
  return before;
}

// Redo of the logs of a chain of runs, over the state that the first one starts from.
template <class R>
std::vector<RecoveredRun> ReplayChainBy(const Options& options, const OldRuns& runs, WorkloadRef workload,
                                        Database& database, const std::function<void()>* replayed) {
  std::vector<RecoveredRun> recovered(runs.chain.size());
  for (size_t i = 0; i < runs.chain.size(); ++i) {
    R recovery(ReplaySettingsOf(options));
    const ReadProgress progress(SourcesOf(runs.chain[i]), runs.chain[i].number, 1);
    const auto replay = [&](auto* generator) {
      return Recover(recovery, progress.logs(), database, *generator, options.thread_cnt,
                     options.verify ? &recovered[i].names : nullptr, i + 1 == runs.chain.size() ? replayed : nullptr);
    };
    recovered[i].summary = std::visit(replay, workload);
    const RowAnchor* const rows = runs.chain[i].rows();
    if (rows == nullptr) continue;
    recovered[i].summary.ended_below = rows->sequences;
    recovered[i].summary.KeepNamesUpTo(rows->sequences);
    std::visit([&](auto* adopting) { adopting->Adopt(database, options.seed); }, workload);
  }
  return recovered;
}

// The records of one log in their order, each of them looked at once.
template <class R>
RecoveredRun AnalyseRun(const Options& options, const OldRun& run, RowChains& chains) {
  RecoveredRun recovered;
  R recovery(ReplaySettingsOf(options));
  const ReadProgress progress(SourcesOf(run), run.number, 1);
  chains.StartRun();
  recovery.Open(progress.logs());
  const auto analyse = [&](WorkerId worker) {
    while (recovery.Decode(worker)) {
      while (TxnRecord* record = recovery.NextReady(worker)) {
        chains.Note(*record, recovery.source(record->log));
        recovery.MarkReplayed(worker);
      }
    }
  };
  RunWorkers(options.thread_cnt, analyse, [&] { recovery.Stop(); });
  recovered.summary = recovery.Finish();
  chains.ReadFrom(SourcesOf(run).front(), recovered.summary.frontier.front());
  return recovered;
}

template <class R>
std::vector<RecoveredRun> AnalyseRunsBy(const Options& options, const OldRuns& runs, RowChains& chains) {
  std::vector<RecoveredRun> recovered;
  if constexpr (requires { R::kTotalOrder; }) {
    for (const OldRun& run : runs.chain) recovered.push_back(AnalyseRun<R>(options, run, chains));
  }
  CHECK(!recovered.empty());
  return recovered;
}

// Whether a scheme's recovery restores pages from a backup, with its logs, instead of replaying transactions.
template <class R>
concept Restarts = requires(R& recovery, const RestartInput& input) {
  recovery.Restart(input, nullptr, nullptr);
};

uint64_t RowCount(const Database& database) {
  uint64_t rows = 0;
  for (uint16_t i = 0; i < database.table_count(); ++i) rows += database.table(TableId(i)).row_count();
  return rows;
}

// A run that starts from a backup of its own: its pages are restored, and the workload builds the rest.
template <class R>
RecoveredRun RestartRun(const Options& options, FileSystem& files, const OldRun& run, WorkloadRef workload,
                        Database& database, const std::function<void()>* replayed) {
  CheckAnchorMatches(run, database);
  const BackupReader backup = OpenBackup(files, run);
  RecoveredRun recovered;
  R recovery(ReplaySettingsOf(options));
  const ReadProgress progress(SourcesOf(run), run.number, run.anchor->method == DiffMethod::kDl1p ? 1 : 2);
  recovered.summary = recovery.Restart({progress.logs(), *run.anchor, &backup, &database},
                                       options.verify ? &recovered.names : nullptr, replayed);
  std::visit([&](auto* adopting) { adopting->Adopt(database, options.seed); }, workload);
  return recovered;
}

template <class R>
std::vector<RecoveredRun> ReplayRunsBy(const Options& options, FileSystem& files, const OldRuns& runs,
                                       WorkloadRef workload, Database& database,
                                       const std::function<void()>* replayed) {
  if constexpr (Restarts<R>) {
    // It is the whole chain.
    CHECK(runs.chain.size() == 1);
    std::vector<RecoveredRun> recovered;
    recovered.push_back(RestartRun<R>(options, files, runs.newest(), workload, database, replayed));
    return recovered;
  } else {
    return ReplayChainBy<R>(options, runs, workload, database, replayed);
  }
}

template <class R, class WorkloadT>
RecoveryResult RecoverOver(const Options& options, LogStorage& storage, const LogTraits& traits, WorkloadT& workload) {
  RecoveryResult result;
  Laps laps;

  const OldRuns runs = storage.Open(options);
  result.run_number = runs.newest().number;
  result.directories = storage.Describe(options, runs.newest());
  result.threads = options.thread_cnt;
  result.open_seconds = laps.Next();

  RowLayout layout;
  if (IsReplayedInManyVersions(runs.newest().header())) layout.cc_bytes = kVersionChainBytes;
  Database database(layout, options.thread_cnt);
  if (traits.needs_pages) database.PageEveryTable(options.page_bytes, RowsPerPage(runs));
  CreateTables(options, workload, database);
  for (const OldRun& run : runs.chain) CheckLogsMatch(run, traits, SchemaHash(database));
  const uint64_t checkpoint_rows =
      LoadStart(StartStateOf(runs), storage.files(), options.seed, options.thread_cnt, &workload, database);
  result.load_seconds = laps.Next();

  const std::function<void()> replayed = [&] { result.replay_seconds = laps.Next(); };
  const std::vector<RecoveredRun> recovered =
      ReplayRunsBy<R>(options, storage.files(), runs, &workload, database, &replayed);
  observer::Recovered(database);
  TakeSummary(recovered.back().summary, result);
  if constexpr (Restarts<R>) result.restart = recovered.back().summary.restart;
  result.before = AncestryOf(recovered, runs);
  result.finish_seconds = laps.Next();
  result.before.checkpoint_rows = Restarts<R> ? RowCount(database) : checkpoint_rows;
  (void)laps.Next();  // the count is no part of a recovery

  if (options.verify) {
    for (const RecoveredRun& run : recovered) {
      const std::vector<uint64_t> ids = SortedIds(run.names);
      result.recovered_ids.insert(result.recovered_ids.end(), ids.begin(), ids.end());
    }
    const Verification verification = VerifyRecovery(options, storage.files(), runs, recovered, &workload, database);
    result.verified = verification.checks;
    result.digest = verification.digest.Hex();
    result.verify_seconds = laps.Next();
  }
  return result;
}

template <class R>
RecoveryResult RecoverBy(const Options& options, LogStorage& storage, const LogTraits& traits) {
  return WithWorkload(options, [&](auto& workload) { return RecoverOver<R>(options, storage, traits, workload); });
}

struct Steps {
  decltype(&RecoverBy<void>) run;
  decltype(&ReplayRunsBy<void>) replay_runs;
  decltype(&AnalyseRunsBy<void>) analyse_runs;
};

template <size_t kNumber>
using RecoveryOf = typename TypesOf<kSchemes[kNumber].scheme>::Recovery;

// By the scheme's number. Schemes with the same recovery share its code.
template <size_t... kNumbers>
constexpr auto AllSteps(std::index_sequence<kNumbers...>) {
  return std::array{Steps{&RecoverBy<RecoveryOf<kNumbers>>, &ReplayRunsBy<RecoveryOf<kNumbers>>,
                          &AnalyseRunsBy<RecoveryOf<kNumbers>>}...};
}

const Steps& StepsOf(format::Scheme scheme) {
  static constexpr auto kSteps = AllSteps(std::make_index_sequence<kSchemes.size()>());
  return kSteps[static_cast<size_t>(scheme)];
}

}  // namespace

std::vector<LogSource> SourcesOf(const OldRun& run) {
  std::vector<LogSource> sources;
  for (size_t i = 0; i < run.devices.size(); ++i) {
    const format::FileHeader& header = run.headers[i];
    LogSource& source = sources.emplace_back();
    source.device = run.devices[i].get();
    source.run_id = header.run_id;
    source.ring_bytes = header.ring_bytes;
    source.log_index = static_cast<uint32_t>(i);
    source.log_count = static_cast<uint32_t>(run.devices.size());
    source.start = Lsn(header.start_lsn);
    source.many_versions = IsReplayedInManyVersions(header);
    if (run.manifest && source.many_versions) source.first_timestamp = TimestampOf(run.manifest->first_stamp);
    if (run.frontier) {
      source.stamp_end = run.frontier->stamp;
      source.durable_until = run.frontier->lsns[i];
    }
    if (const RowAnchor* const rows = run.rows()) {
      source.needed = rows->start[i];
      source.durable_until = rows->end[i];
      source.durable_shown_by = "row-anchor";
    }
    if (run.frozen) source.stamp_end = run.frozen->stamp_end;
    if (run.frozen) source.frozen_end = run.frozen->frontier[i];
  }
  return sources;
}

RecoveryResult RunRecovery(const Options& options, LogStorage& storage, const LogTraits& traits) {
  if (traits.version_heap) return RecoverHeap(options, storage, traits);
  return StepsOf(traits.scheme).run(options, storage, traits);
}

std::vector<RecoveredRun> ReplayRuns(format::Scheme scheme, const Options& options, FileSystem& files,
                                     const OldRuns& runs, WorkloadRef workload, Database& database,
                                     const std::function<void()>* replayed) {
  return StepsOf(scheme).replay_runs(options, files, runs, workload, database, replayed);
}

std::vector<RecoveredRun> AnalyseRuns(format::Scheme scheme, const Options& options, const OldRuns& runs,
                                      RowChains& chains) {
  return StepsOf(scheme).analyse_runs(options, runs, chains);
}

std::vector<uint32_t> RowsPerPage(const OldRuns& runs) {
  std::vector<uint32_t> rows;
  if (!runs.newest().anchor) return rows;
  for (const BackupAnchor::OfTable& table : runs.newest().anchor->tables) rows.push_back(table.rows_per_page);
  return rows;
}

}  // namespace dbx
