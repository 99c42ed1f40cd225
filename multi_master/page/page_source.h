// Pages as mini-transactions reach them, above buffer, page locks and log.
//
// Models: a master (locks by the GLM, pages from its buffer or a Page Store, records to its flush buffer), a reader of
// older versions (pins versions, changes nothing), and the tests' MemorySource.
//
// Threads: any, at once.
#pragma once

#include <cstdint>
#include <span>

#include "base/types.h"
#include "multi_master/names.h"
#include "multi_master/page/page_change.h"
#include "multi_master/page/slotted_page.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

// A page in a buffer. Its pin keeps it there, in the pin's mode: of several threads only a sole exclusive one changes
// it.
struct PageFrame {
  PageId id;  // while the page is fresh or never formatted, page.id() is 0
  SlottedPage page;
  VsVector newest;  // of each master, the time of its last change that this version has
  Lsn log_end;      // of this master's log, behind the record of the page's last change
};

class PageSource {
 public:
  virtual ~PageSource() = default;

  // Pins the page: its latest version, under the page lock, where the source locks pages. Null: the caller does not
  // want to wait for other holders and would have to; or, although it may wait, this source has no version of the page
  // that fits (a reader of older versions). Throws Error if the page cannot be read, or no frame is free.
  virtual PageFrame* Pin(PageId page, LockMode mode, bool may_wait) = 0;
  // Pins a page of NewPage exclusively. No other thread and no other master knows it, so it waits for none of them. The
  // frame's page was never formatted.
  virtual PageFrame* PinNew(PageId page) = 0;
  virtual void Unpin(PageFrame& frame, LockMode mode) = 0;

  // An id that is used for the first time, durably so: after a crash it is not given again.
  virtual PageId NewPage() = 0;
  // The id was not used; it may be given again.
  virtual void GiveBack(PageId page) = 0;

  // The end of a mini-transaction that has all pages of `changes` pinned exclusively. Under one latch: StampChanges,
  // and one PAGES record into the log. Returns the log's position behind the record. The caller then applies the
  // changes.
  virtual Lsn EndMini(std::span<PageChange> changes) = 0;
};

}  // namespace dbx::mm
