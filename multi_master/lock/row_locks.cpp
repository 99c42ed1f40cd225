#include "multi_master/lock/row_locks.h"

#include <iterator>
#include <tuple>

namespace dbx::mm {
namespace {

constexpr size_t kRecordBytes = 13 + 1 + 8;

bool IsRecord(const RowLock& lock) { return lock.kind == RowLockKind::kShared || lock.kind == RowLockKind::kExclusive; }
bool RecordBefore(const RowLock& a, const RowLock& b) { return std::tie(a.low, a.owner) < std::tie(b.low, b.owner); }
bool GapBefore(const RowLock& a, const RowLock& b) { return std::tie(a.owner, a.low) < std::tie(b.owner, b.low); }
// Their keys have no key between them.
bool Touch(const RowLock& a, const RowLock& b) {
  const bool a_ends_before = a.high < b.low && a.high + 1 != b.low;
  const bool b_ends_before = b.high < a.low && b.high + 1 != a.low;
  return !a_ends_before && !b_ends_before;
}

}  // namespace

std::vector<TxnName> RowLocks::FindConflicts(const RowLock& asked) const {
  std::vector<TxnName> found;
  const auto visit = [&](const RowLock& held) {
    if (Conflict(held, asked) && std::find(found.begin(), found.end(), held.owner) == found.end()) {
      found.push_back(held.owner);
    }
  };
  if (asked.kind == RowLockKind::kInsertIntention) {
    for (const RowLock& held : gaps_) visit(held);
    return found;
  }
  if (asked.kind == RowLockKind::kGap) return found;
  auto at = std::lower_bound(records_.begin(), records_.end(), asked.low,
                             [](const RowLock& lock, Key key) { return lock.low < key; });
  for (; at != records_.end() && at->low == asked.low; ++at) visit(*at);
  return found;
}

bool RowLocks::Covers(const RowLock& lock) const {
  if (IsRecord(lock)) {
    const auto at = std::lower_bound(records_.begin(), records_.end(), lock, RecordBefore);
    return at != records_.end() && at->low == lock.low && at->owner == lock.owner && at->kind >= lock.kind;
  }
  if (lock.kind != RowLockKind::kGap) return false;
  return std::any_of(gaps_.begin(), gaps_.end(), [&](const RowLock& own) {
    return own.owner == lock.owner && own.low <= lock.low && lock.high <= own.high;
  });
}

bool RowLocks::HasOwner(const TxnName& owner) const {
  const auto is_its = [&](const RowLock& lock) { return lock.owner == owner; };
  return std::any_of(records_.begin(), records_.end(), is_its) || std::any_of(gaps_.begin(), gaps_.end(), is_its);
}

void RowLocks::Add(const RowLock& lock) {
  CHECK(lock.kind != RowLockKind::kInsertIntention);
  if (lock.kind == RowLockKind::kGap) return AddGap(lock);
  const auto at = std::lower_bound(records_.begin(), records_.end(), lock, RecordBefore);
  if (at == records_.end() || at->low != lock.low || at->owner != lock.owner) {
    records_.insert(at, lock);
  } else if (at->kind < lock.kind) {
    at->kind = lock.kind;
  }
}

void RowLocks::AddGap(RowLock lock) {
  std::erase_if(gaps_, [&](const RowLock& own) {
    if (own.owner != lock.owner || !Touch(own, lock)) return false;
    lock.low = std::min(lock.low, own.low);
    lock.high = std::max(lock.high, own.high);
    return true;
  });
  gaps_.insert(std::lower_bound(gaps_.begin(), gaps_.end(), lock, GapBefore), lock);
}

void RowLocks::Merge(const RowLocks& other) {
  records_.insert(records_.end(), other.records_.begin(), other.records_.end());
  Normalize();
  for (const RowLock& gap : other.gaps_) AddGap(gap);
}

// Sorts the records; of several of one owner for one key the strongest stays.
void RowLocks::Normalize() {
  std::sort(records_.begin(), records_.end(), [](const RowLock& a, const RowLock& b) {
    return std::tuple(a.low, a.owner, b.kind) < std::tuple(b.low, b.owner, a.kind);
  });
  const auto same = [](const RowLock& a, const RowLock& b) { return a.low == b.low && a.owner == b.owner; };
  records_.erase(std::unique(records_.begin(), records_.end(), same), records_.end());
}

void RowLocks::ReplaceOwnersOf(MasterId master, const RowLocks& part) {
  RemoveOwners([&](const TxnName& owner) { return owner.master == master; });
  Merge(part.PartOf(master));
}

RowLocks RowLocks::PartOf(MasterId master) const {
  RowLocks part = *this;
  part.RemoveOwners([&](const TxnName& owner) { return owner.master != master; });
  return part;
}

RowLocks RowLocks::SplitOff(Key separator) {
  RowLocks right;
  const auto at = std::lower_bound(records_.begin(), records_.end(), separator,
                                   [](const RowLock& lock, Key key) { return lock.low < key; });
  right.records_.assign(at, records_.end());
  records_.erase(at, records_.end());
  std::vector<RowLock> left;
  for (const RowLock& gap : gaps_) {
    if (gap.low < separator) {
      left.push_back(gap);
      left.back().high = std::min(gap.high, separator - 1);
    }
    if (gap.high >= separator) {
      right.gaps_.push_back(gap);
      right.gaps_.back().low = std::max(gap.low, separator);
    }
  }
  gaps_ = std::move(left);
  return right;
}

void RowLocks::Encode(WireWriter& to) const {
  to.Put(static_cast<uint32_t>(size()));
  ForEach([&](const RowLock& lock) {
    to.Put(lock.owner);
    to.Put(lock.kind);
    to.Put(lock.high);
    if (lock.kind == RowLockKind::kGap) to.Put(lock.low);
  });
}

RowLocks RowLocks::Decode(WireReader& from) {
  RowLocks locks;
  const uint32_t count = from.GetCount(kRecordBytes);
  for (uint32_t i = 0; i < count && from.ok(); ++i) {
    RowLock lock;
    lock.owner = from.GetTxn();
    lock.kind = from.Get<RowLockKind>();
    lock.high = from.Get<Key>();
    lock.low = lock.kind == RowLockKind::kGap ? from.Get<Key>() : lock.high;
    if (!IsRecord(lock) && lock.kind != RowLockKind::kGap) from.Refuse();
    if (!from.ok()) break;
    std::vector<RowLock>& list = IsRecord(lock) ? locks.records_ : locks.gaps_;
    const auto before = IsRecord(lock) ? RecordBefore : GapBefore;
    const bool overlaps =
        !IsRecord(lock) &&
        (lock.high < lock.low || (!list.empty() && list.back().owner == lock.owner && list.back().high >= lock.low));
    if (overlaps || (!list.empty() && !before(list.back(), lock))) from.Refuse();
    list.push_back(lock);
  }
  return from.ok() ? locks : RowLocks();
}

}  // namespace dbx::mm
