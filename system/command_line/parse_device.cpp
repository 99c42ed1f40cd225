#include "system/command_line/parse_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "system/command_line/parse_value.h"

namespace dbx {
namespace {

constexpr uint64_t kBytesPerSecondMax = uint64_t{1} << 50;
constexpr uint64_t kNanosMax = 10'000'000'000;
constexpr uint64_t kDepthMax = 1024;
constexpr double kFactorMin = 1e-6, kFactorMax = 1e6;
constexpr double kLatencyMax = 1000;

uint64_t MoreThanDram(double latency) {
  return static_cast<uint64_t>(std::llround((latency - 1) * static_cast<double>(kDramNanos)));
}

std::string Names() {
  std::string names;
  for (const NamedProfile& named : kDeviceProfiles) names += fmt::format("{}, ", named.name);
  return names;
}

[[noreturn]] void Refuse(const char* what) {
  throw BadValue(fmt::format(
      "{} (there is real, {}each perhaps with :FACTOR; bandwidth=, flush=, seek=, depth=, channel=, latency= of pm)",
      what, Names()));
}

// Parses a part of the text; errors name the part.
template <class Parse>
auto Within(std::string_view part, Parse&& parse) {
  try {
    return parse();
  } catch (const BadValue& e) {
    throw BadValue(fmt::format("has {}, which {}", part, e.what()));
  }
}

// NAME or NAME:FACTOR.
void SetNamed(std::string_view part, DeviceProfile& profile) {
  const size_t colon = part.find(':');
  const auto named = std::find_if(kDeviceProfiles.begin(), kDeviceProfiles.end(),
                                  [&](const NamedProfile& p) { return p.name == part.substr(0, colon); });
  if (named == kDeviceProfiles.end()) Refuse("is not a device");
  double factor = 1;
  if (colon != std::string_view::npos) {
    factor = Within(part, [&] { return ParseReal(part.substr(colon + 1), kFactorMin, kFactorMax); });
  }
  profile.bytes_per_second = static_cast<uint64_t>(std::llround(static_cast<double>(named->bytes_per_second) * factor));
  profile.flush_nanos = named->flush_nanos;
  profile.seek_nanos = named->seek_nanos;
  profile.queue_depth = named->queue_depth;
  profile.block_bytes = named->block_bytes;
  if (profile.block_bytes == kMemoryBlockBytes) profile.read_nanos = MoreThanDram(kMemoryLatency);
}

// Persistent memory of so many times DRAM's latency.
void SetLatency(std::string_view value, DeviceProfile& profile) {
  if (profile.block_bytes != kMemoryBlockBytes) throw BadValue("is a figure of persistent memory (pm)");
  const uint64_t before = profile.read_nanos;
  profile.read_nanos = MoreThanDram(ParseReal(value, 1, kLatencyMax));
  profile.flush_nanos = profile.flush_nanos + profile.read_nanos - std::min(before, profile.flush_nanos);
}

// False if there is no figure of that name.
bool SetFigure(std::string_view name, std::string_view value, DeviceProfile& profile) {
  constexpr uint64_t kBareNanos = 1000;
  if (name == "bandwidth") {
    profile.bytes_per_second = ParseWhole(value, 0, kBytesPerSecondMax);
  } else if (name == "flush") {
    profile.flush_nanos = ParseDuration(value, kBareNanos, 1, 0, kNanosMax);
  } else if (name == "seek") {
    profile.seek_nanos = ParseDuration(value, kBareNanos, 1, 0, kNanosMax);
  } else if (name == "depth") {
    profile.queue_depth = static_cast<uint32_t>(ParseWhole(value, 1, kDepthMax));
  } else if (name == "channel") {
    profile.channel_bytes_per_second = ParseWhole(value, 0, kBytesPerSecondMax);
  } else if (name == "latency") {
    SetLatency(value, profile);
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::optional<DeviceProfile> ParseDevice(std::string_view text) {
  if (text == kRealDevice || text == "none") return std::nullopt;
  DeviceProfile profile;
  profile.name = text;
  std::set<std::string_view> seen;
  for (bool is_first = true;; is_first = false) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      if (!is_first) Refuse("has a figure without a value");
      SetNamed(part, profile);
    } else {
      const std::string_view name = part.substr(0, equals), value = part.substr(equals + 1);
      if (!Within(part, [&] { return SetFigure(name, value, profile); })) Refuse("has an unknown figure");
      if (!seen.insert(name).second) throw BadValue(fmt::format("has two figures {}=", name));
    }
    if (comma == std::string_view::npos) return profile;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace dbx
