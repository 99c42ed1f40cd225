#include "tests/simulation/cluster/cluster_trial.h"

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <sstream>
#include <string>

#include "base/check.h"
#include "tests/simulation/cluster/cluster_checks.h"
#include "tests/simulation/cluster/cluster_database.h"
#include "tests/simulation/cluster/cluster_faults.h"
#include "tests/simulation/cluster/cluster_setup.h"
#include "tests/simulation/cluster/sim_cluster.h"
#include "tests/simulation/oracle.h"

namespace dbx::sim {
namespace {

// Of the child; a trial takes some milliseconds.
constexpr unsigned kSecondsMax = 30;
constexpr char kViolationMark[] = "violation: ";
// Of a transaction, where nothing is slow: less than waits end by, and news of all ENDs come by.
constexpr uint64_t kCalmNanosMax = 450'000'000;
constexpr uint64_t kWorkersNanosMax = 40'000'000'000;

void AwaitWorkers(SimCluster& cluster) {
  const uint64_t until = NowNanos() + kWorkersNanosMax;
  while (!cluster.AreWorkersDone()) {
    cluster.ThrowIfFailed();
    if (NowNanos() > until) throw Violation("I11: the workers do not end" + cluster.Description());
    cluster.NoteApplied();
    SleepFor(200'000);
  }
  cluster.ThrowIfFailed();
}

void Strike(SimCluster& cluster, ClusterFaults& faults) {
  for (uint32_t i = 0; i < cluster.setup().faults + 2 * cluster.setup().deaths; ++i) {
    SleepFor(Random() % cluster.setup().fault_nanos_max);
    faults.Strike();
  }
  SleepFor(Random() % (2 * cluster.setup().fault_nanos_max));
  faults.MendAll();
}

void Count(const SimCluster& cluster, const ClusterProgress& progress, const CheckedCluster& checked,
           const ClusterFaults& faults, Tally& tally) {
  ++tally.runs;
  ++tally.cycles;
  tally.acknowledged += checked.acknowledged;
  tally.recovered += checked.committed;
  const auto add = [&](const char* name, uint64_t count) {
    if (count > 0) tally.faults[name] += count;
  };
  add("MM page buffers compared", checked.pages_of_buffers);
  add("MM mini-transactions replayed", checked.records);
  add("MM splits", checked.splits);
  add("MM rolled back", progress.rolled_back);
  for (const auto& [result, count] : progress.conflicts) {
    add(result == mm::WaitResult::kVictim ? "MM victims of deadlocks" : "MM lock timeouts", count);
  }
  for (uint32_t i = 0; i < cluster.masters(); ++i) {
    if (!cluster.IsAlive({mm::Role::kMaster, static_cast<uint8_t>(i)})) continue;
    mm::Master& master = cluster.master(i).master();
    add("MM page locks released", master.locks().counters().releases);
    add("MM pages evicted", master.pages().counters().evicted);
  }
  add("MM losers undone", checked.losers);
  for (const auto& [kind, count] : faults.counts()) add(("MM " + kind).c_str(), count);
}

void RunBody(const ClusterSetup& setup, const Trial& trial, Tally& tally) {
  ClusterDatabase& database = DatabaseOf(setup);
  oracle.Reset();
  oracle.Loaded(database.rows());
  database.Reset(setup.masters * kClusterWorkersMax, setup.calls);
  SimCluster cluster(setup, database, trial.seed);
  ClusterFaults faults(cluster, trial.seed);
  try {
    cluster.Start();
    if (setup.faults + setup.deaths > 0) Strike(cluster, faults);
    cluster.AwaitStarts();
    AwaitWorkers(cluster);
    // Victims of deadlocks begin anew, some of them often.
    const bool has_victims = cluster.progress().conflicts.contains(mm::WaitResult::kVictim);
    if (setup.is_calm && !has_victims && oracle.longest_wait_nanos() > kCalmNanosMax) {
      throw Violation("I11: a transaction took " + std::to_string(oracle.longest_wait_nanos()) + " ns");
    }
    const CheckedCluster checked = CheckCluster(cluster, database);
    Count(cluster, cluster.progress(), checked, faults, tally);
  } catch (...) {
    // Else the simulation would go on for as long as its processes do.
    cluster.KillAll();
    throw;
  }
  cluster.Stop();
  if (!cluster.progress().errors.empty()) throw Violation("at the end: " + cluster.progress().errors.front());
}

// Between processes: "violation: ...", or counters, one a line.
void Tell(const Tally& tally, std::ostream& out) {
  out << "runs " << tally.runs << "\ncycles " << tally.cycles << "\nsteps " << tally.steps << "\nacknowledged "
      << tally.acknowledged << "\nrecovered " << tally.recovered << "\n";
  for (const auto& [name, count] : tally.faults) out << "fault " << count << " " << name << "\n";
}
void Hear(std::istream& in, Tally& tally) {
  std::string name;
  uint64_t count = 0;
  while (in >> name >> count) {
    if (name == "runs") tally.runs += count;
    if (name == "cycles") tally.cycles += count;
    if (name == "steps") tally.steps += count;
    if (name == "acknowledged") tally.acknowledged += count;
    if (name == "recovered") tally.recovered += count;
    std::string rest;
    std::getline(in, rest);
    if (name == "fault") tally.faults[rest.substr(1)] += count;
  }
}

void LimitProcessorTime() {
  const itimerval timer{{0, 0}, {kSecondsMax, 0}};
  ::signal(SIGPROF, SIG_DFL);
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

[[noreturn]] void BeChild(const Trial& trial, int out) {
  ::dup2(out, STDERR_FILENO);
  LimitProcessorTime();
  std::ostringstream text;
  try {
    Tally tally;
    RunClusterTrial(trial, tally);
    Tell(tally, text);
  } catch (const std::exception& error) {
    text << kViolationMark << error.what();
  }
  const std::string bytes = text.str();
  const ssize_t written = ::write(out, bytes.data(), bytes.size());
  ::_exit(written == static_cast<ssize_t>(bytes.size()) ? 0 : 1);
}

std::string ReadAll(int from) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(from, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(got));
  return text;
}

}  // namespace

void RunClusterTrial(const Trial& trial, Tally& tally) {
  const ClusterSetup setup = SetupOf(trial);
  DatabaseOf(setup);
  try {
    const Totals totals = Simulate(setup.plan, [&] { RunBody(setup, trial, tally); });
    tally.steps += totals.steps;
  } catch (const Stuck& stuck) {
    throw Violation(std::string("I11: ") + stuck.what());
  }
}

void TryCluster(const Trial& trial, Tally& tally) {
  // Loaded here, for all children.
  DatabaseOf(SetupOf(trial));
  int ends[2];
  CHECK(::pipe(ends) == 0);
  std::fflush(stdout);
  const pid_t child = ::fork();
  CHECK(child >= 0);
  if (child == 0) BeChild(trial, ends[1]);
  ::close(ends[1]);
  const std::string told = ReadAll(ends[0]);
  ::close(ends[0]);
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  if (told.starts_with(kViolationMark)) throw Violation(told.substr(sizeof kViolationMark - 1));
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) {
    throw Violation("I11: no end within " + std::to_string(kSecondsMax) + " s of processor time");
  }
  if (status != 0) throw Violation("the process ended with status " + std::to_string(status) + ": " + told);
  std::istringstream in(told);
  Hear(in, tally);
}

}  // namespace dbx::sim
