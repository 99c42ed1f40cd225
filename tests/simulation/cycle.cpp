#include "tests/simulation/cycle.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>

#include "base/error.h"
#include "logging/device/faulty_file_system.h"
#include "system/log_files.h"
#include "tests/simulation/damage.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/slow_files.h"

namespace dbx::sim {
namespace {

constexpr uint32_t kRun = UINT32_MAX;  // the violation is the run's own
constexpr uint32_t kGenerationsMax = 3;

// As FaultyFileSystem::kCrashes.
constexpr const char* kKindNames[] = {"un-synced writes lost", "un-synced writes kept", "any sectors lost",
                                      "writes reordered",      "sectors torn",          "files truncated"};

bool IsDevices(const Error& error) {
  return error.status() == ExitStatus::kIo || error.status() == ExitStatus::kNoSpace;
}
bool IsRefusal(const Error& error) {
  return error.status() == ExitStatus::kCorrupt || error.status() == ExitStatus::kMismatch;
}

struct Crash {
  FaultyFileSystem::Image image;
  std::vector<TxnId> acknowledged;
  bool has_begun = false;  // a transaction of this run
  std::string kind;
};

// One run of the engine on files of its own, and its crashes. The first generation starts from nothing, each later one
// from a crash of the one before.
class Generation {
 public:
  Generation(const Trial& trial, uint32_t number, std::mt19937_64& random, Tally& tally)
      : trial_(trial), number_(number), random_(random), tally_(tally), files_(std::make_unique<FaultyFileSystem>()) {}
  void StartFrom(const FaultyFileSystem::Image& image) { files_ = std::make_unique<FaultyFileSystem>(image); }

  // Runs it to its end, or to a device's; the last crash is that of the end.
  void Run(const Options& options) {
    PlanCrashes(options);
    PlanFaults();
    const Plan plan = PlanOf(options, random_());
    SlowFiles slow(*files_, random_() % 100'000, 4);
    LogStorage storage(slow);
    try {
      const auto body = [&] {
        if (number_ > 1) PlanEarlyCrashes();
        Registry::Global().Create(options)->Run(options, storage);
      };
      tally_.steps += Simulate(plan, body).steps;
    } catch (const Error& error) {
      if (device_fault_.empty() || !IsDevices(error)) throw Failed(error);
      ++tally_.faults[device_fault_];
    } catch (const std::exception& error) {
      throw Failed(error);
    }
    ++tally_.runs;
    TakeCrash();
  }

  std::vector<Crash>& crashes() { return crashes_; }

 private:
  Violation Failed(const std::exception& error) const {
    return Violation("run " + std::to_string(number_) + " failed: " + error.what(), kRun);
  }

  // Crashes fall some steps after the begin of a transaction, or after that of the last.
  void PlanCrashes(const Options& options) {
    constexpr uint64_t kStepsAfter = 500;
    constexpr uint64_t kStepsAfterLast = 5000;
    const uint64_t txns = options.thread_cnt * options.max_txns_per_thread;
    std::multimap<uint64_t, uint64_t> steps_after_begin;
    const uint32_t crashes = number_ == 1 ? trial_.crashes : 2;
    for (uint32_t i = 0; i < crashes; ++i) {
      const uint64_t txn = 1 + random_() % txns;
      steps_after_begin.emplace(txn, random_() % (txn == txns ? kStepsAfterLast : kStepsAfter));
    }
    oracle.on_begin = [this, steps_after_begin, begun = uint64_t{0}]() mutable {
      has_begun_ = true;
      if (trial_.control == Control::kSyncsLie) files_->LieAboutSyncs();
      const auto [first, last] = steps_after_begin.equal_range(++begun);
      for (auto it = first; it != last; ++it) AfterSteps(it->second, [this] { TakeCrash(); });
    };
    PlanCrashesAtAcknowledgements(txns);
  }

  // What is acknowledged must be durable by then: the most that a crash at that very moment may take.
  void PlanCrashesAtAcknowledgements(uint64_t txns) {
    std::vector<uint64_t> at;
    for (int i = 0; i < 2; ++i) at.push_back(1 + random_() % txns);
    oracle.on_acknowledge = [this, at, given = uint64_t{0}](TxnId) mutable {
      if (std::count(at.begin(), at.end(), ++given) > 0) TakeCrash(0, "at an acknowledgement, un-synced writes lost");
    };
  }

  // While it recovers, freezes, writes its checkpoint and its manifest.
  void PlanEarlyCrashes() {
    for (int i = 0; i < 2; ++i) AfterSteps(random_() % 8000, [this] { TakeCrash(); });
  }

  // A quarter of the runs meet a device that fails.
  void PlanFaults() {
    using Operation = FaultyFileSystem::Operation;
    if (random_() % 4 != 0 || trial_.control != Control::kNone) return;
    const bool on_write = random_() % 2 == 0;
    const bool no_space = random_() % 2 == 0;
    device_fault_ = std::string(no_space ? "ENOSPC" : "EIO") + (on_write ? " on write" : " on sync");
    files_->Fail(on_write ? Operation::kWrite : Operation::kSync, 1 + random_() % 16, no_space ? ENOSPC : EIO,
                 random_() % 2 == 0);
  }

  void TakeCrash() {
    const size_t policy = random_() % std::size(FaultyFileSystem::kCrashes);
    TakeCrash(policy, kKindNames[policy]);
  }
  void TakeCrash(size_t policy, const char* kind) {
    crashes_.push_back(
        {files_->CrashImage(FaultyFileSystem::kCrashes[policy], random_()), oracle.acknowledged(), has_begun_, kind});
  }

  const Trial& trial_;
  const uint32_t number_;
  std::mt19937_64& random_;
  Tally& tally_;
  std::unique_ptr<FaultyFileSystem> files_;
  std::vector<Crash> crashes_;
  bool has_begun_ = false;
  std::string device_fault_;  // what the run was to meet
};

class Cycle {
 public:
  Cycle(const Trial& trial, Tally& tally) : trial_(trial), tally_(tally), random_(trial.seed ^ 0xc4a5) {}

