// A Page Store: serves versions of the pages of its slices, which it makes from the masters' logs (Taurus MM, section
// 4).
//
// It reads every master's log from the Log Stores, flush by flush, and takes the changes of its own pages. A request
// for a version whose changes have not all been read waits until they have. Its memory is only a copy: after a crash it
// loads the initial pages from the seed and reads the logs again. (In the paper masters also send buffers of records to
// Page Stores, which saves a round; holes are filled from the Log Stores there, as everything is here.)
//
// Threads: OnMessage by the network's, OnFlush by those that read logs, FoldBelow by any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/host.h"
#include "multi_master/network.h"
#include "multi_master/store/page_versions.h"
#include "multi_master/store/store_messages.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

struct PageStoreCounters {
  uint64_t pages_sent = 0;
  uint64_t reads_waited = 0;  // requests that had to wait for a log
  uint64_t changes = 0;

  void Add(const PageStoreCounters& other) {
    pages_sent += other.pages_sent, reads_waited += other.reads_waited, changes += other.changes;
  }
};

class PageStore {
 public:
  using IsOfSlice = std::function<bool(PageId page)>;
  using Answer = std::function<void(NodeId to, const PageRead& page)>;

  // `answer` is called under the store's mutex.
  PageStore(PageVersions::LoadedPage loaded, IsOfSlice is_of_slice, Answer answer);

  // False: the message is not one of a Page Store's, or is about a page beyond its slices. Nothing has changed.
  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body);
  // Requests of this process need no answer any more.
  void OnLinkDown(NodeId peer);

  // The changes of one flush of a master's log, in the log's order; flushes of one log come one after the other.
  // `record` holds the bytes that they refer to. Throws Error (kCorrupt) as PageVersions does; so do OnMessage and
  // FoldBelow.
  void OnFlush(const LfbStamp& lfb, std::span<const PageChange> changes, const std::shared_ptr<const void>& record);

  void FoldBelow(const VsVector& least_tv);

  // How far each log has been read.
  VsVector progress() const;
  PageStoreCounters counters() const;

 private:
  struct Request {
    NodeId from;
    RequestId id;
    PageId page;
    bool by_lsn;
    PageLsn lsn;
    VsVector tv;
  };

  bool OnRequest(const Request& request);
  // False: the version is not there yet.
  bool TryAnswer(const Request& request);
  // The changes up to this version have been read, so it will not come any more if it is not there.
  bool HasPassed(const Request& request) const;

  const IsOfSlice is_of_slice_;
  const Answer answer_;
  mutable Mutex mutex_;
  PageVersions versions_;
  VsVector progress_;
  VsVector folded_;
  std::vector<Request> waiting_;
  PageStoreCounters counters_;
};

}  // namespace dbx::mm
