// A command line as tests write it: parsed, or refused.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "system/command_line/parse_options.h"

namespace dbx {

// Those of the last Parse.
inline std::vector<std::string> warnings;

inline Options Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "rundb");
  std::vector<char*> argv;
  for (auto& a : arguments) argv.push_back(a.data());
  warnings.clear();
  return ParseOptions(static_cast<int>(argv.size()), argv.data(), warnings);
}

// The message, one line, with which a command line is refused; empty if it is not.
inline std::string Refusal(const std::vector<std::string>& arguments, ExitStatus status = ExitStatus::kUsage) {
  try {
    Parse(arguments);
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), status);
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  }
  return {};
}

#define EXPECT_REFUSED(what, ...) EXPECT_NE(Refusal(__VA_ARGS__).find(what), std::string::npos) << Refusal(__VA_ARGS__)

}  // namespace dbx
