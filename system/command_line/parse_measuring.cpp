#include "system/command_line/parse_measuring.h"

#include <fmt/format.h>

namespace dbx {
namespace {

constexpr uint32_t kDefaultIntervalMs = 100;

}  // namespace

std::string CompleteSeries(bool interval_given, Options& options) {
  uint32_t& interval_ms = options.series_interval_ms;
  if (options.series_file.empty()) {
    if (interval_ms != 0) return "--series_interval needs a file for its steps: add --series=FILE";
    return "";
  }
  if (interval_given && interval_ms == 0) return "SERIES_INTERVAL 0 is no series: leave --series out, or set a time";
  // A run that is shorter has one step.
  if (!interval_given) interval_ms = kDefaultIntervalMs;
  if (interval_given && options.seconds > 0 && interval_ms > options.seconds * 1000) {
    return fmt::format("SERIES_INTERVAL {} ms is longer than the run of {} s", interval_ms, options.seconds);
  }
  for (const std::string& other : {options.json_file, options.output_file}) {
    if (other == options.series_file) return fmt::format("--series and another flag name the same file, {}", other);
  }
  return "";
}

}  // namespace dbx
