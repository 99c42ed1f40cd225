// Command lines, one argument per line; an input that starts with '=' is the configuration text of a log header.
// Wrong ones are refused with one line; what is taken reads back from the identity that it writes.
#include "base/error.h"
#include "system/command_line/parse_options.h"
#include "tests/fuzz/fuzz.h"

namespace dbx::fuzz {
namespace {

void CheckError(const Error& error, ExitStatus one, ExitStatus other) {
  Require(error.status() == one || error.status() == other, error.what());
}

void CheckArguments(const std::string& text) {
  std::vector<std::string> arguments{"rundb"};
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) arguments.push_back(text.substr(at, end - at).c_str());
    at = end + 1;
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<std::string> warnings;
  Options options;
  try {
    options = ParseOptions(static_cast<int>(arguments.size()), argv.data(), warnings);
  } catch (const Error& error) {
    return CheckError(error, ExitStatus::kUsage, ExitStatus::kUsage);
  }
  Require(options.thread_cnt > 0 && options.num_logger > 0 && options.num_logger <= format::kMaxLogs &&
              !options.log_dirs.empty() && options.log_buffer_size > 0,
          "options that are not complete");
  const std::string identity = IdentityText(options);
  Options again = DefaultOptions();
  AdoptIdentity(identity, again);
  Require(IdentityText(again) == identity, "an identity that changes when it is read");
  Require(!EffectiveConfiguration(options).empty(), "no configuration");
}

void CheckIdentity(const std::string& text) {
  Options options = DefaultOptions();
  try {
    AdoptIdentity(text, options);
  } catch (const Error& error) {
    return CheckError(error, ExitStatus::kCorrupt, ExitStatus::kMismatch);
  }
  const std::string identity = IdentityText(options);
  Options again = DefaultOptions();
  AdoptIdentity(identity, again);
  Require(IdentityText(again) == identity, "an identity that changes when it is read");
}

}  // namespace
}  // namespace dbx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  text.starts_with('=') ? dbx::fuzz::CheckIdentity(text.substr(1)) : dbx::fuzz::CheckArguments(text);
  return 0;
}
