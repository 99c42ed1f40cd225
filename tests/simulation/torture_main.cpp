// build/simulation/torture: runs, crashes and recovers cells under seeds, until a number of cycles or a time is
// over. One process, one thread; scripts/torture starts one per core and adds up.
#include <sys/personality.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/simulation/cycle.h"

namespace {

using namespace dbx::sim;

struct Arguments {
  std::string cells;  // only cells whose name contains this
  uint64_t seed = 1;
  uint64_t cycles = 1000;
  double seconds = 0;
  Limits limits;
  uint32_t crashes = 8;
  bool shrink = true;
};

uint64_t Number(const char* text) { return std::strtoull(text, nullptr, 10); }

bool Take(Arguments& arguments, const std::string& name, const char* value) {
  if (name == "--cells") return arguments.cells = value, true;
  if (name == "--seed") return arguments.seed = Number(value), true;
  if (name == "--cycles") return arguments.cycles = Number(value), true;
  if (name == "--seconds") return arguments.seconds = std::atof(value), true;
  if (name == "--workers") return arguments.limits.workers = static_cast<uint32_t>(Number(value)), true;
  if (name == "--txns") return arguments.limits.txns = Number(value), true;
  if (name == "--crashes") return arguments.crashes = static_cast<uint32_t>(Number(value)), true;
  if (name == "--shrink") return arguments.shrink = Number(value) != 0, true;
  return false;
}

// Places in memory decide in which bucket of the lock table a row falls: they must be the same each time.
void FixAddresses(char** argv) {
  const int now = personality(0xffffffff);
  if (now < 0 || (now & ADDR_NO_RANDOMIZE) != 0 || personality(now | ADDR_NO_RANDOMIZE) < 0) return;
  execv("/proc/self/exe", argv);
}

void Report(const Tally& tally) {
  std::printf(
      "{\"runs\": %lu, \"cycles\": %lu, \"steps\": %lu, \"acknowledged\": %lu, \"recovered\": %lu, \"dropped\": %lu",
      tally.runs, tally.cycles, tally.steps, tally.acknowledged, tally.recovered, tally.dropped);
  for (const auto& [kind, count] : tally.faults) std::printf(", \"%s\": %lu", kind.c_str(), count);
  std::printf("}\n");
  std::fflush(stdout);
}

std::string CommandOf(const Trial& trial) {
  std::string command = "build/simulation/torture --cells " + trial.cell.Name() + " --seed " +
                        std::to_string(trial.seed) + " --crashes " + std::to_string(trial.crashes) + " --cycles 1";
  if (trial.limits.workers != UINT32_MAX) command += " --workers " + std::to_string(trial.limits.workers);
  if (trial.limits.txns != UINT64_MAX) command += " --txns " + std::to_string(trial.limits.txns);
  return command;
}

int Fail(Trial trial, const Violation& violation, bool shrink) {
  std::string what = violation.what();
  std::printf("violation: %s\n  in: %s\n", what.c_str(), CommandOf(trial).c_str());
  std::fflush(stdout);
  if (shrink) {
    trial = Shrink(trial, what);
    std::printf("shrunk: %s\n  reproduce: %s\n", what.c_str(), CommandOf(trial).c_str());
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  FixAddresses(argv);
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc || !Take(arguments, argv[i], argv[i + 1])) {
      std::fprintf(stderr, "error: unknown or incomplete option %s; see tests/simulation/torture_main.cpp\n", argv[i]);
      return 2;
    }
  }
  std::vector<Cell> cells;
  for (const Cell& cell : AllCells()) {
    if (cell.Name().find(arguments.cells) != std::string::npos) cells.push_back(cell);
  }
  if (cells.empty()) {
    std::fprintf(stderr, "error: no cell is named like %s\n", arguments.cells.c_str());
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  Tally tally;
  double reported = 0;
  for (uint64_t n = 0; arguments.seconds > 0 ? elapsed() < arguments.seconds : tally.cycles < arguments.cycles; ++n) {
    const Trial trial{cells[n % cells.size()], arguments.seed + n, arguments.limits, arguments.crashes};
    try {
      Try(trial, tally);
    } catch (const Violation& violation) {
      return Fail(trial, violation, arguments.shrink);
    }
    if (elapsed() > reported + 1) {
      reported = elapsed();
      Report(tally);
    }
  }
  Report(tally);
  return 0;
}
