// Prints the progress of a long step on standard error. A short step prints nothing.
//
// Used by one thread. The lines are for people; no program parses them.
#pragma once

#include <cstdint>
#include <string>

namespace dbx {

class SlowProgress {
 public:
  // `step` begins the line, `advice` ends it. `total_bytes` is the sum of all Advance calls.
  SlowProgress(std::string step, std::string advice, uint64_t total_bytes, uint64_t now_nanos);

  // The line to print now, if one is due: the first after 2 s, then one every 5 s; empty otherwise.
  std::string Advance(uint64_t bytes, uint64_t now_nanos);

 private:
  const std::string step_;
  const std::string advice_;
  const uint64_t total_bytes_;
  const uint64_t begin_nanos_;
  uint64_t due_nanos_;
  uint64_t done_bytes_ = 0;
};

}  // namespace dbx
