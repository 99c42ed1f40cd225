// The central log (ELEDA) and its competitors: four ways to reserve and to fill a place in one stream, of which
// CENTRAL_LOG chooses one when a run starts. The resulting log is the same.
//
//   kEleda          fetch-and-add, fill in place; GRASSHOPPER tracks the filled places
//   kMutex          the classical one (ELEDA, section 2.2.1): lock, LSN, copy, unlock. The record and its body's
//                   checksum are built before the lock is taken, so that only the copy is done under it. Under command
//                   logging, where LSNs order reads, it is held over their validation, which never waits.
//   kConsolidation  Aether's consolidation array (consolidation_array.h)
//   kBitmap         fetch-and-add, fill in place, a bit for every unit that is filled (fill_bitmap.h; section 6.5.4)
//
// Threads: as LogStream.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "logging/central_counters.h"
#include "logging/central_methods.h"
#include "logging/eleda/consolidation_array.h"
#include "logging/eleda/eleda_worker.h"
#include "logging/eleda/fill_bitmap.h"
#include "logging/log_options.h"
#include "logging/log_set.h"

namespace dbx {

class CentralLog {
 public:
  static constexpr std::string_view kName = "LOG_ELEDA";
  static constexpr format::Scheme kScheme = format::Scheme::kEleda;
  // SDL is recorded in the log itself (section 4.3).
  static constexpr bool kHasAnchors = true;
  static constexpr bool kRowCheckpoints = false;

  CentralLog(LogSet& logs, const LogOptions& options);

  // Where a record is built before its place is known; nullptr: in its place.
  std::byte* StageFor(uint32_t worker, uint32_t bytes) {
    if (method_ != CentralMethod::kMutex) return nullptr;
    ASSERT(bytes <= stages_[worker].size());
    return stages_[worker].data();
  }

  LogPlace Reserve(uint32_t worker, uint32_t bytes) {
    switch (method_) {
      case CentralMethod::kEleda:
        eleda_->MakeSpace(worker);
        return stream_.ReserveTracked(worker, bytes);
      case CentralMethod::kMutex:
        return ReserveLocked(worker, bytes);
      case CentralMethod::kConsolidation:
        return consolidation_->Reserve(worker, bytes);
      case CentralMethod::kBitmap:
        break;
    }
    return stream_.ReserveTracked(worker, bytes);
  }

  void Submit(uint32_t worker, const LogPlace& place) {
    stream_.CountRecord(worker, place);
    Finish(worker, place, true);
  }
  void Void(uint32_t worker, const LogPlace& place) {
    stream_.FillVoid(worker, place);
    Finish(worker, place, false);
  }

  std::optional<CentralCounters> Counters();

 private:
  LogPlace ReserveLocked(uint32_t worker, uint32_t bytes) {
    std::unique_lock lock(mutex_);
    const LogPlace place = stream_.Reserve(worker, bytes);
    lock.release();  // Finish unlocks it
    return place;
  }

  void Finish(uint32_t worker, const LogPlace& place, bool awaited) {
    switch (method_) {
      case CentralMethod::kEleda:
        return eleda_->Filled(worker, place, awaited);
      case CentralMethod::kMutex:
        stream_.Finish(worker);
        return mutex_.unlock();
      case CentralMethod::kConsolidation:
        return consolidation_->Finish(worker, place);
      case CentralMethod::kBitmap:
        bitmap_->Filled(place);
        return stream_.WakeSleepingWriter();
    }
  }

  LogStream& stream_;
  const CentralMethod method_;
  std::unique_ptr<EledaWorker> eleda_;
  std::unique_ptr<ConsolidationArray> consolidation_;
  std::unique_ptr<FillBitmap> bitmap_;
  Mutex mutex_;
  std::vector<std::vector<std::byte>> stages_;  // one per worker
};

}  // namespace dbx
