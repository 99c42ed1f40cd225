// Serial logging (Taurus, section 2.1): one stream whose order is the order of replay, with places reserved by the
// stream itself.
#pragma once

#include "logging/total_order_log.h"

namespace dbx {

class SerialPlaces {
 public:
  static constexpr std::string_view kName = "LOG_SERIAL";
  static constexpr format::Scheme kScheme = format::Scheme::kSerial;
  static constexpr bool kHasAnchors = false;
  static constexpr bool kRowCheckpoints = true;

  SerialPlaces(LogSet& logs, const LogOptions&) : stream_(logs.stream(0)) {}

  static constexpr std::byte* StageFor(uint32_t, uint32_t) { return nullptr; }
  LogPlace Reserve(uint32_t worker, uint32_t bytes) { return stream_.Reserve(worker, bytes); }
  void Submit(uint32_t worker, const LogPlace& place) { stream_.Submit(worker, place); }
  void Void(uint32_t worker, const LogPlace& place) { stream_.Void(worker, place); }
  static std::optional<CentralCounters> Counters() { return std::nullopt; }

 private:
  LogStream& stream_;
};

template <class Payload>
using SerialLog = TotalOrderLog<Payload, SerialPlaces>;

}  // namespace dbx
