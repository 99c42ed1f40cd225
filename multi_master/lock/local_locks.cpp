#include "multi_master/lock/local_locks.h"

#include <algorithm>

#include "base/check.h"

namespace dbx::mm {

LocalLockCounters& LocalLockCounters::operator+=(const LocalLockCounters& other) {
  requests += other.requests;
  releases += other.releases;
  grants += other.grants;
  reclaims += other.reclaims;
  old_generations += other.old_generations;
  upgrades += other.upgrades;
  row_locks += other.row_locks;
  row_conflicts += other.row_conflicts;
  transactions += other.transactions;
  victims += other.victims;
  return *this;
}

bool LocalLocks::On(MessageType type, std::span<const std::byte> body) {
  const auto heed = [&]<class Message>(std::optional<Message> message, auto&& handle) {
    if (message) handle(*message);
    return message.has_value();
  };
  if (type == PageGrant::kType) {
    return heed(DecodeBody<PageGrant>(body), [&](const auto& grant) { OnGrant(grant); });
  }
  if (type == PageReclaim::kType) {
    return heed(DecodeBody<PageReclaim>(body), [&](const auto& reclaim) { OnReclaim(reclaim); });
  }
  if (type == EndedTxns::kType) {
    return heed(DecodeBody<EndedTxns>(body), [&](const auto& news) { OnEndsTold(news); });
  }
  if (type == AbortVictim::kType) {
    return heed(DecodeBody<AbortVictim>(body), [&](const auto& victim) { txns_.OnAbortVictim(victim); });
  }
  if (type == LeastTv::kType) {
    return heed(DecodeBody<LeastTv>(body), [&](const auto& told) { OnLeastTv(told.tv); });
  }
  return false;
}

// ---- a thread that needs a page ----

PinResult LocalLocks::Acquire(PageId id, LockMode mode, bool may_wait) {
  {
    Shard& shard = ShardOf(id);
    const std::lock_guard latch(shard.latch);
    if (stopped_.load()) return PinResult::kStopped;
    Page* page = shard.Find(id);
    if (page != nullptr && TryPin(*page, mode)) return PinResult::kPinned;
    if (!may_wait) return PinResult::kWouldWait;
  }
  return PageTurn(*this, id, mode).Await();
}

bool LocalLocks::TryPin(Page& page, LockMode mode) {
  if (page.state != State::kHeld || !Suffices(page.mode, mode)) return false;
  // The turn that a fresh grant owes is that of the thread that has fetched it: it keeps the latch from there to here.
  if (page.MustGo() && !page.IsFresh()) return false;
  page.fresh = false;
  ++page.pins;
  return true;
}

void LocalLocks::Unpin(PageId id) {
  Shard& shard = ShardOf(id);
  const std::lock_guard latch(shard.latch);
  Page* page = shard.Find(id);
  CHECK(page != nullptr && page->pins > 0);
  --page->pins;
  StartReleaseIfDue(id, *page);
}

LocalLocks::PageTurn::PageTurn(LocalLocks& locks, PageId page, LockMode mode) : locks_(locks), id_(page), mode_(mode) {
  Shard& shard = locks_.ShardOf(id_);
  const std::lock_guard latch(shard.latch);
  ++shard.PageOf(id_).waiting(mode_);
}

LocalLocks::PageTurn::~PageTurn() {
  if (!waits_) return;
  Shard& shard = locks_.ShardOf(id_);
  const std::lock_guard latch(shard.latch);
  Page& page = shard.PageOf(id_);
  --page.waiting(mode_);
  locks_.StartReleaseIfDue(id_, page);
  shard.DropIfIdle(id_);
}

bool LocalLocks::PageTurn::Poll() {
  Shard& shard = locks_.ShardOf(id_);
  std::unique_lock latch(shard.latch);
  waits_ = !locks_.Step(id_, shard.PageOf(id_), mode_, latch);
  return !waits_;
}

PinResult LocalLocks::PageTurn::Await() {
  Shard& shard = locks_.ShardOf(id_);
  std::unique_lock latch(shard.latch);
  // It stays where it is as long as someone waits for it.
  Page& page = shard.PageOf(id_);
  page.changed.wait(latch, [&] {
    waits_ = !locks_.Step(id_, page, mode_, latch);
    return !waits_ || locks_.stopped_.load();
  });
  return waits_ ? PinResult::kStopped : PinResult::kPinned;
}

bool LocalLocks::Step(PageId id, Page& page, LockMode mode, std::unique_lock<Mutex>& latch) {
  for (;;) {
    if (TryPin(page, mode)) {
      --page.waiting(mode);
      return true;
    }
    if (stopped_.load()) return false;
    StartReleaseIfDue(id, page);
    if (page.state == State::kNone) {
      Ask(id, page, latch);
    } else if (page.state == State::kGranted && Suffices(page.mode, mode)) {
      Fetch(id, page, latch);
    } else {
      return false;
    }
  }
}

void LocalLocks::Ask(PageId id, Page& page, std::unique_lock<Mutex>& latch) {
  page.state = State::kWanted;
  page.mode = page.waiting_exclusive > 0 ? LockMode::kExclusive : LockMode::kShared;
  page.generation = Generation(last_generation_.fetch_add(1, std::memory_order_relaxed) + 1);
  page.reclaimed = false;
  ++ShardOf(id).counters.requests;
  const PageRequest request{id, page.mode, page.generation};
  latch.unlock();
  owner_.SendRequest(request);
  latch.lock();
}

void LocalLocks::Fetch(PageId id, Page& page, std::unique_lock<Mutex>& latch) {
  page.state = State::kFetching;
  const PageLsn lsn = page.lsn;
  latch.unlock();
  try {
    owner_.FetchPage(id, lsn);
  } catch (...) {
    // The next thread that waits tries again, or meets the same error.
    latch.lock();
    page.state = State::kGranted;
    page.changed.notify_all();
    throw;
  }
  latch.lock();
  page.state = State::kHeld;
  page.changed.notify_all();
}

void LocalLocks::SetLsn(PageId id, const PageLsn& lsn) {
  Shard& shard = ShardOf(id);
  const std::lock_guard latch(shard.latch);
  Page* page = shard.Find(id);
  CHECK(page != nullptr && page->pins > 0 && page->mode == LockMode::kExclusive);
  CHECK(page->lsn.IsOlderThan(lsn));
  page->lsn = lsn;
}

// ---- messages ----

void LocalLocks::OnGrant(const PageGrant& grant) {
  Shard& shard = ShardOf(grant.page);
  const auto is_wanted = [&](const Page* page) {
    return page != nullptr && page->state == State::kWanted && page->generation == grant.generation;
  };
  {
    const std::lock_guard latch(shard.latch);
    if (!is_wanted(shard.Find(grant.page))) {
      ++shard.counters.old_generations;
      return;
    }
  }
  // Only this thread ends the state kWanted.
  owner_.OnGrant(grant.lsn, grant.after);
  const std::lock_guard latch(shard.latch);
  Page* page = shard.Find(grant.page);
  CHECK(is_wanted(page));
  ++shard.counters.grants;
  page->state = State::kGranted;
  page->mode = grant.mode;
  page->lsn = grant.lsn;
  page->rows.Merge(grant.rows);
  page->after.RaiseTo(grant.after);
  page->fresh = true;
  Settle(grant.page, *page, false);
  StartReleaseIfDue(grant.page, *page);
  page->changed.notify_all();
}

void LocalLocks::OnReclaim(const PageReclaim& reclaim) {
  Shard& shard = ShardOf(reclaim.page);
  const std::lock_guard latch(shard.latch);
  ++shard.counters.reclaims;
  Page* page = shard.Find(reclaim.page);
  const bool is_its =
      page != nullptr && page->generation == reclaim.generation && (page->IsGranted() || page->state == State::kWanted);
  if (!is_its) {
    ++shard.counters.old_generations;
    return;
  }
  // In kWanted it has overtaken its grant.
  page->reclaimed = true;
  StartReleaseIfDue(reclaim.page, *page);
}

void LocalLocks::OnEndsTold(const EndedTxns& news) {
  AfterList ends = news.low_after;
  for (const EndedTxns::One& one : news.above) ends.RaiseTo(one.place.master, one.place.time);
  owner_.OnEndsTold(ends);
  Learn(news);
}

// ---- releases ----

void LocalLocks::StartReleaseIfDue(PageId id, Page& page) {
  const bool has_it = page.state == State::kGranted || page.state == State::kHeld;
  if (!has_it || page.pins > 0 || !page.MustGo() || page.IsFresh()) return;
  if (!page.reclaimed) ++ShardOf(id).counters.upgrades;
  StartRelease(id, page);
}

void LocalLocks::StartRelease(PageId id, Page& page) {
  page.state = State::kReleasing;
  const std::lock_guard latch(due_latch_);
  due_.push_back(id);
  due_changed_.notify_one();
}

bool LocalLocks::Evict(PageId id) {
  Shard& shard = ShardOf(id);
  const std::lock_guard latch(shard.latch);
  Page* page = shard.Find(id);
  if (page == nullptr || (page->state != State::kHeld && page->state != State::kGranted)) return false;
  if (page->pins > 0 || page->waiting_shared + page->waiting_exclusive > 0) return false;
  StartRelease(id, *page);
  return true;
}

bool LocalLocks::ReleaseDue() {
  std::vector<PageId> due;
  {
    const std::lock_guard latch(due_latch_);
    due.swap(due_);
  }
  if (due.empty()) return false;
  std::vector<PageRelease> releases;
  VsTime durable;
  for (const PageId id : due) releases.push_back(BuildRelease(id, durable));
  if (durable.value() > 0) owner_.FlushUntilDurable(durable);
  for (const PageRelease& release : releases) {
    owner_.SendRelease(release);
    FinishRelease(release.page);
  }
  return true;
}

void LocalLocks::RunReleases() {
  while (!stopped_.load()) {
    if (ReleaseDue()) continue;
    std::unique_lock latch(due_latch_);
    due_changed_.wait(latch, [&] { return !due_.empty() || stopped_.load(); });
  }
}

// The list is complete before the flush: ENDs of owners that are dropped later may not be durable when it is sent, and
// their locks are in it.
PageRelease LocalLocks::BuildRelease(PageId id, VsTime& durable) {
  PageRelease release;
  std::vector<std::pair<PageId, Generation>> splits;
  {
    Shard& shard = ShardOf(id);
    const std::lock_guard latch(shard.latch);
    Page& page = shard.PageOf(id);
    CHECK(page.state == State::kReleasing && page.pins == 0);
    ++shard.counters.releases;
    Settle(id, page, true);
    release = {id, page.mode, page.generation, page.lsn, {}, page.after, {}};
    release.rows = page.mode == LockMode::kExclusive ? page.rows : page.rows.PartOf(self_);
    if (OwnTimeIn(page).value() > durable.value()) durable = OwnTimeIn(page);
    splits = page.splits;
  }
  AddSplits(release, std::move(splits), durable);
  return release;
}

// Row locks that were moved from the page, to pages split off and from these to others, are in no list of the lock
// process until those pages are released. A split-off page that was released since has taken its list along; one whose
// release is due has not: the master may die between the two.
void LocalLocks::AddSplits(PageRelease& release, std::vector<std::pair<PageId, Generation>> splits, VsTime& durable) {
  for (size_t i = 0; i < splits.size(); ++i) {
    const auto [id, generation] = splits[i];
    Shard& shard = ShardOf(id);
    const std::lock_guard latch(shard.latch);
    Page* page = shard.Find(id);
    const bool is_its = page != nullptr && page->generation == generation;
    if (!is_its || (!page->IsGranted() && page->state != State::kReleasing)) continue;
    Settle(id, *page, true);
    release.splits.push_back({id, generation, page->rows, page->after});
    if (OwnTimeIn(*page).value() > durable.value()) durable = OwnTimeIn(*page);
    splits.insert(splits.end(), page->splits.begin(), page->splits.end());
  }
}

void LocalLocks::FinishRelease(PageId id) {
  Shard& shard = ShardOf(id);
  std::unique_lock latch(shard.latch);
  Page& page = shard.PageOf(id);
  CHECK(page.state == State::kReleasing);
  page.state = State::kNone;
  page.fresh = false;
  page.splits.clear();
  page.rows = page.rows.PartOf(self_);
  if (page.waiting_shared + page.waiting_exclusive > 0 && !stopped_.load()) {
    Ask(id, page, latch);
  } else {
    shard.DropIfIdle(id);
  }
}

VsTime LocalLocks::OwnTimeIn(const Page& page) const {
  const VsTime dropped = page.after.of(self_);
  if (page.lsn.master != self_ || page.lsn.time.value() < dropped.value()) return dropped;
  return page.lsn.time;
}

void LocalLocks::Stop() {
  stopped_.store(true);
  txns_.Stop();
  for (Shard& shard : shards_) {
    const std::lock_guard latch(shard.latch);
    for (auto& [id, page] : shard.pages) page->changed.notify_all();
  }
  const std::lock_guard latch(due_latch_);
  due_changed_.notify_all();
}

// ---- row locks ----

std::vector<TxnName> LocalLocks::TryLockRow(PageId id, const RowLock& lock) {
  Shard& shard = ShardOf(id);
  const std::lock_guard latch(shard.latch);
  Page* page = shard.Find(id);
  CHECK(page != nullptr && page->pins > 0 && Suffices(page->mode, PageModeFor(lock.kind)));
  if (page->rows.Covers(lock)) return {};
  std::vector<TxnName> blockers = page->rows.FindConflicts(lock);
  if (!blockers.empty()) {
    Settle(id, *page, false);
    blockers = page->rows.FindConflicts(lock);
  }
  if (!blockers.empty()) {
    ++shard.counters.row_conflicts;
    return blockers;
  }
  if (lock.kind == RowLockKind::kInsertIntention) return {};
  page->rows.Add(lock);
  shard.counters.row_locks += lock.kind != RowLockKind::kGap;
  txns_.OnRowLock(lock.owner, id);
  return {};
}

WaitResult LocalLocks::WaitForEnds(const TxnName& txn, std::vector<TxnName> blockers, std::span<const PageId> pinned) {
  for (const PageId page : pinned) Unpin(page);
  return LocalTxns::RowWait(txns_, txn, std::move(blockers), host::MonotonicNanos()).Await();
}

void LocalLocks::SplitLocks(PageId left, Key separator, PageId right) {
  Shard& left_shard = ShardOf(left);
  Shard& right_shard = ShardOf(right);
  const auto is_ours = [](const Page* page) {
    return page != nullptr && page->pins > 0 && page->mode == LockMode::kExclusive;
  };
  RowLocks moved;
  AfterList after;
  {
    const std::lock_guard latch(left_shard.latch);
    const Page* page = left_shard.Find(left);
    CHECK(is_ours(page));
    moved = RowLocks(page->rows).SplitOff(separator);
    after = page->after;
  }
  Generation generation;
  {
    const std::lock_guard latch(right_shard.latch);
    Page* page = right_shard.Find(right);
    CHECK(is_ours(page));
    page->rows.Merge(moved);
    page->after.RaiseTo(after);
    Settle(right, *page, false);
    generation = page->generation;
  }
  // They are on both pages for a moment, so that no end of an owner misses them.
  const std::lock_guard latch(left_shard.latch);
  Page* page = left_shard.Find(left);
  page->rows.SplitOff(separator);
  page->splits.emplace_back(right, generation);
}

// ---- ends ----

void LocalLocks::End(const TxnName& txn, VsTime end) { SettleAll(txns_.End(txn, end)); }

bool LocalLocks::EndWithoutRecord(const TxnName& txn) {
  const std::optional<LocalTxns::PageList> pages = txns_.EndWithoutRecord(txn);
  if (!pages) return false;
  SettleAll(*pages);
  // An END that has become durable shows that its log was not fenced. This transaction leaves nothing of the kind.
  owner_.RequireLease();
  return true;
}

void LocalLocks::Learn(const EndedTxns& news) { SettleAll(txns_.Learn(news)); }

void LocalLocks::SettleAll(const LocalTxns::PageList& pages) {
  for (const PageId id : pages) {
    Shard& shard = ShardOf(id);
    const std::lock_guard latch(shard.latch);
    Page* page = shard.Find(id);
    if (page == nullptr) continue;
    Settle(id, *page, false);
    shard.DropIfIdle(id);
  }
}

void LocalLocks::Settle(PageId id, Page& page, bool leaves) {
  // Of a page that is not held, the list that others get still has the lock, and they find its END.
  AfterList unused;
  const bool is_held = page.state != State::kNone && page.state != State::kWanted;
  txns_.Settle(id, page.rows, is_held ? page.after : unused, leaves);
}

void LocalLocks::OnLeastTv(const VsVector& least_tv) {
  txns_.Forget(least_tv);
  for (Shard& shard : shards_) {
    const std::lock_guard latch(shard.latch);
    std::vector<PageId> idle;
    for (auto& [id, page] : shard.pages) {
      page->after.DropCoveredBy(least_tv);
      if (page->IsIdle()) idle.push_back(id);
    }
    for (const PageId id : idle) shard.pages.erase(id);
  }
}

// ---- the table ----

LocalLocks::Page& LocalLocks::Shard::PageOf(PageId id) {
  std::unique_ptr<Page>& page = pages[id];
  if (!page) page = std::make_unique<Page>();
  return *page;
}

LocalLocks::Page* LocalLocks::Shard::Find(PageId id) {
  const auto found = pages.find(id);
  return found == pages.end() ? nullptr : found->second.get();
}

void LocalLocks::Shard::DropIfIdle(PageId id) {
  const auto found = pages.find(id);
  if (found != pages.end() && found->second->IsIdle()) pages.erase(found);
}

AfterList LocalLocks::AfterListOf(PageId id) {
  Shard& shard = ShardOf(id);
  const std::lock_guard latch(shard.latch);
  const Page* page = shard.Find(id);
  return page == nullptr ? AfterList() : page->after;
}

RowLocks LocalLocks::RowLocksOf(PageId id) {
  Shard& shard = ShardOf(id);
  const std::lock_guard latch(shard.latch);
  const Page* page = shard.Find(id);
  return page == nullptr ? RowLocks() : page->rows;
}

std::optional<LockMode> LocalLocks::HeldMode(PageId id) {
  Shard& shard = ShardOf(id);
  const std::lock_guard latch(shard.latch);
  const Page* page = shard.Find(id);
  if (page == nullptr || (!page->IsGranted() && page->state != State::kReleasing)) return std::nullopt;
  return page->mode;
}

LocalLockCounters LocalLocks::counters() {
  LocalLockCounters sum;
  for (Shard& shard : shards_) {
    const std::lock_guard latch(shard.latch);
    sum += shard.counters;
  }
  sum.transactions = txns_.ended_with_locks();
  sum.victims = txns_.victims();
  return sum;
}

size_t LocalLocks::pages_in_use() {
  size_t sum = 0;
  for (Shard& shard : shards_) {
    const std::lock_guard latch(shard.latch);
    sum += shard.pages.size();
  }
  return sum;
}

}  // namespace dbx::mm
