#include "multi_master/master/versioned_read.h"

#include <algorithm>

#include "base/check.h"
#include "base/error.h"

namespace dbx::mm {
namespace {

[[noreturn]] void RefuseChange() { throw Error(ExitStatus::kInternal, "a reader of versions changes no page"); }

}  // namespace

PageFrame* VersionedPages::Pin(PageId page, LockMode mode, bool may_wait) {
  CHECK(mode == LockMode::kShared && view_ != nullptr);
  MasterPages::VersionPin pin = pages_.PinVersion(page, *view_, may_wait);
  PageFrame* frame = pin.frame();
  if (pin.own) own_.push_back(std::move(pin.own));
  return frame;
}

void VersionedPages::Unpin(PageFrame& frame, LockMode) {
  const auto own = std::find_if(own_.begin(), own_.end(), [&](const auto& other) { return other.get() == &frame; });
  if (own == own_.end()) return pages_.UnpinVersion(frame);
  own_.erase(own);
}

PageFrame* VersionedPages::PinNew(PageId) { RefuseChange(); }
PageId VersionedPages::NewPage() { RefuseChange(); }
Lsn VersionedPages::EndMini(std::span<PageChange>) { RefuseChange(); }

VersionedReader::VersionedReader(const std::vector<std::unique_ptr<PagedTree>>& trees, MasterPages& pages,
                                 LocalLocks& locks, ReadViews& views, StrictReads* strict)
    : locks_(locks), views_(views), strict_(strict), pages_(pages) {
  for (const auto& tree : trees) {
    trees_.push_back(std::make_unique<PagedTree>(pages_, tree->tree(), tree->root(), nullptr));
  }
}

void VersionedReader::AwaitStrict() {
  if (strict_ == nullptr || is_awaited_) return;
  strict_->Await();
  views_.CountStrict();
  is_awaited_ = true;
}

const RowVersion* VersionedReader::SeenOf(const RowView& row, const TxnName& reader) {
  const VsVector& tv = pages_.view().tv;
  const std::optional<bool> current = locks_.txns().IsSeenBy(tv, reader, row.current.writer);
  if (!current) return nullptr;
  if (*current) return &row.current;
  if (!row.has_before) return nullptr;
  return locks_.txns().IsSeenBy(tv, reader, row.before.writer).value_or(false) ? &row.before : nullptr;
}

bool VersionedReader::CollectLeaf(const SlottedPage& leaf, Key low, Key high, const TxnName& reader) {
  for (uint32_t slot = leaf.LowerBound(low); slot < leaf.slots() && leaf.KeyAt(slot) <= high; ++slot) {
    const RowView row = leaf.RowAt(slot);
    const RowVersion* seen = SeenOf(row, reader);
    if (seen == nullptr) return false;
    if (!seen->present) continue;
    keys_.push_back(row.key);
    starts_.push_back(images_.size());
    images_.insert(images_.end(), seen->image.begin(), seen->image.end());
  }
  return true;
}

bool VersionedReader::Scan(TableId table, Key low, Key high, const TxnName& reader) {
  keys_.clear();
  starts_.clear();
  images_.clear();
  const Statement statement(*this);
  if (!pages_.CoversSplits()) return statement.Fail();
  PagedTree& tree = *trees_[table.value()];
  for (PinnedLeaf leaf = tree.PinLeaf(low, LockMode::kShared); leaf; tree.MoveRight(leaf)) {
    if (!CollectLeaf(leaf.page(), low, high, reader)) return statement.Fail();
    if (leaf.page().IsBelowHighKey(high)) return true;
  }
  return statement.Fail();
}

}  // namespace dbx::mm
