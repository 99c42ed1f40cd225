// Where the threads of this process run: a Placement (base/placement.h), carried out.
//
// PlacedThreads is main's, from before the first thread of a run to behind its last. Each thread with a place takes it
// by itself, as its first action: workers and the threads of loads, digests and replays as ThreadPlace::OfWorker, log
// writers as OfWriter. All other threads keep the CPUs that the process was given. A thread inherits the place of the
// one that creates it: one that is created by a worker, and is none, gives it back by OfProcess. Without PlacedThreads,
// and in the simulation (base/affinity.h), all of this does nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/placement.h"

namespace dbx {

class PlacedThreads {
 public:
  explicit PlacedThreads(Placement placement);
  ~PlacedThreads();
  PlacedThreads(const PlacedThreads&) = delete;
  PlacedThreads& operator=(const PlacedThreads&) = delete;

  const Placement& placement() const { return placement_; }

 private:
  friend class ThreadPlace;

  Placement placement_;
  std::vector<uint32_t> process_cpus_;
};

// The calling thread has this place until the object goes out of scope; then it has its former one again.
class ThreadPlace {
 public:
  // Of the thread that does the work of worker `worker`; that of the process, if there are fewer workers. The first
  // three throw Error(kUsage) if the system refuses, which has taken the CPU away since.
  static ThreadPlace OfWorker(uint32_t worker);
  // Of a log writer, if it is pinned.
  static ThreadPlace OfWriter(uint32_t writer);
  // On the node on which the log buffers of a writer should lie: they are where the thread is that touches them first.
  static ThreadPlace NearBuffersOf(uint32_t writer);
  // Anywhere in the CPUs of the process.
  static ThreadPlace OfProcess();

  ~ThreadPlace();
  ThreadPlace(const ThreadPlace&) = delete;
  ThreadPlace& operator=(const ThreadPlace&) = delete;

 private:
  explicit ThreadPlace(uint32_t cpu);
  // Empty: nothing changes.
  explicit ThreadPlace(std::span<const uint32_t> cpus);
  // 0, or errno.
  int Move(std::span<const uint32_t> cpus);

  std::vector<uint32_t> before_;  // empty: nothing has changed
};

}  // namespace dbx
