#include "multi_master/lock/global_locks.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace dbx::mm {

void GlobalLocks::AddMaster(MasterId master) { members_[master] = {}; }

bool GlobalLocks::On(MasterId from, MessageType type, std::span<const std::byte> body) {
  const auto heed = [&]<class Message>(std::optional<Message> message, auto&& handle) {
    if (!message) return false;
    const auto member = members_.find(from);
    // A master whose lease is over may still have sent; its pages wait for the end of its log.
    if (member == members_.end() || member->second.is_dead) return true;
    return handle(*message);
  };
  const auto always = [](auto&& handle) {
    return [handle](const auto& message) {
      handle(message);
      return true;
    };
  };
  if (type == PageRequest::kType) {
    return heed(DecodeBody<PageRequest>(body), always([&](const auto& request) { OnRequest(from, request); }));
  }
  if (type == PageRelease::kType) {
    return heed(DecodeBody<PageRelease>(body), [&](const auto& release) { return OnRelease(from, release); });
  }
  if (type == EndedTxns::kType) {
    return heed(DecodeBody<EndedTxns>(body), [&](const auto& news) { return OnEnded(from, news); });
  }
  if (type == WaitReport::kType) {
    return heed(DecodeBody<WaitReport>(body), [&](const auto& report) { return OnWaitReport(from, report); });
  }
  if (type == LeastTv::kType) {
    return heed(DecodeBody<LeastTv>(body), always([&](const auto& told) { OnLeastTv(from, told); }));
  }
  return false;
}

void GlobalLocks::OnRequest(MasterId from, const PageRequest& request) {
  ++counters_.requests;
  Page& page = PageOf(request.page);
  const auto is_newer = [&](const auto& other) {
    return other.master == from && other.generation >= request.generation;
  };
  if (std::any_of(page.holders.begin(), page.holders.end(), is_newer) ||
      std::any_of(page.queue.begin(), page.queue.end(), is_newer)) {
    ++counters_.old_generations;
    return;
  }
  std::erase_if(page.queue, [&](const Waiter& waiter) { return waiter.master == from; });
  page.queue.push_back({from, request.mode, request.generation});
  GrantAll(request.page, page);
}

bool GlobalLocks::OnRelease(MasterId from, const PageRelease& release) {
  ++counters_.releases;
  Page& page = PageOf(release.page);
  const auto holder = std::find_if(page.holders.begin(), page.holders.end(), [&](const Holder& held) {
    return held.master == from && held.generation == release.generation;
  });
  if (holder == page.holders.end()) {
    ++counters_.old_generations;
    DropIfIdle(release.page);
    return true;
  }
  const bool is_exclusive = release.mode == LockMode::kExclusive;
  if (holder->mode != release.mode || (is_exclusive && release.lsn.IsOlderThan(LsnOf(release.page)))) return false;
  page.holders.erase(holder);
  page.after.RaiseTo(release.after);
  if (is_exclusive) {
    RaiseLsn(release.page, release.lsn);
    page.rows = release.rows;
  } else {
    // The sender knows nothing of row locks that other masters have granted under S meanwhile.
    page.rows.ReplaceOwnersOf(from, release.rows);
  }
  DropEnded(page);
  IndexOwners(release.page, page.rows);
  for (const PageRelease::SplitPage& split : release.splits) {
    Page& right = PageOf(split.page);
    const bool is_its = std::any_of(right.holders.begin(), right.holders.end(), [&](const Holder& held) {
      return held.master == from && held.generation == split.generation && held.mode == LockMode::kExclusive;
    });
    if (is_its) {
      right.rows = split.rows;
      right.after.RaiseTo(split.after);
      DropEnded(right);
      IndexOwners(split.page, right.rows);
    }
    DropIfIdle(split.page);
  }
  GrantAll(release.page, page);
  DropIfIdle(release.page);
  return true;
}

bool GlobalLocks::OnEnded(MasterId from, const EndedTxns& news) {
  // Of another master, which is dead, only single transactions: those that the sender has undone.
  if (news.master != from && (news.low > 0 || !news.open.empty())) return false;
  ++counters_.ends_heard;
  ends_.Learn(news);
  DropOwnersUpTo(news);
  TellAllBut(from, EndedTxns::kType, EncodeBody(news));
  return true;
}

