// A log scheme whose workers pay for reads of persistent memory (PM_READS), as if rows lay in memory that is slower
// than DRAM: loads cannot be delayed, so that a worker spins instead, once for each row that it accesses and that is
// not among the last that it accessed (Arulraj et al., PVLDB 10(4), 2016, section 7.6).
//
// The charge is an estimate: a row costs one latency whatever its size, look-ahead, which fetches the rows of later
// transactions meanwhile, hides none of it, and neither stores into new versions nor the log's own reads cost any.
// Without it reads cost what DRAM costs, which is the least.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/host.h"
#include "base/random.h"
#include "logging/contract.h"
#include "storage/table.h"

namespace dbx {

// Which rows a worker accessed last, and what others cost it. Owned by one worker.
class ReadCharges {
 public:
  // Rows of about 1 KB: what a share of the last level's cache holds.
  static constexpr uint64_t kCachedRows = 4096;

  void SetNanos(uint64_t nanos) { nanos_ = nanos; }

  void Access(TableId table, Key key) {
    if (nanos_ == 0 || IsCached(table, key)) return;
    ++charged_;
    const uint64_t until = Clock::NowNanos() + nanos_;
    while (Clock::NowNanos() < until) host::Pause();
  }

  uint64_t charged() const { return charged_; }  // accesses

 private:
  // More than rows, so that two of them seldom want the same one; then the older row counts as forgotten.
  static constexpr size_t kEntries = 2 * kCachedRows;
  struct Entry {
    uint32_t row = 0;     // a part of its hash
    uint32_t number = 0;  // of the access, modulo 2^32
  };

  bool IsCached(TableId table, Key key) {
    const uint64_t hash = Mix64(key ^ Mix64(table.value()));
    const auto row = static_cast<uint32_t>(hash >> 32);
    Entry& entry = entries_[hash % kEntries];
    ++accesses_;
    const bool is_cached = entry.row == row && accesses_ - entry.number <= kCachedRows;
    entry = {row, accesses_};
    return is_cached;
  }

  uint64_t nanos_ = 0;
  uint64_t charged_ = 0;
  uint32_t accesses_ = kCachedRows;  // entries that were never used are old
  std::array<Entry, kEntries> entries_{};
};

template <LogScheme Log>
class ChargedReads : public Log {
 public:
  struct TxnState : Log::TxnState {
    ReadCharges charges;
  };

  using Log::Log;

  void OnRead(TxnState& state, const RowRef& row) {
    state.charges.Access(row.table.id(), row.key);
    Log::OnRead(state, row);
  }
  void OnWrite(TxnState& state, const RowRef& row) {
    state.charges.Access(row.table.id(), row.key);
    Log::OnWrite(state, row);
  }
};

}  // namespace dbx
