// The engine's strong types: numbers that must never be mixed up are different types.
//
// Used by every folder. All of them are trivially copyable and as cheap as the integer inside.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace dbx {

// An integer that only compares with its own kind. `Tag` names the kind.
template <class Tag, class Rep = uint64_t>
class StrongInt {
 public:
  using rep_type = Rep;
  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(StrongInt, StrongInt) = default;

 private:
  Rep value_ = 0;
};

// A byte position in one log stream. The LSN of a record, as a commit point, is the position just
// behind the record: the record is durable once its stream is durable up to there. 64 bits never wrap.
using Lsn = StrongInt<struct LsnTag>;
// Positions are so many bytes apart.
constexpr Lsn operator+(Lsn at, uint64_t bytes) { return Lsn(at.value() + bytes); }
constexpr Lsn& operator+=(Lsn& at, uint64_t bytes) { return at = at + bytes; }
constexpr uint64_t operator-(Lsn end, Lsn begin) { return end.value() - begin.value(); }

using Epoch = StrongInt<struct EpochTag>;
// A transaction's number in the order of commits, with its epoch in it (base/epoch.h).
using Tid = StrongInt<struct TidTag>;
// A read or commit timestamp of a transaction, under a concurrency control that orders by timestamps.
using Timestamp = StrongInt<struct TimestampTag>;
// Orders records of different logs: Plover's GSN, Silo-R's TID, or the end timestamp of a command under multi-version
// replay. A run that continues another one has larger stamps, so its TIDs and timestamps start above them.
using Stamp = StrongInt<struct StampTag>;
constexpr Stamp StampOf(Tid tid) { return Stamp(tid.value()); }
constexpr Stamp StampOf(Timestamp end) { return Stamp(end.value()); }
constexpr Tid TidOf(Stamp stamp) { return Tid(stamp.value()); }
constexpr Timestamp TimestampOf(Stamp stamp) { return Timestamp(stamp.value()); }

using StreamId = StrongInt<struct StreamIdTag, uint32_t>;
using WorkerId = StrongInt<struct WorkerIdTag, uint32_t>;
using TableId = StrongInt<struct TableIdTag, uint16_t>;
using ProcedureId = StrongInt<struct ProcedureIdTag, uint16_t>;

// A primary key. Composite keys are packed into 64 bits by the workload that owns the table.
using Key = uint64_t;

// The name of a transaction: the worker that first ran it and its place among that worker's transactions. It is part of
// the arguments and of every record, so that replay is independent of the thread that runs it.
struct TxnId {
  static constexpr int kSequenceBits = 48;

  uint64_t value = 0;

  static constexpr TxnId Make(WorkerId worker, uint64_t sequence) {
    return TxnId{(uint64_t{worker.value()} << kSequenceBits) | sequence};
  }
  constexpr WorkerId worker() const { return WorkerId(static_cast<uint32_t>(value >> kSequenceBits)); }
  constexpr uint64_t sequence() const { return value & ((uint64_t{1} << kSequenceBits) - 1); }
  friend constexpr auto operator<=>(TxnId, TxnId) = default;
};

}  // namespace dbx

template <class Tag, class Rep>
struct std::hash<dbx::StrongInt<Tag, Rep>> {
  size_t operator()(dbx::StrongInt<Tag, Rep> v) const { return std::hash<Rep>()(v.value()); }
};
template <>
struct std::hash<dbx::TxnId> {
  size_t operator()(dbx::TxnId id) const { return std::hash<uint64_t>()(id.value); }
};
