// The middle stage of ELEDA's pipeline (section 3.1): fillers -> the ELEDA worker, which advances SBL -> the stream's
// writer, which flushes up to SBL and so advances SDL.
//
// The worker is a thread that sleeps until the writer requests SBL: before a flush, when it waits for the result, and
// as a flush starts, so that the records that follow are tracked while the device is busy. Fillers never wake it.
//
// Threads: MakeSpace, Filled: any worker, with its own list. FilledByWriter, CatchUp, LookAhead, Start, Stop: the
// stream's writer, which is one more producer. FilledUntil: any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "base/host.h"
#include "logging/eleda/grasshopper.h"
#include "logging/eleda/grasshopper_list.h"
#include "logging/eleda/hopping_index.h"
#include "logging/fill_tracker.h"
#include "logging/log_stream.h"

namespace dbx {

class EledaWorker final : public FillTracker {
 public:
  EledaWorker(LogStream& stream, uint32_t workers, uint64_t hopping_distance);
  ~EledaWorker() override { Stop(); }

  // Makes room for one more place of this worker; waits for SDL if all are taken. Before the place is reserved: a hole
  // would block SDL. Throws the device's Error once the log has failed.
  void MakeSpace(uint32_t worker) {
    Collect(worker);
    if (!lists_[worker]->HasSpace()) AwaitSpace(worker);
  }
  // The worker's place is filled; `awaited` if a transaction waits for it.
  void Filled(uint32_t worker, const LogPlace& place, bool awaited) {
    lists_[worker]->Enqueue(place, awaited);
    stream_.WakeSleepingWriter();
  }

  void Start() override;
  void Stop() override;
  void FilledByWriter(const LogPlace& place) override;
  Lsn FilledUntil() const override { return grasshopper_.sbl(); }
  void CatchUp() override;
  void LookAhead() override;

  // After Stop.
  CentralCounters counters() const { return grasshopper_.counters(); }
  // After Stop: calls back for all durable places.
  void CollectAll();
  uint64_t callbacks() const;

 private:
  // A producer's state besides its list.
  struct alignas(kNoSharingBytes) Producer {
    uint64_t callbacks = 0;
  };

  void Collect(uint32_t producer) {
    const Lsn sdl = stream_.persistent_until();
    // The paper's Spec 2. SBL is loaded second: it may be beyond SDL by then, and never behind it.
    ASSERT(sdl <= grasshopper_.sbl());
    lists_[producer]->Collect(sdl, [&](Lsn) { ++producers_[producer].callbacks; });
  }
  void AwaitSpace(uint32_t worker);
  uint32_t writers_list() const { return static_cast<uint32_t>(lists_.size()) - 1; }
  void Loop();

  LogStream& stream_;
  HoppingIndex index_;
  std::vector<std::unique_ptr<GrasshopperList>> lists_;  // one per worker, and the writer's
  std::vector<Producer> producers_;
  Grasshopper grasshopper_;

  Mutex mutex_;
  ConditionVariable wake_;
  ConditionVariable done_;
  // Guarded by mutex_: how often SBL was requested, and how many of these requests have been served.
  uint64_t requested_ = 0;
  uint64_t served_ = 0;
  bool stop_ = false;
  Thread thread_;
};

}  // namespace dbx
