#include "system/command_line/perf_record.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "system/command_line/json_values.h"

namespace dbx {

using Json = nlohmann::ordered_json;

namespace {

Json PerTxn(double count, uint64_t txns) { return txns == 0 ? Json() : Json(count / static_cast<double>(txns)); }

// Null unless both were counted, in the same part of the program.
Json InstructionsPerCycle(const Json& counters) {
  if (!counters.contains("cycles") || !counters.contains("instructions")) return Json();
  const Json &cycles = counters.at("cycles"), &instructions = counters.at("instructions");
  if (Count(cycles, "count") == 0 || cycles.at("user_space_only") != instructions.at("user_space_only")) return Json();
  return Number(instructions, "count") / Number(cycles, "count");
}

std::string CounterText(const std::string& name, const Json& counter) {
  const Json& per_txn = counter.at("per_txn");
  std::string text = per_txn.is_null() ? fmt::format("{} {}", name, Count(counter, "count"))
                                       : fmt::format("{} {:.4g}/txn", name, per_txn.get<double>());
  if (counter.at("user_space_only").get<bool>()) text += " (user space only)";
  const double share = Number(counter, "running_share");
  if (share < 1) text += fmt::format(" (scaled: counted {:.0f} % of the time)", 100 * share);
  return text;
}

// Names with one reason together.
std::string MissingText(const Json& missing) {
  std::map<std::string, std::string> names;
  for (const auto& [name, why] : missing.items()) {
    std::string& list = names[why.get<std::string>()];
    list += (list.empty() ? "" : ", ") + name;
  }
  std::string text;
  for (const auto& [why, list] : names) text += fmt::format("; not counted: {} ({})", list, why);
  return text;
}

}  // namespace

Json PerfJson(const std::optional<PerfResult>& perf, uint64_t acknowledged) {
  if (!perf) return Json();
  Json counters = Json::object(), missing = Json::object();
  for (const PerfCount& c : perf->processor) {
    if (!c.count) {
      missing[c.name] = c.missing;
      continue;
    }
    counters[c.name] = {{"count", *c.count},
                        {"per_txn", PerTxn(static_cast<double>(*c.count), acknowledged)},
                        {"running_share", c.running_share},
                        {"user_space_only", c.user_space_only}};
  }
  const KernelCounts& kernel = perf->kernel;
  const double task_clock_us = Micros(kernel.task_clock_nanos);
  return {{"counters", counters},
          {"missing", missing},
          {"instructions_per_cycle", InstructionsPerCycle(counters)},
          {"task_clock_seconds", task_clock_us / 1e6},
          {"task_clock_us_per_txn", PerTxn(task_clock_us, acknowledged)},
          {"context_switches", kernel.context_switches},
          {"context_switches_per_txn", PerTxn(static_cast<double>(kernel.context_switches), acknowledged)},
          {"page_faults", kernel.page_faults},
          {"page_faults_per_txn", PerTxn(static_cast<double>(kernel.page_faults), acknowledged)}};
}

std::string PerfLine(const Json& metrics) {
  const Json& perf = metrics.at("perf");
  if (perf.is_null()) return "";
  std::string line = "perf: ";
  for (const auto& [name, counter] : perf.at("counters").items()) line += CounterText(name, counter) + ", ";
  const Json& ipc = perf.at("instructions_per_cycle");
  if (!ipc.is_null()) line += fmt::format("{:.2f} instructions per cycle, ", ipc.get<double>());
  line += fmt::format("task clock {:.2f} s, {} context switches, {} page faults", Number(perf, "task_clock_seconds"),
                      Count(perf, "context_switches"), Count(perf, "page_faults"));
  return line + MissingText(perf.at("missing")) + "\n";
}

}  // namespace dbx
