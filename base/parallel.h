// Several threads for one task, with the errors of any of them. For loads, digests and verification, not for workers.
// Where workers are pinned, thread i runs on the CPU of worker i: the memory that it touches first is near that worker.
#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "base/host.h"
#include "base/thread_place.h"

namespace dbx {

// Calls task(i) for each i below `threads`, the first on the caller's thread, each other on one of its own. Returns
// when all have ended. The first exception, by number, is thrown again then. Throws std::system_error where the system
// cannot create a thread; those created before have ended then, the caller's part has not begun.
template <class Task>
void RunInParallel(uint32_t threads, const Task& task) {
  std::vector<std::exception_ptr> errors(threads);
  const auto run = [&](uint32_t i) {
    try {
      const ThreadPlace place = ThreadPlace::OfWorker(i);
      task(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  std::vector<Thread> others;
  for (uint32_t i = 1; i < threads; ++i) others.emplace_back(run, i);
  run(0);
  for (Thread& other : others) other.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace dbx
