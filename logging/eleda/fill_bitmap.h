// A bit for every unit of the ring, set when it is filled and found by a linear scan: the simple way to track LSN holes
// with which the ELEDA paper compares (section 6.5.4). The paper has a bit per byte; a unit is here the alignment of
// records.
//
// A bit is cleared when the scan passes it. No filler sets it for the next lap before that: the place is free only when
// its old bytes are durable, hence scanned.
//
// Threads: Filled: any. The rest: the stream's writer, which does the scan.
#pragma once

#include <cstdint>
#include <vector>

#include "base/host.h"
#include "logging/fill_tracker.h"
#include "logging/format.h"

namespace dbx {

class FillBitmap final : public FillTracker {
 public:
  // `ring_bytes` is a power of two.
  FillBitmap(uint64_t ring_bytes, Lsn start_lsn);

  void Filled(const LogPlace& place);

  void FilledByWriter(const LogPlace& place) override { Filled(place); }
  Lsn FilledUntil() const override { return Lsn(scanned_until_ * kUnitBytes); }
  void CatchUp() override;

 private:
  static constexpr uint64_t kUnitBytes = format::kRecordAlignment;
  static constexpr uint64_t kWordBits = 64;

  Atomic<uint64_t>& WordOf(uint64_t unit) { return words_[unit / kWordBits & (words_.size() - 1)]; }

  std::vector<Atomic<uint64_t>> words_;
  uint64_t scanned_until_;  // in units
};

}  // namespace dbx
