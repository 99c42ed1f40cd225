// What a power failure may leave, what a restart makes of it, and whether that is right.
#include <algorithm>
#include <cstring>

#include "tests/models/write_behind_model.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dbx::models::write_behind {
namespace {

// Calls `visit()` for every combination of what the places and the words may hold, with `image` and `places` filled.
template <class Visit>
void ForEachImage(const State& state, Image& image, Record (&places)[kPlaces], size_t at, Visit&& visit) {
  constexpr size_t kWords = kSlots * 3;
  if (at == kWords + kPlaces) return visit();
  if (at >= kWords) {
    const Place& place = state.places[at - kWords];
    Record& kept = places[at - kWords];
    kept = place.durable;
    ForEachImage(state, image, places, at + 1, visit);
    if (!place.is_pending) return;
    kept = {};  // torn: its checksum is wrong
    ForEachImage(state, image, places, at + 1, visit);
    kept = place.pending;
    return ForEachImage(state, image, places, at + 1, visit);
  }
  const Word& word = state.words[at / 3][at % 3];
  for (uint8_t i = 0; i < word.count; ++i) {
    if (std::find(word.values, word.values + i, word.values[i]) != word.values + i) continue;
    image.words[at / 3][at % 3] = word.values[i];
    ForEachImage(state, image, places, at + 1, visit);
  }
}

Record NewestOf(const Record (&places)[kPlaces]) {
  Record newest;
  for (const Record& record : places) {
    if (record.valid && (!newest.valid || record.sequence > newest.sequence)) newest = record;
  }
  return newest;
}

bool Covers(const Record& record, uint8_t stamp) {
  return stamp <= record.c_p && ((record.long_runners | record.gaps) & BitOf(stamp)) == 0;
}

}  // namespace

// ---- States ----

void Word::Store(uint8_t value) {
  if (now() == value) return;
  CHECK(count < kValuesMax);
  values[count++] = value;
}

void Word::Drain(Caller caller) {
  const uint8_t durable = written_back[caller];
  for (uint8_t i = 0; i < kValuesMax; ++i) values[i] = i + durable < count ? values[i + durable] : uint8_t{0};
  count = static_cast<uint8_t>(count - durable);
  for (uint8_t& position : written_back) position = static_cast<uint8_t>(position - std::min(position, durable));
}

size_t State::Newest(uint8_t key, uint8_t until) const {
  size_t newest = kSlots;
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (slots[slot].status != Slot::kVersion && slots[slot].status != Slot::kSuperseded) continue;
    if (now(slot, kKey) != key || now(slot, kBegin) > until) continue;
    if (newest == kSlots || now(slot, kBegin) > now(newest, kBegin)) newest = slot;
  }
  return newest;
}

// ---- The model ----

Model::Model(Fault fault, const Scenario& scenario, Memory& memory)
    : fault_(fault), stages_(StagesUnder(fault)), scenario_(scenario), memory_(memory) {
  for (auto& slot : initial_.words) {
    for (Word& word : slot) word.count = 1;
  }
  for (const uint8_t key : {1, 2}) {
    const size_t slot = key - 1;
    for (const int what : {kKey, kValue}) initial_.words[slot][what].values[0] = key;
    initial_.words[slot][kBegin].values[0] = kLoadStamp;
    initial_.slots[slot].status = Slot::kVersion;
    base_[key] = key;
  }
  initial_.clock = initial_.c_p = initial_.until = kLoadStamp;
  initial_.limit = static_cast<uint8_t>(kLoadStamp + scenario.window + 1);
  initial_.sequence = 1;
  initial_.served = 1;
  initial_.places[Is(Fault::kOnePlace) ? 0 : 1].durable = {0, 0, 1, initial_.c_p, initial_.limit, 1};
}

