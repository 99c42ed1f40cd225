// The workloads by name: options become a workload's own configuration here, and nowhere else.
#pragma once

#include <algorithm>
#include <type_traits>
#include <variant>

#include "benchmarks/sms/sms.h"
#include "benchmarks/sysbench/sysbench.h"
#include "benchmarks/test/test.h"
#include "benchmarks/tpcc/tpcc.h"
#include "benchmarks/ycsb/ycsb.h"
#include "system/command_line/options.h"

namespace dbx {

inline YcsbConfig YcsbConfigOf(const Options& options) {
  YcsbConfig config;
  config.rows = options.synth_table_size;
  config.theta = options.zipf_theta;
  config.read_perc = options.read_perc;
  config.scan_perc = options.scan_perc;
  config.write_keys = options.write_keys;
  config.scan_len = options.scan_len;
  config.req_per_query = options.req_per_query;
  config.field_per_tuple = options.field_per_tuple;
  return config;
}

// Transactions that one worker may run, where they insert rows: for the size of indexes and of the memory that is
// faulted in ahead. More still fit.
inline uint64_t ExpectedTransactionsPerWorker(const Options& options) {
  constexpr double kPerSecond = 300e3;
  const auto timed = static_cast<uint64_t>((options.seconds + options.warmup_seconds) * kPerSecond);
  return options.seconds > 0 ? timed : timed + options.max_txns_per_thread + options.warmup;
}

inline TpccConfig TpccConfigOf(const Options& options) {
  TpccConfig config;
  config.warehouses = options.num_wh;
  config.full_mix = options.tpcc_full_mix;
  config.perc_payment = options.perc_payment;
  config.wh_update = options.wh_update;
  config.small = options.tpcc_small;
  const auto calls = static_cast<double>(ExpectedTransactionsPerWorker(options) * options.thread_cnt);
  config.expected_payments = static_cast<uint64_t>(calls * config.payment_share());
  config.expected_new_orders = static_cast<uint64_t>(calls * config.new_order_share());
  return config;
}

inline TestConfig TestConfigOf(const Options& options) {
  TestConfig config;
  config.read_write = options.test_read_write;
  config.conflict = options.test_conflict;
  config.snapshot = options.isolation_level == "SNAPSHOT";
  config.read_committed = options.isolation_level == "READ_COMMITTED";
  config.expected_transactions = ExpectedTransactionsPerWorker(options) * options.thread_cnt;
  return config;
}

inline SmsConfig SmsConfigOf(const Options& options) {
  SmsConfig config;
  config.rows = options.sms_rows;
  config.slot_bytes = options.sms_slot_bytes;
  config.abort_perc = options.sms_abort_perc;
  // Threads that replay have no queues of their own.
  if (!options.log_recover) config.workers = options.thread_cnt;
  return config;
}

inline SysbenchConfig SysbenchConfigOf(const Options& options) {
  SysbenchConfig config;
  config.masters = std::max(1u, options.masters);
  config.workers_per_master = options.thread_cnt;
  config.tables = options.sysbench_tables;
  config.rows = options.sysbench_rows;
  config.sharing_perc = options.sharing;
  config.mix = options.sysbench_mix == "WRITE_ONLY" ? SysbenchMix::kWriteOnly : SysbenchMix::kReadWrite;
  return config;
}

// Any workload of one node.
using WorkloadRef = std::variant<Ycsb*, Tpcc*, TestWorkload*, Sms*>;

// The workload's tables, in an empty database.
template <class WorkloadT>
void CreateTables(const Options& options, WorkloadT& workload, Database& database) {
  if (options.index == "IDX_BTREE") database.OrderEveryTable();
  workload.CreateTables(database);
}

template <class WorkloadT>
WorkloadT MakeWorkload(const Options& options) {
  if constexpr (std::is_same_v<WorkloadT, Ycsb>) {
    return Ycsb(YcsbConfigOf(options));
  } else if constexpr (std::is_same_v<WorkloadT, Tpcc>) {
    return Tpcc(TpccConfigOf(options));
  } else if constexpr (std::is_same_v<WorkloadT, Sms>) {
    return Sms(SmsConfigOf(options));
  } else if constexpr (std::is_same_v<WorkloadT, Sysbench>) {
    return Sysbench(SysbenchConfigOf(options));
  } else {
    return TestWorkload(TestConfigOf(options));
  }
}

// Calls `use(workload)` with the workload that the options name, one of one node, and returns its result.
template <class Use>
auto WithWorkload(const Options& options, Use&& use) {
  const auto with = [&]<class WorkloadT>(std::type_identity<WorkloadT>) {
    auto workload = MakeWorkload<WorkloadT>(options);
    return use(workload);
  };
  switch (options.workload) {
    case WorkloadKind::kYcsb:
      return with(std::type_identity<Ycsb>());
    case WorkloadKind::kTpcc:
      return with(std::type_identity<Tpcc>());
    case WorkloadKind::kSms:
      return with(std::type_identity<Sms>());
    case WorkloadKind::kTest:
    case WorkloadKind::kSysbench:  // refused without --masters (parse_cluster.h)
      break;
  }
  return with(std::type_identity<TestWorkload>());
}

}  // namespace dbx
