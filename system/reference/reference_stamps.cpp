// The reference recovery of stamped logs: everything up to a stamp, in the order of the stamps. Two transactions with
// the same stamp have no row in common. For logs by partition (Plover) the stamp is the least of those at which the
// logs end, for logs by epoch (Silo-R) it is the run's durable frontier.
#include <map>
#include <tuple>

#include "system/reference/reference_replay.h"

namespace dbx::reference {
namespace {

struct Part {
  uint64_t stamp;
  TxnRef at;
  uint64_t txn_id;
  uint64_t parts;
  bool first;
};

const char* FaultOf(const ReferenceLogs& logs, const Record& record, uint64_t last_stamp) {
  if (record.kind != Kind::kStamped || record.stamp == 0) return "a transaction without a stamp";
  if (logs.newest_wins()) return record.parts == 0 ? nullptr : "a part of a transaction in a log of whole ones";
  if ((record.parts >> record.log & 1) == 0) return "a part of a transaction that has none in this log";
  return record.stamp <= last_stamp ? "stamps that do not ascend" : nullptr;
}

// Reads one log; its last stamp.
uint64_t CollectParts(const ReferenceLogs& logs, uint32_t log, RecoveredSet& set, std::vector<Part>& parts) {
  uint64_t last = 0, last_of_txn = 0;
  for (Cursor at(logs, log); !at.AtEnd(); at.Next()) {
    const Record& record = at.record();
    set.voids += record.kind == Kind::kVoid;
    last = std::max(last, record.stamp);
    if (!record.IsTxn()) continue;
    const char* why = FaultOf(logs, record, last_of_txn);
    if (why != nullptr && set.damage.empty()) set.damage = logs.logs[log].Complaint(record.lsn, why);
    last_of_txn = record.stamp;
    parts.push_back({record.stamp, {log, record.lsn}, record.txn_id, record.parts, record.IsFirstPart()});
  }
  return last;
}

// That each transaction of `order` has all its parts.
void CheckWhole(const ReferenceLogs& logs, const std::vector<Part>& order, RecoveredSet& set) {
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> missing;
  for (const Part& part : order) {
    const auto [it, is_new] = missing.try_emplace({part.stamp, part.txn_id}, part.parts);
    it->second ^= uint64_t{1} << part.at.log;
  }
  for (const auto& [name, logs_left] : missing) {
    if (logs_left == 0 || !set.damage.empty()) continue;
    const Log& log = logs.logs[static_cast<size_t>(std::countr_zero(logs_left))];
    set.damage = log.Complaint(log.end, "a part of transaction " + std::to_string(name.second) + " is missing before");
  }
}

}  // namespace

RecoveredSet RecoverStamped(const ReferenceLogs& logs) {
  RecoveredSet set;
  std::vector<Part> parts;
  uint64_t frontier = logs.stamp_end;
  uint32_t least = 0;
  for (uint32_t log = 0; log < logs.logs.size(); ++log) {
    const Log& from = logs.logs[log];
    set.frontier.push_back(from.end);
    if (from.verdict == Verdict::kDamaged && set.damage.empty()) set.damage = from.Complaint(from.end, from.reason);
    if (!set.damage.empty()) continue;
    const uint64_t last = CollectParts(logs, log, set, parts);
    if (logs.newest_wins() || last >= frontier) continue;
    least = log;
    frontier = last;
  }
  if (set.damage.empty() && frontier < logs.durable_stamp) {
    set.damage = logs.logs[least].Complaint(
        logs.logs[least].end,
        "the log ends before stamp " + std::to_string(logs.durable_stamp) + ", up to which all were durable");
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::tuple(a.stamp, a.at.log, a.at.lsn) < std::tuple(b.stamp, b.at.log, b.at.lsn);
  });
  const auto lost = std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.stamp > frontier; });
  for (auto part = lost; part != parts.end(); ++part) {
    if (part->first) set.dropped.push_back({TxnId{part->txn_id}, part->at, least, logs.logs[least].end});
  }
  parts.erase(lost, parts.end());
  if (logs.by_partition()) CheckWhole(logs, parts, set);
  for (const Part& part : parts) {
    set.order.push_back(part.at);
    if (part.first) set.txn_ids.push_back(part.txn_id);
  }
  std::sort(set.txn_ids.begin(), set.txn_ids.end());
  return set;
}

}  // namespace dbx::reference
