#include "system/command_line/parse_replication.h"

#include <fmt/format.h>

#include <algorithm>

#include "logging/schemes.h"
#include "system/command_line/parse_value.h"

namespace dbx {
namespace {

std::string AddressMistake(const char* name, const std::string& text) {
  try {
    ParseHostAndPort(text, "localhost");
    return "";
  } catch (const BadValue& e) {
    return fmt::format("--{}={} {}", name, text, e.what());
  }
}

std::string MistakeOfReplica(const Options& options) {
  if (options.reads_log() || !options.replicate_to.empty()) {
    return "--replica keeps a copy of another run: leave -Lr1, --continue and --replicate_to out";
  }
  if (options.pin != "none" || options.numa != "first_touch") {
    return "--replica has neither workers nor tables: leave --pin and --numa out";
  }
  return AddressMistake("replica", options.replica);
}

std::string MistakeOfRun(const Options& options) {
  if (options.reads_log()) return "--replicate_to is for new runs: a replica has a run from its beginning";
  if (!HasFiles(options.log)) return options.log + " has no files that --replicate_to could copy";
  if (options.log_no_flush) return "LOG_NO_FLUSH makes nothing durable that --replicate_to could send: leave it out";
  if (options.replicate_to.find(':') == std::string::npos) {
    return fmt::format("--replicate_to={} ends in no port: HOST:PORT", options.replicate_to);
  }
  return AddressMistake("replicate_to", options.replicate_to);
}

}  // namespace

HostAndPort ParseHostAndPort(std::string_view text, std::string_view default_host) {
  const size_t colon = text.rfind(':');
  std::string_view host = colon == std::string_view::npos ? default_host : text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) throw BadValue("names no host: HOST:PORT");
  const std::string_view port = text.substr(colon + 1);  // all of it without a colon
  constexpr uint64_t kPortMax = 65535;
  if (port.find_first_not_of("0123456789") != std::string_view::npos) throw BadValue("ends in no port: HOST:PORT");
  return {std::string(host), static_cast<uint16_t>(ParseWhole(port, 0, kPortMax))};
}

std::string ReplicationMistake(const Options& options) {
  if (!options.replica.empty()) return MistakeOfReplica(options);
  if (!options.replicate_to.empty()) return MistakeOfRun(options);
  for (const char* name : {"replication", "replica_round_trip", "replica_bandwidth"}) {
    if (std::find(options.given.begin(), options.given.end(), name) == options.given.end()) continue;
    return fmt::format("--{} belongs to --replicate_to", name);
  }
  return "";
}

}  // namespace dbx
