// Values of a record in JSON that several of its parts have. Threads: any.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/histogram.h"
#include "system/command_line/environment.h"

namespace dbx {

inline double Number(const nlohmann::ordered_json& object, const char* name) { return object.at(name).get<double>(); }
inline uint64_t Count(const nlohmann::ordered_json& object, const char* name) {
  return object.at(name).get<uint64_t>();
}

inline double Micros(uint64_t nanos) { return static_cast<double>(nanos) / 1000; }

// [upper end in nanoseconds, count] of each bucket that is not empty.
inline nlohmann::ordered_json HistogramJson(const LatencyHistogram& histogram) {
  nlohmann::ordered_json buckets = nlohmann::ordered_json::array();
  histogram.ForEachBucket([&](uint64_t upper, uint64_t count) {
    buckets.push_back(nlohmann::ordered_json::array({upper, count}));
  });
  return buckets;
}

// Host and build.
inline nlohmann::ordered_json EnvironmentJson(const Environment& e) {
  return {{"commit", kBuildInfo.commit},
          {"dirty", kBuildInfo.dirty},
          {"compiler", kBuildInfo.compiler},
          {"flags", kBuildInfo.flags},
          {"allocator", kBuildInfo.allocator},
          {"kernel", e.kernel},
          {"cpu", e.cpu},
          {"cores", e.cores},
          {"governor", e.governor},
          {"numa_nodes", e.numa_nodes},
          {"memory_bytes", e.memory_bytes},
          {"huge_pages", e.huge_pages},
          {"virtualisation", e.virtualisation},
          {"clock", e.clock},
          {"time", e.time}};
}

}  // namespace dbx
