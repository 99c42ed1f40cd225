#include "logging/eleda/central_log.h"

namespace dbx {

CentralLog::CentralLog(LogSet& logs, const LogOptions& options)
    : stream_(logs.stream(0)), method_(options.central_method) {
  switch (method_) {
    case CentralMethod::kEleda:
      eleda_ = std::make_unique<EledaWorker>(stream_, logs.workers(), options.hopping_distance_bytes);
      stream_.SetTracker(*eleda_);
      break;
    case CentralMethod::kMutex:
      stages_.assign(logs.workers(), std::vector<std::byte>(stream_.max_record_bytes()));
      break;
    case CentralMethod::kConsolidation:
      consolidation_ = std::make_unique<ConsolidationArray>(stream_, logs.workers());
      break;
    case CentralMethod::kBitmap:
      bitmap_ = std::make_unique<FillBitmap>(stream_.ring_bytes(), stream_.reserved_until());
      stream_.SetTracker(*bitmap_);
      break;
  }
}

std::optional<CentralCounters> CentralLog::Counters() {
  if (eleda_ == nullptr) return CentralCounters();
  eleda_->CollectAll();
  CentralCounters counters = eleda_->counters();
  counters.callbacks = eleda_->callbacks();
  return counters;
}

}  // namespace dbx
