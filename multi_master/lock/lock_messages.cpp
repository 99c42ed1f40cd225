#include "multi_master/lock/lock_messages.h"

namespace dbx::mm {
namespace {

PageId GetPage(WireReader& from) {
  const auto page = from.Get<PageId>();
  if (page == PageId()) from.Refuse();
  return page;
}
Generation GetGeneration(WireReader& from) {
  const auto generation = from.Get<Generation>();
  if (generation == Generation()) from.Refuse();
  return generation;
}

bool GetFlag(WireReader& from) {
  const auto flag = from.Get<uint8_t>();
  if (flag > 1) from.Refuse();
  return flag == 1;
}

}  // namespace

void PageRequest::Encode(WireWriter& to) const {
  to.Put(page);
  to.Put(mode);
  to.Put(generation);
}
PageRequest PageRequest::Decode(WireReader& from) {
  PageRequest request;
  request.page = GetPage(from);
  request.mode = from.GetMode();
  request.generation = GetGeneration(from);
  return request;
}

void PageGrant::Encode(WireWriter& to) const {
  to.Put(page);
  to.Put(mode);
  to.Put(generation);
  to.Put(lsn);
  rows.Encode(to);
  to.Put(after);
}
PageGrant PageGrant::Decode(WireReader& from) {
  PageGrant grant;
  grant.page = GetPage(from);
  grant.mode = from.GetMode();
  grant.generation = GetGeneration(from);
  grant.lsn = from.GetPageLsn();
  grant.rows = RowLocks::Decode(from);
  grant.after = from.GetVector();
  return grant;
}

void PageReclaim::Encode(WireWriter& to) const {
  to.Put(page);
  to.Put(generation);
}
PageReclaim PageReclaim::Decode(WireReader& from) {
  PageReclaim reclaim;
  reclaim.page = GetPage(from);
  reclaim.generation = GetGeneration(from);
  return reclaim;
}

void PageRelease::Encode(WireWriter& to) const {
  to.Put(page);
  to.Put(mode);
  to.Put(generation);
  to.Put(lsn);
  rows.Encode(to);
  to.Put(after);
  to.Put(static_cast<uint32_t>(splits.size()));
  for (const SplitPage& split : splits) {
    to.Put(split.page);
    to.Put(split.generation);
    split.rows.Encode(to);
    to.Put(split.after);
  }
}
PageRelease PageRelease::Decode(WireReader& from) {
  constexpr size_t kSplitPageBytes = 8 + 8 + 4 + 2;
  PageRelease release;
  release.page = GetPage(from);
  release.mode = from.GetMode();
  release.generation = GetGeneration(from);
  release.lsn = from.GetPageLsn();
  release.rows = RowLocks::Decode(from);
  release.after = from.GetVector();
  const uint32_t count = from.GetCount(kSplitPageBytes);
  for (uint32_t i = 0; i < count && from.ok(); ++i) {
    SplitPage split;
    split.page = GetPage(from);
    if (split.page == release.page) from.Refuse();
    split.generation = GetGeneration(from);
    split.rows = RowLocks::Decode(from);
    split.after = from.GetVector();
    release.splits.push_back(std::move(split));
  }
  if (release.mode == LockMode::kShared && count > 0) from.Refuse();
  return release;
}

void WaitReport::Encode(WireWriter& to) const {
  to.Put(waiter);
  to.Put(begun);
  to.Put(number);
  to.Put(static_cast<uint32_t>(blockers.size()));
  for (const TxnName& blocker : blockers) to.Put(blocker);
}
WaitReport WaitReport::Decode(WireReader& from) {
  constexpr size_t kTxnBytes = 1 + 4 + 8;
  WaitReport report;
  report.waiter = from.GetTxn();
  report.begun = from.Get<BeginTime>();
  report.number = from.Get<WaitNumber>();
  report.blockers.resize(from.GetCount(kTxnBytes));
  for (TxnName& blocker : report.blockers) blocker = from.GetTxn();
  return report;
}

void AbortVictim::Encode(WireWriter& to) const {
  to.Put(victim);
  to.Put(number);
}
AbortVictim AbortVictim::Decode(WireReader& from) {
  AbortVictim victim;
  victim.victim = from.GetTxn();
  victim.number = from.Get<WaitNumber>();
  return victim;
}

void LeastTv::Encode(WireWriter& to) const { to.Put(tv); }
LeastTv LeastTv::Decode(WireReader& from) { return {from.GetVector()}; }

void LeaseRequest::Encode(WireWriter& to) const {
  to.Put(number);
  to.Put(static_cast<uint8_t>(leaves));
}
LeaseRequest LeaseRequest::Decode(WireReader& from) {
  LeaseRequest request;
  request.number = from.Get<LeaseNumber>();
  request.leaves = GetFlag(from);
  return request;
}

void LeaseGrant::Encode(WireWriter& to) const { to.Put(number); }
LeaseGrant LeaseGrant::Decode(WireReader& from) { return {from.Get<LeaseNumber>()}; }

void UndoLoser::Encode(WireWriter& to) const {
  to.Put(loser);
  to.Put(static_cast<uint8_t>(is_last));
  to.Put(static_cast<uint32_t>(rows.size()));
  for (const Row& row : rows) {
    to.Put(row.page);
    to.Put(row.key);
  }
  to.Put(after);
}
UndoLoser UndoLoser::Decode(WireReader& from) {
  constexpr size_t kRowBytes = 8 + 8;
  UndoLoser undo;
  undo.loser = from.GetTxn();
  undo.is_last = GetFlag(from);
  undo.rows.resize(from.GetCount(kRowBytes));
  for (Row& row : undo.rows) {
    row.page = GetPage(from);
    row.key = from.Get<uint64_t>();
  }
  undo.after = from.GetVector();
  return undo;
}

}  // namespace dbx::mm