Model::Model(Fault fault, const Scenario& scenario, Memory& memory, const Image& image, uint8_t life)
    : fault_(fault), stages_(StagesUnder(fault)), scenario_(scenario), memory_(memory), life_(life) {
  std::memcpy(base_, image.expected, sizeof base_);
  Record last = image.record;
  last.sequence = 1;
  State& state = initial_;
  state.gaps = (Is(Fault::kGapsForgotten) ? 0 : last.gaps);
  if (!Is(Fault::kLongRunnersForgotten)) state.gaps |= last.long_runners;
  const int below = Is(Fault::kGapShortBelow) ? 2 : 1, above = Is(Fault::kGapShortAbove) ? 2 : 1;
  for (int stamp = last.c_p + below; stamp <= last.c_d - above; ++stamp) state.gaps |= BitOf(stamp);
  state.clock = Is(Fault::kClockFromCp) ? last.c_p : static_cast<uint8_t>(last.c_d - 1);
  state.c_p = state.clock;
  state.limit = static_cast<uint8_t>(state.clock + scenario.window + 1);
  state.sequence = 2;
  state.used = image.used;
  state.places[Is(Fault::kOnePlace) ? 0 : 1].durable = last;
  Place& first = state.places[0];
  first.pending = {0, state.gaps, state.sequence, state.c_p, state.limit, 1}, first.is_pending = 1;
  state.committer.pc = Committer::kDrainRecord;
  Adopt(image);
}

// Of each key the newest version that is in no gap.
void Model::Adopt(const Image& image) {
  State& state = initial_;
  size_t newest[kKeys + 1] = {kSlots, kSlots, kSlots, kSlots};
  for (size_t slot = 0; slot < kSlots; ++slot) {
    for (int what = 0; what < 3; ++what) {
      state.words[slot][what].count = 1, state.words[slot][what].values[0] = image.words[slot][what];
    }
    const uint8_t begin = image.words[slot][kBegin], key = image.words[slot][kKey];
    if (begin == 0) continue;
    state.slots[slot].status = Slot::kLoser;
    if ((state.gaps & BitOf(begin)) != 0) continue;
    if (begin > state.c_p) first_fault_ = "a stamp is above all that was promised, and in no gap";
    state.slots[slot].status = Slot::kSuperseded;
    size_t& best = newest[key];
    if (best != kSlots && image.words[best][kBegin] == begin) first_fault_ = "two versions of a row have one stamp";
    const bool newer = best == kSlots || (image.words[best][kBegin] < begin) != Is(Fault::kOldestAdopted);
    if (newer) best = slot;
  }
  for (uint8_t key = 1; key <= kKeys; ++key) {
    const uint8_t value = newest[key] == kSlots ? uint8_t{0} : image.words[newest[key]][kValue];
    if (newest[key] != kSlots) state.slots[newest[key]].status = Slot::kVersion;
    if (value != base_[key] && first_fault_.empty()) {
      first_fault_ = fmt::format("I4: {} is {} and not {}", " xyz"[key], value, base_[key]);
    }
  }
}

bool Model::Take(State& state, uint8_t move, std::string* text) const {
  const State before = state;
  const bool taken = move < kFlushMove    ? TakeWorkerStep(state, move, text)
                     : move < kCommitMove ? Flush(state, move - kFlushMove, text)
                     : move < kFreeMove   ? TakeCommitStep(state, text)
                     : move < kDrainMove  ? FreeSlot(state, move - kFreeMove, text)
                                          : DrainFreed(state, text);
  if (taken) {
    Acknowledge(state);
  } else {
    state = before;
  }
  return taken;
}

// Where no group is left in this life, workers may wait for ever.
bool Model::IsEnd(const State& state) const {
  return state.collecting == scenario_.groups ||
         std::all_of(state.workers, state.workers + kWorkers, [&](const Worker& w) {
           const size_t worker = static_cast<size_t>(&w - state.workers);
           return w.txn == kTxnsOfWorker || scripts()[worker][w.txn].kind == Script::kNothing;
         });
}

uint64_t Model::FingerprintOf(const State& state) { return XXH3_64bits(&state, sizeof state); }

// ---- The verdict ----

std::string Model::Judge(const State& state) {
  ++memory_.states;
  if (!first_fault_.empty()) return first_fault_;
  if (state.twice) return "I8: a stamp is used twice";
  if (state.misread) return "a reader does not see the version of its snapshot";
  std::string fault;
  Image image;
  Record places[kPlaces];
  ForEachImage(state, image, places, 0, [&] {
    if (!fault.empty()) return;
    ++memory_.crash_images;
    Image kept = image;
    kept.record = NewestOf(places);
    fault = JudgeImage(state, kept);
  });
  return fault;
}

