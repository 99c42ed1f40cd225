#include "system/command_line/switches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/check.h"
#include "base/numa_memory.h"
#include "base/placement.h"
#include "concurrency_control/controls.h"
#include "logging/central_methods.h"
#include "logging/differential_methods.h"
#include "logging/schemes.h"
#include "storage/persistent_memory.h"
#include "system/command_line/parse_device.h"
#include "system/command_line/parse_value.h"

namespace dbx {
namespace {

using enum SwitchKind;
using Names = std::string_view;

constexpr size_t kOtherCcNames =
    std::ranges::count_if(kControls, [](const ControlInfo& info) { return !info.other_name.empty(); });
constexpr std::array kCcBuilt = [] {
  std::array<std::string_view, kControls.size() + kOtherCcNames> names;
  for (size_t i = 0, other = kControls.size(); i < kControls.size(); ++i) {
    names[i] = kControls[i].name;
    if (!kControls[i].other_name.empty()) names[other++] = kControls[i].other_name;
  }
  return names;
}();
constexpr std::array kCcNotBuilt = {Names("TIMESTAMP"), Names("HSTORE"), Names("OCC"), Names("VLL")};
constexpr std::array kLogBuilt = [] {
  std::array<std::string_view, kSchemes.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kSchemes[i].name;
  return names;
}();
constexpr std::array kLogTypes = {Names("LOG_DATA"), Names("LOG_COMMAND")};
constexpr std::array kIndexes = {Names("IDX_HASH"), Names("IDX_BTREE")};
constexpr std::array kIsolationBuilt = {Names("SERIALIZABLE"), Names("SNAPSHOT"), Names("READ_COMMITTED")};
constexpr std::array kIsolationNotBuilt = {Names("REPEATABLE_READ"), Names("READ_UNCOMMITTED")};
constexpr std::array kDiffImages = {Names("SLOT"), Names("RUNS")};
constexpr std::array kSimd = {Names("auto"), Names("scalar"), Names("avx2"), Names("avx512")};
constexpr std::array kIoEngines = {Names("auto"), Names("uring"), Names("pwrite")};
constexpr std::array kReplication = {Names("SYNC"), Names("ASYNC")};
constexpr std::array kRecoverSerial = {Names("auto"), Names("always"), Names("never")};
constexpr std::span<const Names> kNuma = kMemoryPolicyNames;
constexpr std::array kSysbenchMixes = {Names("WRITE_ONLY"), Names("READ_WRITE")};
constexpr std::array kRedo = {Names("ALL"), Names("ON_DEMAND")};

constexpr double kNoLimit = 9007199254740992.0;  // 2^53: every whole number up to it is a double too
constexpr double kKilo = 1024, kMega = 1024 * kKilo, kGiga = 1024 * kMega;
// Beyond any host, and far enough below 2^64 for products with the size of a row or a record.
constexpr double kMostTransactions = kKilo * kGiga, kMostRows = kKilo * kGiga, kMostBytes = kMega * kGiga;

constexpr Switch Whole(std::string_view name, std::string_view flag, SwitchField field, double min, double max,
                       std::string_view help) {
  return {
      .name = name, .flag = flag, .kind = kWhole, .field = field, .help = help, .value = "N", .min = min, .max = max};
}
constexpr Switch Bytes(std::string_view name, std::string_view flag, SwitchField field, double min, double max,
                       std::string_view help) {
  Switch s = Whole(name, flag, field, min, max, help);
  s.value = "BYTES";
  return s;
}
constexpr Switch Real(std::string_view name, std::string_view flag, SwitchField field, double min, double max,
                      std::string_view help) {
  return {
      .name = name, .flag = flag, .kind = kReal, .field = field, .help = help, .value = "X", .min = min, .max = max};
}
constexpr Switch Seconds(std::string_view name, SwitchField field, std::string_view help) {
  return {.name = name, .flag = "", .kind = kSeconds, .field = field, .help = help, .value = "S", .min = 0, .max = 1e6};
}
constexpr Switch Duration(std::string_view name, std::string_view flag, SwitchField field, uint64_t bare_unit_ns,
                          uint64_t field_unit_ns, double max, std::string_view help) {
  return {.name = name,
          .flag = flag,
          .kind = kDuration,
          .field = field,
          .help = help,
          .value = "T",
          .min = 0,
          .max = max,
          .bare_unit_ns = bare_unit_ns,
          .field_unit_ns = field_unit_ns};
}
constexpr Switch AtLeast(double min, Switch s) {
  s.min = min;
  return s;
}
constexpr Switch Bool(std::string_view name, std::string_view flag, SwitchField field, std::string_view help) {
  return {.name = name, .flag = flag, .kind = kBool, .field = field, .help = help, .value = "0|1"};
}
constexpr Switch Bare(std::string_view name, std::string_view flag, SwitchField field, std::string_view help) {
  return {.name = name, .flag = flag, .kind = kBare, .field = field, .help = help};
}
constexpr Switch Text(std::string_view name, std::string_view flag, SwitchField field, std::string_view value,
                      std::string_view help) {
  return {.name = name, .flag = flag, .kind = kText, .field = field, .help = help, .value = value};
}
constexpr Switch List(std::string_view name, SwitchField field, std::string_view value, std::string_view help) {
  return {.name = name, .flag = "", .kind = kList, .field = field, .help = help, .value = value};
}
constexpr Switch Choice(std::string_view name, SwitchField field, std::span<const std::string_view> built,
                        std::span<const std::string_view> not_built, std::string_view help) {
  return {.name = name,
          .flag = "",
          .kind = kChoice,
          .field = field,
          .help = help,
          .value = "NAME",
          .built = built,
          .not_built = not_built};
}
constexpr Switch Device(std::string_view name, SwitchField field, std::string_view help) {
  return {.name = name, .flag = "", .kind = kDevice, .field = field, .help = help, .value = "DEVICE"};
}
constexpr Switch Cpus(std::string_view name, SwitchField field, std::string_view help) {
  return {.name = name, .flag = "", .kind = kCpus, .field = field, .help = help, .value = "CPUS"};
}
constexpr Switch Ignored(std::string_view name, std::string_view flag, std::string_view why) {
  return {.name = name, .flag = flag, .help = why};
}
constexpr Switch Named(Switch s, std::string_view long_name, std::string_view alias = {}) {
  s.given_long_name = long_name;
  s.alias = alias;
  return s;
}
// Affects a recovery too; a switch of a log's identity is compared with the log in any case.
constexpr Switch Both(Switch s) {
  s.recovers = true;
  return s;
}
constexpr Switch InLog(Identity identity, Switch s) {
  s.identity = identity;
  return s;
}

using O = Options;
constexpr Identity kAll = Identity::kAlways, kYcsb = Identity::kYcsb, kTpcc = Identity::kTpcc, kTest = Identity::kTest,
                   kSms = Identity::kSms, kSysbench = Identity::kSysbench;

constexpr Switch kSwitches[] = {
    // The pair and the workload.
    InLog(kAll, Named(Choice("CC_ALG", &O::cc, kCcBuilt, kCcNotBuilt, "concurrency control"), "cc", "cc_alg")),
    InLog(kAll, Bool("USE_LOCKTABLE", "", &O::use_locktable, "1: lock table of active tuples (two-phase locking)")),
    InLog(kAll, Named(Choice("LOG_ALGORITHM", &O::log, kLogBuilt, {}, "log scheme"), "log", "log_algorithm")),
    InLog(kAll, Choice("LOG_TYPE", &O::log_type, kLogTypes, {}, "what a record holds: rows, or procedure calls")),
    InLog(kAll, Choice("WORKLOAD", &O::workload, kWorkloadNames, {}, "what the workers run")),
    InLog(kAll, Named(Choice("INDEX_STRUCT", &O::index, kIndexes, {}, "primary indexes"), "index", "index_struct")),
    // Determines the histories that a log of TEST may have.
    InLog(kTest, Choice("ISOLATION_LEVEL", &O::isolation_level, kIsolationBuilt, kIsolationNotBuilt,
                        "of transactions; SNAPSHOT with HEKATON, READ_COMMITTED with MASTERS")),
    Both(Whole("THREAD_CNT", "t", &O::thread_cnt, 1, 1024, "workers; with -Lr1 threads that replay")),
    Named(Whole("MAX_TXNS_PER_THREAD", "Gx", &O::max_txns_per_thread, 1, kMostTransactions, "transactions per worker"),
          "max_txns_per_thread", "max_txn_per_part"),
    Seconds("SECONDS", &O::seconds, "run this long instead"),
    Whole("WARMUP", "", &O::warmup, 0, kMostTransactions, "transactions per worker before the measured interval"),
    Seconds("WARMUP_SECONDS", &O::warmup_seconds, "warm up so long; with WARMUP until both are reached"),
    Whole("LOOKAHEAD", "", &O::lookahead, 0, 1024, "calls ahead whose rows and buckets are prefetched; 0: none"),
    InLog(kAll, Whole("SEED", "", &O::seed, 0, kNoLimit, "of the loaded data and of the calls")),
    Duration("ABORT_PENALTY", "Ga", &O::abort_penalty_ns, 1, 1, 1e12, "ns: an aborted transaction waits this long"),
    Whole("QUERY_LIST_LEN", "", &O::query_list_len, 0, kGiga, "calls generated per worker; 0: more than caches hold"),
    Bool("PRT_LAT_DISTR", "d", &O::prt_lat_distr, "1: print the distribution of latencies"),
    Bool("TIME_ENABLE", "", &O::time_breakdown, "1: the parts of the time to acknowledgement, sampled"),
    AtLeast(1, Duration("EPOCH_PERIOD", "Lj", &O::epoch_period_ms, 1'000'000, 1'000'000, 60'000,
                        "ms between epochs (SILO)")),
    Both(Cpus("PIN", &O::pin,
              "CPUs of workers, then of log writers: none; compact (node by node), scatter (nodes in turn), or a list "
              "0,2,4-7")),
    Both(Choice("NUMA", &O::numa, kNuma, {},
                "nodes of tables' memory: of the first thread to touch a page, all in turn, or the first thread's even "
                "under numactl")),
    // YCSB.
    InLog(kYcsb, Whole("SYNTH_TABLE_SIZE", "s", &O::synth_table_size, 1, kMostRows, "YCSB: rows")),
    Real("ZIPF_THETA", "z", &O::zipf_theta, 0, 10, "YCSB: skew of the keys; 0 is uniform"),
    Real("READ_PERC", "r", &O::read_perc, 0, 1, "YCSB: share of accesses that read"),
    Real("WRITE_PERC", "w", &O::write_perc, 0, 1, "YCSB: share that write; one of both is enough"),
    Real("WRITE_KEYS", "", &O::write_keys, 0, 1, "YCSB: share of the rows to which writes go, 1 row at least"),
    Real("SCAN_PERC", "", &O::scan_perc, 0, 1, "YCSB: share that scan; needs --index=IDX_BTREE"),
    InLog(kYcsb, Whole("SCAN_LEN", "", &O::scan_len, 1, 65536, "YCSB: rows that a scan reads")),
    InLog(kYcsb, Whole("REQ_PER_QUERY", "R", &O::req_per_query, 1, 65536, "YCSB: accesses per transaction")),
    InLog(kYcsb, Whole("FIELD_PER_TUPLE", "f", &O::field_per_tuple, 1, 1024, "YCSB: fields of 100 bytes")),
    // TPC-C.
    InLog(kTpcc, Whole("NUM_WH", "n", &O::num_wh, 1, 65535, "TPC-C: warehouses")),
    InLog(kTpcc, Bool("TPCC_FULL_MIX", "", &O::tpcc_full_mix, "TPC-C: 1: the standard's mix of all five")),
    Real("PERC_PAYMENT", "Tm", &O::perc_payment, 0, 1, "TPC-C: share of Payment beside New-Order, without the others"),
    InLog(kTpcc, Bool("WH_UPDATE", "Tu", &O::wh_update, "TPC-C: 0: Payment leaves W_YTD alone")),
    InLog(kTpcc, Bool("TPCC_SMALL", "", &O::tpcc_small, "TPC-C: 1: small cardinalities, for tests")),
    // TEST.
    InLog(kTest, Bare("TEST_READ_WRITE", "Ar", &O::test_read_write, "TEST: only reads and writes")),
    InLog(kTest, Bare("TEST_CONFLICT", "Ac", &O::test_conflict, "TEST: only conflicts")),
    // SMS. Which transactions roll back is part of the meaning of a command.
    InLog(kSms, Whole("SMS_ROWS", "", &O::sms_rows, 64, kGiga, "SMS: messages in the 64 queues at first")),
    InLog(kSms, Bytes("SMS_SLOT_BYTES", "", &O::sms_slot_bytes, 64, 2048, "SMS: of a message, a multiple of 8")),
    InLog(kSms, Whole("SMS_ABORT_PERC", "", &O::sms_abort_perc, 0, 100, "SMS: percent of transactions that roll back")),
    // SYSBENCH, of several masters only.
    InLog(kSysbench, Whole("SYSBENCH_ROWS", "", &O::sysbench_rows, 100, 2 * kGiga, "SYSBENCH: rows of a table")),
    InLog(kSysbench, Whole("SYSBENCH_TABLES", "", &O::sysbench_tables, 1, 256,
                           "SYSBENCH: tables of each master, and shared ones")),
    Choice("SYSBENCH_MIX", &O::sysbench_mix, kSysbenchMixes, {}, "SYSBENCH: queries of a transaction"),
    Whole("SHARING", "", &O::sharing, 0, 100, "SYSBENCH: percent of the queries that go to shared tables"),
    // Several masters.
    Both(Whole("MASTERS", "", &O::masters, 0, 16,
               "so many masters over one database, in processes of this host, THREAD_CNT workers each; 0: one node")),
    Whole("BUFFER_PAGES", "", &O::buffer_pages, 64, kGiga, "pages of 16 KiB in each master's buffer"),
    Whole("PAGE_STORES", "", &O::page_stores, 1, 4, "Page Stores of the masters, each with all pages"),
    Bool("COUNT_ROW_LOCK_MANAGERS", "", &O::count_row_lock_managers,
         "1: masters count what a lock manager of rows that keeps the locks would send"),
    Bool("STRICT_READS", "", &O::strict_reads,
         "READ_COMMITTED: 1: reads see what any master acknowledged before their transaction began"),
    // Logging.
    InLog(kAll, Whole("NUM_LOGGER", "Ln", &O::num_logger, 1, 16, "log streams")),
    Bytes("STRIPE_UNIT", "", &O::stripe_unit_bytes, 4 * kKilo, kGiga,
          "of one log that is striped over several directories"),
    Bytes("LOG_BUFFER_SIZE", "Lb", &O::log_buffer_size, 64 * kKilo, 16 * kGiga, "ring buffer per stream"),
    Bytes("MAX_LOG_ENTRY_SIZE", "Ld", &O::max_log_entry_size, 4 * kKilo, kGiga, "largest log record"),
    InLog(kAll, Bool("LOG_NO_FLUSH", "Lf", &O::log_no_flush, "1: write the logs but never sync; nothing is durable")),
    Duration(
        "LOG_FLUSH_INTERVAL", "Lt", &O::log_flush_interval_us, 1'000, 1'000, 1e7,
        "us until a complete record's flush starts; with fewer cores than workers and writers, so many per writer"),
    Bytes("FLUSH_BLOCK_SIZE", "LB", &O::log_flush_block_bytes, 4 * kKilo, kGiga,
          "largest write; with this much waiting no flush waits"),
    Both(Bytes("READ_BLOCK_SIZE", "LK", &O::log_read_block_bytes, 4 * kKilo, kGiga,
               "recovery reads such blocks, from each disk of a striped log")),
    Bool("COMPRESS_LSN_LOG", "", &O::compress_lsn_log, "1: short LSN vectors in records"),
    Whole("PSN_FLUSH_FREQ", "Tp", &O::psn_flush_freq, 0, 1e9,
          "flushes of a log from one record of its scheme (anchor, mark, watermark) to the next; 0: none"),
    Bool("LATENCY_HIDING", "", &O::latency_hiding, "0: a worker waits until each transaction is durable"),
    Choice("CENTRAL_LOG", &O::central_log, kCentralMethodNames, {}, "how the one stream of a central log is filled"),
    Bytes("HOPPING_DISTANCE", "", &O::hopping_distance_bytes, 512, 16 * kGiga,
          "power of two: what a central log hops over at once"),
    Bytes("DIFF_PAGE_SIZE", "", &O::page_bytes, 256, 16 * kMega,
          "smallest page of a paged table; it holds four rows at least"),
    Duration("CHECKPOINT_INTERVAL", "", &O::checkpoint_interval_ms, 1'000'000, 1'000'000, 86'400'000,
             "ms from one checkpoint of pages or rows to the next; 0: none"),
    Bytes("CHECKPOINT_BYTES", "", &O::checkpoint_bytes, 0, kMostBytes, "the same in bytes of log; 0: none"),
    Whole("CHECKPOINT_CPU_PERC", "", &O::checkpoint_cpu_perc, 1, 100,
          "percent of its time in which such a checkpoint's thread works; 100: it never rests"),
    Choice("DIFF_METHOD", &O::diff_method, kDiffMethodNames, {},
           "differential records and a restart in one pass; in two passes; before and after images"),
    Bool("LOG_TRUNCATION", "", &O::log_truncation, "0: a checkpoint leaves the logs whole"),
    Choice("DIFF_IMAGE", &O::diff_image, kDiffImages, {},
           "the image of a change: the whole slot, or the changed words"),
    Bytes("HEAP_BYTES", "", &O::heap_bytes, 0, kMostBytes, "of a new persistent heap; 0: what its tables expect"),
    Whole("INDEX_LINES", "", &O::index_lines, 0, 64,
          "lines of persistent memory that each change of an index writes back too, as durable indexes would"),
    Named(Choice("PM_FLUSH", &O::flush, kFlushInstructionNames, {}, "what writes a line of persistent memory back"),
          "flush"),
    Bool("ADOPT_ON_DEMAND", "", &O::adopt_on_demand,
         "0: with --continue all of a heap is adopted before the first transaction"),
    Both(Bool("UPDATE_SIMD", "", &O::update_simd, "0: the same as --simd=scalar")),
    Both(Choice("SIMD", &O::simd, kSimd, {}, "instruction set for LSN vectors")),
    Whole("LOCKTABLE_MODIFIER", "l", &O::locktable_modifier, 1, kGiga, "lock table: buckets per worker"),
    Bytes("LOCKTABLE_EVICT_BUFFER", "Tl", &O::locktable_evict_buffer, 0, kMostBytes,
          "lock table: metadata this far below durable goes"),
    Both(Choice("IO_ENGINE", &O::io_engine, kIoEngines, {}, "how logs are written")),
    Both(List("LOG_DIR", &O::log_dirs, "DIR[,DIR...]", "directories of the logs; default ./logs")),
    Both(Whole("NUM_DISK", "LD", &O::number_of_disks, 1, 64, "number of log directories; alone: ./logs/d0 ...")),
    Whole("BACKUP_DIRS", "", &O::backup_dirs, 0, 63,
          "the last of the directories, for the backup alone; 0: it shares all of them with the logs"),
    Both(Bool("LOG_OVERWRITE", "", &O::log_overwrite, "delete the older runs first")),
    Bytes("LOG_LIMIT", "", &O::log_limit_bytes, kMega, kMostBytes,
          "logs are prepared up to this; a run that reaches it stops"),
    Both(Device(
        "LOG_DEVICE", &O::log_device,
        "what each log directory behaves as: real; nvme ssd hdd disk29 pm, with :FACTOR; bandwidth=,flush=,seek=,"
        "depth=; latency= of pm, in DRAM's; channel=, which all of them share")),
    Bytes("DEVICE_CEILING", "", &O::device_ceiling, 0, kMostBytes, "what the log devices take per second; 0: unknown"),
    // Replication.
    Text("REPLICATE_TO", "", &O::replicate_to, "HOST:PORT", "a replica there keeps a copy of the run's files"),
    Choice("REPLICATION", &O::replication, kReplication, {},
           "ASYNC: a transaction is acknowledged before the replica has it"),
    Duration("REPLICA_ROUND_TRIP", "", &O::replica_round_trip_ns, 1'000, 1, 1e10,
             "us of the emulated link to the replica, there and back; 0: as it is"),
    Bytes("REPLICA_BANDWIDTH", "", &O::replica_bytes_per_second, 0, kMostBytes,
          "per second, of the emulated link to the replica; 0: as it is"),
    Text("REPLICA", "", &O::replica, "[HOST:]PORT",
         "no run: keep in --log_dir a copy of the one that connects; 0: any free port"),
    // Recovery.
    Both(Bool("LOG_RECOVER", "Lr", &O::log_recover, "1: recover instead of running")),
    Both(Whole("RUN", "", &O::run, 0, 1e9, "recover or continue run-NNNN; default the newest")),
    Named(Both(Bool("CONTINUE_RUN", "", &O::continue_run, "recover, then run on in new files")), "continue",
          "continue_run"),
    Both(Bool("CHECKPOINT", "", &O::checkpoint,
              "with --continue: write what was recovered; older logs are needed no more")),
    Both(Bool("DROP_OLD_RUNS", "", &O::drop_old_runs, "with --checkpoint: delete the older runs")),
    Both(Whole("RESTART_LEVEL", "", &O::restart_level, 0, 4,
               "what overlaps in a restart from a backup: 1 nothing, 4 all; 0: the most that the run's method allows")),
    Both(Choice("RECOVER_SERIAL", &O::recover_serial, kRecoverSerial, {}, "one worker replays everything")),
    Choice("REDO", &O::redo, kRedo, {}, "ON_DEMAND: with --continue a row is rebuilt from the log when it is needed"),
    // Verification and output.
    Both(Bool("VERIFY", "", &O::verify, "check the final or the recovered state")),
    Both(Bool("REFERENCE", "", &O::reference,
              "0: a clean end's digest proves what a lone run left, no reference replay")),
    Both(Text("ACK_FILE", "", &O::ack_file, "FILE", "record of what was acknowledged; survives SIGKILL")),
    Both(Text("HISTORY_FILE", "", &O::history_file, "FILE",
              "with --verify, TEST: write the history there, in Elle's JSON")),
    Both(Text("OUTPUT_FILE", "o", &O::output_file, "FILE", "write the summary there")),
    Named(Both(Text("JSON_FILE", "", &O::json_file, "FILE", "append one record to FILE, a line of JSON")), "json"),
    Named(Text("SERIES_FILE", "", &O::series_file, "FILE",
               "write there, in CSV, what the run does over time, a line per SERIES_INTERVAL"),
          "series"),
    Named(Duration("SERIES_INTERVAL", "", &O::series_interval_ms, 1'000'000, 1'000'000, 86'400'000,
                   "ms from one line of --series to the next; 0: none, with --series 100"),
          "series_interval", "interval"),
    Bool("PERF", "", &O::perf, "1: the processor's and the kernel's counters over the measured interval"),
    Both(Bare("HELP", "h", &O::show_help, "this text")),
    Both(Bare("SHOW_EFFECTIVE", "S", &O::show_effective, "show the effective configuration")),
    Both(Bare("LIST", "", &O::list, "show the pairs of concurrency control and log scheme")),
    Both(Bare("VERSION", "", &O::show_version, "show the version")),
    Both(Bare("MAN_PAGE", "", &O::show_man_page, "the manual page: ./rundb --man_page | man -l -")),
    Both(Bare("BASH_COMPLETION", "", &O::show_bash_completion,
              "completes these flags: source <(./rundb --bash_completion)")),
    // Switches of DBx1000 and its forks that are ignored here.
    Ignored("PART_CNT", "p", "tables are not partitioned"),
    Ignored("VIRTUAL_PART_CNT", "v", "tables are not partitioned"),
    Ignored("PART_PER_TXN", "c", "tables are not partitioned"),
    Ignored("PERC_MULTI_PART", "e", "tables are not partitioned"),
    Ignored("QUERY_INTVL", "q", "workers run calls back to back"),
    Ignored("PART_ALLOC", "a", "memory comes from arenas of each worker"),
    Ignored("MEM_PAD", "m", "rows are aligned by their table"),
    Ignored("TS_ALLOC", "Gt", "a transaction takes its age from its worker's clock"),
    Ignored("KEY_ORDER", "Gk", "keys are accessed in the order of the procedure"),
    Ignored("NO_DL", "Gn", "NO_WAIT and WAIT_DIE have no deadlocks, DL_DETECT finds them"),
    Ignored("TIMEOUT", "Go", "no wait for a lock is cut short by a clock"),
    Ignored("DL_LOOP_DETECT", "Gl", "DL_DETECT looks for cycles whenever a wait begins"),
    Ignored("TS_BATCH_ALLOC", "Gb", "no timestamps are allocated"),
    Ignored("TS_BATCH_NUM", "Gu", "no timestamps are allocated"),
    Ignored("CENTRAL_MAN", "Gc", "there is no central lock manager"),
    Ignored("NUM_BUCKETS", "Lk", "the index sizes itself"),
    Ignored("RECOVERY_POOLS", "Lp", "recovery keeps one queue per log"),
    Ignored("POOLSIZE_WAIT", "Lz", "recovery's queues bound themselves"),
    Ignored("SCAN_WINDOW", "Lw", "recovery finds ready transactions without a scan"),
    Ignored("LOCKTABLE_INIT_SLOTS", "Li", "lock table buckets grow by themselves"),
    Ignored("RECOVERY_BUFFER_SHARE", "Ls", "recovery's queues bound themselves"),
    Ignored("LOG_RAM_DISK", "LR", "name a directory of the RAM disk in --log_dir"),
    Ignored("LOG_CHUNK_SIZE", "Lc", "FLUSH_BLOCK_SIZE bounds a write, READ_BLOCK_SIZE a read"),
    Ignored("MAX_NUM_EPOCH", "Le", "the number of epochs is not bounded"),
    Ignored("RLV_DELTA", "Lad", "recovery publishes its progress by itself"),
    Ignored("LOGGING_THREAD_RLV_FREQ", "Lal", "recovery publishes its progress by itself"),
    Ignored("COMPRESS_LSN_LT", "", "the lock table evicts by LOCKTABLE_EVICT_BUFFER"),
    Ignored("CPU_FREQ", "", "clocks are calibrated, not configured"),
    Ignored("CORE_CNT", "", "THREAD_CNT says how many threads run"),
    Ignored("STATS_ENABLE", "", "statistics are always kept"),
};

[[noreturn]] void ThrowNotBuilt(const Switch& s, std::string_view text) {
  std::string what;
  if (std::find(s.not_built.begin(), s.not_built.end(), text) != s.not_built.end()) {
    what = fmt::format("{} {} is not built yet.", s.name, text);
  } else {
    const std::string_view nearest = NearestName(text, s.built);
    what = fmt::format("unknown {} '{}'{}", s.name, text,
                       nearest.empty() ? "." : fmt::format("; did you mean {}?", nearest));
  }
  throw BadValue(fmt::format("{} Valid values: {}", what, fmt::join(s.built, ", ")));
}

void SetChoice(const Switch& s, std::string_view text, Options& options) {
  if (std::find(s.built.begin(), s.built.end(), text) == s.built.end()) ThrowNotBuilt(s, text);
  if (auto* workload = std::get_if<WorkloadKind O::*>(&s.field)) {
    options.** workload = WorkloadNamed(text);
  } else {
    options.*std::get<std::string O::*>(s.field) = text;
  }
}

void SetWhole(const SwitchField& field, uint64_t value, Options& options) {
  if (auto* wide = std::get_if<uint64_t O::*>(&field)) {
    options.** wide = value;
  } else if (auto* narrow = std::get_if<uint32_t O::*>(&field)) {
    options.** narrow = static_cast<uint32_t>(value);
  } else {
    options.*std::get<std::optional<uint32_t> O::*>(field) = static_cast<uint32_t>(value);
  }
}

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const size_t comma = text.find(',');
    if (comma == 0 || text.empty()) throw BadValue("has an empty element");
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

struct Formatter {
  const Switch& s;
  const Options& options;

  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(bool O::*field) const { return options.*field ? "1" : "0"; }
  std::string operator()(uint32_t O::*field) const { return (*this)(uint64_t{options.*field}); }
  std::string operator()(uint64_t O::*field) const { return (*this)(options.*field); }
  std::string operator()(uint64_t value) const {
    return fmt::format("{}", s.kind == kDuration ? value * s.field_unit_ns / s.bare_unit_ns : value);
  }
  std::string operator()(double O::*field) const { return fmt::format("{}", options.*field); }
  std::string operator()(std::string O::*field) const { return options.*field; }
  std::string operator()(std::vector<std::string> O::*field) const {
    return fmt::format("{}", fmt::join(options.*field, ","));
  }
  std::string operator()(std::optional<uint32_t> O::*field) const {
    return options.*field ? fmt::format("{}", *(options.*field)) : std::string();
  }
  std::string operator()(WorkloadKind O::*field) const { return WorkloadName(options.*field); }
};

}  // namespace

std::string Switch::LongName() const {
  if (!given_long_name.empty()) return std::string(given_long_name);
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::span<const Switch> Switches() { return kSwitches; }

namespace {

void SetValue(const Switch& s, std::string_view text, Options& options) {
  const auto min = static_cast<uint64_t>(s.min), max = static_cast<uint64_t>(s.max);
  switch (s.kind) {
    case kWhole:
      return SetWhole(s.field, ParseWhole(text, min, max), options);
    case kDuration:
      return SetWhole(s.field, ParseDuration(text, s.bare_unit_ns, s.field_unit_ns, min, max), options);
    case kReal:
      options.*std::get<double O::*>(s.field) = ParseReal(text, s.min, s.max);
      return;
    case kSeconds:
      options.*std::get<double O::*>(s.field) = ParseSeconds(text, s.min, s.max);
      return;
    case kBool:
    case kBare:
      options.*std::get<bool O::*>(s.field) = ParseBool(text);
      return;
    case kText:
      if (text.empty()) throw BadValue("is empty");
      options.*std::get<std::string O::*>(s.field) = text;
      return;
    case kList:
      options.*std::get<std::vector<std::string> O::*>(s.field) = SplitList(text);
      return;
    case kCpus: {
      const std::optional<PinChoice> pin = ParsePin(text);
      if (!pin) throw BadValue("is neither none, compact, scatter nor a list of CPUs such as 0,2,4-7");
      options.*std::get<std::string O::*>(s.field) = PinText(*pin);
      return;
    }
    case kDevice: {
      const std::optional<DeviceProfile> profile = ParseDevice(text);
      options.*std::get<std::string O::*>(s.field) = profile ? profile->name : kRealDevice;
      return;
    }
    case kChoice:  // SetSwitch
    case kIgnored:
      return;
  }
}

}  // namespace

void SetSwitch(const Switch& s, std::string_view text, Options& options) {
  if (s.kind == kChoice) return SetChoice(s, text, options);
  try {
    SetValue(s, text, options);
  } catch (const BadValue& e) {
    throw BadValue(fmt::format("{} {}", s.name, e.what()));
  }
}

std::string FormatSwitch(const Switch& s, const Options& options) { return std::visit(Formatter{s, options}, s.field); }

}  // namespace dbx