  void Run() {
    options_ = OptionsOf(trial_.cell, trial_.seed, trial_.limits);
    oracle.Reset();
    Generation first(trial_, 1, random_, tally_);
    Options options = options_;
    options.verify = random_() % 2 == 0;
    if (trial_.control == Control::kNoLog) {
      options.log = "LOG_NO";
      options.num_logger = 1;
    }
    first.Run(options);
    if (trial_.control == Control::kNoLog) return CheckOracle({}, first.crashes().back().acknowledged, 0);
    RecoverAll(first, 1, {});
  }

 private:
  // `before`: what had been recovered, and served, of earlier generations.
  void RecoverAll(Generation& run, uint32_t generation, const std::vector<uint64_t>& before) {
    const Oracle then = oracle;
    for (uint32_t i = 0; i < run.crashes().size(); ++i) {
      Crash& crash = run.crashes()[i];
      oracle = then;
      if (random_() % 8 == 0 && trial_.control == Control::kNone) {
        RecoverDamaged(crash, i);
        continue;
      }
      const auto recovered = Recover(crash, generation, before, i);
      if (!recovered || generation == kGenerationsMax || random_() % (generation == 1 ? 3 : 2) != 0) continue;
      Continue(crash, generation + 1, *recovered);
    }
  }

  void Continue(const Crash& crash, uint32_t generation, const std::vector<uint64_t>& recovered) {
    oracle.NewGeneration(recovered);
    Options options = options_;
    options.continue_run = true;
    options.thread_cnt = std::min<uint32_t>(1 + random_() % 3, trial_.limits.workers);
    options.max_txns_per_thread = std::min<uint64_t>(1 + random_() % 20, trial_.limits.txns);
    options.checkpoint = random_() % 3 == 0;
    options.drop_old_runs = options.checkpoint && random_() % 2 == 0;
    options.verify = random_() % 4 == 0;
    Generation next(trial_, generation, random_, tally_);
    next.StartFrom(crash.image);
    next.Run(options);
    RecoverAll(next, generation, recovered);
    ++tally_.faults[generation == 2 ? "continued" : "continued twice"];
  }

