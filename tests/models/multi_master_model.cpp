// Which moves there are, what they are called, and the model as crash_search.h wants it.
#include "tests/models/multi_master_model.h"

#include <algorithm>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dbx::models::multi_master {

const char* NameOf(Fault fault) {
  static constexpr std::array kNames = {
      "None",
      "PrintedScalarGrant",
      "PrintedNoAfters",
      "PrintedSharedRelease",
      "PrintedReaderEnd",
      "StrictMerged",
      "ReleasedBeforeFlush",
      "EndToldEarly",
      "UnlockedBeforeUndo",
      "FreedWithoutLosers",
      "GlmForgetsList",
      "NoGenerations",
      "NoVs4",
      "PredecessorOnly",
      "PrintedOwnClock",
      "NoValidityCheck",
      "PrintedValidity",
      "PrintedSnapshot",
      "NoFence",
  };
  return kNames.at(static_cast<size_t>(fault));
}

World::Statistics& World::statistics() {
  static Statistics statistics;
  return statistics;
}

std::vector<Move> AllMoves() {
  std::vector<Move> moves;
  const auto add = [&moves](Move::Kind kind, size_t a, size_t b = 0, size_t c = 0) {
    moves.push_back({kind, static_cast<uint8_t>(a), static_cast<uint8_t>(b), static_cast<uint8_t>(c)});
  };
  for (size_t t = 0; t < kTxns; ++t) add(Move::kStep, t), add(Move::kBreak, t);
  for (size_t m = 0; m < kMasters; ++m) {
    for (const Move::Kind kind :
         {Move::kFlush, Move::kTell, Move::kRead, Move::kStrict, Move::kCrash, Move::kRecover}) {
      add(kind, m);
    }
    for (size_t k = 0; k < kMasters; ++k) add(Move::kApply, m, k);
    for (size_t page = 0; page < kPages; ++page) add(Move::kRelease, m, page), add(Move::kEvict, m, page);
    for (size_t to_glm = 0; to_glm < 2; ++to_glm) {
      for (size_t i = 0; i < kMessagesMax; ++i) add(Move::kDeliver, m, to_glm, i);
    }
  }
  return moves;
}

bool World::Can(const Move& move) const {
  const uint8_t a = move.a, b = move.b;
  if (move.kind == Move::kStep) return CanStep(a);
  if (move.kind == Move::kBreak) return s.txns[a].step == Txn::kRuns && s.txns[a].blockers != 0 && IsInCycle(a);
  if (a >= scenario_.masters) return false;
  const Master& my = s.masters[a];
  switch (move.kind) {
    case Move::kDeliver:
      return move.c < (b != 0 ? s.to_glm[a] : s.to_master[a]).count && (move.c == 0 || scenario_.reorders);
    case Move::kFlush:
      return my.alive != 0 && my.count > my.durable;
    case Move::kApply:
      return my.alive != 0 && b < scenario_.masters && (scenario_.applies >> (3 * a + b) & 1) != 0 && MayApply(a, b);
    case Move::kRelease:
      return CanRelease(a, b);
    case Move::kEvict:
      return my.alive != 0 && s.evictions > 0 && my.pages[b].mode == kShared && my.pages[b].reclaimed == 0;
    case Move::kTell:
      return my.alive != 0 && EndsToTell(a) != 0;
    case Move::kRead:
      return my.alive != 0 && s.reads > 0;
    case Move::kStrict:
      return my.alive != 0 && s.strict > 0;
    case Move::kCrash:
      return CanCrash(a);
    default:
      return my.alive == 0 && my.recovered == 0;
  }
}

void World::Do(const Move& move) {
  const uint8_t a = move.a;
  Master& my = s.masters[a < kMasters ? a : 0];
  switch (move.kind) {
    case Move::kDeliver: {
      Link& link = move.b != 0 ? s.to_glm[a] : s.to_master[a];
      const Message message = link.messages[move.c];
      std::copy(link.messages + move.c + 1, link.messages + link.count, link.messages + move.c);
      link.messages[--link.count] = {};
      return move.b != 0 ? DeliverToGlm(a, message) : DeliverToMaster(a, message);
    }
    case Move::kStep:
      return Step(a);
    case Move::kFlush:
      return Flush(a);
    case Move::kApply:
      return Apply(a, move.b);
    case Move::kEvict:
      --s.evictions;
      return Release(a, move.b);
    case Move::kRelease:
      return Release(a, move.b);
    case Move::kTell: {
      Message message = {Message::kEnds, 0, 0, 0, {}, {}, EndsToTell(a), {}};
      my.told |= message.ends;
      return Send(s.to_glm[a], message);
    }
    case Move::kRead:
      return ReadVersions(a);
    case Move::kStrict:
      --s.strict;
      for (size_t k = 0; k < scenario_.masters && Has(Fault::kStrictMerged); ++k) {
        if (k != a) my.applied[k] = std::max(my.applied[k], s.masters[k].last_lfb);
      }
      return;
    case Move::kCrash:
      return Crash(a);
    case Move::kRecover:
      return Recover(a);
    case Move::kBreak:
      return StartUndo(a);
  }
}

