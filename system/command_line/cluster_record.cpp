#include "system/command_line/cluster_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "system/command_line/json_values.h"
#include "system/command_line/parse_options.h"

namespace dbx {

using Json = nlohmann::ordered_json;

namespace {

// Beside its workers a master has threads for its network, releases, applier, housekeeping, undo and log writer, and
// one for each log that it reads, as has a Page Store, with one for its network. A Log Store has two, the lock process
// three.
uint64_t ThreadsOf(const Options& options) {
  const uint64_t of_masters = options.masters * (options.thread_cnt + 6 + options.masters);
  return of_masters + options.page_stores * (options.masters + 1) + 2 * 3 + 3;
}

Json MasterJson(const MasterResult& master) {
  return {{"died", master.died},
          {"executed", master.executed},
          {"acknowledged", master.acknowledged},
          {"rollbacks", master.rollbacks},
          {"deadlock_victims", master.victims},
          {"lock_timeouts", master.timeouts},
          {"seconds", master.seconds},
          {"page_requests", master.locks.requests},
          {"page_releases", master.locks.releases},
          {"page_upgrades", master.locks.upgrades},
          {"row_locks", master.locks.row_locks},
          {"row_conflicts", master.locks.row_conflicts},
          {"transactions_with_row_locks", master.locks.transactions},
          {"pages_fetched", master.pages.fetched},
          {"pages_from_buffer", master.pages.from_buffer},
          {"pages_evicted", master.pages.evicted},
          {"versioned_statements", master.reads.versioned},
          {"statements_rerun_with_locks", master.reads.rerun},
          {"strict_transactions", master.reads.strict},
          {"versions_from_buffer", master.pages.versions_from_buffer},
          {"versions_from_store", master.pages.versions_from_store},
          {"buffered_changes_followed", master.pages.changes_followed},
          {"buffered_pages_dropped", master.pages.dropped},
          {"page_splits", master.splits},
          {"log_bytes", master.log.bytes},
          {"record_bytes", master.log.record_bytes},
          {"page_changes", master.log.changes},
          {"flushes", master.log.lfbs}};
}

Json DeathsJson(const ClusterResult& result) {
  Json deaths = Json::array();
  for (const ProcessDeath& death : result.deaths) {
    Json one = {
        {"process", mm::NameOf(death.node)}, {"seconds", death.seconds}, {"phase", death.phase}, {"how", death.how}};
    if (death.recovery) {
      one["losers"] = death.recovery->losers;
      one["freed_seconds"] = death.recovery->freed_seconds;
      one["undone_seconds"] = death.recovery->undone_seconds;
    }
    deaths.push_back(one);
  }
  return deaths;
}

// What the log consists of, and what it would with vector clocks of all masters (log_volume.h), per transaction.
Json LogJson(const mm::LogVolume& log, uint64_t masters, auto&& per_txn) {
  const uint64_t others = log.record_bytes - log.time_bytes();
  const auto beside = static_cast<double>(log.pages_bytes - log.changed_bytes);
  return {{"changes_per_txn", per_txn(log.changes)},
          {"flushes_per_txn", per_txn(log.lfbs)},
          {"changed_bytes_per_txn", per_txn(log.changed_bytes)},
          {"other_bytes_per_txn", per_txn(others - log.changed_bytes)},
          {"pad_bytes_per_txn", per_txn(log.bytes - log.record_bytes)},
          // Of a PAGES record, with its header.
          {"bytes_beside_a_change", log.changes == 0 ? 0.0 : beside / static_cast<double>(log.changes)},
          {"time_bytes_per_txn", per_txn(log.time_bytes())},
          {"vector_time_bytes_per_txn", per_txn(log.vector_time_bytes(masters))},
          {"one_stamp_time_bytes_per_txn", per_txn(log.one_stamp_time_bytes(masters))},
          {"vector_record_bytes_per_txn", per_txn(others + log.vector_time_bytes(masters))},
          {"one_stamp_record_bytes_per_txn", per_txn(others + log.one_stamp_time_bytes(masters))}};
}

Json MetricsJson(const Options& options, const ClusterResult& result) {
  LatencyHistogram latency;
  double seconds = 0;
  uint64_t acknowledged = 0, executed = 0, page_messages = 0, fetched = 0, row_locks = 0, txns = 0, kept = 0, first = 0,
           versioned = 0, rerun = 0, from_buffer = 0, from_store = 0;
  mm::LogVolume log;
  for (const MasterResult& one : result.masters) {
    latency.Merge(one.latency);
    acknowledged += one.acknowledged, executed += one.executed, log += one.log;
    kept += one.kept.messages, first += one.kept.first;
    page_messages += one.locks.requests + one.locks.grants + one.locks.reclaims + one.locks.releases;
    fetched += one.pages.fetched, row_locks += one.locks.row_locks, txns += one.locks.transactions;
    versioned += one.reads.versioned, rerun += one.reads.rerun;
    from_buffer += one.pages.versions_from_buffer, from_store += one.pages.versions_from_store;
    seconds = std::max(seconds, one.seconds);
  }
  const mm::GlobalLockCounters& locks = result.lock_process;
  const auto per_txn = [&](uint64_t count) {
    return executed == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(executed);
  };
  return {{"throughput_acknowledged", seconds > 0 ? static_cast<double>(acknowledged) / seconds : 0.0},
          {"acknowledged", acknowledged},
          {"p50_us", Micros(latency.PercentileNanos(0.5))},
          {"p99_us", Micros(latency.PercentileNanos(0.99))},
          {"page_lock_messages_per_txn", per_txn(page_messages)},
          {"pages_fetched_per_txn", per_txn(fetched)},
          {"versioned_statements", versioned},
          {"statements_rerun_with_locks", rerun},
          {"versions_from_buffer", from_buffer},
          {"versions_from_store", from_store},
          // What a global lock manager of rows would send that releases each lock with its transaction: two messages a
          // row lock, and one a transaction.
          {"glm_release_messages_per_txn", per_txn(2 * row_locks + txns)},
          // What one would send that keeps the locks until another master needs the row, and of that for rows which no
          // master had locked before. Null: not counted.
          {"row_locks_kept_messages_per_txn", options.count_row_lock_managers ? Json(per_txn(kept)) : Json()},
          {"row_locks_first_messages_per_txn", options.count_row_lock_managers ? Json(per_txn(first)) : Json()},
          {"log_bytes_per_txn", per_txn(log.bytes)},
          {"record_bytes_per_txn", per_txn(log.record_bytes)},
          {"log", LogJson(log, options.masters, per_txn)},
          // Of its whole life, with the verification after the run.
          {"lock_process",
           {{"requests", locks.requests},
            {"grants", locks.grants},
            {"reclaims", locks.reclaims},
            {"releases", locks.releases},
            {"ends_heard", locks.ends_heard},
            {"ends_told", locks.ends_told},
            {"wait_reports", locks.wait_reports},
            {"victims", locks.victims}}},
          {"page_store",
           {{"pages_sent", result.page_store.pages_sent},
            {"reads_waited", result.page_store.reads_waited},
            {"changes", result.page_store.changes}}},
          {"latency_histogram", HistogramJson(latency)}};
}

}  // namespace

std::string ClusterRecord(const Options& options, const ClusterResult& result, const Environment& environment) {
  Json configuration;
  for (const auto& [name, value] : EffectiveConfiguration(options)) configuration[name] = value;
  Json masters = Json::array();
  for (const MasterResult& master : result.masters) masters.push_back(MasterJson(master));
  const uint64_t threads = ThreadsOf(options);
  const bool is_read_committed = options.isolation_level == "READ_COMMITTED";
  const Json record = {{"schema_version", 1},
                       {"kind", "cluster"},
                       {"cc", mm::kControlName},
                       {"log", mm::kLogName},
                       {"isolation", is_read_committed ? "READ_COMMITTED" : "SERIALIZABLE"},
                       {"strict_reads", options.strict_reads},
                       {"masters", options.masters},
                       {"workers_per_master", options.thread_cnt},
                       {"workload", kWorkloadNames[static_cast<size_t>(options.workload)]},
                       {"transport", "TCP, loopback"},
                       {"threads", threads},
                       {"oversubscribed", threads > environment.cores},
                       {"interrupted", result.interrupted},
                       {"verified", result.verified},
                       {"log_directory", result.directory},
                       {"configuration", configuration},
                       {"metrics", MetricsJson(options, result)},
                       {"by_master", masters},
                       {"deaths", DeathsJson(result)},
                       {"environment",
                        {{"commit", kBuildInfo.commit},
                         {"dirty", kBuildInfo.dirty},
                         {"compiler", kBuildInfo.compiler},
                         {"flags", kBuildInfo.flags},
                         {"kernel", environment.kernel},
                         {"cpu", environment.cpu},
                         {"cores", environment.cores},
                         {"memory_bytes", environment.memory_bytes},
                         {"virtualisation", environment.virtualisation},
                         {"time", environment.time}}}};
  return record.dump();
}

std::string ClusterText(const std::string& record) {
  const Json json = Json::parse(record);
  const Json& metrics = json.at("metrics");
  const bool is_serializable = json.at("isolation").get<std::string>() == "SERIALIZABLE";
  std::string text = fmt::format(
      "{} masters of {} workers, {}{}: {:.0f} txn/s acknowledged, p50 {:.0f} us, p99 {:.0f} us{}\n",
      Count(json, "masters"), Count(json, "workers_per_master"), json.at("workload").get<std::string>(),
      is_serializable ? "" : ", " + json.at("isolation").get<std::string>(), Number(metrics, "throughput_acknowledged"),
      Number(metrics, "p50_us"), Number(metrics, "p99_us"), json.at("interrupted").get<bool>() ? " (interrupted)" : "");
  if (json.at("oversubscribed").get<bool>()) {
    text += fmt::format("OVERSUBSCRIBED: {} threads of all processes share {} cores; rates do not show scaling\n",
                        Count(json, "threads"), Count(json.at("environment"), "cores"));
  }
  for (size_t i = 0; i < json.at("by_master").size(); ++i) {
    const Json& master = json.at("by_master")[i];
    if (master.at("died").get<bool>()) {
      text += fmt::format("  master {}: died; its transactions are not counted\n", i);
      continue;
    }
    text += fmt::format(
        "  master {}: {} acknowledged in {:.2f} s, {} deadlock victims, {} lock timeouts; {} page requests, {} pages "
        "fetched, {} splits\n",
        i, Count(master, "acknowledged"), Number(master, "seconds"), Count(master, "deadlock_victims"),
        Count(master, "lock_timeouts"), Count(master, "page_requests"), Count(master, "pages_fetched"),
        Count(master, "page_splits"));
  }
  text += fmt::format(
      "per transaction: {:.3f} messages of page locks, {:.3f} pages fetched; a lock manager of rows would send {:.1f} "
      "messages (counted){}\n",
      Number(metrics, "page_lock_messages_per_txn"), Number(metrics, "pages_fetched_per_txn"),
      Number(metrics, "glm_release_messages_per_txn"),
      metrics.at("row_locks_kept_messages_per_txn").is_null()
          ? ""
          : fmt::format(", or {:.3f} if masters kept their locks, {:.3f} of them for rows that none had locked",
                        Number(metrics, "row_locks_kept_messages_per_txn"),
                        Number(metrics, "row_locks_first_messages_per_txn")));
  if (!is_serializable) {
    text += fmt::format(
        "versioned reads: {} statements, of which {} ran again with locks; {} pages from the buffer, {} from Page "
        "Stores\n",
        Count(metrics, "versioned_statements"), Count(metrics, "statements_rerun_with_locks"),
        Count(metrics, "versions_from_buffer"), Count(metrics, "versions_from_store"));
  }
  text += fmt::format("log: {:.0f} bytes of records per transaction, {:.0f} with what fills up blocks; in {}\n",
                      Number(metrics, "record_bytes_per_txn"), Number(metrics, "log_bytes_per_txn"),
                      json.at("log_directory").get<std::string>());
  for (const Json& death : json.at("deaths")) {
    text += fmt::format("after {:.2f} s ({}) {}", Number(death, "seconds"), death.at("phase").get<std::string>(),
                        death.at("how").get<std::string>());
    if (death.contains("losers")) {
      text += fmt::format("; {} of its transactions were rolled back, its pages were free {:.2f} s later",
                          Count(death, "losers"), Number(death, "freed_seconds"));
    }
    text += "\n";
  }
  const std::string verified = json.at("verified").get<std::string>();
  if (!verified.empty()) text += "verified: " + verified + "\n";
  return text;
}

}  // namespace dbx
