#include "multi_master/lock/lock_process.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace dbx::mm {

LockProcess::LockProcess(Network& network, const LockProcessOptions& options)
    : network_(network),
      options_(options),
      locks_(*this),
      leases_(options.masters, options.lease, host::MonotonicNanos()) {
  for (uint32_t i = 0; i < options.masters; ++i) locks_.AddMaster(MasterId(static_cast<uint8_t>(i)));
}

void LockProcess::Start() {
  network_.Start(*this);
  watcher_ = Thread([this] { WatchLeases(); });
  recoverer_ = Thread([this] { RecoverDead(); });
}

void LockProcess::Stop() {
  {
    const std::lock_guard latch(latch_);
    stopped_ = true;
    if (recovery_) recovery_->Stop();
    stopping_.notify_all();
    died_.notify_all();
  }
  network_.Stop();
  if (watcher_.joinable()) watcher_.join();
  if (recoverer_.joinable()) recoverer_.join();
}

void LockProcess::ThrowIfFailed() {
  const std::lock_guard latch(latch_);
  if (error_) std::rethrow_exception(error_);
}

void LockProcess::Send(MasterId to, MessageType type, std::vector<std::byte> body) {
  network_.Send({Role::kMaster, to.value()}, type, body);
}

// ---- what comes in ----

bool LockProcess::OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) {
  if (from.role == Role::kLogStore) {
    std::unique_lock latch(latch_);
    const std::shared_ptr<LogRecovery> recovery = recovery_;
    latch.unlock();
    return recovery == nullptr || recovery->OnMessage(from, type, body);
  }
  if (from.role != Role::kMaster || from.index >= options_.masters) return false;
  const MasterId master(from.index);
  const std::lock_guard latch(latch_);
  if (type == LeaseRequest::kType) return OnLeaseRequest(master, body);
  if (!locks_.On(master, type, body)) return false;
  // The table does not heed what a master that is dead by now has sent: its losers are undone by another one.
  if (type == EndedTxns::kType && losers_.size() > 0 && !leases_.IsDead(master)) OnEnded(*DecodeBody<EndedTxns>(body));
  return true;
}

bool LockProcess::OnLeaseRequest(MasterId from, std::span<const std::byte> body) {
  const auto request = DecodeBody<LeaseRequest>(body);
  if (!request) return false;
  if (leases_.OnRequest(from, *request, host::MonotonicNanos())) SendTo(from, LeaseGrant{request->number});
  return true;
}

void LockProcess::OnLinkDown(NodeId peer) {
  std::unique_lock latch(latch_);
  if (peer.role == Role::kMaster && peer.index < options_.masters) leases_.OnLinkDown(MasterId(peer.index));
  const std::shared_ptr<LogRecovery> recovery = recovery_;
  latch.unlock();
  if (peer.role == Role::kLogStore && recovery != nullptr) recovery->OnLinkDown(peer);
}

void LockProcess::OnProcessGone(MasterId master) {
  const std::lock_guard latch(latch_);
  Bury(master);
}

void LockProcess::OnEnded(const EndedTxns& news) {
  if (losers_.OnEnded(news)) DeathOf(news.master).undone_nanos = host::MonotonicNanos();
}

// ---- deaths ----

void LockProcess::Bury(MasterId master) {
  if (!leases_.MarkDead(master)) return;
  locks_.OnLeaseOver(master);
  deaths_.push_back({master, host::MonotonicNanos()});
  if (leases_.AllAreDead()) {
    error_ = std::make_exception_ptr(Error(ExitStatus::kIo, "all masters are dead"));
    return;
  }
  to_recover_.push_back(master);
  died_.notify_all();
}

void LockProcess::GiveLosers() {
  const std::optional<MasterId> survivor = leases_.FirstLiving();
  if (!survivor) return;
  for (const UndoLoser& undo : losers_.GiveTo(*survivor)) SendTo(*survivor, undo);
}

MasterDeath& LockProcess::DeathOf(MasterId master) {
  const auto death =
      std::find_if(deaths_.begin(), deaths_.end(), [&](const MasterDeath& of) { return of.master == master; });
  CHECK(death != deaths_.end());
  return *death;
}

void LockProcess::WatchLeases() {
  std::unique_lock latch(latch_);
  while (!stopped_) {
    for (const MasterId master : leases_.Expired(host::MonotonicNanos())) Bury(master);
    stopping_.wait_for(latch, std::chrono::nanoseconds(options_.lease.request_nanos / 5), [this] { return stopped_; });
  }
}

void LockProcess::RecoverDead() {
  std::unique_lock latch(latch_);
  try {
    for (;;) {
      died_.wait(latch, [this] { return stopped_ || !to_recover_.empty(); });
      if (stopped_) return;
      Recover(latch);
    }
  } catch (...) {
    if (!latch.owns_lock()) latch.lock();
    if (!error_) error_ = std::current_exception();
  }
}

void LockProcess::Recover(std::unique_lock<Mutex>& latch) {
  const MasterId master = to_recover_.front();
  to_recover_.pop_front();
  const auto recovery = std::make_shared<LogRecovery>(
      network_, LogRecoveryOptions{options_.cluster, master, options_.epoch, options_.log_stores});
  recovery_ = recovery;
  latch.unlock();
  std::optional<DeadLog::Result> log = recovery->Run();
  latch.lock();
  recovery_.reset();
  if (!log) return;
  locks_.OnMasterDead(log->dead);
  locks_.FreePages(master);
  MasterDeath& death = DeathOf(master);
  death.freed_nanos = host::MonotonicNanos();
  death.losers = log->losers.size();
  death.log_bytes = recovery->seal().value();
  if (death.losers == 0) death.undone_nanos = death.freed_nanos;
  losers_.OnDead(master, log->dead.log_end);
  losers_.Add(std::move(log->losers), log->dead.log_end);
  GiveLosers();
}

// ---- for results ----

std::vector<MasterDeath> LockProcess::deaths() {
  const std::lock_guard latch(latch_);
  return deaths_;
}

size_t LockProcess::losers_left() {
  const std::lock_guard latch(latch_);
  return losers_.size();
}

}  // namespace dbx::mm
