// Runs the tasks of an initial load on several threads.
//
// Called by the workloads' Load. Which thread runs a task is left to chance, so a task must depend on its
// number alone: that makes a load deterministic whatever the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <vector>

#include "base/host.h"
#include "base/types.h"

namespace dbx {

// Calls task(worker, i) for each i below `task_count`. Each thread is a worker of its own, so that it may create
// rows. The first exception, by thread, is thrown again once all threads have ended.
template <class Task>
void RunLoadTasks(uint32_t threads, uint64_t task_count, const Task& task) {
  Atomic<uint64_t> next_task{0};
  std::vector<std::exception_ptr> failures(std::max(1u, threads));
  const auto work = [&](uint32_t thread) {
    try {
      for (uint64_t i; (i = next_task.fetch_add(1)) < task_count;) task(WorkerId(thread), i);
    } catch (...) {
      failures[thread] = std::current_exception();
      next_task = task_count;
    }
  };
  std::vector<Thread> others;
  for (uint32_t thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (Thread& other : others) other.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace dbx
