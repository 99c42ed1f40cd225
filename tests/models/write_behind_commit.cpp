// The steps of a group commit and of the collector, and when a transaction is acknowledged.
#include <algorithm>
#include <bit>

#include "tests/models/write_behind_model.h"

namespace dbx::models::write_behind {

// ---- A group ----

bool Model::TakeCommitStep(State& state, std::string* text) const {
  Committer& my = state.committer;
  switch (my.pc) {
    case Committer::kIdle:
      return StartGroup(state, text);
    case Committer::kClock:
    case Committer::kWords:
      return LoadForGroup(state, text);
    case Committer::kWriteBack:
      return WriteBackDirty(state, text);
    case Committer::kDrain:
      Drain(state, kCommitter);
      my.pc = Committer::kRecord;
      Tell(text, "committer: drains");
      return true;
    case Committer::kRecord:
      WriteRecord(state, text);
      return true;
    default:
      DrainRecord(state, text);
      return true;
  }
}

bool Model::StartGroup(State& state, std::string* text) const {
  if (!state.served || state.collecting == scenario_.groups) return false;
  const bool waits = std::any_of(std::begin(state.txns), std::end(state.txns),
                                 [](const TxnState& txn) { return txn.end == TxnState::kFinished; });
  if (state.c_p >= state.clock && !waits && state.gaps == 0 && state.clock + 1 < state.limit) return false;
  ++state.collecting;
  state.committer.pc = Is(Fault::kClockAfterWords) ? Committer::kWords : Committer::kClock;
  Tell(text, "committer: collects group {}", state.collecting);
  return true;
}

// The clock, then the words of the workers, each in one load.
bool Model::LoadForGroup(State& state, std::string* text) const {
  Committer& my = state.committer;
  if (my.pc == Committer::kClock) {
    my.clock = state.clock;
    my.pc = Is(Fault::kClockAfterWords) ? Committer::kWriteBack : Committer::kWords;
    Tell(text, "committer: loads the clock, {}", my.clock);
    return true;
  }
  const Worker& worker = state.workers[my.at];
  my.words[my.at] = worker.word, my.words_are_stamps[my.at] = worker.word_is_stamp;
  Tell(text, "committer: loads the word of worker {}, {}", my.at, worker.word);
  if (++my.at == kWorkers) my.at = 0, my.pc = Is(Fault::kClockAfterWords) ? Committer::kClock : Committer::kWriteBack;
  return true;
}

// What a worker has installed and neither it nor a group has drained.
bool Model::WriteBackDirty(State& state, std::string* text) const {
  Committer& my = state.committer;
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (state.slots[slot].dirty != my.at + 1 || Is(Fault::kDirtyLeftOut)) continue;
    const bool by_owner = (state.in_flight[my.at] >> slot & 1) != 0;
    if (!by_owner || !Is(Fault::kForeignDrainTrusted)) WriteBack(state, slot, kCommitter);
  }
  Tell(text, "committer: writes back what worker {} has not drained", my.at);
  if (++my.at == kWorkers) my.at = 0, my.pc = Committer::kDrain;
  return true;
}

Record Model::NextRecord(const State& state) const {
  const Committer& my = state.committer;
  Record record;
  record.sequence = static_cast<uint8_t>(state.sequence + 1), record.valid = 1;
  record.c_d = std::max(static_cast<uint8_t>(my.clock + scenario_.window + 1), state.limit);
  uint8_t covered = my.clock;
  for (size_t i = 0; i < kWorkers; ++i) {
    if (my.words[i] != 0 && !my.words_are_stamps[i]) covered = std::min<uint8_t>(covered, my.words[i] - 1);
  }
  record.c_p = Is(Fault::kCpFalls) ? covered : std::max(state.c_p, covered);
  for (size_t i = 0; i < kWorkers; ++i) {
    if (my.words_are_stamps[i] && my.words[i] <= record.c_p) record.long_runners |= BitOf(my.words[i]);
  }
  const bool losers_left = std::any_of(std::begin(state.slots), std::end(state.slots), [this](const Slot& slot) {
    return slot.status == Slot::kLoser || (slot.status == Slot::kZeroingLoser && !Is(Fault::kGapDroppedUndrained));
  });
  record.gaps = losers_left && !Is(Fault::kGapDroppedWithLosers) && !Is(Fault::kGapsForgotten) ? state.gaps : 0;
  return record;
}

void Model::WriteRecord(State& state, std::string* text) const {
  const Record record = NextRecord(state);
  state.sequence = record.sequence;
  Place& place = state.places[Is(Fault::kOnePlace) ? 0 : record.sequence % kPlaces];
  place.pending = record, place.is_pending = 1;
  state.committer.pc = Committer::kDrainRecord;
  if (Is(Fault::kLimitBeforeDrain)) state.limit = record.c_d;
  if (Is(Fault::kAckBeforeDrain)) state.c_p = record.c_p, state.done = state.collecting;
  Tell(text, "committer: writes the record ({}, {}), long runners {:b}, gaps {:b}", record.c_p, record.c_d,
       record.long_runners, record.gaps);
}

