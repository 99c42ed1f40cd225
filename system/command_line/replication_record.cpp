#include "system/command_line/replication_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "system/command_line/json_values.h"

namespace dbx {

using Json = nlohmann::ordered_json;

namespace {

std::string LinkText(const Json& replication) {
  const double round_trip = Number(replication, "emulated_round_trip_us"),
               rate = Number(replication, "emulated_bytes_per_second");
  if (round_trip == 0 && rate == 0) return "";
  std::string text = "; over an emulated link";
  if (round_trip != 0) text += fmt::format(", {:.0f} us there and back", round_trip);
  if (rate != 0) text += fmt::format(", {:.0f} MB/s", rate / 1e6);
  return text;
}

}  // namespace

Json ReplicationJson(const std::optional<ReplicationResult>& replication) {
  if (!replication) return Json();
  return {{"synchronous", replication->synchronous},
          {"frames", replication->frames},
          {"bytes", replication->bytes},
          {"emulated_round_trip_us", Micros(replication->round_trip_ns)},
          {"emulated_bytes_per_second", replication->bytes_per_second},
          {"lost", replication->lost}};
}

std::string ReplicationLine(const Json& metrics) {
  const Json& replication = metrics.at("replication");
  if (replication.is_null()) return "";
  const std::string lost = replication.at("lost").get<std::string>();
  return fmt::format("replica: {}, {} frames, {:.1f} MB sent{}{}\n",
                     replication.at("synchronous").get<bool>() ? "synchronous" : "asynchronous",
                     Count(replication, "frames"), Number(replication, "bytes") / 1e6, LinkText(replication),
                     lost.empty() ? "" : "; LOST: " + lost);
}

}  // namespace dbx
