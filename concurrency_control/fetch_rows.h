// What every concurrency control does before it takes a key that is not in the index for absent: after a restart the
// row may be elsewhere still (storage/rows_on_demand.h). Of a log whose rows never are (kRowsOnDemand), nothing.
#pragma once

#include "concurrency_control/log_observer.h"
#include "storage/table.h"

namespace dbx {

// Before a row is created.
template <class Log>
void FetchOnMiss([[maybe_unused]] WorkerId worker, [[maybe_unused]] Table& table, [[maybe_unused]] Key key) {
  if constexpr (kRowsOnDemand<Log>) {
    if (table.has_rows_elsewhere()) table.EnsureRow(worker, key);
  }
}
// Before a range is read.
template <class Log>
void FetchForScan([[maybe_unused]] WorkerId worker, [[maybe_unused]] Table& table, [[maybe_unused]] Key low,
                  [[maybe_unused]] Key high) {
  if constexpr (kRowsOnDemand<Log>) {
    if (table.has_rows_elsewhere()) table.EnsureRange(worker, low, high);
  }
}

}  // namespace dbx
