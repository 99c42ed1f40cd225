#include "multi_master/lock/local_txns.h"

#include <algorithm>
#include <mutex>

#include "base/check.h"

namespace dbx::mm {

TxnName LocalTxns::Begin(BeginTime begun) {
  const std::lock_guard latch(latch_);
  const TxnName txn = own_.Begin();
  if (unused_.empty()) {
    txns_[txn].begun = begun;
    return txn;
  }
  Txns::node_type node = std::move(unused_.back());
  unused_.pop_back();
  node.key() = txn;
  node.mapped() = Txn();
  node.mapped().begun = begun;
  txns_.insert(std::move(node));
  return txn;
}

void LocalTxns::Settle(PageId page, RowLocks& rows, AfterList& after, bool leaves) {
  if (rows.empty()) return;
  const std::lock_guard latch(latch_);
  rows.RemoveOwners([&](const TxnName& owner) {
    if (ends_.IsEnded(owner)) {
      ends_.RaiseAfter(owner, after);
      return true;
    }
    const auto own = txns_.find(owner);
    if (own == txns_.end()) {
      pages_of_[owner].insert(page);
      return false;
    }
    PageList& pages = own->second.pages;
    if (std::find(pages.begin(), pages.end(), page) == pages.end()) pages.push_back(page);
    if (leaves) own->second.left = true;
    return false;
  });
}

void LocalTxns::OnRowLock(const TxnName& txn, PageId page) {
  const std::lock_guard latch(latch_);
  const auto own = txns_.find(txn);
  CHECK(own != txns_.end());
  own->second.has_locks = true;
  PageList& pages = own->second.pages;
  if (pages.empty() || pages.back() != page) pages.push_back(page);
}

void LocalTxns::OnEnding(const TxnName& txn) {
  const std::lock_guard latch(latch_);
  txns_.at(txn).is_ending = true;
}

std::optional<bool> LocalTxns::IsSeenBy(const VsVector& tv, const TxnName& reader, const TxnName& txn) {
  // As it was loaded.
  if (txn == TxnName() || txn == reader) return true;
  const std::lock_guard latch(latch_);
  if (txn.master == self_) {
    const auto own = txns_.find(txn);
    if (own != txns_.end() && own->second.is_ending) return std::nullopt;
  }
  return ends_.IsSeenBy(tv, txn);
}

LocalTxns::PageList LocalTxns::End(const TxnName& txn, VsTime end) {
  const std::lock_guard latch(latch_);
  return Finish(txn, end);
}

std::optional<LocalTxns::PageList> LocalTxns::EndWithoutRecord(const TxnName& txn) {
  const std::lock_guard latch(latch_);
  if (txns_.at(txn).left) return std::nullopt;
  return Finish(txn, VsTime());
}

LocalTxns::PageList LocalTxns::Finish(const TxnName& txn, VsTime end) {
  const auto own = txns_.find(txn);
  CHECK(own != txns_.end());
  ends_.Add(txn, {self_, end});
  own_.End(txn, end, own->second.left);
  if (own->second.has_locks) ++ended_with_locks_;
  PageList pages = std::move(own->second.pages);
  unused_.push_back(txns_.extract(own));
  EndWaitsForEnded();
  return pages;
}

LocalTxns::PageList LocalTxns::Learn(const EndedTxns& news) {
  const std::lock_guard latch(latch_);
  ends_.Learn(news);
  std::vector<TxnName> ended;
  const TxnName low{news.master, news.epoch, news.low};
  for (auto at = pages_of_.lower_bound({news.master, news.epoch, 0}); at != pages_of_.end() && at->first <= low; ++at) {
    if (ends_.IsEnded(at->first)) ended.push_back(at->first);
  }
  for (const EndedTxns::One& one : news.above) ended.push_back({news.master, news.epoch, one.sequence});
  PageList pages;
  for (const TxnName& txn : ended) TakePagesOf(txn, pages);
  EndWaitsForEnded();
  return pages;
}

void LocalTxns::TakePagesOf(const TxnName& txn, PageList& pages) {
  const auto found = pages_of_.find(txn);
  if (found == pages_of_.end()) return;
  pages.insert(pages.end(), found->second.begin(), found->second.end());
  pages_of_.erase(found);
}

void LocalTxns::EndWaitsForEnded() {
  for (RowWait* wait : waiting_) {
    std::erase_if(wait->blockers_, [&](const TxnName& blocker) { return ends_.IsEnded(blocker); });
    if (wait->blockers_.empty()) wait->changed_.notify_one();
  }
}

std::optional<EndedTxns> LocalTxns::TakeNews(VsTime durable, bool only_if_left) {
  const std::lock_guard latch(latch_);
  std::optional<EndedTxns> news = own_.TakeNews(durable, only_if_left);
  // The own low-water mark lets the places of own ENDs be forgotten.
  if (news) ends_.Learn(*news);
  return news;
}

void LocalTxns::Forget(const VsVector& least_tv) {
  const std::lock_guard latch(latch_);
  ends_.Forget(least_tv);
}

void LocalTxns::OnAbortVictim(const AbortVictim& victim) {
  const std::lock_guard latch(latch_);
  RowWait* wait = WaitOf(victim.victim);
  if (wait == nullptr || wait->number_ != victim.number) return;
  wait->is_victim_ = true;
  wait->changed_.notify_one();
}

void LocalTxns::Stop() {
  const std::lock_guard latch(latch_);
  stopped_ = true;
  for (RowWait* wait : waiting_) wait->changed_.notify_one();
}

bool LocalTxns::IsEnded(const TxnName& txn) {
  const std::lock_guard latch(latch_);
  return ends_.IsEnded(txn);
}
size_t LocalTxns::active() {
  const std::lock_guard latch(latch_);
  return txns_.size();
}
uint64_t LocalTxns::ended_with_locks() {
  const std::lock_guard latch(latch_);
  return ended_with_locks_;
}
uint64_t LocalTxns::victims() {
  const std::lock_guard latch(latch_);
  return victims_;
}

LocalTxns::RowWait* LocalTxns::WaitOf(const TxnName& txn) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](RowWait* wait) { return wait->txn_ == txn; });
  return found == waiting_.end() ? nullptr : *found;
}

