// The reference recovery of logs by partition (Plover): everything up to the least of the stamps at which the logs end,
// in the order of the stamps. Two transactions with the same stamp have no partition in common.
#include <map>

#include "tests/reference/reference_replay.h"

namespace dbx::reference {
namespace {

struct Part {
  uint64_t stamp;
  TxnRef at;
  uint64_t txn_id;
  uint64_t parts;
  bool first;
};

// Reads one log; its last stamp.
uint64_t CollectParts(const ReferenceLogs& logs, uint32_t log, RecoveredSet& set, std::vector<Part>& parts) {
  uint64_t last = 0, last_of_txn = 0;
  for (Cursor at(logs, log); !at.AtEnd(); at.Next()) {
    const Record& record = at.record();
    set.voids += record.kind == Kind::kVoid;
    last = std::max(last, record.stamp);
    if (!record.IsTxn()) continue;
    const char* why = nullptr;
    if (record.kind != Kind::kStamped) why = "a transaction without a stamp";
    if ((record.parts >> log & 1) == 0) why = "a part of a transaction that has none in this log";
    if (record.stamp <= last_of_txn) why = "stamps that do not ascend";
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

RecoveredSet RecoverPartitions(const ReferenceLogs& logs) {
  RecoveredSet set;
  std::vector<Part> parts;
  uint64_t frontier = UINT64_MAX;
  uint32_t least = 0;
  for (uint32_t log = 0; log < logs.logs.size(); ++log) {
    const Log& from = logs.logs[log];
    set.frontier.push_back(from.end);
    if (from.verdict == Verdict::kDamaged && set.damage.empty()) set.damage = from.Complaint(from.end, from.reason);
    if (!set.damage.empty()) continue;
    const uint64_t last = CollectParts(logs, log, set, parts);
    if (last < frontier) least = log;
    frontier = std::min(frontier, last);
  }
  if (set.damage.empty() && frontier < logs.durable_stamp) {
    set.damage = logs.logs[least].Complaint(logs.logs[least].end, "the log ends before stamp " +
                                            std::to_string(logs.durable_stamp) + ", up to which all were durable");
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::pair(a.stamp, a.at.log) < std::pair(b.stamp, b.at.log);
  });
  const auto lost = std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.stamp > frontier; });
  for (auto part = lost; part != parts.end(); ++part) {
    if (part->first) set.dropped.push_back({TxnId{part->txn_id}, part->at, least, logs.logs[least].end});
  }
  parts.erase(lost, parts.end());
  CheckWhole(logs, parts, set);
  for (const Part& part : parts) {
    set.order.push_back(part.at);
    if (part.first) set.txn_ids.push_back(part.txn_id);
  }
  std::sort(set.txn_ids.begin(), set.txn_ids.end());
  return set;
}

}  // namespace dbx::reference
