// A cluster within the process: masters, the lock process and a Page Store over a network and logs in memory.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "multi_master/lock/lock_process.h"
#include "multi_master/master/initial_pages.h"
#include "multi_master/master/master.h"
#include "multi_master/store/page_store.h"
#include "storage/database.h"
#include "tests/multi_master/long_lease.h"
#include "tests/multi_master/master/memory_log.h"
#include "tests/multi_master/master/memory_network.h"

namespace dbx::mm {

class PageStoreNode final : public Network::Receiver {
 public:
  PageStoreNode(Network& network, const InitialPages& pages)
      : network_(network),
        store_([&pages](PageId page) { return pages.Of(page); }, [](PageId) { return true; },
               [this](NodeId to, const PageRead& read) { network_.Send(to, PageRead::kType, EncodeBody(read)); }) {}
  void Start() { network_.Start(*this); }
  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) override {
    return store_.OnMessage(from, type, body);
  }
  void OnLinkDown(NodeId peer) override { store_.OnLinkDown(peer); }
  PageStore& store() { return store_; }

 private:
  Network& network_;
  PageStore store_;
};

class MemoryCluster {
 public:
  struct Options {
    uint32_t masters = 2;
    size_t frames_max = 512;
    Isolation isolation = Isolation::kSerializable;
    bool strict_reads = false;
  };

  // `loaded` holds the workload's loaded tables.
  MemoryCluster(const Options& options, const Database& loaded)
      : initial_(loaded),
        locks_(network_.Join({Role::kLocks, 0}), {.masters = options.masters, .lease = LongLease()}),
        store_(network_.Join({Role::kPageStore, 0}), initial_) {
    for (uint8_t i = 0; i < options.masters; ++i) {
      logs_.push_back(std::make_unique<MemoryLog>(MasterId(i), [this](const MemoryFlush& flush) { OnFlush(flush); }));
    }
    MasterOptions of_master;
    of_master.epoch = ClusterEpoch(1);
    of_master.masters = options.masters;
    of_master.frames_max = options.frames_max;
    of_master.isolation = options.isolation;
    of_master.strict_reads = options.strict_reads;
    of_master.housekeeping_nanos = 1'000'000;
    of_master.lease = LongLease();
    for (uint8_t i = 0; i < options.masters; ++i) {
      of_master.self = MasterId(i);
      masters_.push_back(std::make_unique<Master>(of_master, loaded, network_.Join({Role::kMaster, i}), *logs_[i]));
    }
    locks_.Start();
    store_.Start();
    for (uint8_t i = 0; i < options.masters; ++i) {
      network_.Join({Role::kMaster, i}).Start(*masters_[i]);
      masters_[i]->Start();
    }
    flusher_ = Thread([this] {
      while (!stopped_.load()) {
        for (auto& log : logs_) log->FlushIfAny();
        host::SleepFor(std::chrono::microseconds(200));
      }
    });
  }
  ~MemoryCluster() { Stop(); }

  Master& master(uint32_t i) { return *masters_[i]; }
  MemoryLog& log(uint32_t i) { return *logs_[i]; }
  uint32_t masters() const { return static_cast<uint32_t>(masters_.size()); }
  LockProcess& locks() { return locks_; }
  uint64_t messages() const { return network_.messages(); }

  // What is flushed from now on stays unknown to this master's applier, until Deliver. The Page Store gets it at once.
  void HoldFlushes(uint32_t to) {
    const std::lock_guard latch(flush_latch_);
    held_[to].emplace();
  }
  void Deliver(uint32_t to) {
    const std::lock_guard latch(flush_latch_);
    for (RemoteFlush& flush : *held_[to]) masters_[to]->applier().Offer(std::move(flush));
    held_[to].reset();
  }
  // Flushes the log of `of`, and waits until `by` has applied it.
  void FlushAndApply(uint32_t of, uint32_t by) {
    logs_[of]->Flush();
    const VsTime until = logs_[of]->durable_until();
    while (!logs_[by]->applied().Covers(MasterId(static_cast<uint8_t>(of)), until)) {
      host::SleepFor(std::chrono::microseconds(100));
    }
  }

  void Stop() {
    stopped_ = true;
    if (flusher_.joinable()) flusher_.join();
    for (auto& master : masters_) master->Stop();
    network_.Stop();
  }

 private:
  void OnFlush(const MemoryFlush& flush) {
    // In one order for all readers: a flush of another log may be a cause of this one.
    const std::lock_guard latch(flush_latch_);
    std::vector<PageChange> changes;
    auto record = std::make_shared<std::vector<std::shared_ptr<const std::vector<std::byte>>>>(flush.pages);
    for (const auto& body : flush.pages) {
      const auto decoded = DecodePages(*body);
      CHECK(decoded.has_value());
      changes.insert(changes.end(), decoded->begin(), decoded->end());
    }
    store_.store().OnFlush(flush.lfb, changes, record);
    RemoteFlush remote{flush.lfb, changes, {}, record};
    for (const MemoryFlush::End& end : flush.ends) remote.ends.push_back({end.txn, end.time});
    for (size_t i = 0; i < masters_.size(); ++i) {
      held_[i] ? held_[i]->push_back(remote) : masters_[i]->applier().Offer(remote);
    }
  }

  MemoryNetwork network_;
  InitialPages initial_;
  LockProcess locks_;
  PageStoreNode store_;
  Mutex flush_latch_;
  std::array<std::optional<std::vector<RemoteFlush>>, kMastersMax> held_;
  std::vector<std::unique_ptr<MemoryLog>> logs_;
  std::vector<std::unique_ptr<Master>> masters_;
  Atomic<bool> stopped_{false};
  Thread flusher_;
};

}  // namespace dbx::mm
