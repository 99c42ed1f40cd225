// The processes of a cluster, each as a receiver of its network: a master, a Page Store. (The lock process is
// lock/lock_process.h, a Log Store log/log_store.h.)
//
// A master whose lease is over, whose log was fenced, or whose link to the lock process broke has failed: it uses none
// of its locks any more, writes nothing, and ThrowIfFailed says why.
//
// Threads: those of their parts.
#pragma once

#include <exception>
#include <memory>
#include <span>

#include "base/host.h"
#include "multi_master/lock/lock_process.h"
#include "multi_master/log/replicated_device.h"
#include "multi_master/master/initial_pages.h"
#include "multi_master/master/master.h"
#include "multi_master/master/stored_log.h"
#include "multi_master/process/log_follower.h"
#include "multi_master/store/page_store.h"
#include "storage/database.h"

namespace dbx::mm {

// What all processes of a cluster know of it.
struct ClusterPlan {
  ClusterId cluster;
  ClusterEpoch epoch{1};
  uint32_t masters = 1;
  StoreSet log_stores{StoreSetNumber(1), {0, 1, 2}};
  uint32_t page_stores = 1;  // each has all pages
  size_t frames_max = 4096;  // of each master's buffer
  size_t page_bytes_max = kPageBytes;
  Isolation isolation = Isolation::kSerializable;
  bool strict_reads = false;
  LogWriterOptions writer;
  uint64_t ring_bytes = 16 << 20;
  LeaseTerms lease;
  KeptRowLocks* kept_row_locks = nullptr;  // of all processes, or null
};

LockProcessOptions OptionsOfLocks(const ClusterPlan& plan);

// The first error of a process's threads.
class FirstError {
 public:
  void Set(std::exception_ptr error) {
    const std::lock_guard latch(latch_);
    if (error_ == nullptr) error_ = std::move(error);
  }
  void ThrowIfAny() const {
    const std::lock_guard latch(latch_);
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  mutable Mutex latch_;
  std::exception_ptr error_;
};

class MasterProcess final : public Network::Receiver {
 public:
  // `tables` names the database's tables. The Log Stores answer already, or will.
  MasterProcess(const ClusterPlan& plan, MasterId self, const Database& tables, Network& network);
  // Without Stop before it, the lock process takes the master for dead.
  ~MasterProcess() override { End(/*in_order=*/false); }

  void Start();
  // In order: all is durable, no transaction is active, and the lock process is told so.
  void Stop() { End(/*in_order=*/true); }
  // As if the process were killed: nothing is sent any more, and nothing that was not sent becomes durable.
  void Kill();
  // Throws the first error of its threads.
  void ThrowIfFailed() const { error_.ThrowIfAny(); }

  Master& master() { return *master_; }
  StoredLog& log() { return *log_; }

  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) override;
  void OnLinkDown(NodeId peer) override;

 private:
  void End(bool in_order);
  void OnFlush(FollowedFlush flush);
  // Its log takes nothing more: threads that wait for it return.
  void OnFailed(std::exception_ptr error);

  Network& network_;
  FirstError error_;
  ReplicatedDevice* device_;  // the log's
  std::unique_ptr<StoredLog> log_;
  std::unique_ptr<Master> master_;
  LogFollower follower_;
  bool stopped_ = false;
};

class PageStoreProcess final : public Network::Receiver {
 public:
  PageStoreProcess(const ClusterPlan& plan, const InitialPages& pages, Network& network);
  ~PageStoreProcess() override { Stop(); }

  void Start();
  void Stop();
  void ThrowIfFailed() const { error_.ThrowIfAny(); }
  PageStore& store() { return store_; }

  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) override;
  void OnLinkDown(NodeId peer) override;

 private:
  Network& network_;
  FirstError error_;
  PageStore store_;
  LogFollower follower_;
};

}  // namespace dbx::mm
