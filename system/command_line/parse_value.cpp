#include "system/command_line/parse_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace dbx {
namespace {

struct Suffix {
  std::string_view text;
  uint64_t factor;
};
constexpr std::array<Suffix, 4> kDurations{{{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsNegative(std::string_view text) {
  return text.size() > 1 && text[0] == '-' && (IsDigit(text[1]) || text[1] == '.');
}

// The leading number of `text`; the rest is left in `text`.
template <class Number>
Number TakeNumber(std::string_view& text, const char* wanted) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range) throw BadValue("is too large");
  if (IsNegative(text)) throw BadValue("must not be negative");
  if (error != std::errc()) throw BadValue(wanted);
  text = std::string_view(rest, static_cast<size_t>(end - rest));
  return value;
}

uint64_t Times(uint64_t value, uint64_t factor) {
  if (value > std::numeric_limits<uint64_t>::max() / factor) throw BadValue("is too large");
  return value * factor;
}

uint64_t DurationFactor(std::string_view suffix, uint64_t bare, const char* wanted) {
  if (suffix.empty()) return bare;
  for (const Suffix& s : kDurations) {
    if (s.text == suffix) return s.factor;
  }
  throw BadValue(wanted);
}

// In capitals, with _ between words.
std::string Folded(std::string_view text) {
  std::string folded(text);
  for (char& c : folded) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return folded;
}

// Letters to insert, delete or replace (Levenshtein).
size_t EditDistance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replaced = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

}  // namespace

uint64_t ParseWhole(std::string_view text, uint64_t min, uint64_t max) {
  constexpr const char* kWanted = "is not a whole number (digits, perhaps with K, M or G)";
  uint64_t value = TakeNumber<uint64_t>(text, kWanted);
  if (text == "K") {
    value = Times(value, uint64_t{1} << 10);
  } else if (text == "M") {
    value = Times(value, uint64_t{1} << 20);
  } else if (text == "G") {
    value = Times(value, uint64_t{1} << 30);
  } else if (!text.empty()) {
    throw BadValue(kWanted);
  }
  if (value < min || value > max) {
    throw BadValue(fmt::format("is out of range ({} to {})", FormatWhole(min), FormatWhole(max)));
  }
  return value;
}

double ParseReal(std::string_view text, double min, double max) {
  constexpr const char* kWanted = "is not a number";
  const double value = TakeNumber<double>(text, kWanted);
  if (!text.empty() || std::isnan(value)) throw BadValue(kWanted);
  // Infinity fails here: no maximum is infinite.
  if (value < min || value > max) throw BadValue(fmt::format("is out of range ({} to {})", min, max));
  return value;
}

uint64_t ParseDuration(std::string_view text, uint64_t bare_unit_ns, uint64_t result_unit_ns, uint64_t min,
                       uint64_t max) {
  constexpr const char* kWanted = "is not a duration (a whole number, perhaps with ns, us, ms or s)";
  const uint64_t number = TakeNumber<uint64_t>(text, kWanted);
  const uint64_t nanos = Times(number, DurationFactor(text, bare_unit_ns, kWanted));
  const uint64_t value = nanos / result_unit_ns;
  if (nanos % result_unit_ns != 0) throw BadValue(fmt::format("is not a multiple of {} ns", result_unit_ns));
  if (value < min || value > max) {
    throw BadValue(fmt::format("is out of range ({} to {})", min * result_unit_ns / bare_unit_ns,
                               max * result_unit_ns / bare_unit_ns));
  }
  return value;
}

double ParseSeconds(std::string_view text, double min, double max) {
  constexpr const char* kWanted = "is not a number of seconds (perhaps with us, ms or s)";
  constexpr uint64_t kNanosPerSecond = 1'000'000'000;
  const double number = TakeNumber<double>(text, kWanted);
  const double factor = static_cast<double>(DurationFactor(text, kNanosPerSecond, kWanted));
  const double value = number * (factor / static_cast<double>(kNanosPerSecond));
  if (std::isnan(value)) throw BadValue(kWanted);
  if (value < min || value > max) throw BadValue(fmt::format("is out of range ({} to {} seconds)", min, max));
  return value;
}

bool ParseBool(std::string_view text) {
  if (text == "1" || text == "true") return true;
  if (text == "0" || text == "false") return false;
  throw BadValue("is neither 0 nor 1");
}

std::string_view NearestName(std::string_view text, std::span<const std::string_view> names) {
  constexpr size_t kTyposMax = 2, kShortestGuessed = 4;
  const std::string wanted = Folded(text);
  std::string_view nearest;
  size_t fewest = wanted.size() < kShortestGuessed ? 0 : kTyposMax;
  for (const std::string_view name : names) {
    const std::string folded = Folded(name);
    const std::string bare = folded.substr(folded.find('_') + 1);  // all of it where there is no prefix
    const size_t typos = std::min(EditDistance(wanted, folded), EditDistance(wanted, bare));
    if (typos > fewest || (typos == fewest && !nearest.empty())) continue;
    nearest = name;
    fewest = typos;
  }
  return nearest;
}

std::string FormatWhole(uint64_t value) {
  constexpr std::array<Suffix, 3> kSizes{{{"G", 1u << 30}, {"M", 1u << 20}, {"K", 1u << 10}}};
  for (const Suffix& s : kSizes) {
    if (value != 0 && value % s.factor == 0) return fmt::format("{}{}", value / s.factor, s.text);
  }
  return fmt::format("{}", value);
}

}  // namespace dbx
