#include "system/replay/cluster_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/host.h"
#include "base/parallel.h"
#include "logging/device/posix_file_system.h"
#include "multi_master/master/initial_pages.h"
#include "storage/digest.h"
#include "system/command_line/parse_options.h"
#include "system/reference/reference_cluster.h"
#include "system/replay/laps.h"
#include "system/replay/verify.h"
#include "system/replay/workload_check.h"
#include "system/runs/cluster_file.h"
#include "system/workloads.h"

namespace dbx {
namespace {

reference::ClusterImage ImageOf(FileSystem& files, const std::string& directory, const ClusterDescription& cluster) {
  reference::ClusterImage image{cluster.cluster, cluster.masters, {}};
  for (const std::string& store : StoreDirectories(directory)) {
    auto& of_store = image.stores.emplace_back();
    if (files.KindOf(store) != FileSystem::Entry::kDirectory) continue;
    of_store.emplace(cluster.masters);
    for (uint32_t log = 0; log < cluster.masters; ++log) {
      for (uint32_t number = 0;; ++number) {
        const std::string path = fmt::format("{}/log-{}-{}", store, log, number);
        if (files.KindOf(path) != FileSystem::Entry::kFile) break;
        FileBytes bytes = files.Map(path);
        of_store->at(log).push_back({path, bytes.bytes, std::move(bytes.owner)});
      }
    }
  }
  return image;
}

template <class WorkloadT>
class ClusterRecovery {
 public:
  ClusterRecovery(const Options& options, FileSystem& files, const std::string& directory,
                  const ClusterDescription& cluster)
      : options_(options),
        files_(files),
        directory_(directory),
        cluster_(cluster),
        first_(MakeWorkload<WorkloadT>(options)),
        loaded_({}, options.thread_cnt) {}

  void Run(ClusterRecoveryResult& result) {
    Laps laps;
    CreateTables(options_, first_, loaded_);
    first_.Load(loaded_, options_.seed, options_.thread_cnt);
    const mm::InitialPages pages(loaded_);
    result.load_seconds = laps.Next();

    std::vector<std::unique_ptr<mm::RemainingLog>> logs;
    for (uint8_t i = 0; i < cluster_.masters; ++i) {
      logs.push_back(std::make_unique<mm::RemainingLog>(files_, StoreDirectories(directory_),
                                                        mm::ClusterId(cluster_.cluster), mm::MasterId(i)));
    }
    NoteLost(logs, result);
    result.open_seconds += laps.Next();

    mm::RemainingDatabase dead([&pages](mm::PageId page) { return pages.Of(page); });
    dead.Replay(logs);
    result.replay_seconds = laps.Next();

    auto workload = MakeWorkload<WorkloadT>(options_);
    Database database({}, options_.thread_cnt);
    CreateTables(options_, workload, database);
    CopyRows(dead, database);
    workload.Adopt(database, options_.seed);
    result.finish_seconds = laps.Next();
    result.counters = dead.counters();
    for (const auto& log : logs) {
      result.logs.push_back({log->end().value(), log->position().value(), log->is_sealed()});
    }
    if (!options_.verify) return;
    Verify(workload, database, dead, result);
    result.verify_seconds = laps.Next();
  }

 private:
  static void NoteLost(const std::vector<std::unique_ptr<mm::RemainingLog>>& logs, ClusterRecoveryResult& result) {
    for (const auto& log : logs) {
      for (const mm::RemainingCopy& copy : log->copies()) {
        if (!copy.lost_why.empty()) result.notices.push_back(copy.lost_why + "; the other stores' copies are read");
      }
    }
    const auto repeated = std::unique(result.notices.begin(), result.notices.end());
    result.notices.erase(repeated, result.notices.end());
  }

  static void CopyRows(mm::RemainingDatabase& dead, Database& to) {
    for (size_t i = 0; i < to.table_count(); ++i) {
      Table& table = to.table(Database::IdOf(i));
      dead.ForEachRow(mm::TreeOf(table.id()), mm::RootOf(table.id()), [&](Key key, std::span<const std::byte> image) {
        if (image.size() != table.tuple_bytes()) {
          throw Error(ExitStatus::kCorrupt, fmt::format("damaged logs: row {} of table {} has {} bytes", key,
                                                        table.id().value(), image.size()));
        }
        table.LoadRow(WorkerId(0), key, image);
      });
    }
  }

