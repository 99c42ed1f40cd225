// The pages of a master as its trees reach them: the buffer, under page locks, with changes into the log.
//
// Order of what one pin takes: the page lock (LocalLocks), which fetches the page at exactly the granted version, then
// the frame's latch. A page that is locked is in the buffer and stays there: only pages whose lock was released are
// dropped, and such a page is used again if it is still at the version of the next grant.
//
// Ids of new pages are the master's own: its number, the epoch of its start, which is used once, and a counter. So they
// need no message and nothing durable (multi_master.md, section 3, has lots of ids from a slice manager).
//
// Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

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

// Where pages that are not in the buffer come from.
class PageFetcher {
 public:
  virtual ~PageFetcher() = default;
  // The page at this version; waits until a Page Store has it. Throws Error where it cannot be had.
  virtual PageVersion Fetch(PageId page, const PageLsn& lsn) = 0;
};

struct PageCounters {
  uint64_t fetched = 0;
  uint64_t from_buffer = 0;  // grants whose version was in the buffer
  uint64_t evicted = 0;      // page locks given up for a frame
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

  PageCounters counters() const;

 private:
  PageFrame& PinForFetch(PageId page);
  void Fill(PageFrame& frame, PageId page, const PageLsn& lsn);

  const MasterId self_;
  const ClusterEpoch epoch_;
  LocalLocks& locks_;
  MasterLog& log_;
  PageFetcher& fetcher_;
  BufferPool pool_;
  Atomic<uint32_t> last_page_{0};
  // Relaxed counters.
  Atomic<uint64_t> fetched_{0};
  Atomic<uint64_t> from_buffer_{0};
  Atomic<uint64_t> evicted_{0};
};

}  // namespace dbx::mm
