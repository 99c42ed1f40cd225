// One master and one worker in one process, without sockets and disks: where the time of a transaction goes. The log is
// the real one over a device that completes at once; lock process and Page Store answer within the process, and have
// nothing to do once the master has its pages.
//
//   build/micro/one_master_bench [ROWS [ACCESSES [TRANSACTIONS]]]
//
// Times are of the worker's processor time, so that other processes of the host matter little.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "benchmarks/micro/null_device.h"
#include "benchmarks/ycsb/ycsb.h"
#include "multi_master/lock/lock_process.h"
#include "multi_master/master/initial_pages.h"
#include "multi_master/master/master.h"
#include "multi_master/master/stored_log.h"
#include "multi_master/store/page_store.h"
#include "storage/database.h"
#include "system/cluster/cluster_worker.h"
#include "tests/multi_master/master/memory_cluster.h"

namespace {

thread_local uint64_t allocations = 0;

}  // namespace

void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace dbx {
namespace {

mm::FlushBufferOptions LogOptions() {
  mm::FlushBufferOptions options;
  options.salt = 1;
  return options;
}

mm::LockProcessOptions LocksOfOne() {
  mm::LockProcessOptions options;
  options.masters = 1;
  return options;
}

struct OneMaster {
  OneMaster(const Database& tables, size_t frames_max)
      : pages(tables),
        locks(network.Join({mm::Role::kLocks, 0}), LocksOfOne()),
        store(network.Join({mm::Role::kPageStore, 0}), pages),
        log(LogOptions(), std::make_unique<NullDevice>()) {
    mm::MasterOptions options;
    options.epoch = mm::ClusterEpoch(1);
    options.frames_max = frames_max;
    mm::Network& own = network.Join({mm::Role::kMaster, 0});
    master = std::make_unique<mm::Master>(options, tables, own, log);
    log.OnLfbDurable([this](const mm::LfbStamp& lfb) { master->applier().Offer({lfb, {}, {}, nullptr}); });
    locks.Start();
    store.Start();
    own.Start(*master);
    master->Start();
  }
  ~OneMaster() {
    master->Stop();
    log.Stop();
    network.Stop();
  }

  mm::MemoryNetwork network;
  mm::InitialPages pages;
  mm::LockProcess locks;
  mm::PageStoreNode store;
  mm::StoredLog log;
  std::unique_ptr<mm::Master> master;
};

void Run(uint64_t rows, uint32_t accesses, uint64_t txns) {
  YcsbConfig config;
  config.rows = rows;
  config.req_per_query = accesses;
  Ycsb workload(config);
  Database tables({}, 1);
  tables.OrderEveryTable();
  workload.CreateTables(tables);
  workload.Load(tables, 7, 1);
  OneMaster one(tables, rows / 4 + 1024);
  const auto run = [&](uint64_t count) {
    ClusterWorkerOptions options;
    options.txn_count = count;
    ClusterWorker<Ycsb> worker(WorkerId(0), *one.master, workload, workload.Generate(WorkerId(0), 10'000, 1), options,
                               nullptr);
    ClusterRunControl control;
    control.go = true;
    const uint64_t allocated = allocations, nanos = host::ThreadCpuNanos(), bytes = one.log.volume().record_bytes;
    worker.Run(control);
    const auto n = static_cast<double>(count);
    std::printf("%8.0f ns of processor time, %.2f allocations, %.0f bytes of records for each of %.0f transactions\n",
                static_cast<double>(host::ThreadCpuNanos() - nanos) / n,
                static_cast<double>(allocations - allocated) / n,
                static_cast<double>(one.log.volume().record_bytes - bytes) / n, n);
  };
  // Its pages come, rows get a version before, and pages split.
  run(rows * 4);
  run(txns);
}

}  // namespace
}  // namespace dbx

int main(int argc, char** argv) {
  const auto number = [&](int i, uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  dbx::Clock::NowTicks();
  dbx::Run(number(1, 20'000), static_cast<uint32_t>(number(2, 2)), number(3, 200'000));
}
