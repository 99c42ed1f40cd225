#include "multi_master/master/applier.h"

#include <map>
#include <mutex>
#include <utility>

namespace dbx::mm {

void Applier::Offer(RemoteFlush flush) {
  const std::lock_guard latch(latch_);
  logs_[flush.lfb.master.value()].push_back(std::move(flush));
  offered_ = true;
  changed_.notify_all();
}

void Applier::Run() {
  std::unique_lock latch(latch_);
  while (!stopped_) {
    offered_ = false;
    if (!ApplyReady(latch)) changed_.wait(latch, [this] { return offered_ || stopped_; });
  }
}

void Applier::Stop() {
  const std::lock_guard latch(latch_);
  stopped_ = true;
  changed_.notify_all();
}

bool Applier::ApplyReady(std::unique_lock<Mutex>& latch) {
  bool any = false;
  for (std::deque<RemoteFlush>& flushes : logs_) {
    while (!flushes.empty() && log_.MayApply(flushes.front().lfb)) {
      const RemoteFlush flush = std::move(flushes.front());
      flushes.pop_front();
      latch.unlock();
      Apply(flush);
      latch.lock();
      any = true;
    }
  }
  return any;
}

void Applier::Apply(const RemoteFlush& flush) {
  if (flush.lfb.master != self_) {
    pages_.ApplyFlush(flush.lfb, flush.changes);
    std::map<std::pair<MasterId, ClusterEpoch>, EndedTxns> news;
    AfterList ends;
    for (const RemoteFlush::End& end : flush.ends) {
      EndedTxns& of = news[{end.txn.master, end.txn.epoch}];
      of.master = end.txn.master;
      of.epoch = end.txn.epoch;
      of.above.push_back({end.txn.sequence, {flush.lfb.master, end.time}});
      ends.RaiseTo(flush.lfb.master, end.time);
    }
    // A local transaction may have a row lock at once that these ENDs set free: the next LFB builds upon them.
    log_.OnGrant({}, ends);
    for (const auto& [member, ended] : news) locks_.Learn(ended);
  }
  log_.OnApplied(flush.lfb);
  told_();
  applied_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace dbx::mm
