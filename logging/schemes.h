// The log schemes that are built: the one list of their names and of their properties that need no class.
//
// Read by the switches (the values of --log), by the rules about pairs, by log_dump and by the simulation. A scheme's
// types are in system/pairs/scheme_types.h; system/pairs/refusals.cpp checks that they agree.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "logging/format.h"

namespace dbx {

// What a record holds: the rows that its transaction wrote, or the call of its procedure.
enum class LogType { kData, kCommand };

struct SchemeInfo {
  format::Scheme scheme;
  std::string_view name;    // as in config.h: LOG_TAURUS
  std::string_view folder;  // in logging/; log_dump calls it so
  bool one_log;             // all its records are one sequence
  bool has_lsn_vectors = false;
  bool needs_pages = false;   // as LogTraits::needs_pages: a run has a backup of its pages, and an anchor
  bool version_heap = false;  // as LogTraits::version_heap: a run has a heap and its log of gaps, in one directory
  bool row_chains = false;    // as LogTraits::row_chains: a restart may rebuild rows when they are needed
};

// By the number in a log's header.
inline constexpr std::array kSchemes = std::to_array<SchemeInfo>({
    {format::Scheme::kNone, "LOG_NO", "none", false},
    {format::Scheme::kSerial, "LOG_SERIAL", "serial", true},
    {format::Scheme::kTaurus, "LOG_TAURUS", "taurus", false, /*has_lsn_vectors=*/true},
    {format::Scheme::kPlover, "LOG_PLOVER", "plover", false},
    {format::Scheme::kSiloR, "LOG_BATCH", "silo_r", false},
    {format::Scheme::kEleda, "LOG_ELEDA", "eleda", true},
    {format::Scheme::kDifferential, "LOG_DIFFERENTIAL", "differential", false, true, /*needs_pages=*/true},
    {format::Scheme::kWriteBehind, "LOG_WBL", "write_behind", true, false, false, /*version_heap=*/true},
    {format::Scheme::kInstant, "LOG_INSTANT", "instant", true, false, false, false, /*row_chains=*/true},
});

constexpr const SchemeInfo& InfoOf(format::Scheme scheme) { return kSchemes[static_cast<size_t>(scheme)]; }
// `name` as in config.h; nullptr: it is unknown.
constexpr const SchemeInfo* SchemeWithName(std::string_view name) {
  for (const SchemeInfo& info : kSchemes) {
    if (info.name == name) return &info;
  }
  return nullptr;
}
// Properties by name. False for unknown names.
constexpr bool HasOneLog(std::string_view name) {
  const SchemeInfo* const info = SchemeWithName(name);
  return info != nullptr && info->one_log;
}
constexpr bool HasFiles(std::string_view name) {
  const SchemeInfo* const info = SchemeWithName(name);
  return info == nullptr || info->scheme != format::Scheme::kNone;
}
constexpr bool NeedsPages(std::string_view name) {
  const SchemeInfo* const info = SchemeWithName(name);
  return info != nullptr && info->needs_pages;
}
constexpr bool HasVersionHeap(std::string_view name) {
  const SchemeInfo* const info = SchemeWithName(name);
  return info != nullptr && info->version_heap;
}
constexpr bool HasRowChains(std::string_view name) {
  const SchemeInfo* const info = SchemeWithName(name);
  return info != nullptr && info->row_chains;
}

static_assert([] {
  for (size_t i = 0; i < kSchemes.size(); ++i) {
    if (kSchemes[i].scheme != static_cast<format::Scheme>(i)) return false;
  }
  return kSchemes.size() == static_cast<size_t>(format::Scheme::kLast) + 1;
}());

}  // namespace dbx
