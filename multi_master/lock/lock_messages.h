// The messages between masters and the lock process, numbers 100-199. What each means: local_locks.h, global_locks.h.
//
//   master -> lock process   PageRequest, PageRelease, EndedTxns, WaitReport, LeastTv, LeaseRequest
//   lock process -> master   PageGrant, PageReclaim, EndedTxns, AbortVictim, LeastTv, LeaseGrant, UndoLoser
//
// A master is known by its link; a body names no sender. Decode yields nothing for bytes that no Encode has written.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "multi_master/lock/ends.h"
#include "multi_master/lock/row_locks.h"
#include "multi_master/names.h"
#include "multi_master/network.h"
#include "multi_master/vs_clock.h"
#include "multi_master/wire.h"

namespace dbx::mm {

struct PageRequest {
  static constexpr MessageType kType{100};
  PageId page;
  LockMode mode = LockMode::kShared;
  Generation generation;

  void Encode(WireWriter& to) const;
  static PageRequest Decode(WireReader& from);
  friend bool operator==(const PageRequest&, const PageRequest&) = default;
};

struct PageGrant {
  static constexpr MessageType kType{101};
  PageId page;
  LockMode mode = LockMode::kShared;
  Generation generation;
  PageLsn lsn;
  RowLocks rows;
  AfterList after;

  void Encode(WireWriter& to) const;
  static PageGrant Decode(WireReader& from);
  friend bool operator==(const PageGrant&, const PageGrant&) = default;
};

struct PageReclaim {
  static constexpr MessageType kType{102};
  PageId page;
  Generation generation;

  void Encode(WireWriter& to) const;
  static PageReclaim Decode(WireReader& from);
  friend bool operator==(const PageReclaim&, const PageReclaim&) = default;
};

struct PageRelease {
  static constexpr MessageType kType{103};
  // The sender holds this page too, in X, and has moved row locks to it since it was granted the released page.
  struct SplitPage {
    PageId page;
    Generation generation;
    RowLocks rows;
    AfterList after;
    friend bool operator==(const SplitPage&, const SplitPage&) = default;
  };

  PageId page;
  LockMode mode = LockMode::kShared;
  Generation generation;
  PageLsn lsn;
  RowLocks rows;  // under S those of the sender's transactions alone
  AfterList after;
  std::vector<SplitPage> splits;

  void Encode(WireWriter& to) const;
  static PageRelease Decode(WireReader& from);
  friend bool operator==(const PageRelease&, const PageRelease&) = default;
};

// When a transaction began its first attempt, by its master's clock.
using BeginTime = StrongInt<struct BeginTimeTag>;
// Counts the waits of a master for row locks: a message about an earlier one does nothing.
using WaitNumber = StrongInt<struct WaitNumberTag>;

// A transaction has waited for row locks for a while.
struct WaitReport {
  static constexpr MessageType kType{105};
  TxnName waiter;
  BeginTime begun;
  WaitNumber number;
  std::vector<TxnName> blockers;  // empty: the wait is over

  void Encode(WireWriter& to) const;
  static WaitReport Decode(WireReader& from);
  friend bool operator==(const WaitReport&, const WaitReport&) = default;
};

// The transaction is the youngest of a deadlock.
struct AbortVictim {
  static constexpr MessageType kType{106};
  TxnName victim;
  WaitNumber number;

  void Encode(WireWriter& to) const;
  static AbortVictim Decode(WireReader& from);
  friend bool operator==(const AbortVictim&, const AbortVictim&) = default;
};

// From a master: no TV that it uses, now or later, lacks anything of `tv`. To a master: the same of all masters.
struct LeastTv {
  static constexpr MessageType kType{107};
  VsVector tv;

  void Encode(WireWriter& to) const;
  static LeastTv Decode(WireReader& from);
  friend bool operator==(const LeastTv&, const LeastTv&) = default;
};

// Counts the lease requests of a master.
using LeaseNumber = StrongInt<struct LeaseNumberTag>;

// The sender lives; or, `leaves`, has made its log durable and is about to end in order.
struct LeaseRequest {
  static constexpr MessageType kType{108};
  LeaseNumber number;
  bool leaves = false;

  void Encode(WireWriter& to) const;
  static LeaseRequest Decode(WireReader& from);
  friend bool operator==(const LeaseRequest&, const LeaseRequest&) = default;
};

// The receiver may use its locks for the term of a lease, from the sending of the request of this number on.
struct LeaseGrant {
  static constexpr MessageType kType{109};
  LeaseNumber number;

  void Encode(WireWriter& to) const;
  static LeaseGrant Decode(WireReader& from);
  friend bool operator==(const LeaseGrant&, const LeaseGrant&) = default;
};

// The receiver undoes what the log of a dead master has of this transaction, then writes its END. A row is named by its
// key and a page of its tree, where it was when it was written.
struct UndoLoser {
  static constexpr MessageType kType{110};
  struct Row {
    PageId page;
    Key key = 0;
    friend constexpr auto operator<=>(const Row&, const Row&) = default;
  };
  static constexpr size_t kRowsMax = 100'000;  // of a message

  TxnName loser;
  bool is_last = true;    // no further rows of it follow
  std::vector<Row> rows;  // the last written first
  // The ends of the logs that may have changes of it, or of its undo: its master's, and those of masters that died
  // while they undid it. The receiver has applied them before it writes the END.
  VsVector after;

  void Encode(WireWriter& to) const;
  static UndoLoser Decode(WireReader& from);
  friend bool operator==(const UndoLoser&, const UndoLoser&) = default;
};

}  // namespace dbx::mm