void Model::DrainRecord(State& state, std::string* text) const {
  Place& place = state.places[Is(Fault::kOnePlace) ? 0 : state.sequence % kPlaces];
  place.durable = place.pending, place.pending = {}, place.is_pending = 0;
  state.limit = place.durable.c_d, state.c_p = place.durable.c_p, state.gaps = place.durable.gaps;
  state.done = state.collecting, state.served = 1;
  const uint32_t runners = place.durable.long_runners;
  const int below = runners == 0 ? state.c_p : std::min<int>(state.c_p, std::countr_zero(runners) - 1);
  state.until = static_cast<uint8_t>(std::max<int>(state.until, below));
  state.committer = {};
  Tell(text, "committer: drains the record");
}

// ---- Acknowledgements ----

bool Model::IsDurable(const State& state, size_t txn, bool by_stamp) const {
  const TxnState& it = state.txns[txn];
  return it.stamp <= state.until || (it.stamp <= state.c_p && (by_stamp || state.done >= it.group));
}

// At the first moment that it may be.
void Model::Acknowledge(State& state) const {
  for (size_t worker = 0; worker < kWorkers; ++worker) {
    for (size_t i = 0; i < kTxnsOfWorker; ++i) {
      const bool reads = scripts()[worker][i].kind == Script::kRead;
      TxnState& txn = state.txns[worker * kTxnsOfWorker + i];
      if (txn.end != TxnState::kFinished) continue;
      const bool by_stamp = Is(reads ? Fault::kReaderByStamp : Fault::kWriterByStamp);
      if (IsDurable(state, worker * kTxnsOfWorker + i, by_stamp)) txn.end = TxnState::kAcknowledged;
    }
  }
}

// ---- The collector ----

bool Model::MayFree(const State& state, size_t slot) const {
  const Slot& it = state.slots[slot];
  if (it.status == Slot::kLoser) return true;
  if (it.status == Slot::kVersion) return MayFreeTombstone(state, slot);
  if (it.status != Slot::kSuperseded) return false;
  if (it.successor == 0) return true;  // of an earlier life, all of which is durable
  const size_t successor = it.successor - 1;
  const TxnState& txn = state.txns[successor];
  if (Is(Fault::kFreedAtInstall)) return true;
  if (txn.end != TxnState::kFinished && txn.end != TxnState::kAcknowledged) return false;
  if (!IsDurable(state, successor, Is(Fault::kFreedByStamp))) return false;
  for (const Worker& worker : state.workers) {
    if (worker.at == Worker::kReading && worker.bound < txn.stamp && !Is(Fault::kSnapshotIgnored)) return false;
  }
  return true;
}

// A durable tombstone, and all older versions of its key durably zeroed.
bool Model::MayFreeTombstone(const State& state, size_t slot) const {
  const uint8_t key = state.now(slot, kKey);
  if (state.now(slot, kValue) != 0 || state.locks[key] != 0 || state.Newest(key) != slot) return false;
  for (size_t txn = 0; txn < kTxns; ++txn) {
    const TxnState& it = state.txns[txn];
    const bool wrote = it.end == TxnState::kFinished && it.stamp == state.now(slot, kBegin);
    if (wrote && !IsDurable(state, txn, false)) return false;
  }
  if (Is(Fault::kTombstoneFirst)) return true;
  for (size_t other = 0; other < kSlots; ++other) {
    const uint8_t status = state.slots[other].status;
    if (other != slot && state.now(other, kKey) == key && status != Slot::kFree && status != Slot::kPrivate)
      return false;
  }
  return true;
}

bool Model::FreeSlot(State& state, size_t slot, std::string* text) const {
  if (!state.served && !Is(Fault::kServesBeforeRecord)) return false;
  if (!MayFree(state, slot)) return false;
  Slot& it = state.slots[slot];
  it.successor = 0;
  if (Is(Fault::kReusedUnzeroed)) {
    it.status = Slot::kFree;
    Tell(text, "collector: frees slot {}", slot);
    return true;
  }
  state.words[slot][kBegin].Store(0);
  state.words[slot][kBegin].WriteBack(kCollector);
  state.in_flight[kCollector] |= static_cast<uint8_t>(1 << slot);
  it.status = it.status == Slot::kLoser ? Slot::kZeroingLoser : Slot::kZeroing;
  if (Is(Fault::kReusedUndrained)) it.status = Slot::kFree;
  Tell(text, "collector: zeroes slot {}", slot);
  return true;
}

bool Model::DrainFreed(State& state, std::string* text) const {
  if (state.in_flight[kCollector] == 0) return false;
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if ((state.in_flight[kCollector] >> slot & 1) == 0) continue;
    uint8_t& status = state.slots[slot].status;
    if (status == Slot::kZeroing || status == Slot::kZeroingLoser) status = Slot::kFree;
  }
  Drain(state, kCollector);
  Tell(text, "collector: drains");
  return true;
}

}  // namespace dbx::models::write_behind
