// The row locks of one page (Taurus MM, section 5.2), as a master that holds the page lock and the lock process have
// them.
//
// Three kinds are held. A record lock, shared or exclusive, is for one key. A gap lock is for all keys of a range,
// present or not: no other transaction inserts there (a phantom), nor does a removed row's name matter. A fourth kind
// is only asked for: an insert intention, which waits for gap locks. Once granted it leads to an exclusive record lock
// in the same mini-transaction, and that lock is what later scans meet; so it is in no list.
//
// Between different transactions (a transaction never conflicts with itself):
//
//   held \ asked    S record   X record   gap   insert intention
//   S record        -          conflict   -     -
//   X record        conflict   conflict   -     -
//   gap             -          -          -     conflict
//
// Not thread-safe: the latch of the page's entry protects it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/types.h"
#include "multi_master/names.h"
#include "multi_master/wire.h"

namespace dbx::mm {

enum class RowLockKind : uint8_t { kShared = 1, kExclusive = 2, kGap = 3, kInsertIntention = 4 };

constexpr bool Conflict(RowLockKind held, RowLockKind asked) {
  switch (held) {
    case RowLockKind::kShared:
      return asked == RowLockKind::kExclusive;
    case RowLockKind::kExclusive:
      return asked == RowLockKind::kShared || asked == RowLockKind::kExclusive;
    case RowLockKind::kGap:
      return asked == RowLockKind::kInsertIntention;
    case RowLockKind::kInsertIntention:
      return false;
  }
  return false;
}

// The page lock under which a row lock is granted (rule 3). Several masters grant S and gap locks of a page at a time.
constexpr LockMode PageModeFor(RowLockKind kind) {
  const bool reads = kind == RowLockKind::kShared || kind == RowLockKind::kGap;
  return reads ? LockMode::kShared : LockMode::kExclusive;
}

struct RowLock {
  TxnName owner;
  RowLockKind kind = RowLockKind::kShared;
  Key low = 0;   // of a gap lock: its first key; otherwise the key
  Key high = 0;  // of a gap lock: its last key; otherwise the key

  static constexpr RowLock Shared(const TxnName& owner, Key key) { return {owner, RowLockKind::kShared, key, key}; }
  static constexpr RowLock Exclusive(const TxnName& owner, Key key) {
    return {owner, RowLockKind::kExclusive, key, key};
  }
  static constexpr RowLock Gap(const TxnName& owner, Key low, Key high) {
    return {owner, RowLockKind::kGap, low, high};
  }
  static constexpr RowLock Insert(const TxnName& owner, Key key) {
    return {owner, RowLockKind::kInsertIntention, key, key};
  }

  friend bool operator==(const RowLock&, const RowLock&) = default;
};

constexpr bool Conflict(const RowLock& held, const RowLock& asked) {
  if (held.owner == asked.owner || !Conflict(held.kind, asked.kind)) return false;
  return held.low <= asked.low && asked.low <= held.high;
}

class RowLocks {
 public:
  bool empty() const { return records_.empty() && gaps_.empty(); }
  size_t size() const { return records_.size() + gaps_.size(); }

  // Calls visit(const RowLock&) for each.
  template <class F>
  void ForEach(F&& visit) const {
    for (const RowLock& lock : records_) visit(lock);
    for (const RowLock& lock : gaps_) visit(lock);
  }
  // The owners of locks that conflict with `asked`, each once.
  std::vector<TxnName> FindConflicts(const RowLock& asked) const;
  bool HasConflict(const RowLock& asked) const { return !FindConflicts(asked).empty(); }
  // The owner of `lock` needs no more than it has.
  bool Covers(const RowLock& lock) const;
  bool HasOwner(const TxnName& owner) const;

  // Grants: the caller has looked for conflicts. An exclusive lock replaces the owner's shared one, and ranges of one
  // owner that touch become one. Not for insert intentions.
  void Add(const RowLock& lock);
  // All locks of `other` are added (rule 2).
  void Merge(const RowLocks& other);
  // The locks of one master's transactions become those of `part`, others remain (rule 5, under S).
  void ReplaceOwnersOf(MasterId master, const RowLocks& part);
  // The locks of one master's transactions.
  RowLocks PartOf(MasterId master) const;
  // The page is split: the keys from `separator` on are the right page's. Returns its locks, this keeps those of the
  // left one; a gap lock across the separator is in both, each with its part of the range.
  RowLocks SplitOff(Key separator);

  // Removes the locks of all owners for which must_go(const TxnName&) is true.
  template <class F>
  void RemoveOwners(F&& must_go) {
    // Neighbours often have one owner, which is then asked about once.
    TxnName last;
    bool last_goes = false, asked = false;
    const auto goes = [&](const RowLock& lock) {
      if (!asked || lock.owner != last) {
        last = lock.owner;
        last_goes = must_go(lock.owner);
        asked = true;
      }
      return last_goes;
    };
    std::erase_if(records_, goes);
    std::erase_if(gaps_, goes);
  }

  void Encode(WireWriter& to) const;
  // A list that no Encode has written makes the reader refuse.
  static RowLocks Decode(WireReader& from);

  friend bool operator==(const RowLocks&, const RowLocks&) = default;

 private:
  void AddGap(RowLock lock);
  void Normalize();

  std::vector<RowLock> records_;  // by (key, owner), one for each
  std::vector<RowLock> gaps_;     // by (owner, low); those of one owner do not overlap
};

}  // namespace dbx::mm
