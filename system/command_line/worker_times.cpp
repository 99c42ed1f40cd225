#include "system/command_line/worker_times.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <numeric>

#include "system/command_line/json_values.h"

namespace dbx {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::array<const char*, kTimeParts> kTimePartNames = {"work",   "tracking", "metadata",
                                                                "record", "aborted",  "rest"};

}  // namespace

void AddWorkerTimes(const TimeParts& nanos, const std::optional<uint64_t>& charged_reads, Json& metrics) {
  metrics["charged_reads"] = charged_reads ? Json(*charged_reads) : Json();
  metrics["time_shares"] = Json();
  const double all = std::accumulate(nanos.begin(), nanos.end(), 0.0);
  if (all == 0) return;
  for (size_t i = 0; i < kTimeParts; ++i) metrics["time_shares"][kTimePartNames[i]] = nanos[i] / all;
  metrics["time_man"] = nanos[static_cast<size_t>(TimePart::kTracking)] / 1e9;
  metrics["time_abort"] = nanos[static_cast<size_t>(TimePart::kAborted)] / 1e9;
}

std::string WorkerTimesLines(const Json& metrics) {
  std::string lines;
  if (const Json& shares = metrics.at("time_shares"); !shares.is_null()) {
    lines = "workers' time:";
    for (const char* part : kTimePartNames) lines += fmt::format(" {} {:.1f} %,", part, 100 * Number(shares, part));
    lines.back() = '\n';
  }
  if (!metrics.at("charged_reads").is_null()) {
    lines += fmt::format("reads of persistent memory: {} charged for, which slows workers down (PM_READS)\n",
                         Count(metrics, "charged_reads"));
  }
  return lines;
}

}  // namespace dbx
