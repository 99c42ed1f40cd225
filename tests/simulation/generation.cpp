#include "tests/simulation/generation.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <map>
#include <new>
#include <system_error>

#include "base/error.h"
#include "base/stop.h"
#include "logging/replication/replica.h"
#include "logging/replication/replica_stream.h"
#include "logging/replication/replicated_file_system.h"
#include "logging/schemes.h"
#include "system/runs/log_directory.h"
#include "system/runs/log_files.h"
#include "tests/logging/replication/pipe.h"
#include "tests/simulation/allocation.h"
#include "tests/simulation/free_slots.h"
#include "tests/simulation/logs_on_disk.h"

namespace dbx::sim {
namespace {

using Power = FaultyFileSystem::Crash;
using Operation = FaultyFileSystem::Operation;

// As FaultyFileSystem::kCrashes.
constexpr const char* kKindNames[] = {"un-synced writes lost", "un-synced writes kept", "any sectors lost",
                                      "writes reordered",      "sectors torn",          "files truncated"};
static_assert(std::size(kKindNames) == std::size(FaultyFileSystem::kCrashes));

// What may fail, and among how many operations of its kind the first failure lies.
struct DeviceFault {
  Operation operation;
  const char* name;
  uint64_t among;
};
constexpr DeviceFault kDeviceFaults[] = {
    {Operation::kWrite, "write", 16},  {Operation::kWrite, "write", 4},
    {Operation::kSync, "sync", 16},    {Operation::kSync, "sync", 4},
    {Operation::kCreate, "create", 4}, {Operation::kAllocate, "allocate", 2},
    {Operation::kRename, "rename", 2}, {Operation::kSyncDirectory, "sync of a directory", 12},
};
// Drawn apart, as they came later: what a seed chose before stays as it was, as a rule.
constexpr DeviceFault kNameFaults[] = {{Operation::kMakeDirectory, "mkdir", 2},
                                       {Operation::kRemove, "remove", 4},
                                       {Operation::kRemoveDirectory, "rmdir", 2}};
// The same of files of a backup, and of its anchor.
struct BackupFault {
  Operation operation;
  const char* name;
  uint64_t among;
  const char* path;
};
constexpr BackupFault kBackupFaults[] = {
    {Operation::kWrite, "write of a backup", 64, ".bak"},     {Operation::kSync, "sync of a backup", 64, ".bak"},
    {Operation::kWrite, "write of a backup", 512, ".bak"},    {Operation::kSync, "sync of a backup", 16, ".bak"},
    {Operation::kCreate, "create of a backup", 12, ".bak"},   {Operation::kCreate, "create of an anchor", 4, "/anchor"},
    {Operation::kWrite, "write of an anchor", 4, "/anchor"},  {Operation::kSync, "sync of an anchor", 8, "/anchor"},
    {Operation::kRename, "rename of an anchor", 4, "/anchor"}};
constexpr BackupFault kRowFaults[] = {{Operation::kWrite, "write of rows", 64, ".ckp"},
                                      {Operation::kSync, "sync of rows", 64, ".ckp"},
                                      {Operation::kWrite, "write of rows", 8, ".ckp"},
                                      {Operation::kSync, "sync of rows", 8, ".ckp"},
                                      {Operation::kCreate, "create of rows", 12, ".ckp"},
                                      {Operation::kCreate, "create of an anchor", 4, "/row-anchor"},
                                      {Operation::kWrite, "write of an anchor", 4, "/row-anchor"},
                                      {Operation::kSync, "sync of an anchor", 8, "/row-anchor"},
                                      {Operation::kRename, "rename of an anchor", 4, "/row-anchor"}};
constexpr BackupFault kHeapFaults[] = {{Operation::kSync, "drain of the heap", 96, "/heap.pm"},
                                       {Operation::kSync, "drain of the heap", 16, "/heap.pm"},
                                       {Operation::kSync, "drain of the log of gaps", 32, "/gaps.log"},
                                       {Operation::kCreate, "create of the heap", 1, "/heap.pm"},
                                       {Operation::kCreate, "create of the log of gaps", 1, "/gaps.log"},
                                       {Operation::kOpen, "map of the heap", 3, "/heap.pm"},
                                       {Operation::kOpen, "map of the log of gaps", 3, "/gaps.log"}};
constexpr BackupFault kDiscardFault = {Operation::kDiscard, "discard of a log", 8, ".log"};
// Looks at names: what cannot be looked at must not be taken for absent.
constexpr DeviceFault kLookFaults[] = {{Operation::kKindOf, "a look at a file", 24},
                                       {Operation::kList, "a list of a directory", 8},
                                       {Operation::kIdentityOf, "a look at a log directory", 4},
                                       {Operation::kLock, "a lock", 6},
                                       {Operation::kOpen, "an open", 8},
                                       {Operation::kDescribe, "a look at a file system", 2},
                                       {Operation::kAnyOnNames, "a call on names", 64}};

// Some ten times what the longest of a few thousand runs took, on devices that stall for 10 ms.
constexpr uint64_t kAcknowledgementNanosMax = 700'000'000;

// Under an unfair schedule transactions may abort each other for ever, and logs that are given up behind them reach no
// limit. Ends such a run as a signal would.
constexpr uint64_t kAttemptsMax = 20'000;

// As long as it is there, `look` is told of every slot that the engine takes for free.
class LookAtFreeSlots {
 public:
  explicit LookAtFreeSlots(std::function<void(const void*)> look) { on_free_slot = std::move(look); }
  ~LookAtFreeSlots() { on_free_slot = nullptr; }
  LookAtFreeSlots(const LookAtFreeSlots&) = delete;
  LookAtFreeSlots& operator=(const LookAtFreeSlots&) = delete;
};

bool IsDevices(const Error& error) {
  return error.status() == ExitStatus::kIo || error.status() == ExitStatus::kNoSpace;
}

}  // namespace

void Generation::Run(const Options& options) {
  const auto failed = [this](const std::exception& error) {
    return Violation("run " + std::to_string(number_) + " failed: " + error.what());
  };
  copies_rows_ = !HasBackup() && (options.checkpoint_interval_ms != 0 || options.checkpoint_bytes != 0);
  PlanCrashes(options);
  PlanFaults();
  PlanTrouble(options);
  PlanFailingNames();
  PlanReplica();
  try {
    const uint64_t harmless = Simulate(options);
    // A scan that rebuilds a table on demand reads any number of records first.
    const uint64_t nanos = oracle.longest_wait_nanos();
    if (nanos > kAcknowledgementNanosMax && !options.redo_on_demand()) {
      throw Violation("I11: an acknowledgement took " + std::to_string(nanos) + " ns");
    }
    if (const auto waiting = oracle.Unacknowledged()) throw Violation("I11: never acknowledged: " + *waiting);
    // I12. No other failure is harmless: whatever a run creates, names, writes or syncs it relies on later.
    if (files_->failed_count() > harmless) throw Violation("I12: a run ended well despite " + device_fault_);
    if (FailedAllocations() > 0) throw Violation("I12: a run ended well though it had no memory");
    if (harmless > 0) ++tally_.faults[device_fault_ + ", harmless"];
  } catch (const Error& error) {
    const bool had_no_memory = FailedAllocations() > 0, is_cut_off = is_cut_off_ && is_synchronous_;
    if ((files_->failed_count() == 0 && !had_no_memory && !is_cut_off) || !IsDevices(error)) throw failed(error);
    ++tally_.faults[is_cut_off ? "a replica cut off" : had_no_memory ? NameOfNeed() : device_fault_];
    CutPower(Power::kDurableOnly, "after a device failed, un-synced writes lost");
    if (files_->HasLost()) Kill();
  } catch (const std::bad_alloc& error) {
    if (FailedAllocations() == 0) throw failed(error);
    ++tally_.faults[NameOfNeed()];
  } catch (const std::system_error& error) {
    if (!WasAThreadRefused()) throw failed(error);
    ++tally_.faults["no more threads for a run"];
  } catch (const Violation&) {
    throw;
  } catch (const std::exception& error) {
    throw failed(error);
  }
  ++tally_.runs;
  tally_.faults["a page in flight lost, and one behind it kept"] += files_->hole_count();
  TakeCrash();
}

uint64_t Generation::Simulate(const Options& options) {
  Plan plan = PlanOf(options, trial_.limits, random_());
  if (trial_.control != Control::kNone) plan.threads_max = Plan().threads_max;
  SlowFiles slow(*files_, random_() % 100'000, 4);
  PlanCrashesAtOperations(slow);
  if (stall_at_ != 0) slow.StallAt(stall_at_, 1'000'000 + trouble_() % 10'000'000);
  LogStorage storage(slow);
  StopRequested().store(false);
  const auto body = [&] {
    if (HasHeap()) PlanMemory(plan);
    // While it recovers, as a rule.
    if (number_ > 1) AfterSteps(random_() % 8000, [this] { TakeCrash(); });
    FailAllocations(no_memory_at_, trouble_() % 4);
    const EndOfNeed end_of_need;
    if (copy_ != nullptr) return RunWithReplica(options, slow);
    Registry::Global().Create(options)->Run(options, storage);
  };
  bool slots_are_free = true;
  {
    const LookAtFreeSlots look(
        [&](const void* slot) { slots_are_free &= files_->DurableWordAt(slot).value_or(0) == 0; });
    tally_.steps += sim::Simulate(plan, body).steps;
  }
  if (!slots_are_free && trial_.control == Control::kNone) {
    throw Violation("I1: a slot on a free list is not durably free, and what is written to it may count");
  }
  if (is_replica_ahead_) throw Violation("I1: a replica has what the run itself might lose");
  CountTrouble(slow);
  return slow.harmless_failures();
}

// Of half of the new runs with a heap, and of some others.
void Generation::PlanReplica() {
  const uint64_t among = HasHeap() ? 2 : 8;
  if (number_ > 1 || trial_.control != Control::kNone || replica_() % among != 0) return;
  is_synchronous_ = replica_() % 4 != 0;
  copy_ = std::make_unique<FaultyFileSystem>();
  no_memory_at_ = no_memory_from_ = 0;
}

void Generation::RunWithReplica(const Options& options, SlowFiles& files) {
  for (const std::string& directory : options.log_dirs) CreateDirectories(*copy_, directory);
  SlowFiles slow_copy(*copy_, replica_() % 20'000, 16);
  const auto pipe = std::make_shared<testing::Pipe>();
  auto [run_end, replica_end] = testing::Pipe::Make(pipe);
  constexpr uint64_t kNanosOfARun = 3'000'000;
  const uint64_t cut_after = replica_() % 6 == 0 ? 1 + replica_() % kNanosOfARun : 0;
  const Thread cutter([&] {
    if (cut_after == 0) return;
    host::SleepFor(std::chrono::nanoseconds(cut_after));
    is_cut_off_ = true;
    pipe->Cut();
  });
  std::string refusal;
  const std::unique_ptr<ReplicaChannel> channel = std::move(replica_end);
  const Thread replica([&] {
    try {
      Replica(slow_copy, options.log_dirs, *channel).Run();
    } catch (const std::exception& error) {
      refusal = error.what();
    }
    channel->Close();
  });
  ReplicaStream stream(std::move(run_end), "the replica", is_synchronous_, {},
                       static_cast<uint32_t>(options.log_dirs.size()));
  ReplicatedFileSystem replicated(files, options.log_dirs, stream);
  LogStorage storage(replicated);
  Registry::Global().Create(options)->Run(options, storage);
  stream.End();
  if (!refusal.empty()) throw Violation("a replica refused what it was sent: " + refusal);
}

bool Generation::HasBackup() const {
  const auto scheme = std::find_if(kSchemes.begin(), kSchemes.end(),
                                   [this](const SchemeInfo& info) { return info.name == trial_.cell.pair.log; });
  return scheme != kSchemes.end() && scheme->needs_pages;
}

bool Generation::HasHeap() const { return HasVersionHeap(trial_.cell.pair.log); }

// A new run's crashes before its first transaction: while it loads, and before its first record. Of one that goes on in
// its heap, up to its first record, and while it adopts. And the processor writes back what it likes at any time.
void Generation::PlanMemory(const Plan& plan) {
  constexpr uint64_t kStepsOfLoad = 6000, kStepsOfRestart = 1500, kLinesMax = 1024;
  if (number_ > 1 || memory_() % 4 == 0) {
    AfterSteps(memory_() % (number_ > 1 ? kStepsOfRestart : kStepsOfLoad), [this] { TakeCrash(); });
  }
  for (uint64_t left = memory_() % 8; left > 0; --left) {
    const uint64_t seed = memory_(), lines = 1 + memory_() % kLinesMax;
    AfterSteps(memory_() % plan.steps_expected, [this, seed, lines] { files_->EvictWords(seed, lines); });
  }
}

// Crashes fall some steps after the begin of a transaction, or after that of the last.
void Generation::PlanCrashes(const Options& options) {
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
    if (!has_begun_) StopFailingAllocations();
    has_begun_ = true;
    if (trial_.control == Control::kSyncsLie) files_->LieAboutSyncs();
    if (++begun == no_memory_from_) FailSoon();
    if (begun == kAttemptsMax) StopRequested().store(true);
    const auto [first, last] = steps_after_begin.equal_range(begun);
    for (auto it = first; it != last; ++it) AfterSteps(it->second, [this] { TakeCrash(); });
  };
  PlanCrashesAtAcknowledgements(txns);
}

// What is acknowledged must be durable by then: the most that a crash at that very moment may take.
void Generation::PlanCrashesAtAcknowledgements(uint64_t txns) {
  std::vector<uint64_t> at;
  for (int i = 0; i < 2; ++i) at.push_back(1 + random_() % txns);
  constexpr uint64_t kRunsPerWatched = 16;
  const bool watched = std::mt19937_64(trial_.seed + number_)() % kRunsPerWatched == 0;
  oracle.on_acknowledge = [this, at, watched, given = uint64_t{0}](TxnId id) mutable {
    if (watched) CheckThatDurable(id);
    if (std::count(at.begin(), at.end(), ++given) == 0) return;
    CutPower(Power::kDurableOnly, "at an acknowledgement, un-synced writes lost");
  };
}

// I1 on the spot: what the disk holds durably would let the reference recover it, if it wrote, and each that it read
// from.
void Generation::CheckThatDurable(TxnId id) {
  std::vector<TxnId> needed = oracle.ReadFrom(id);
  if (oracle.HasWritten(id)) needed.push_back(id);
  const RecoverableNames names = NamesInNewestRun(files_->CrashImage(Power::kDurableOnly));
  for (const TxnId writer : needed) {
    const bool is_older = !oracle.IsOfThisGeneration(writer);  // it is in another run, or in a checkpoint alone
    if (is_older || names.Has(writer)) continue;
    throw Violation("I1: when a transaction was acknowledged, the disk would not give back it, or one it read from");
  }
}

// Between two operations on names there are few steps, and much changes: while a run is created, frozen, committed,
// deleted.
void Generation::PlanCrashesAtOperations(SlowFiles& files) {
  constexpr uint64_t kOperations = 32, kOperationsOfCheckpoints = 300;
  std::vector<uint64_t> at;
  const int crashes = number_ > 1 ? 2 : random_() % 4 == 0 ? 1 : 0;
  for (int i = 0; i < crashes; ++i) at.push_back(1 + random_() % kOperations);
  // Checkpoints are long, and most begin when the run is long committed.
  std::mt19937_64 later(trial_.seed ^ (0xbac0 + number_));
  for (int i = 0; i < 3 && (HasBackup() || copies_rows_); ++i) at.push_back(1 + later() % kOperationsOfCheckpoints);
  files.before_operation = [this, at, seen = uint64_t{0}](const std::string& what) mutable {
    if (std::count(at.begin(), at.end(), ++seen) == 0) return;
    ++tally_.faults["crash before: " + what];
    random_() % 2 == 0 ? Kill() : TakeCrash();
  };
}

// A quarter of the runs meet a device that fails, half of those that continue: they do much else than to log.
void Generation::PlanFaults() {
  if (random_() % (number_ > 1 ? 2 : 4) != 0 || trial_.control != Control::kNone) return;
  const DeviceFault& often = kDeviceFaults[random_() % std::size(kDeviceFaults)];
  std::mt19937_64 seldom(trial_.seed ^ (0x4a3e + number_));
  const DeviceFault& fault = seldom() % 6 == 0 ? kNameFaults[seldom() % std::size(kNameFaults)] : often;
  const bool no_space = random_() % 2 == 0;
  const uint64_t nth = 1 + random_() % fault.among;
  const bool for_good = random_() % 2 == 0;
  const std::string name = std::string(no_space ? "ENOSPC" : "EIO") + " on ";
  if ((HasBackup() || copies_rows_) && seldom() % 2 == 0) {
    const BackupFault& often_there = copies_rows_ ? kRowFaults[seldom() % std::size(kRowFaults)]
                                                  : kBackupFaults[seldom() % std::size(kBackupFaults)];
    const bool of_discard = std::mt19937_64(trial_.seed ^ (0xd15c + number_))() % 6 == 0;
    const BackupFault& of_backup = of_discard ? kDiscardFault : often_there;
    device_fault_ = name + of_backup.name;
    if (of_backup.operation == Operation::kSync && seldom() % 2 == 0) files_->FailSyncsInPart(seldom());
    return files_->Fail(of_backup.operation, 1 + seldom() % of_backup.among, no_space ? ENOSPC : EIO, for_good,
                        of_backup.path);
  }
  if (HasHeap() && memory_() % 2 == 0) {
    const BackupFault& of_heap = kHeapFaults[memory_() % std::size(kHeapFaults)];
    device_fault_ = name + of_heap.name;
    return files_->Fail(of_heap.operation, 1 + memory_() % of_heap.among, no_space ? ENOSPC : EIO, for_good,
                        of_heap.path);
  }
  if (trial_.cell.pair.log == "LOG_BATCH" && seldom() % 2 == 0) {
    // Written by a thread of the scheme's own, up to the run's last moment.
    device_fault_ = name + "sync of the frontier";
    return files_->Fail(Operation::kSync, 1 + seldom() % 12, no_space ? ENOSPC : EIO, for_good, kFrontierFileName);
  }
  device_fault_ = name + fault.name;
  if (fault.operation == Operation::kSync) {
    if (seldom() % 2 == 0) files_->FailSyncsInPart(seldom());
    // Of the logs, behind their creation.
    if (seldom() % 2 == 0)
      return files_->Fail(Operation::kSync, 3 + seldom() % 16, no_space ? ENOSPC : EIO, for_good, ".log");
  }
  files_->Fail(fault.operation, nth, no_space ? ENOSPC : EIO, for_good);
}

// Runs that meet nothing else, mostly those that continue others: they look at much.
void Generation::PlanFailingNames() {
  std::mt19937_64 random(trial_.seed ^ (0x9a3e5 + number_));
  const bool is_free = device_fault_.empty() && no_memory_at_ == 0 && no_memory_from_ == 0;
  if (!is_free || trial_.control != Control::kNone || random() % (number_ > 1 ? 3 : 8) != 0) return;
  const DeviceFault& fault = kLookFaults[random() % std::size(kLookFaults)];
  const bool denied = random() % 2 == 0;
  device_fault_ = std::string(denied ? "EACCES" : "EIO") + " on " + fault.name;
  const uint64_t nth = 1 + random() % fault.among;
  files_->Fail(fault.operation, nth, denied ? EACCES : EIO, /*for_good=*/random() % 2 == 0);
}

// Writers must cope with what write(2) may do, and acknowledgements with a device that stalls.
void Generation::PlanTrouble(const Options& options) {
  if (trouble_() % 4 == 0) {
    files_->Shorten(2 + trouble_() % 6);
    files_->Interrupt(2 + trouble_() % 6);
  }
  if (trouble_() % 4 == 0) stall_at_ = 1 + trouble_() % 16;
  if (number_ > 1 && device_fault_.empty() && trial_.control == Control::kNone) PlanTroubleOfARecovery();
  // From some transaction on; most allocations are made by the first ones.
  const uint64_t txns = options.thread_cnt * options.max_txns_per_thread;
  const bool in_need = need_() % 8 == 0 && device_fault_.empty() && no_memory_at_ == 0;
  const uint64_t among = 1 + need_() % txns;
  if (in_need && trial_.control == Control::kNone) no_memory_from_ = 1 + need_() % among;
}

// Before the new run's first transaction there is much to read and to remember.
void Generation::PlanTroubleOfARecovery() {
  switch (trouble_() % 6) {
    case 0: {
      const bool for_good = trouble_() % 2 == 0;
      device_fault_ = for_good ? "EIO on every read" : "EIO on a read";
      return files_->Fail(Operation::kRead, 1 + trouble_() % 24, EIO, for_good);
    }
    case 1:
      no_memory_at_ = SomeAllocation(trouble_);
      return;
    default:
      return;
  }
}

void Generation::FailSoon() {
  const uint64_t nth = 1 + need_() % 32;
  FailAllocations(nth, need_() % 4);
}

const char* Generation::NameOfNeed() const {
  return no_memory_at_ != 0 ? "no memory while a run is continued" : "no memory while transactions run";
}

void Generation::CountTrouble(const SlowFiles& slow) {
  tally_.faults["requests cut short"] += files_->shortened_count() > 0;
  tally_.faults["requests interrupted"] += files_->interrupted_count() > 0;
  tally_.faults["a device stalled"] += slow.has_stalled();
}

// The run's files are lost, and its replica takes over, which may have crashed at that moment. An asynchronous one has
// promised nothing.
void Generation::TakeReplica() {
  const size_t policy = replica_() % std::size(FaultyFileSystem::kCrashes);
  const FaultyFileSystem::Image image = copy_->CrashImage(FaultyFileSystem::kCrashes[policy], replica_());
  if (replica_() % 4 == 0) CheckThatReplicaIsNotAhead(image);
  Keep(std::make_unique<FaultyFileSystem>(image), false,
       is_synchronous_ ? "a synchronous replica took over" : "an asynchronous replica took over");
  Crash& crash = crashes_.back();
  if (!is_synchronous_) crash.acknowledged.clear();
  crash.has_begun = !crash.acknowledged.empty();
}

// If the run's host restarts, it goes on from a state that the replica has, or had.
void Generation::CheckThatReplicaIsNotAhead(const FaultyFileSystem::Image& replica) {
  if (!has_begun_ || !HasHeap() || files_->failed_count() > 0) return;
  RecoverableNames theirs;
  try {
    theirs = NamesInNewestRun(replica);
  } catch (const Error&) {
    return;  // there is nothing that could be
  }
  const std::vector<uint64_t> ours = NamesInNewestRun(files_->CrashImage(Power::kDurableOnly)).ended_below;
  for (size_t i = 0; i < theirs.ended_below.size(); ++i) {
    if (i < ours.size() && theirs.ended_below[i] <= ours[i]) continue;
    is_replica_ahead_ = true;
  }
}

void Generation::TakeCrash() {
  if (copy_ != nullptr && replica_() % 2 == 0) return TakeReplica();
  if (random_() % 4 == 0) return Kill();
  const size_t policy = random_() % std::size(FaultyFileSystem::kCrashes);
  CutPower(FaultyFileSystem::kCrashes[policy], kKindNames[policy]);
}

void Generation::CutPower(Power policy, const std::string& kind) {
  Keep(std::make_unique<FaultyFileSystem>(files_->CrashImage(policy, random_())), false, kind);
}

// In the same boot; the kernel may have wanted some of its page cache back.
void Generation::Kill() {
  auto files = files_->AfterKill(random_());
  if (files->HasLost() && trouble_() % 4 == 0) files->DropCaches(trouble_());
  Keep(std::move(files), true, "process killed");
}

void Generation::Keep(std::unique_ptr<FaultyFileSystem> files, bool was_kill, const std::string& kind) {
  const bool has_lost = files->HasLost();
  crashes_.push_back({std::move(files), was_kill, oracle.acknowledged(), has_begun_, has_lost, kind});
}

}  // namespace dbx::sim
