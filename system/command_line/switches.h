// The table of switches: each one once, with everything that parsing, -h, -S, the JSON record and a log's identity
// need. Used by parse_options.cpp, which turns it into Options and back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "system/command_line/options.h"

namespace dbx {

// The field of the value. monostate: a switch of DBx1000 or a fork of it that is ignored here.
using SwitchField = std::variant<std::monostate, bool Options::*, uint32_t Options::*, uint64_t Options::*,
                                 double Options::*, std::string Options::*, std::vector<std::string> Options::*,
                                 std::optional<uint32_t> Options::*, WorkloadKind Options::*>;

// The syntax of a value.
enum class SwitchKind : uint8_t {
  kWhole,     // 1000, 64K
  kDuration,  // 200, 200us
  kReal,      // 0.6
  kSeconds,   // 2.5, 500ms
  kBool,      // 0, 1; the long name alone means 1
  kBare,      // the same, but the short flag takes no value and means 1
  kText,      // any non-empty text
  kList,      // texts with commas between
  kChoice,    // one of `built`
  kDevice,    // as parse_device.h says
  kCpus,      // as base/placement.h says of pins
  kIgnored,   // any text, or none
};

// The logs of whose identity a switch is part: it determines the meaning of their records, and a recovery needs it to
// interpret them.
enum class Identity : uint8_t { kNo, kAlways, kYcsb, kTpcc, kTest, kSms, kSysbench };

struct Switch {
  std::string_view name;  // as in config.h
  std::string_view flag;  // short, without the dash; may be empty
  SwitchKind kind = SwitchKind::kIgnored;
  SwitchField field{};
  std::string_view help{};   // effect and unit; of kIgnored: why it has no effect here
  std::string_view value{};  // stands for the value in the help
  double min = 0;
  double max = 0;
  uint64_t bare_unit_ns = 1;   // kDuration: the unit of a bare number
  uint64_t field_unit_ns = 1;  // kDuration: the unit of the field
  std::span<const std::string_view> built{};
  std::span<const std::string_view> not_built{};
  std::string_view given_long_name{};  // empty: `name` in lower case
  std::string_view alias{};            // a second long name
  Identity identity = Identity::kNo;
  bool recovers = false;  // has an effect on a recovery, not on runs alone

  std::string LongName() const;
  bool TakesNoValue() const { return kind == SwitchKind::kBool || kind == SwitchKind::kBare; }
};

// In the order in which help and records show them.
std::span<const Switch> Switches();

// Parses `text` into the field. Throws BadValue, whose text names the switch.
void SetSwitch(const Switch& s, std::string_view text, Options& options);

// The value of the field, in a form that SetSwitch takes (kText, kList and an unset optional may be empty).
std::string FormatSwitch(const Switch& s, const Options& options);

}  // namespace dbx
