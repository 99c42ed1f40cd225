// Is what was acknowledged in the rows that a cluster has left? For workloads whose writers each leave a row of their
// own (TEST); of others the file of acknowledgements is for a check of the logs.
//
// Threads: one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "storage/database.h"
#include "system/command_line/options.h"
#include "system/transaction/ack_file.h"

namespace dbx {

// An upper bound for the sequence numbers of a master's worker.
inline uint64_t MostTransactionsOfMaster(const Options& options) {
  constexpr double kPerSecond = 2e6;
  const double seconds = options.seconds + options.warmup_seconds;
  const uint64_t timed = seconds > 0 ? static_cast<uint64_t>((seconds + 1) * kPerSecond) : 0;
  return timed + (options.seconds > 0 ? 0 : options.max_txns_per_thread) + options.warmup;
}

// An acknowledged writer that has left nothing in `rows`; nothing: there is none, or the rows do not show it.
template <class WorkloadT>
std::optional<std::string> MissingAcknowledged(const WorkloadT& workload, const Database& rows, const AckFile& acks) {
  std::optional<std::string> missing;
  if constexpr (requires { workload.history_table(); }) {
    const Table& history = rows.table(workload.history_table().id());
    acks.ForEachAcknowledged([&](TxnId id) {
      const Row* const row = history.Find(id.value);
      if (missing || (row != nullptr && (row->control.load(std::memory_order_relaxed) & Row::kAbsent) == 0)) return;
      missing = fmt::format("transaction {} of worker {} was acknowledged and is not there", id.sequence(),
                            id.worker().value());
    });
  }
  return missing;
}

}  // namespace dbx