bool GlobalLocks::OnWaitReport(MasterId from, const WaitReport& report) {
  if (report.waiter.master != from) return false;
  ++counters_.wait_reports;
  const auto number = wait_numbers_.find(report.waiter);
  if (report.blockers.empty()) {
    if (number == wait_numbers_.end() || number->second > report.number) return true;
    wait_numbers_.erase(number);
    waits_.Retract(report.waiter);
    return true;
  }
  if (ends_.IsEnded(report.waiter) || (number != wait_numbers_.end() && number->second >= report.number)) return true;
  wait_numbers_[report.waiter] = report.number;
  waits_.Publish(report.waiter, {report.begun, report.waiter}, report.blockers);
  while (const std::optional<TxnName> victim = waits_.FindVictim(report.waiter)) {
    ++counters_.victims;
    waits_.Retract(*victim);
    Send(victim->master, AbortVictim{*victim, wait_numbers_[*victim]});
  }
  return true;
}

void GlobalLocks::OnLeastTv(MasterId from, const LeastTv& told) {
  members_[from].least_tv = told.tv;
  std::optional<VsVector> least;
  for (const auto& [master, member] : members_) {
    if (member.is_dead) continue;
    if (!member.least_tv) return;
    if (!least) least = *member.least_tv;
    least->LowerTo(*member.least_tv);
  }
  least->RaiseTo(least_tv_);
  if (*least == least_tv_) return;
  least_tv_ = *least;
  ends_.Forget(least_tv_);
  std::vector<PageId> idle;
  for (auto& [id, page] : pages_) {
    page->after.DropCoveredBy(least_tv_);
    if (page->IsIdle()) idle.push_back(id);
  }
  for (const PageId id : idle) pages_.erase(id);
  TellAllBut(MasterId(kMastersMax), LeastTv::kType, EncodeBody(LeastTv{least_tv_}));
}

void GlobalLocks::GrantAll(PageId id, Page& page) {
  while (!page.queue.empty() && MayGrant(id, page, page.queue.front())) {
    const Waiter waiter = page.queue.front();
    page.queue.pop_front();
    Grant(id, page, waiter);
  }
}

bool GlobalLocks::MayGrant(PageId id, Page& page, const Waiter& waiter) {
  bool may_grant = true;
  for (Holder& holder : page.holders) {
    if (holder.master != waiter.master && !Conflict(holder.mode, waiter.mode)) continue;
    may_grant = false;
    if (holder.reclaimed || members_[holder.master].is_dead) continue;
    holder.reclaimed = true;
    ++counters_.reclaims;
    Send(holder.master, PageReclaim{id, holder.generation});
  }
  return may_grant;
}

void GlobalLocks::Grant(PageId id, Page& page, const Waiter& waiter) {
  ++counters_.grants;
  page.holders.push_back({waiter.master, waiter.mode, waiter.generation});
  DropEnded(page);
  Send(waiter.master, PageGrant{id, waiter.mode, waiter.generation, LsnOf(id), page.rows, page.after});
}

// ---- a master's death ----

void GlobalLocks::OnLeaseOver(MasterId master) {
  members_[master].is_dead = true;
  std::vector<PageId> waited_for;
  for (auto& [id, page] : pages_) {
    if (std::erase_if(page->queue, [&](const Waiter& waiter) { return waiter.master == master; }) > 0) {
      waited_for.push_back(id);
    }
  }
  for (const PageId id : waited_for) GrantAll(id, *pages_[id]);
  std::erase_if(wait_numbers_, [&](const auto& wait) {
    if (wait.first.master != master) return false;
    waits_.Retract(wait.first);
    return true;
  });
}

void GlobalLocks::OnMasterDead(const DeadMaster& dead) {
  CHECK(members_[dead.master].is_dead);
  for (const DeadMaster::Step& step : dead.steps) {
    if (step.right != PageId()) {
      ReplaySplit(step.page, step.key, step.right);
      continue;
    }
    Page& page = PageOf(step.page);
    page.rows.Add(RowLock::Exclusive(step.loser, step.key));
    pages_of_[step.loser].insert(step.page);
  }
  for (const DeadMaster::Version& version : dead.versions) RaiseLsn(version.page, version.lsn);
  // Its own drops of ended owners are lost with its after-lists. All that they named its log's end covers.
  for (auto& [id, page] : pages_) {
    const bool is_its = std::any_of(page->holders.begin(), page->holders.end(),
                                    [&](const Holder& holder) { return holder.master == dead.master; });
    if (is_its) page->after.RaiseTo(dead.master, dead.log_end);
  }
  EndedTxns news{dead.master, dead.epoch, EndedTxns::kAll, {}, dead.losers, {}};
  news.low_after.Set(dead.master, dead.log_end);
  ends_.Learn(news);
  DropOwnersUpTo(news);
  TellAllBut(dead.master, EndedTxns::kType, EncodeBody(news));
}

