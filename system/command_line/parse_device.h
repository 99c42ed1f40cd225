// The value of LOG_DEVICE: the device that each log directory emulates.
//
//   DEVICE = "real" | "none" | [ NAME [ ":" FACTOR ] ] { "," FIGURE "=" VALUE }     without the comma at the beginning
//
// NAME is one of kDeviceProfiles, FACTOR is on its bandwidth alone. A figure replaces that of the profile, or that of a
// device without limits: bandwidth (bytes per second; 0: no limit), flush and seek (times; a bare number counts us),
// depth (requests at once), channel (bytes per second of all devices of the run together; 0, as in every profile: no
// channel). Called by switches.cpp, log_files.cpp and the micro-benchmark of emulated devices.
#pragma once

#include <optional>
#include <string_view>

#include "logging/device/device_profile.h"

namespace dbx {

inline constexpr const char* kRealDevice = "real";

// Empty for the real device. Throws BadValue (parse_value.h).
std::optional<DeviceProfile> ParseDevice(std::string_view text);

}  // namespace dbx