  // a: the reference; c: what was acknowledged; d: the workload.
  void Verify(const WorkloadT& workload, const Database& database, const mm::RemainingDatabase& dead,
              ClusterRecoveryResult& result) {
    std::vector<uint64_t> committed;
    for (const TxnId id : dead.committed()) committed.push_back(id.value);
    std::sort(committed.begin(), committed.end());
    const auto acks = options_.ack_file.empty() ? nullptr : AckFile::Open(options_.ack_file, cluster_.cluster);
    Digest128 digest, expected;
    reference::ClusterReplay replayed;
    RunInParallel(2, [&](uint32_t i) {
      if (i == 0) {
        digest = DigestOf(database, options_.thread_cnt);
        if (const auto what = CheckWorkload(options_, workload, database, acks.get())) {
          ThrowViolated("d failed: " + *what);
        }
        return;
      }
      auto fresh = MakeWorkload<WorkloadT>(options_);
      Database by_reference({}, options_.thread_cnt);
      CreateTables(options_, fresh, by_reference);
      replayed = reference::ReplayCluster(ImageOf(files_, directory_, cluster_), loaded_, by_reference);
      fresh.Adopt(by_reference, options_.seed);
      expected = DigestOf(by_reference, options_.thread_cnt);
    });
    CheckSameSet(committed, replayed.committed);
    const mm::RestartCounters& counters = dead.counters();
    if (replayed.changes != counters.changes || replayed.losers != counters.losers ||
        replayed.rows_restored != counters.rows_restored) {
      ThrowViolated(fmt::format("a failed: {} changes, {} losers with {} rows, by the reference {}, {} and {}",
                                counters.changes, counters.losers, counters.rows_restored, replayed.changes,
                                replayed.losers, replayed.rows_restored));
    }
    if (expected != digest) ThrowViolated("a failed: the database differs from the reference replay's");
    result.verified = "a,";
    if (acks != nullptr) {
      CheckAcknowledged(options_.ack_file, cluster_.cluster, committed);
      result.verified += "c,";
    }
    result.verified += "d";
    result.digest = digest.Hex();
  }

  const Options& options_;
  FileSystem& files_;
  const std::string& directory_;
  const ClusterDescription& cluster_;
  WorkloadT first_;
  Database loaded_;
};

}  // namespace

ClusterRecoveryResult RecoverCluster(Options& options) {
  Laps laps;
  PosixFileSystem files;
  ClusterRecoveryResult result;
  result.directory = FindCluster(files, options.log_dirs.front(), options.run);
  DirectoryLock lock;
  // Processes that were killed a moment ago may take as long.
  const uint64_t begin = host::MonotonicNanos();
  while ((lock = files.LockDirectory(result.directory, FileSystem::LockKind::kShared)) == nullptr &&
         host::MonotonicNanos() - begin < 2'000'000'000) {
    host::SleepFor(std::chrono::milliseconds(20));
  }
  if (lock == nullptr) {
    throw Error(ExitStatus::kIo, "cannot recover " + result.directory + ": its processes are running");
  }
  const ClusterDescription cluster = ReadClusterFile(files, result.directory);
  if (options.masters != cluster.masters) {
    throw Error(ExitStatus::kMismatch, fmt::format("MASTERS: the command line says {}, the log was written with {}",
                                                   options.masters, cluster.masters));
  }
  AdoptIdentity(cluster.config, options);
  options.thread_cnt = cluster.workers;
  result.masters = cluster.masters;
  result.workers = cluster.workers;
  result.open_seconds = laps.Next();
  const auto recover = [&]<class WorkloadT>(std::type_identity<WorkloadT>) {
    ClusterRecovery<WorkloadT>(options, files, result.directory, cluster).Run(result);
  };
  if (options.workload == WorkloadKind::kSysbench) {
    recover(std::type_identity<Sysbench>());
  } else {
    WithWorkload(options, [&]<class WorkloadT>(WorkloadT&) { recover(std::type_identity<WorkloadT>()); });
  }
  return result;
}

}  // namespace dbx
