#include "multi_master/store/page_versions.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace dbx::mm {
namespace {

std::string NameOf(const PageLsn& lsn) {
  return "(master " + std::to_string(lsn.master.value()) + ", " + std::to_string(lsn.time.value()) + ")";
}

[[noreturn]] void Fail(const PageChange& change, const std::string& why) {
  throw Error(ExitStatus::kCorrupt,
              "page " + std::to_string(change.page.value()) + ", change " + NameOf(change.lsn) + ": " + why);
}

void ApplyOrFail(SlottedPage& page, const PageChange& change) {
  const ApplyStatus status = Apply(page, change);
  if (status != ApplyStatus::kApplied) {
    Fail(change, "does not fit the version that it was made from, " + NameOf(change.previous));
  }
}

}  // namespace

PageVersions::Chain& PageVersions::ChainOf(PageId page) {
  Chain& chain = chains_[page];
  if (!chain.base) chain.base = Loaded(page);
  return chain;
}

void PageVersions::Take(std::span<const PageChange> changes, const std::shared_ptr<const void>& record) {
  for (const PageChange& change : changes) {
    Chain& chain = ChainOf(change.page);
    const PageLsn last = chain.LastLsn();
    if (!last.IsOlderThan(change.lsn)) {
      // Taken before. Times of a page ascend, so another change of this time would be one of a second history.
      if (last.time == change.lsn.time && last != change.lsn) Fail(change, "the page has " + NameOf(last));
      continue;
    }
    if (change.previous == last) {
      Append(chain, {change, record});
      TakeWaiting(chain);
      continue;
    }
    if (!last.IsOlderThan(change.previous)) {
      Fail(change, "was made from " + NameOf(change.previous) + ", but the page has " + NameOf(last));
    }
    const bool is_there = std::any_of(chain.waiting.begin(), chain.waiting.end(),
                                      [&](const Kept& kept) { return kept.change.lsn == change.lsn; });
    if (is_there) continue;
    chain.waiting.push_back({change, record});
    ++waiting_;
  }
}

void PageVersions::Append(Chain& chain, Kept kept) {
  if (chain.last) ApplyOrFail(*chain.last, kept.change);
  if (!chain.is_changed) changed_.push_back(&chain);
  chain.is_changed = true;
  chain.changes.push_back(std::move(kept));
  ++kept_;
}

void PageVersions::TakeWaiting(Chain& chain) {
  const auto follows = [&](const Kept& kept) { return kept.change.previous == chain.LastLsn(); };
  for (;;) {
    const auto next = std::find_if(chain.waiting.begin(), chain.waiting.end(), follows);
    if (next == chain.waiting.end()) return;
    Kept kept = std::move(*next);
    chain.waiting.erase(next);
    --waiting_;
    Append(chain, std::move(kept));
  }
}

PageVersion PageVersions::Made(Chain& chain, size_t count) {
  const bool all = count > 0 && count == chain.changes.size();
  if (all && !chain.last) {
    auto last = std::make_unique<SlottedPage>(*chain.base.page);
    for (const Kept& kept : chain.changes) ApplyOrFail(*last, kept.change);
    chain.last = std::move(last);
  }
  chain.was_read |= all;
  PageVersion made{std::make_unique<SlottedPage>(all ? *chain.last : *chain.base.page), chain.base.newest};
  for (size_t i = 0; i < count; ++i) {
    const PageChange& change = chain.changes[i].change;
    if (!all) ApplyOrFail(*made.page, change);
    made.newest.RaiseTo(change.lsn.master, change.lsn.time);
  }
  return made;
}

PageVersion PageVersions::At(PageId page, const PageLsn& lsn) {
  const auto found = chains_.find(page);
  if (found == chains_.end()) {
    PageVersion loaded = Loaded(page);
    return loaded.page->lsn() == lsn ? std::move(loaded) : PageVersion();
  }
  Chain& chain = found->second;
  if (chain.base.page->lsn() == lsn) return Made(chain, 0);
  for (size_t i = chain.changes.size(); i > 0; --i) {
    if (chain.changes[i - 1].change.lsn == lsn) return Made(chain, i);
  }
  return {};
}

PageVersion PageVersions::Newest(PageId page, const VsVector& tv) {
  const auto found = chains_.find(page);
  if (found == chains_.end()) return Loaded(page);
  Chain& chain = found->second;
  const auto covers = [&](const PageLsn& lsn) { return tv.Covers(lsn.master, lsn.time); };
  for (size_t i = chain.changes.size(); i > 0; --i) {
    if (covers(chain.changes[i - 1].change.lsn)) return Made(chain, i);
  }
  return covers(chain.base.page->lsn()) ? Made(chain, 0) : PageVersion();
}

void PageVersions::FoldBelow(const VsVector& least_tv) {
  const auto covers = [&](const PageLsn& lsn) { return least_tv.Covers(lsn.master, lsn.time); };
  std::erase_if(changed_, [&](Chain* chain) {
    size_t count = chain->changes.size();
    while (count > 0 && !covers(chain->changes[count - 1].change.lsn)) --count;
    Fold(*chain, count);
    kept_ -= count;
    chain->is_changed = !chain->changes.empty();
    return !chain->is_changed;
  });
}

void PageVersions::Fold(Chain& chain, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const PageChange& change = chain.changes[i].change;
    ApplyOrFail(*chain.base.page, change);
    chain.base.newest.RaiseTo(change.lsn.master, change.lsn.time);
  }
  chain.changes.erase(chain.changes.begin(), chain.changes.begin() + static_cast<std::ptrdiff_t>(count));
  if (chain.changes.empty() || !chain.was_read) chain.last.reset();
  chain.was_read = false;
}

}  // namespace dbx::mm
