// The steps of a worker.
#include <algorithm>

#include "tests/models/write_behind_model.h"

namespace dbx::models::write_behind {

Stages StagesUnder(Fault fault) {
  Stages stages;
  for (size_t i = 0; i < stages.size(); ++i) stages[i] = static_cast<Stage>(i);
  const auto move = [&](Stage stage, Stage before) {
    const auto from = std::find(stages.begin(), stages.end(), stage),
               to = std::find(stages.begin(), stages.end(), before);
    from < to ? std::rotate(from, from + 1, to) : std::rotate(to, from, from + 1);
  };
  if (fault == Fault::kAnnouncedAfterDraw) move(Stage::kAnnounce, Stage::kPublish);
  if (fault == Fault::kClearedBeforeEntries) move(Stage::kClear, Stage::kEnter);
  if (fault == Fault::kGroupBeforeClear) move(Stage::kGroup, Stage::kClear);
  if (fault == Fault::kReleasedBeforeClear) move(Stage::kRelease, Stage::kClear);
  return stages;
}

bool Model::TakeWorkerStep(State& state, size_t worker, std::string* text) const {
  Worker& my = state.workers[worker];
  if ((!state.served && !Is(Fault::kServesBeforeRecord)) || my.txn == kTxnsOfWorker) return false;
  if (my.at == Worker::kFlushing) return Flush(state, worker, text);
  if (my.at == Worker::kReading) return Read(state, worker, text);
  if (my.at == Worker::kHasRead) return EndRead(state, worker, text);
  const Script& script = ScriptOf(worker, state);
  if (script.kind == Script::kNothing) return false;
  if (script.kind == Script::kRead) {
    my.bound = state.clock, my.at = Worker::kReading;
    Tell(text, "worker {}: a reader's snapshot is {}", worker, my.bound);
    return true;
  }
  using Step = bool (Model::*)(State&, size_t, std::string*) const;
  constexpr Step kSteps[] = {&Model::TakeSlots, &Model::LockKeys, &Model::Announce, &Model::Draw,      &Model::Publish,
                             &Model::Install,   &Model::Enter,    &Model::Clear,    &Model::LoadGroup, &Model::Release};
  const Stage stage = stages_[my.at];
  if (stage == Stage::kInstall && script.kind == Script::kAbort) return Abort(state, worker, text);
  if (!(this->*kSteps[static_cast<size_t>(stage)])(state, worker, text)) return false;
  if (++my.at == stages_.size()) {
    state.txns[TxnOf(worker, state)].end = TxnState::kFinished;
    Next(state, worker);
  }
  return true;
}

// Its private copies.
bool Model::TakeSlots(State& state, size_t worker, std::string* text) const {
  Worker& my = state.workers[worker];
  const Script& script = ScriptOf(worker, state);
  size_t slot = 0;
  for (size_t i = 0; i < kWritesMax && script.keys[i] != 0; ++i, ++slot) {
    while (slot < scenario_.slots && state.slots[slot].status != Slot::kFree) ++slot;
    if (slot == scenario_.slots) return false;
    state.slots[slot].status = Slot::kPrivate;
    state.words[slot][kKey].Store(script.keys[i]);
    state.words[slot][kValue].Store(script.values[i]);
    my.slots[i] = static_cast<uint8_t>(slot);
  }
  Tell(text, "worker {}: takes slot {} and fills it", worker, my.slots[0]);
  return true;
}

// The newest version of its snapshot. Waits where a stamp of the snapshot is drawn and not yet installed.
bool Model::Read(State& state, size_t worker, std::string* text) const {
  Worker& my = state.workers[worker];
  const uint8_t key = ScriptOf(worker, state).keys[0];
  const uint8_t holder = state.locks[key];
  if (holder != 0) {
    const Worker& writer = state.workers[holder - 1];
    const TxnState& txn = state.txns[TxnOf(holder - 1, state)];
    if (txn.end == TxnState::kNone ? writer.word != 0 : txn.stamp <= my.bound) return false;
  }
  const size_t slot = state.Newest(key, my.bound);
  TxnState& txn = state.txns[TxnOf(worker, state)];
  txn.saw = slot == kSlots ? 0 : state.now(slot, kBegin);
  const uint8_t value = slot == kSlots ? 0 : state.now(slot, kValue);
  if (value != ValueAt(state, key, my.bound)) state.misread = 1;
  my.at = Worker::kHasRead;
  Tell(text, "worker {}: reads the version of stamp {}", worker, txn.saw);
  return true;
}

// What a snapshot must show.
uint8_t Model::ValueAt(const State& state, uint8_t key, uint8_t snapshot) const {
  uint8_t value = base_[key], newest = 0;
  for (size_t txn = 0; txn < kTxns; ++txn) {
    const TxnState& it = state.txns[txn];
    const Script& script = scripts()[txn / kTxnsOfWorker][txn % kTxnsOfWorker];
    if (script.kind != Script::kWrite || it.end < TxnState::kInstalled || it.stamp > snapshot) continue;
    for (size_t i = 0; i < kWritesMax; ++i) {
      if (script.keys[i] == key && it.stamp > newest) value = script.values[i], newest = it.stamp;
    }
  }
  return value;
}

bool Model::EndRead(State& state, size_t worker, std::string* text) const {
  TxnState& txn = state.txns[TxnOf(worker, state)];
  txn.stamp = state.workers[worker].bound;
  txn.group = static_cast<uint8_t>(state.collecting + 1);
  txn.end = Is(Fault::kReaderAtOnce) ? TxnState::kAcknowledged : TxnState::kFinished;
  Tell(text, "worker {}: ends its reader, group {}", worker, txn.group);
  Next(state, worker);
  return true;
}

// And loads the clock: a later stamp will be above it.
bool Model::LockKeys(State& state, size_t worker, std::string* text) const {
  Worker& my = state.workers[worker];
  for (const uint8_t key : ScriptOf(worker, state).keys) {
    if (key == 0) continue;
    if (state.locks[key] != 0) return false;
    state.locks[key] = static_cast<uint8_t>(worker + 1);
  }
  my.bound = static_cast<uint8_t>(state.clock + 1);
  Tell(text, "worker {}: locks its rows and loads the clock, {}", worker, state.clock);
  return true;
}

bool Model::Announce(State& state, size_t worker, std::string* text) const {
  Worker& my = state.workers[worker];
  my.word = my.bound, my.word_is_stamp = 0;
  Tell(text, "worker {}: announces a stamp of at least {}", worker, my.word);
  return true;
}

bool Model::Draw(State& state, size_t worker, std::string* text) const {
  Worker& my = state.workers[worker];
  TxnState& txn = state.txns[TxnOf(worker, state)];
  txn.stamp = ++state.clock, txn.end = TxnState::kDrawn;
  if (Is(Fault::kStampedBeforeRecheck)) {
    for (size_t i = 0; i < kWritesMax && ScriptOf(worker, state).keys[i] != 0; ++i) {
      state.words[my.slots[i]][kBegin].Store(txn.stamp);
    }
  }
  Tell(text, "worker {}: draws stamp {}", worker, txn.stamp);
  return true;
}

bool Model::Publish(State& state, size_t worker, std::string* text) const {
  Worker& my = state.workers[worker];
  my.word = state.txns[TxnOf(worker, state)].stamp, my.word_is_stamp = 1;
  Tell(text, "worker {}: its word is its stamp {}", worker, my.word);
  return true;
}

// A stamp that is not below the durable c_d waits for the next record.

bool Model::Install(State& state, size_t worker, std::string* text) const {
  Worker& my = state.workers[worker];
  TxnState& txn = state.txns[TxnOf(worker, state)];
  if (txn.stamp >= state.limit && !Is(Fault::kLimitIgnored)) return false;
  if ((state.used & BitOf(txn.stamp)) != 0) state.twice = 1;
  state.used |= BitOf(txn.stamp);
  for (size_t i = 0; i < kWritesMax && ScriptOf(worker, state).keys[i] != 0; ++i) {
    Supersede(state, worker, i);
    state.words[my.slots[i]][kBegin].Store(txn.stamp);
    state.slots[my.slots[i]].status = Slot::kVersion;
  }
  txn.end = TxnState::kInstalled;
  Tell(text, "worker {}: stores stamp {} and the pointers", worker, txn.stamp);
  return true;
}

void Model::Supersede(State& state, size_t worker, size_t write) const {
  const size_t old = state.Newest(ScriptOf(worker, state).keys[write]);
  if (old == kSlots) return;
  const size_t txn = TxnOf(worker, state);
  state.txns[txn].overwrote[write] = state.now(old, kBegin);
  state.slots[old].status = Slot::kSuperseded;
  state.slots[old].successor = static_cast<uint8_t>(txn + 1);
}

// Nothing is stored that counts: the slots go back as they are.
bool Model::Abort(State& state, size_t worker, std::string* text) const {
  Worker& my = state.workers[worker];
  const Script& script = ScriptOf(worker, state);
  for (size_t i = 0; i < kWritesMax && script.keys[i] != 0; ++i) {
    state.slots[my.slots[i]].status = Slot::kFree;
    state.locks[script.keys[i]] = 0;
  }
  state.txns[TxnOf(worker, state)].end = TxnState::kAborted;
  my.word = my.word_is_stamp = 0;
  Tell(text, "worker {}: aborts", worker);
  Next(state, worker);
  return true;
}

bool Model::Enter(State& state, size_t worker, std::string* text) const {
  Worker& my = state.workers[worker];
  for (size_t i = 0; i < kWritesMax && ScriptOf(worker, state).keys[i] != 0; ++i) {
    state.slots[my.slots[i]].dirty = static_cast<uint8_t>(worker + 1);
  }
  Tell(text, "worker {}: its slots join the DTT", worker);
  return true;
}

bool Model::Clear(State& state, size_t worker, std::string* text) const {
  Worker& my = state.workers[worker];
  if (!Is(Fault::kWordKeptUntilDrain)) my.word = my.word_is_stamp = 0;
  Tell(text, "worker {}: its word is {}", worker, my.word);
  return true;
}

bool Model::LoadGroup(State& state, size_t worker, std::string* text) const {
  TxnState& txn = state.txns[TxnOf(worker, state)];
  txn.group = static_cast<uint8_t>(state.collecting + 1);
  Tell(text, "worker {}: is of group {}", worker, txn.group);
  return true;
}

bool Model::Release(State& state, size_t worker, std::string* text) const {
  for (const uint8_t key : ScriptOf(worker, state).keys) state.locks[key] = 0;
  Tell(text, "worker {}: releases its locks", worker);
  return true;
}

void Model::Next(State& state, size_t worker) const {
  Worker& my = state.workers[worker];
  ++my.txn;
  my.at = 0, my.bound = 0;
  std::fill(std::begin(my.slots), std::end(my.slots), uint8_t{0});
}

// Of all that the worker has installed since: one step for the write-back, one for the Drain.
bool Model::Flush(State& state, size_t worker, std::string* text) const {
  Worker& my = state.workers[worker];
  if (my.at == Worker::kFlushing) {
    Drain(state, static_cast<Caller>(worker));
    my.at = 0;
    if (Is(Fault::kWordKeptUntilDrain)) my.word = my.word_is_stamp = 0;
    Tell(text, "worker {}: drains", worker);
    return true;
  }
  if (my.at != 0) return false;
  bool any = false;
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (state.slots[slot].dirty != worker + 1) continue;
    WriteBack(state, slot, static_cast<Caller>(worker));
    if (Is(Fault::kEntryLeavesBeforeDrain)) state.slots[slot].dirty = 0;
    any = true;
  }
  if (!any) return false;
  my.at = Worker::kFlushing;
  Tell(text, "worker {}: writes back", worker);
  return true;
}

void Model::WriteBack(State& state, size_t slot, Caller caller) const {
  state.words[slot][kKey].WriteBack(caller);
  if (!Is(Fault::kLastLineLeftOut)) state.words[slot][kValue].WriteBack(caller);
  state.words[slot][kBegin].WriteBack(caller);
  state.in_flight[caller] |= static_cast<uint8_t>(1 << slot);
}

void Model::Drain(State& state, Caller caller) const {
  for (size_t slot = 0; slot < kSlots; ++slot) {
    for (Word& word : state.words[slot]) word.Drain(caller);
    if ((state.in_flight[caller] >> slot & 1) != 0 && caller != kCollector) state.slots[slot].dirty = 0;
  }
  state.in_flight[caller] = 0;
}

}  // namespace dbx::models::write_behind
