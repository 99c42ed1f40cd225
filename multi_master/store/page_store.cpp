#include "multi_master/store/page_store.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace dbx::mm {
PageStore::PageStore(PageVersions::LoadedPage loaded, IsOfSlice is_of_slice, Answer answer)
    : is_of_slice_(std::move(is_of_slice)), answer_(std::move(answer)), versions_(std::move(loaded)) {}

bool PageStore::OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) {
  if (type == ReadPageAt::kType) {
    const auto read = DecodeBody<ReadPageAt>(body);
    return read && OnRequest({from, read->request, read->page, true, read->lsn, {}});
  }
  if (type == ReadPageBelow::kType) {
    const auto read = DecodeBody<ReadPageBelow>(body);
    return read && OnRequest({from, read->request, read->page, false, {}, read->tv});
  }
  const auto fold = type == FoldPages::kType ? DecodeBody<FoldPages>(body) : std::nullopt;
  if (fold) FoldBelow(fold->least_tv);
  return fold.has_value();
}

bool PageStore::OnRequest(const Request& request) {
  if (!is_of_slice_(request.page)) return false;
  const std::lock_guard guard(mutex_);
  if (TryAnswer(request)) return true;
  ++counters_.reads_waited;
  waiting_.push_back(request);
  return true;
}

void PageStore::OnLinkDown(NodeId peer) {
  const std::lock_guard guard(mutex_);
  std::erase_if(waiting_, [&](const Request& request) { return request.from == peer; });
}

bool PageStore::HasPassed(const Request& request) const {
  return request.by_lsn ? progress_.Covers(request.lsn.master, request.lsn.time) : progress_.Covers(request.tv);
}

bool PageStore::TryAnswer(const Request& request) {
  PageVersion version;
  if (request.by_lsn) {
    version = versions_.At(request.page, request.lsn);
    // Its master's log may have been read up to it, and the version that it was made from be another log's.
    if (!version && (!HasPassed(request) || versions_.IsWaiting(request.page))) return false;
  } else {
    if (!HasPassed(request)) return false;
    version = versions_.Newest(request.page, request.tv);
  }
  counters_.pages_sent += version.page != nullptr;
  answer_(request.from, {request.id, version.newest, std::move(version.page)});
  return true;
}

void PageStore::OnFlush(const LfbStamp& lfb, std::span<const PageChange> changes,
                        const std::shared_ptr<const void>& record) {
  const auto is_own = [&](const PageChange& change) { return is_of_slice_(change.page); };
  std::vector<PageChange> some;
  if (!std::all_of(changes.begin(), changes.end(), is_own)) {
    std::copy_if(changes.begin(), changes.end(), std::back_inserter(some), is_own);
    changes = some;
  }
  const std::lock_guard guard(mutex_);
  versions_.Take(changes, record);
  counters_.changes += changes.size();
  progress_.RaiseTo(lfb.master, lfb.time());
  std::erase_if(waiting_, [&](const Request& request) { return TryAnswer(request); });
}

void PageStore::FoldBelow(const VsVector& least_tv) {
  const std::lock_guard guard(mutex_);
  // All masters send what they are told.
  if (folded_.Covers(least_tv)) return;
  folded_.RaiseTo(least_tv);
  versions_.FoldBelow(folded_);
}

VsVector PageStore::progress() const {
  const std::lock_guard guard(mutex_);
  return progress_;
}

PageStoreCounters PageStore::counters() const {
  const std::lock_guard guard(mutex_);
  return counters_;
}

}  // namespace dbx::mm
