// Places that the stream itself reserves, for the schemes over TotalOrderLog that have no other way (serial/,
// instant/). A scheme derives from it and adds its constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "logging/central_counters.h"
#include "logging/log_options.h"
#include "logging/log_set.h"

namespace dbx {

class StreamPlaces {
 public:
  StreamPlaces(LogSet& logs, const LogOptions&) : stream_(logs.stream(0)) {}

  static constexpr std::byte* StageFor(uint32_t, uint32_t) { return nullptr; }
  LogPlace Reserve(uint32_t worker, uint32_t bytes) { return stream_.Reserve(worker, bytes); }
  void Submit(uint32_t worker, const LogPlace& place) { stream_.Submit(worker, place); }
  void Void(uint32_t worker, const LogPlace& place) { stream_.Void(worker, place); }
  static std::optional<CentralCounters> Counters() { return std::nullopt; }

 private:
  LogStream& stream_;
};

}  // namespace dbx
