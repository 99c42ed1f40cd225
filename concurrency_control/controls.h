// The concurrency controls that are built: the one list of their names and of their properties that need no class.
//
// Read by the switches (the values of --cc), by configured.h (CC_ALG), by the rules about pairs, by the Makefile
// (PAIRS) and by the scripts (scripts/registry.py): a line each. A control's types are in
// system/pairs/control_types.h; system/pairs/refusals.cpp checks that they agree. tests/lint/one_list.py compares all
// other lists with this one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dbx {

enum class CcAlg : uint8_t {
  kNoWait,
  kWaitDie,
  kDlDetect,
  kSilo,
  kTicToc,
  kHekaton,
};

struct ControlInfo {
  CcAlg alg;
  std::string_view name;             // as in config.h: NO_WAIT
  bool locks_rows;                   // two-phase locking, with a lock table too
  bool has_commands;                 // its commands can be replayed, so that it runs with LOG_COMMAND
  std::string_view other_name = {};  // config.h and --cc know it by this one too
};

// By the number of CcAlg.
inline constexpr std::array kControls = std::to_array<ControlInfo>({
    {CcAlg::kNoWait, "NO_WAIT", true, true},
    {CcAlg::kWaitDie, "WAIT_DIE", true, true},
    {CcAlg::kDlDetect, "DL_DETECT", true, true},
    {CcAlg::kSilo, "SILO", false, true},
    {CcAlg::kTicToc, "TICTOC", false, false},
    {CcAlg::kHekaton, "HEKATON", false, true, "MVCC"},
});

constexpr const ControlInfo& InfoOf(CcAlg alg) { return kControls[static_cast<size_t>(alg)]; }
// By either name. nullptr for unknown names.
constexpr const ControlInfo* ControlNamed(std::string_view name) {
  if (name.empty()) return nullptr;
  for (const ControlInfo& info : kControls) {
    if (info.name == name || info.other_name == name) return &info;
  }
  return nullptr;
}

static_assert([] {
  for (size_t i = 0; i < kControls.size(); ++i) {
    if (kControls[i].alg != static_cast<CcAlg>(i)) return false;
  }
  return true;
}());

}  // namespace dbx
