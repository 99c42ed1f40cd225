// A cluster over TCP and files, all of its processes in this one: a lock process, three Log Stores, Page Stores and
// masters.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "logging/device/posix_file_system.h"
#include "multi_master/lock/lock_process.h"
#include "multi_master/log/log_store.h"
#include "multi_master/process/processes.h"
#include "multi_master/tcp_network.h"
#include "tests/logging/device/temp_dir.h"
#include "tests/multi_master/long_lease.h"

namespace dbx::mm {

class TcpCluster {
 public:
  struct Options {
    uint32_t masters = 2;
    Isolation isolation = Isolation::kSerializable;
    bool strict_reads = false;
    LeaseTerms lease = LongLease();
    uint32_t page_stores = 1;
    std::optional<uint32_t> silent_page_store = {};  // takes requests, and answers none
  };

  TcpCluster(uint32_t masters, const Database& loaded, const LeaseTerms& lease = LongLease(), uint32_t page_stores = 1,
             std::optional<uint32_t> silent_page_store = {})
      : TcpCluster(
            Options{
                .masters = masters, .lease = lease, .page_stores = page_stores, .silent_page_store = silent_page_store},
            loaded) {}
  TcpCluster(const Options& cluster, const Database& loaded) : initial_(loaded) {
    const auto& [masters, isolation, strict_reads, lease, page_stores, silent_page_store] = cluster;
    plan_.cluster = ClusterId(77);
    plan_.masters = masters;
    plan_.isolation = isolation;
    plan_.strict_reads = strict_reads;
    plan_.lease = lease;
    plan_.page_stores = page_stores;
    for (uint8_t i = 0; i < kLogStores; ++i) {
      const std::string directory = directory_.path() + "/store-" + std::to_string(i);
      std::filesystem::create_directory(directory);
      LogStoreOptions options;
      options.cluster = plan_.cluster;
      options.directory = directory;
      log_stores_.push_back(std::make_unique<LogStore>(Join({Role::kLogStore, i}), files_, options));
    }
    locks_ = std::make_unique<LockProcess>(Join({Role::kLocks, 0}), OptionsOfLocks(plan_));
    for (uint8_t i = 0; i < page_stores; ++i) {
      TcpNetwork& network = Join({Role::kPageStore, i});
      if (i == silent_page_store) silent_ = &network;
      page_stores_.push_back(std::make_unique<PageStoreProcess>(plan_, initial_, network));
    }
    for (uint8_t i = 0; i < masters; ++i) {
      masters_.push_back(std::make_unique<MasterProcess>(plan_, MasterId(i), loaded, Join({Role::kMaster, i})));
    }
    for (auto& of : networks_) {
      for (auto& other : networks_) of->SetAddress(other->self(), "127.0.0.1", other->port());
    }
    for (auto& store : log_stores_) store->Start();
    locks_->Start();
    for (uint32_t i = 0; i < page_stores; ++i) {
      i == silent_page_store ? silent_->Start(ignores_) : page_stores_[i]->Start();
    }
    for (auto& master : masters_) master->Start();
  }
  ~TcpCluster() {
    for (auto& master : masters_) master->Stop();
    for (auto& store : page_stores_) store->Stop();
    locks_->Stop();
    for (auto& store : log_stores_) store->Stop();
  }

  Master& master(uint32_t i) { return masters_[i]->master(); }
  MasterProcess& process(uint32_t i) { return *masters_[i]; }
  // Its process is gone, and the lock process hears of it at once.
  void Lose(uint32_t i) {
    masters_[i]->Kill();
    locks_->OnProcessGone(MasterId(static_cast<uint8_t>(i)));
  }
  PageStoreProcess& page_store(uint32_t i = 0) { return *page_stores_[i]; }
  LogStore& log_store(uint32_t i) { return *log_stores_[i]; }
  LockProcess& locks() { return *locks_; }
  const ClusterPlan& plan() const { return plan_; }
  // Has the Log Stores' directories, store-0 and so on.
  const std::string& directory() const { return directory_.path(); }
  uint32_t masters() const { return static_cast<uint32_t>(masters_.size()); }

 private:
  struct Ignores final : Network::Receiver {
    bool OnMessage(NodeId, MessageType, std::span<const std::byte>) override { return true; }
    void OnLinkDown(NodeId) override {}
  };

  TcpNetwork& Join(NodeId node) {
    TcpOptions options;
    options.terms = {plan_.cluster, plan_.epoch, node};
    networks_.push_back(std::make_unique<TcpNetwork>(options));
    return *networks_.back();
  }

  TempDir directory_;
  PosixFileSystem files_;
  ClusterPlan plan_;
  InitialPages initial_;
  std::vector<std::unique_ptr<TcpNetwork>> networks_;
  std::vector<std::unique_ptr<LogStore>> log_stores_;
  std::unique_ptr<LockProcess> locks_;
  std::vector<std::unique_ptr<PageStoreProcess>> page_stores_;
  Ignores ignores_;
  TcpNetwork* silent_ = nullptr;
  std::vector<std::unique_ptr<MasterProcess>> masters_;
};

}  // namespace dbx::mm
