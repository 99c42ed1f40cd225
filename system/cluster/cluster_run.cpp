#include "system/cluster/cluster_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "benchmarks/sysbench/sysbench.h"
#include "logging/device/posix_file_system.h"
#include "system/cluster/acknowledged_rows.h"
#include "system/cluster/children.h"
#include "system/cluster/master_run.h"
#include "system/cluster/members.h"
#include "system/command_line/parse_options.h"
#include "system/runs/cluster_file.h"
#include "system/transaction/ack_file.h"
#include "system/workloads.h"

namespace dbx {
namespace {

std::string NewDirectory(const Options& options) {
  const std::string& parent = options.log_dirs.front();
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  for (uint32_t number = 1; !error; ++number) {
    const std::string directory = fmt::format("{}/cluster-{:04}", parent, number);
    if (std::filesystem::create_directory(directory, error)) return directory;
  }
  throw Error(ExitStatus::kIo,
              fmt::format("cannot create a directory for a cluster in {}: {}", parent, error.message()));
}

std::string TextOf(const MasterRecovery& recovery) {
  return fmt::format("{} of its transactions were rolled back; its pages were free {:.2f} s after its death was known",
                     recovery.losers, recovery.freed_seconds);
}

std::unique_ptr<mm::KeptRowLocks> MakeKeptRowLocks(const Database& loaded) {
  std::vector<uint64_t> rows;
  for (size_t i = 0; i < loaded.table_count(); ++i) rows.push_back(loaded.table(Database::IdOf(i)).row_count());
  return std::make_unique<mm::KeptRowLocks>(rows);
}

// The parent's side.
class Cluster {
 public:
  explicit Cluster(const Options& options)
      : options_(options),
        directory_(NewDirectory(options)),
        members_(directory_, [this](const ProcessDeath& death) { OnDeath(death); }) {
    plan_.cluster = mm::ClusterId(host::RandomNumber());
    plan_.masters = options.masters;
    plan_.page_stores = options.page_stores;
    plan_.frames_max = options.buffer_pages;
    if (options.isolation_level == "READ_COMMITTED") plan_.isolation = mm::Isolation::kReadCommitted;
    plan_.strict_reads = options.strict_reads;
    plan_.ring_bytes = std::max<uint64_t>(options.log_buffer_size, 4 << 20);
    plan_.writer.flush_interval_us = options.log_flush_interval_us;
    plan_.writer.flush_block_bytes = options.log_flush_block_bytes;
    result_.directory = directory_;
    result_.masters.resize(options.masters);
    for (MasterResult& master : result_.masters) master.died = true;  // unless its result comes
    PosixFileSystem files;
    // As long as one of its processes lives: no recovery reads the logs meanwhile.
    lock_ = files.LockDirectory(directory_, FileSystem::LockKind::kExclusive);
    WriteClusterFile(files, directory_,
                     {plan_.cluster.value(), options.masters, options.thread_cnt, IdentityText(options)});
  }

  template <class WorkloadT>
  ClusterResult Run(WorkloadT& workload) {
    // Before the processes are forked: they share it.
    Database tables({}, UsableThreads());
    CreateTables(options_, workload, tables);
    workload.Load(tables, options_.seed, UsableThreads());
    const mm::InitialPages pages(tables);
    CreateAckFile<WorkloadT>();
    if (options_.count_row_lock_managers) kept_ = MakeKeptRowLocks(tables);
    plan_.kept_row_locks = kept_.get();
    for (uint8_t i = 0; i < mm::kLogStores; ++i) {
      const std::string directory = directory_ + "/log-store-" + std::to_string(i);
      if (!PosixFileSystem().MakeDirectory(directory)) throw Error(ExitStatus::kIo, directory + " exists");
      members_.Add({mm::Role::kLogStore, i}, [=, this](Channel& parent) { RunLogStore(parent, plan_, i, directory); });
    }
    members_.Add({mm::Role::kLocks, 0}, [this](Channel& parent) { RunLockProcess(parent, plan_); });
    for (uint8_t i = 0; i < plan_.page_stores; ++i) {
      members_.Add({mm::Role::kPageStore, i}, [&, i](Channel& parent) { RunPageStore(parent, plan_, i, pages); });
    }
    for (uint8_t i = 0; i < options_.masters; ++i) {
      members_.Add({mm::Role::kMaster, i}, [&, i](Channel& parent) {
        MasterRun<WorkloadT>(parent, options_, plan_, i, tables, workload, acks_.get()).Run();
      });
    }
    members_.Connect();
    is_connected_ = true;
    TellOfGone();
    WarmUp();
    Measure();
    members_.SetPhase("recovery");
    AwaitRecoveries();
    if (options_.verify) Verify();
    AwaitRecoveries();
    End();
    result_.deaths.assign(members_.deaths().begin(), members_.deaths().end());
    return std::move(result_);
  }

