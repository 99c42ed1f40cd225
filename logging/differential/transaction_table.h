// What the backward pass over one log knows of transactions (Lee, Kim, Cha, ICDE 2001, Alg. 3): CTT, those that are
// committed, and ATT, those that were active when the checkpoint g from which the database is restored ended, or that
// aborted after it began. A change is in backup g if and only if its number is below g.
//
// An attempt of a transaction has its records in one log: its first change, which is marked; further ones; COMMIT or
// ABORT, if it got there. An aborted transaction may be tried again under the same id. A COMMIT counts if the
// transaction's LSN vector is covered by the ends of the logs. BEGIN and END are those of checkpoint g.
//
//     record           where           CTT      ATT      the change is applied
//     COMMIT, counts   anywhere        into
//     COMMIT, not      above BEGIN
//     ABORT            above BEGIN              into
//     ABORT            below BEGIN              out
//     END's list       END             (as is)  into
//     change           T in CTT                          if it is not in the backup: redo
//     change           T not in CTT, above BEGIN         if it is in the backup: undo
//     change           T in ATT, not in CTT              if it is in the backup: undo
//     change           T in neither, below BEGIN         no: the backup has all of T's changes, and its undo
//     first change     as above; afterwards   out   out
//
// So CTT wins over ATT: END's list may name transactions that had ended. The list is taken before END has its place,
// and a transaction is in it until its COMMIT or ABORT is filled. An ABORT below BEGIN was filled, and what it undid
// was undone, before the checkpoint copied any page; one above it was not. All that an end below BEGIN depends on is
// durable, as the anchor followed: backward_checks.h refuses one that does not count. An attempt has one end, and one
// that commits has a first change: no ABORT finds its transaction in CTT.
//
// The baseline DL2P redoes all changes from BEGIN on besides, and logs all that an abort undoes: an ABORT ends its
// transaction as a COMMIT that counts does, and the changes of the others, and their compensations, are to be undone.
//
//     record           where           CTT      ATT      the change is applied
//     ABORT            anywhere        into
//     change           T in CTT                          no: it is redone
//     change           T not in CTT, above BEGIN         whatever its number: undo
//     change           T in ATT, not in CTT              the same
//
// The baseline PL2P undoes first. Its ABORTs have an LSN vector, as COMMITs do. One that does not count has ended its
// attempt all the same, which is to be undone, whatever END lists of a later attempt under the id:
//
//     record           where           CTT      ATT      the change is applied
//     ABORT, counts    anywhere        into
//     ABORT, not       above BEGIN              into
//     change           T in CTT                          no: it is redone later
//     change           T not in CTT, above BEGIN         if it is in the backup: undo
//     change           T in ATT, not in CTT              the same
//
// With g = 0, the backup with which the run begins, everything is above BEGIN and nothing is in the backup.
//
// Threads: one, that of its log's pass.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "logging/differential/txn_map.h"
#include "logging/differential_methods.h"

namespace dbx {

// One transaction in the two tables.
struct TxnStanding {
  bool committed = false;  // in CTT
  bool active = false;     // in ATT

  bool IsEmpty() const { return !committed && !active; }
  friend bool operator==(const TxnStanding&, const TxnStanding&) = default;
};

// The table above, line by line.
enum class TxnEvent : uint8_t { kCommit, kAbort, kListed, kChange, kFirstChange };
constexpr TxnStanding After(TxnEvent event, TxnStanding now, bool above_begin) {
  switch (event) {
    case TxnEvent::kCommit:
      return {true, now.active};
    case TxnEvent::kAbort:
      return {now.committed, above_begin};
    case TxnEvent::kListed:
      return {now.committed, true};
    case TxnEvent::kChange:
      return now;
    case TxnEvent::kFirstChange:
      return {};
  }
  return now;
}
constexpr bool IsApplied(DiffMethod method, TxnStanding now, bool above_begin, bool in_backup) {
  const bool is_one_pass = method == DiffMethod::kDl1p;
  if (now.committed) return is_one_pass && !in_backup;
  return (in_backup || method == DiffMethod::kDl2p) && (above_begin || now.active);
}

class TransactionTable {
 public:
  explicit TransactionTable(DiffMethod method) : method_(method) {}

  // The pass is about to visit the records below BEGIN.
  void PassBegin() { above_begin_ = false; }

  void Commit(TxnId id, bool counts) {
    if (counts) Take(id, TxnEvent::kCommit);
  }
  void Abort(TxnId id, bool counts) {
    Take(id, counts && method_ != DiffMethod::kDl1p ? TxnEvent::kCommit : TxnEvent::kAbort);
  }
  void List(TxnId id) { Take(id, TxnEvent::kListed); }
  // Returns whether the change is to be applied.
  bool Change(TxnId id, bool first, bool in_backup) {
    const TxnStanding before = Take(id, first ? TxnEvent::kFirstChange : TxnEvent::kChange);
    return IsApplied(method_, before, above_begin_, in_backup);
  }

  TxnStanding Find(TxnId id) const { return transactions_.Find(id); }
  size_t size() const { return transactions_.size(); }

 private:
  // Returns its standing before.
  TxnStanding Take(TxnId id, TxnEvent event) {
    const TxnStanding before = transactions_.Find(id);
    const TxnStanding after = After(event, before, above_begin_);
    if (after == before) return before;
    transactions_.Set(id, after);
    return before;
  }

  const DiffMethod method_;
  TxnMap<TxnStanding> transactions_;
  bool above_begin_ = true;
};

}  // namespace dbx
