#include "tests/models/differential_model.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "tests/models/differential_verdict.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dbx::models::differential {

// ---- Stages -----------------------------------------------------------------------------------------------------

Stages OurStages() {
  return {Stage::kReserved, Stage::kActive, Stage::kFlagOn,  Stage::kBegin,   Stage::kNumber,
          Stage::kFilled,   Stage::kPages,  Stage::kFlagOff, Stage::kList,    Stage::kEnd,
          Stage::kFlush,    Stage::kAnchor, Stage::kPunch,   Stage::kTakeBack};
}

Stages Without(Stage left_out, Stages stages) {
  std::erase(stages, left_out);
  return stages;
}

Stages Moved(Stage stage, Stage behind, Stages stages) {
  std::erase(stages, stage);
  stages.insert(std::find(stages.begin(), stages.end(), behind) + 1, stage);
  return stages;
}

std::string Scenario::Name() const {
  std::string name;
  for (size_t t = 0; t < kTxns; ++t) {
    if (!txns[t].empty()) name += fmt::format("{}{} in log {}", name.empty() ? "" : ", ", txns[t], log_of[t]);
  }
  return name + fmt::format("; {} checkpoints", checkpoints);
}

size_t Scenario::LogOf(size_t txn, size_t op) const {
  const auto attempts = std::count(txns[txn].begin(), txns[txn].begin() + std::min(op, txns[txn].size()), 'A');
  return retries_elsewhere ? (log_of[txn] + static_cast<size_t>(attempts)) % logs : log_of[txn];
}

std::string Scenario::LogName(const char* preposition, size_t log) const {
  return logs == 1 ? std::string() : fmt::format(" {} log {}", preposition, log);
}

uint16_t Scenario::FirstValue(size_t page) const {
  return page < pages ? static_cast<uint16_t>(Mix64(page)) : uint16_t{0};
}

// ---- States -----------------------------------------------------------------------------------------------------

uint8_t State::Append(size_t log, const Record& record) {
  CHECK(counts[0] + counts[1] < static_cast<int>(kRecordsMax));
  At(log, counts[log]) = record;
  return counts[log]++;
}

uint8_t State::ReadyUntil(size_t log) const {
  uint8_t at = 0;
  while (at < counts[log] && At(log, at).filled()) ++at;
  return at;
}

uint16_t NewValue(uint16_t value, size_t txn, size_t op) {
  return static_cast<uint16_t>(HashPair(value, 1000 + 100 * txn + op));
}

size_t FirstOf(std::string_view txn, size_t end) {
  const size_t abort = end == 0 ? std::string_view::npos : txn.rfind('A', end - 1);
  return abort == std::string_view::npos ? 0 : abort + 1;
}

// ---- The model --------------------------------------------------------------------------------------------------

Model::Model(Rules rules, Scenario scenario) : rules_(std::move(rules)), scenario_(scenario) {
  if (scenario_.truncates) return;
  for (const Stage stage : {Stage::kReserved, Stage::kActive, Stage::kPunch}) std::erase(rules_.stages, stage);
}

// A run starts with a full backup, number 0, in copy A; copy B is empty.
State Model::Initial() const {
  State state;
  std::memset(static_cast<void*>(&state), 0, sizeof state);
  state.pages_there = scenario_.pages;
  for (size_t p = 0; p < kPages; ++p) {
    state.pages[p].value = state.backups[0][p].value = scenario_.FirstValue(p);
    state.pages[p].dirty = 2;
  }
  for (size_t k = 0; k < kLogs; ++k) {
    state.anchor.begin[k] = state.anchor.end[k] = -1;
    state.checkpointer.needed[k] = kFar;
  }
  return state;
}

bool Model::Take(State& state, uint8_t move, std::string* text) const {
  if (move < kTxns) return TakeTxnStep(rules_, scenario_, state, move, text);
  if (move == kCheckpointMove) return TakeCheckpointStep(rules_, scenario_, state, false, text);
  if (move == kFailureMove) return TakeCheckpointStep(rules_, scenario_, state, true, text);
  return Flush(state, move - kFlushMove, text);
}

bool Model::Flush(State& state, size_t log, std::string* text) const {
  if (!scenario_.flushes || state.durable[log] >= state.ReadyUntil(log)) return false;
  state.durable[log] = state.ReadyUntil(log);
  Tell(text, "log {} is flushed", log);
  return true;
}

bool Model::IsEnd(const State& state) const {
  for (size_t t = 0; t < kTxns; ++t) {
    if (state.txns[t].op < scenario_.txns[t].size()) return false;
  }
  const Checkpointer& checkpointer = state.checkpointer;
  return checkpointer.stage == kNone || (checkpointer.stage == 0 && checkpointer.number == scenario_.checkpoints);
}

uint64_t Model::FingerprintOf(const State& state) {
  const uint64_t front = XXH3_64bits(&state, offsetof(State, records) + state.counts[0] * sizeof(Record));
  return XXH3_64bits_withSeed(&state.records[kRecordsMax - state.counts[1]], state.counts[1] * sizeof(Record), front);
}

std::string Model::Judge(const State& state) {
  const BackupPage(&backup)[kPages] = state.backups[state.anchor.copy];
  uint64_t base = XXH3_64bits(&state.anchor, sizeof state.anchor);
  base = XXH3_64bits_withSeed(&backup, sizeof backup, base);
  base = XXH3_64bits_withSeed(&state.punched, sizeof state.punched, base);
  std::array<std::array<uint64_t, kRecordsMax + 1>, kLogs> prefixes;  // a hash for each
  std::array<uint8_t, kLogs> ready;
  uint64_t disk = HashPair(base, 0);
  for (size_t k = 0; k < kLogs; ++k) {
    ready[k] = state.ReadyUntil(k);
    prefixes[k][0] = k;
    for (size_t at = 0; at < ready[k]; ++at) {
      prefixes[k][at + 1] = XXH3_64bits_withSeed(&state.At(k, at), sizeof(Record), prefixes[k][at]);
    }
    disk = HashPair(HashPair(disk, prefixes[k][ready[k]]), state.durable[k]);
  }
  if (!disks_.Insert(disk)) return {};
  newest_backup_ = std::max(newest_backup_, state.anchor.number);
  CrashImage image{rules_, scenario_, state, {}};
  for (image.cut[0] = state.durable[0]; image.cut[0] <= ready[0]; ++image.cut[0]) {
    for (image.cut[1] = state.durable[1]; image.cut[1] <= ready[1]; ++image.cut[1]) {
      const uint64_t key = HashPair(HashPair(base, prefixes[0][image.cut[0]]), prefixes[1][image.cut[1]]);
      if (!images_.Insert(key)) continue;
      std::string fault = FaultOf(image);
      if (!fault.empty()) return fault;
    }
  }
  return {};
}

}  // namespace dbx::models::differential
