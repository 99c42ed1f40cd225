#include "system/command_line/manual.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "logging/device/device_profile.h"
#include "system/command_line/switches.h"

namespace dbx {
namespace {

std::vector<std::string> LinesOf(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

size_t CountOf(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(ManPageTest, EveryLineThatBeginsWithADotIsARequest) {
  const std::set<std::string> requests = {".TH", ".SH", ".TP", ".PP", ".B", ".RI"};
  for (const std::string& line : LinesOf(ManPage())) {
    EXPECT_FALSE(line.starts_with('\'')) << line;
    const bool is_request = requests.contains(line.substr(0, line.find(' ')));
    EXPECT_EQ(line.starts_with('.'), is_request) << line;
  }
}

TEST(ManPageTest, EachSwitchHasOneEntry) {
  const std::string page = ManPage();
  for (const Switch& s : Switches()) {
    if (s.kind == SwitchKind::kIgnored) continue;
    std::string name = "\n\\fB\\-\\-" + s.LongName() + "\\fR";
    EXPECT_EQ(CountOf(page, name), 1u) << s.name;
  }
}

TEST(BashCompletionTest, KnowsEverySwitchThatHasAnEffect) {
  const std::string script = BashCompletion();
  for (const Switch& s : Switches()) {
    const bool has_effect = s.kind != SwitchKind::kIgnored;
    EXPECT_EQ(CountOf(script, "\n    --" + s.LongName() + ") ") > 0, has_effect && s.kind != SwitchKind::kBare)
        << s.name;
  }
}

TEST(BashCompletionTest, OffersEveryDevice) {
  std::string devices = "values='real";
  for (const NamedProfile& named : kDeviceProfiles) devices += " " + std::string(named.name);
  EXPECT_EQ(CountOf(BashCompletion(), devices + "'"), 1u);
}

}  // namespace
}  // namespace dbx
