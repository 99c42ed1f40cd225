#include "multi_master/process/processes.h"

#include <utility>

#include "base/error.h"

namespace dbx::mm {
namespace {

std::unique_ptr<ReplicatedDevice> MakeDevice(const ClusterPlan& plan, MasterId self, Network& network) {
  ReplicatedOptions options;
  options.log = self;
  options.epoch = plan.epoch;
  options.set = plan.log_stores;
  return std::make_unique<ReplicatedDevice>(network, options);
}

FlushBufferOptions BufferOptions(const ClusterPlan& plan, MasterId self) {
  FlushBufferOptions options;
  options.self = self;
  options.salt = SaltOf(plan.cluster.value(), self);
  options.ring_bytes = plan.ring_bytes;
  options.writer = plan.writer;
  return options;
}

MasterOptions OptionsOfMaster(const ClusterPlan& plan, MasterId self) {
  MasterOptions options;
  options.lease = plan.lease;
  options.self = self;
  options.epoch = plan.epoch;
  options.masters = plan.masters;
  options.page_stores = plan.page_stores;
  options.frames_max = plan.frames_max;
  options.page_bytes_max = plan.page_bytes_max;
  options.kept_row_locks = plan.kept_row_locks;
  options.isolation = plan.isolation;
  options.strict_reads = plan.strict_reads;
  return options;
}

}  // namespace

LockProcessOptions OptionsOfLocks(const ClusterPlan& plan) {
  return {plan.masters, plan.lease, plan.cluster, plan.epoch, plan.log_stores};
}

MasterProcess::MasterProcess(const ClusterPlan& plan, MasterId self, const Database& tables, Network& network)
    : network_(network),
      follower_(
          network, plan.cluster, plan.log_stores, plan.masters,
          [this](FollowedFlush flush) { OnFlush(std::move(flush)); },
          [this](std::exception_ptr error) { master_->Fail(std::move(error)); }, self) {
  auto device = MakeDevice(plan, self, network);
  device_ = device.get();
  log_ = std::make_unique<StoredLog>(BufferOptions(plan, self), std::move(device));
  MasterOptions options = OptionsOfMaster(plan, self);
  options.failed = [this](std::exception_ptr error) { OnFailed(std::move(error)); };
  master_ = std::make_unique<Master>(options, tables, network, *log_);
  // Of its own log a master applies the stamps alone, and these it has: it need not read the log back.
  log_->OnLfbDurable([this](const LfbStamp& lfb) { master_->applier().Offer({lfb, {}, {}, {}}); });
}

void MasterProcess::Start() {
  network_.Start(*this);
  device_->Open();
  master_->Start();
  follower_.Start();
}

void MasterProcess::End(bool in_order) {
  if (std::exchange(stopped_, true)) return;
  follower_.Stop();
  master_->Stop();
  try {
    log_->Stop();
    if (in_order) master_->Leave();
  } catch (...) {
    error_.Set(std::current_exception());
  }
  network_.Stop();
}

void MasterProcess::Kill() {
  if (std::exchange(stopped_, true)) return;
  network_.Stop();
  device_->Abandon("the process is to end");
  follower_.Stop();
  master_->Stop();
  try {
    log_->Stop();
  } catch (const Error&) {
    // As it was made to.
  }
}

void MasterProcess::OnFailed(std::exception_ptr error) {
  error_.Set(std::move(error));
  device_->Abandon("the master has failed");
}

void MasterProcess::OnFlush(FollowedFlush flush) {
  RemoteFlush remote{flush.lfb, std::move(flush.changes), {}, std::move(flush.bytes)};
  for (const FollowedFlush::End& end : flush.ends) remote.ends.push_back({end.txn, end.time});
  master_->applier().Offer(std::move(remote));
}

bool MasterProcess::OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) {
  if (from.role != Role::kLogStore) return master_->OnMessage(from, type, body);
  return type == kLogData ? follower_.OnMessage(from, type, body) : device_->OnMessage(from, type, body);
}

void MasterProcess::OnLinkDown(NodeId peer) {
  if (peer.role == Role::kLogStore) {
    device_->OnLinkDown(peer);
    follower_.OnLinkDown(peer);
  } else {
    // A request, grant or release may be lost with it, and there is no way to come back yet.
    if (peer.role == Role::kLocks) {
      master_->Fail(std::make_exception_ptr(Error(ExitStatus::kIo, "lost the link to the lock process")));
    }
    master_->OnLinkDown(peer);
  }
}

PageStoreProcess::PageStoreProcess(const ClusterPlan& plan, const InitialPages& pages, Network& network)
    : network_(network),
      store_([&pages](PageId page) { return pages.Of(page); }, [](PageId) { return true; },
             [this](NodeId to, const PageRead& read) { network_.Send(to, PageRead::kType, EncodeBody(read)); }),
      follower_(
          network, plan.cluster, plan.log_stores, plan.masters,
          [this](const FollowedFlush& flush) { store_.OnFlush(flush.lfb, flush.changes, flush.bytes); },
          [this](std::exception_ptr error) { error_.Set(std::move(error)); }) {}

void PageStoreProcess::Start() {
  network_.Start(*this);
  follower_.Start();
}

void PageStoreProcess::Stop() {
  follower_.Stop();
  network_.Stop();
}

bool PageStoreProcess::OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) {
  if (from.role == Role::kLogStore) return type == kLogData && follower_.OnMessage(from, type, body);
  try {
    return store_.OnMessage(from, type, body);
  } catch (...) {
    // Changes that the logs have and that do not fit their page: no fault of the peer that asks for it.
    error_.Set(std::current_exception());
    return true;
  }
}

void PageStoreProcess::OnLinkDown(NodeId peer) {
  if (peer.role == Role::kLogStore) {
    follower_.OnLinkDown(peer);
  } else {
    store_.OnLinkDown(peer);
  }
}

}  // namespace dbx::mm
