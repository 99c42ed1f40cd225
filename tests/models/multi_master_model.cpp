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
      "PrintedSplit",
      "NoFence",
      "ToldNotAfter",
      "ListAfterFlush",
      "LocalAfterTv",
      "EndedHere",
      "NoVersionRead",
      "ReaderStaysLeft",
      "PrunedEarly",
      "ListEvicted",
      "SplitLeavesLocks",
      "SplitForgetsGap",
      "SplitForgetsAfter",
      "SplitListNotSent",
      "ReleasingNotSent",
      "SplitNotReplayed",
      "LosersOnOldPage",
      "EndedUnapplied",
      "UndoOnOldPage",
      "CutByStores",
      "CutPastOpen",
      "CutPastSplit",
      "CutAtSend",
      "CutUnapplied",
      "LsnFromLog",
      "GrantsBeforeReports",
      "OldTermAccepted",
      "ReportNoRowLocks",
      "ReportNoAfters",
      "ReportNoLosers",
      "ReportBeforeFlush",
      "ReportOnOldPage",
      "PlacedOnArrival",
      "ReportLsnLost",
      "RequestsNotAnew",
      "EarlierLogsUnread",
      "CutUnreported",
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
  for (size_t page = 0; page < kPages; ++page) add(Move::kPruneGlobal, page);
  add(Move::kReadPage, 0);
  add(Move::kRestart, 0);
  for (size_t m = 0; m < kMasters; ++m) {
    for (const Move::Kind kind : {Move::kFlush, Move::kTell, Move::kRead, Move::kStrict, Move::kCrash, Move::kRecover,
                                  Move::kCut, Move::kReport}) {
      add(kind, m);
    }
    for (size_t k = 0; k < kMasters; ++k) add(Move::kApply, m, k);
    for (size_t page = 0; page < kPages; ++page) {
      for (const Move::Kind kind : {Move::kRelease, Move::kSend, Move::kEvict, Move::kDiscard, Move::kPrune}) {
        add(kind, m, page);
      }
    }
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
  if (move.kind == Move::kReadPage) return s.reader.is_active != 0;
  if (move.kind == Move::kRestart) return CanRestart();
  if (move.kind == Move::kPruneGlobal) return s.prunes > 0 && CanPrune(s.pages[a].after);
  if (a >= scenario_.masters) return false;
  const Master& my = s.masters[a];
  if (move.kind == Move::kDeliver) {
    return move.c < (b != 0 ? s.to_glm[a] : s.to_master[a]).count && (move.c == 0 || scenario_.reorders);
  }
  if (move.kind == Move::kRecover) return my.alive == 0 && my.recovered == 0;
  return my.alive != 0 && CanDo(move, my);
}

// Of a page that is held exclusively, only R: it may go before P, from which it was split off.
bool World::CanEvict(const Local& local, size_t page) const {
  const bool is_held = local.mode == kShared || (local.mode == kExclusive && page == kRight && local.fresh == 0);
  return s.evictions > 0 && is_held && local.reclaimed == 0 && local.releasing == 0;
}

