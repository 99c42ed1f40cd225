// LSN vectors next to rows: the vector of a row's last writer (writeLV, Taurus, section 3.1). Schemes whose records
// order write-read and write-write dependencies and no anti-dependencies need no other; the others keep one of the
// readers, too (readLV).
//
// A transaction's vector is raised by those of the rows that it reads and writes; it is durable once all logs are
// durable up to its elements. A vector of zeros depends on nothing.
//
// Threads: as the contract of a log scheme says (contract.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>

#include "logging/log_set.h"
#include "logging/lsn_vector.h"
#include "storage/row.h"

namespace dbx {

class LvMetadata {
 public:
  // `forget_delta_bytes`: a vector is forgettable once it is durable and this far behind.
  LvMetadata(const LogSet& logs, uint64_t forget_delta_bytes)
      : durable_(logs.durable()), n_(logs.count()), forget_delta_bytes_(forget_delta_bytes) {}

  static constexpr size_t bytes(uint32_t logs) { return logs * sizeof(uint64_t); }

  void Raise(uint64_t* lv, Meta meta) const { lv::Raise(lv, Words(meta), n_); }
  void Publish(Meta meta, const uint64_t* lv) const { lv::StoreShared(Words(meta), lv, n_); }
  // Of a row whose vector may have been forgotten: what was forgotten is no larger. It is durable, so that nothing
  // waits for it; but where a log is damaged, so that it seems to end below, what depends on it must not be recovered.
  void Fresh(Meta meta) const {
    for (uint32_t j = 0; j < n_; ++j) {
      const uint64_t durable = lv::Load(durable_.lsn[j]);
      lv::Store(Words(meta)[j], durable - std::min(durable, forget_delta_bytes_));
    }
  }
  void Absorb(Meta into, Meta from) const {
    uint64_t words[format::kMaxLogs];
    for (uint32_t j = 0; j < n_; ++j) words[j] = lv::Load(Words(from)[j]);
    lv::RaiseShared(Words(into), words, n_);
  }
  bool Forgettable(Meta meta) const {
    for (uint32_t j = 0; j < n_; ++j) {
      const uint64_t newest = lv::Load(Words(meta)[j]);
      // Zero depends on nothing. Beyond that the sum cannot wrap: LSNs stay below 2^63.
      if (newest != 0 && newest + forget_delta_bytes_ > lv::Load(durable_.lsn[j])) return false;
    }
    return true;
  }

 private:
  static uint64_t* Words(Meta meta) { return reinterpret_cast<uint64_t*>(meta); }

  const DurableVector& durable_;
  const uint32_t n_;
  const uint64_t forget_delta_bytes_;
};

// LV compression (Taurus, section 4.1 and Alg. 5): the last anchor in each log. Records behind it omit the elements of
// their vectors that it covers.
class LvAnchors {
 public:
  LvAnchors(LogSet& logs, bool compress)
      : logs_(logs), compress_(compress), lplv_(std::make_unique<DurableVector[]>(logs.count())) {}

  // The elements of `lv` that a record in `log` stores; before its place is reserved, so that the anchor precedes it.
  uint32_t StoredMask(const uint64_t* lv, uint32_t log) const {
    const uint32_t n = logs_.count();
    return compress_ ? lv::Exceeds(lv, lplv_[log].lsn, n) : (1u << n) - 1;
  }

  // On the stream's writer. Records may rely on the anchor only once its place is reserved, and it holds the durable
  // vector as it was before.
  void Append(LogStream& stream) {
    const uint32_t n = logs_.count();
    DurableVector durable;
    for (uint32_t j = 0; j < n; ++j) durable.lsn[j] = lv::Load(logs_.durable().lsn[j]);
    if (!stream.AppendOwn(format::RecordKind::kAnchor, {durable.lsn, n})) return;
    for (uint32_t j = 0; j < n; ++j) lv::Store(lplv_[stream.index()].lsn[j], durable.lsn[j]);
  }

  // The stored elements of `lv`; element `own` as it was before the record's own place was merged. Returns the place
  // behind them.
  static std::byte* Encode(const uint64_t* lv, uint32_t mask, uint32_t own, uint64_t own_dependency, std::byte* to) {
    for (; mask != 0; mask &= mask - 1) {
      const auto j = static_cast<uint32_t>(std::countr_zero(mask));
      const uint64_t element = j == own ? own_dependency : lv[j];
      std::memcpy(to, &element, sizeof element);
      to += sizeof element;
    }
    return to;
  }

 private:
  LogSet& logs_;
  const bool compress_;
  std::unique_ptr<DurableVector[]> lplv_;  // by log
};

}  // namespace dbx
