// Write-ahead logging for instant recovery (Graefe, Sauer, Haerder: instant restart by single-page repair; as an
// on-demand redo of single tuples in Arulraj, Perron, Pavlo: Write-Behind Logging, PVLDB 10(4), 2016, section 7.8): the
// run side. One stream, filled as that of serial logging.
//
// A record has an entry for each row of its transaction's write set: the tuple of an insert, the changed byte ranges of
// an update, nothing for a delete; and the LSN of the row's previous record in this log, which the row's metadata keeps
// (0: it has none in this run). So the records of a row are a chain. A restart may rebuild a single row from its chain
// when it is needed (system/replay/row_chains.h), or replay all records in their order.
//
// Metadata changes with the row locked, between the two rows' locks that order their records. An insert and a delete
// need no record before them, so the chain of a key that is deleted, unlinked and inserted again may end at the insert:
// a tombstone's metadata is forgettable at any time, that of a present row never. The gaps of leaves have none.
#pragma once

#include <cstring>
#include <type_traits>

#include "logging/instant/row_change_payload.h"
#include "logging/row_changes.h"
#include "logging/stream_places.h"
#include "logging/total_order_log.h"

namespace dbx {

struct InstantPlaces : StreamPlaces {
  static constexpr std::string_view kName = "LOG_INSTANT";
  static constexpr format::Scheme kScheme = format::Scheme::kInstant;
  static constexpr bool kHasAnchors = false;
  static constexpr bool kRowCheckpoints = false;

  using StreamPlaces::StreamPlaces;
};

// Commands have no rows to chain, and are refused by rule.
template <class Payload>
using PayloadOfChains = std::conditional_t<Payload::kKind == PayloadKind::kData, RowChangePayload, Payload>;

template <class Payload>
class InstantLog : public TotalOrderLog<PayloadOfChains<Payload>, InstantPlaces> {
 public:
  using Base = TotalOrderLog<PayloadOfChains<Payload>, InstantPlaces>;
  using TxnState = typename Base::TxnState;
  static constexpr LogTraits kTraits = [] {
    LogTraits traits = Base::kTraits;
    traits.row_chains = true;
    return traits;
  }();

  using Base::Base;

  static constexpr size_t meta_bytes(uint32_t /*logs*/) { return sizeof(RowLink); }
  static size_t meta_bytes() { return sizeof(RowLink); }

  void OnRead(TxnState&, const RowRef&) {}
  void OnWrite(TxnState&, const RowRef&) {}
  // That the row has no record.
  void FreshMeta(Meta meta) const { std::memset(meta, 0, sizeof(RowLink)); }
  void Absorb(Meta, Meta) const {}
  bool Forgettable(Meta) const { return true; }
  void PublishWrite(TxnState& state, Meta meta) {
    const RowLink last(state.place.lsn);
    std::memcpy(meta, &last, sizeof last);
  }
};

}  // namespace dbx
