// No logging: the null scheme, and the upper bound of every comparison. Nothing survives a crash.
#pragma once

#include "logging/contract.h"

namespace dbx {

class NoLog {
 public:
  static constexpr LogTraits kTraits = {.name = "LOG_NO",
                                        .scheme = format::Scheme::kNone,
                                        .payload = PayloadKind::kNone,
                                        .logs = false,
                                        .fixed_bytes = 0,
                                        .tracks_reads = false,
                                        .reserve_before_recheck = false,
                                        .single_stream = false,
                                        .replay_order = ReplayOrder::kNone};
  struct TxnState {};

  void Begin(TxnState&) {}
  void OnRead(TxnState&, const RowRef&) {}
  void OnScan(TxnState&, const Table&, Key, Key) {}
  void OnWrite(TxnState&, const RowRef&) {}
  void FreshMeta(Meta) const {}
  void Absorb(Meta, Meta) const {}
  bool Forgettable(Meta) const { return true; }
  static size_t meta_bytes(uint32_t) { return 0; }
  size_t meta_bytes() const { return 0; }

  bool Reserve(TxnState&, const auto&) { return true; }
  void PublishRead(TxnState&, Meta) {}
  void Submit(TxnState&, const auto&) {}
  void Void(TxnState&) {}
  void PublishWrite(TxnState&, Meta) {}
  void Idle(TxnState&) {}

  size_t point_words() const { return 0; }
  void CommitPoint(const TxnState&, uint64_t*) const {}
  void ReadOnlyPoint(const TxnState&, uint64_t*) const {}
  bool IsDurable(const uint64_t*) const { return true; }
  void ThrowIfFailed() const {}
};

}  // namespace dbx
