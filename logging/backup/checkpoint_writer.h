// Writes the checkpoints of a run, one after the other, for the thread that takes them (checkpointer.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "logging/backup/checkpoint_counters.h"

namespace dbx {

class CheckpointWriter {
 public:
  enum class Outcome : uint8_t { kComplete, kNoSpace, kGivenUp };

  virtual ~CheckpointWriter() = default;

  // The next checkpoint. It is given up, and nothing names it, if `stopped` says that the run ends, or if the log has
  // failed. Throws Error of the files. No other may follow then, or after one given up.
  virtual Outcome Write(const std::function<bool()>& stopped) = 0;

  // Why there was no space, the last time.
  virtual const std::string& no_space_because() const = 0;
  // The logs were to be truncated, and their file system cannot do it.
  virtual bool cannot_discard() const = 0;
  // Sets the counters of what was written since the run began, by failed checkpoints too.
  virtual void CountInto(CheckpointCounters& counters) const = 0;
};

}  // namespace dbx
