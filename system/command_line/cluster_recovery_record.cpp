#include "system/command_line/cluster_recovery_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "system/command_line/json_values.h"
#include "system/command_line/parse_options.h"

namespace dbx {

using Json = nlohmann::ordered_json;

namespace {

double Rate(uint64_t count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0.0; }

Json MetricsJson(const ClusterRecoveryResult& result) {
  const mm::RestartCounters& counters = result.counters;
  // Opening a log reads and checks it.
  const double seconds = result.open_seconds + result.replay_seconds + result.finish_seconds;
  return {{"committed", counters.committed},
          {"aborted", counters.aborted},
          {"readers", counters.readers},
          {"losers", counters.losers},
          {"rows_restored", counters.rows_restored},
          {"flushes", counters.flushes},
          {"mini_transactions", counters.mini_transactions},
          {"changes", counters.changes},
          {"log_bytes", counters.log_bytes},
          {"leaves", counters.pages},
          {"rows", counters.rows},
          {"open_seconds", result.open_seconds},
          {"load_seconds", result.load_seconds},
          {"replay_seconds", result.replay_seconds},
          {"finish_seconds", result.finish_seconds},
          {"verify_seconds", result.verify_seconds},
          {"throughput", Rate(counters.committed, seconds)},
          {"changes_per_second", Rate(counters.changes, seconds)},
          {"bytes_per_second", Rate(counters.log_bytes, seconds)}};
}

}  // namespace

std::string ClusterRecoveryRecord(const Options& options, const ClusterRecoveryResult& result,
                                  const Environment& environment) {
  Json configuration = Json::object();
  for (const auto& [name, value] : EffectiveConfiguration(options)) configuration[name] = value;
  Json logs = Json::array();
  for (const ClusterRecoveryResult::OfLog& log : result.logs) {
    logs.push_back({{"end", log.end}, {"durable", log.durable}, {"sealed", log.sealed}});
  }
  const Json record = {{"kind", "cluster_recovery"},
                       {"masters", result.masters},
                       {"workers_per_master", result.workers},
                       {"workload", kWorkloadNames[static_cast<size_t>(options.workload)]},
                       {"log_directory", result.directory},
                       {"verified", result.verified},
                       {"digest", result.digest},
                       {"notices", result.notices},
                       {"configuration", configuration},
                       {"metrics", MetricsJson(result)},
                       {"logs", logs},
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
  return record.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ClusterRecoveryText(const std::string& record) {
  const Json json = Json::parse(record);
  const Json& m = json.at("metrics");
  std::string text =
      fmt::format("recovered {}: {} transactions of {} masters, {} aborted; {} losers, {} of their rows put back\n",
                  json.at("log_directory").get<std::string>(), Count(m, "committed"), Count(json, "masters"),
                  Count(m, "aborted"), Count(m, "losers"), Count(m, "rows_restored"));
  for (size_t i = 0; i < json.at("logs").size(); ++i) {
    const Json& log = json.at("logs")[i];
    text += fmt::format("  log of master {}: durable up to LSN {}, {}\n", i, Count(log, "durable"),
                        log.at("sealed").get<bool>()
                            ? std::string("sealed")
                            : fmt::format("{} bytes behind its last LFB", Count(log, "end") - Count(log, "durable")));
  }
  text += fmt::format("seconds: load {:.3f}, open {:.3f}, replay {:.3f}, finish {:.3f}, verify {:.3f}\n",
                      Number(m, "load_seconds"), Number(m, "open_seconds"), Number(m, "replay_seconds"),
                      Number(m, "finish_seconds"), Number(m, "verify_seconds"));
  text += fmt::format("Throughput: {:.2f}\n", Number(m, "throughput"));
  text += fmt::format(
      "replayed {} changes in {} mini-transactions and {} flushes: {:.0f} changes/s, {:.1f} MB/s of log, 1 thread\n",
      Count(m, "changes"), Count(m, "mini_transactions"), Count(m, "flushes"), Number(m, "changes_per_second"),
      Number(m, "bytes_per_second") / 1e6);
  const std::string verified = json.at("verified").get<std::string>();
  text += verified.empty() ? "not verified\n" : "verified: " + verified + "\n";
  return text;
}

}  // namespace dbx
