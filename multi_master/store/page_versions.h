// The versions of a slice's pages, as a Page Store makes them from the masters' logs (Taurus MM, section 4, figure 3).
//
// Of each page it has a version in full, its base, and the changes above it, in the order of the page's LSNs. A change
// says which version it was made from, so a change that arrives before the one that it builds upon waits, and nothing
// is applied twice, whatever the order in which logs are read. Any version from the base on can be read, by its LSN, or
// as the newest one that a vector of times covers (a TV). Versions that no TV in use needs any more are folded into the
// base.
//
// Most pages change all the time and are never read, as they stay in the buffer of the master that changes them. Of
// these a change is made once, in the base, when it is folded. A page whose newest version is read has this version in
// full, too, until nothing has read it between two folds: a page that masters take from each other has many changes
// above its base.
//
// A page starts as it was loaded, or never formatted. A page that no log has changed costs nothing here.
//
// Threads: one at a time; the Page Store's mutex guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "multi_master/page/page_change.h"
#include "multi_master/page/slotted_page.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

// A version of a page, and of each master the time of its last change that the version has.
struct PageVersion {
  std::unique_ptr<SlottedPage> page;
  VsVector newest;

  explicit operator bool() const { return page != nullptr; }
};

class PageVersions {
 public:
  // Makes the page as it was loaded. Not called for pages without changes that are not read.
  using LoadedPage = std::function<SlottedPage(PageId page)>;

  explicit PageVersions(LoadedPage loaded) : loaded_(std::move(loaded)) {}

  // The changes of one PAGES record, in its order. `record` holds the bytes that they refer to. A change that was taken
  // before is passed over. Throws Error (kCorrupt) where a change cannot follow the one before it. One that does not
  // fit the version that it names may be met later: then At, Newest or FoldBelow throw the same.
  void Take(std::span<const PageChange> changes, const std::shared_ptr<const void>& record);

  // The version with this LSN. Nothing: the changes up to it have not all arrived, or it was folded.
  PageVersion At(PageId page, const PageLsn& lsn);
  // The newest version that `tv` covers, among those that have arrived: the caller has seen to it that the logs up to
  // `tv` have. Nothing: even the base is newer. A page that no log has changed is as it was loaded.
  PageVersion Newest(PageId page, const VsVector& tv);

  // No reader asks for a version that is older than the newest one that `least_tv` covers.
  void FoldBelow(const VsVector& least_tv);

  // Changes of the page wait for the version that they were made from.
  bool IsWaiting(PageId page) const {
    const auto found = chains_.find(page);
    return found != chains_.end() && !found->second.waiting.empty();
  }

  // Changes that wait for the version that they were made from.
  size_t waiting() const { return waiting_; }
  // Changes above the bases.
  size_t kept() const { return kept_; }

 private:
  struct Kept {
    PageChange change;
    std::shared_ptr<const void> record;
  };
  struct Chain {
    PageVersion base;
    std::unique_ptr<SlottedPage> last;  // with all changes; null: none has read it lately
    std::deque<Kept> changes;           // each was made from the version of the one before it
    std::vector<Kept> waiting;
    bool is_changed = false;  // it is among changed_
    bool was_read = false;    // with all changes, since the last fold

    PageLsn LastLsn() const { return changes.empty() ? base.page->lsn() : changes.back().change.lsn; }
  };

  Chain& ChainOf(PageId page);
  void Append(Chain& chain, Kept kept);
  void TakeWaiting(Chain& chain);
  static void Fold(Chain& chain, size_t count);
  // The base with the first `count` changes.
  static PageVersion Made(Chain& chain, size_t count);
  PageVersion Loaded(PageId page) const { return {std::make_unique<SlottedPage>(loaded_(page)), {}}; }

  const LoadedPage loaded_;
  std::unordered_map<PageId, Chain> chains_;
  std::vector<Chain*> changed_;  // those with changes above the base, and some without
  size_t waiting_ = 0;
  size_t kept_ = 0;
};

}  // namespace dbx::mm