 private:
  // All masters write to it, each for workers of its own.
  template <class WorkloadT>
  void CreateAckFile() {
    if (options_.ack_file.empty()) return;
    const uint64_t most = MostTransactionsOfMaster(options_);
    uint64_t note_bytes = 0;
    if constexpr (requires { WorkloadT::kNoteBytes; }) note_bytes = WorkloadT::NoteBytesFor(most);
    acks_ = AckFile::Create(options_.ack_file, plan_.cluster.value(), options_.masters * options_.thread_cnt, most, 0,
                            note_bytes);
  }
  uint32_t UsableThreads() const { return std::max(1u, options_.thread_cnt); }
  std::vector<Member*> Masters() { return members_.There(mm::Role::kMaster); }

  void OnDeath(const ProcessDeath& death) {
    const std::string name = mm::NameOf(death.node);
    std::string what = "masters read from another one";
    if (death.node.role == mm::Role::kLogStore) {
      what = "two copies of each log are left, and the run ends if another one is lost";
    } else if (death.node.role == mm::Role::kMaster) {
      what = result_.masters[death.node.index].died ? "its transactions are not counted" : "its results are counted";
      gone_.push_back(death.node.index);
    }
    std::fprintf(stderr, "notice: after %.2f s (%s) %s; %s\n", death.seconds, death.phase, death.how.c_str(),
                 what.c_str());
    TellOfGone();
  }
  // The lock process, once it listens.
  void TellOfGone() {
    if (!is_connected_) return;
    for (const uint8_t master : std::exchange(gone_, {})) {
      members_.Tell(members_.There(mm::Role::kLocks), GoneWord(master));
    }
  }
  void Look() {
    members_.Look();
    for (Member* locks : members_.There(mm::Role::kLocks)) {
      while (const auto news = members_.Receive<LockNews>(*locks, std::chrono::milliseconds(0))) OnNews(*news);
    }
  }
  void OnNews(const LockNews& news) {
    if (news.is_last) {
      result_.lock_process = news.counters;
      return;
    }
    const MasterRecovery& recovery = news.recovery;
    for (Member* master : Masters()) {
      if (master->node().index != recovery.master) continue;
      members_.Kill(*master, master->name() + " did not renew its lease");
    }
    const auto death =
        std::ranges::find(members_.deaths(), mm::NodeId{mm::Role::kMaster, recovery.master}, &ProcessDeath::node);
    if (death == members_.deaths().end()) return;  // it has left in order
    death->recovery = recovery;
    std::fprintf(stderr, "notice: master %u: %s\n", recovery.master, TextOf(recovery).c_str());
  }
  // Until all masters that have died are recovered.
  void AwaitRecoveries() {
    const uint64_t begin = host::MonotonicNanos();
    const auto is_open = [](const ProcessDeath& death) {
      return death.node.role == mm::Role::kMaster && !death.recovery;
    };
    for (Look(); std::ranges::any_of(members_.deaths(), is_open); Look()) {
      if (std::chrono::nanoseconds(host::MonotonicNanos() - begin) > kStartTime) {
        throw Error(ExitStatus::kInternal,
                    "a master that has died was not recovered in time; the logs are in " + directory_);
      }
      host::SleepFor(std::chrono::milliseconds(2));
    }
  }

