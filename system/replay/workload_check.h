// A workload's own conditions on a database at rest, with the read sets of acknowledged readers where the ack file has
// them.
#pragma once

#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "base/error.h"
#include "storage/database.h"
#include "system/command_line/options.h"
#include "system/transaction/ack_file.h"

namespace dbx {

// The acknowledged readers that left a note of their read set.
template <class WorkloadT>
auto AcknowledgedReaders(const AckFile& acks) {
  auto readers = WorkloadT::ReadersIn({});
  for (uint32_t w = 0; w < acks.workers(); ++w) {
    const auto more = WorkloadT::ReadersIn(acks.NotesOf(WorkerId(w)));
    readers.insert(readers.end(), more.begin(), more.end());
  }
  std::erase_if(readers, [&](const auto& reader) { return !acks.HasAcknowledgedReader(reader.id); });
  return readers;
}

// The violated condition, or nothing; `acks` may be null. Writes the history to --history_file, if there is one.
template <class WorkloadT>
std::optional<std::string> CheckWorkload(const Options& options, const WorkloadT& workload, const Database& database,
                                         const AckFile* acks) {
  if constexpr (requires { WorkloadT::kNoteBytes; }) {
    auto readers = WorkloadT::ReadersIn({});
    if (acks != nullptr) readers = AcknowledgedReaders<WorkloadT>(*acks);
    if (!options.history_file.empty()) {
      std::ofstream file(options.history_file);
      workload.WriteHistory(database, readers, file);
      if (!file.flush()) {
        throw Error(ExitStatus::kIo, "history file " + options.history_file + ": cannot write: " + strerror(errno));
      }
    }
    return workload.Inconsistency(database, readers);
  } else {
    return workload.Inconsistency(database);
  }
}

}  // namespace dbx