  // The recovered transactions of all generations; nothing where there was nothing to recover yet.
  std::optional<std::vector<uint64_t>> Recover(const Crash& crash, uint32_t generation,
                                               const std::vector<uint64_t>& before, uint32_t index) {
    RecoveryResult result;
    try {
      result = RecoverImage(crash.image);
    } catch (const Error& error) {
      if (generation == 1 && !crash.has_begun && crash.acknowledged.empty()) return std::nullopt;
      throw Violation(error.what(), index);
    } catch (const std::exception& error) {
      throw Violation(error.what(), index);
    }
    std::vector<uint64_t> recovered = result.recovered_ids;
    // A checkpoint stands for all that came before it.
    if (result.before.checkpoint_rows > 0) recovered.insert(recovered.end(), before.begin(), before.end());
    std::sort(recovered.begin(), recovered.end());
    recovered.erase(std::unique(recovered.begin(), recovered.end()), recovered.end());
    CheckOracle(recovered, crash.acknowledged, index);
    if (generation > 1) CheckNoResurrection(recovered, before, index);
    CountCycle(crash.kind, crash, result);
    return recovered;
  }

  // Refused, or what the reference recovers from the damaged logs. What was acknowledged last may be lost by damage
  // that looks like a torn tail.
  void RecoverDamaged(Crash& crash, uint32_t index) {
    const std::string damage = Damage(crash.image, random_);
    if (damage.empty()) return;
    RecoveryResult result;
    try {
      result = RecoverImage(crash.image);
    } catch (const Error& error) {
      if (!IsRefusal(error) && crash.has_begun) throw Violation(damage + ": " + error.what(), index);
      ++tally_.refused;
    } catch (const std::exception& error) {
      throw Violation(damage + ": " + error.what(), index);
    }
    CountCycle(damage, crash, result);
  }

  RecoveryResult RecoverImage(const FaultyFileSystem::Image& image) {
    FaultyFileSystem files(image);
    LogStorage storage(files);
    Options options = options_;
    options.thread_cnt = 1 + random_() % 4;
    options.verify = true;
    const Plan plan = PlanOf(options, random_());
    RecoveryResult result;
    Simulate(plan, [&] { result = Registry::Global().Create(options)->Recover(options, storage); });
    return result;
  }

  void CheckOracle(const std::vector<uint64_t>& recovered, const std::vector<TxnId>& acknowledged,
                   uint32_t index) const {
    if (const auto violation = oracle.ViolationOf(recovered, acknowledged)) throw Violation(*violation, index);
  }

  // I7: what was dropped when the run was continued stays dropped, what was served stays.
  void CheckNoResurrection(const std::vector<uint64_t>& recovered, const std::vector<uint64_t>& before,
                           uint32_t index) const {
    if (!std::includes(recovered.begin(), recovered.end(), before.begin(), before.end())) {
      throw Violation("I7: a transaction that was recovered, and served, is lost", index);
    }
    for (const uint64_t id : recovered) {
      if (!std::binary_search(before.begin(), before.end(), id) && !oracle.IsOfThisGeneration(TxnId{id})) {
        throw Violation("I7: a transaction that was dropped has come back", index);
      }
    }
  }

  void CountCycle(const std::string& kind, const Crash& crash, const RecoveryResult& result) {
    ++tally_.cycles;
    ++tally_.faults[kind];
    tally_.acknowledged += crash.acknowledged.size();
    tally_.recovered += result.recovered;
    tally_.dropped += result.dropped_dependency;
  }

  const Trial& trial_;
  Tally& tally_;
  std::mt19937_64 random_;
  Options options_;
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
