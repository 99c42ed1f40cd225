// Recovery of Plover's logs: every log in its own order, all logs at the same time.
//
// A log's GSNs ascend, so once a log has been read up to some GSN, it holds no further records with that GSN or a lower
// one. A transaction is recovered if every log has reached its GSN: if it is at or below the least of the GSNs at which
// the logs end. Then all its parts are there, and all transactions that it depends on.
//
// A record waits until every log has been read, not replayed, that far: the rows of two partitions are never the same.
// No deadlock: the unreplayed records with the least GSN wait only for reading, and a log without records in front of
// them always has buffers free for that.
//
// Refused, besides torn tails that had been durable: a mark that says that all logs were durable up to a GSN that one
// of them does not reach; GSNs that do not ascend; a transaction with a part missing, whatever the reason. The last is
// found by sums over transaction ids: the parts announced by the first part of a transaction against those in the other
// logs.
#pragma once

#include <array>

#include "logging/lane_recovery.h"

namespace dbx {

class PloverRecovery : public LaneRecovery {
 public:
  static constexpr bool kManyVersions = false;  // records are rows
  using LaneRecovery::LaneRecovery;

  void Open(const std::vector<LogSource>& logs);

  // A record that every log has been read up to, or nullptr: decode first, or wait. Throws Error.
  TxnRecord* NextReady(WorkerId worker);
  void MarkReplayed(WorkerId worker);
  ReplaySummary Finish();

 private:
  // Sums over the names of transactions, by log.
  struct alignas(kNoSharingBytes) Parts {
    std::array<uint64_t, format::kMaxLogs> promised{};
    std::array<uint64_t, format::kMaxLogs> found{};
  };
  enum class Order { kReady, kBlocked, kDropped };

  Order OrderOf(const TxnRecord& record) const;
  void CheckRecord(const TxnRecord& record);
  void CheckMarks(Stamp durable_stamp) const;
  void CheckParts() const;

  std::vector<Parts> parts_;       // by worker
  std::vector<Stamp> last_stamp_;  // by log; the lane's holder's
};

}  // namespace dbx
