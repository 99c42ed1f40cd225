// The pages of a master as its trees reach them: the buffer, under page locks, with changes into the log.
//
// Order of what one pin takes: the page lock (LocalLocks), which fetches the page at exactly the granted version, then
// the frame's latch. A page that is locked is in the buffer and stays there: only pages whose lock was released are
// dropped, and such a page is used again if it is still at the version of the next grant.
//
// Pages without a page lock are kept up to date: what other masters' flushes change is changed in the buffer too
// (ApplyFlush), before the flush counts as applied. Hence, where no flush is being applied, a frame is at the newest
// version that TV covers, or at one that TV does not cover. A change fits a frame that is at the version that it was
// made from. A frame that is newer has it: its page is locked here, or was when it was fetched. So the version alone
// decides, and a page under this master's own lock, which is at its last version, is never changed. A frame that is
// older, and lacks what came between, is dropped.
//
// Rows that another master's split has moved, and this one has changed on the new page, would be read on the old page
// where TV lacks the split: as they were before both. So EndMini notes, when it first changes a page that another
// master made, what that page builds upon (splits_needed). An id names its maker, and rows get to a page when it is
// made, or by changes of it. A statement's TV must cover all that was noted before it; and TVs cover the causes of what
// they cover, so the page's newest change stands for the split, whichever master made that.
//
// Statements that read versions pin pages without a page lock (PinVersion). A page that is not in the buffer is fetched
// at TV. It stays there for others only if no flush beyond TV can have passed it by; otherwise the statement has it for
// itself.
//
// Ids of new pages are the master's own: its number, the epoch of its start, which is used once, and a counter. So they
// need no message and nothing durable (multi_master.md, section 3, has lots of ids from a slice manager).
//
// Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>

#include "base/host.h"
#include "multi_master/lock/local_locks.h"
#include "multi_master/master/master_log.h"
#include "multi_master/page/buffer_pool.h"
#include "multi_master/page/page_source.h"
#include "multi_master/store/page_versions.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

// Ids below this are those of the initial load.
inline constexpr uint64_t kLoadedPagesEnd = uint64_t{1} << 40;
constexpr bool IsLoaded(PageId page) { return page.value() < kLoadedPagesEnd; }
// The number of a master's start has 23 bits.
inline constexpr uint32_t kPageEpochMax = (1u << 23) - 1;
constexpr PageId PageIdOf(MasterId master, ClusterEpoch epoch, uint32_t count) {
  return PageId(uint64_t{1} << 63 | uint64_t{master.value()} << 55 | uint64_t{epoch.value()} << 32 | count);
}
// Of a page that is not loaded.
constexpr MasterId MakerOf(PageId page) { return MasterId(static_cast<uint8_t>(page.value() >> 55 & 0xff)); }

// Where pages that are not in the buffer come from.
class PageFetcher {
 public:
  virtual ~PageFetcher() = default;
  // The page at this version; waits until a Page Store has it. Throws Error where it cannot be had.
  virtual PageVersion Fetch(PageId page, const PageLsn& lsn) = 0;
  // The newest version that `tv` covers, whose own element is durable. Empty: there is none.
  virtual PageVersion FetchBelow(PageId page, const VsVector& tv) = 0;
};

struct PageCounters {
  uint64_t fetched = 0;
  uint64_t from_buffer = 0;  // grants whose version was in the buffer
  uint64_t evicted = 0;      // page locks given up for a frame
  // Pages that statements without locks have read.
  uint64_t versions_from_buffer = 0;
  uint64_t versions_from_store = 0;
  // Of other masters' flushes: changes that were made to pages in the buffer, and pages that were dropped because a
  // change did not fit.
  uint64_t changes_followed = 0;
  uint64_t dropped = 0;
};

class MasterPages final : public PageSource {
 public:
  MasterPages(MasterId self, ClusterEpoch epoch, size_t frames_max, LocalLocks& locks, MasterLog& log,
              PageFetcher& fetcher);

  PageFrame* Pin(PageId page, LockMode mode, bool may_wait) override;
  PageFrame* PinNew(PageId page) override;
  void Unpin(PageFrame& frame, LockMode mode) override;
  PageId NewPage() override;
  void GiveBack(PageId) override {}
  Lsn EndMini(std::span<PageChange> changes) override;

  // For LocalLocks: a grant's page at this version is in the buffer when it returns.
  void FetchPage(PageId page, const PageLsn& lsn);

  // For the applier: the pages of the buffer have the changes of another master's flush when it returns. Flushes come
  // one after the other, in an order in which none comes before its cause.
  void ApplyFlush(const LfbStamp& lfb, std::span<const PageChange> changes);

  // The page as a statement with this view sees it, in a frame of the buffer, pinned shared until UnpinVersion, or in
  // one of the statement's own. Neither: this page has no version that the statement may read.
  struct VersionPin {
    PageFrame* shared = nullptr;
    std::unique_ptr<PageFrame> own;

    PageFrame* frame() const { return own ? own.get() : shared; }
  };
  VersionPin PinVersion(PageId page, const ReadView& view, bool may_wait);
  void UnpinVersion(PageFrame& frame) { pool_.Unpin(frame, LockMode::kShared); }

  // What a TV must cover for a statement that begins after it was taken.
  VsVector splits_needed() const;

  PageCounters counters() const;

 private:
  // What a statement makes of a version.
  enum class Fit : uint8_t {
    kFits,
    kTooNew,   // another master's change that TV does not cover: an older version is at the Page Store
    kInvalid,  // the statement cannot use the page at all
  };
  Fit Judge(const PageFrame& frame, PageId page, const ReadView& view);
  VersionPin FillAt(PageFrame& fresh, PageId page, const ReadView& view);
  std::unique_ptr<PageFrame> FetchAt(PageId page, const ReadView& view);
  VsVector StoreTv(const ReadView& view) const;
  void ApplyTo(PageFrame& frame, const PageChange& change);
  void NoteSplit(const PageChange& change);

  // Nothing: it would have to wait, and may not.
  std::optional<BufferPool::PinResult> PinFrame(PageId page, LockMode mode, bool may_wait);
  static void Check(PageId page, const PageVersion& version);
  void Fill(PageFrame& frame, PageId page, const PageLsn& lsn);

  const MasterId self_;
  const ClusterEpoch epoch_;
  LocalLocks& locks_;
  MasterLog& log_;
  PageFetcher& fetcher_;
  BufferPool pool_;
  Atomic<uint32_t> last_page_{0};
  Mutex begun_latch_;
  VsVector begun_;              // of other masters' logs, up to the flush that ApplyFlush was called with last
  mutable Mutex splits_latch_;  // of the following
  VsVector splits_needed_;
  std::unordered_set<PageId> noted_;  // pages that other masters made and this one has changed
  // Relaxed counters.
  Atomic<uint64_t> fetched_{0};
  Atomic<uint64_t> from_buffer_{0};
  Atomic<uint64_t> evicted_{0};
  Atomic<uint64_t> versions_from_buffer_{0};
  Atomic<uint64_t> versions_from_store_{0};
  Atomic<uint64_t> changes_followed_{0};
  Atomic<uint64_t> dropped_{0};
};

}  // namespace dbx::mm
