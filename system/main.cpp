// ./rundb and ./rundb-all: parse the flags, find the pair, run or recover it, print the measurements.
//
// Nothing is created before the flags have been parsed. Every error is one line on standard error and an exit status
// (base/error.h).
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/stop.h"
#include "system/cluster/cluster_run.h"
#include "system/command_line/cluster_record.h"
#include "system/command_line/cluster_recovery_record.h"
#include "system/command_line/environment.h"
#include "system/command_line/manual.h"
#include "system/command_line/output.h"
#include "system/command_line/output_file.h"
#include "system/command_line/parse_options.h"
#include "system/command_line/placement_record.h"
#include "system/command_line/series_record.h"
#include "system/pairs/registry.h"
#include "system/replay/cluster_recovery.h"
#include "system/result.h"
#include "system/run_placement.h"
#include "system/runs/file_header.h"
#include "system/runs/log_files.h"
#include "system/runs/replication.h"

namespace dbx {
namespace {

void Print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  ThrowOutput("standard output", errno);
}

// A log must not be opened as descriptor 1 and get the summary.
void CheckStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    // In ascending order, each is the lowest that is free.
    CHECK(::open("/dev/null", O_RDWR) == fd);
    if (fd == STDOUT_FILENO) throw Error(ExitStatus::kIo, "standard output is closed");
  }
}

// Answers -h and its like; false if there is something to run.
bool AnswerQuestion(const Options& options) {
  if (options.show_help) {
    Print(HelpText());
  } else if (options.show_version) {
    Print(std::string("rundb ") + kBuildInfo.commit + (kBuildInfo.dirty ? "-dirty" : "") + "\n");
  } else if (options.show_man_page) {
    Print(ManPage());
  } else if (options.show_bash_completion) {
    Print(BashCompletion());
  } else if (options.list) {
    Print(Registry::Global().ListText());
  } else if (options.show_effective) {
    for (const auto& [name, value] : EffectiveConfiguration(options)) Print(name + "=" + value + "\n");
  } else {
    return false;
  }
  return true;
}

// The pair that wrote the log, whose header also has workload, sizes and seed.
std::unique_ptr<Engine> EngineOfLog(Options& options, LogStorage& logs) {
  {
    const OldRuns runs = logs.Open(options);
    for (const std::string& notice : runs.notices) std::fprintf(stderr, "notice: %s\n", notice.c_str());
    AdoptIdentity(std::string(ConfigText(runs.newest().header())), options);
    // The same run, even if a newer one appears meanwhile.
    options.run = runs.newest().number;
  }
  try {
    return Registry::Global().Create(options);
  } catch (const Error& e) {
    throw Error(ExitStatus::kMismatch, std::string("the log cannot be recovered here: ") + e.what());
  }
}

// The files first: a reader that closes standard output early must not cost the record.
// `series`: the text of its file, or empty.
void Report(const Options& options, const std::string& record, const std::string& series = {}) {
  std::optional<Error> failure;
  try {
    if (!options.json_file.empty()) AppendRecord(options.json_file, record);
    if (!series.empty()) WriteSummary(options.series_file, series);
    if (!options.output_file.empty()) WriteSummary(options.output_file, SummaryText(record));
  } catch (const Error& e) {
    failure = e;
  }
  Print(RecordText(record));
  if (failure) throw *failure;
  if (!RecordPassed(record)) throw Error(ExitStatus::kInternal, "the TEST workload failed");
}

// Ended before there was anything to report, and PASS would be wrong.
struct Interrupted {
  const char* what;
};

void ThrowIfNothingWasMeasured(const RunResult& result) {
  const bool executed =
      std::any_of(result.workers.begin(), result.workers.end(), [](const WorkerStats& w) { return w.executed > 0; });
  if (result.stop_reason == "signal" && !(result.interval_began && executed)) {
    throw Interrupted{"before the measured interval; nothing was measured"};
  }
  if (result.interval_began) return;
  throw Error(ExitStatus::kNoSpace, "the logs reached --log_limit before the measured interval: raise it");
}

void Warn(const std::string& warning) { std::fprintf(stderr, "warning: %s\n", warning.c_str()); }

