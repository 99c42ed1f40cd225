// Tasks in stages, which several workers share: a stage begins once all stages that it waits for are complete. Stages
// that do not wait for each other overlap, and workers then begin with different ones, so that devices and processors
// are busy with both.
//
// Threads: any number, each as another worker.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/host.h"
#include "base/types.h"

namespace dbx {

class StagedWork {
 public:
  struct Stage {
    uint32_t tasks = 0;
    uint32_t waits_for = 0;  // bit i: stage i
  };
  struct Task {
    uint32_t stage;
    uint32_t index;  // in its stage
  };

  explicit StagedWork(const std::vector<Stage>& stages) {
    for (const Stage& stage : stages) {
      CHECK(stage.waits_for >> stages.size() == 0);
      stages_.push_back({stage});
    }
  }

  // A task that may begin, waiting for one if there will be. Nothing: all have begun, or Stop was called.
  std::optional<Task> Take(WorkerId worker) {
    std::unique_lock lock(mutex_);
    std::optional<Task> task;
    changed_.wait(lock, [&] {
      if (stopped_ || AllBegun()) return true;
      task = Choose(worker);
      return task.has_value();
    });
    return task;
  }
  // The task of an earlier Take is done.
  void Complete(const Task& task) {
    {
      const std::lock_guard lock(mutex_);
      ++stages_[task.stage].done;
    }
    changed_.notify_all();
  }
  // No further task begins.
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
  }

 private:
  struct State {
    Stage stage;
    uint32_t begun = 0;
    uint32_t done = 0;
  };

  bool AllBegun() const {
    for (const State& state : stages_) {
      if (state.begun < state.stage.tasks) return false;
    }
    return true;
  }
  bool MayBegin(const State& state) const {
    if (state.begun == state.stage.tasks) return false;
    for (size_t i = 0; i < stages_.size(); ++i) {
      const bool waits = (state.stage.waits_for >> i & 1) != 0;
      if (waits && stages_[i].done < stages_[i].stage.tasks) return false;
    }
    return true;
  }
  std::optional<Task> Choose(WorkerId worker) {
    std::vector<uint32_t> open;
    for (uint32_t i = 0; i < stages_.size(); ++i) {
      if (MayBegin(stages_[i])) open.push_back(i);
    }
    if (open.empty()) return std::nullopt;
    const uint32_t stage = open[worker.value() % open.size()];
    return Task{stage, stages_[stage].begun++};
  }

  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<State> stages_;  // guarded by mutex_, as is the next
  bool stopped_ = false;
};

}  // namespace dbx
