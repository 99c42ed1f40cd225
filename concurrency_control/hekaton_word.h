// The control word of a row under Hekaton (hekaton.h), and of one that is replayed in many versions
// (system/replay/versioned_replay.h):
//
//   bits 0-3    Row::kLocked, kAbsent, kGone, kQueued
//   bit 4       installing: the holder of the lock is overwriting tuple and metadata; the old version is the first of
//               the chain already
//   bits 5-14   the worker that holds the lock
//   bits 15-63  begin: the end timestamp of the newest version's writer
//
// The head of the chain of older versions (storage/version_store.h) is the last word of the row's metadata.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/host.h"
#include "base/types.h"
#include "storage/row.h"
#include "storage/version_store.h"

namespace dbx {

struct HekatonWord {
  static constexpr uint64_t kInstalling = uint64_t{1} << Row::kSharedBits;
  static constexpr int kHolderShift = Row::kSharedBits + 1;
  static constexpr int kHolderBits = 10;
  static constexpr uint64_t kHolderMask = ((uint64_t{1} << kHolderBits) - 1) << kHolderShift;
  static constexpr int kBeginShift = kHolderShift + kHolderBits;

  static constexpr Timestamp Begin(uint64_t control) { return Timestamp(control >> kBeginShift); }
  static WorkerId Holder(uint64_t control) {
    return WorkerId(static_cast<uint32_t>((control & kHolderMask) >> kHolderShift));
  }
  static uint64_t LockedBy(WorkerId worker) { return uint64_t{worker.value()} << kHolderShift | Row::kLocked; }
  // 2^49 timestamps last for years.
  static uint64_t WrittenAt(Timestamp end) {
    ASSERT(end.value() >> (64 - kBeginShift) == 0);
    return end.value() << kBeginShift;
  }
  // The word without the bits that may change while tuple and metadata stay.
  static uint64_t Content(uint64_t control) { return control & ~(Row::kLocked | Row::kQueued | kHolderMask); }
};

inline constexpr size_t kVersionChainBytes = sizeof(Atomic<RowVersion*>);
// Of a row with `log_bytes` of log metadata.
inline Atomic<RowVersion*>& VersionChainOf(Row& row, size_t log_bytes) {
  return *reinterpret_cast<Atomic<RowVersion*>*>(row.cc_part(log_bytes));
}

}  // namespace dbx
