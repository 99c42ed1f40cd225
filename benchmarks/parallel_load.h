// Runs the tasks of an initial load on several threads.
//
// Called by the workloads' Load. Any thread may run a task, so a task must depend on its number alone: that makes a
// load deterministic for any number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/host.h"
#include "base/parallel.h"
#include "base/types.h"

namespace dbx {

// Calls task(worker, i) for each i below `task_count`. Each thread is a worker of its own, so that it may create
// rows. The first exception, by thread, is thrown again once all threads have ended.
template <class Task>
void RunLoadTasks(uint32_t threads, uint64_t task_count, const Task& task) {
  Atomic<uint64_t> next_task{0};
  RunInParallel(std::max(1u, threads), [&](uint32_t thread) {
    try {
      for (uint64_t i; (i = next_task.fetch_add(1)) < task_count;) task(WorkerId(thread), i);
    } catch (...) {
      next_task = task_count;
      throw;
    }
  });
}

}  // namespace dbx
