// How far a recovery has read its logs, as lines on standard error with the time that is left. How long a log is shows
// at its end only: its file may be longer, zero-filled for writes that did not come. So the lines name the most.
//
// Threads: the recovery's read its logs, each log one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/host.h"
#include "logging/device/block_device.h"
#include "logging/log_reader.h"
#include "system/runs/slow_progress.h"

namespace dbx {

class ReadProgress {
 public:
  struct Surroundings {
    std::function<uint64_t()> now_nanos;
    std::function<void(const std::string&)> print;
  };
  static Surroundings OfProcess();

  // `logs` are of run number `run`; each is read `times` times at most.
  ReadProgress(std::vector<LogSource> logs, uint32_t run, uint64_t times, Surroundings surroundings = OfProcess());
  ~ReadProgress();
  ReadProgress(const ReadProgress&) = delete;
  ReadProgress& operator=(const ReadProgress&) = delete;

  // The logs, over devices that count what is read of them, for as long as this lives.
  const std::vector<LogSource>& logs() const { return logs_; }

 private:
  class CountedDevice;

  void Advance(uint64_t bytes);

  const Surroundings surroundings_;
  std::vector<LogSource> logs_;
  std::vector<std::unique_ptr<BlockDevice>> devices_;
  Mutex mutex_;
  SlowProgress progress_;
};

}  // namespace dbx
