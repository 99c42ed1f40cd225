#include "system/replay/start_state.h"

#include <algorithm>

#include "system/replay/recovery.h"
#include "system/runs/checkpoint.h"

namespace dbx {
namespace {

uint64_t LoadCheckpoint(const OldRun& run, FileSystem& files, Repeated repeated, Database& database) {
  const auto parts = static_cast<uint32_t>(run.checkpoint_paths.size());
  const uint32_t threads = std::min(parts, database.workers());
  const auto load = [&](WorkerId worker) {
    for (uint32_t part = worker.value(); part < parts; part += threads) {
      LoadCheckpointPart(files, run.checkpoint_paths[part],
                         {run.header().database_id, run.header().run_id, run.header().schema_hash, part, parts},
                         run.checkpoint_parts[part], database, worker, repeated);
    }
  };
  RunWorkers(threads, load, [] {});
  uint64_t rows = 0;
  for (const format::CheckpointPart& part : run.checkpoint_parts) rows += part.rows;
  return rows;
}

}  // namespace

StartState StartStateOf(const OldRuns& runs) {
  const OldRun& oldest = runs.chain.front();
  if (oldest.anchor) return {StartState::Kind::kBackup, &oldest};
  if (oldest.checkpoint_paths.empty()) return {};
  if (oldest.rows() != nullptr) return {StartState::Kind::kRows, &oldest};
  return {StartState::Kind::kCheckpoint, &oldest};
}

uint64_t LoadStart(const StartState& start, FileSystem& files, uint64_t seed, uint32_t threads, WorkloadRef workload,
                   Database& database) {
  switch (start.kind) {
    case StartState::Kind::kFreshLoad:
      std::visit([&](auto* fresh) { fresh->Load(database, seed, threads); }, workload);
      return 0;
    case StartState::Kind::kCheckpoint: {
      const uint64_t rows = LoadCheckpoint(*start.run, files, Repeated::kRefused, database);
      std::visit([&](auto* adopting) { adopting->Adopt(database, seed); }, workload);
      return rows;
    }
    case StartState::Kind::kRows:
      return LoadCheckpoint(*start.run, files, Repeated::kReplaced, database);
    case StartState::Kind::kBackup:
      return 0;
  }
  return 0;
}

}  // namespace dbx
