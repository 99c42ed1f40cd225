// Strict parsing of the values of switches: the whole string or nothing, with a range.
//
// Called by parse_options.cpp for the command line and for the configuration text of a log. All functions throw
// BadValue with the reason alone; the caller knows which switch it was.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace dbx {

class BadValue : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Decimal digits and perhaps K, M or G (2^10, 2^20, 2^30).
uint64_t ParseWhole(std::string_view text, uint64_t min, uint64_t max);

// A finite decimal number.
double ParseReal(std::string_view text, double min, double max);

// A whole number and perhaps ns, us, ms or s; a bare number counts `bare_unit_ns`. The result counts
// `result_unit_ns` and must be whole; `min` and `max` are in that unit too.
uint64_t ParseDuration(std::string_view text, uint64_t bare_unit_ns, uint64_t result_unit_ns, uint64_t min,
                       uint64_t max);

// Seconds, with fraction; a suffix us, ms or s may follow.
double ParseSeconds(std::string_view text, double min, double max);

// 0, 1, false, true.
bool ParseBool(std::string_view text);

// The name that `text` may have been meant for: the same but for case, a prefix such as LOG_ or two letters. Empty if
// there is none.
std::string_view NearestName(std::string_view text, std::span<const std::string_view> names);

// Unsigned in the shortest form that ParseWhole takes: 64M, 1000.
std::string FormatWhole(uint64_t value);

}  // namespace dbx