void GlobalLocks::FreePages(MasterId master) {
  CHECK(members_[master].is_dead);
  std::vector<PageId> freed;
  for (auto& [id, page] : pages_) {
    if (std::erase_if(page->holders, [&](const Holder& holder) { return holder.master == master; }) > 0) {
      freed.push_back(id);
    }
  }
  // In the order of their names, so that a run is the same whatever the map's order.
  std::sort(freed.begin(), freed.end());
  for (const PageId id : freed) {
    GrantAll(id, *pages_[id]);
    DropIfIdle(id);
  }
}

// A split that the list knows already moves nothing: no key from the separator on is left on the page.
void GlobalLocks::ReplaySplit(PageId left, Key separator, PageId right) {
  const auto found = pages_.find(left);
  if (found == pages_.end()) return;
  const RowLocks moved = found->second->rows.SplitOff(separator);
  const AfterList after = found->second->after;
  Page& page = PageOf(right);
  page.rows.Merge(moved);
  page.after.RaiseTo(after);
  IndexOwners(right, moved);
  DropIfIdle(right);
}

// ---- the table ----

GlobalLocks::Page& GlobalLocks::PageOf(PageId id) {
  std::unique_ptr<Page>& page = pages_[id];
  if (!page) page = std::make_unique<Page>();
  return *page;
}

void GlobalLocks::DropIfIdle(PageId id) {
  const auto page = pages_.find(id);
  if (page != pages_.end() && page->second->IsIdle()) pages_.erase(page);
}

void GlobalLocks::RaiseLsn(PageId id, const PageLsn& lsn) {
  if (LsnOf(id).IsOlderThan(lsn)) lsns_[id] = lsn;
}

void GlobalLocks::IndexOwners(PageId id, const RowLocks& rows) {
  rows.ForEach([&](const RowLock& lock) { pages_of_[lock.owner].insert(id); });
}

void GlobalLocks::DropEnded(Page& page) {
  page.rows.RemoveOwners([&](const TxnName& owner) {
    if (!ends_.IsEnded(owner)) return false;
    ends_.RaiseAfter(owner, page.after);
    return true;
  });
  page.after.DropCoveredBy(least_tv_);
}

void GlobalLocks::DropOwnersUpTo(const EndedTxns& news) {
  const auto drop = [&](decltype(pages_of_)::iterator owner) {
    for (const PageId id : owner->second) {
      const auto page = pages_.find(id);
      if (page == pages_.end()) continue;
      DropEnded(*page->second);
      DropIfIdle(id);
    }
    return pages_of_.erase(owner);
  };
  auto owner = pages_of_.lower_bound({news.master, news.epoch, 0});
  while (owner != pages_of_.end() && owner->first <= TxnName{news.master, news.epoch, news.low}) {
    owner = ends_.IsEnded(owner->first) ? drop(owner) : std::next(owner);
  }
  for (const EndedTxns::One& one : news.above) {
    owner = pages_of_.find({news.master, news.epoch, one.sequence});
    if (owner != pages_of_.end()) drop(owner);
  }
  std::erase_if(wait_numbers_, [&](const auto& wait) {
    if (!ends_.IsEnded(wait.first)) return false;
    waits_.Retract(wait.first);
    return true;
  });
}

void GlobalLocks::TellAllBut(MasterId but, MessageType type, const std::vector<std::byte>& body) {
  for (const auto& [master, member] : members_) {
    if (master == but || member.is_dead) continue;
    if (type == EndedTxns::kType) ++counters_.ends_told;
    link_.Send(master, type, body);
  }
}

PageLsn GlobalLocks::LsnOf(PageId page) const {
  const auto lsn = lsns_.find(page);
  return lsn == lsns_.end() ? PageLsn() : lsn->second;
}

RowLocks GlobalLocks::RowLocksOf(PageId page) const {
  const auto found = pages_.find(page);
  return found == pages_.end() ? RowLocks() : found->second->rows;
}

size_t GlobalLocks::CountRowLocks() const {
  size_t count = 0;
  for (const auto& [id, page] : pages_) count += page->rows.size();
  return count;
}

AfterList GlobalLocks::AfterListOf(PageId page) const {
  const auto found = pages_.find(page);
  return found == pages_.end() ? AfterList() : found->second->after;
}

}  // namespace dbx::mm
