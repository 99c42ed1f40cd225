#include "tests/simulation/cell.h"

#include <random>

#include "logging/schemes.h"
#include "system/command_line/parse_options.h"
#include "tests/simulation/cluster/cluster_setup.h"

namespace dbx::sim {
namespace {

template <class T>
T OneOf(std::mt19937_64& random, std::initializer_list<T> choices) {
  return *(choices.begin() + random() % choices.size());
}

void ChooseWorkload(Options& options, std::mt19937_64& random) {
  options.synth_table_size = OneOf<uint64_t>(random, {4, 16, 64});
  options.req_per_query = OneOf<uint32_t>(random, {1, 2, 4});
  options.field_per_tuple = OneOf<uint32_t>(random, {1, 1, 20});
  options.read_perc = OneOf<double>(random, {0.1, 0.5, 0.8});
  options.write_perc = 1 - options.read_perc;
  options.zipf_theta = OneOf<double>(random, {0.0, 0.6, 0.9});
  options.tpcc_small = true;
  options.test_conflict = random() % 4 != 0;
  options.test_read_write = !options.test_conflict || random() % 8 != 0;
}

void ChooseLog(Options& options, std::mt19937_64& random) {
  options.log_buffer_size = OneOf<uint64_t>(random, {16 << 10, 64 << 10, 256 << 10});
  options.log_flush_interval_us = OneOf<uint64_t>(random, {1, 10, 100});
  options.log_flush_block_bytes = OneOf<uint64_t>(random, {4 << 10, 16 << 10, 64 << 10});
  options.log_read_block_bytes = OneOf<uint64_t>(random, {4 << 10, 64 << 10});
  options.psn_flush_freq = OneOf<uint32_t>(random, {1, 2, 8, 1, 2, 0});
  options.compress_lsn_log = random() % 4 != 0;
  options.locktable_modifier = OneOf<uint64_t>(random, {16, 64});
  options.locktable_evict_buffer = OneOf<uint64_t>(random, {0, 1, 4096});
  options.log_limit_bytes = 4 << 20;
  // Two directories, so that two writers run when there are two logs.
  options.log_dirs = {"a", "b"};
  options.number_of_disks = 2;
  options.max_log_entry_size = 16 << 10;
}

// Last: it draws what the other schemes' cells did not know of.
void ChooseCentralLog(Options& options, std::mt19937_64& random) {
  options.central_log = OneOf(random, {"ELEDA", "ELEDA", "ELEDA", "ELEDA", "MUTEX", "CONSOLIDATION", "BITMAP"});
  options.hopping_distance_bytes = OneOf<uint64_t>(random, {512, 512, 2048, 8192});
  options.latency_hiding = random() % 16 != 0;
}

// A central log lies on one disk, or is striped over several.
void ChooseStripes(Options& options, std::mt19937_64& random) {
  options.log_dirs.resize(1 + random() % 2);
  if (random() % 4 == 0) options.log_dirs = {"a", "b", "c"};
  options.number_of_disks = static_cast<uint32_t>(options.log_dirs.size());
  options.stripe_unit_bytes = OneOf<uint64_t>(random, {4 << 10, 4 << 10, 8 << 10, 64 << 10});
}

// Draws of its own, as it came later: what a seed chose before stays as it was.
void ChooseTimes(Options& options, uint64_t seed, uint64_t txns_max) {
  std::mt19937_64 random(seed ^ 0x71e5);
  options.warmup = std::min<uint64_t>(OneOf<uint64_t>(random, {0, 0, 0, 1, 5, 20}), txns_max);
  options.epoch_period_ms = OneOf<uint32_t>(random, {1, 1, 1, 2, 10});
  // Not 0: under strict priorities a writer that never sleeps lets no other fibre run.
  if (random() % 4 == 0) options.log_flush_interval_us = OneOf<uint64_t>(random, {1, 1000, 10'000});
  options.abort_penalty_ns = OneOf<uint64_t>(random, {0, options.abort_penalty_ns, 20'000});
  options.query_list_len = OneOf<uint64_t>(random, {options.query_list_len, options.query_list_len, 2});
  options.time_breakdown = random() % 4 == 0;
  if (random() % 4 == 0) options.recover_serial = "always";
}

// Behind all else, for the same reason.
void ChooseIndex(Options& options, std::mt19937_64& random) {
  // Scans are part of READ_WRITE.
  if (random() % 2 == 0 && options.test_read_write) options.test_conflict = false;
  if (random() % 3 != 0) return;
  options.index = "IDX_BTREE";
  options.scan_perc = OneOf<double>(random, {0, 0.3});
  options.scan_len = OneOf<uint32_t>(random, {1, 3, 20});
  options.read_perc *= 1 - options.scan_perc;
  options.write_perc = 1 - options.read_perc - options.scan_perc;
}

// After all others, for the same reason. A Delivery of ten districts makes a record that needs more room than any
// other.
void ChooseMix(Options& options, std::mt19937_64& random) {
  options.tpcc_full_mix = random() % 2 != 0;
  if (options.workload != WorkloadKind::kTpcc || !options.tpcc_full_mix) return;
  options.log_buffer_size = std::max<uint64_t>(options.log_buffer_size, 64 << 10);
  options.max_log_entry_size = 64 << 10;
}

// Whether there are checkpoints of rows.
bool TakesRows(const Options& options) {
  return options.log_type == "LOG_DATA" && (options.log == "LOG_SERIAL" || options.log == "LOG_TAURUS");
}

// Draws of its own, too. Pages of a few rows, and checkpoints as often as the log allows, or by the clock: a
// millisecond is some thousand steps.
void ChooseBackup(Options& options, uint64_t seed) {
  std::mt19937_64 random(seed ^ 0xbac0b);
  options.page_bytes = OneOf<uint64_t>(random, {256, 256, 512, 1024, 4096});
  options.checkpoint_interval_ms = OneOf<uint32_t>(random, {0, 1, 1, 3});
  options.checkpoint_bytes = OneOf<uint64_t>(random, {0, 1, 1, 2 << 10, 16 << 10});
  options.diff_image = OneOf(random, {"SLOT", "RUNS"});
  options.restart_level = OneOf<uint32_t>(random, {1, 2, 3, 4});
  options.log_truncation = random() % 4 != 0;
  options.diff_method = OneOf(random, {"DL1P", "DL1P", "DL2P", "PL2P"});
  if (NeedsPages(options.log)) options.backup_dirs = OneOf<uint32_t>(random, {0, 0, 1});
  if (!NeedsPages(options.log) && (!TakesRows(options) || random() % 2 == 0)) {
    options.checkpoint_interval_ms = 0;
    options.checkpoint_bytes = 0;
  }
  // By a generator of its own: kept seeds draw the others as before.
  std::mt19937_64 pace(seed ^ 0xbaced);
  options.checkpoint_cpu_perc = OneOf<uint32_t>(pace, {100, 100, 50});
  if (options.diff_method != "PL2P") return;
  options.diff_image = "SLOT";
  options.restart_level = std::min(options.restart_level, 3u);
}

// Draws of its own: no other cell's seed is to draw otherwise. The heap lies in one directory.
void ChooseHeap(Options& options, uint64_t seed) {
  if (!HasVersionHeap(options.log)) return;
  std::mt19937_64 random(seed ^ 0x4ea9);
  options.log_dirs = {"a"};
  options.number_of_disks = 1;
  options.adopt_on_demand = random() % 3 != 0;
}

}  // namespace

std::string Cell::Name() const {
  if (masters > 0) return std::string("MM/") + WorkloadName(workload) + "/" + std::to_string(masters);
  return pair.cc + (pair.use_locktable ? "+table/" : "/") + pair.log + "/" + pair.log_type + "/" +
         WorkloadName(workload) + "/" + std::to_string(logs);
}

std::vector<Cell> AllCells() {
  std::vector<Cell> cells = ClusterCells();
  for (const PairName& pair : Registry::Global().Supported()) {
    if (pair.log == "LOG_NO") continue;
    const bool one_log = HasOneLog(pair.log);
    for (const WorkloadKind workload : {WorkloadKind::kTest, WorkloadKind::kYcsb, WorkloadKind::kTpcc}) {
      for (const uint32_t logs : {1u, 2u, 5u}) {
        if (logs == 1 || !one_log) cells.push_back({pair, workload, logs});
      }
    }
  }
  return cells;
}

uint32_t LogFilesOf(const Options& options) {
  return HasOneLog(options.log) ? static_cast<uint32_t>(options.log_dirs.size()) : options.num_logger;
}

Options OptionsOf(const Cell& cell, uint64_t seed, const Limits& limits) {
  std::mt19937_64 random(seed);
  Options options = DefaultOptions();
  options.cc = cell.pair.cc;
  options.use_locktable = cell.pair.use_locktable;
  options.log = cell.pair.log;
  options.log_type = cell.pair.log_type;
  options.workload = cell.workload;
  options.num_logger = cell.logs;
  options.seed = seed;
  options.simd = "scalar";
  options.thread_cnt = std::min<uint32_t>(OneOf<uint32_t>(random, {1, 2, 2, 3, 4}), limits.workers);
  options.max_txns_per_thread = std::min<uint64_t>(OneOf<uint64_t>(random, {3, 10, 30, 60, 60, 150}), limits.txns);
  ChooseWorkload(options, random);
  ChooseLog(options, random);
  ChooseCentralLog(options, random);
  if (HasOneLog(options.log)) ChooseStripes(options, random);
  ChooseIndex(options, random);
  ChooseMix(options, random);
  // Half of those whose commands see, when they are replayed, what only a timestamp can tell.
  const uint64_t among = options.log_type == "LOG_COMMAND" ? 2 : 3;
  if (options.cc == "HEKATON" && random() % among == 0) options.isolation_level = "SNAPSHOT";
  // The last draw, as it came last. With one warehouse no payment and no line of an order is remote.
  options.num_wh = OneOf<uint32_t>(random, {1, 2, 3});
  ChooseTimes(options, seed, limits.txns);
  ChooseBackup(options, seed);
  ChooseHeap(options, seed);
  return options;
}

Plan PlanOf(const Options& options, const Limits& limits, uint64_t seed) {
  std::mt19937_64 random(seed ^ 0x5eed);
  Plan plan;
  plan.seed = random();
  plan.policy = random() % 3 == 0 ? Policy::kPriority : Policy::kRandom;
  plan.spurious_wakes = random() % 4 == 0;
  plan.workers_pause = random() % 8 == 0;
  plan.steps_per_turn = OneOf<uint32_t>(random, {1, 4, 16, 64, 512});
  plan.priority_changes = 1 + random() % 8;
  plan.steps_max = limits.steps;
  plan.steps_expected = 2000 + 400 * (options.max_txns_per_thread + options.warmup) * options.thread_cnt;
  if (random() % 16 == 0) plan.threads_max = random() % 12;
  return plan;
}

}  // namespace dbx::sim
