#include "multi_master/page/mini_transaction.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace dbx::mm {

MiniTransaction::MiniTransaction(MiniTransaction&& other) noexcept
    : source_(other.source_), pinned_(std::exchange(other.pinned_, {})), changes_(std::exchange(other.changes_, {})) {}

MiniTransaction& MiniTransaction::operator=(MiniTransaction&& other) noexcept {
  if (this == &other) return *this;
  LetGo();
  source_ = other.source_;
  pinned_ = std::exchange(other.pinned_, {});
  changes_ = std::exchange(other.changes_, {});
  return *this;
}

PageFrame* MiniTransaction::Pin(PageId page, LockMode mode) {
  CHECK(changes_.empty());
  for (const Pinned& pin : pinned_) CHECK(pin.frame->id != page);
  PageFrame* frame = source_->Pin(page, mode, MayWaitFor(page));
  if (frame != nullptr) pinned_.push_back({frame, mode, false});
  return frame;
}

PageFrame& MiniTransaction::PinNew(PageId page) {
  for (const Pinned& pin : pinned_) CHECK(pin.is_new);
  PageFrame* frame = source_->PinNew(page);
  pinned_.push_back({frame, LockMode::kExclusive, true});
  return *frame;
}

void MiniTransaction::Unpin(PageFrame& frame) {
  CHECK(changes_.empty());
  const Pinned pin = PinOf(frame);
  pinned_.erase(
      std::find_if(pinned_.begin(), pinned_.end(), [&](const Pinned& other) { return other.frame == &frame; }));
  source_->Unpin(*pin.frame, pin.mode);
}

void MiniTransaction::Add(PageFrame& frame, const Change& what) {
  CHECK(PinOf(frame).mode == LockMode::kExclusive);
  changes_.push_back({frame.id, {}, frame.page.lsn(), what});
}

void MiniTransaction::SubmitOne(PageFrame& frame, const Change& what) {
  CHECK(changes_.empty() && PinOf(frame).mode == LockMode::kExclusive);
  PageChange change{frame.id, {}, frame.page.lsn(), what};
  Submit(std::span(&change, 1));
}

void MiniTransaction::Submit() {
  Submit(changes_);
  changes_.clear();
}

void MiniTransaction::Submit(std::span<PageChange> changes) {
  CHECK(!changes.empty());
  const Lsn log_end = source_->EndMini(changes);
  for (const PageChange& change : changes) {
    const auto pin = std::find_if(pinned_.begin(), pinned_.end(),
                                  [&](const Pinned& pinned) { return pinned.frame->id == change.page; });
    PageFrame& frame = *pin->frame;
    // The caller has checked that it is legal; and the record is written, so there is no way back.
    CHECK(Apply(frame.page, change) == ApplyStatus::kApplied);
    frame.newest.RaiseTo(change.lsn.master, change.lsn.time);
    frame.log_end = log_end;
  }
}

void MiniTransaction::LetGo() {
  changes_.clear();
  // Right to left, bottom to top.
  while (!pinned_.empty()) {
    const Pinned pin = pinned_.back();
    pinned_.pop_back();
    source_->Unpin(*pin.frame, pin.mode);
  }
}

MiniTransaction::Pinned& MiniTransaction::PinOf(const PageFrame& frame) {
  const auto pin =
      std::find_if(pinned_.begin(), pinned_.end(), [&](const Pinned& pinned) { return pinned.frame == &frame; });
  CHECK(pin != pinned_.end());
  return *pin;
}

bool MiniTransaction::MayWaitFor(PageId page) const {
  const auto last = std::find_if(pinned_.rbegin(), pinned_.rend(), [](const Pinned& pin) { return !pin.is_new; });
  if (last == pinned_.rend()) return true;
  const SlottedPage& from = last->frame->page;
  if (from.has_right() && from.right() == page) return true;
  if (from.is_leaf()) return false;
  for (uint32_t slot = 0; slot < from.slots(); ++slot) {
    if (from.ChildAt(slot) == page) return true;
  }
  return false;
}

}  // namespace dbx::mm
