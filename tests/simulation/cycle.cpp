#include "tests/simulation/cycle.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "logging/schemes.h"
#include "system/runs/log_files.h"
#include "system/workloads.h"
#include "tests/simulation/allocation.h"
#include "tests/simulation/cluster/cluster_trial.h"
#include "tests/simulation/damage.h"
#include "tests/simulation/generation.h"
#include "tests/simulation/logs_on_disk.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/rows.h"

namespace dbx::sim {
namespace {

constexpr uint32_t kGenerationsMax = 3;

using Image = FaultyFileSystem::Image;
using Ids = std::vector<uint64_t>;  // of transactions, ascending

// How long something took, in virtual time.
class Lap {
 public:
  explicit Lap(uint64_t& nanos) : nanos_(nanos), begin_(NowNanos()) {}
  ~Lap() { nanos_ = NowNanos() - begin_; }
  Lap(const Lap&) = delete;
  Lap& operator=(const Lap&) = delete;

 private:
  uint64_t& nanos_;
  const uint64_t begin_;
};

void SortUnique(Ids& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}
bool Includes(const Ids& all, const Ids& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

// What earlier runs leave to the one that continues them.
struct Past {
  Ids recovered;  // by a recovery like its own; served, and so there for ever, once a transaction of it has begun
  Ids promised;   // of these, what must not be lost before that either
  std::map<uint32_t, Ids> covered;  // by the checkpoints of earlier runs, by the run's number
};

struct Recovered {
  Ids names;  // of the transactions of all generations
  uint32_t run = 0;
  bool has_checkpoint = false;  // of its own
  Ids ended;                    // those of its own that a checkpoint of rows stands for
};

std::vector<RowVersion> LoadedRows(const Options& options) {
  return WithWorkload(options, [&](auto& workload) {
    Database database({}, 1);
    CreateTables(options, workload, database);
    workload.Load(database, options.seed, 1);
    return RowsOf(database);
  });
}

class Cycle {
 public:
  Cycle(const Trial& trial, Tally& tally)
      : trial_(trial),
        tally_(tally),
        random_(trial.seed ^ 0xc4a5),
        trouble_(trial.seed ^ 0x7a6b1e),
        runs_(trial.seed ^ 0x2e9f3),
        redo_(trial.seed ^ 0x4ed0) {}

  void Run() {
    options_ = OptionsOf(trial_.cell, trial_.seed, trial_.limits);
    oracle.Reset();
    oracle.Loaded(LoadedRows(options_));
    Generation first(trial_, 1, random_, trouble_, tally_);
    Options options = options_;
    options.verify = random_() % 2 == 0;
    if (trial_.control == Control::kNoLog) {
      options.log = "LOG_NO";
      options.num_logger = 1;
      options.checkpoint_interval_ms = 0;
      options.checkpoint_bytes = 0;
    }
    first.Run(options);
    if (trial_.control == Control::kNoLog) {
      const std::vector<TxnId>& acknowledged = first.crashes().back().acknowledged;
      CheckHistory({}, acknowledged);
      CheckOracle({}, acknowledged);
    } else {
      RecoverAll(first, 1, {});
    }
    if (!lost_.empty()) throw Violation(lost_);
  }

 private:
  void RecoverAll(Generation& run, uint32_t generation, const Past& past) {
    const Oracle then = oracle;
    if (generation > 1) continued_ = run.crashes().back().files->CrashImage(FaultyFileSystem::Crash::kAllPending);
    const std::vector<TxnId> none;
    for (const Crash& crash : run.crashes()) {
      oracle = then;
      generation_ = generation;
      const auto recovered = Recover(crash, generation, past);
      if (!recovered) continue;
      if (&crash == &run.crashes().back()) CheckHistory(recovered->names, IsControl() ? none : crash.acknowledged);
      // Both draws, whatever the first says.
      const bool first = random_() % 8 == 0, second = trouble_() % 12 == 0;
      if ((first || second) && trial_.control == Control::kNone) RecoverDamaged(crash, past, recovered->names);
      if (trouble_() % 8 == 0) RecoverInNeed(crash, past, recovered->names);
      if (generation == kGenerationsMax || random_() % (crash.was_kill ? 2 : 4) != 0) continue;
      Continue(crash, generation + 1, PastOf(crash, past, *recovered));
    }
  }

  // A power failure between a kill and the commit of the next run may lose recovered transactions that were neither
  // acknowledged nor served; there are none when everything recovered was durable.
  Past PastOf(const Crash& crash, const Past& before, const Recovered& recovered) const {
    Past past{recovered.names, recovered.names, before.covered};
    if (recovered.has_checkpoint) {
      Ids& covered = past.covered.emplace(recovered.run, before.recovered).first->second;
      covered.insert(covered.end(), recovered.ended.begin(), recovered.ended.end());
      SortUnique(covered);
    }
    if (!crash.was_kill) return past;
    past.promised = crash.has_begun ? before.recovered : before.promised;
    for (const TxnId id : crash.acknowledged) {
      if (oracle.HasWritten(id)) past.promised.push_back(id.value);
      for (const TxnId writer : oracle.ReadFrom(id)) past.promised.push_back(writer.value);
    }
    SortUnique(past.promised);
    return past;
  }

  void Continue(const Crash& crash, uint32_t generation, const Past& past) {
    const LogsOnDisk on_disk = ReadLogsOnDisk(crash.files->VisibleImage());
    const std::vector<TxnId> none;
    oracle.NewGeneration(past.recovered, on_disk.names, IsControl() ? none : crash.acknowledged);
    Options options = options_;
    options.continue_run = true;
    options.thread_cnt = std::min<uint32_t>(1 + random_() % 3, trial_.limits.workers);
    options.max_txns_per_thread = std::min<uint64_t>(1 + random_() % 20, trial_.limits.txns);
    options.checkpoint = random_() % 3 == 0;
    options.drop_old_runs = options.checkpoint && random_() % 2 == 0;
    options.verify = random_() % 4 == 0;
    if (HasHeap()) options.checkpoint = options.drop_old_runs = false;
    if (HasRowChains(options.log) && redo_() % 2 == 0) options.redo = "ON_DEMAND";
    Generation next(trial_, generation, random_, trouble_, tally_);
    next.StartFrom(crash);
    next.Run(options);
    if (!MayBeWrong()) CheckFreshNumbers(on_disk, next.crashes().back());
    RecoverAll(next, generation, past);
    ++tally_.faults[generation == 2 ? "continued" : "continued twice"];
    if (options.redo_on_demand()) ++tally_.faults["continued on demand"];
    if (crash.was_kill) ++tally_.faults["continued after a kill"];
    if (crash.has_lost_a_sync) ++tally_.faults["continued in the boot of a failed sync"];
  }

  // Nothing where there was nothing to recover yet.
  std::optional<Recovered> Recover(const Crash& crash, uint32_t generation, const Past& past) {
    RecoveryResult result;
    try {
      result = RecoverFrom(*crash.files->AfterKill());
    } catch (const Error& error) {
      if (!IsRefusalOrIo(error) && !MayBeWrong()) throw Violation(error.what());
      if (!IsUnborn(crash, past)) Lose(error.what());
      return std::nullopt;
    } catch (const std::exception& error) {
      throw Violation(error.what());
    }
    const bool has_checkpoint = result.before.checkpoint_rows > 0 && result.before.runs == 0;
    Recovered recovered{CheckedNamesOf(result, past), result.run_number, has_checkpoint, {}};
    if (!NeedsPages(options_.log)) recovered.ended = oracle.WritersBelow(result.ended_below);
    CheckOracle(recovered.names, crash.acknowledged);
    CheckNoResurrection(recovered.names, crash, past);
    CountCycle(crash.kind, crash, result);
    tally_.in_recovery += generation > 1 && !crash.has_begun;
    tally_.third += generation == kGenerationsMax;
    return recovered;
  }

  // Whether a run lacks a log or its frontier, or one of them its header, as its power failed before they were durable.
  // A backup and its anchor are durable before any log has its name.
  // It may be the first, or one that another run found after a kill and continued; nothing was acknowledged then.
  bool IsUnborn(const Crash& crash, const Past& past) const {
    if (crash.has_begun || !past.promised.empty()) return false;
    const LogsOnDisk found = ReadLogsOnDisk(crash.files->VisibleImage());
    return found.fewest_logs < LogFilesOf(options_) || found.lacks_frontier;
  }

  // The recovered transactions, if the rows say so too. A checkpoint stands for all that was recovered when its run
  // was made.
  Ids CheckedNamesOf(const RecoveryResult& result, const Past& past) {
    Ids names = result.recovered_ids;
    // Their COMMITs may have been given up, as a backup has what they changed; a heap has no record of any.
    const Ids ended =
        oracle.WritersBelow(result.heap ? EndedBelow(result.ended_below, result.heap->life) : result.ended_below);
    names.insert(names.end(), ended.begin(), ended.end());
    if (result.before.checkpoint_rows > 0) {
      // Its own, or that of the oldest run that is needed: the last one that was seen.
      const bool is_older = result.before.runs > 0 && !past.covered.empty();
      const auto seen = is_older ? std::prev(past.covered.end()) : past.covered.find(result.run_number);
      const Ids& covered = seen == past.covered.end() ? past.recovered : seen->second;
      names.insert(names.end(), covered.begin(), covered.end());
    }
    SortUnique(names);
    const auto wrong = oracle.WrongRowOf(names, recovered_rows);
    if (wrong && !MayBeWrong()) throw Violation(*wrong);
    if (wrong) Lose(*wrong);
    return names;
  }

  // Refused, or the same as without damage. Where the damage looks like a torn tail what was written last may be lost,
  // acknowledged or not, but what is left must be whole still.
  void RecoverDamaged(const Crash& crash, const Past& past, const Ids& undamaged) {
    Image image = crash.files->VisibleImage();
    const uint64_t draw = trouble_();
    const uint64_t kind = draw % 4;
    const Damage damage = HasHeap()               ? DamageHeap(image, trouble_)
                          : (draw >> 32) % 2 == 0 ? DamageRuns(image, undamaged)
                          : kind == 0             ? AddForeignLog(image, trouble_)
                          : kind == 1             ? LoseOrSwap(image, trouble_)
                                                  : DamageOneFile(image, random_);
    if (damage.what.empty()) return;
    RecoveryResult result;
    try {
      FaultyFileSystem files(image);
      result = RecoverFrom(files);
      const Ids recovered = CheckedNamesOf(result, past);
      CheckOracle(recovered, {}, /*earlier_readers=*/!damage.may_cut);
      if (damage.may_cut ? !Includes(undamaged, recovered) : recovered != undamaged) {
        throw Violation("I9: another state is recovered, and nothing is refused");
      }
    } catch (const Error& error) {
      if (!IsRefusal(error) || damage.must_not_matter) throw Violation(damage.what + ": " + error.what());
      CheckRefusedByTheEngine(image, damage.what + ": " + error.what());
      ++tally_.refused;
    } catch (const std::exception& error) {
      throw Violation(damage.what + ": " + error.what());
    }
    CountCycle(damage.what, crash, result);
  }

  // Whole runs, the start of files, and a fresh run beside others, which says more than nothing.
  Damage DamageRuns(Image& image, const Ids& undamaged) {
    if (generation_ > 1 || !continued_ || undamaged.empty()) {
      return runs_() % 2 == 0 ? LoseRun(image, runs_) : DamageStart(image, runs_);
    }
    const uint32_t newest = PutBeside(image, *continued_);
    Damage damage = runs_() % 4 == 0   ? LoseRun(image, runs_, newest)
                    : runs_() % 4 == 0 ? Damage{"nothing", false, true}
                    : runs_() % 2 == 0 ? LoseLogs(image, newest)
                                       : DamageStart(image, runs_, newest);
    if (!damage.what.empty()) damage.what += ", of a fresh run beside others";
    return damage;
  }

  // And not by the reference alone, which looks once more at what was recovered.
  void CheckRefusedByTheEngine(const Image& image, const std::string& why) {
    FaultyFileSystem files(image);
    try {
      RecoverFrom(files, 0, /*verify=*/false);
    } catch (const Error& error) {
      if (IsRefusal(error)) return;
      throw Violation(why + ", without --verify: " + error.what());
    } catch (const std::exception& error) {
      throw Violation(why + ", without --verify: " + error.what());
    }
    throw Violation("I9: without --verify nothing is refused; with it: " + why);
  }

  // A recovery that cannot read, or has no memory or no threads, says so, and has done no harm.
  void RecoverInNeed(const Crash& crash, const Past& past, const Ids& expected) {
    const std::unique_ptr<FaultyFileSystem> files = crash.files->AfterKill();
    const bool reads_fail = trouble_() % 2 == 0, for_good = trouble_() % 2 == 0;
    const bool names_fail = reads_fail && runs_() % 2 == 0;
    const uint64_t no_memory_at = reads_fail ? 0 : SomeAllocation(trouble_);
    const std::string need = !reads_fail  ? "no memory in recovery"
                             : names_fail ? "EACCES on a call on names in recovery"
                             : for_good   ? "EIO on every read in recovery"
                                          : "EIO on a read in recovery";
    using Operation = FaultyFileSystem::Operation;
    if (names_fail) {
      files->Fail(Operation::kAnyOnNames, 1 + runs_() % 48, EACCES, for_good);
    } else if (reads_fail) {
      files->Fail(Operation::kRead, 1 + trouble_() % 24, EIO, for_good);
    }
    const std::optional<Ids> recovered = TryToRecover(*files, no_memory_at, past, need);
    const bool came_true = reads_fail ? files->failed_count() > 0 : FailedAllocations() > 0;
    // Without a thread for it a recovery can still do without reading ahead.
    if (came_true ? recovered.has_value() : !recovered && !WasAThreadRefused())
      throw Violation("I9: " + need + ", and the recovery did not notice, or saw what was not there");
    if (recovered && *recovered != expected) throw Violation("I6: with few threads other transactions are recovered");
    if (WasAThreadRefused()) ++tally_.faults["no more threads in recovery"];
    if (came_true) ++tally_.faults[need];
    if (!recovered && RecoverAfter(need, *files, past) != expected)
      throw Violation("I6: after " + need + " other transactions are recovered");
  }

  // Nothing if the recovery says that it cannot.
  std::optional<Ids> TryToRecover(FaultyFileSystem& files, uint64_t no_memory_at, const Past& past,
                                  const std::string& need) {
    try {
      return CheckedNamesOf(RecoverFrom(files, no_memory_at, /*verify=*/true, /*few_threads=*/true), past);
    } catch (const Error& error) {
      if (!IsOfNeed(error)) throw Violation(need + ": " + error.what());
    } catch (const std::bad_alloc&) {
      if (no_memory_at == 0) throw Violation(need + ": out of memory");
    } catch (const std::system_error& error) {
      if (!WasAThreadRefused()) throw Violation(need + ": " + error.what());
    } catch (const std::exception& error) {
      throw Violation(need + ": " + error.what());
    }
    return std::nullopt;
  }

  Ids RecoverAfter(const std::string& need, FaultyFileSystem& files, const Past& past) {
    try {
      return CheckedNamesOf(RecoverFrom(*files.AfterKill()), past);
    } catch (const std::exception& error) {
      throw Violation("after " + need + ": " + error.what());
    }
  }

  // I11: whatever it finds, refuses or lacks, it ends; some ten times what the longest of a few thousand took.
  static constexpr uint64_t kRecoveryNanosMax = 500'000'000;

  static bool IsRefusalOrIo(const Error& error) { return IsRefusal(error) || error.status() == ExitStatus::kIo; }
  static bool IsRefusal(const Error& error) {
    return error.status() == ExitStatus::kCorrupt || error.status() == ExitStatus::kMismatch;
  }
  static bool IsOfNeed(const Error& error) {
    const std::string what = error.what();
    return error.status() == ExitStatus::kNoSpace ||
           (error.status() == ExitStatus::kIo &&
            (what.find("cannot read ") != std::string::npos || what.find("Permission denied") != std::string::npos));
  }

  // Requests to its devices may be cut short or interrupted, which it must not even notice.
  RecoveryResult RecoverFrom(FaultyFileSystem& files, uint64_t no_memory_at = 0, bool verify = true,
                             bool few_threads = false) {
    if (trouble_() % 2 == 0) {
      files.Shorten(2 + trouble_() % 6);
      files.Interrupt(2 + trouble_() % 6);
    }
    SlowFiles slow(files, trouble_() % 4 == 0 ? trouble_() % 20'000 : 0, 16);
    LogStorage storage(slow);
    Options options = options_;
    options.thread_cnt = 1 + random_() % 4;
    options.verify = verify;
    Plan plan = PlanOf(options, trial_.limits, random_());
    plan.threads_max = few_threads ? plan.threads_max / 2 : Plan().threads_max;
    options.restart_level = 1 + static_cast<uint32_t>(plan.seed % (options.diff_method == "PL2P" ? 3 : 4));
    RecoveryResult result;
    uint64_t nanos = 0;
    Simulate(plan, [&] {
      FailAllocations(no_memory_at, trouble_() % 4);
      const EndOfNeed end_of_need;
      const Lap lap(nanos);
      result = Registry::Global().Create(options)->Recover(options, storage);
    });
    if (nanos > kRecoveryNanosMax) throw Violation("I11: a recovery took " + std::to_string(nanos) + " ns");
    tally_.faults["requests cut short in recovery"] += files.shortened_count() > 0;
    tally_.faults["requests interrupted in recovery"] += files.interrupted_count() > 0;
    return result;
  }

  bool HasHeap() const { return HasVersionHeap(options_.log); }
  // A heap whose drains lie has records of what it lacks, and lacks that of its newest stamps.
  bool MayBeWrong() const { return IsControl() && HasHeap(); }
  bool IsControl() const { return trial_.control != Control::kNone; }

  // What was promised is not there. Under a control it must come to that, and all else must hold nevertheless.
  void Lose(const std::string& what) {
    if (!IsControl()) throw Violation(what);
    const bool is_acknowledged = what.starts_with("I1");
    if (lost_.empty() || (is_acknowledged && !lost_.starts_with("I1")))
      lost_ = is_acknowledged ? what : "lost: " + what;
  }

  void CheckOracle(const Ids& recovered, const std::vector<TxnId>& acknowledged, bool earlier_readers = true) {
    if (IsControl()) {
      if (const auto violation = oracle.ViolationOf(recovered, {})) throw Violation(*violation);
    }
    if (const auto violation = oracle.ViolationOf(recovered, acknowledged)) Lose(*violation);
    if (!earlier_readers) return;
    if (const auto violation = oracle.ViolationOfEarlierReaders(recovered)) Lose(*violation);
  }

  // I10, of what was recovered and of the readers that were acknowledged.
  void CheckHistory(Ids ids, const std::vector<TxnId>& acknowledged) const {
    for (const TxnId id : acknowledged) ids.push_back(id.value);
    SortUnique(ids);
    if (const auto anomaly = oracle.AnomalyAmong(ids, options_.isolation_level == "SNAPSHOT")) {
      throw Violation("I10: " + *anomaly);
    }
  }

  // I7: what was served stays, and what had been dropped by then stays dropped.
  void CheckNoResurrection(const Ids& recovered, const Crash& crash, const Past& past) {
    if (!Includes(recovered, crash.has_begun ? past.recovered : past.promised)) {
      Lose("I7: a transaction that was recovered, and served or acknowledged, is lost");
    }
    for (const uint64_t id : recovered) {
      if (!std::binary_search(past.recovered.begin(), past.recovered.end(), id) &&
          !oracle.IsOfThisGeneration(TxnId{id})) {
        throw Violation("I7: a transaction that was dropped has come back");
      }
    }
  }

  // I8, of the run that continued what was on disk.
  static void CheckFreshNumbers(const LogsOnDisk& before, const Crash& crash) {
    const LogsOnDisk after = ReadLogsOnDisk(crash.files->VisibleImage());
    if (after.newest_run > before.newest_run && after.newest_start < before.lsns_end) {
      throw Violation("I8: a continued run used LSNs of the old logs again");
    }
    const bool is_newer = after.newest_run > before.newest_run || after.newest_life > before.newest_life;
    if (is_newer && after.newest_lowest_stamp <= before.highest_stamp) {
      throw Violation("I8: a continued run used stamps of the old logs again");
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
  std::mt19937_64 trouble_;  // draws what came later, so that what was drawn before stays as it was
  std::mt19937_64 runs_;     // the same, of damage to whole runs and of names that cannot be looked at
  std::mt19937_64 redo_;     // the same, of whether rows are rebuilt on demand
  uint32_t generation_ = 1;
  std::optional<Image> continued_;  // runs that continue each other, of this trial
  Options options_;
  std::string lost_;  // under a control: the first that was, an acknowledged one if there was any
};

}  // namespace

void Try(const Trial& trial, Tally& tally) {
  if (trial.cell.masters > 0) return TryCluster(trial, tally);
  Cycle(trial, tally).Run();
}

}  // namespace dbx::sim
