// Serial logging (Taurus, section 2.1): one stream whose order is the order of replay, with places reserved by the
// stream itself.
#pragma once

#include "logging/stream_places.h"
#include "logging/total_order_log.h"

namespace dbx {

struct SerialPlaces : StreamPlaces {
  static constexpr std::string_view kName = "LOG_SERIAL";
  static constexpr format::Scheme kScheme = format::Scheme::kSerial;
  static constexpr bool kHasAnchors = false;
  static constexpr bool kRowCheckpoints = true;

  using StreamPlaces::StreamPlaces;
};

template <class Payload>
using SerialLog = TotalOrderLog<Payload, SerialPlaces>;

}  // namespace dbx