namespace {

const char* ModeName(uint8_t mode) { return mode == kExclusive ? "X" : "S"; }
char PageName(size_t page) { return "PQ"[page]; }

std::string DescribeMessage(const Message& message, size_t m, bool to_glm) {
  const char page = PageName(message.page);
  const char* mode = ModeName(message.mode);
  if (message.kind == Message::kRequest) return fmt::format("GLM: M{} requests {} of page {}", m, mode, page);
  if (message.kind == Message::kRelease) return fmt::format("GLM: M{} releases {} of page {}", m, mode, page);
  if (to_glm) return fmt::format("GLM: learns of ENDs from M{}", m);
  if (message.kind == Message::kReclaim) return fmt::format("M{}: page {} is reclaimed", m, page);
  return fmt::format("M{}: is granted {} of page {}, version {}", m, mode, page, message.lsn.time);
}

}  // namespace

std::string World::Describe(const Move& move) const {
  const size_t a = move.a;
  switch (move.kind) {
    case Move::kDeliver:
      return DescribeMessage((move.b != 0 ? s.to_glm[a] : s.to_master[a]).messages[move.c], a, move.b != 0);
    case Move::kStep: {
      const Txn& txn = s.txns[a];
      if (txn.step == Txn::kUndoes) return fmt::format("M{}: T{} undoes", txn.master, a);
      if (IsThrough(a)) return fmt::format("M{}: T{} commits", txn.master, a);
      if (KindOf(a) == '!') return fmt::format("M{}: T{} aborts", txn.master, a);
      return fmt::format("M{}: T{} {} {}", txn.master, a, KindOf(a) == 'r' ? "reads" : "writes", "abc"[RowOf(a)]);
    }
    case Move::kFlush:
      return fmt::format("M{}: flushes", a);
    case Move::kApply: {
      const Lfb& lfb = s.masters[move.b].lfbs[s.masters[a].next[move.b]];
      return fmt::format("M{}: applies LFB ({}, {}, {}) of M{}", a, lfb.stamp[0], lfb.stamp[1], lfb.stamp[2], move.b);
    }
    case Move::kRelease:
    case Move::kEvict:
      return fmt::format("M{}: {} page {}", a, move.kind == Move::kEvict ? "evicts" : "releases", PageName(move.b));
    case Move::kTell:
      return fmt::format("M{}: tells the GLM of ENDs", a);
    case Move::kRead:
      return fmt::format("M{}: reads a, b and c without locks", a);
    case Move::kStrict:
      return fmt::format("M{}: asks for the ends of all logs", a);
    case Move::kCrash:
      return fmt::format("M{}: dies", a);
    case Move::kRecover:
      return fmt::format("GLM: M{} is fenced and recovered", a);
    case Move::kBreak:
      return fmt::format("T{} is aborted, to break a deadlock", a);
  }
  return "";
}

std::string TextOf(const State& state) { return TextOf(state.failure); }

// ---- For the search ----

Model::Model(Scenario scenario, Fault fault) : scenario_(std::move(scenario)), fault_(fault), moves_(AllMoves()) {
  CHECK(moves_.size() == kMoves && scenario_.programs.size() <= kTxns);
}

State Model::Initial() const {
  State state;
  std::memset(static_cast<void*>(&state), 0, sizeof state);
  for (size_t m = 0; m < scenario_.masters; ++m) state.masters[m].alive = state.masters[m].recovered = 1;
  for (Global& page : state.pages) page.lsn = {kNone, 0};
  for (size_t t = 0; t < scenario_.programs.size(); ++t) {
    state.txns[t].master = scenario_.programs[t].master;
    state.txns[t].step = Txn::kRuns;
  }
  state.crashes = scenario_.crashes, state.evictions = scenario_.evictions;
  state.reads = scenario_.reads, state.strict = scenario_.strict;
  return state;
}

bool Model::Take(State& state, uint8_t move, std::string* text) const {
  World world(state, scenario_, fault_);
  if (state.failure != Failure::kNothing || !world.Can(moves_[move])) return false;
  if (text != nullptr) *text = world.Describe(moves_[move]);
  world.Do(moves_[move]);
  if (scenario_.own_at_once) world.ReadOwnLogs();
  return true;
}

std::string Model::Judge(const State& state) const {
  State copy = state;
  World world(copy, scenario_, fault_);
  const bool goes_on = std::any_of(moves_.begin(), moves_.end(),
                                   [&world](const Move& move) { return !IsOptional(move.kind) && world.Can(move); });
  if (!goes_on) world.Finish();
  return TextOf(copy);
}

uint64_t Model::FingerprintOf(const State& state) {
  uint64_t hash = 0;
  for (const Master& master : state.masters) {
    hash = XXH3_64bits_withSeed(&master, offsetof(Master, records), hash);
    hash = XXH3_64bits_withSeed(master.records, master.count * sizeof(Record), hash);
    hash = XXH3_64bits_withSeed(master.lfbs, master.lfb_count * sizeof(Lfb), hash);
  }
  return XXH3_64bits_withSeed(&state.to_glm, sizeof state - offsetof(State, to_glm), hash);
}

}  // namespace dbx::models::multi_master