void RunOrRecover(Options& options) {
  Topology host = RunPlacement::CheckedTopology(options);
  FileLogStorage logs(options);
  const std::unique_ptr<Engine> engine =
      options.reads_log() ? EngineOfLog(options, logs.storage()) : Registry::Global().Create(options);
  // A recovery has no series.
  const std::string series_file = options.log_recover ? "" : options.series_file;
  for (const std::string& path : {options.json_file, options.output_file, series_file}) {
    if (!path.empty()) CheckAppendable(path);
  }
  const RunPlacement placement(options, std::move(host));
  if (const std::string warning = PlacementWarning(placement.result()); !warning.empty()) Warn(warning);
  if (options.log_recover) {
    RecoveryResult result = engine->Recover(options, logs.storage());
    result.placement = placement.result();
    Report(options, RecoveryRecord(options, result, ReadEnvironment()));
  } else {
    InstallStopHandlers();
    RunResult result = engine->Run(options, logs.storage());
    result.replication = logs.EndReplication();
    result.placement = placement.result();
    ThrowIfNothingWasMeasured(result);
    Report(options, RunRecord(options, result, ReadEnvironment()),
           options.series_file.empty() ? "" : SeriesCsv(result.series));
  }
}

void RunMasters(const Options& options) {
  for (const std::string& path : {options.json_file, options.output_file}) {
    if (!path.empty()) CheckAppendable(path);
  }
  InstallStopHandlers();
  const ClusterResult result = RunCluster(options);
  const uint64_t executed = std::accumulate(result.masters.begin(), result.masters.end(), uint64_t{0},
                                            [](uint64_t sum, const MasterResult& one) { return sum + one.executed; });
  if (result.interrupted && executed == 0) {
    throw Interrupted{"before the measured interval; nothing was measured"};
  }
  const std::string record = ClusterRecord(options, result, ReadEnvironment());
  const std::string text = ClusterText(record);
  if (!options.json_file.empty()) AppendRecord(options.json_file, record);
  if (!options.output_file.empty()) WriteSummary(options.output_file, text);
  Print(text);
  if (!result.verified.empty() && result.verified != "consistent") {
    throw Error(ExitStatus::kInternal, "the database is not consistent: " + result.verified);
  }
}

void RecoverMasters(Options& options) {
  for (const std::string& path : {options.json_file, options.output_file}) {
    if (!path.empty()) CheckAppendable(path);
  }
  const ClusterRecoveryResult result = RecoverCluster(options);
  for (const std::string& notice : result.notices) std::fprintf(stderr, "notice: %s\n", notice.c_str());
  const std::string record = ClusterRecoveryRecord(options, result, ReadEnvironment());
  const std::string text = ClusterRecoveryText(record);
  if (!options.json_file.empty()) AppendRecord(options.json_file, record);
  if (!options.output_file.empty()) WriteSummary(options.output_file, text);
  Print(text);
}

int Main(int argc, char** argv) {
  CheckStandardStreams();
  std::vector<std::string> warnings;
  Options options = ParseOptions(argc, argv, warnings);
  for (const std::string& warning : warnings) Warn(warning);
  if (AnswerQuestion(options)) return static_cast<int>(ExitStatus::kOk);
  if (options.masters > 0) {
    options.log_recover ? RecoverMasters(options) : RunMasters(options);
  } else if (options.replica.empty()) {
    RunOrRecover(options);
  } else if (FileLogStorage logs(options); !KeepReplica(options, logs.storage().files())) {
    throw Interrupted{"before the run that it copies had ended"};
  }
  return static_cast<int>(ExitStatus::kOk);
}

int Fail(ExitStatus status, const char* what) {
  std::fprintf(stderr, "error: %s\n", what);
  return static_cast<int>(status);
}

}  // namespace
}  // namespace dbx

int main(int argc, char** argv) {
  using dbx::ExitStatus, dbx::Fail;
  constexpr int kStatusOfSignal = 128;  // as shells say it
  try {
    return dbx::Main(argc, argv);
  } catch (const dbx::Error& e) {
    return Fail(e.status(), e.what());
  } catch (const dbx::Interrupted& interrupted) {
    std::fprintf(stderr, "error: interrupted %s\n", interrupted.what);
    return kStatusOfSignal + dbx::StopSignal();
  } catch (const std::bad_alloc&) {
    return Fail(ExitStatus::kNoSpace, "out of memory");
  } catch (const std::system_error& e) {
    // No other system call here fails with it.
    const bool no_thread = e.code() == std::errc::resource_unavailable_try_again;
    if (!no_thread) return Fail(ExitStatus::kInternal, e.what());
    return Fail(ExitStatus::kNoSpace, "no more threads: use a smaller -t, or raise the limit (ulimit -u)");
  } catch (const std::exception& e) {
    return Fail(ExitStatus::kInternal, e.what());
  } catch (...) {
    return Fail(ExitStatus::kInternal, "an exception of unknown type");
  }
}
