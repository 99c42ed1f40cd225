// ./rundb and ./rundb-all: parse the flags, find the pair, run or recover it, print what it measured.
//
// Nothing is created before the flags have been understood. Every error is one line on standard error and an
// exit status (base/error.h).
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "logging/file_header.h"
#include "system/environment.h"
#include "system/log_files.h"
#include "system/options.h"
#include "system/output.h"
#include "system/registry.h"

namespace dbx {
namespace {

void Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// Answers -h and its like; false if there is something to run.
bool AnswerQuestion(const Options& options) {
  if (options.show_help) {
    Print(HelpText());
  } else if (options.show_version) {
    Print(std::string("rundb ") + kBuildInfo.commit + (kBuildInfo.dirty ? "-dirty" : "") + "\n");
  } else if (options.list) {
    Print(Registry::Global().ListText());
  } else if (options.show_effective) {
    for (const auto& [name, value] : EffectiveConfiguration(options)) Print(name + "=" + value + "\n");
  } else {
    return false;
  }
  return true;
}

// The pair that wrote the log, whose header also says workload, sizes and seed.
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

void Report(const Options& options, const std::string& record) {
  Print(RecordText(record));
  if (!options.json_file.empty()) AppendRecord(options.json_file, record);
  if (!options.output_file.empty()) WriteSummary(options.output_file, SummaryText(record));
  if (!RecordPassed(record)) throw Error(ExitStatus::kInternal, "the TEST workload failed");
}

void RunOrRecover(Options& options) {
  FileLogStorage logs(options);
  const std::unique_ptr<Engine> engine =
      options.reads_log() ? EngineOfLog(options, logs.storage()) : Registry::Global().Create(options);
  for (const std::string& path : {options.json_file, options.output_file}) {
    if (!path.empty()) CheckAppendable(path);
  }
  if (options.log_recover) {
    const RecoveryResult result = engine->Recover(options, logs.storage());
    Report(options, RecoveryRecord(options, result, ReadEnvironment()));
  } else {
    InstallStopHandlers();
    const RunResult result = engine->Run(options, logs.storage());
    Report(options, RunRecord(options, result, ReadEnvironment()));
  }
}

int Main(int argc, char** argv) {
  std::vector<std::string> warnings;
  Options options = ParseOptions(argc, argv, warnings);
  for (const std::string& warning : warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  if (!AnswerQuestion(options)) RunOrRecover(options);
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
  try {
    return dbx::Main(argc, argv);
  } catch (const dbx::Error& e) {
    return Fail(e.status(), e.what());
  } catch (const std::bad_alloc&) {
    return Fail(ExitStatus::kNoSpace, "out of memory");
  } catch (const std::system_error& e) {
    // Nothing else is asked of the system that it answers so.
    const bool no_thread = e.code() == std::errc::resource_unavailable_try_again;
    if (!no_thread) return Fail(ExitStatus::kInternal, e.what());
    return Fail(ExitStatus::kNoSpace, "no more threads: use a smaller -t, or raise the limit (ulimit -u)");
  } catch (const std::exception& e) {
    return Fail(ExitStatus::kInternal, e.what());
  } catch (...) {
    return Fail(ExitStatus::kInternal, "an exception of unknown type");
  }
}
