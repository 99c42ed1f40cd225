// What the sealed log of a dead master says (multi_master.md, section 6): for the lock process, the splits and row
// locks that its own table lacks, and the newest version of each page; for the survivor that undoes them, its losers
// and their rows.
//
//   flush by flush -> changes: rows of each transaction, splits of leaves, versions of pages
//                     ENDs: their transactions are no losers, and their rows are forgotten
//   Finish         -> splits and losers' row locks in the order of the log: a split moves the locks before it
//
// A loser is a transaction of the master that has changed a row, and whose END no flush covers. One that had begun to
// undo itself is a loser with all of its rows: those that it has restored have another writer by now, which tells. A
// transaction that has changed no row has left nothing to undo.
//
// The log is read as a stream. Kept are the rows of transactions without an END, a split of a leaf each, and a version
// for each page.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "multi_master/lock/global_locks.h"
#include "multi_master/lock/lock_messages.h"
#include "multi_master/names.h"
#include "multi_master/process/log_follower.h"

namespace dbx::mm {

struct Loser {
  TxnName name;
  std::vector<UndoLoser::Row> rows;  // each once, the last written first
};

class DeadLog {
 public:
  // `epoch`: of the master's start, which its transactions' names have.
  DeadLog(MasterId master, ClusterEpoch epoch);

  // The next flush. Throws Error (kCorrupt) where its changes are none that a master makes.
  void Take(const FollowedFlush& flush);

  struct Result {
    DeadMaster dead;
    std::vector<Loser> losers;  // the youngest first
  };
  Result Finish();

  // That were kept at a time, at most.
  size_t rows_kept_max() const { return rows_kept_max_; }

 private:
  struct Written {
    uint64_t order;  // of the change, in the log
    UndoLoser::Row row;
  };
  using Step = std::pair<uint64_t, DeadMaster::Step>;

  void TakeChange(std::span<const PageChange> before, const PageChange& change);
  void AddLosers(std::vector<Step>& steps, std::vector<Loser>& losers);

  const MasterId master_;
  const ClusterEpoch epoch_;
  uint64_t changes_ = 0;
  VsTime log_end_;
  std::map<TxnName, std::vector<Written>> rows_;  // of transactions without an END
  std::vector<Step> splits_;
  std::unordered_map<PageId, PageLsn> versions_;
  size_t rows_kept_ = 0, rows_kept_max_ = 0;
};

}  // namespace dbx::mm
