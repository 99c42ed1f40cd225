// What a scheme whose changes reach a persistent heap first (LogTraits::version_heap) is given of its run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/types.h"
#include "logging/gaps/gap_log.h"
#include "storage/persistent_memory.h"

namespace dbx {

struct HeapOptions {
  PersistentMemory* heap = nullptr;  // both outlive the log
  GapLog* gaps = nullptr;            // its newest record is the first one of this life
  bool commits_are_slow = false;     // a group takes as long as a write of a disk, or an answer of a replica
  uint32_t workers = 0;
  uint64_t flush_interval_us = 0;  // from one group commit to the next, if a transaction waits for it
  // How many lines a change of an index stores to (logging/write_behind/index_lines.h), and of which, by worker.
  uint32_t index_lines = 0;
  std::vector<std::vector<std::byte*>> lines_of_indexes{};
  // Adopts one partition more (storage/heap/adoption.h), or another worker adopts the last ones. False: all are
  // adopted, and no slot has the stamp of a loser. By any worker between two transactions.
  std::function<bool(WorkerId)> sweep{};
};

}  // namespace dbx
