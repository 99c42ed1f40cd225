#include "system/command_line/parse_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "multi_master/names.h"

namespace dbx {
namespace {

// Switches that a cluster of masters honours; all others are of one node.
constexpr std::array<std::string_view, 48> kOfClusters = {"masters",
                                                          "buffer_pages",
                                                          "page_stores",
                                                          "count_row_lock_managers",
                                                          "ack_file",
                                                          "workload",
                                                          "thread_cnt",
                                                          "max_txns_per_thread",
                                                          "seconds",
                                                          "warmup",
                                                          "warmup_seconds",
                                                          "seed",
                                                          "abort_penalty",
                                                          "query_list_len",
                                                          "latency_hiding",
                                                          "log_dir",
                                                          "log_buffer_size",
                                                          "log_flush_interval",
                                                          "flush_block_size",
                                                          "verify",
                                                          "json",
                                                          "output_file",
                                                          "synth_table_size",
                                                          "zipf_theta",
                                                          "read_perc",
                                                          "write_perc",
                                                          "write_keys",
                                                          "scan_perc",
                                                          "scan_len",
                                                          "req_per_query",
                                                          "field_per_tuple",
                                                          "num_wh",
                                                          "tpcc_full_mix",
                                                          "perc_payment",
                                                          "wh_update",
                                                          "tpcc_small",
                                                          "test_read_write",
                                                          "test_conflict",
                                                          "sms_rows",
                                                          "sms_slot_bytes",
                                                          "sms_abort_perc",
                                                          "sysbench_rows",
                                                          "sysbench_tables",
                                                          "sysbench_mix",
                                                          "sharing",
                                                          "isolation_level",
                                                          "strict_reads",
                                                          "index"};
constexpr std::array<std::string_view, 4> kOfAllClusters = {"buffer_pages", "page_stores", "count_row_lock_managers",
                                                            "strict_reads"};
constexpr std::array<std::string_view, 4> kOfSysbench = {"sysbench_rows", "sysbench_tables", "sysbench_mix", "sharing"};

bool Has(std::span<const std::string_view> names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// And its recovery.
constexpr std::array<std::string_view, 3> kOfClusterRecoveries = {"log_recover", "run", "history_file"};

std::string IsolationMistake(const Options& options) {
  const bool is_read_committed = options.isolation_level == "READ_COMMITTED";
  if (options.masters == 0) {
    return is_read_committed ? "READ_COMMITTED belongs to several masters: add --masters=N; one node has SERIALIZABLE "
                               "and, with CC_ALG HEKATON, SNAPSHOT"
                             : "";
  }
  const bool is_given = std::ranges::find(options.given, "isolation_level") != options.given.end();
  if (is_given && !is_read_committed && options.isolation_level != "SERIALIZABLE") {
    return "masters have ISOLATION_LEVEL SERIALIZABLE and READ_COMMITTED, not " + options.isolation_level;
  }
  if (options.strict_reads && !is_read_committed) {
    return "--strict_reads belongs to --isolation_level=READ_COMMITTED: reads that lock see all that was acknowledged";
  }
  return "";
}

}  // namespace

std::string ClusterMistake(const Options& options) {
  if (options.masters == 0) {
    if (options.workload == WorkloadKind::kSysbench)
      return "SYSBENCH is a workload of several masters: add --masters=N";
    for (const std::string& name : options.given) {
      if (!Has(kOfAllClusters, name) && !Has(kOfSysbench, name)) continue;
      return fmt::format("--{} belongs to several masters: add --masters=N", name);
    }
    return IsolationMistake(options);
  }
  for (const std::string& name : options.given) {
    if (Has(kOfClusters, name) || (options.log_recover && Has(kOfClusterRecoveries, name))) continue;
    return fmt::format("--{} is for one node: masters have {} and {}; leave it out", name, mm::kControlName,
                       mm::kLogName);
  }
  for (const std::string& name : options.given) {
    if (Has(kOfSysbench, name) && options.workload != WorkloadKind::kSysbench) {
      return fmt::format("--{} belongs to --workload=SYSBENCH", name);
    }
  }
  if (options.log_dirs.size() != 1) return "a cluster has one log directory, for its Log Stores";
  return IsolationMistake(options);
}

}  // namespace dbx