// Each victim's edges go, so every cycle through the waiter has one.
void LocalTxns::BreakCyclesThrough(const TxnName& waiter) {
  while (const std::optional<TxnName> victim = waits_.FindVictim(waiter)) {
    waits_.Retract(*victim);
    RowWait* wait = WaitOf(*victim);
    CHECK(wait != nullptr);
    wait->is_victim_ = true;
    wait->changed_.notify_one();
  }
}

// ---- a wait ----

LocalTxns::RowWait::RowWait(LocalTxns& txns, const TxnName& txn, std::vector<TxnName> blockers, uint64_t now_nanos)
    : txns_(txns), txn_(txn), since_nanos_(now_nanos), blockers_(std::move(blockers)) {
  const std::lock_guard latch(txns_.latch_);
  std::erase_if(blockers_, [&](const TxnName& blocker) { return txns_.ends_.IsEnded(blocker); });
  begun_ = txns_.txns_.at(txn).begun;
  number_ = txns_.last_number_ = WaitNumber(txns_.last_number_.value() + 1);
  txns_.waiting_.push_back(this);
  if (blockers_.empty()) return;
  txns_.waits_.Publish(txn_, {begun_, txn_}, blockers_);
  txns_.BreakCyclesThrough(txn_);
}

LocalTxns::RowWait::~RowWait() {
  {
    const std::lock_guard latch(txns_.latch_);
    std::erase(txns_.waiting_, this);
    txns_.waits_.Retract(txn_);
    if (is_victim_) ++txns_.victims_;
  }
  // Only this thread reports.
  if (is_reported_) txns_.reporter_.SendWaitReport({txn_, begun_, number_, {}});
}

std::optional<WaitResult> LocalTxns::RowWait::Outcome(uint64_t now_nanos) const {
  if (txns_.stopped_) return WaitResult::kStopped;
  if (blockers_.empty()) return WaitResult::kLookAgain;
  if (is_victim_) return WaitResult::kVictim;
  if (now_nanos >= since_nanos_ + static_cast<uint64_t>(kTimeout.count())) return WaitResult::kTimedOut;
  return std::nullopt;
}

bool LocalTxns::RowWait::ReportIsDue(uint64_t now_nanos) const {
  return !is_reported_ && now_nanos >= since_nanos_ + static_cast<uint64_t>(kReportAfter.count());
}

void LocalTxns::RowWait::Report(std::unique_lock<Mutex>& latch) {
  is_reported_ = true;
  const WaitReport report{txn_, begun_, number_, blockers_};
  latch.unlock();
  txns_.reporter_.SendWaitReport(report);
  latch.lock();
}

std::optional<WaitResult> LocalTxns::RowWait::Poll(uint64_t now_nanos) {
  std::unique_lock latch(txns_.latch_);
  if (!Outcome(now_nanos) && ReportIsDue(now_nanos)) Report(latch);
  return Outcome(now_nanos);
}

WaitResult LocalTxns::RowWait::Await() {
  std::unique_lock latch(txns_.latch_);
  for (;;) {
    const uint64_t now = host::MonotonicNanos();
    if (const auto outcome = Outcome(now)) return *outcome;
    if (ReportIsDue(now)) {
      Report(latch);
      continue;
    }
    const std::chrono::nanoseconds until = is_reported_ ? kTimeout : kReportAfter;
    changed_.wait_for(latch, until - std::chrono::nanoseconds(now - since_nanos_),
                      [&] { return txns_.stopped_ || blockers_.empty() || is_victim_; });
  }
}

}  // namespace dbx::mm
