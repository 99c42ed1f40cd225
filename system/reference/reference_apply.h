// The last step of the reference recovery: what survives is replayed, one transaction after the other.
#pragma once

#include <algorithm>
#include <vector>

#include "system/reference/reference_replay.h"
#include "system/reference/reference_versions.h"

namespace dbx::reference {

// Runs a command again. Throws Error (kCorrupt) for arguments that are none.
template <class WorkloadT>
Outcome RunAgain(const Log& log, const Record& record, WorkloadT& workload, auto& context) {
  std::vector<uint64_t> args(1 + record.payload.size() / 8, record.txn_id);  // 8-byte aligned, as procedures want them
  std::copy(record.payload.begin(), record.payload.end(), std::as_writable_bytes(std::span(args)).begin() + 8);
  const ProcedureId procedure(record.procedure);
  const Bytes bytes = std::as_bytes(std::span(args));
  if (!workload.ValidArgs(procedure, bytes)) {
    throw Error(ExitStatus::kCorrupt, log.Complaint(record.lsn, "these are no arguments of this procedure"));
  }
  return workload.Run(context, procedure, bytes);
}

// Replays `set` over a freshly loaded `database`, in one version. Throws Error (kCorrupt) for a record that does not
// fit.
template <class WorkloadT>
ReplayResult ReplayInOrder(const ReferenceLogs& logs, const RecoveredSet& set, WorkloadT& workload,
                           Database& database) {
  ReplayResult result;
  ReferenceContext context;
  LastRecords last;
  for (const TxnRef& at : set.order) {
    const Record record = DecodeRecord(logs, at.log, at.lsn);
    const Log& log = logs.logs[at.log];
    if (record.kind == Kind::kVersionedCommand) {
      throw Error(ExitStatus::kCorrupt, log.Complaint(at.lsn, "a command with timestamps in a log without"));
    }
    Outcome outcome = Outcome::kOk;
    if (record.IsCommand()) {
      outcome = RunAgain(log, record, workload, context);
    } else if (record.kind == Kind::kRowChanges) {
      ApplyChanges(log, record, context, database, last);
    } else {
      ApplyImages(log, record, context, database);
    }
    ++result.applied;
    if (outcome != Outcome::kOk) {
      context.Undo();
      result.without_effect.push_back(TxnId{record.txn_id});
    }
    context.Forget();
  }
  return result;
}

// The same in many versions.
template <class WorkloadT>
ReplayResult ReplayAtTimestamps(const ReferenceLogs& logs, const RecoveredSet& set, WorkloadT& workload) {
  ReplayResult result;
  VersionedContext context;
  const std::vector<uint64_t> oldest_reads = OldestReadsBehind(logs, set.order);
  for (const TxnRef& at : set.order) {
    const Record record = DecodeRecord(logs, at.log, at.lsn);
    const Log& log = logs.logs[at.log];
    if (record.kind != Kind::kVersionedCommand) {
      throw Error(ExitStatus::kCorrupt, log.Complaint(at.lsn, "a transaction without timestamps"));
    }
    context.Begin(record.read, record.stamp);
    const Outcome outcome = RunAgain(log, record, workload, context);
    if (outcome != Outcome::kOk) result.without_effect.push_back(TxnId{record.txn_id});
    context.End(outcome != Outcome::kOk, oldest_reads[result.applied++]);
  }
  return result;
}

template <class WorkloadT>
ReplayResult Replay(const ReferenceLogs& logs, const RecoveredSet& set, WorkloadT& workload, Database& database) {
  if (logs.many_versions) return ReplayAtTimestamps(logs, set, workload);
  return ReplayInOrder(logs, set, workload, database);
}

}  // namespace dbx::reference
