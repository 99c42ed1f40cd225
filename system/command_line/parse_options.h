// From the command line to Options, and from Options to text: -h, -S, the JSON configuration and the configuration text
// of a log's header. All of it comes from the table of switches (switches.h); the defaults are config.h's.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "system/command_line/options.h"

namespace dbx {

// The defaults of config.h, for programs and tests that take no command line. ParseOptions starts from it.
Options DefaultOptions();

// Parses the command line over the defaults of config.h. Throws Error(kUsage). The last flag of a switch counts.
// Appends to `warnings` a line for each flag that has no effect (of DBx1000 and its forks, set again later, of runs in
// a recovery) and each size that had to be made to fit.
// The result is complete and consistent: no size is 0, log_dirs and number_of_disks agree.
Options ParseOptions(int argc, char** argv, std::vector<std::string>& warnings);

// "NAME=value\n" lines of the switches that the meaning of a log depends on (workload, sizes, load seed, CC, scheme,
// whether it was synced).
std::string IdentityText(const Options& options);

// Takes the identity of a log into `options`. Throws Error(kMismatch), naming switch and both values, when a
// switch in `options.given` contradicts it or the text lacks one, and Error(kCorrupt) when the text does not parse.
// The other switches stay as they are.
void AdoptIdentity(const std::string& identity_text, Options& options);

// Every switch with its effective value, in the table's order: name, value as text.
std::vector<std::pair<std::string, std::string>> EffectiveConfiguration(const Options& options);

// Is the effective value of the switch `name` (as in config.h) a number?
bool SwitchIsNumeric(const std::string& name);

std::string HelpText();

}  // namespace dbx
