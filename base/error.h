// Errors of users and devices: an exception with one readable line and an exit status. Thrown off the transaction path
// only; main prints `error: <what>` and exits with the status.
#pragma once

#include <stdexcept>
#include <string>

namespace dbx {

enum class ExitStatus : int {
  kOk = 0,
  kUsage = 2,     // a wrong flag or value
  kCorrupt = 3,   // damage to bytes that had been durable
  kIo = 4,        // a device failed
  kNoSpace = 5,   // no space or no memory
  kMismatch = 6,  // a log of another run, scheme, workload, version or number of logs
  kInternal = 7,  // a check or a verification failed
};

class Error : public std::runtime_error {
 public:
  Error(ExitStatus status, const std::string& what) : std::runtime_error(what), status_(status) {}
  ExitStatus status() const { return status_; }

 private:
  ExitStatus status_;
};

}  // namespace dbx
