// One pair of concurrency control and log scheme, compiled once per pair: everything on the transaction path is
// instantiated here and nowhere else. config.h or the Makefile's -D choose the pair.
#include "system/pairs/configured_pair.h"
#include "system/pairs/engine.h"
#include "system/pairs/pair_node.h"
#include "system/pairs/pair_types.h"
#include "system/pairs/registry.h"
#include "system/pairs/rules.h"
#include "system/replay/recovery_run.h"
#include "system/run.h"
#include "system/transaction/charged_reads.h"
#include "system/transaction/timed_log.h"

namespace dbx {
namespace {

static_assert(!(Configured::kTimeParts && Configured::kPmReads), "TIME_PARTS and PM_READS exclude each other");
using Log = std::conditional_t<Configured::kTimeParts, TimedLog<ConfiguredLog>,
                               std::conditional_t<Configured::kPmReads, ChargedReads<ConfiguredLog>, ConfiguredLog>>;
using Cc = CcOf<Configured::kCcAlg, Configured::kUseLocktable, Log>::type;

static_assert(!rules::NeedsLocksForTable(Configured::kUseLocktable, Cc::kTraits),
              "this CC_ALG keeps versions in the rows and has no locks to put in a table: set USE_LOCKTABLE 0");
static_assert(
    !rules::NeedsPhysicalOrder(Cc::kTraits, Log::kTraits),
    "this CC_ALG commits in a logical order, commands are replayed in the physical one: set LOG_TYPE LOG_DATA");

static_assert(!rules::NeedsRows(Log::kTraits),
              "this LOG_ALGORITHM replays rows, and a command record holds none: set LOG_TYPE LOG_DATA");
static_assert(!rules::NeedsEpochTids(Cc::kTraits, Log::kTraits),
              "this LOG_ALGORITHM orders records by epochs and TIDs, which this CC_ALG does not give: set CC_ALG SILO");

static_assert(!rules::NeedsTimestamps(Cc::kTraits, Log::kTraits),
              "a CC_ALG that keeps many versions, and no other, needs timestamps in its commands, which this "
              "LOG_ALGORITHM does not log: set LOG_TYPE LOG_DATA");

static_assert(!rules::NeedsVersions(Cc::kTraits, Log::kTraits),
              "this LOG_ALGORITHM keeps versions of rows in a persistent heap, for a CC_ALG that keeps many or that "
              "locks what it reads: set CC_ALG HEKATON or NO_WAIT, and LOG_TYPE LOG_DATA");

static_assert(!rules::NeedsLinksInRows(Configured::kUseLocktable, Log::kTraits),
              "this LOG_ALGORITHM keeps the place of each row's last record, and a lock table keeps metadata of active "
              "rows only: set USE_LOCKTABLE 0");

class PairEngine : public Engine {
 public:
  RunResult Run(const Options& options, LogStorage& storage) override {
    const std::string simd = SelectSimd(options);
    if (Log::kTraits.single_stream && options.num_logger != 1) {
      throw Error(ExitStatus::kUsage, std::string(Log::kTraits.name) + " writes one log; use -Ln1");
    }
    if (options.continue_run && !Log::kTraits.logs) {
      throw Error(ExitStatus::kUsage, std::string(Log::kTraits.name) + " leaves nothing to continue; run with a log");
    }
    const std::string_view refusal = rules::IsolationRefusal(IsolationOf(options), Cc::kTraits);
    if (!refusal.empty()) throw Error(ExitStatus::kUsage, std::string(refusal));
    CheckCheckpoints(options);
    if (options.redo_on_demand() && !Log::kTraits.row_chains) {
      throw Error(ExitStatus::kUsage, std::string(Log::kTraits.name) +
                                          " keeps no chains of records to rebuild single rows from; leave "
                                          "--redo=ON_DEMAND out");
    }
    PairNode<Cc, Log> node(options.num_logger, TransactionThreads(options, Log::kTraits));
    RunResult result = MeasureRun(options, storage, node);
    result.simd = simd;
    return result;
  }

  RecoveryResult Recover(const Options& options, LogStorage& storage) override {
    if constexpr (Log::kTraits.logs) {
      const std::string simd = SelectSimd(options);
      RecoveryResult result = RunRecovery(options, storage, Log::kTraits);
      result.simd = simd;
      return result;
    }
    throw Error(ExitStatus::kUsage, std::string(Log::kTraits.name) + " leaves nothing to recover; run with a log");
  }

 private:
  static void CheckCheckpoints(const Options& options) {
    if (options.checkpoint_interval_ms == 0 && options.checkpoint_bytes == 0) return;
    if (!Log::kTraits.needs_pages && !Log::kTraits.row_checkpoints) {
      throw Error(ExitStatus::kUsage,
                  std::string(Log::kTraits.name) + " with " + options.log_type +
                      " takes no checkpoints beside transactions; leave --checkpoint_interval and --checkpoint_bytes "
                      "out");
    }
    if (Log::kTraits.row_checkpoints && options.log_dirs.size() > format::kMaxCheckpointParts) {
      throw Error(ExitStatus::kUsage, "a checkpoint has a part in each directory of --log_dir, at most " +
                                          std::to_string(format::kMaxCheckpointParts));
    }
    if (Log::kTraits.row_checkpoints && options.thread_cnt == kThreadsMax) {
      throw Error(ExitStatus::kUsage, "checkpoints of rows are taken by a further thread: use one worker less");
    }
  }
  static constexpr uint32_t kThreadsMax = 1024;

  // Throws when the machine lacks the requested instructions.
  static std::string SelectSimd(const Options& options) {
    return SelectLsnVectorOps(options.update_simd ? options.simd : "scalar");
  }
};

const PairName kName = {Configured::kCcName, Configured::kUseLocktable, Configured::kLogName,
                        Log::kTraits.logs ? Configured::kLogTypeName : ""};

const bool kRegistered = [] {
  Registry::Global().Add(kName, [] { return std::make_unique<PairEngine>(); });
  return true;
}();

}  // namespace
}  // namespace dbx
