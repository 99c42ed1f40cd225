// Which transactions have ended, and behind what the END records of their logs lie (rule 6 of multi_master/lock).
//
// A row lock lasts until its owner has ended, not until a message removes it: copies of it are on other masters and in
// the lock process. Any of them drops a lock whose owner is known here, and adds the owner's END to the page's
// after-list, so that later versioned readers of the page find out whether they see all of the owner's changes.
//
// Of each master and epoch this has a low-water mark, below which all but a few named transactions have ended, and the
// ends that are known one by one. An END's place is kept until the least TV of the cluster covers it and all ENDs below
// a low-water mark; afterwards, and where it was never told, what the low-water mark came with stands for it: it is not
// smaller. Hence what a statement sees is never in doubt: an END that its TV covers has come with an applied flush, so
// its place is known or all TVs cover it, and an END of which only a newer low-water mark is known is not covered.
//
// Not thread-safe: its owner's latch protects it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "multi_master/lock/sequence_map.h"
#include "multi_master/names.h"
#include "multi_master/network.h"
#include "multi_master/vs_clock.h"
#include "multi_master/wire.h"

namespace dbx::mm {

// An END record: the log that it lies in and its time there. The log is another master's for a transaction that was
// undone after its own master's death. Time 0: the transaction wrote none, as nothing of it had left its master.
struct EndPlace {
  MasterId master;
  VsTime time;

  friend bool operator==(const EndPlace&, const EndPlace&) = default;
};

// News of one master's transactions of one epoch.
struct EndedTxns {
  static constexpr MessageType kType{104};

  struct One {
    uint64_t sequence = 0;
    EndPlace place;
  };

  // As `low`: the master is dead, and begins no more; its log ends at `low_after`.
  static constexpr uint64_t kAll = UINT64_MAX;

  MasterId master;
  ClusterEpoch epoch;
  uint64_t low = 0;            // all up to this sequence number have ended, but for `open`
  AfterList low_after;         // covers their ENDs
  std::vector<uint64_t> open;  // losers of a dead master that are not undone yet
  std::vector<One> above;      // other ends

  void Encode(WireWriter& to) const;
  static EndedTxns Decode(WireReader& from);
};

class Ends {
 public:
  void Add(const TxnName& txn, EndPlace place);
  void Learn(const EndedTxns& news);

  bool IsEnded(const TxnName& txn) const;
  // `tv`, of a statement of this master that is running, covers its END: the statement sees what it wrote.
  bool IsSeenBy(const VsVector& tv, const TxnName& txn) const;
  // A lock of `txn`, which has ended, is dropped from a page that has this after-list.
  void RaiseAfter(const TxnName& txn, AfterList& after) const;

  // No TV in use, now or later, lacks anything of `least_tv`.
  void Forget(const VsVector& least_tv);
  // Ends that are known one by one.
  size_t remembered() const;

 private:
  struct Member {
    uint64_t low = 0;
    AfterList low_after;
    // Low-water marks whose ENDs a TV in use may lack, the oldest first; and the newest one whose ENDs all TVs cover.
    std::deque<std::pair<uint64_t, AfterList>> marks;
    uint64_t settled = 0;
    std::set<uint64_t> open;
    SequenceMap<EndPlace> known;

    bool IsEnded(uint64_t sequence) const {
      return known.contains(sequence) || (sequence <= low && !open.contains(sequence));
    }
  };

  std::map<std::pair<MasterId, ClusterEpoch>, Member> members_;
};

// The names of a master's own transactions, and what it may tell the lock process about their ends: only of those whose
// END is durable, or a lock could go while a crash still makes its owner a loser.
//
// Not thread-safe: its owner's latch protects it.
class OwnTxns {
 public:
  OwnTxns(MasterId master, ClusterEpoch epoch) : master_(master), epoch_(epoch) {}

  TxnName Begin();
  // `time` of its END in the own log; 0: it has none. `left`: other processes may have locks of it.
  void End(const TxnName& txn, VsTime time, bool left);
  size_t active() const { return active_; }

  // What has changed since the last call, if the own log is durable up to `durable`. Nothing if there is no news, or if
  // `only_if_left` and no other process can have locks of the transactions that it is about.
  std::optional<EndedTxns> TakeNews(VsTime durable, bool only_if_left);

 private:
  const MasterId master_;
  const ClusterEpoch epoch_;
  uint64_t last_ = 0;
  uint64_t low_ = 0;
  VsTime low_time_;
  size_t active_ = 0;
  SequenceMap<std::optional<VsTime>> txns_;  // above the low-water mark; nothing: it is active
  std::vector<EndedTxns::One> left_;         // not told yet, and other processes may have locks of them
};

}  // namespace dbx::mm
