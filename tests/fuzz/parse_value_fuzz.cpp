// Values of switches: a number in range or BadValue, and never half a string.
#include <cmath>
#include <optional>

#include "system/command_line/parse_value.h"
#include "tests/fuzz/fuzz.h"

namespace dbx::fuzz {
namespace {

template <class Parse>
auto Try(Parse&& parse) -> std::optional<decltype(parse())> {
  try {
    return parse();
  } catch (const BadValue& bad) {
    Require(std::strlen(bad.what()) > 0, "no reason");
    return std::nullopt;
  }
}

void Check(std::string_view text) {
  if (const auto value = Try([&] { return ParseWhole(text, 3, UINT64_MAX); })) {
    Require(*value >= 3, "a whole number out of range");
    Require(ParseWhole(FormatWhole(*value), 0, UINT64_MAX) == *value, "a whole number that reads back as another");
    Require(!Try([&] { return ParseWhole(text, *value + (*value < UINT64_MAX), UINT64_MAX); }) || *value == UINT64_MAX,
            "a whole number below its range");
  }
  if (const auto value = Try([&] { return ParseReal(text, 0, 1e6); })) {
    Require(std::isfinite(*value) && *value >= 0 && *value <= 1e6, "a number out of range");
  }
  if (const auto value = Try([&] { return ParseDuration(text, 1000, 1000, 1, 1'000'000); })) {
    Require(*value >= 1 && *value <= 1'000'000, "a duration out of range");
    Require(Try([&] { return ParseDuration(text, 1000, 1, 1, UINT64_MAX); }) == *value * 1000,
            "another duration in ns");
  }
  if (const auto value = Try([&] { return ParseSeconds(text, 0, 3600); })) {
    Require(std::isfinite(*value) && *value >= 0 && *value <= 3600, "seconds out of range");
  }
  if (Try([&] { return ParseBool(text); })) Require(text.size() == 1 || text.size() >= 4, "no truth value");
}

}  // namespace
}  // namespace dbx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dbx::fuzz::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
