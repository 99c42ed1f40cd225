#include "system/command_line/backup_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "system/command_line/json_values.h"

namespace dbx {

using Json = nlohmann::ordered_json;

Json CheckpointsJson(const std::optional<CheckpointCounters>& checkpoints) {
  if (!checkpoints) return Json();
  return {{"of_rows", checkpoints->of_rows},
          {"complete", checkpoints->checkpoints},
          {"failed", checkpoints->failed},
          {"abandoned", checkpoints->abandoned},
          {"pages", checkpoints->pages},
          {"rows", checkpoints->rows},
          {"bytes", checkpoints->bytes},
          {"seconds", checkpoints->seconds},
          {"latch_us_p99", Micros(checkpoints->latches.PercentileNanos(0.99))},
          {"longest_latch_us", Micros(checkpoints->latches.max_nanos())},
          {"latch_histogram", HistogramJson(checkpoints->latches)},
          {"pause_us_p99", Micros(checkpoints->pauses.PercentileNanos(0.99))},
          {"longest_pause_us", Micros(checkpoints->pauses.max_nanos())},
          {"pause_histogram", HistogramJson(checkpoints->pauses)}};
}

std::string CheckpointsLine(const Json& run_metrics) {
  const Json& c = run_metrics.at("checkpoints");
  if (c.is_null() || Count(c, "complete") + Count(c, "failed") + Count(c, "abandoned") == 0) return "";
  const bool of_rows = c.at("of_rows").get<bool>();
  return fmt::format(
      "checkpoints: {} complete, {} failed, {} abandoned at the end, {} {}, {:.1f} MB in {:.2f} s; {} for {:.1f} us "
      "(p99), {:.1f} us at most\n",
      Count(c, "complete"), Count(c, "failed"), Count(c, "abandoned"), Count(c, of_rows ? "rows" : "pages"),
      of_rows ? "rows" : "pages", Number(c, "bytes") / 1e6, Number(c, "seconds"),
      of_rows ? "workers paused" : "a page latched", Number(c, of_rows ? "pause_us_p99" : "latch_us_p99"),
      Number(c, of_rows ? "longest_pause_us" : "longest_latch_us"));
}

// The paper's log processing is the passes that redo and undo, as it takes the ends of the logs for granted.
// log_throughput counts the search for the ends, too: other schemes find the ends of their logs while they replay.
Json RestartJson(const RecoveryResult& result) {
  if (!result.restart) return Json();
  const RestartTimes& t = *result.restart;
  const double log_seconds = t.redo_seconds + t.backward_seconds;
  const double read_seconds = std::min(t.log_read_seconds, log_seconds);
  const double all_passes = t.ends_seconds + log_seconds;
  return {{"method", std::string(NameOf(t.method))},
          {"level", t.level},
          {"ends_seconds", t.ends_seconds},
          {"backup_seconds", t.backup_seconds},
          {"redo_seconds", t.redo_seconds},
          {"backward_seconds", t.backward_seconds},
          {"adopt_seconds", t.adopt_seconds},
          {"log_seconds", log_seconds},
          {"log_read_seconds", read_seconds},
          {"log_play_seconds", log_seconds - read_seconds},
          {"log_throughput", all_passes > 0 ? static_cast<double>(result.recovered) / all_passes : 0}};
}

std::string RestartLine(const Json& recovery_metrics) {
  const Json& r = recovery_metrics.at("restart");
  if (r.is_null()) return "";
  return fmt::format(
      "restart by {} at level {}, seconds: ends of the logs {:.3f}, backup {:.3f}, logs {:.3f} (reading {:.3f}, "
      "playing {:.3f}), pages {:.3f}\n",
      r.at("method").get<std::string>(), Count(r, "level"), Number(r, "ends_seconds"), Number(r, "backup_seconds"),
      Number(r, "log_seconds"), Number(r, "log_read_seconds"), Number(r, "log_play_seconds"),
      Number(r, "adopt_seconds"));
}

}  // namespace dbx
