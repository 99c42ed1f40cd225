// The manual page of rundb and its bash completion, made from the table of switches.
#pragma once

#include <string>

namespace dbx {

// In troff's man macros: rundb --man_page | man -l -
std::string ManPage();

// For an interactive bash: source <(./rundb --bash_completion)
std::string BashCompletion();

}  // namespace dbx
