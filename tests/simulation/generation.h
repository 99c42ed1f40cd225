// One run of the engine on files of its own, and its crashes: power failures and kills, while the run goes on. The
// first generation starts from nothing, each later one continues from a crash of the one before.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/logging/device/faulty_file_system.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/slow_files.h"
#include "tests/simulation/trial.h"

namespace dbx::sim {

// What a crash left. After a power failure everything that is there is durable; after a kill it is not yet.
struct Crash {
  std::unique_ptr<FaultyFileSystem> files;
  bool was_kill = false;
  std::vector<TxnId> acknowledged;
  bool has_begun = false;        // a transaction of this run
  bool has_lost_a_sync = false;  // readers may see what no disk has
  std::string kind;
};

class Generation {
 public:
  // `trouble` decides what goes wrong apart from crashes and devices that refuse to write.
  Generation(const Trial& trial, uint32_t number, std::mt19937_64& random, std::mt19937_64& trouble, Tally& tally)
      : trial_(trial),
        number_(number),
        random_(random),
        trouble_(trouble),
        tally_(tally),
        need_(trial.seed * 31 + number),
        memory_(trial.seed ^ (0x4ea9 + number)),
        replica_(trial.seed ^ (0x5e71ca + number)),
        files_(std::make_unique<FaultyFileSystem>()) {}
  void StartFrom(const Crash& crash) { files_ = crash.files->AfterKill(); }

  // Runs it to its end, or to a device's; the last crash is that of the end. Throws Violation.
  void Run(const Options& options);

  std::vector<Crash>& crashes() { return crashes_; }

 private:
  uint64_t Simulate(const Options& options);  // returns the number of harmless failures
  // Whether the scheme keeps a backup, and writes checkpoints.
  bool HasBackup() const;
  // Whether rows have their versions in persistent memory.
  bool HasHeap() const;
  void PlanCrashes(const Options& options);
  void PlanCrashesAtAcknowledgements(uint64_t txns);
  void CheckThatDurable(TxnId id);
  void PlanCrashesAtOperations(SlowFiles& files);
  void PlanMemory(const Plan& plan);
  void PlanReplica();
  void RunWithReplica(const Options& options, SlowFiles& files);
  void PlanFaults();
  void PlanFailingNames();
  void PlanTrouble(const Options& options);
  void PlanTroubleOfARecovery();
  void FailSoon();
  const char* NameOfNeed() const;
  void CountTrouble(const SlowFiles& slow);

  void TakeCrash();
  void TakeReplica();
  void CheckThatReplicaIsNotAhead(const FaultyFileSystem::Image& replica);
  void CutPower(FaultyFileSystem::Crash policy, const std::string& kind);
  void Kill();
  void Keep(std::unique_ptr<FaultyFileSystem> files, bool was_kill, const std::string& kind);

  const Trial& trial_;
  const uint32_t number_;
  std::mt19937_64& random_;
  std::mt19937_64& trouble_;
  Tally& tally_;
  std::mt19937_64 need_;    // decides where memory runs out
  std::mt19937_64 memory_;  // decides what happens to persistent memory
  std::unique_ptr<FaultyFileSystem> files_;
  std::mt19937_64 replica_;                 // decides whether there is one, and what happens to it
  std::unique_ptr<FaultyFileSystem> copy_;  // of a replica
  bool is_synchronous_ = false;             // the replica
  bool is_cut_off_ = false;                 // the connection to it was cut
  bool is_replica_ahead_ = false;           // of what is durable here
  std::vector<Crash> crashes_;
  bool copies_rows_ = false;  // it takes row checkpoints
  bool has_begun_ = false;
  std::string device_fault_;     // what the run was to meet
  uint64_t no_memory_at_ = 0;    // that allocation of a run that is continued fails; 0: none
  uint64_t no_memory_from_ = 0;  // soon after this transaction has begun one fails; 0: none
  uint64_t stall_at_ = 0;        // when a device is asked that often; 0: never
};

}  // namespace dbx::sim
