#include "system/command_line/manual.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "system/command_line/parse_device.h"
#include "system/command_line/parse_options.h"
#include "system/command_line/switches.h"

namespace dbx {
namespace {

constexpr std::string_view kManBegin = R"(.TH RUNDB 1 "" "DBx1000\-Durable" "User Commands"
.SH NAME
rundb, rundb\-all, rundb\-timed \- run transactions with a log, or recover a database from one
.SH SYNOPSIS
.B rundb
.RI [ FLAG ]...
.SH DESCRIPTION
Runs a workload on an in\-memory database under a concurrency control and a log scheme, or recovers the database from
the logs of a run. rundb has the pair of both that config.h names, rundb\-all every pair, rundb\-timed a few pairs that
tell where the workers' time goes.
.PP
Short flags carry their value glued on (\-t4), long ones take \-\-name=value or \-\-name value. Numbers take K, M, G
(2^10, 2^20, 2^30), times ns, us, ms, s. The last flag of a switch counts.
.SH OPTIONS
)";

constexpr std::string_view kManEnd = R"(.SH EXIT STATUS
.TP
.B 0
Everything is as it should be.
.TP
.B 2
A flag makes no sense; nothing was touched.
.TP
.B 3
A log is damaged.
.TP
.B 4
A device or a file failed.
.TP
.B 5
Space or memory ran out.
.TP
.B 6
A log, and a flag or another file of its run, contradict each other.
.TP
.B 7
A check failed, or an assertion.
.TP
.B 130, 143
Ended by SIGINT or SIGTERM before anything was measured.
.SH SEE ALSO
docs/running.md; log_dump, which prints logs.
)";

constexpr std::string_view kCompletionBegin = R"(# Completion of rundb for bash: source <(./rundb --bash_completion)
_rundb() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} flag= values
  # A bash that breaks words at '=' hands it over as a word of its own.
  if [[ $word == = ]]; then
    flag=$before word=
  elif [[ $before == = ]]; then
    flag=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $word != -* ]]; then
    flag=$before
  fi
  case $flag in
)";

constexpr std::string_view kCompletionEnd = R"(  esac
  if [[ -v values ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
    [[ ${#COMPREPLY[@]} == 1 && $COMPREPLY == *= ]] && compopt -o nospace 2> /dev/null
  fi
  return 0
}
complete -F _rundb rundb rundb-all rundb-timed
)";

// troff's own characters in running text.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

std::string FlagOf(const Switch& s, std::string_view flag, std::string_view between) {
  if (s.kind == SwitchKind::kBare || s.value.empty()) return fmt::format("\\fB{}\\fR", Escaped(flag));
  return fmt::format("\\fB{}\\fR{}\\fI{}\\fR", Escaped(flag), between, Escaped(s.value));
}

std::string ManEntry(const Switch& s, const Options& defaults) {
  std::string entry = ".TP\n" + FlagOf(s, "--" + s.LongName(), "=");
  if (!s.flag.empty()) entry += ", " + FlagOf(s, fmt::format("-{}", s.flag), "");
  entry += "\n" + Escaped(s.help);
  if (!s.built.empty()) entry += Escaped(fmt::format(": {}", fmt::join(s.built, ", ")));
  entry += ".";
  const std::string value = FormatSwitch(s, defaults);
  if (!value.empty() && s.kind != SwitchKind::kBare) entry += Escaped(fmt::format(" Default: {}.", value));
  return entry + "\n";
}

std::string DeviceNames() {
  std::string names = kRealDevice;
  for (const NamedProfile& named : kDeviceProfiles) names += fmt::format(" {}", named.name);
  return names;
}

// What completes the value of a switch: words, files or directories.
std::string CompletionOf(const Switch& s) {
  switch (s.kind) {
    case SwitchKind::kBool:
      return "values='0 1'";
    case SwitchKind::kChoice:
      return fmt::format("values='{}'", fmt::join(s.built, " "));
    case SwitchKind::kCpus:
      return "values='none compact scatter'";
    case SwitchKind::kDevice:
      return fmt::format("values='{}'", DeviceNames());
    case SwitchKind::kList:
      return "COMPREPLY=($(compgen -d -- \"$word\")); return 0";
    case SwitchKind::kText:
      return "COMPREPLY=($(compgen -f -- \"$word\")); return 0";
    default:
      return "values=";
  }
}

}  // namespace

std::string ManPage() {
  const Options defaults = DefaultOptions();
  std::string page(kManBegin), ignored;
  for (const Switch& s : Switches()) {
    if (s.kind != SwitchKind::kIgnored) {
      page += ManEntry(s, defaults);
    } else {
      const std::string flag = s.flag.empty() ? "--" + s.LongName() : fmt::format("-{}", s.flag);
      ignored += fmt::format(".TP\n\\fB{}\\fR ({})\n{}.\n", Escaped(flag), Escaped(s.name), Escaped(s.help));
    }
  }
  page += ".SH FLAGS WITHOUT EFFECT\nAccepted for the sake of DBx1000 and its forks.\n" + ignored;
  return page + std::string(kManEnd);
}

std::string BashCompletion() {
  std::string script(kCompletionBegin), flags;
  for (const Switch& s : Switches()) {
    if (s.kind == SwitchKind::kIgnored) continue;
    const bool has_value = s.kind != SwitchKind::kBare;
    flags += fmt::format(" --{}{}", s.LongName(), has_value && s.kind != SwitchKind::kBool ? "=" : "");
    if (has_value) fmt::format_to(std::back_inserter(script), "    --{}) {} ;;\n", s.LongName(), CompletionOf(s));
  }
  fmt::format_to(std::back_inserter(script), "    *) local flags='{}' ;;\n", flags.substr(1));
  return script + std::string(kCompletionEnd);
}

}  // namespace dbx
