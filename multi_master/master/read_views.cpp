#include "multi_master/master/read_views.h"

#include <mutex>

namespace dbx::mm {

ReadViews::Use::Use(ReadViews& views) : views_(views) {
  const std::lock_guard latch(views_.latch_);
  view_ = views_.log_.View();
  views_.in_use_.push_back(this);
  views_.versioned_.fetch_add(1, std::memory_order_relaxed);
}

ReadViews::Use::~Use() {
  const std::lock_guard latch(views_.latch_);
  std::erase(views_.in_use_, this);
}

VsVector ReadViews::Least() const {
  const std::lock_guard latch(latch_);
  VsVector least = log_.applied();
  // Not TV itself: of the own log a Page Store is asked for what was durable, which may be less than the own time.
  for (const Use* use : in_use_) least.LowerTo(use->view_.applied);
  return least;
}

}  // namespace dbx::mm
