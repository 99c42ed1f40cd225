#include "tests/simulation/cycle.h"

#include <cerrno>
#include <random>

#include "base/error.h"
#include "logging/device/faulty_file_system.h"
#include "system/ack_file.h"
#include "system/log_files.h"
#include "tests/simulation/damage.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/slow_files.h"

namespace dbx::sim {
namespace {

constexpr uint32_t kRun = UINT32_MAX;  // the violation is the run's own

// As FaultyFileSystem::kCrashes.
constexpr const char* kKindNames[] = {"un-synced writes lost", "un-synced writes kept", "any sectors lost",
                                      "writes reordered",      "sectors torn",          "files truncated"};

struct Crash {
  FaultyFileSystem::Image image;
  std::vector<uint64_t> acknowledged_writers;  // ascending
  size_t acknowledged = 0;                     // of the oracle's list
  bool never_ran = false;                      // the run failed before its first transaction
  std::string kind;
};

class Cycle {
 public:
  Cycle(const Trial& trial, Tally& tally) : trial_(trial), tally_(tally), random_(trial.seed ^ 0xc4a5) {}

  void Run() {
    Options options = OptionsOf(trial_.cell, trial_.seed, trial_.limits);
    oracle.Reset();
    PlanCrashes(options);
    PlanFaults();
    RunEngine(options);
    ++tally_.runs;
    TakeCrash();
    if (trial_.control == Control::kNoLog) return CheckOracle({}, crashes_.size() - 1);
    for (uint32_t i = 0; i < crashes_.size(); ++i) Recover(options, i);
  }

 private:
  void RunEngine(Options options) {
    if (trial_.control == Control::kNoLog) {
      options.log = "LOG_NO";
      options.num_logger = 1;
    }
    options.verify = random_() % 2 == 0;
    const Plan plan = PlanOf(options, trial_.seed);
    SlowFiles slow(files_, random_() % 100'000, 4);
    LogStorage storage(slow);
    try {
      tally_.steps += Simulate(plan, [&] { Registry::Global().Create(options)->Run(options, storage); }).steps;
    } catch (const Error& error) {
      const bool is_the_devices = error.status() == ExitStatus::kIo || error.status() == ExitStatus::kNoSpace;
      if (device_fault_.empty() || !is_the_devices) {
        throw Violation(std::string("the run failed: ") + error.what(), kRun);
      }
      ++tally_.faults[device_fault_];
    } catch (const std::exception& error) {
      throw Violation(std::string("the run failed: ") + error.what(), kRun);
    }
  }

  // A quarter of the runs meet a device that fails.
  void PlanFaults() {
    using Operation = FaultyFileSystem::Operation;
    if (trial_.control == Control::kSyncsLie) files_.LieAboutSyncs();
    if (random_() % 4 != 0) return;
    const bool on_write = random_() % 2 == 0;
    const bool no_space = random_() % 2 == 0;
    device_fault_ = std::string(no_space ? "ENOSPC" : "EIO") + (on_write ? " on write" : " on sync");
    files_.Fail(on_write ? Operation::kWrite : Operation::kSync, 1 + random_() % 16, no_space ? ENOSPC : EIO,
                random_() % 2 == 0);
  }

  // Crashes fall some steps after the begin of a transaction, or after that of the last.
  void PlanCrashes(const Options& options) {
    constexpr uint64_t kStepsAfter = 500;
    constexpr uint64_t kStepsAfterLast = 5000;
    const uint64_t txns = options.thread_cnt * options.max_txns_per_thread;
    std::multimap<uint64_t, uint64_t> steps_after_begin;
    for (uint32_t i = 0; i < trial_.crashes; ++i) {
      const uint64_t txn = 1 + random_() % txns;
      steps_after_begin.emplace(txn, random_() % (txn == txns ? kStepsAfterLast : kStepsAfter));
    }
    oracle.on_begin = [this, steps_after_begin, begun = uint64_t{0}]() mutable {
      has_begun_ = true;
      const auto [first, last] = steps_after_begin.equal_range(++begun);
      for (auto it = first; it != last; ++it) AfterSteps(it->second, [this] { TakeCrash(); });
    };
  }

  void TakeCrash() {
    constexpr size_t kPolicies = std::size(FaultyFileSystem::kCrashes);
    const size_t policy = random_() % kPolicies;
    Crash crash;
    crash.kind = kKindNames[policy];
    crash.never_ran = !has_begun_;
    crash.image = files_.CrashImage(FaultyFileSystem::kCrashes[policy], random_());
    for (const TxnId id : oracle.acknowledged()) {
      if (oracle.HasWritten(id)) crash.acknowledged_writers.push_back(id.value);
    }
    std::sort(crash.acknowledged_writers.begin(), crash.acknowledged_writers.end());
    crash.acknowledged = oracle.acknowledged().size();
    crashes_.push_back(std::move(crash));
  }

  void Recover(Options options, uint32_t index) {
    Crash& crash = crashes_[index];
    options.thread_cnt = 1 + random_() % 4;
    options.verify = true;
    std::string damage;
    if (random_() % 8 == 0) damage = Damage(crash.image, random_);
    // What was acknowledged last may be lost by damage that looks like a torn tail.
    if (damage.empty()) options.ack_file = "oracle";
    AckFile::expected = crash.acknowledged_writers;
    FaultyFileSystem files(crash.image);
    LogStorage storage(files);
    RecoveryResult result;
    try {
      const Plan plan = PlanOf(options, random_());
      Simulate(plan, [&] { result = Registry::Global().Create(options)->Recover(options, storage); });
    } catch (const Error& error) {
      const bool is_refusal = error.status() == ExitStatus::kCorrupt || error.status() == ExitStatus::kMismatch;
      if (crash.never_ran) return;
      if (damage.empty() || !is_refusal) throw Violation(error.what(), index);
      ++tally_.refused;
    } catch (const std::exception& error) {
      throw Violation(error.what(), index);
    }
    if (damage.empty()) CheckOracle(result.recovered_ids, index);
    ++tally_.cycles;
    ++tally_.faults[damage.empty() ? crash.kind : damage];
    tally_.acknowledged += crash.acknowledged;
    tally_.recovered += result.recovered;
    tally_.dropped += result.dropped_dependency;
  }

  void CheckOracle(const std::vector<uint64_t>& recovered, size_t crash) {
    if (const auto violation = oracle.ViolationOf(recovered, crashes_[crash].acknowledged)) {
      throw Violation(*violation, static_cast<uint32_t>(crash));
    }
  }

  const Trial& trial_;
  Tally& tally_;
  std::mt19937_64 random_;
  FaultyFileSystem files_;
  std::vector<Crash> crashes_;
  bool has_begun_ = false;
  std::string device_fault_;  // what the run was to meet
};

std::optional<std::string> ViolationOf(const Trial& trial) {
  Tally tally;
  try {
    Try(trial, tally);
  } catch (const Violation& violation) {
    return violation.what();
  }
  return std::nullopt;
}

}  // namespace

void Try(const Trial& trial, Tally& tally) { Cycle(trial, tally).Run(); }

Trial Shrink(Trial trial, std::string& violation) {
  const Options options = OptionsOf(trial.cell, trial.seed, trial.limits);
  trial.limits = {options.thread_cnt, options.max_txns_per_thread};
  const auto try_smaller = [&](Trial smaller) {
    const auto still = ViolationOf(smaller);
    if (still) {
      trial = smaller;
      violation = *still;
    }
    return still.has_value();
  };
  for (bool shrunk = true; shrunk;) {
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