std::string Model::JudgeImage(const State& state, Image& image) {
  if (!image.record.valid) return "no valid record is left";
  uint32_t recovered = 0;
  const std::string fault = JudgeRecovered(state, image.record, recovered);
  if (!fault.empty()) return fault;
  std::memcpy(image.expected, base_, sizeof base_);
  image.used = state.used;
  for (uint8_t stamp = 0; stamp < 32; ++stamp) {
    for (size_t txn = 0; txn < kTxns; ++txn) {
      if ((recovered >> txn & 1) == 0 || state.txns[txn].stamp != stamp) continue;
      const Script& script = scripts()[txn / kTxnsOfWorker][txn % kTxnsOfWorker];
      for (size_t i = 0; i < kWritesMax; ++i) image.expected[script.keys[i]] = script.values[i];
    }
  }
  image.expected[0] = 0;
  return JudgeNextLife(image);
}

// Which transactions of this life the record counts; all that is promised of them.
std::string Model::JudgeRecovered(const State& state, const Record& record, uint32_t& recovered) const {
  const auto reads = [&](size_t txn) {
    return scripts()[txn / kTxnsOfWorker][txn % kTxnsOfWorker].kind == Script::kRead;
  };
  uint32_t lost_stamps = 0;
  for (size_t txn = 0; txn < kTxns; ++txn) {
    const TxnState& it = state.txns[txn];
    if (it.end == TxnState::kNone || it.end == TxnState::kAborted || reads(txn)) continue;
    if (!Covers(record, it.stamp)) {
      lost_stamps |= BitOf(it.stamp);
      if (it.end == TxnState::kAcknowledged) return fmt::format("I1: T{} was acknowledged and is lost", txn);
    } else if (it.end == TxnState::kDrawn) {
      return fmt::format("I2: T{} is recovered and was never installed", txn);
    } else {
      recovered |= BitOf(static_cast<unsigned>(txn));
    }
  }
  for (size_t txn = 0; txn < kTxns; ++txn) {
    const TxnState& it = state.txns[txn];
    if (reads(txn) && it.end == TxnState::kAcknowledged && it.saw != 0 && (lost_stamps & BitOf(it.saw)) != 0) {
      return fmt::format("I1: T{} was acknowledged, and what it read is lost", txn);
    }
    for (const uint8_t stamp : it.overwrote) {
      if ((recovered >> txn & 1) != 0 && stamp != 0 && (lost_stamps & BitOf(stamp)) != 0) {
        return fmt::format("I3: T{} is recovered, and what it overwrote is lost", txn);
      }
    }
  }
  return "";
}

std::string Model::JudgeNextLife(const Image& image) {
  Image same = image;
  same.record.sequence = 1;
  // What does not matter any more, so that fewer restarts differ.
  for (auto& slot : same.words) {
    if (slot[kBegin] == 0) slot[kKey] = slot[kValue] = 0;
  }
  uint8_t bytes[sizeof same + 1];
  std::memcpy(bytes, &same, sizeof same);
  bytes[sizeof same] = life_;
  if (!memory_.images.Insert(XXH3_64bits(bytes, sizeof bytes))) return "";
  Model next(fault_, scenario_, memory_, same, static_cast<uint8_t>(life_ + 1));
  if (!next.first_fault_.empty()) return next.first_fault_;
  if (life_ + 1 == scenario_.life_count) return "";
  const Findings found = CrashSearch<Model>(next).Run();
  if (found.fault.empty()) return "";
  std::vector<std::string> trace = {
      fmt::format("power failure; restart from the record ({}, {})", same.record.c_p, same.record.c_d)};
  trace.insert(trace.end(), found.trace.begin(), found.trace.end());
  memory_.trace.insert(memory_.trace.begin(), trace.begin(), trace.end());
  return found.fault;
}

}  // namespace dbx::models::write_behind
