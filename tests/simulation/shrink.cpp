#include "tests/simulation/shrink.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "tests/simulation/cluster/cluster_setup.h"

namespace dbx::sim {
namespace {

// A smaller trial that never ends is told sooner.
constexpr uint64_t kStepsMax = uint64_t{1} << 23;

// Workers and transactions of each, as the seed chose them.
Limits SizesOf(const Trial& trial) {
  if (trial.cell.masters > 0) {
    const ClusterSetup setup = SetupOf(trial);
    return {setup.workers, setup.calls};
  }
  const Options options = OptionsOf(trial.cell, trial.seed, trial.limits);
  return {options.thread_cnt, options.max_txns_per_thread};
}

std::string SignalOrStatus(int status) {
  return WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status))
                             : "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

std::string OptionsFor(const Trial& trial, const std::string& mutant) {
  std::string options = "--cells " + trial.cell.Name() + " --seed " + std::to_string(trial.seed) + " --crashes " +
                        std::to_string(trial.crashes) + " --cycles 1";
  if (trial.limits.workers != UINT32_MAX) options += " --workers " + std::to_string(trial.limits.workers);
  if (trial.limits.txns != UINT64_MAX) options += " --txns " + std::to_string(trial.limits.txns);
  if (trial.control == Control::kSyncsLie) options += " --control lying_syncs";
  if (trial.control == Control::kNoLog) options += " --control no_log";
  if (!mutant.empty()) options += " --mutant " + mutant;
  return options;
}

std::optional<std::string> ViolationInFreshProcess(const Trial& trial, const std::string& mutant) {
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return std::nullopt;
  const std::string command = "'" + std::string(self) + "' " + OptionsFor(trial, mutant) + " --shrink 0 --steps_max " +
                              std::to_string(kStepsMax) + " 2>&1";
  std::FILE* output = popen(command.c_str(), "r");
  if (output == nullptr) return std::nullopt;
  constexpr char kHead[] = "violation: ";
  std::string what;
  for (char line[4096]; std::fgets(line, sizeof line, output) != nullptr;) {
    const std::string text(line, std::string(line).find_last_not_of('\n') + 1);
    if (text.starts_with(kHead)) what = text.substr(sizeof kHead - 1);
  }
  const int status = pclose(output);
  if (status == 0) return std::nullopt;
  return what.empty() ? SignalOrStatus(status) : what;
}

Trial Shrink(Trial trial, const std::string& mutant, std::string& violation) {
  const auto try_smaller = [&](Trial smaller) {
    const auto still = ViolationInFreshProcess(smaller, mutant);
    if (still) {
      trial = smaller;
      violation = *still;
    }
    return still.has_value();
  };
  // Runs that continue it have limits of their own, which these may be below.
  Trial limited = trial;
  limited.limits = SizesOf(trial);
  for (bool shrunk = try_smaller(limited); shrunk;) {
    shrunk = false;
    for (const uint64_t txns : {trial.limits.txns / 2, trial.limits.txns - 1}) {
      Trial smaller = trial;
      smaller.limits.txns = txns;
      if (txns > 0 && txns < trial.limits.txns) shrunk |= try_smaller(smaller);
    }
    if (trial.limits.workers > 1) {
      Trial smaller = trial;
      --smaller.limits.workers;
      shrunk |= try_smaller(smaller);
    }
  }
  return trial;
}

}  // namespace dbx::sim
