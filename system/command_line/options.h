// Every switch that need not be compiled in, with its value for this process. switches.h has the table of them,
// parse_options.h what is made from both.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dbx {

enum class WorkloadKind { kYcsb, kTpcc, kTest, kSms, kSysbench };
// As in config.h, in the order above.
inline constexpr std::array<std::string_view, 5> kWorkloadNames = {"YCSB", "TPCC", "TEST", "SMS", "SYSBENCH"};

struct Options {
  // The pair and the workload. Names as in config.h; the pair is looked up in the registry.
  std::string cc;  // NO_WAIT, SILO, HEKATON
  bool use_locktable = false;
  std::string log;       // of kSchemes (logging/schemes.h)
  std::string log_type;  // LOG_DATA, LOG_COMMAND
  WorkloadKind workload = WorkloadKind::kYcsb;
  std::string index;            // IDX_HASH, IDX_BTREE
  std::string isolation_level;  // SERIALIZABLE, SNAPSHOT, READ_COMMITTED

  uint32_t thread_cnt = 4;
  uint64_t max_txns_per_thread = 100;  // ends a run, unless seconds does
  double seconds = 0;                  // > 0: run this long instead
  uint64_t warmup = 0;                 // transactions per worker before the measured interval
  double warmup_seconds = 0;           // and at least as long
  uint32_t lookahead = 0;              // calls ahead whose buckets are prefetched, rows half as far; 0: none
  uint64_t seed = 1;
  uint64_t abort_penalty_ns = 0;  // an aborted transaction waits this long before it runs again
  uint64_t query_list_len = 0;    // calls generated per worker; 0: enough that the list does not fit the caches
  bool prt_lat_distr = false;
  uint32_t epoch_period_ms = 40;
  std::string pin = "none";  // which CPUs the threads run on: none, compact, scatter, or a list (base/placement.h)
  std::string numa = "first_touch";  // where tables' memory lies, of kMemoryPolicyNames

  // YCSB.
  uint64_t synth_table_size = 0;  // rows
  double zipf_theta = 0.6;
  double read_perc = 0.5;
  double write_perc = 0.5;
  double scan_perc = 0;
  double write_keys = 1;   // share of the rows that are written
  uint32_t scan_len = 20;  // rows
  uint32_t req_per_query = 2;
  uint32_t field_per_tuple = 10;

  // TPC-C.
  uint32_t num_wh = 1;
  bool tpcc_full_mix = false;  // all five transactions; perc_payment is ignored then
  double perc_payment = 0.5;
  bool wh_update = true;
  bool tpcc_small = false;  // small cardinalities for tests

  // TEST workload.
  bool test_read_write = true;  // -Ar
  bool test_conflict = true;    // -Ac

  // SMS.
  uint64_t sms_rows = 0;  // messages that are loaded
  uint32_t sms_slot_bytes = 256;
  uint32_t sms_abort_perc = 2;  // percent of the transactions roll back

  // SYSBENCH.
  uint64_t sysbench_rows = 100'000;         // of a table
  uint32_t sysbench_tables = 1;             // of a master's group, and of the shared one
  std::string sysbench_mix = "READ_WRITE";  // WRITE_ONLY, READ_WRITE
  uint32_t sharing = 0;                     // percent of the queries that go to the shared tables

  // Several masters (multi_master/).
  uint32_t masters = 0;          // 0: one node of the pair above
  uint32_t buffer_pages = 8192;  // of 16 KiB, in each master
  uint32_t page_stores = 2;
  bool count_row_lock_managers = false;
  bool strict_reads = false;  // of READ_COMMITTED