  // The member's next value, whatever the others do meanwhile. Nothing: it has died, or, if it may, the run is to stop.
  template <class T>
  std::optional<T> Await(Member& member, bool may_stop) {
    const uint64_t begin = host::MonotonicNanos();
    while (member.is_there()) {
      const auto value = members_.Receive<T>(member, kPoll);
      if (value) return value;
      Look();
      if (may_stop && StopRequested().load()) return std::nullopt;
      // A run of so many transactions may take any time, until it is told to stop.
      const bool has_limit = !may_stop || options_.seconds > 0;
      const double limit = std::chrono::duration<double>(kStartTime).count() +
                           (may_stop ? options_.seconds + options_.warmup_seconds : 0);
      const double waited = static_cast<double>(host::MonotonicNanos() - begin) / 1e9;
      if (member.is_there() && has_limit && waited > limit) members_.DoesNotAnswer(member);
    }
    return std::nullopt;
  }
  void Stop() {
    if (std::exchange(result_.interrupted, true)) return;
    members_.Tell(Masters(), kStop);
  }
  // The same where a stop of the run tells all masters to stop, and the value still comes.
  template <class T>
  std::optional<T> AwaitOrStop(Member& member) {
    auto value = Await<T>(member, !result_.interrupted);
    if (value || !member.is_there()) return value;
    Stop();
    return Await<T>(member, false);
  }

  void WarmUp() {
    members_.SetPhase("warm-up");
    for (Member* master : Masters()) AwaitOrStop<uint8_t>(*master);
    if (StopRequested().load()) Stop();
    if (!result_.interrupted) members_.Tell(Masters(), kGo);
  }
  void Measure() {
    members_.SetPhase("run");
    for (Member* master : Masters()) {
      if (const auto result = AwaitOrStop<MasterResult>(*master)) result_.masters[master->node().index] = *result;
    }
  }
  // By a master that does not die meanwhile.
  void Verify() {
    members_.SetPhase("verification");
    while (result_.verified.empty()) {
      Member& master = *Masters().front();
      members_.Tell(master, kVerify);
      while (master.is_there() && result_.verified.empty()) {
        result_.verified = members_.ReceiveText(master, kPoll).value_or("");
        Look();
      }
    }
  }
  // Masters first, while their logs can still be written.
  void End() {
    members_.SetPhase("end");
    is_connected_ = false;  // there is nothing left to recover
    for (Member* master : Masters()) members_.End(*master);
    for (Member* locks : members_.There(mm::Role::kLocks)) {
      members_.TellToEnd(*locks);
      for (std::optional<LockNews> news; !news || !news->is_last;) {
        news = members_.Last<LockNews>(*locks);
        if (news) OnNews(*news);
      }
      members_.AwaitEndOf(*locks);
    }
    for (Member* store : members_.There(mm::Role::kPageStore)) {
      members_.TellToEnd(*store);
      result_.page_store.Add(members_.Last<mm::PageStoreCounters>(*store).value_or(mm::PageStoreCounters()));
      members_.AwaitEndOf(*store);
    }
    for (Member* store : members_.There(mm::Role::kLogStore)) members_.End(*store);
  }

  const Options& options_;
  const std::string directory_;
  mm::ClusterPlan plan_;
  std::unique_ptr<AckFile> acks_;           // null: there is no such file
  std::unique_ptr<mm::KeptRowLocks> kept_;  // null: not counted
  ClusterResult result_;
  DirectoryLock lock_;
  Members members_;
  bool is_connected_ = false;
  std::vector<uint8_t> gone_;  // masters of whose death the lock process was not told yet
};

}  // namespace

ClusterResult RunCluster(const Options& options) {
  Cluster cluster(options);
  if (options.workload == WorkloadKind::kSysbench) {
    Sysbench workload(SysbenchConfigOf(options));
    return cluster.Run(workload);
  }
  return WithWorkload(options, [&](auto& workload) { return cluster.Run(workload); });
}

}  // namespace dbx
