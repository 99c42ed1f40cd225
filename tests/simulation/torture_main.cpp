// build/simulation/torture: runs, crashes and recovers cells under seeds, until a number of cycles or a time is
// over. One process, one thread; scripts/torture starts one per core and adds up.
#include <sys/personality.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/mutants/names.h"
#include "tests/simulation/cycle.h"
#include "tests/simulation/history_export.h"
#include "tests/simulation/shrink.h"

namespace {

using namespace dbx::sim;

struct Arguments {
  std::string cells;        // only cells whose name contains this
  uint64_t first_cell = 0;  // where in the order of the cells to begin
  uint64_t seed = 1;
  uint64_t cycles = 1000;
  double seconds = 0;
  Limits limits;
  uint32_t crashes = 8;
  bool shrink = true;
  Control control = Control::kNone;
  std::string mutant;
};

int ListMutants() {
  for (const dbx::MutantName& mutant : dbx::AllMutants())
    std::printf("%s\t%s\t%s\t%s\t%s\n", mutant.name, mutant.cells, mutant.trap, mutant.model, mutant.test);
  return 0;
}

bool TurnOn(Arguments& arguments, const std::string& mutant) {
  arguments.mutant = mutant;
  return dbx::TurnMutantOn(mutant);
}

uint64_t Number(const char* text) { return std::strtoull(text, nullptr, 10); }

bool Take(Arguments& arguments, const std::string& name, const char* value) {
  if (name == "--cells") return arguments.cells = value, true;
  if (name == "--first_cell") return arguments.first_cell = Number(value), true;
  if (name == "--seed") return arguments.seed = Number(value), true;
  if (name == "--cycles") return arguments.cycles = Number(value), true;
  if (name == "--seconds") return arguments.seconds = std::atof(value), true;
  if (name == "--workers") return arguments.limits.workers = static_cast<uint32_t>(Number(value)), true;
  if (name == "--txns") return arguments.limits.txns = Number(value), true;
  if (name == "--steps_max") return arguments.limits.steps = Number(value), true;
  if (name == "--crashes") return arguments.crashes = static_cast<uint32_t>(Number(value)), true;
  if (name == "--shrink") return arguments.shrink = Number(value) != 0, true;
  if (name == "--histories") return history_directory = value, true;
  if (name == "--mutant") return TurnOn(arguments, value);
  if (name == "--control" && std::string(value) == "lying_syncs") return arguments.control = Control::kSyncsLie, true;
  if (name == "--control" && std::string(value) == "no_log") return arguments.control = Control::kNoLog, true;
  return false;
}

// Places in memory decide in which bucket of the lock table a row falls: they must be the same each time.
void FixAddresses(char** argv) {
  const int now = personality(0xffffffff);
  if (now < 0 || (now & ADDR_NO_RANDOMIZE) != 0 || personality(now | ADDR_NO_RANDOMIZE) < 0) return;
  execv("/proc/self/exe", argv);
}

// A control takes the log or its syncs from an engine; a cluster has neither of its own.
std::vector<Cell> CellsNamedLike(const std::string& text, Control control = Control::kNone) {
  std::vector<Cell> cells = AllCells();
  std::erase_if(cells, [&](const Cell& cell) {
    return cell.Name().find(text) == std::string::npos || (cell.masters > 0 && control != Control::kNone);
  });
  return cells;
}

int ListCells(const std::string& text) {
  for (const Cell& cell : CellsNamedLike(text)) std::printf("%s\n", cell.Name().c_str());
  return 0;
}

// In the order in which they are tried, over and over. A TPC-C cell takes ten times as long as another and finds less:
// it comes in one round where others come in four.
std::vector<Cell> Rounds(const std::vector<Cell>& named) {
  constexpr size_t kRounds = 4;
  std::vector<Cell> cells;
  for (size_t round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < named.size(); ++i) {
      if (named[i].workload != dbx::WorkloadKind::kTpcc || i % kRounds == round) cells.push_back(named[i]);
    }
  }
  return cells;
}