  // Logging.
  uint32_t num_logger = 1;              // log streams, 1-16
  bool time_breakdown = false;          // of commit latency
  uint64_t stripe_unit_bytes = 0;       // of one log over several directories
  uint64_t log_buffer_size = 0;         // bytes of ring buffer per stream
  uint64_t max_log_entry_size = 0;      // bytes; a larger record aborts its transaction
  bool log_no_flush = false;            // -Lf1: write but never sync (labelled in every result)
  uint64_t log_flush_interval_us = 0;   // longest wait of a complete record for the start of its flush
  uint64_t log_flush_block_bytes = 0;   // -LB: largest write; with this much waiting no flush waits
  uint64_t log_read_block_bytes = 0;    // -LK: recovery reads blocks of this size
  bool compress_lsn_log = true;         // LSN vectors in records
  uint32_t psn_flush_freq = 1;          // flushes from one anchor, mark or watermark to the next; 0: none
  bool latency_hiding = true;           // false: a worker waits until each transaction is durable
  std::string central_log;              // how one is filled, of kCentralMethodNames
  uint64_t hopping_distance_bytes = 0;  // a power of two
  uint64_t page_bytes = 0;              // the smallest page of a paged table
  uint32_t checkpoint_interval_ms = 0;  // from one checkpoint of pages or rows to the next; 0: none after so long
  uint64_t checkpoint_bytes = 0;        // the same in bytes of log
  uint32_t checkpoint_cpu_perc = 100;   // of the time of their thread, in which it works
  std::string diff_method;              // DL1P, DL2P, PL2P: how changes are logged and recovered
  bool log_truncation = true;           // a checkpoint truncates the logs below what recovery needs
  uint64_t heap_bytes = 0;              // of a new persistent heap; 0: what its tables expect
  uint32_t index_lines = 0;             // of persistent memory, written back for each change of an index
  std::string flush;                    // AUTO, CLWB, CLFLUSHOPT, CLFLUSH
  bool adopt_on_demand = true;          // a restart serves transactions before it has looked at the whole heap
  std::string diff_image;               // SLOT, RUNS: the image in the record of a change
  uint64_t locktable_modifier = 0;      // -l: lock table buckets per worker
  uint64_t locktable_evict_buffer = 0;  // -Tl: delta in bytes; metadata older than durable - delta is evicted
  bool update_simd = true;              // false: the same as simd = "scalar"
  std::string simd = "auto";            // auto, scalar, avx2, avx512
  std::string io_engine = "auto";       // auto, uring, pwrite
  std::vector<std::string> log_dirs;    // --log_dir A,B
  uint32_t number_of_disks = 0;         // -LD; 0: as many as log_dirs
  uint32_t backup_dirs = 0;             // the last of log_dirs, for the backup alone; 0: logs and backup share all
  bool log_overwrite = false;
  uint64_t log_limit_bytes = 0;     // a run stops cleanly when its logs take this much in all
  std::string log_device = "real";  // or the device that each log directory emulates (parse_device.h)
  uint64_t device_ceiling = 0;      // bytes per second that the log devices can take; 0: not known

  // Replication.
  std::string replica;                    // [HOST:]PORT: keep a copy of the run that connects here, and run nothing
  std::string replicate_to;               // HOST:PORT of such a replica
  std::string replication = "SYNC";       // SYNC, ASYNC: does an acknowledgement wait for the replica?
  uint64_t replica_round_trip_ns = 0;     // of an emulated link; 0: as it is
  uint64_t replica_bytes_per_second = 0;  // the same

  // Recovery.
  bool log_recover = false;     // -Lr1
  std::optional<uint32_t> run;  // --run N; without it the newest
  bool continue_run = false;    // --continue: recover, then run on the recovered state, in new files
  bool checkpoint = false;      // with --continue: write the recovered state, so that its logs are no longer needed
  bool drop_old_runs = false;   // with --checkpoint: delete them
  uint32_t restart_level = 0;   // 1 to 4: what overlaps in a restart from a backup
  std::string recover_serial = "auto";  // auto, always, never: one worker replays everything

  std::string redo = "ALL";  // with --continue: ALL before transactions run, or ON_DEMAND, each row when it is needed

  bool redo_on_demand() const { return redo == "ON_DEMAND"; }
  // Threads that write logs, of a scheme that has such threads: one for each directory in which there is a log.
  uint32_t log_writers() const {
    const size_t directories = log_dirs.size() - std::min<size_t>(log_dirs.size(), backup_dirs);
    return static_cast<uint32_t>(std::min<size_t>(num_logger, directories));
  }
  // Are logs read before transactions run?
  bool reads_log() const { return log_recover || continue_run; }

  // Verification and output.
  bool verify = false;
  bool reference = true;  // replay by the reference even where the digest of a clean end proves the state
  std::string ack_file;
  std::string history_file;  // of TEST
  std::string output_file;   // -o
  std::string json_file;
  std::string series_file;          // --series
  uint32_t series_interval_ms = 0;  // from one line of it to the next; 0: there is none
  bool perf = false;                // the host's counters over the measured interval

  bool show_help = false;
  bool show_effective = false;  // -S
  bool list = false;
  bool show_version = false;
  bool show_man_page = false;
  bool show_bash_completion = false;

  // Long names of the switches that the command line set, for contradictions with a log's header.
  std::vector<std::string> given;
};

inline const char* WorkloadName(WorkloadKind workload) { return kWorkloadNames[static_cast<size_t>(workload)].data(); }

// REQUIRES: `name` is one of kWorkloadNames.
WorkloadKind WorkloadNamed(std::string_view name);

}  // namespace dbx
