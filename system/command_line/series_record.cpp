#include "system/command_line/series_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "system/command_line/json_values.h"

namespace dbx {

using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kHeading =
    "begin_s,end_s,acknowledged,executed,aborts,acknowledged_per_s,executed_per_s,p50_us,p99_us,log_bytes,log_mb_per_s,"
    "flushes,mean_flush_us,checkpoints_begun,checkpoints_ended,log_full_waits,log_full_ms,ack_waits,ack_wait_ms\n";

double PerSecond(uint64_t count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

std::string MicrosText(const std::optional<uint64_t>& nanos) {
  return nanos ? fmt::format("{:.3f}", Micros(*nanos)) : "";
}

std::string Line(const SeriesStep& s) {
  const double seconds = s.end_seconds - s.begin_seconds;
  std::string line = fmt::format("{:.6f},{:.6f},{},{},{},{:.1f},{:.1f},{},{},", s.begin_seconds, s.end_seconds,
                                 s.acknowledged, s.executed, s.aborts, PerSecond(s.acknowledged, seconds),
                                 PerSecond(s.executed, seconds), MicrosText(s.p50_nanos), MicrosText(s.p99_nanos));
  line += s.log_bytes ? fmt::format("{},{:.3f},", *s.log_bytes, PerSecond(*s.log_bytes, seconds) / 1e6) : ",,";
  line += s.flushes == 0 ? "0,," : fmt::format("{},{:.3f},", s.flushes, Micros(s.flush_nanos / s.flushes));
  return line + fmt::format("{},{},{},{:.3f},{},{:.3f}\n", s.checkpoints.begun, s.checkpoints.ended, s.log_full.count,
                            static_cast<double>(s.log_full.nanos) / 1e6, s.acks_full.count,
                            static_cast<double>(s.acks_full.nanos) / 1e6);
}

}  // namespace

std::string SeriesCsv(const std::vector<SeriesStep>& steps) {
  std::string text = kHeading;
  for (const SeriesStep& step : steps) text += Line(step);
  return text;
}

Json SeriesJson(const Options& options, const std::vector<SeriesStep>& steps) {
  if (options.series_file.empty()) return Json();
  uint64_t log_full = 0;
  for (const SeriesStep& step : steps) log_full += step.log_full.count;
  return {{"file", options.series_file},
          {"interval_ms", options.series_interval_ms},
          {"steps", steps.size()},
          {"log_full_waits", log_full}};
}

std::string SeriesLine(const Json& metrics) {
  const Json& series = metrics.at("series");
  if (series.is_null()) return "";
  return fmt::format("series: {} steps of {} ms in {}\n", Count(series, "steps"), Count(series, "interval_ms"),
                     series.at("file").get<std::string>());
}

}  // namespace dbx
