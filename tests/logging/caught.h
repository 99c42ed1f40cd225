// What an action that must fail says: the status and the line of its Error.
#pragma once

#include <string>

#include "base/error.h"

namespace dbx {

// kOk, and "nothing was thrown" in `what`, if it did not fail after all.
template <class Action>
ExitStatus Caught(Action action, std::string& what) {
  try {
    action();
  } catch (const Error& error) {
    what = error.what();
    return error.status();
  }
  what = "nothing was thrown";
  return ExitStatus::kOk;
}

}  // namespace dbx