// Moves of a master that is alive.
bool World::CanDo(const Move& move, const Master& my) const {
  const uint8_t a = move.a, b = move.b;
  switch (move.kind) {
    case Move::kFlush:
      return my.count > my.durable;
    case Move::kApply:
      return b < scenario_.masters && (scenario_.applies >> (3 * a + b) & 1) != 0 && MayApply(a, b);
    case Move::kRelease:
      return CanRelease(a, b);
    case Move::kSend:
      return my.pages[b].releasing != 0;
    case Move::kEvict:
      return CanEvict(my.pages[b], b);
    case Move::kDiscard:
      return s.discards > 0 && my.pages[b].mode == 0 && my.pages[b].want_mode == 0 && my.pages[b].copy.there != 0 &&
             my.pages[b].copy.lsn.master == a;
    case Move::kPrune:
      return s.prunes > 0 && CanPrune(my.pages[b].after);
    case Move::kCut:
      return s.cuts > 0 && CutUntil(a) > my.cut;
    case Move::kTell:
      return EndsToTell(a) != 0;
    case Move::kRead:
      return s.reads > 0 && s.reader.is_active == 0;
    case Move::kStrict:
      return s.strict > 0;
    case Move::kCrash:
      return CanCrash(a);
    case Move::kReport:
      return CanReport(a);
    default:
      return false;
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
      const bool is_old = message.term != (move.b != 0 ? s.term : my.term);
      if (is_old && (move.b != 0 || !Has(Fault::kOldTermAccepted))) return;
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
    case Move::kSend:
      return SendRelease(a, move.b);
    case Move::kDiscard:
      --s.discards;
      my.pages[move.b].copy = {};
      if (Has(Fault::kListEvicted)) std::fill_n(my.pages[move.b].after, kMasters, 0);
      return;
    case Move::kPrune:
      --s.prunes;
      return Prune(my.pages[move.b].after);
    case Move::kPruneGlobal:
      --s.prunes;
      return Prune(s.pages[a].after);
    case Move::kCut:
      --s.cuts;
      my.cut = static_cast<uint8_t>(CutUntil(a));
      return;
    case Move::kTell: {
      Message message = {};
      message.kind = Message::kEnds, message.ends = EndsToTell(a);
      my.told |= message.ends;
      return Send(s.to_glm[a], message);
    }
    case Move::kRead:
      return StartRead(a);
    case Move::kReadPage:
      return ReadPage();
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
    case Move::kRestart:
      return Restart();
    case Move::kReport:
      return Report(a);
    case Move::kBreak:
      return StartUndo(a);
  }
}

namespace {

const char* ModeName(uint8_t mode) { return mode == kExclusive ? "X" : "S"; }
char PageName(size_t page) { return "PQR"[page]; }

std::string DescribeMessage(const Message& message, size_t m, bool to_glm) {
  const char page = PageName(message.page);
  const char* mode = ModeName(message.mode);
  if (message.kind == Message::kRequest) return fmt::format("GLM: M{} requests {} of page {}", m, mode, page);
  if (message.kind == Message::kRelease) return fmt::format("GLM: M{} releases {} of page {}", m, mode, page);
  if (message.kind == Message::kEnds) {
    return to_glm ? fmt::format("GLM: learns of ENDs from M{}", m) : fmt::format("M{}: is told of ENDs by the GLM", m);
  }
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
      if (KindOf(a) == 's') return fmt::format("M{}: T{} splits page P", txn.master, a);
      const char* verb = KindOf(a) == 'r' ? "reads" : KindOf(a) == 'g' ? "scans from" : "writes";
      return fmt::format("M{}: T{} {} {}", txn.master, a, verb, "abc"[RowOf(a)]);
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
      return fmt::format("M{}: a statement that reads versions begins", a);
    case Move::kReadPage:
      if (!scenario_.points.empty()) {
        return fmt::format("M{}: the statement looks {} up", s.reader.master, scenario_.points[s.reader.row]);
      }
      return fmt::format("M{}: the statement scans from {} on", s.reader.master, "abc"[s.reader.row]);
    case Move::kSend:
      return fmt::format("M{}: the release of page {} is sent", a, PageName(move.b));
    case Move::kDiscard:
      return fmt::format("M{}: its version of page {} leaves the buffer", a, PageName(move.b));
    case Move::kPrune:
      return fmt::format("M{}: prunes the after-list of page {}", a, PageName(move.b));
    case Move::kPruneGlobal:
      return fmt::format("GLM: prunes the after-list of page {}", PageName(a));
    case Move::kCut:
      return fmt::format("M{}: cuts its log below record {}", a, CutUntil(a));
    case Move::kStrict:
      return fmt::format("M{}: asks for the ends of all logs", a);
    case Move::kCrash:
      return fmt::format("M{}: dies", a);
    case Move::kRecover:
      return fmt::format("GLM: M{} is fenced and recovered", a);
    case Move::kRestart:
      return "the GLM dies, and a new one begins";
    case Move::kReport:
      return fmt::format("GLM: M{} reports", a);
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
  state.crashes = scenario_.crashes, state.restarts = scenario_.restarts, state.evictions = scenario_.evictions;
  state.reads = scenario_.reads, state.strict = scenario_.strict;
  state.prunes = scenario_.prunes, state.discards = scenario_.discards, state.cuts = scenario_.cuts;
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