void Report(const Tally& tally) {
  std::printf(
      "{\"runs\": %lu, \"cycles\": %lu, \"steps\": %lu, \"acknowledged\": %lu, \"recovered\": %lu, \"dropped\": %lu, "
      "\"refused\": %lu, \"in recovery\": %lu, \"third crash\": %lu",
      tally.runs, tally.cycles, tally.steps, tally.acknowledged, tally.recovered, tally.dropped, tally.refused,
      tally.in_recovery, tally.third);
  for (const auto& [kind, count] : tally.faults) std::printf(", \"%s\": %lu", kind.c_str(), count);
  std::printf(", \"cells\": {");
  const char* comma = "";
  for (const auto& [name, trials] : tally.cells) {
    std::printf("%s\"%s\": %lu", comma, name.c_str(), trials);
    comma = ", ";
  }
  std::printf("}}\n");
  std::fflush(stdout);
}

// The trial alone, in a fresh process, may find other memory than here and schedule otherwise: its line is believed
// once it has made the violation again.
int Fail(Trial trial, const Violation& violation, const Arguments& arguments) {
  const auto command = [&] { return "build/simulation/torture " + OptionsFor(trial, arguments.mutant); };
  std::string what = violation.what();
  std::printf("violation: %s\n  in: %s\n", what.c_str(), command().c_str());
  std::fflush(stdout);
  if (!arguments.shrink) return 1;
  if (!ViolationInFreshProcess(trial, arguments.mutant)) {
    std::printf("not seen again in a fresh process: only in the course of all seeds from %lu on\n", arguments.seed);
    return 1;
  }
  trial = Shrink(trial, arguments.mutant, what);
  std::printf("shrunk: %s\n  reproduce: %s\n", what.c_str(), command().c_str());
  return 1;
}

// A fibre that computes for ever without a step leaves the scheduler no chance to notice. Processor time: a machine
// that was stopped for a while is no hang.
constexpr unsigned kTrialSecondsMax = 40;
std::string what_hangs;  // said if it comes to that
void TellWhatHangs(int) {
  const ssize_t told = ::write(STDOUT_FILENO, what_hangs.data(), what_hangs.size());
  ::_exit(told < 0 ? 2 : 1);
}
// 0: no limit.
void LimitProcessorTime(unsigned seconds) {
  const itimerval timer{{0, 0}, {seconds, 0}};
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}
void Watch(const Trial& trial, const Arguments& arguments) {
  LimitProcessorTime(0);
  what_hangs = "violation: I11: no end within " + std::to_string(kTrialSecondsMax) +
               " s of processor time\n  in: build/simulation/torture " + OptionsFor(trial, arguments.mutant) + "\n";
  ::signal(SIGPROF, TellWhatHangs);
  LimitProcessorTime(kTrialSecondsMax);
}

}  // namespace

int main(int argc, char** argv) {
  FixAddresses(argv);
  if (argc == 2 && std::string(argv[1]) == "--list_mutants") return ListMutants();
  if (argc == 3 && std::string(argv[1]) == "--list_cells") return ListCells(argv[2]);
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc || !Take(arguments, argv[i], argv[i + 1])) {
      std::fprintf(stderr, "error: unknown or incomplete option %s; see tests/simulation/torture_main.cpp\n", argv[i]);
      return 2;
    }
  }
  const std::vector<Cell> cells = Rounds(CellsNamedLike(arguments.cells, arguments.control));
  if (cells.empty()) {
    std::fprintf(stderr, "error: no cell is named like %s\n", arguments.cells.c_str());
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  Tally tally;
  double reported = 0;
  for (uint64_t n = 0; arguments.seconds > 0 ? elapsed() < arguments.seconds : tally.cycles < arguments.cycles; ++n) {
    const Trial trial{cells[(arguments.first_cell + n) % cells.size()], arguments.seed + n, arguments.limits,
                      arguments.crashes, arguments.control};
    ++tally.cells[trial.cell.Name()];
    Watch(trial, arguments);
    try {
      Try(trial, tally);
    } catch (const Violation& violation) {
      LimitProcessorTime(0);
      return Fail(trial, violation, arguments);
    }
    if (elapsed() > reported + 1) {
      reported = elapsed();
      Report(tally);
    }
  }
  Report(tally);
  return 0;
}
