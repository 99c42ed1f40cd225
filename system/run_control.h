// The control of workers by a run: when it creates them (WorkerOptions), and while they run (RunControl).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"

namespace dbx {

struct RunControl {
  Atomic<bool> warmup_over{false};  // of a warm-up that takes a time
  Atomic<bool> go{false};           // start the measured interval
  Atomic<bool> stop{false};         // it has ended: from now on a timed run counts nothing
  Atomic<bool> pause{false};        // workers stay between two transactions, outside of their epoch sections
  Atomic<uint32_t> warm{0};         // workers that have finished their warm-up
  Atomic<uint32_t> finished{0};     // workers that have run all their transactions
  // By worker, written before it leaves its epoch section: its transactions with lower sequence numbers have ended.
  // Empty in a run without row checkpoints.
  std::vector<CachePadded<Atomic<uint64_t>>> ended_below;
};

struct WorkerOptions {
  uint64_t txn_count = 0;     // in the measured interval; 0: until told to stop
  uint64_t warmup_count = 0;  // before it
  bool timed_warmup = false;  // as long as `warmup_over` is false, too
  uint64_t abort_penalty_ns = 0;
  uint64_t first_sequence = 0;  // of its transactions
  size_t ack_queue_length = 1 << 15;
  uint32_t lookahead = 6;  // calls: how far ahead buckets are prefetched, and rows half as far; 0: neither
  bool time_breakdown = false;
  uint64_t read_nanos = 0;     // for each row that is read, where that is compiled in (charged_reads.h)
  bool latency_hiding = true;  // false: the next transaction waits until this one is acknowledged
};

}  // namespace dbx
